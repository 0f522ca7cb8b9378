"""Reads together with writes, and a reader together with its neighbours. The tests check the phases that run, their
order, and the phases that are left out.
"""

from __future__ import annotations

import msgspec
import pytest

from tkperf.model.measurement import IoStats, Measurement, StreamPart
from tkperf.model.phases import Answer, Continuous, Fill, Phase, Purge, Round
from tkperf.model.units import GIB, MIB
from tkperf.model.workload import Arrival, Workload
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.procedures.forecast import phases_of
from tkperf.procedures.interference import (
    FIRST_CELL_AGAIN,
    GRID,
    LEAST_IOPS_OF_THREAD,
    MOST_IOPS_OF_THREAD,
    InterferenceTable,
    find_jobs,
    order_cells,
)
from tkperf.procedures.reader_with_neighbours import (
    DURING_OTHERS,
    DURING_TRIMS,
    NeighboursTable,
    cut_range,
    neighbours_of,
)

PROFILE = load_profile("pts-e-1.1")
TABLE = PROFILE.table(InterferenceTable)
READ_IOPS, WRITE_IOPS = 600_000, 14_000


def done(ios: int, duration_s: float, block_bytes: int) -> IoStats:
    return IoStats(ios=ios, bytes=ios * block_bytes, latency_ios=ios, latency_sum_ns=ios * 100_000)


def measure(load: Workload, duration_s: float) -> Measurement:
    """Return the result of a drive that reads 600,000 IOPS and writes 14,000 IOPS. Simultaneous loads do not change
    these rates.
    """
    nothing = done(0, duration_s, 0)
    parts = []
    for stream in load.streams:
        work = stream.workload
        able = READ_IOPS if work.reads else WRITE_IOPS
        stats = done(round(min(able, work.offered_iops or able) * duration_s), duration_s, work.block_size_bytes)
        parts.append(
            StreamPart(name=stream.name, read=stats if work.reads else nothing, write=stats if work.writes else nothing)
        )
    one = parts[0]
    return Measurement(
        duration_s=duration_s, read=one.read, write=one.write, streams=tuple(parts) if load.is_combination else ()
    )


def answer(phase: Phase) -> Answer:
    match phase:
        case Round():
            return {step.workload: measure(step.workload, step.duration_s) for step in phase.steps}
        case Continuous():
            return measure(phase.workload, phase.duration_s)
        case Fill():
            return measure(phase.workload, 1.0)
        case _:
            return None


def phases(test: str, profile: object = PROFILE, length_bytes: int = 960 * GIB) -> list[Phase]:
    return list(phases_of(SSD_TESTS[test].procedure(profile, length_bytes), answer))  # type: ignore[arg-type]


def measured(of: list[Phase], section: str) -> list[Workload]:
    """Return the load of each measured round of a section. The lead-ins before the rounds are omitted."""
    rounds = (phase for phase in of if isinstance(phase, Round) and phase.section == section and not phase.warm_up)
    return [phase.steps[0].workload for phase in rounds]


def test_each_cell_is_measured_once_and_the_first_again_at_the_end() -> None:
    """Each cell is measured once, after a lead-in with the same load. The cells are all pairs of 11 read rates and 11
    write rates, except the pair without I/O. The first cell is measured again at the end of the test.
    """
    ran = phases("interference")
    loads = measured(ran, GRID)
    assert len(loads) == len(set(loads)) == 11 * 11 - 1
    assert measured(ran, FIRST_CELL_AGAIN) == loads[:1]
    rounds = [phase for phase in ran if isinstance(phase, Round) and phase.section == GRID]
    for lead_in, cell in zip(rounds[::2], rounds[1::2], strict=True):
        assert (lead_in.warm_up, cell.warm_up) == (True, False)
        assert lead_in.steps[0].workload == cell.steps[0].workload
        assert lead_in.cells == cell.cells
        assert (lead_in.steps[0].duration_s, cell.steps[0].duration_s) == (5, 60)


def test_cells_offer_shares_of_the_rates_alone() -> None:
    """The cells offer shares of the rates that the drive reached with reads alone and with writes alone. The shares
    range from 0 to 100 % in steps of 10 %. The arrivals are random.
    """
    streams = [stream.workload for load in measured(phases("interference"), GRID) for stream in load.streams]
    offered = {
        reads: sorted({one.offered_iops or 0.0 for one in streams if one.reads is reads}) for reads in (True, False)
    }
    assert offered[True] == [60_000.0 * level for level in range(1, 11)]
    assert offered[False] == [1400.0 * level for level in range(1, 11)]
    assert {one.arrival for one in streams} == {Arrival.POISSON}


def test_the_order_depends_on_the_seed_alone_and_begins_with_a_load_that_drives_can_do() -> None:
    """The order of the cells depends only on the seed. Another seed leads to another order of the same cells. The first
    cell always offers 30 % of each rate, which every drive can reach.
    """
    other = msgspec.structs.replace(TABLE, seed=2)
    assert order_cells(TABLE) == order_cells(TABLE)
    assert order_cells(TABLE) != order_cells(other)
    assert set(order_cells(TABLE)) == set(order_cells(other))
    assert {(order[0].read_level, order[0].write_level) for order in (order_cells(TABLE), order_cells(other))} == {
        (3, 3)
    }


@pytest.mark.parametrize(
    ("offered_iops", "jobs"), [(1, 1), (99, 1), (400, 8), (40_000, 8), (600_000, 30), (250, 5), (9_000_000, 128)]
)
def test_each_thread_offers_a_rate_that_fio_does_accurately(offered_iops: float, jobs: int) -> None:
    """The number of threads is chosen so that each thread offers between 50 and 20,000 IOPS. In this range, random
    arrivals of fio are accurate. The profile requests 8 threads.
    """
    assert find_jobs(offered_iops, 8) == jobs
    assert offered_iops / jobs <= MOST_IOPS_OF_THREAD or jobs == 128, "reads and writes have 256 threads at most"
    assert jobs == 1 or offered_iops / jobs >= LEAST_IOPS_OF_THREAD


def test_a_drive_that_does_nothing_alone_is_offered_one_io_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a drive completes no I/O while a load runs alone, one I/O per second is offered in the grid. Without this
    rule, the offered rates of the grid would be 0, and a rate of 0 means that no rate is offered.
    """
    monkeypatch.setattr("tests.procedures.test_interference.READ_IOPS", 0)
    streams = [stream.workload for load in measured(phases("interference"), GRID) for stream in load.streams]
    assert {one.offered_iops for one in streams if one.reads} == {1.0}


def test_each_neighbour_runs_once_in_each_round() -> None:
    """Each of three rounds contains the reader alone, and the reader together with each of five neighbours. The order
    differs from round to round.
    """
    loads = measured(phases("neighbours"), DURING_OTHERS)
    names = [" + ".join(stream.name for stream in load.streams[1:]) for load in loads]
    others = ["", *(one.name for one in neighbours_of(PROFILE.table(NeighboursTable), None))]
    rounds = [tuple(names[at : at + 6]) for at in (0, 6, 12)]
    assert [sorted(each) for each in rounds] == [sorted(others)] * 3
    assert len(set(rounds)) == 3
    readers = {stream.workload for load in loads for stream in load.streams[:1]}
    assert len(readers) == 1, "the same reader everywhere"
    assert readers.pop().offered_iops == READ_IOPS / 5


def test_trims_come_last_and_are_written_again() -> None:
    """Trims are the last neighbour. After each round with trims, except the last round, the trimmed part is filled
    again. Other loads never use this part.
    """
    ran = phases("neighbours")
    part = cut_range(960 * GIB, 25)
    assert part.trimmed is not None
    assert part.rest is not None
    trims = [at for at, phase in enumerate(ran) if _trims(phase)]
    others = [at for at, phase in enumerate(ran) if isinstance(phase, Round) and phase.section == DURING_OTHERS]
    assert max(others) < min(trims)
    refills = [at for at, phase in enumerate(ran) if isinstance(phase, Fill) and phase.section == DURING_TRIMS]
    assert [ran[at].length_bytes for at in refills] == [part.trimmed.length_bytes] * 2  # type: ignore[union-attr]
    for refill in refills:
        later = (phase for phase in ran[refill:] if isinstance(phase, Round))
        assert not _trims(next(later)), "the reader alone comes first"
    in_rounds = [phase for phase in ran if isinstance(phase, Round)]
    for load in (stream.workload for phase in in_rounds for stream in phase.steps[0].workload.streams):
        assert load.region == (part.trimmed if load.trims else part.rest)
    assert part.trimmed.length_bytes == part.rest.offset_bytes


def _trims(phase: Phase) -> bool:
    return isinstance(phase, Round) and any(stream.workload.trims for stream in phase.steps[0].workload.streams)


@pytest.mark.parametrize("length_bytes", [3 * MIB, 960 * GIB])
def test_without_trims_the_reader_uses_the_whole_range(length_bytes: int) -> None:
    """If a device does not support discard, or if the range is too small to be divided, no trims run. The reader then
    uses the whole range.
    """
    table = PROFILE.table(NeighboursTable)
    profile = PROFILE if length_bytes < GIB else PROFILE.with_tables(table.without_trims())
    ran = phases("neighbours", profile, length_bytes)
    assert not any(_trims(phase) for phase in ran)
    loads = measured(ran, DURING_OTHERS)
    assert {stream.workload.region for load in loads for stream in load.streams} == {None}


def test_both_tests_purge_and_precondition_first() -> None:
    """Both tests begin with a purge, a fill and steady writes, because without them the results would describe a fresh
    drive.
    """
    for test in ("interference", "neighbours"):
        first, second, third, *_ = phases(test)
        assert isinstance(first, Purge)
        assert isinstance(second, Fill)
        assert isinstance(third, Continuous)
        assert third.workload.read_percent == 0


def test_step_lengths_of_the_command_line_are_those_of_cells() -> None:
    """The option ``-rt`` sets the length of the cells of the grid and of the steps with neighbours. It does not change
    the length of the lead-ins.
    """
    assert TABLE.scaled(2) == replace_cell(TABLE, 2)
    assert PROFILE.table(NeighboursTable).scaled(2).lead_in_s == PROFILE.table(NeighboursTable).lead_in_s


def replace_cell(table: InterferenceTable, cell_s: float) -> InterferenceTable:
    return msgspec.structs.replace(table, cell_s=cell_s)


@pytest.mark.parametrize(("key", "value"), [("neighbour_jobs", 129), ("trimmed_percent", 91)])
def test_neighbours_that_leave_no_room_for_the_reader_are_refused(key: str, value: int) -> None:
    """A profile is refused if its neighbours would use the whole range or all threads that fio can run."""
    table = PROFILE.table(NeighboursTable)
    assert table.fault(PROFILE) is None
    fault = msgspec.structs.replace(table, **{key: value}).fault(PROFILE)
    assert fault is not None
    assert fault.startswith(f"{key}: at most {value - 1}, because the reader")
