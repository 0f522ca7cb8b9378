"""The results of a run file, with what its seconds show."""

from __future__ import annotations

from pathlib import Path

from tkperf.analysis.over_seconds import with_seconds
from tkperf.analysis.results import RunResult, analyse
from tkperf.runfile.reader import RunFile


def read_results(path: Path) -> RunResult:
    """Everything that can be shown of a run.

    Raises:
        RunFileError: it cannot be read.
    """
    with RunFile(path) as opened:
        record = opened.record()
        return with_seconds(analyse(record), record, opened.seconds)
