"""The Python API: the documented examples, run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tkperf
from tests.builders import run_info, simulate
from tkperf.errors import RunFileError

DOCUMENT = Path(__file__).parents[1] / "docs/python-api.md"


def test_load_is_the_analysis(tmp_path: Path) -> None:
    """What load returns is what every report is made of; text or Path."""
    result = simulate(tmp_path, run_info())
    assert tkperf.load(tmp_path / "run.tkperf") == result
    assert tkperf.load(str(tmp_path / "run.tkperf")) == result


def test_the_documented_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of the document, one after the other, on a run of that name."""
    simulate(tmp_path, run_info())
    (tmp_path / "run.tkperf").rename(tmp_path / "D3-S4510.tkperf")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec"), names)
    assert names["cell"] is not None


def test_a_missing_file_is_our_error(tmp_path: Path) -> None:
    """Not an exception of SQLite's."""
    with pytest.raises(RunFileError, match="there is no run file"):
        tkperf.load(tmp_path / "none.tkperf")
