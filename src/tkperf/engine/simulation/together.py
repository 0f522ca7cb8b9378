"""A simulation of several streams on one drive, with flushes, pauses and trims. It computes the share of the drive that
each stream receives.

A drive serves one load at a time (``service.py``). This module divides each second among the streams. The model
examines each stream alone twice: with the stream's own queue and with a deep queue. The results are the drive's time
for one I/O, and the latency without other streams. All streams of a class then wait the same additional time. This time
is so long that the I/Os of the class fit into the second. On a flash drive, reads form one class and precede writes,
but reads wait for dies that program. On a hard disk, all I/Os form one class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tkperf.engine import OnSample
from tkperf.engine.simulation.service import Draw, Latency, Second, SimulatedDrive
from tkperf.model.measurement import NO_IO, Measurement, Sample, StreamPart, add_parts
from tkperf.model.workload import Access, Stream, Workload

# A queue of this depth keeps any drive busy, so that the rate of the drive shows the time of one I/O.
_DEEP_QUEUE = 1024
# The model simulates a stream only for this time, in s, so that the examination does not change the drive's state.
_LOOK_S = 1e-6
# While a stream writes, reads use no more than this share of a drive's time.
_MOST_READ_SHARE = 0.85
# The time, in s, that the drive needs for a trim, and the additional time for each byte.
_TRIM_S, _TRIM_S_PER_BYTE = 60e-6, 1 / 400e9
_STEPS_OF_SEARCH = 40
# If a stream reaches its offered rate, the drive is busy for no more than this share of its time.
_BUSIEST = 0.98
_REACHED = 0.999


@dataclass(slots=True)
class _Look:
    """The behaviour of a stream alone on the drive: the drive's time for one I/O, and the latencies with the stream's
    own queue, in s.
    """

    second: Second
    cost_s: float
    latency_s: float


class _OneStream:
    """A stream with its random numbers and its I/Os of the current second."""

    def __init__(self, stream: Stream, drive: SimulatedDrive, random: np.random.Generator) -> None:
        self.name = stream.name
        self.load = stream.workload
        self.starts_s = stream.delay_s
        self._drive = drive
        self.draw = Draw(drive, _as_drawn(self.load), random, _ignore)
        flushed = replace(_as_drawn(self.load), flush_every=None, block_mix=())
        self.flushes = None if self.load.flush_every is None else Draw(drive, flushed, random, _ignore)
        # Each entry describes one kind of access: its share, the access with the stream's own queue, and the access
        # with a deep queue. If a drive reaches an offered rate, one I/O is outstanding at a time.
        is_rated = self.load.offered_iops is not None
        self._parts = tuple(
            (
                share,
                replace(part, jobs=1, io_depth=1) if is_rated else part,
                replace(part, jobs=1, io_depth=_DEEP_QUEUE),
            )
            for share, part in _parts_of(self.load)
        )

    def look(self) -> _Look:
        if self.load.trims:
            cost_s = _TRIM_S + self.load.mean_block_bytes * _TRIM_S_PER_BYTE
            latency = Latency(1e9 * cost_s)
            return _Look(Second(1 / cost_s, latency, latency), cost_s, cost_s)
        cost_s = latency_s = 0.0
        found: Second | None = None
        for share, part, deep in self._parts:
            own = self._drive.serve(part, _LOOK_S)
            cost_s += share / self._drive.serve(deep, _LOOK_S).rate
            latency_s += share * part.total_outstanding_ios / own.rate
            found = found or own
        assert found is not None
        return _Look(found, cost_s, latency_s)

    def look_at_use(self, use: float, look: _Look) -> Second:
        """Return the stream's second with its latencies. The drive is busy for the share ``use`` of its time, including
        the stream's own I/Os.

        At an offered rate, an I/O waits as long as it would if the stream ran alone at the rate that keeps the drive
        equally busy.
        """
        _, _, deep = self._parts[0]
        rate = min(use, _BUSIEST) / look.cost_s
        alone = replace(
            deep, jobs=self.load.jobs, io_depth=self.load.io_depth, offered_iops=rate, arrival=self.load.arrival
        )
        return self._drive.serve(alone, _LOOK_S)

    def rate(self, latency_s: float, flush_s: float) -> float:
        """Return the I/Os per second at this latency. The threads wait for each I/O, and may pause and flush."""
        load = self.load
        depth = load.io_depth
        each_s = latency_s / depth
        if load.flush_every is not None:
            each_s += (flush_s + latency_s) / load.flush_every / depth
        if load.burst is not None:
            ios, pause_s = load.burst
            each_s = (max(latency_s, ios * each_s) + pause_s) / ios
        rate = load.jobs / each_s
        return rate if load.offered_iops is None else min(rate, load.offered_iops)

    def serve(self, rate: float, look: _Look, duration_s: float) -> None:
        """Let the drive serve the I/Os of the stream, which changes the state of the drive."""
        if self.load.trims:
            self._drive.trim(self.load, rate * duration_s * self.load.mean_block_bytes)
            return
        for share, _, deep in self._parts:
            busy_s = share * rate * look.cost_s * duration_s
            if busy_s > 0:
                self._drive.serve(deep, busy_s)


def _as_drawn(load: Workload) -> Workload:
    """Return the load from which I/Os are drawn. Trims are drawn in the same manner as writes."""
    return replace(load, trims=False)


def _parts_of(load: Workload) -> list[tuple[float, Workload]]:
    """Return the kinds of access of a load with their shares, without rate, pauses and flushes."""
    plain = replace(load, offered_iops=None, burst=None, flush_every=None, random_percent=None, trims=False)
    if load.random_percent is None:
        return [(1.0, plain)]
    share = load.random_percent / 100
    in_order = replace(plain, access=Access.SEQUENTIAL, zones=())
    return [(weight, part) for weight, part in ((share, plain), (1 - share, in_order)) if weight]


def _ignore(_sample: Sample, _arrived_s: float | None) -> None:
    """Ignore the seconds of a single stream, because the seconds of all streams are combined later."""


class TogetherDraw:
    """The I/Os of a combination of streams, second by second."""

    def __init__(
        self,
        drive: SimulatedDrive,
        workload: Workload,
        random: np.random.Generator,
        on_sample: OnSample,
        *,
        since_s: float = 0.0,
    ) -> None:
        """Create the streams without any I/Os. ``since_s`` is the time in seconds for which the streams have already
        run.
        """
        self._drive = drive
        self._is_alone = not workload.is_combination
        self._streams = [_OneStream(stream, drive, random) for stream in workload.streams]
        self._on_sample = on_sample
        self._now_s = since_s
        self._lead_in_s = max(0.0, workload.lead_in_s - since_s)
        self.samples: list[Sample] = []
        self._seen = 0

    def advance(self, most_s: float) -> float:
        """Let the drive serve all streams that have begun, for ``most_s`` or until the next stream begins. Return the
        duration in s.
        """
        waits_s = (stream.starts_s - self._now_s for stream in self._streams)
        duration_s = min([most_s, *(wait_s for wait_s in waits_s if wait_s > _LOOK_S)])
        began = [stream for stream in self._streams if self._now_s >= stream.starts_s - _LOOK_S]
        looks = {stream.name: stream.look() for stream in began}
        shared = _share(began, looks, self._drive)
        used_s = 0.0
        for stream in began:
            look, share = looks[stream.name], shared[stream.name]
            rate = share.rate
            used_s += rate * look.cost_s * duration_s
            second, longer = look.second, 1 + (share.wait_s + share.die_wait_s) / look.latency_s
            offered = None if stream.load.trims else stream.load.offered_iops
            if offered is not None and rate >= _REACHED * offered:
                second = stream.look_at_use(share.use, look)
                longer = 1 + share.die_wait_s / look.latency_s
            stream.serve(rate, look, duration_s)
            second = second._replace(
                rate=rate, read=_longer(second.read, longer), write=_longer(second.write, longer), stalled_ios=0
            )
            stream.draw.add(second, duration_s)
            if stream.flushes is not None:
                every = stream.load.flush_every or 1
                flush_s = self._drive.flush_s + look.latency_s + share.wait_s + share.die_wait_s
                latency = Latency(1e9 * flush_s)
                stream.flushes.add(Second(rate / every, latency, latency), duration_s)
        for stream in self._streams:
            if stream not in began:
                nothing = Second(0.0, Latency(1.0), Latency(1.0))
                stream.draw.add(nothing, duration_s)
                if stream.flushes is not None:
                    stream.flushes.add(nothing, duration_s)
        if duration_s - used_s > _LOOK_S:
            self._drive.idle(duration_s - used_s)
        self._now_s += duration_s
        self._put_together()
        return duration_s

    def finish(self, duration_s: float) -> tuple[Measurement, Measurement | None]:
        """Return the measurement, and the totals that include the time before all streams ran. The totals are None if
        all streams ran from the beginning.
        """
        for stream in self._streams:
            stream.draw.finish()
            if stream.flushes is not None:
                stream.flushes.finish()
        self._put_together()
        whole = _measure(self.samples, duration_s)
        if not self._lead_in_s:
            return whole, None
        measured = [sample for sample in self.samples if sample.start_s >= self._lead_in_s - _LOOK_S]
        lasted_s = sum(sample.duration_s for sample in measured)
        return _measure(measured, lasted_s), replace(whole, samples=())

    def _put_together(self) -> None:
        """Combine the I/Os of all streams into a sample, for each second whose I/Os were drawn for every stream."""
        drawn = min(len(stream.draw.samples) for stream in self._streams)
        drawn = min([drawn, *(len(each.flushes.samples) for each in self._streams if each.flushes is not None)])
        for number in range(self._seen, drawn):
            parts = tuple(_part(stream, number) for stream in self._streams)
            first = self._streams[0].draw.samples[number]
            total = add_parts("", parts)
            sample = Sample(
                start_s=first.start_s,
                duration_s=first.duration_s,
                read=total.read,
                write=total.write,
                trim=total.trim,
                flush=total.flush,
                streams=() if self._is_alone else parts,
            )
            self.samples.append(sample)
            self._on_sample(sample, None)
        self._seen = max(self._seen, drawn)


def _part(stream: _OneStream, number: int) -> StreamPart:
    second = stream.draw.samples[number]
    flush = NO_IO if stream.flushes is None else replace(stream.flushes.samples[number].write, bytes=0)
    if stream.load.trims:
        return StreamPart(name=stream.name, trim=second.write)
    return StreamPart(name=stream.name, read=second.read, write=second.write, flush=flush)


def _measure(samples: Sequence[Sample], duration_s: float) -> Measurement:
    names = [part.name for part in samples[0].streams] if samples else []
    total = add_parts("", samples)
    return Measurement(
        duration_s=duration_s,
        read=total.read,
        write=total.write,
        trim=total.trim,
        flush=total.flush,
        streams=tuple(
            add_parts(name, [sample.streams[place] for sample in samples]) for place, name in enumerate(names)
        ),
        samples=tuple(samples),
    )


def _longer(latency: Latency, factor: float) -> Latency:
    return latency._replace(mean_ns=latency.mean_ns * factor)


@dataclass(slots=True)
class _Shared:
    """The share of the drive that a stream receives.

    Attributes:
        rate: I/Os per second of the stream.
        wait_s: time that the stream's I/Os wait for I/Os of other streams in a queue that is always full.
        die_wait_s: time that the stream's reads wait for dies that program.
        use: share of the time in which the drive is busy with I/Os of preceding classes or of the same class.
    """

    rate: float
    wait_s: float
    use: float
    die_wait_s: float = 0.0


def _share(streams: Sequence[_OneStream], looks: dict[str, _Look], drive: SimulatedDrive) -> dict[str, _Shared]:
    """Return the share of the drive that each stream receives, by the stream's name."""
    reading = [stream for stream in streams if stream.load.read_percent > 50]
    writing = [stream for stream in streams if stream.load.read_percent <= 50]
    classes = [reading, writing] if drive.reads_go_first else [list(streams)]
    shared: dict[str, _Shared] = {}
    used = 0.0
    for of_class in classes:
        left = 1.0 - used
        most = _MOST_READ_SHARE if of_class is reading and writing and drive.reads_go_first else left
        rates, wait_s = _fit(of_class, looks, drive.flush_s, max(most, 0.02))
        used += sum(rate * looks[name].cost_s for name, rate in rates.items())
        shared |= {name: _Shared(rate, wait_s, used) for name, rate in rates.items()}
    programming = sum(
        shared[stream.name].rate * looks[stream.name].cost_s for stream in writing if not stream.load.trims
    )
    if drive.reads_go_first:
        for stream in reading:
            of_stream, look = shared[stream.name], looks[stream.name]
            of_stream.die_wait_s = min(0.9, programming) * drive.suspend_s
            latency_s = look.latency_s + of_stream.wait_s + of_stream.die_wait_s
            of_stream.rate = min(of_stream.rate, stream.rate(latency_s, drive.flush_s))
    return shared


def _fit(
    streams: Sequence[_OneStream], looks: dict[str, _Look], flush_s: float, most: float
) -> tuple[dict[str, float], float]:
    """Return the rates at which the streams together use no more than the share ``most`` of the drive's time. Also
    return the wait in s that is the same for all streams.
    """

    def rates(wait_s: float) -> dict[str, float]:
        return {stream.name: stream.rate(looks[stream.name].latency_s + wait_s, flush_s) for stream in streams}

    def used(found: dict[str, float]) -> float:
        return sum(rate * looks[name].cost_s for name, rate in found.items())

    found = rates(0.0)
    if used(found) <= most:
        return found, 0.0
    low_s, high_s = 0.0, 1e-5
    while used(rates(high_s)) > most:
        low_s, high_s = high_s, 4 * high_s
    for _ in range(_STEPS_OF_SEARCH):
        wait_s = (low_s + high_s) / 2
        low_s, high_s = (wait_s, high_s) if used(rates(wait_s)) > most else (low_s, wait_s)
    return rates(high_s), high_s
