"""docs/explanation/simulated-drive.md lists all presets, and the constants in ADR 49 equal the constants in the
code.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tkperf.engine.simulation import flash_drive, service
from tkperf.engine.simulation.models import PRESET_MODELS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "explanation/simulated-drive.md").read_text(encoding="utf-8")
# The lines of the page are joined, because a line can break anywhere.
EQUATIONS = " ".join((DOCS / "adr/0049-simulated-drives-are-mean-field-models.md").read_text("utf-8").split())


def test_every_preset_is_on_the_page() -> None:
    for name in PRESET_MODELS:
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (r"(\d+) superblocks", flash_drive.SUPERBLOCKS),
        (r"(\d+) slices", flash_drive.SLICES),
        (r"(\d+) % of the writes wait", 100 * flash_drive._BURST_SHARE),
        (r"wait (\d+) times as long", flash_drive._BURST_TIMES),
        (r"at most (\d+) ms longer\. Of all I/Os", flash_drive._BURST_MOST_US / 1000),
        (r"(\d+) in 10,000", 1e4 * service._RARE_SHARE),
        (r"take (\d+) times as long", service._RARE_TIMES),
        (r"the other I/Os, but at most (\d+) ms longer\.", service._RARE_MOST_NS / 1e6),
        (r"second every (\d+) s", service._SCALES_S[1]),
        (r"never falls below (\d+) %", 100 * service._LEAST_SHARE),
    ],
)
def test_constants_are_the_codes(words: str, value: float) -> None:
    found = re.search(words, EQUATIONS)
    assert found is not None, words
    assert float(found[1]) == pytest.approx(value)
