"""The watch over one step. The watch compares the bytes of fio with the counters of the device, and finds times without
I/O.

Each second, fio prints a status document with the bytes and the time on fio's clock. The watch reads the counters many
times a second. The watch compares each document with the counters at the time of the document, even if the document was
read late. Two consecutive steps overlap for a moment. The share of each step in this overlap is estimated from the rate
of the step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from tkperf.model.disturbance.host_activity import LEAST_IDLE_S, LEAST_STOP_S, LEAST_SUSPENDED_S
from tkperf.model.disturbance.io import TIMING_S, Compared, Counts, DeviceLook, Side
from tkperf.model.measurement import Measurement, Sample
from tkperf.model.workload import Workload

# The watch waits for this time before it compares a status document of fio with the counters. The shortest delay with
# which tkperf reads fio's documents is then known.
SETTLE_S = 5.0
# The engine reports when fio's I/O began, with this accuracy in s. If more than this time passes between the release of
# fio and the first I/O, the engine detects and reports the delay.
BEGINNING_S = 0.02
# If the time between the readings before and after a moment is longer than this limit, in s, the counters at this
# moment are not known.
BLIND_S = 0.35
# fio reports each second. If a report covers more time than its bytes need, and the difference is at least this long,
# fio paused during this difference.
LEAST_PAUSE_S = 1.0
# Readings at this interval or a shorter interval show the end of a step precisely enough. On a busy host, fio waits for
# a CPU as long as tkperf does.
USUAL_LOOK_S = 0.03
BORDER_S = 0.05
# The number of readings from which the usual rate before an idle time is computed.
USUAL_DEVICE_LOOKS = 6
# If fewer I/Os than this number are usual between two readings, a part of the time could seem to be idle by chance.
LEAST_USUAL_IOS = 30
# The rate of the next step is measured during this time after the end of the current step.
FOLLOWER_S = 0.3


# A pair of numbers, for reads and for writes: bytes, or bytes per second.
_Pair = npt.NDArray[np.float64]


_at_s = attrgetter("at_s")


def _nothing() -> _Pair:
    return np.zeros(2)


@dataclass(frozen=True, slots=True)
class _Document:
    """The cumulative bytes of fio at ``elapsed_s`` on fio's clock. fio may have counted the bytes a moment later, but
    not after tkperf read the document.
    """

    elapsed_s: float
    read_bytes: int
    write_bytes: int
    arrived_s: float = 0.0

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.write_bytes

    @property
    def sides(self) -> _Pair:
        return np.array((self.read_bytes, self.write_bytes), dtype=float)


@dataclass(frozen=True, slots=True)
class _Excess:
    """The bytes, read and written, that the device counted in addition to fio's bytes, up to a moment of the step.

    The bytes are counted from the moment at which the device appeared.

    Attributes:
        fio_bytes: the bytes of fio, reads and writes together.
        most_bytes: the excess at the time when fio's document was read. By this time, the device had completed at least
            fio's bytes.
    """

    at_s: float
    fio_bytes: float
    bytes: _Pair
    most_bytes: _Pair = field(default_factory=_nothing)


_NOTHING = _Document(0.0, 0, 0)


@dataclass(slots=True)
class StepWatch:
    """The watch over one step. Times are on the clock that the watch uses to read the counters."""

    idle_spans: list[tuple[float, float]] = field(default_factory=list)
    stops: list[tuple[float, float]] = field(default_factory=list)
    sleeps: list[tuple[float, float]] = field(default_factory=list)
    _device_looks: list[DeviceLook] = field(default_factory=list)
    _pending: list[_Document] = field(default_factory=list)
    _newest: _Document = _NOTHING
    _offset_s: float | None = None
    _base: Counts | None = None
    _base_bytes: _Pair = field(default_factory=_nothing)
    # The time of the last I/O of the preceding step, and the bytes of the current step up to that time.
    _previous_end_s: float = 0.0
    _ahead_bytes: _Pair = field(default_factory=_nothing)
    _ended_s: float = 0.0
    _follower_bytes: _Pair = field(default_factory=_nothing)
    _before_bytes_per_s: _Pair = field(default_factory=_nothing)
    _bytes_per_s: _Pair = field(default_factory=_nothing)
    # The missing bytes of the previous steps. After ``finish``, the number also contains the missing bytes of this
    # step.
    _lacked_bytes: _Pair = field(default_factory=_nothing)
    # The beginning of the step is known only after fio's first status document, so the readings up to this document are
    # kept.
    _first_device_looks: list[DeviceLook] = field(default_factory=list)
    _excesses: list[_Excess] = field(default_factory=list)
    _comparable: bool = True
    _counting: bool = True
    _usual_ios_per_s: float = 0.0

    def follow_on(self, before: StepWatch) -> None:
        """Copy the readings of the preceding watch, beginning at the end of the preceding step."""
        self._previous_end_s, self._ahead_bytes = before._ended_s, before._follower_bytes
        self._before_bytes_per_s = before._bytes_per_s
        self._lacked_bytes = before._lacked_bytes
        # If a step is shorter than SETTLE_S, its watch has not discarded the old readings.
        before._forget_before(self._previous_end_s - SETTLE_S - 1.0)
        for device_look in before._device_looks:
            if device_look.at_s < self._previous_end_s:
                self._device_looks.append(device_look)
            else:
                self.look([device_look])
        # The preceding step has already reported all stops that began before its end.
        self.stops = [stop for stop in self.stops if stop[0] >= self._previous_end_s]
        self.sleeps = [sleep for sleep in self.sleeps if sleep[0] >= self._previous_end_s]

    def look(self, device_looks: Sequence[DeviceLook]) -> None:
        """Accept readings of the device's counters, and store periods without I/O."""
        for device_look in device_looks:
            if self._device_looks:
                self._follow(self._device_looks[-1], device_look)
            self._counting = self._counting and device_look.counting is True
            self._device_looks.append(device_look)

    def _follow(self, before: DeviceLook, now: DeviceLook) -> None:
        if now.at_s - before.at_s >= LEAST_STOP_S:
            self.stops.append((before.at_s, now.at_s - before.at_s))
        if now.suspended_s - before.suspended_s >= LEAST_SUSPENDED_S:
            self.sleeps.append((before.at_s, now.suspended_s - before.suspended_s))
        if before.counts is None or now.counts is None:
            self._comparable = False
            return
        if now.counts.ios < before.counts.ios:
            self._comparable = False  # in this case, the name belongs to another device, such as a new RAID set
        is_idle = now.counts.ios == before.counts.ios and not (now.counts.in_flight or before.counts.in_flight)
        goes_on = bool(self.idle_spans) and self.idle_spans[-1][1] == before.at_s
        if is_idle and goes_on:
            self.idle_spans[-1] = (self.idle_spans[-1][0], now.at_s)
        elif is_idle:
            self._forget_short_idle()
            self._usual_ios_per_s = self._usual_rate()
            idle_s = self._idle_part_s(*self._device_looks[-2:])
            self.idle_spans.append((before.at_s - idle_s, now.at_s))
        elif goes_on:
            idle_s = self._idle_part_s(before, now)
            self.idle_spans[-1] = (self.idle_spans[-1][0], before.at_s + idle_s)

    def _usual_rate(self) -> float:
        """Return the I/Os per second before the last two readings. 0 means that the rate is not known."""
        earlier = self._device_looks[-USUAL_DEVICE_LOOKS - 1 : -1]
        if len(earlier) < 2 or earlier[0].counts is None or earlier[-1].counts is None:
            return 0.0
        lasted_s = earlier[-1].at_s - earlier[0].at_s
        ios = earlier[-1].counts.ios - earlier[0].counts.ios
        return ios / lasted_s if lasted_s > 0 else 0.0

    def _idle_part_s(self, *device_looks: DeviceLook) -> float:
        """Return for how many seconds the device was idle between two readings. An idle time precedes or follows this
        interval.

        The function assumes that the device completed I/O at the usual rate for the rest of the interval. The result is
        0 if the usual rate is too low for an estimate.
        """
        counts = [device_look.counts for device_look in device_looks if device_look.counts is not None]
        if len(counts) < 2:
            return 0.0
        lasted_s = device_looks[1].at_s - device_looks[0].at_s
        usual_ios = self._usual_ios_per_s * lasted_s
        if usual_ios < LEAST_USUAL_IOS:
            return 0.0
        return lasted_s * min(max(1 - (counts[1].ios - counts[0].ios) / usual_ios, 0.0), 1.0)

    def _forget_short_idle(self) -> None:
        if self.idle_spans and self.idle_spans[-1][1] - self.idle_spans[-1][0] < LEAST_IDLE_S:
            self.idle_spans.pop()

    def sample(self, sample: Sample, arrived_s: float) -> None:
        """Accept a second of fio's output. tkperf read this output at ``arrived_s``."""
        document = _Document(
            sample.start_s + sample.duration_s,
            self._newest.read_bytes + sample.read.bytes,
            self._newest.write_bytes + sample.write.bytes,
            arrived_s,
        )
        if not self._comparable:
            self._note_pause(sample, arrived_s)
        if self._newest is _NOTHING:
            self._first_device_looks = list(self._device_looks)
        self._newest = document
        self._pending.append(document)
        # A status document of fio may arrive late, but never early, so the smallest delay is nearest to the true delay.
        offset_s = arrived_s - document.elapsed_s
        self._offset_s = offset_s if self._offset_s is None else min(self._offset_s, offset_s)
        settled = [pending for pending in self._pending if document.elapsed_s - pending.elapsed_s >= SETTLE_S]
        self._settle(settled, self._offset_s)
        if settled:
            self._forget_before(self._offset_s + settled[-1].elapsed_s - 1.0)

    def _note_pause(self, sample: Sample, arrived_s: float) -> None:
        """Record a second without I/O, or the idle part of a longer sample. Devices without counters need this
        record.
        """
        moved_bytes = sample.read.bytes + sample.write.bytes
        busy_s = 0.0
        if moved_bytes:
            usual = self._newest.bytes / self._newest.elapsed_s if self._newest.bytes else 0.0
            busy_s = moved_bytes / usual if usual else sample.duration_s
        if not moved_bytes or sample.duration_s - busy_s >= LEAST_PAUSE_S:
            self.idle_spans.append((arrived_s - sample.duration_s, arrived_s - busy_s))

    def finish(
        self,
        measurement: Measurement,
        workload: Workload,
        *,
        started_s: float,
        handed_over_s: float | None,
        earliest_s: float,
        alone: bool = False,
    ) -> Compared | None:
        """Return the comparison of fio's bytes with the device's bytes for the whole step. None means that no bytes can
        be compared.

        Args:
            started_s: time at which the first I/O was released, on the clock of the readings.
            handed_over_s: time at which the next step was released before the end of this step. None means that no step
                was released.
            earliest_s: the earliest possible time of an I/O of the step, even if tkperf noticed the beginning late.
            alone: whether the step has ended and no load follows for a moment.
        """
        self._forget_short_idle()
        offset_s = started_s + BEGINNING_S if self._offset_s is None else self._offset_s
        # The clock of fio started after the gate was opened, and before fio's first status document with a time of this
        # clock.
        offset_s = started_s + min(max(offset_s - started_s, 0.0), BEGINNING_S) / 2
        ended_s = offset_s + measurement.duration_s
        overlap_s = 0.0 if handed_over_s is None else max(0.0, ended_s - handed_over_s)
        # On a slow host, the first I/O of fio occurs long after the clock of fio started. Until the next step is
        # released, or fio has ended, all I/O of the device belongs to this step.
        until_s = self._device_looks[-1].at_s if alone and self._device_looks else handed_over_s
        ended_s = self._ended_s = max(ended_s, until_s or ended_s)
        ahead = self._follower_rates(ended_s)
        uses = (workload.reads, workload.writes)
        done = np.array((measurement.read.bytes, measurement.write.bytes), dtype=float)
        self._bytes_per_s = done / measurement.duration_s
        self._settle(self._pending, offset_s)
        base_s = self._set_base(earliest_s)
        end = (
            self._device_looks[-1].counts
            if alone and self._device_looks
            else self._counts_at(ended_s, self._device_looks)
        )
        self._follower_bytes = overlap_s * ahead
        let_go = [device_look.counts for device_look in self._device_looks if device_look.at_s <= ended_s - overlap_s]
        if handed_over_s is not None and end is not None and let_go and let_go[-1] is not None:
            # If this step only reads or only writes, all bytes of the other kind since the release of the next step may
            # belong to a burst of that step.
            since = _moved(end) - _moved(let_go[-1])
            self._follower_bytes = np.where(uses, self._follower_bytes, since)
        if end is None or self._base is None or not self._comparable:
            # The next step must allow for these bytes, because the exact end of this step is not known.
            self._lacked_bytes = self._follower_bytes + TIMING_S * self._bytes_per_s
            return None
        first = _Excess(base_s, sum(self._base_bytes), _moved(self._base) - self._base_bytes)
        last = _Excess(ended_s, done.sum(), _moved(end) - done - self._follower_bytes)
        others_bytes = None
        if end.others_bytes is not None and self._base.others_bytes is not None:
            others_bytes = end.others_bytes - self._base.others_bytes
        neighbours = self._before_bytes_per_s + ahead
        blurred = self._blur_about_s(base_s, self._first_device_looks) * self._before_bytes_per_s
        blurred += self._blur_about_s(ended_s, self._device_looks) * ahead
        inner = self._inner_bytes(offset_s, ended_s)
        outstanding_bytes = workload.outstanding_bytes
        sides = tuple(
            Side(
                fio_bytes=int(done[side]),
                bytes_per_s=self._bytes_per_s[side],
                foreign_bytes=round(last.bytes[side] - first.bytes[side]),
                busiest=_find_busiest([first, *self._excesses, last], side),
                inner_bytes=inner[side],
                outstanding_bytes=outstanding_bytes if is_used else 0,
                shared_bytes=self._follower_bytes[side],
                neighbours_bytes_per_s=neighbours[side],
                lacked_bytes=self._lacked_bytes[side],
                blurred_bytes=blurred[side],
            )
            for side, is_used in enumerate(uses)
        )
        compared = Compared(
            started_s=started_s,
            duration_s=measurement.duration_s,
            reads=sides[0],
            writes=sides[1],
            discarded_bytes=end.discard_bytes - self._base.discard_bytes - measurement.trim.bytes,
            # The kernel merges flushes of several threads, and sends no flushes to a device with a write-through cache.
            flushes=end.flushes - self._base.flushes - measurement.flush.ios,
            others_bytes=others_bytes,
            most_bytes=self._most_bytes(earliest_s),
            counting=self._counting,
        )
        self._settle_debts(compared)
        return compared

    def _most_bytes(self, earliest_s: float) -> int | None:
        """Return the number of bytes that the device read and wrote from ``earliest_s`` until its latest counter
        reading, which is slightly later than the latest report of fio. None means that the number is not known.
        """
        before = [device_look for device_look in self._first_device_looks if device_look.at_s <= earliest_s]
        if not before or not self._device_looks:
            return None
        first, last = before[-1].counts, self._device_looks[-1].counts
        if first is None or last is None:
            return None
        return last.read_bytes + last.write_bytes - first.read_bytes - first.write_bytes

    def _inner_bytes(self, offset_s: float, ended_s: float) -> _Pair:
        """Return by how many bytes the difference between the device's count and fio's count has grown permanently.
        Only status documents of fio that are certainly within the step are compared.
        """
        inner = [excess for excess in self._excesses if offset_s + BLIND_S <= excess.at_s <= ended_s - BLIND_S]
        return inner[-1].bytes - inner[0].most_bytes if len(inner) > 1 else _nothing()

    def _settle_debts(self, compared: Compared) -> None:
        """Set the number of bytes of this step that the device may still count during the next step. After a disturbed
        step, the number is 0.
        """
        if compared.missing_bytes > compared.missing_limit_bytes:
            self._lacked_bytes = _nothing()
            return
        self._lacked_bytes = np.array(
            [
                0.0
                if side.foreign_bytes > compared.limit_bytes + side.open_bytes
                # If this step transfers no bytes of a kind, and the device has not counted the missing bytes of this
                # kind by now, the device will not count them later.
                else max(0.0, (side.lacked_bytes if side.fio_bytes else 0.0) - side.foreign_bytes)
                for side in compared.sides
            ]
        )

    def _settle(self, documents: Sequence[_Document], offset_s: float) -> None:
        """Compare the bytes in fio's status documents with the device's counters at the times of the documents."""
        for document in list(documents):
            self._pending.remove(document)
            counts = self._counts_at(offset_s + document.elapsed_s, self._device_looks)
            most = self._counts_at(document.arrived_s, self._device_looks)
            if counts is None or most is None:
                continue
            self._excesses.append(
                _Excess(
                    offset_s + document.elapsed_s,
                    document.bytes,
                    _moved(counts) - document.sides,
                    _moved(most) - document.sides,
                )
            )

    def _set_base(self, earliest_s: float) -> float:
        """Set the counters from which bytes are counted. Return the time of these counters, which is the time of the
        last I/O of the preceding step, or ``earliest_s``.
        """
        base_s = earliest_s
        if self._previous_end_s > base_s:
            base_s, self._base_bytes = self._previous_end_s, self._ahead_bytes
        self._first_device_looks = self._first_device_looks or self._device_looks
        self._base = self._counts_at(base_s, self._first_device_looks)
        return base_s

    @staticmethod
    def _counts_at(moment_s: float, device_looks: Sequence[DeviceLook]) -> Counts | None:
        """Return the counters at a moment, interpolated between readings. None means that the readings are too far
        apart.
        """
        after = bisect_left(device_looks, moment_s, key=_at_s)
        if after in (0, len(device_looks)):
            return None
        before, next_ = device_looks[after - 1], device_looks[after]
        if before.counts is None or next_.counts is None or next_.at_s - before.at_s > BLIND_S:
            return None
        share = (moment_s - before.at_s) / (next_.at_s - before.at_s)
        a, b = before.counts, next_.counts
        between = {
            side: round(getattr(a, side) + share * (getattr(b, side) - getattr(a, side)))
            for side in ("read_bytes", "write_bytes", "discard_bytes", "ios", "flushes")
        }
        return Counts(**between, in_flight=a.in_flight, others_bytes=b.others_bytes)

    @staticmethod
    def _blur_about_s(moment_s: float, device_looks: Sequence[DeviceLook]) -> float:
        """Return the longest time between successive readings near a moment, minus the usual interval."""
        times = [device_look.at_s for device_look in device_looks if abs(device_look.at_s - moment_s) <= FOLLOWER_S]
        about = [
            later - before
            for before, later in pairwise(times)
            if before <= moment_s + BORDER_S and later >= moment_s - BORDER_S
        ]
        return max(0.0, max(about, default=0.0) - USUAL_LOOK_S)

    def _follower_rates(self, ended_s: float) -> _Pair:
        """Return the bytes per second, read and written, just after the end of the step."""
        start = self._counts_at(ended_s, self._device_looks)
        later = [
            device_look
            for device_look in self._device_looks
            if ended_s < device_look.at_s <= ended_s + FOLLOWER_S and device_look.counts is not None
        ]
        if start is None or not later or later[-1].counts is None:
            return _nothing()
        return (_moved(later[-1].counts) - _moved(start)) / (later[-1].at_s - ended_s)

    def _forget_before(self, moment_s: float) -> None:
        """Discard the readings before a moment. A fill takes hours, and no later computation needs the old readings."""
        keep = next((index for index, device_look in enumerate(self._device_looks) if device_look.at_s >= moment_s), 0)
        del self._device_looks[:keep]


def _moved(counts: Counts) -> _Pair:
    return np.array((counts.read_bytes, counts.write_bytes), dtype=float)


def _find_busiest(excesses: Sequence[_Excess], side: int) -> tuple[float, float, float] | None:
    """Return the interval in which the excess of reads or writes grew most. The excess is the number of bytes that the
    device counted in addition to fio's bytes. If the excess shrinks again within a second, its growth was only an error
    of the timing.

    Growth up to the starting value does not count, because the device then only completes I/O that fio had counted
    before.
    """
    if len(excesses) < 2:
        return None
    amounts = [excess.bytes[side] for excess in excesses]
    lasting = np.minimum.accumulate(amounts[::-1])[::-1]
    grown = np.diff(np.maximum(lasting - amounts[0], 0))
    index = int(np.argmax(grown))
    fio_bytes = excesses[index + 1].fio_bytes - excesses[index].fio_bytes
    return excesses[index].at_s, fio_bytes, float(grown[index])
