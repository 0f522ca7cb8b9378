"""docs/simulated-drive.md is true: its tables are the presets, its constants the code's."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tkperf.engine.simulation import flash_drive, latency, service, translation
from tkperf.engine.simulation.models import PRESET_MODELS, DiskModel, FlashModel, Misbehaviour

PAGE = Path(__file__).parents[3] / "docs/simulated-drive.md"
TEXT = PAGE.read_text(encoding="utf-8")
PARAMETERS = (PAGE.parent / "reference/simulated-drives.md").read_text(encoding="utf-8")


def table(heading: str) -> dict[str, dict[str, str]]:
    """Of the table below a heading, each row's cells by column."""
    below = PARAMETERS.split(f"## {heading}\n", 1)[1].split("\n#", 1)[0]
    lines = [line.strip("| ") for line in below.splitlines() if line.startswith("|")]
    columns, _, *rows = [[cell.strip(" `") for cell in line.split("|")] for line in lines]
    return {cells[0]: dict(zip(columns[1:], cells[1:], strict=True)) for cells in rows}


def shown(value: object) -> str:
    """A parameter as the page has it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    assert isinstance(value, int | float)
    return f"{value:,.15g}"


def plain_fields(kind: type) -> list[str]:
    return [each.name for each in fields(kind) if each.name != "misbehaviour"]


@pytest.mark.parametrize(
    ("heading", "kind", "presets"),
    [
        ("Solid state drives", FlashModel, ("sata-ssd", "nvme-4kn", "client-tlc", "client-qlc")),
        ("Hard disk", DiskModel, ("hdd",)),
    ],
)
def test_every_parameter_of_every_preset_is_in_its_table(
    heading: str, kind: type, presets: tuple[str, ...]
) -> None:
    rows = table(heading)
    assert list(rows) == plain_fields(kind)
    for name in presets:
        model = PRESET_MODELS[name]
        assert isinstance(model, kind)
        found = {row: cells[name] for row, cells in rows.items()}
        assert found == {row: shown(getattr(model, row)) for row in rows}


def test_every_misbehaviour_is_in_its_table() -> None:
    """The rest of these drives is sata-ssd, unsteady but for half the capacity."""
    rows = table("Misbehaving drives")
    assert list(rows) == [each.name for each in fields(Misbehaviour)]
    odd = {
        name: model for name, model in PRESET_MODELS.items() if model.misbehaviour != Misbehaviour()
    }
    for cells in rows.values():
        assert list(cells) == list(odd)
    for name, model in odd.items():
        found = {row: cells[name] for row, cells in rows.items()}
        assert found == {row: shown(getattr(model.misbehaviour, row)) for row in rows}
        sata = PRESET_MODELS["sata-ssd"]
        same = [each for each in plain_fields(FlashModel) if each != "capacity_bytes"]
        assert all(getattr(model, each) == getattr(sata, each) for each in same)


def test_every_preset_is_on_the_page() -> None:
    for name in PRESET_MODELS:
        assert f"`{name}`" in TEXT


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (r"(\d+) superblocks", translation.SUPERBLOCKS),
        (r"(\d+) slices", translation.SLICES),
        (r"(\d+) % of the writes wait", 100 * flash_drive._BURST_SHARE),
        (r"wait (\d+) times as long", flash_drive._BURST_TIMES),
        (r"(\d+) ms longer than the others at most", flash_drive._BURST_MOST_US / 1000),
        (r"(\d+) I/Os in 10,000", 1e4 * latency._RARE_SHARE),
        (r"take (\d+) times as long", latency._RARE_TIMES),
        (r"but (\d+) ms longer at most", latency._RARE_MOST_NS / 1e6),
        (r"every (\d+) s and every minute", service._SCALES_S[1]),
        (r"never less than (\d+) %", 100 * service._LEAST_SHARE),
    ],
)
def test_constants_are_the_codes(words: str, value: float) -> None:
    found = re.search(words, TEXT)
    assert found is not None, words
    assert float(found[1]) == pytest.approx(value)
