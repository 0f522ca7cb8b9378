"""Rows of the library: the data that it stores about a run or a batch. ``row_reader.py`` makes the rows in a worker."""

from __future__ import annotations

import re

import msgspec

from tkperf.model.record import RunStatus

FORMAT = 4
"""This number changes when the records change, or the way in which they are made. Rows of another format are made
again.
"""

_MONTH = re.compile(r"\d{4}-\d{2}")


class HeadlineFigure(msgspec.Struct, frozen=True, array_like=True):
    """A headline figure. ``alarm``: its section did not reach steady state or did not complete."""

    label: str
    text: str
    alarm: bool


class Spark(msgspec.Struct, frozen=True, array_like=True):
    """The course of write saturation: the IOPS in equal parts of its time; None: not measured."""

    values: tuple[float | None, ...]
    text: str


class RunRow(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A run in the list of the library. An empty text means that the value is not known.

    Attributes:
        run_id: the id of the run. Each file that claims to belong to this run has the id.
        tests: titles of the tests that have begun.
        state: the word of ``tkperf status`` for the state. ``place``: the place of a run that has not ended normally.
        level: the severity of the verdict, a ``NoteLevel``.
        entries: number of entries of the log.
        digest: a digest of the whole content. Files with the same digest are copies of each other.
        ranks: shortened and encoded ``RunFigures``, which the library decodes only for a ranking.
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
    """A batch in the list of the library.

    Attributes:
        verdict, text: the progress of the drives in words.
        runs: names of the run files next to the ledger, in the order of the drives.
        digest: a digest of the whole file.
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
