"""Batches whose drives exist only in their ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tkperf.batch.ledger import DriveBegan, DriveEnded, DrivesConfirmed, Ledger, append_end
from tkperf.batch.request import BatchDrive, BatchRequest
from tkperf.model.batch_state import BatchPlace, DriveShown
from tkperf.model.sharing import SharingState
from tkperf.pipeline.run_request import RunRequest

CLAIMS = """
[[claim]]
test = "tp"
metric = "megabytes_per_s"
block_size = "1024k"
read_percent = 100
at_least = 1
"""
NAMES = ("rack-01", "rack-02")
UTC = "2026-11-24T10:00:00+00:00"


def make_ledger(folder: Path, claims: str) -> Path:
    """Create the ledger of a batch whose drives are done, and return its path."""
    with begin_ledger(folder, claims) as ledger:
        for number in range(1, len(NAMES) + 1):
            append_end(ledger.path, DriveEnded(number=number, utc=UTC, pid=1, exit_code=0))
        return ledger.path


@contextmanager
def begin_ledger(folder: Path, claims: str) -> Iterator[Ledger]:
    """Create the ledger of a batch whose drives have begun. The batch counts as running until the ledger is closed."""
    drives = tuple(
        BatchDrive(name=name, given=name, request=RunRequest(suite="ssd", device=f"/dev/{name}")) for name in NAMES
    )
    request = BatchRequest(name="rack", claims=claims, claims_path=str(folder / "claims.toml"), drives=drives)
    ledger = Ledger.create(folder / "rack.batch", request, ())
    numbers = dict(enumerate(NAMES, start=1))
    shown = tuple(
        DriveShown(number=number, name=name, path=f"/dev/{name}", capacity_bytes=10**9)
        for number, name in numbers.items()
    )
    ledger.write(DrivesConfirmed(utc=UTC, drives=shown))
    for number in numbers:
        place = BatchPlace(name="rack", number=number, others=1, sharing=SharingState.WITHIN_BUDGET)
        ledger.write(DriveBegan(number=number, utc=UTC, pid=1, pid_started="never", place=place))
    try:
        yield ledger
    finally:
        ledger.close()
