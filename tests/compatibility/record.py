"""Record the promises of a release. Run this module once, before the release has its tag:

    python -m tests.compatibility.record 3.0.0

The fixtures of a release are never recorded again after the release has its tag. Later versions must keep the promises
in these fixtures.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent


def main(version: str) -> None:
    # This line must run before any other module of tkperf reads the version, because the run file contains the name of
    # the release.
    from tkperf.model import version as of_tkperf

    of_tkperf.__version__ = version
    sys.argv = ["tkperf"]
    from tests.compatibility import promised

    folder = FOLDER / version
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        shutil.copy(promised.SOURCES / "tests/short.toml", ".")
        events = promised.call(*promised.RUN_WORDS)
        promised.call(*promised.OTHER_WORDS)
        for name in ("run.tkperf", "other.tkperf"):
            _name_no_machine(Path(name))
            shutil.copy(name, folder)
        recorded = {
            "json": promised.json_shapes(Path()),
            "events": promised.event_shapes(events),
            "csv": promised.csv_columns(Path(), Path("tables")),
            "exit-codes": promised.exit_codes(),
            "python": promised.python_names(),
        }
    for name, content in recorded.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _name_no_machine(run: Path) -> None:
    """Replace the facts of the host on which the fixture was recorded."""
    with contextlib.closing(sqlite3.connect(run)) as db:
        ((facts,),) = db.execute("SELECT facts FROM host").fetchall()
        made_up = {**json.loads(facts), "hostname": "host", "kernel": "6.1.0", "kernel_command_line": "quiet"}
        db.execute("UPDATE host SET facts = ?", [json.dumps(made_up)])
        db.commit()


if __name__ == "__main__":
    main(sys.argv[1])
