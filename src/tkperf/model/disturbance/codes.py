"""Disturbances, and the words for each kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tkperf.model.units import format_count


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
# The joint between a number of steps and these words, if it is not "with".
_JOINTS = {
    DisturbanceCode.STOPPED: " while",
    DisturbanceCode.SUSPENDED: " while",
    DisturbanceCode.REPEATED: "",
    DisturbanceCode.THROTTLED: " while",
}


# Codes that describe the history of a step, not an influence on its result.
OF_HISTORY = (DisturbanceCode.REPEATED, DisturbanceCode.INTERRUPTED, DisturbanceCode.UNEVEN_CLONES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """A possible influence on a step's result by something other than the device.

    ``started_s`` counts from the start of the run. ``share`` is a part of fio's bytes or of the step's
    time, as ``text`` says; None if there is nothing to compare with.
    """

    code: DisturbanceCode
    text: str
    started_s: float
    duration_s: float
    share: float | None = None


def describe_count(code: DisturbanceCode, steps: int) -> str:
    """Return ``2 steps with other I/O on the device``."""
    return f"{format_count(steps, 'step')}{_JOINTS.get(code, ' with')} {WORDS[code]}"


def describe_disturbed(codes: Iterable[DisturbanceCode]) -> str:
    """Return the disturbances in words: ``disturbed: other I/O on the device, idle time before the step``."""
    return "disturbed: " + ", ".join(WORDS[code] for code in codes)


def find_codes(codes: Iterable[DisturbanceCode]) -> tuple[DisturbanceCode, ...]:
    """Return the codes among these, each once, in the order of their definition."""
    occurring = set(codes)
    return tuple(code for code in DisturbanceCode if code in occurring) if occurring else ()


def find_doubtful(disturbances: Iterable[Disturbance]) -> tuple[DisturbanceCode, ...]:
    """Return the kinds because of which a result is not the device's alone."""
    codes = (disturbance.code for disturbance in disturbances)
    return find_codes(code for code in codes if code not in OF_HISTORY)
