"""Batches whose drives exist in their book alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tkperf.model.batch import BatchPlace, DriveShown
from tkperf.model.sharing import SharingState
from tkperf.pipeline.batch.book import Book, DriveBegan, DriveEnded, DrivesConfirmed, append_end
from tkperf.pipeline.batch.request import BatchDrive, BatchRequest
from tkperf.pipeline.request import RunRequest

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


def make_book(folder: Path, claims: str) -> Path:
    """The book of a batch whose drives are done."""
    with begin_book(folder, claims) as book:
        for number in range(1, len(NAMES) + 1):
            append_end(book.path, DriveEnded(number=number, utc=UTC, pid=1, exit_code=0))
        return book.path


@contextmanager
def begin_book(folder: Path, claims: str) -> Iterator[Book]:
    """The book of a batch whose drives have begun; it is under way until the book is closed."""
    drives = tuple(
        BatchDrive(name=name, given=name, request=RunRequest(suite="ssd", device=f"/dev/{name}")) for name in NAMES
    )
    request = BatchRequest(name="rack", claims=claims, claims_path=str(folder / "claims.toml"), drives=drives)
    book = Book.create(folder / "rack.batch", request, ())
    numbers = dict(enumerate(NAMES, start=1))
    shown = tuple(
        DriveShown(number=number, name=name, path=f"/dev/{name}", capacity_bytes=10**9)
        for number, name in numbers.items()
    )
    book.write(DrivesConfirmed(utc=UTC, drives=shown))
    for number in numbers:
        place = BatchPlace(name="rack", number=number, others=1, sharing=SharingState.WITHIN_BUDGET)
        book.write(DriveBegan(number=number, utc=UTC, pid=1, pid_started="never", place=place))
    try:
        yield book
    finally:
        book.close()
