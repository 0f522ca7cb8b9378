"""Rows of the library: what it keeps of a run or a batch. ``row_reader.py`` makes them, in a worker."""

from __future__ import annotations

import re

import msgspec

from tkperf.model.record import RunStatus

FORMAT = 4
"""Changes with these records and the way they are made: rows of another format are made again."""

_MONTH = re.compile(r"\d{4}-\d{2}")


class HeadlineFigure(msgspec.Struct, frozen=True, array_like=True):
    """A headline figure; ``alarm``: its section did not reach steady state, or did not complete."""

    label: str
    text: str
    alarm: bool


class Spark(msgspec.Struct, frozen=True, array_like=True):
    """The course of write saturation: IOPS in equal parts of its time, None: not measured."""

    values: tuple[float | None, ...]
    text: str


class RunRow(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A run as the library lists it. An empty text means that the value is not known.

    Attributes:
        run_id: of the run; each file that claims to be of this run has it.
        tests: titles of the tests that have begun.
        state: as ``tkperf status`` names it; ``place``: where a run is that has not ended normally.
        level: weight of the verdict, a ``NoteLevel``.
        entries: number of entries of the log.
        digest: of the whole content; files with the same digest are copies of each other.
        ranks: ``RunFigures`` in short, encoded, because a library decodes them only to rank.
    """

    run_id: str
    name: str
    model: str
    serial: str
    firmware: str
    host: str
    tests: tuple[str, ...]
    profile: str
    started_utc: str
    state: str
    place: str
    verdict: str
    level: str
    reasons: tuple[str, ...]
    simulated: bool
    figures: tuple[HeadlineFigure, ...]
    spark: Spark | None
    entries: int
    digest: bytes
    capacity_bytes: int | None = None
    interface: str = ""
    form_factor: str = ""
    ranks: bytes = b""

    @property
    def is_running(self) -> bool:
        return self.state == RunStatus.RUNNING

    @property
    def month(self) -> str:
        found = _MONTH.match(self.started_utc)
        return found[0] if found else ""


class BatchRow(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A batch as the library lists it.

    Attributes:
        verdict, text: progress of its drives, in words.
        runs: names of the run files next to it, in the order of its drives.
        digest: of the whole file.
    """

    batch_id: str
    name: str
    began_utc: str
    verdict: str
    text: str
    level: str
    is_running: bool
    runs: tuple[str, ...]
    digest: bytes
