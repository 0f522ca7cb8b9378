"""Runs that a library lists although they have no files."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path

from tkperf.web.files import KnownFile
from tkperf.web.index import BatchRow, HeadlineFigure, Index, RunRow, Spark
from tkperf.web.library import FoundFiles, Listing, build_listing

FOLDER = Path("/served")


def a_row(number: int = 1, **changes: object) -> RunRow:
    facts: dict[str, object] = {
        "run_id": f"{number:032x}",
        "name": f"run-{number}",
        "model": "KIOXIA KCD81RUG3T84",
        "serial": f"S{number:04d}",
        "firmware": "1UET7104",
        "host": "bench1",
        "tests": ("IOPS", "Write Saturation"),
        "profile": "pts-e-1.1",
        "started_utc": f"2026-01-{number % 28 + 1:02d}T08:00:00+00:00",
        "state": "complete",
        "place": "",
        "verdict": "valid",
        "level": "information",
        "reasons": (),
        "simulated": False,
        "figures": (HeadlineFigure("4 KiB random write", "47,600 IOPS", False),),
        "spark": Spark((2.0, None, 1.0), "from 2 to 1 IOPS in 1 h"),
        "entries": 8,
        "digest": b"",
    }
    facts |= changes
    # Rows with the same facts have the same digest, so they count as copies.
    facts["digest"] = facts["digest"] or hashlib.sha256(repr(facts).encode()).digest()
    return RunRow(**facts)  # type: ignore[arg-type]


def a_batch(*runs: str, **changes: object) -> BatchRow:
    facts: dict[str, object] = {
        "batch_id": "b" * 32,
        "name": "rack7",
        "began_utc": "2026-01-05T08:00:00+00:00",
        "verdict": "valid",
        "text": f"{len(runs)} drives: {len(runs)} done",
        "level": "information",
        "is_running": False,
        "runs": runs,
        "digest": b"",
    }
    return BatchRow(**(facts | changes))  # type: ignore[arg-type]


def list_rows(rows: dict[str, RunRow | BatchRow | None]) -> Listing:
    """Return the listing of these files. The key is the path of a file. The value None means that the file has not been
    read yet.
    """
    files = []
    with closing(Index(None)) as index:
        for number, (place, row) in enumerate(rows.items(), start=1):
            files.append(KnownFile(folder=FOLDER, place=place, stamp=(1, number, 10, 10)))
            if row is not None:
                index.put(files[-1].stamp, row)
        return build_listing(FoundFiles(files=tuple(files)), index)
