"""Run files of many drives. They are copies of one run, each with different facts and a different date."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path


def vary_run_file(source: Path, target: Path, *, device: Mapping[str, object], **facts: object) -> Path:
    """Copy a run file with other facts. ``device`` replaces facts about the drive, and the other arguments replace
    facts about the run.

    The measurements do not change.
    """
    shutil.copy(source, target)
    db = sqlite3.connect(target)
    with db:
        kept = json.loads(db.execute("SELECT value FROM run WHERE key = 'device'").fetchone()[0])
        changed = {"name": target.stem, "device": {**kept, **device}, **facts}
        for key, value in changed.items():
            db.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, json.dumps(value)))
    db.close()
    return target
