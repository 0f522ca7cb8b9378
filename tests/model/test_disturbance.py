"""Detection of disturbances in a step, based only on numbers. A model represents the device, fio and other programs,
and no real time passes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tkperf.device.kernel_watch import LOOK_EVERY_S, MOST_SELDOM_S, look_again_s
from tkperf.model.disturbance.host_activity import judge_gap
from tkperf.model.disturbance.io import Compared, Counts, DeviceLook, Disturbance, DisturbanceCode, Side, judge_bytes
from tkperf.model.errors import StepFailedError
from tkperf.model.measurement import NO_IO, IoStats, Measurement, Sample
from tkperf.model.record import StepKind
from tkperf.model.workload import Access, Workload
from tkperf.runner.run_watch import BEGINS_WITHIN_S, KNOWN_WITHIN_S, SLICE_ENDS_WITHIN_S, Observations, RunWatch

MB = 10**6
WRITES = Workload(access=Access.RANDOM, read_percent=0, block_size_bytes=4096, jobs=2, io_depth=4)


@dataclass
class Flow:
    """A number of bytes that are transferred at a constant rate between two times."""

    begin_s: float
    end_s: float
    bytes_per_s: float
    reads: bool = False

    def moved(self, at_s: float) -> float:
        return self.bytes_per_s * max(0.0, min(at_s, self.end_s) - self.begin_s)


@dataclass
class Model:
    """A device with the I/O that it receives. ``stops`` contains the start and the end of each period in which tkperf
    was stopped.
    """

    flows: list[Flow] = field(default_factory=list)
    stops: Sequence[tuple[float, float]] = ()
    sleeps: Sequence[tuple[float, float]] = ()
    counts: bool = True
    counting: bool | None = None
    others: Flow | None = None
    now_s: float = 0.0
    looked_s: float = -LOOK_EVERY_S
    seldom: tuple[float, float] = (0.0, 0.0)

    def look_seldom(self, from_s: float, until_s: float) -> None:
        self.seldom = from_s, until_s

    def _next_s(self) -> float:
        return self.looked_s + look_again_s(self.looked_s, *self.seldom)

    def take(self) -> list[DeviceLook]:
        device_looks = []
        while self._next_s() <= self.now_s:
            self.looked_s = self._next_s()
            if not any(begin < self.looked_s < end for begin, end in self.stops):
                device_looks.append(self._device_look(self.looked_s))
        return [*device_looks, self._device_look(self.now_s)]

    def _device_look(self, at_s: float) -> DeviceLook:
        read, written = (
            round(sum(flow.moved(at_s) for flow in self.flows if flow.reads is reads)) for reads in (True, False)
        )
        busy = any(flow.begin_s < at_s < flow.end_s for flow in self.flows)
        others = None if self.others is None else round(self.others.moved(at_s))
        counts = Counts(
            read_bytes=read,
            write_bytes=written,
            discard_bytes=0,
            ios=(read + written) // 4096,
            in_flight=int(busy and read + written > 0),
            others_bytes=others,
        )
        slept = sum(length_s for begin, length_s in self.sleeps if begin < at_s)
        return DeviceLook(at_s=at_s, suspended_s=slept, counts=counts if self.counts else None, counting=self.counting)


@dataclass
class Step:
    begin_s: float
    length_s: float
    bytes_per_s: float = 100 * MB
    kind: StepKind = StepKind.ROUND
    workload: Workload = WRITES
    idle: tuple[float, float] | None = None
    late_s: float = 0.0
    """The delay in seconds between the time that fio reports for its bytes and the time at which the device transfers
    them.
    """
    handed_over_s: float | None = None
    """The time at which the next step was released. If it is None, a step of a round counts as released at its planned
    end.
    """
    is_last: bool = False
    """Whether no other step is released before this step ends."""
    read_late_s: float = 0.0
    """The delay in seconds between the time at which fio writes its reports and the time at which tkperf reads them."""
    noticed_late_s: float = 0.0
    """The delay in seconds between the start of fio and the start that tkperf assumes."""

    def flows(self) -> list[Flow]:
        end_s = self.begin_s + self.length_s
        if self.idle is None:
            return [Flow(self.begin_s, end_s, self.bytes_per_s, self.reads)]
        return [
            Flow(self.begin_s, self.idle[0], self.bytes_per_s, self.reads),
            Flow(self.idle[1], end_s, self.bytes_per_s, self.reads),
        ]

    @property
    def reads(self) -> bool:
        return self.workload.read_percent == 100

    def done(self, of_bytes: float) -> tuple[IoStats, IoStats]:
        """Return the reads and the writes in the form of a sample or a measurement."""
        return (written(of_bytes), NO_IO) if self.reads else (NO_IO, written(of_bytes))


def written(of_bytes: float) -> IoStats:
    return IoStats(ios=round(of_bytes) // 4096, bytes=round(of_bytes))


def play(model: Model, steps: Iterable[Step], *, uncounted: float = 0.0) -> list[Observations]:
    """Run steps on the model and return what the watch observed.

    tkperf notices the end of each step a tenth of a second late, as with the real fio. ``uncounted`` is the share of
    fio's bytes that the device does not count.
    """
    steps = list(steps)
    for step in steps:
        for flow in step.flows():
            flow.bytes_per_s *= 1 - uncounted
            flow.begin_s, flow.end_s = flow.begin_s + step.late_s, flow.end_s + step.late_s
            model.flows.append(flow)
    watch = RunWatch(0.0, model)
    watch.test_begins()
    return [_play_step(watch, model, step) for step in steps]


def _play_step(watch: RunWatch, model: Model, step: Step) -> Observations:
    model.now_s = max(model.now_s, step.begin_s - 0.05)
    planned_s = None if step.kind is StepKind.FILL else step.length_s
    watch.step_begins(step.kind, model.now_s, planned_s)
    whole = [Flow(flow.begin_s, flow.end_s, step.bytes_per_s) for flow in step.flows()]

    def moved(elapsed_s: float) -> float:
        return sum(flow.moved(step.begin_s + elapsed_s) for flow in whole)

    elapsed_s = 0.0
    while elapsed_s < step.length_s:
        next_s = min(elapsed_s + 1, step.length_s)
        model.now_s = step.begin_s + next_s + 0.004 + step.read_late_s
        # After a pause, tkperf immediately reads all reports that arrived during the pause.
        model.now_s = max([model.now_s, *(e for b, e in model.stops if b < model.now_s < e)])
        read, write = step.done(moved(next_s) - moved(elapsed_s))
        sample = Sample(start_s=elapsed_s, duration_s=next_s - elapsed_s, read=read, write=write)
        watch.sample(sample, model.now_s)
        elapsed_s = next_s
    model.now_s += 0.1
    read, write = step.done(moved(step.length_s))
    measurement = Measurement(duration_s=step.length_s, read=read, write=write)
    handed_over_s = step.handed_over_s
    if handed_over_s is None and step.kind is StepKind.ROUND and not step.is_last:
        handed_over_s = step.begin_s + step.length_s
    return watch.step_ended(
        step.kind,
        step.workload,
        measurement,
        started_s=step.begin_s + step.noticed_late_s,
        handed_over_s=handed_over_s,
        earliest_s=step.begin_s,
        continues=step.kind is StepKind.CONTINUOUS,
    )


def codes(watched: Observations) -> list[str]:
    return [each.code.value for each in watched.disturbances]


def back_to_back(count: int, length_s: float = 10.0, rate: float = 100 * MB) -> list[Step]:
    return [Step(1 + number * length_s, length_s, rate) for number in range(count)]


def test_steps_nobody_disturbs_are_not_flagged() -> None:
    """Steps without a disturbance are not flagged. The device counts the same bytes as fio, so no bytes are foreign.
    This applies regardless of the rates of the neighbouring steps.
    """
    steps = [Step(1 + n * 10, 10, rate * MB) for n, rate in enumerate((900, 20, 900, 20, 900))]
    for seen in play(Model(), steps):
        assert codes(seen) == []
        assert seen.foreign_read_bytes == 0
        assert seen.foreign_write_bytes == pytest.approx(0, abs=20 * MB)


@pytest.mark.parametrize("reads", [True, False])
def test_io_of_others_is_flagged_in_the_steps_it_fell_into(reads: bool) -> None:
    """Foreign I/O is flagged in the step in which it occurred, and not in the neighbouring steps. In this test, it
    amounts to 5 % of fio's bytes during part of the step.
    """
    model = Model([Flow(23, 28, 10 * MB, reads)])
    seen = play(model, back_to_back(4))
    assert [codes(each) for each in seen] == [[], [], ["foreign-io"], []]
    flagged = seen[2]
    side = flagged.foreign_read_bytes if reads else flagged.foreign_write_bytes
    assert side == pytest.approx(50 * MB, rel=0.05)
    (disturbance,) = flagged.disturbances
    assert ("read" if reads else "written") in disturbance.text
    assert disturbance.share == pytest.approx(0.05, rel=0.1)


def test_a_burst_in_a_long_step_is_flagged_and_placed() -> None:
    """A burst of foreign I/O in a long step is flagged with its time. One second of heavy I/O hardly changes the mean
    of a long step, but it changes the maximum.
    """
    seen = play(Model([Flow(401, 402, 60 * MB)]), [Step(1, 900)])
    (disturbance,) = seen[0].disturbances
    assert disturbance.code is DisturbanceCode.FOREIGN_IO
    assert disturbance.started_s == pytest.approx(400, abs=2)
    assert "400 s after the step's start" in disturbance.text


def test_small_reads_of_daemons_raise_no_alarm() -> None:
    """Small reads of daemons such as udev and smartd, which total some hundred KiB, do not count as a disturbance."""
    model = Model([Flow(at, at + 0.1, 4 * MB, True) for at in (3.0, 14.0, 26.0)])
    assert [codes(each) for each in play(model, back_to_back(3, rate=10 * MB))] == [[], [], []]


def test_io_of_another_partition_has_its_own_word() -> None:
    """I/O on another partition of the same disk has a separate code. It does not count as I/O on the tested partition,
    but it still uses the same disk.
    """
    seen = play(Model(others=Flow(12, 15, 50 * MB)), back_to_back(3))
    assert [codes(each) for each in seen] == [[], ["other-partition-io"], []]
    assert seen[1].foreign_write_bytes == pytest.approx(0, abs=MB)


def test_a_device_that_counts_less_than_fio_is_flagged() -> None:
    """A device that counts 5 % fewer bytes than fio is flagged, because the missing bytes were never transferred."""
    assert [codes(each) for each in play(Model(), back_to_back(2), uncounted=0.05)] == [["missing-io"]] * 2


def test_a_step_of_which_the_device_did_far_less_is_refused() -> None:
    """A step is refused if a fifth of fio's bytes is missing from the counters of the device, because such a step is
    not a result. It does not matter whether the step is flagged.
    """
    with pytest.raises(StepFailedError, match="less: it did not do"):
        play(Model(), back_to_back(2), uncounted=0.2)


@pytest.mark.parametrize("blind_s", [0.0, 0.15])
def test_a_host_that_looks_late_knows_a_border_less_well(blind_s: float) -> None:
    """If the host reads counters late, no step has foreign or missing I/O at its boundaries. This applies even if fast
    and slow steps of one second alternate.
    """
    borders = [(2.0 + n - blind_s, 2.0 + n) for n in range(6)]
    steps = [Step(1 + n, 1, rate * MB) for n, rate in enumerate((900, 20) * 3)]
    for step in steps[::2]:
        step.late_s = 0.08
    assert [codes(each) for each in play(Model(stops=borders), steps)] == [[]] * 6


@pytest.mark.parametrize("length_s", [4, 8, 20])
@pytest.mark.parametrize("late_s", [0.3, 0.8, 2.5])
def test_a_fill_whose_documents_are_read_late_is_all_there(length_s: float, late_s: float) -> None:
    """A fill has no missing bytes if tkperf reads each report of fio late, as on a slow CPU. The fill began when tkperf
    released it.
    """
    fill = Step(1, length_s, kind=StepKind.FILL, read_late_s=late_s)
    (seen,) = play(Model(), [fill])
    assert codes(seen) == []
    assert seen.foreign_write_bytes == 0


@pytest.mark.parametrize("late_s", [0.1, 0.4])
def test_a_beginning_noticed_late_makes_nothing_missing(late_s: float) -> None:
    """If tkperf noticed the beginning of a step late, the step has no missing I/O, although its first bytes were
    transferred before the recorded beginning.
    """
    for kind in (StepKind.FILL, StepKind.ROUND):
        (seen,) = play(Model(), [Step(1, 2, kind=kind, noticed_late_s=late_s, is_last=True)])
        assert codes(seen) == []


@pytest.mark.parametrize("late_s", [0.08, 0.15])
def test_a_step_whose_threads_began_late_is_all_there(late_s: float) -> None:
    """A step of one second whose threads began late has no missing I/O. This applies even if fio's clock ends before
    the last thread ends and no step follows.
    """
    steps = [Step(1 + 2 * n, 1, late_s=late_s, read_late_s=late_s, is_last=True) for n in range(3)]
    for seen in play(Model(), steps):
        assert codes(seen) == []
        assert seen.foreign_write_bytes == pytest.approx(0, abs=MB)


@pytest.mark.parametrize("late_s", [0.1, 0.5])
def test_slices_whose_documents_are_read_late_are_all_there(late_s: float) -> None:
    """Slices have no missing I/O if their reports are read late. The boundary between two slices is the time in fio's
    report, or a later time.
    """
    slices = [
        Step(1 + n, 1, rate * MB, StepKind.CONTINUOUS, read_late_s=late_s)
        for n, rate in enumerate((400, 20, 400, 20, 400, 20))
    ]
    assert not [code for seen in play(Model(), slices) for code in codes(seen) if "missing" in code]


def test_what_is_missing_is_found_in_spite_of_late_documents() -> None:
    """If a twentieth of the bytes was never transferred, tkperf detects this even if fio's reports are read late. The
    test covers a fill and steps of ten seconds.
    """
    for kind in (StepKind.FILL, StepKind.ROUND):
        steps = [Step(1 + 11 * n, 10, kind=kind, read_late_s=0.3, is_last=True) for n in range(2)]
        assert [codes(seen) for seen in play(Model(), steps, uncounted=0.05)] == [["missing-io"]] * 2


@pytest.mark.parametrize(("handed_over_s", "next_s"), [(2.09, 2.09), (None, 3.0)])
def test_a_short_fill_that_began_late_is_all_there(handed_over_s: float | None, next_s: float) -> None:
    """A short fill that began late has no missing I/O. fio's clock ran before the first I/O, and the fill ends when the
    next step is released.
    """
    fill = Step(1, 1, kind=StepKind.FILL, late_s=0.08, handed_over_s=handed_over_s)
    steps = [fill, Step(next_s, 1), Step(next_s + 1, 1)]
    assert [codes(each) for each in play(Model(), steps)] == [[]] * 3


@pytest.mark.parametrize("counting", [False, None])
def test_a_device_that_does_not_count_is_not_compared(counting: bool | None) -> None:
    """If queue/iostats of a device is 0, its byte counts are not known, which is different from zero bytes. No I/O is
    then called foreign or missing.
    """
    for seen in play(Model(counting=counting), back_to_back(2), uncounted=1.0):
        assert (seen.foreign_read_bytes, seen.foreign_write_bytes) == (None, None)
        assert codes(seen) == []


def test_a_device_that_is_to_count_and_counts_nothing_did_nothing() -> None:
    """If queue/iostats of a device is 1 and the device counts no bytes, the device transferred no bytes. All bytes of
    fio are then missing.
    """
    for seen in play(Model(counting=True), back_to_back(2), uncounted=1.0):
        missing = next(each for each in seen.disturbances if each.code == "missing-io")
        assert "the device nothing" in missing.text
        assert missing.share == pytest.approx(1)


def test_a_device_that_does_not_count_is_remembered() -> None:
    """tkperf remembers from an earlier step that a device does not count its I/O. If tkperf is later stopped at the end
    of a step, and therefore cannot compare the bytes of this step, the step is flagged as stopped, but not as idle.
    """
    stops = [(20.5, 22.0)]
    first, second = play(Model(stops=stops, counting=False), back_to_back(2), uncounted=1.0)
    assert codes(first) == []
    assert codes(second) == ["stopped"]


def test_a_driver_may_count_unasked() -> None:
    """Foreign I/O is detected on a device that counts its I/Os although queue/iostats is 0. zram behaves in
    this way.
    """
    model = Model([Flow(13, 18, 10 * MB)], counting=False)
    seen = play(model, back_to_back(2))
    assert [codes(each) for each in seen] == [[], ["foreign-io"]]


def test_a_file_is_not_compared() -> None:
    """The I/O on a file is not compared, because the device below also serves other programs. The step then has no
    number of foreign bytes and no flag.
    """
    for seen in play(Model(counts=False), back_to_back(2)):
        assert (seen.foreign_read_bytes, codes(seen)) == (None, [])


@pytest.mark.parametrize("counts", [True, False])
def test_idle_time_within_a_step_is_flagged(counts: bool) -> None:
    """A step in which fio stopped for 3 s is flagged as idle. Either the counters of the device or the seconds of fio
    show the idle time.
    """
    steps = back_to_back(3)
    steps[1].idle = (14.0, 17.0)
    seen = play(Model(counts=counts), steps)
    assert [codes(each) for each in seen] == [[], ["idle-inside"], []]
    (disturbance,) = seen[1].disturbances
    assert disturbance.duration_s == pytest.approx(3, abs=0.2)
    assert disturbance.share == pytest.approx(0.3, abs=0.02)


def test_a_stopped_tkperf_is_flagged() -> None:
    """If tkperf pauses for 5 s while fio continues, the step is flagged as stopped. The late reports of fio cause no
    other flag.

    The length of the pause is known to within the time between two readings.
    """
    seen = play(Model(stops=[(13.0, 18.0)]), back_to_back(3))
    assert [codes(each) for each in seen] == [[], ["stopped"], []]
    (disturbance,) = seen[1].disturbances
    assert disturbance.duration_s == pytest.approx(5, abs=MOST_SELDOM_S)
    assert seen[1].foreign_write_bytes is not None


def test_a_suspended_host_is_flagged() -> None:
    """A suspension of the host is flagged. It is detected because the clock that includes sleep advances while the
    monotonic clock does not.
    """
    seen = play(Model(sleeps=[(13.0, 3600.0)]), back_to_back(3))
    assert [codes(each) for each in seen] == [[], ["suspended"], []]


def test_idle_time_before_a_step_is_recorded_and_flagged() -> None:
    """If the device was idle for 13 s before a step because no program read tkperf's output, this time is recorded and
    flagged.
    """
    steps = back_to_back(2)
    steps[1].begin_s += 13
    first, second = play(Model(), steps)
    assert first.gap_s is None
    assert second.gap_s == pytest.approx(13)
    assert [codes(first), codes(second)] == [[], ["idle-before"]]


def test_short_steps_keep_no_looks_at_those_before() -> None:
    """During a series of short steps, tkperf does not accumulate readings of earlier steps. For this reason, the
    readings of a run of several days with steps of two seconds need no more memory than those of a run of one minute.
    """
    model, watch = Model(), RunWatch(0.0)
    watch.counters = model
    steps = back_to_back(60, 2.0)
    model.flows += [flow for step in steps for flow in step.flows()]
    kept = []
    for step in steps:
        _play_step(watch, model, step)
        kept.append(sum(isinstance(each, DeviceLook) for each in gc.get_objects()))
    assert kept[-1] <= 1.1 * kept[19]


def test_planned_pauses_are_recorded_and_not_flagged() -> None:
    """Planned pauses are recorded but not flagged. After a purge, the gap counts from the end of the purge, and a cold
    start of fio is not a disturbance.
    """
    model, watch = Model(), RunWatch(0.0)
    watch.counters = model
    model.flows += Step(1, 5).flows() + Step(100, 5).flows()
    _play_step(watch, model, Step(1, 5))
    watch.rested()
    watch.paused(99.0)
    seen = _play_step(watch, model, Step(100, 5))
    assert (seen.gap_s, seen.planned_pause, codes(seen)) == (1.0, True, [])


def test_the_limit_of_a_gap_is_not_reached_by_a_busy_host() -> None:
    """Only a gap above the limit is flagged. The gaps on a busy host remain below the limit."""
    assert judge_gap(0.4, 0.5, 10.0) == ()
    assert judge_gap(None, 0.5, 10.0) == ()
    (found,) = judge_gap(0.6, 0.5, 10.0)
    assert isinstance(found, Disturbance)
    assert (found.started_s, found.duration_s) == (9.4, 0.6)


def compared(writes: Side | None = None, reads: Side | None = None, **changes: int) -> Compared:
    """Return a step with 6 GB of writes, unless ``reads`` is given."""
    return Compared(
        started_s=0.0,
        duration_s=60.0,
        writes=replace(writes or Side(), fio_bytes=6000 * MB),
        reads=reads or Side(),
        **changes,  # type: ignore[arg-type]
    )


def test_flushes_and_discards_of_others_are_flagged() -> None:
    """Flushes and discards of other programs are flagged. Flushes transfer no bytes, but a drive that empties its cache
    for other programs is disturbed.
    """
    assert judge_bytes(compared(flushes=12)) == ()
    (flushed,) = judge_bytes(compared(flushes=60))
    (discarded,) = judge_bytes(compared(discarded_bytes=500 * MB))
    assert flushed.code is discarded.code is DisturbanceCode.FOREIGN_IO
    assert "60 flushes" in flushed.text
    assert "500.0 MB discarded" in discarded.text


def test_what_the_step_before_lacks_is_not_foreign() -> None:
    """If one step has too few bytes, the same number of additional bytes in the next step is not foreign. A small error
    in the boundary between two steps moves bytes from one step to the other.
    """
    lacked = Side(foreign_bytes=200 * MB, lacked_bytes=200 * MB)
    assert judge_bytes(compared(lacked)) == ()
    assert len(judge_bytes(compared(replace(lacked, lacked_bytes=0)))) == 1
    # Writes that the device counted only after the end of their step cannot explain reads in the next step.
    assert len(judge_bytes(compared(Side(lacked_bytes=200 * MB), Side(foreign_bytes=200 * MB))))


def test_only_what_the_device_did_at_no_time_is_missing() -> None:
    """Bytes are missing only if the device never transferred them. An error in the boundary between two steps can
    remove bytes from a step although the device transferred them.
    """
    short = Side(foreign_bytes=-200 * MB)
    assert judge_bytes(compared(short, most_bytes=6000 * MB)) == ()
    assert judge_bytes(compared(short)) == ()
    (missing,) = judge_bytes(compared(short, most_bytes=5800 * MB))
    assert missing.code is DisturbanceCode.MISSING_IO
    assert missing.share == pytest.approx(200 / 6000)


def test_a_late_document_is_nobodys_io() -> None:
    """If readings show additional I/O inside a step, but the totals of the step agree, the I/O was counted at a wrong
    time. Such I/O is not foreign.
    """
    assert judge_bytes(compared(Side(inner_bytes=300 * MB))) == ()
    assert judge_bytes(compared(Side(inner_bytes=300 * MB, foreign_bytes=-5 * MB))) == ()
    (found,) = judge_bytes(compared(Side(inner_bytes=300 * MB, foreign_bytes=20 * MB)))
    assert found.code is DisturbanceCode.FOREIGN_IO


READS = replace(WRITES, read_percent=100)


def seconds_at_3_gb_a_second(*workloads: Workload) -> list[Step]:
    """Return steps of one second at 3 GB/s, whose threads begin a little late."""
    return [Step(1 + n, 1, 3000 * MB, workload=workload, late_s=0.03) for n, workload in enumerate(workloads)]


def test_writes_next_to_reads_of_a_fast_device_are_flagged() -> None:
    """Foreign writes during steps of reads on a fast device are flagged, because fio issues no writes in these steps.
    This applies even if a busy host reads the counters at the boundaries late.
    """
    model = Model([Flow(2.1, 2.9, 100 * MB)], stops=[(1.9, 2.0), (2.9, 3.05)])
    seen = play(model, seconds_at_3_gb_a_second(READS, READS, READS))
    assert [codes(each) for each in seen] == [[], ["foreign-io"], []]
    (disturbance,) = seen[1].disturbances
    assert " written, " in disturbance.text
    assert " read" not in disturbance.text
    assert disturbance.share == pytest.approx(80 / 3000, rel=0.05)


def test_writes_of_the_steps_around_reads_are_not_foreign() -> None:
    """In a step of reads, writes of the neighbouring steps are not foreign. The writes of up to 10 ms may be counted in
    this step.
    """
    steps = seconds_at_3_gb_a_second(WRITES, READS, WRITES, READS)
    assert [codes(each) for each in play(Model(), steps)] == [[]] * 4


def test_reads_that_a_step_lacked_hide_none_after_a_step_of_writes() -> None:
    """If a step of writes lies between two steps of reads, reads that are missing from the first of these steps do not
    hide foreign reads in the last. The reason is that late reads of a step are counted within one second.
    """
    lacked, foreign = Flow(1.9, 2.0, -120 * MB, reads=True), Flow(3.2, 3.8, 10 * MB, reads=True)
    workloads = ((READS, 3000), (WRITES, 100), (READS, 100))
    steps = [Step(1 + n, 1, rate * MB, workload=each) for n, (each, rate) in enumerate(workloads)]
    assert [codes(each) for each in play(Model([lacked]), steps)] == [[], [], []]
    assert [codes(each) for each in play(Model([lacked, foreign]), steps)] == [[], [], ["foreign-io"]]


@pytest.mark.parametrize("let_go_s", [2.0, 1.97])
def test_a_burst_with_which_the_next_step_begins_is_not_foreign(let_go_s: float) -> None:
    """A burst of I/O at the beginning of a step is not foreign I/O. fio fills the queues of a step as soon as tkperf
    releases the gate, so I/O after this moment belongs to the step.
    """
    reads = Step(1, 1, 100 * MB, workload=READS, handed_over_s=let_go_s)
    begins = Step(let_go_s, 1, 3000 * MB, idle=(let_go_s + 0.01, let_go_s + 0.29))
    assert [codes(each) for each in play(Model(), [reads, begins])] == [[], ["idle-inside"]]


def test_fast_neighbours_do_not_hide_what_happens_within_a_step() -> None:
    """Foreign reads in the middle of a slow step are flagged, although the rate of the neighbouring steps is a hundred
    times higher, which makes the boundaries less precise.
    """
    steps = [Step(1 + n * 5, 5, rate * MB) for n, rate in enumerate((2000, 20, 2000))]
    seen = play(Model([Flow(7.5, 9.5, 5 * MB, reads=True)]), steps)
    assert [codes(each) for each in seen] == [[], ["foreign-io"], []]


def test_a_document_of_a_later_moment_than_its_clock_is_no_io_of_others() -> None:
    """Bytes that fio counted after the time in its report are not foreign. On a busy host, fio may be interrupted after
    it has read its clock and before it counts its bytes.
    """
    watch, model = RunWatch(0.0), Model([Flow(1, 6, 100 * MB)])
    watch.counters = model
    watch.step_begins(StepKind.ROUND, 0.95, 5)
    fio_bytes = [150 * MB, 200 * MB, 300 * MB, 400 * MB, 500 * MB]
    before = 0
    for second, (now_bytes, read_late_s) in enumerate(zip(fio_bytes, (0.55, 0.01, 0.01, 0.01, 0.01), strict=True)):
        model.now_s = 2.0 + second + read_late_s
        done = written(now_bytes - before)
        watch.sample(Sample(start_s=second, duration_s=1.0, read=NO_IO, write=done), model.now_s)
        before = now_bytes
    model.now_s = 6.1
    whole = Measurement(duration_s=5.0, read=NO_IO, write=written(500 * MB))
    seen = watch.step_ended(StepKind.ROUND, WRITES, whole, started_s=1.0, handed_over_s=None)
    assert codes(seen) == []


def borders(watch: RunWatch, model: Model) -> tuple[float, float]:
    """Return the period inside a step in which the watch requests readings less often."""
    assert watch.counters is model
    return model.seldom


def test_looks_are_frequent_only_about_the_known_ends_of_a_step() -> None:
    """Readings are frequent only near the beginning and the end of a step. The more precisely these times are known,
    the shorter is the period with frequent readings. If a hand-over begins the step, the first second that fio reports
    shows the exact beginning.
    """
    model, watch = Model(), RunWatch(0.0)
    watch.counters = model
    steps = back_to_back(2, 4.0)
    model.flows += [flow for step in steps for flow in step.flows()]
    watch.step_begins(StepKind.ROUND, 0.7, 4.0)
    assert borders(watch, model) == pytest.approx((0.7 + BEGINS_WITHIN_S, 4.7 - KNOWN_WITHIN_S))
    _play_step(watch, model, steps[0])
    first_s, end_s = steps[0].begin_s, steps[0].begin_s + 4.0
    inside = borders(watch, model)
    assert inside == pytest.approx((first_s + KNOWN_WITHIN_S, end_s - KNOWN_WITHIN_S), abs=0.01)
    watch.step_begins(StepKind.ROUND, end_s + 0.3, 4.0)  # the watch learns of the step late
    assert borders(watch, model) == pytest.approx((end_s + KNOWN_WITHIN_S, end_s + 4.0 - KNOWN_WITHIN_S))


def test_a_step_that_was_not_handed_over_begins_when_it_is_heard_of() -> None:
    """A step without a hand-over begins when the watch learns of it. A release before an idle period does not count as
    the beginning of the step after this period.
    """
    model, watch = Model(), RunWatch(0.0)
    watch.counters = model
    steps = back_to_back(2, 4.0)
    model.flows += [flow for step in steps for flow in step.flows()]
    _play_step(watch, model, steps[0])
    watch.rested()
    watch.step_begins(StepKind.ROUND, 20.0, 4.0)
    assert borders(watch, model) == pytest.approx((20.0 + BEGINS_WITHIN_S, 24.0 - KNOWN_WITHIN_S))


def test_the_end_of_a_slice_is_known_to_a_report_of_fio() -> None:
    """The end of a slice is known only with the accuracy of fio's reports, so the end may differ from its planned time
    by one second.
    """
    model, watch = Model(), RunWatch(0.0)
    watch.counters = model
    watch.step_begins(StepKind.CONTINUOUS, 0.0, 60.0)
    assert borders(watch, model) == pytest.approx((BEGINS_WITHIN_S, 60.0 - SLICE_ENDS_WITHIN_S))


@pytest.mark.parametrize("begin_s", [4.0, 4.05, 4.1, 4.15])
def test_an_idle_time_is_measured_more_exactly_than_by_whole_looks(begin_s: float) -> None:
    """Idle time is measured more precisely than the interval between readings, which is 0.19 s in this test. The part
    of the idle time that is shorter than an interval is computed from the number of I/Os that are missing before and
    after the idle time.
    """
    step = Step(1, 10, idle=(begin_s, begin_s + 0.5))
    (seen,) = play(Model(), [step])
    (disturbance,) = seen.disturbances
    assert disturbance.code.value == "idle-inside"
    assert disturbance.duration_s == pytest.approx(0.5, abs=0.01)


def test_of_few_ios_the_idle_time_is_that_of_whole_looks() -> None:
    """If a load issues few I/Os, tkperf measures idle time only in whole intervals between two readings. At 50 I/Os per
    second, an interval with fewer I/Os than usual proves nothing.
    """
    step = Step(1, 10, bytes_per_s=50 * 4096, idle=(4.05, 4.75))
    (seen,) = play(Model(), [step])
    (disturbance,) = seen.disturbances
    assert disturbance.duration_s <= 0.7
