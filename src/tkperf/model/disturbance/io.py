"""Others' I/O: fio's bytes of a step beside those that the device counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tkperf.model.disturbance.codes import Disturbance, DisturbanceCode
from tkperf.model.units import KIB, MIB, format_capacity

# Of fio's own bytes in the step. Below it a result moves by less than its noise from run to run.
FOREIGN_SHARE = 0.005
# What smartd, udev or a partition scan read is some hundred KiB at most, whatever the share.
LEAST_FOREIGN_BYTES = 512 * KIB
# Of fio's bytes in one second: a burst too short to move a long step's mean still moves its maximum.
BURST_SHARE = 0.1
LEAST_BURST_BYTES = 4 * MIB
# When fio's clock began is known to within this on a busy host.
TIMING_S = 0.02
# A flush makes a drive empty its cache; fio asks for none. A file system commits every five seconds.
LEAST_FLUSHES_PER_S = 0.5
LEAST_FLUSHES = 3
# fio takes a document's counters thread by thread: on a busy host its bytes are of this much time.
DOCUMENT_S = 0.05
# The moment at which a step ends and its follower goes on is known to within this.
BOUNDARY_S = 0.01
# Where the kernel was not asked to count, a device is taken to count nothing at all, rather than to
# lose I/Os, below this share of fio's bytes. Some drivers (zram) count unasked.
COUNTING_SHARE = 0.01
# Beyond it a step is no result: what the device did not do is no noise of the comparison any more.
REFUTED_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What the kernel has counted of a device since it appeared.

    ``in_flight`` are I/Os not yet completed. ``others_bytes`` is what the rest of the disk moved if
    the device is a partition, else None.
    """

    read_bytes: int
    write_bytes: int
    discard_bytes: int
    ios: int
    in_flight: int
    others_bytes: int | None = None
    flushes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """One look at the device. ``at_s`` is the run's clock; ``suspended_s`` how long the host slept so far.

    ``counts`` is None where there is nothing to count, as with a file. ``counting``: whether the
    kernel was asked to count (``queue/iostats``); None is not known.
    """

    at_s: float
    suspended_s: float = 0.0
    counts: Counts | None = None
    counting: bool | None = None


class Counters(Protocol):
    """Looks at the device all the time, tens of times a second unless told that five to ten will do."""

    def take(self) -> Sequence[Glance]:
        """What was seen since the last call, oldest first; the last one is just now."""
        ...

    def look_seldom(self, from_s: float, until_s: float) -> None:
        """From then until then nothing begins or ends: every look may cost the load a CPU."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Reads of a step, or its writes: fio's bytes beside those that the device counted in its time.

    ``foreign_bytes`` is what the device counted beyond fio; below 0 it counted less. ``busiest`` is the
    second with the most foreign bytes: (start, fio's bytes of both sides, foreign bytes). ``inner_bytes`` are those
    foreign from the first to the last document that lies well within the step, where no neighbour
    blurs them.

    How well it is known: ``outstanding_bytes`` may be counted by one of the two and not yet by the
    other. ``shared_bytes`` were taken off for a follower let go before the end, ``neighbours_bytes_per_s``
    are the rates before and after it. Where the border between two steps is drawn a little off, one has what the other
    lacks: ``lacked_bytes`` the steps before were short of. About a border at which a busy host let nobody
    look, ``blurred_bytes`` may be its neighbours'. All of it is of this side: next to reads alone no write can be
    fio's.
    """

    fio_bytes: int = 0
    bytes_per_s: float = 0.0
    foreign_bytes: int = 0
    busiest: tuple[float, float, float] | None = None
    inner_bytes: float = 0.0
    outstanding_bytes: int = 0
    shared_bytes: float = 0.0
    neighbours_bytes_per_s: float = 0.0
    lacked_bytes: float = 0.0
    blurred_bytes: float = 0.0

    @property
    def open_bytes(self) -> float:
        """What timing leaves open: so much may be fio's, of this step or of its neighbours."""
        return (
            self.outstanding_bytes
            + self.shared_bytes
            + BOUNDARY_S * self.neighbours_bytes_per_s
            + TIMING_S * self.bytes_per_s
            + self.lacked_bytes
            + self.blurred_bytes
        )

    @property
    def certain_bytes(self) -> float:
        """Bytes that are others' wherever the borders lie: in the whole step, or well within it."""
        whole_bytes = max(0.0, self.foreign_bytes - self.open_bytes)
        # What lies well within the step is in the whole of it, too: without that a document was only read late.
        if self.foreign_bytes + self.blurred_bytes <= 0:
            return whole_bytes
        return max(
            whole_bytes,
            self.inner_bytes - self.outstanding_bytes - DOCUMENT_S * self.bytes_per_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """fio's bytes of a step beside those that the device counted in its time, reads and writes apart.

    ``most_bytes`` is all that the device did from before the first of the step's I/O was let go until
    fio had told of the last, whoever it was for: none of this step's can be missing in it, wherever its
    borders are drawn. None: not known.

    ``counting``: the kernel was asked all the time to count this device's I/O.
    """

    started_s: float
    duration_s: float
    reads: Side = Side()
    writes: Side = Side()
    discarded_bytes: int = 0
    flushes: int = 0
    others_bytes: int | None = None
    most_bytes: int | None = None
    counting: bool = False

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.reads, self.writes

    @property
    def fio_bytes(self) -> int:
        return self.reads.fio_bytes + self.writes.fio_bytes

    @property
    def foreign_bytes(self) -> int:
        return self.reads.foreign_bytes + self.writes.foreign_bytes

    @property
    def is_flushed(self) -> bool:
        """Whether somebody had the device flushed often enough to matter."""
        return self.flushes >= max(LEAST_FLUSHES, LEAST_FLUSHES_PER_S * self.duration_s)

    @property
    def limit_bytes(self) -> float:
        """What has to be exceeded to be told, beyond what timing leaves open."""
        return max(FOREIGN_SHARE * self.fio_bytes, LEAST_FOREIGN_BYTES)

    @property
    def is_moved_by_others(self) -> bool:
        """Whether others moved, or discarded, enough to matter."""
        certain_bytes = sum(side.certain_bytes for side in self.sides)
        return max(certain_bytes, self.discarded_bytes) > self.limit_bytes

    @property
    def missing_bytes(self) -> int:
        """What fio counted beyond all that the device did; below 0 the device did more."""
        return 0 if self.most_bytes is None else self.fio_bytes - self.most_bytes

    @property
    def missing_limit_bytes(self) -> float:
        """The same for them. Only outstanding I/Os are counted here and not yet there."""
        return self.limit_bytes + max(side.outstanding_bytes for side in self.sides)

    @property
    def is_counted(self) -> bool:
        """Whether the kernel counts this device's I/O; with ``queue/iostats`` at 0 it need not."""
        return self.counting or self.counted_share >= COUNTING_SHARE

    @property
    def counted_share(self) -> float:
        """What the device counted, of fio's bytes."""
        return 1 + self.foreign_bytes / self.fio_bytes if self.fio_bytes else 1.0


def judge_bytes(compared: Compared) -> tuple[Disturbance, ...]:
    """What the comparison of bytes says; nothing if the device's I/O is not counted."""
    disturbances = (
        (_foreign(compared), _other_partitions(compared), _missing(compared))
        if compared.is_counted
        else ()
    )
    return tuple(disturbance for disturbance in disturbances if disturbance is not None)


def _foreign(compared: Compared) -> Disturbance | None:
    burst = _burst(compared)
    if not (compared.is_moved_by_others or burst or compared.is_flushed):
        return None
    # Of a side on which nothing is certain, what is beyond fio may be timing's.
    certain = [side for side in compared.sides if side.certain_bytes] or compared.sides
    read_bytes, written_bytes = (
        max(0, side.foreign_bytes) if side in certain else 0 for side in compared.sides
    )
    amounts = [
        f"{format_capacity(amount)} {done}"
        for amount, done in (
            (read_bytes, "read"),
            (written_bytes, "written"),
            (compared.discarded_bytes, "discarded"),
        )
        if amount >= LEAST_FOREIGN_BYTES
    ]
    amounts += [f"{compared.flushes} flushes"] * compared.is_flushed
    share = (read_bytes + written_bytes) / compared.fio_bytes if compared.fio_bytes else None
    beside = (
        "" if share is None else f", {share:.1%} of fio's {format_capacity(compared.fio_bytes)}"
    )
    at_s, most = (compared.started_s, "") if burst is None else burst
    return Disturbance(
        code=DisturbanceCode.FOREIGN_IO,
        text=f"others used the device: {', '.join(amounts) or 'some I/O'}{beside}{most}",
        started_s=at_s,
        duration_s=compared.duration_s if burst is None else 1.0,
        share=share,
    )


def _burst(compared: Compared) -> tuple[float, str] | None:
    """When the second with the most foreign bytes began, in words too, if they are many."""
    bursts = []
    for side in compared.sides:
        at_s, fio_bytes, foreign_bytes = side.busiest or (0.0, 0.0, 0.0)
        if foreign_bytes > max(BURST_SHARE * fio_bytes, LEAST_BURST_BYTES) + side.open_bytes:
            bursts.append((foreign_bytes, at_s))
    if not bursts:
        return None
    _, at_s = max(bursts)
    after_s = at_s - compared.started_s
    return at_s, f", most of it {after_s:.0f} s after the step's start"


def _other_partitions(compared: Compared) -> Disturbance | None:
    others_bytes = compared.others_bytes or 0
    if others_bytes <= compared.limit_bytes + sum(side.open_bytes for side in compared.sides):
        return None
    share = others_bytes / compared.fio_bytes if compared.fio_bytes else None
    beside = (
        "" if share is None else f", {share:.1%} of fio's {format_capacity(compared.fio_bytes)}"
    )
    return Disturbance(
        code=DisturbanceCode.OTHER_PARTITION_IO,
        text=f"other partitions of the disk moved {format_capacity(others_bytes)}{beside}",
        started_s=compared.started_s,
        duration_s=compared.duration_s,
        share=share,
    )


def _missing(compared: Compared) -> Disturbance | None:
    if compared.missing_bytes <= compared.missing_limit_bytes:
        return None
    share = compared.missing_bytes / compared.fio_bytes
    counted = f"{share:.1%} less: it did not do all that fio was told it did"
    if compared.counted_share < COUNTING_SHARE:
        counted = (
            "nothing, although the kernel counts its I/O (queue/iostats is 1): it did not do what fio "
            "was told it did, or its driver does not tell"
        )
    return Disturbance(
        code=DisturbanceCode.MISSING_IO,
        text=f"fio counted {format_capacity(compared.fio_bytes)}, the device {counted}",
        started_s=compared.started_s,
        duration_s=compared.duration_s,
        share=share,
    )


def find_refutation(compared: Compared) -> str | None:
    """Why the step cannot be what fio says it is; None if the device bears it out.

    A device that counts nothing at all while its ``queue/iostats`` is 1 is flagged, not refuted: there
    are drivers that never count.
    """
    if not compared.is_counted or compared.counted_share < COUNTING_SHARE:
        return None
    share = compared.missing_bytes / compared.fio_bytes if compared.fio_bytes else 0.0
    if share <= REFUTED_SHARE:
        return None
    return (
        f"fio counted {format_capacity(compared.fio_bytes)}, the device {share:.1%} less: "
        "it did not do all that fio was told it did"
    )
