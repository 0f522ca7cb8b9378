"""The program files of this tkperf. An upgrade may replace the files during a run.

Before its first step, a run loads all modules that the run needs. Modules that are loaded afterwards, such as the
modules of reports, may belong to another version. Modules of two versions do not work together, so in this case another
process writes the report.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tkperf.model import version
from tkperf.model.errors import EngineError, reason_of
from tkperf.system.process import ANSWER_LIMIT_S, run_command


def _identify_files() -> tuple[int, int, int] | None:
    """Return the identity of the file that contains tkperf's version. None means that the file no longer exists."""
    try:
        status = Path(version.__file__).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


_AT_START = _identify_files()


def were_replaced() -> bool:
    """Return whether tkperf was upgraded, installed again or removed since this process loaded it."""
    return _identify_files() != _AT_START


def render_with_new_files(run_file: Path) -> str:
    """Return the report of a run as HTML. The tkperf that is installed now writes the report.

    Raises:
        EngineError: no tkperf is installed now, or it cannot write the report.
    """
    with tempfile.TemporaryDirectory(prefix="tkperf-report-") as folder:
        page = Path(folder) / "page.html"
        command = [sys.executable, "-P", "-m", "tkperf", "report", str(run_file), "--output", str(page)]
        done = run_command(command, timeout_s=ANSWER_LIMIT_S)
        try:
            return page.read_text(encoding="utf-8")
        except OSError as error:
            said = done.words[-200:] or reason_of(error)
            raise EngineError(
                "the files of tkperf were replaced or removed during the run, and the tkperf that is installed now "
                f"cannot write the report: {said}. Install tkperf again, and then run 'tkperf report {run_file}'"
            ) from error
