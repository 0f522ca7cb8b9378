"""The phase with which an interrupted test continues, according to its log. The tests use invented procedures of a few
phases.
"""

from __future__ import annotations

import pytest

from tests.runfile.runs import a_step
from tkperf.model.phases import Fill, Procedure, Purge, SectionOutcome
from tkperf.model.record import GoesOn, LogEntry, Logged, PurgeRecord, StepKind
from tkperf.model.workload import Access, Workload
from tkperf.runner.replay import replay

WRITES = Workload(access=Access.SEQUENTIAL, read_percent=0, block_size_bytes=131072, jobs=1, io_depth=1)


def two_fills() -> Procedure:
    """Run a test of two sections. Each section has a purge and a fill."""
    for section in ("A", "B"):
        yield Purge(section=section)
        yield Fill(section=section, workload=WRITES, passes=1)
    yield SectionOutcome(section="B", window=(), verdict=None, ended_because="over")


def log_of(*sections: str) -> list[LogEntry]:
    """Return the rows of the purges and fills of these sections. If the name of a section ends with ``-``, its fill was
    interrupted.
    """
    records: list[Logged] = []
    for name in sections:
        section = name.rstrip("-")
        records.append(PurgeRecord(section=section, started_s=1.0, duration_s=1.0, method="m"))
        if name == section:
            records.append(a_step(section=section, kind=StepKind.FILL, workload=WRITES))
    return [LogEntry(sequence=row, test_id=1, record=record) for row, record in enumerate(records, start=1)]


@pytest.mark.parametrize("accept", [False, True])
def test_a_fill_that_was_cut_off_is_done_as_a_whole(accept: bool) -> None:
    """If a fill was interrupted, the whole fill is repeated, even if the user accepts the interruption. An incomplete
    fill does not precondition the drive.
    """
    found = replay(two_fills(), log_of("A-"), accept=accept)
    assert (found.goes_on, found.set_aside_from, found.answers) == (GoesOn.PURGE, 1, ())


def test_only_the_phases_from_the_last_purge_on_are_done_again() -> None:
    """After an interruption, only the phases from the last purge on are repeated. Earlier measurements remain valid."""
    found = replay(two_fills(), log_of("A", "B-"))
    assert (found.goes_on, found.set_aside_from, found.again) == (GoesOn.PURGE, 3, "B: all from its purge on")
    assert len(found.answers) == 2
