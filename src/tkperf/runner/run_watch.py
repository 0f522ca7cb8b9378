"""The watch over a run: it compares steps with the counters of the device, measures the time between steps, and reads
the telemetry of the drives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from tkperf.model.disturbance.host_activity import (
    COLD_START_LIMIT_S,
    HANDOVER_LIMIT_S,
    judge_gap,
    judge_host,
    judge_idle,
    judge_stops,
)
from tkperf.model.disturbance.io import (
    Counters,
    Disturbance,
    DisturbanceCode,
    describe_count,
    find_codes,
    find_doubtful,
    find_refutation,
    judge_bytes,
)
from tkperf.model.errors import StepDisturbedError, StepFailedError
from tkperf.model.host_use import HostLook, HostLooks, HostUse, compare_looks
from tkperf.model.measurement import Measurement, Sample
from tkperf.model.record import RunNote, StepKind, StepRecord
from tkperf.model.telemetry.drive_reading import Telemetry
from tkperf.model.throttling import TelemetryLog
from tkperf.model.units import format_duration
from tkperf.model.workload import Access, Workload
from tkperf.runner.events import Event, TelemetrySeen, Warned
from tkperf.runner.step_watch import StepWatch

# If a step was not prepared in advance, its first I/O occurs within this time after the runner has informed the watch
# about the step.
BEGINS_WITHIN_S = 0.5
# A slice of a stream ends at a report of fio. The time of this report differs from the planned end of the slice by no
# more than this time.
SLICE_ENDS_WITHIN_S = 1.5
# If the beginning of a step is known, the times of its first and last I/Os differ from the planned times by no more
# than this amount, in s.
KNOWN_WITHIN_S = 0.15
# Intervals, in seconds, of the readings of fio's threads within a step. The watch reads the rest of the
# host only at the beginning and the end of the step. The threads exist only during the step, so the watch
# reads them at the beginning and in the last seconds of the step. The rare readings between these times
# are for threads that end earlier.
LOOK_AT_THREADS_S, SELDOM_LOOK_AT_THREADS_S = 1.0, 10.0
# If the last reading is older than this time, in s, when a step begins, the watch reads the host again.
FRESH_S = 1.0
# The codes of two warnings: logs of drives that cannot be read, and steps that used all CPU time of the host.
UNREAD, HOST_LIMITED = "telemetry", "host-limited"
# Disturbances that may leave a preconditioned device in a state other than the requested state.
ALTERS_A_FILL = (
    DisturbanceCode.FOREIGN_IO,
    DisturbanceCode.MISSING_IO,
    DisturbanceCode.DEVICE_ERROR,
    DisturbanceCode.LINK_CHANGE,
    DisturbanceCode.SUSPENDED,
)
# tkperf warns about each repeated step and about each interruption, and therefore does not count them at the end.
_WARNED_EACH_TIME = (DisturbanceCode.REPEATED, DisturbanceCode.INTERRUPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """The observations of a step. Numbers of bytes are None if the bytes could not be compared."""

    gap_s: float | None
    planned_pause: bool
    foreign_read_bytes: int | None
    foreign_write_bytes: int | None
    disturbances: tuple[Disturbance, ...]
    host: HostUse | None = None


@dataclass(frozen=True, slots=True)
class _Before:
    """The activity before the current step. This activity is another step or a planned pause.

    ``idle_s`` is the planned idle time of the device after this activity, in seconds.
    """

    ended_s: float
    workload: Workload | None = None
    is_pause: bool = False
    idle_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Planned:
    """The planned times of the current step.

    Attributes:
        heard_s: the time at which the runner informed the watch about the step.
        began_s: time of the step's first I/O. At first, the value is the time at which the load was released. Later,
            the value is the time according to fio's clock. None means that the time is not known yet.
        by_fio: whether ``began_s`` is from fio's clock.
    """

    heard_s: float
    duration_s: float
    ends_within_s: float
    began_s: float | None = None
    by_fio: bool = False

    @property
    def inside(self) -> tuple[float, float]:
        """Return the beginning and the end of the period in which no step begins or ends."""
        if self.began_s is None:
            began_s, within_s = self.heard_s, BEGINS_WITHIN_S
        else:
            began_s, within_s = self.began_s, KNOWN_WITHIN_S
        return began_s + within_s, began_s + self.duration_s - self.ends_within_s


@dataclass(slots=True)
class RunWatch:
    """The watch over a run. The runner informs the watch about each step. All times are on the clock on which the run
    began at ``origin_s``.

    ``fill_counters`` are the counters of the preconditioned devices, if these devices differ from the measured device.
    If ``strict`` is True, disturbed steps are refused.
    """

    origin_s: float
    counters: Counters | None = None
    fill_counters: Counters | None = None
    host: HostLooks | None = None
    strict: bool = False
    _host_looks: list[HostLook] = field(default_factory=list)
    _planned: _Planned | None = None
    _handed_over_s: float | None = None
    _before: _Before | None = None
    _prepared: bool = False
    _repeated: Disturbance | None = None
    _interrupted: Disturbance | None = None
    _step: StepWatch = field(default_factory=StepWatch)
    _filling: bool = False
    _warned: set[str] = field(default_factory=set)
    _steps: Counter[DisturbanceCode] = field(default_factory=Counter)
    _not_counted: bool = False
    _warned_not_counted: bool = False

    def rested(self) -> None:
        """Record that the engine has stopped all I/O. The next load can therefore not have been prepared."""
        self._prepared, self._handed_over_s = False, None

    def paused(self, now_s: float) -> None:
        """Record that a planned pause without measurements, such as a purge, has just ended."""
        self._before = _Before(now_s, is_pause=True)
        self._prepared, self._handed_over_s = False, None

    def gave_up(self, began_s: float, ended_s: float, why: str) -> None:
        """Record that the current step failed between these two times and will be measured again."""
        self._before = _Before(ended_s)
        self._prepared, self._handed_over_s = False, None
        self._repeated = Disturbance(
            code=DisturbanceCode.REPEATED,
            text=f"measured again, as the first attempt was refused: {why}",
            started_s=began_s,
            duration_s=max(0.0, ended_s - began_s),
        )

    def resumed(self, stopped_s: float, now_s: float) -> None:
        """Record that the run stopped ``stopped_s`` after its start, and that it now continues at the same place."""
        began_s = self.origin_s + stopped_s
        duration_s = max(0.0, now_s - began_s)
        self._interrupted = Disturbance(
            code=DisturbanceCode.INTERRUPTED,
            text=f"the run was interrupted before it, for up to {format_duration(duration_s)}",
            started_s=began_s,
            duration_s=duration_s,
        )

    def idled(self, duration_s: float) -> None:
        """Record a planned idle time of the device. The next load was prepared during this time."""
        if self._before is not None:
            idle_s = self._before.idle_s + duration_s
            self._before = replace(self._before, is_pause=True, idle_s=idle_s)
        self._prepared = True

    def step_begins(self, kind: StepKind, now_s: float, planned_s: float | None) -> None:
        """Record that a step begins now or began a moment ago. If the duration is not known, ``planned_s`` is None."""
        filling = kind is StepKind.FILL and self.fill_counters is not None
        same = filling == self._filling
        self._filling = filling
        before, previous = self._before, self._step
        if before is not None and before.workload is not None and same:
            self._step = StepWatch()
            self._step.follow_on(previous)
            self._look()
        else:
            self._step = StepWatch()
            self._look(only_latest=True)
        self._host_begins(now_s)
        began_s, self._handed_over_s = self._handed_over_s, None
        self._planned = None
        if planned_s is not None:
            is_slice = kind in (StepKind.CONTINUOUS, StepKind.WARM_UP)
            ends_within_s = SLICE_ENDS_WITHIN_S if is_slice else KNOWN_WITHIN_S
            self._planned = _Planned(now_s, planned_s, ends_within_s, began_s)
            self._look_seldom_inside()

    def _look_seldom_inside(self) -> None:
        """Read the device's counters less often between the beginning and the end of the step, because each reading may
        use a CPU that the load needs.
        """
        if self._looking is not None and self._planned is not None:
            self._looking.look_seldom(*self._planned.inside)

    def sample(self, sample: Sample, now_s: float) -> None:
        self._look()
        self._step.sample(sample, now_s)
        if self._planned is not None and not self._planned.by_fio:
            began_s = now_s - sample.start_s - sample.duration_s
            self._planned = replace(self._planned, began_s=began_s, by_fio=True)
            self._look_seldom_inside()
        if self.host is not None and now_s - self._host_looks[-1].at_s >= self._threads_every_s(now_s):
            # Of the readings between the beginning and the end of the step, only the last reading is kept.
            self._host_looks[2:] = [self.host.look_at_threads()]

    def _threads_every_s(self, now_s: float) -> float:
        ends_s = now_s if self._planned is None else self._planned.heard_s + self._planned.duration_s
        is_inside = now_s < ends_s - SLICE_ENDS_WITHIN_S - LOOK_AT_THREADS_S
        return SELDOM_LOOK_AT_THREADS_S if is_inside and len(self._host_looks) > 1 else LOOK_AT_THREADS_S

    def _host_begins(self, now_s: float) -> None:
        """Read the activity of the host at the beginning of a step. If the host was just read at the end of the
        preceding step, use that reading.
        """
        if self.host is None:
            return
        self._host_looks = self._host_looks[-1:]
        if not self._host_looks or now_s - self._host_looks[-1].at_s > FRESH_S:
            self._host_looks = [self.host.look()]

    def _host_ends(self) -> HostUse | None:
        if self.host is None:
            return None
        self._host_looks.append(self.host.look())
        return compare_looks(self._host_looks)

    @property
    def _looking(self) -> Counters | None:
        return self.fill_counters if self._filling else self.counters

    def _look(self, *, only_latest: bool = False) -> None:
        counters = self._looking
        if counters is not None:
            device_looks = counters.take()
            self._step.look(device_looks[-1:] if only_latest else device_looks)

    def step_ended(
        self,
        kind: StepKind,
        workload: Workload,
        measurement: Measurement,
        *,
        started_s: float,
        handed_over_s: float | None,
        earliest_s: float | None = None,
        continues: bool = False,
    ) -> Observations:
        """Return the observations of the step that has just ended.

        Args:
            handed_over_s: time at which the next load was released. None means that no load was released.
            earliest_s: the earliest possible time of an I/O of the step. None means ``started_s``.
            continues: whether the step is a slice of a load that continues.
        """
        self._look()
        ended_s = started_s + measurement.duration_s
        compared = self._step.finish(
            measurement,
            workload,
            started_s=started_s,
            handed_over_s=handed_over_s,
            earliest_s=started_s if earliest_s is None else earliest_s,
            alone=handed_over_s is None and not continues,
        )
        if compared is not None and (refutation := find_refutation(compared)) is not None:
            raise StepFailedError(f"{workload}: {refutation}")
        host = self._host_ends()
        before = self._before
        gap_s = None if before is None else started_s - before.ended_s
        foreign_bytes: Sequence[int | None] = (None, None)
        if compared is not None:
            self._not_counted = not compared.is_counted
            if compared.is_counted:
                foreign_bytes = [max(0, side.foreign_bytes) for side in compared.sides]
        disturbances = (
            *(() if compared is None else judge_bytes(compared)),
            *judge_gap(gap_s, self._gap_limit_s(kind, workload), started_s),
            *self._judge_time(host, started_s, measurement.duration_s),
            *(once for once in (self._repeated, self._interrupted) if once is not None),
        )
        if self.strict:
            _require_undisturbed(kind, workload, disturbances)
        self._repeated = self._interrupted = None
        self._before, self._prepared = _Before(ended_s, workload), True
        self._handed_over_s = handed_over_s
        self._steps.update(find_codes(disturbance.code for disturbance in disturbances))
        return Observations(
            gap_s=gap_s,
            planned_pause=before is not None and before.is_pause,
            foreign_read_bytes=foreign_bytes[0],
            foreign_write_bytes=foreign_bytes[1],
            disturbances=tuple(
                replace(disturbance, started_s=disturbance.started_s - self.origin_s) for disturbance in disturbances
            ),
            host=host,
        )

    def _judge_time(self, host: HostUse | None, started_s: float, duration_s: float) -> Iterator[Disturbance]:
        """Yield the disturbances that occurred during the step, such as idle times of the device."""
        ended_s = started_s + duration_s
        # A device that does not count its I/O would seem to be idle all the time.
        yield from judge_idle(() if self._not_counted else self._step.idle_spans, started_s, ended_s)
        yield from judge_stops(self._step.stops, self._step.sleeps, ended_s)
        yield from judge_host(host, started_s, duration_s)

    def _gap_limit_s(self, kind: StepKind, workload: Workload) -> float:
        before = self._before
        # If a step continues the load of the preceding step, it cannot start before the preceding step has stopped.
        continues = before is not None and before.workload == workload
        continues = continues and workload.access is Access.SEQUENTIAL
        ready = kind is not StepKind.FILL and self._prepared and not continues
        idle_s = before.idle_s if before is not None else 0.0
        return idle_s + (HANDOVER_LIMIT_S if ready else COLD_START_LIMIT_S)

    def test_begins(self) -> None:
        """Reset the counts of warnings, because each kind of warning is yielded once in each test."""
        self._warned, self._steps = set(), Counter()

    def warnings(self, test: str, step: StepRecord, at_s: float) -> Iterator[RunNote]:
        """Yield the warnings about the step that has just ended, except warnings that this test has already
        received.
        """
        if self._not_counted and not self._warned_not_counted:
            self._warned_not_counted = True
            text = (
                "the kernel does not count this device's I/O (is queue/iostats 0?), so that I/O "
                "of others cannot be seen"
            )
            yield RunNote(code="io-not-counted", text=text, test=test, at_s=at_s)
        if step.measurement.host_limited and HOST_LIMITED not in self._warned:
            self._warned.add(HOST_LIMITED)
            text = (
                f"fio used up the host's CPUs in {step.workload}: results of such steps, marked in "
                "the tables, show the host's limit, not the device's"
            )
            yield RunNote(code=HOST_LIMITED, text=text, test=test, at_s=at_s)
        for disturbance in step.disturbances or ():
            if disturbance.code not in {*self._warned, *_WARNED_EACH_TIME}:
                self._warned.add(disturbance.code)
                where = "preconditioning" if step.kind is StepKind.FILL else str(step.workload)
                text = f"{disturbance.text} ({step.section} {step.number}, {where}); such steps are marked"
                yield RunNote(code=disturbance.code, text=text, test=test, at_s=at_s)

    def final_warnings(self, test: str, at_s: float) -> Iterator[RunNote]:
        """Yield a warning with the number of disturbed steps, for each disturbance that occurred in several steps."""
        for code, count in self._steps.items():
            if count > 1 and code not in _WARNED_EACH_TIME:
                text = f"{test}: {describe_count(code, count)}"
                yield RunNote(code=code, text=text, test=test, at_s=at_s)


def _require_undisturbed(kind: StepKind, workload: Workload, disturbances: Sequence[Disturbance]) -> None:
    """Raise an error if a disturbance influenced a step.

    For a fill or a warm-up, only disturbances that change the state of the device count, because the speed of such a
    step is not a result.
    """
    found = find_doubtful(disturbances)
    if kind in (StepKind.FILL, StepKind.WARM_UP):
        found = tuple(code for code in found if code in ALTERS_A_FILL)
    if not found:
        return
    words = "; ".join(disturbance.text for disturbance in disturbances if disturbance.code in found)
    whole = ""
    if kind in (StepKind.FILL, StepKind.CONTINUOUS):
        what = "preconditioning" if kind is StepKind.FILL else "a stream"
        whole = f", and {what} cannot be measured again in part"
    raise StepDisturbedError(f"{workload} was disturbed: {words}. --strict does not accept such a result{whole}")


@dataclass(slots=True)
class RunTelemetry:
    """The telemetry of a run. ``source`` is None if there is no telemetry. Times count from ``origin_s``."""

    source: Telemetry | None
    origin_s: float
    emit: Callable[[Event], None]
    _log: TelemetryLog = field(default_factory=TelemetryLog)
    _test: str | None = None

    def test_begins(self, test: str) -> None:
        """Read the counters of the drive at the beginning of a test. For the preceding test, this reading is also the
        last reading.
        """
        self._test = test
        self._log.test_begins()
        self._ask()

    def test_ends(self) -> None:
        self._ask()

    def look(self) -> None:
        """Pass the new readings to the observers. This call needs almost no time."""
        if self.source is None:
            return
        for text in self.source.take_troubles():
            warning = RunNote(code=UNREAD, text=text, test=self._test)
            self.emit(Warned(warning=warning))
        for reading in self.source.take():
            reading = replace(reading, at_s=reading.at_s - self.origin_s)  # noqa: PLW2901 - on the run's clock
            if self._log.is_news(reading):
                self.emit(TelemetrySeen(reading=reading))
            for code, text in self._log.find_warnings(reading):
                warning = RunNote(code=code, text=text, test=self._test, at_s=reading.at_s)
                self.emit(Warned(warning=warning))

    def paused(self) -> AbstractContextManager[None]:
        """Return a context in which tkperf reads no log, so that a drive is not disturbed while it erases itself."""
        return nullcontext() if self.source is None else self.source.paused()

    def finish(self) -> None:
        """Make the last reading of the run."""
        if self.source is not None:
            self.source.finish()
            self.look()

    def _ask(self) -> None:
        if self.source is not None:
            self.source.ask()
