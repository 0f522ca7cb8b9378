"""tkperf measures block devices by the SNIA Performance Test Specification.

From Python, results are read with ``tkperf.load``; docs/python-api.md has examples.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tkperf.analysis.results import RunResult
    from tkperf.runfile.reader import RunFile

__version__ = "3.0.0.dev0"
__all__ = ["__version__", "load", "open_run"]


def load(path: str | Path) -> RunResult:
    """The results of a run file: what reports show, as typed data; None is "not measured".

    Raises:
        RunFileError: the file is missing, damaged, or no run file.
    """
    # The command line starts faster without what only this needs.
    from tkperf.analysis.results import analyse  # noqa: PLC0415

    with open_run(path) as run_file:
        return analyse(run_file.record())


def open_run(path: str | Path) -> RunFile:
    """A run file itself, for its steps, seconds, jobs and what fio printed; close it after use.

    Raises:
        RunFileError: the file is missing, damaged, or no run file.
    """
    from tkperf.runfile.reader import RunFile  # noqa: PLC0415

    return RunFile(Path(path))
