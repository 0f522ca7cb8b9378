"""I/O of other programs: the bytes that fio counted in a step, compared with the bytes that the device counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from tkperf.model.units import KIB, MIB, format_capacity, format_count


class DisturbanceCode(StrEnum):
    FOREIGN_IO = "foreign-io"
    OTHER_PARTITION_IO = "other-partition-io"
    MISSING_IO = "missing-io"
    IDLE_BEFORE = "idle-before"
    IDLE_INSIDE = "idle-inside"
    STOPPED = "stopped"
    SUSPENDED = "suspended"
    HOST_CPU = "host-cpu"
    CPU_QUOTA = "cpu-quota"
    STEAL = "steal"
    MEMORY_PRESSURE = "memory-pressure"
    CPU_HEAT = "cpu-heat"
    DEVICE_ERROR = "device-error"
    LINK_CHANGE = "link-change"
    REPEATED = "repeated"
    INTERRUPTED = "interrupted"
    THROTTLED = "throttled"
    UNEVEN_CLONES = "uneven-clones"


WORDS = {
    DisturbanceCode.FOREIGN_IO: "other I/O on the device",
    DisturbanceCode.OTHER_PARTITION_IO: "I/O on other partitions of the disk",
    DisturbanceCode.MISSING_IO: "fio counted more than the device",
    DisturbanceCode.IDLE_BEFORE: "idle time before the step",
    DisturbanceCode.IDLE_INSIDE: "idle time within the step",
    DisturbanceCode.STOPPED: "tkperf stood still",
    DisturbanceCode.SUSPENDED: "the host was suspended",
    DisturbanceCode.HOST_CPU: "others on the CPUs that fio waited for",
    DisturbanceCode.CPU_QUOTA: "a limit on the CPU time of tkperf",
    DisturbanceCode.STEAL: "CPU time taken by the hypervisor",
    DisturbanceCode.MEMORY_PRESSURE: "memory short on the host",
    DisturbanceCode.CPU_HEAT: "CPUs slowed down by heat",
    DisturbanceCode.DEVICE_ERROR: "errors of the device in the kernel's log",
    DisturbanceCode.LINK_CHANGE: "trouble of the device's link in the kernel's log",
    DisturbanceCode.REPEATED: "measured again",
    DisturbanceCode.INTERRUPTED: "the run was interrupted before the step",
    DisturbanceCode.THROTTLED: "the drive was throttled for heat",
    DisturbanceCode.UNEVEN_CLONES: "clones that ended at different times",
}
HOST_LIMITED = "limited by the host's CPUs"
# The word that joins a number of steps with the text of these codes, as in "2 steps while". All other codes use "with".
_JOINTS = {
    DisturbanceCode.STOPPED: " while",
    DisturbanceCode.SUSPENDED: " while",
    DisturbanceCode.REPEATED: "",
    DisturbanceCode.THROTTLED: " while",
}


# These codes describe the history of a step. These codes alone do not make the result of a step doubtful.
OF_HISTORY = (DisturbanceCode.REPEATED, DisturbanceCode.INTERRUPTED, DisturbanceCode.UNEVEN_CLONES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """A possible influence on the result of a step by something other than the device.

    ``started_s`` counts from the start of the run. ``share`` is a fraction of fio's bytes or of the time of the step,
    and ``text`` states which of the two fractions is meant. ``share`` is None if no fraction is known.
    """

    code: DisturbanceCode
    text: str
    started_s: float
    duration_s: float
    share: float | None = None


def describe_count(code: DisturbanceCode, steps: int) -> str:
    """Return the number of disturbed steps and the disturbance, such as ``2 steps with other I/O on the device``."""
    return f"{format_count(steps, 'step')}{_JOINTS.get(code, ' with')} {WORDS[code]}"


def describe_disturbed(codes: Iterable[DisturbanceCode]) -> str:
    """Return the disturbances in words, such as ``disturbed: other I/O on the device, idle time before the step``."""
    return "disturbed: " + ", ".join(WORDS[code] for code in codes)


def find_codes(codes: Iterable[DisturbanceCode]) -> tuple[DisturbanceCode, ...]:
    """Return the distinct disturbance codes among these texts, in the order of their definition. Other texts are
    ignored.
    """
    occurring = set(codes)
    return tuple(code for code in DisturbanceCode if code in occurring) if occurring else ()


def find_doubtful(disturbances: Iterable[Disturbance]) -> tuple[DisturbanceCode, ...]:
    """Return the kinds of disturbance that make a result doubtful, because something other than the device may have
    influenced the result.
    """
    codes = (disturbance.code for disturbance in disturbances)
    return find_codes(code for code in codes if code not in OF_HISTORY)


# The limit of foreign bytes, as a share of the bytes that fio moved in the step. A smaller share changes a result by
# less than the usual difference between the results of equal runs.
FOREIGN_SHARE = 0.005
# smartd, udev or a partition scan read no more than some hundred KiB. Such small amounts are accepted even if they are
# a large share of fio's bytes.
LEAST_FOREIGN_BYTES = 512 * KIB
# The limit of foreign bytes within one second, as a share of the bytes that fio moved in that second. A burst that is
# too short to change the mean of a long step still changes the maximum.
BURST_SHARE = 0.1
LEAST_BURST_BYTES = 4 * MIB
# Uncertainty of the time at which the clock of fio starts on a busy host, in s.
TIMING_S = 0.02
# A flush makes a drive empty its write cache. A file system commits every five seconds, so its flushes do not exceed
# these limits.
LEAST_FLUSHES_PER_S = 0.5
LEAST_FLUSHES = 3
# For a status report, fio reads the counters thread by thread. On a busy host, some bytes therefore belong to a moment
# that differs from the time of the report by up to this time, in s.
DOCUMENT_S = 0.05
# Uncertainty of the moment at which one step ends and the next step begins, in s.
BOUNDARY_S = 0.01
# If ``queue/iostats`` is 0, the I/Os of most devices are not counted, but some drivers (zram) still count them. A
# device that counted less than this share of fio's bytes is treated as a device that does not count its I/Os, and the
# I/Os are not treated as lost.
COUNTING_SHARE = 0.01
# If a larger share of fio's bytes is missing from the counters of the device, the step has no result. The uncertainty
# of the counts cannot explain so many missing bytes.
REFUTED_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts that the kernel has kept for a device since the device appeared.

    ``in_flight`` is the number of I/Os that are not complete. If the device is a partition, ``others_bytes`` are the
    bytes that the rest of the disk moved. None means that the device is not a partition.
    """

    read_bytes: int
    write_bytes: int
    discard_bytes: int
    ios: int
    in_flight: int
    others_bytes: int | None = None
    flushes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLook:
    """One reading of the I/O counters of the device.

    ``at_s`` is the time on the run's clock. ``suspended_s`` is the total time for which the host was suspended.
    ``counts`` is None for a target without counters, such as a file. ``counting`` is the setting ``queue/iostats`` of
    the kernel, which switches the counters on. None means that the value is not known.
    """

    at_s: float
    suspended_s: float = 0.0
    counts: Counts | None = None
    counting: bool | None = None


class Counters(Protocol):
    """A reader of the device's I/O counters. The counters are read tens of times a second, or five to ten times a
    second after ``look_seldom``.
    """

    def take(self) -> Sequence[DeviceLook]:
        """Return all readings since the last call, oldest first. The last reading in the result is made during this
        call.
        """
        ...

    def look_seldom(self, from_s: float, until_s: float) -> None:
        """Read the counters less often during a period in which no step begins or ends, because every reading may use a
        CPU that the load needs.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The reads of a step, or the writes of a step: the bytes that fio counted, compared with the bytes that the device
    counted during the step.

    ``foreign_bytes`` are the bytes that the device counted in addition to fio's bytes. The value is negative if the
    device counted fewer bytes. ``busiest`` is the second with the most foreign bytes: (start in s, fio's bytes of reads
    and writes together, foreign bytes). ``inner_bytes`` are the foreign bytes in the middle of the step, between the
    first and the last status document of fio that are not near a neighbouring step. No neighbouring step makes this
    number uncertain.

    The other values describe the uncertainty of the foreign bytes. ``outstanding_bytes`` may have been counted by
    either fio or the device, but not by both. ``shared_bytes`` were subtracted because the next step was released
    before this step ended. ``neighbours_bytes_per_s`` are the rates before and after the step. The border between two
    steps may be slightly wrong, so that bytes of one step are counted in the other step. ``lacked_bytes`` are the bytes
    that are missing from earlier steps for this reason. A busy host may prevent a reading at a border:
    ``blurred_bytes`` may then belong to neighbouring steps. All values describe only the reads, or only the writes: in
    a step that only reads, fio causes no writes.
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
        """Return the number of bytes that cannot be attributed with certainty, because of the timing. fio may have
        moved these bytes in this step or in a neighbouring step.
        """
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
        """Return the number of bytes that other programs certainly moved. The exact borders of the step do not affect
        this number.
        """
        whole_bytes = max(0.0, self.foreign_bytes - self.open_bytes)
        # Foreign bytes well within the step are also foreign bytes of the whole step. If the whole step has no foreign
        # bytes, the foreign bytes within the step only show that tkperf read a status document of fio late.
        if self.foreign_bytes + self.blurred_bytes <= 0:
            return whole_bytes
        return max(whole_bytes, self.inner_bytes - self.outstanding_bytes - DOCUMENT_S * self.bytes_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A comparison of the bytes that fio and the device counted during a step, separately for reads and writes.

    ``most_bytes`` are all bytes that the device moved, for any program, from before the release of the step until after
    the last report of fio. This number includes all I/Os of the step, even if the borders of the step are uncertain.
    None means that the number is not known.

    ``counting`` is true if ``queue/iostats`` was 1 all the time. In this case, the kernel should have counted the I/O
    of this device.
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
        """Return whether programs other than fio flushed the device often enough to influence the step."""
        return self.flushes >= max(LEAST_FLUSHES, LEAST_FLUSHES_PER_S * self.duration_s)

    @property
    def limit_bytes(self) -> float:
        """Return the limit above which foreign bytes are a disturbance. Only bytes that are certainly foreign are
        compared with this limit.
        """
        return max(FOREIGN_SHARE * self.fio_bytes, LEAST_FOREIGN_BYTES)

    @property
    def is_moved_by_others(self) -> bool:
        """Return whether other programs moved or discarded enough bytes to influence the step."""
        certain_bytes = sum(side.certain_bytes for side in self.sides)
        return max(certain_bytes, self.discarded_bytes) > self.limit_bytes

    @property
    def missing_bytes(self) -> int:
        """Return the number of bytes that fio counted in addition to all bytes that the device counted. The value is
        negative if the device counted more bytes than fio.
        """
        return 0 if self.most_bytes is None else self.fio_bytes - self.most_bytes

    @property
    def missing_limit_bytes(self) -> float:
        """Return the limit of missing bytes. The limit allows for outstanding I/Os and for the general limit of foreign
        bytes.
        """
        return self.limit_bytes + max(side.outstanding_bytes for side in self.sides)

    @property
    def is_counted(self) -> bool:
        """Return whether the kernel counts the I/O of this device. If ``queue/iostats`` is 0, the kernel is not
        required to count this I/O.
        """
        return self.counting or self.counted_share >= COUNTING_SHARE

    @property
    def counted_share(self) -> float:
        """Return the bytes that the device counted as a share of fio's bytes."""
        return 1 + self.foreign_bytes / self.fio_bytes if self.fio_bytes else 1.0


def judge_bytes(compared: Compared) -> tuple[Disturbance, ...]:
    """Return the disturbances that are visible in the byte counts. The result is empty if the kernel does not count the
    I/O of the device.
    """
    disturbances = (_foreign(compared), _other_partitions(compared), _missing(compared)) if compared.is_counted else ()
    return tuple(disturbance for disturbance in disturbances if disturbance is not None)


def _foreign(compared: Compared) -> Disturbance | None:
    burst = _burst(compared)
    if not (compared.is_moved_by_others or burst or compared.is_flushed):
        return None
    # If no foreign byte of reads (or of writes) is certain, the timing of the readings may explain why the device
    # counted more bytes than fio.
    certain = [side for side in compared.sides if side.certain_bytes] or compared.sides
    read_bytes, written_bytes = (max(0, side.foreign_bytes) if side in certain else 0 for side in compared.sides)
    amounts = [
        f"{format_capacity(amount)} {done}"
        for amount, done in ((read_bytes, "read"), (written_bytes, "written"), (compared.discarded_bytes, "discarded"))
        if amount >= LEAST_FOREIGN_BYTES
    ]
    amounts += [f"{compared.flushes} flushes"] * compared.is_flushed
    share = (read_bytes + written_bytes) / compared.fio_bytes if compared.fio_bytes else None
    of_fio = "" if share is None else f", {share:.1%} of fio's {format_capacity(compared.fio_bytes)}"
    at_s, most = (compared.started_s, "") if burst is None else burst
    return Disturbance(
        code=DisturbanceCode.FOREIGN_IO,
        text=f"others used the device: {', '.join(amounts) or 'some I/O'}{of_fio}{most}",
        started_s=at_s,
        duration_s=compared.duration_s if burst is None else 1.0,
        share=share,
    )


def _burst(compared: Compared) -> tuple[float, str] | None:
    """Return two values about the second with the most foreign bytes: its start, in s from the start of the run, and a
    description. None means that no second has many foreign bytes.
    """
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
    of_fio = "" if share is None else f", {share:.1%} of fio's {format_capacity(compared.fio_bytes)}"
    return Disturbance(
        code=DisturbanceCode.OTHER_PARTITION_IO,
        text=f"other partitions of the disk moved {format_capacity(others_bytes)}{of_fio}",
        started_s=compared.started_s,
        duration_s=compared.duration_s,
        share=share,
    )


def _missing(compared: Compared) -> Disturbance | None:
    if compared.missing_bytes <= compared.missing_limit_bytes:
        return None
    share = compared.missing_bytes / compared.fio_bytes
    text = _describe_missing(compared, share)
    if compared.counted_share < COUNTING_SHARE:
        text = (
            f"fio counted {format_capacity(compared.fio_bytes)}, the device nothing, although the kernel counts its "
            "I/O (queue/iostats is 1): it did not do what fio reported, or its driver does not count it"
        )
    return Disturbance(
        code=DisturbanceCode.MISSING_IO,
        text=text,
        started_s=compared.started_s,
        duration_s=compared.duration_s,
        share=share,
    )


def find_refutation(compared: Compared) -> str | None:
    """Return the reason why fio's count of the step cannot be true. None means that the counters of the device do not
    refute the count.

    A device that counts nothing although ``queue/iostats`` is 1 does not refute fio, because some drivers never count.
    In this case, the step is only marked as disturbed.
    """
    if not compared.is_counted or compared.counted_share < COUNTING_SHARE:
        return None
    share = compared.missing_bytes / compared.fio_bytes if compared.fio_bytes else 0.0
    if share <= REFUTED_SHARE:
        return None
    return _describe_missing(compared, share)


def _describe_missing(compared: Compared, share: float) -> str:
    less = f"{share:.1%} less: it did not do all that fio reported"
    return f"fio counted {format_capacity(compared.fio_bytes)}, the device {less}"
