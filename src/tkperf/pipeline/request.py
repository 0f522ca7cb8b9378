"""What somebody asks of a run, before anything is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from tkperf.device.purge import METHOD_NAMES
from tkperf.device.raid.config import RaidConfig
from tkperf.engine.fio_setup import IO_ENGINES
from tkperf.errors import UsageError
from tkperf.procedures import SUITES
from tkperf.profiles import Profile, resolve_active_range
from tkperf.units import parse_size_bytes

DEFAULT_PROFILES = {"ssd": "pts-e-1.1", "hdd": "tkperf-2.2", "raid": "pts-e-1.1"}
WRITE_CACHE = ("on", "off", "keep")
_LARGEST_BYTES, _SMALLEST_SECTOR_BYTES = 2**62, 512


class Wishes(TypedDict, total=False):
    """What may be asked of a run besides suite and device: the other fields of ``RunRequest``."""

    tests: Sequence[str]
    profile: str | Profile | None
    jobs: int | None
    io_depth: int | None
    step_s: float | None
    active_range: str | None
    size: str | None
    ioengine: str | None
    write_cache: str | None
    purge_method: str | None
    purge_command: str | None
    no_purge: bool
    raid: RaidConfig | None
    remove_set: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A run as it is asked for. None where the profile, or what is found, decides.

    Attributes:
        suite: ``ssd``, ``hdd`` or ``raid``.
        device: a block device, a file, ``sim:PRESET``, or the node that a RAID set is to get.
        tests: names of the suite's tests; empty for all of them.
        profile: name of a shipped one, path of a TOML file, or a profile.
        jobs, io_depth: thread count and queue depth of every test that brings none of its own.
        step_s: length of each step, and of each slice of write saturation.
        active_range: ``75%`` or ``16GiB``, from the start of the device.
        size: a scratch file of this size is created as the device, e.g. ``1GiB``.
        ioengine: ``io_uring`` or ``libaio``.
        write_cache: ``on``, ``off`` or ``keep``.
        purge_method, purge_command, no_purge: one of them at most.
        raid: what the set is made of; for the suite ``raid`` only, and needed there.
        remove_set: take the set down again after the run.

    Raises:
        UsageError: a value is impossible on any device, or two exclude each other.
    """

    suite: str
    device: str
    tests: Sequence[str] = ()
    profile: str | Profile | None = None
    jobs: int | None = None
    io_depth: int | None = None
    step_s: float | None = None
    active_range: str | None = None
    size: str | None = None
    ioengine: str | None = None
    write_cache: str | None = None
    purge_method: str | None = None
    purge_command: str | None = None
    no_purge: bool = False
    raid: RaidConfig | None = None
    remove_set: bool = False

    def __post_init__(self) -> None:
        _one_of("suite", self.suite, SUITES)
        for test in self.tests:
            _one_of("test", test, SUITES[self.suite])
        if (self.suite == "raid") is (self.raid is None):
            raise UsageError("the suite raid, and no other, needs the configuration of a RAID set")
        if self.raid is not None:
            self.raid.require_possible()
        self._check_values()
        self._check_purge()

    @property
    def size_bytes(self) -> int | None:
        return None if self.size is None else parse_size_bytes(self.size)

    def _check_values(self) -> None:
        for what, value, most in (
            ("number of threads", self.jobs, 1024),
            ("queue depth", self.io_depth, 65536),
            ("length of a step in seconds", self.step_s, 86400),
        ):
            if value is not None and not 1 <= value <= most:
                raise UsageError(f"{what}: {value} is not within 1 to {most}")
        if self.ioengine is not None:
            _one_of("I/O engine", self.ioengine, IO_ENGINES)
        if self.write_cache is not None:
            _one_of("write cache", self.write_cache, WRITE_CACHE)
        # Before any device is looked at: what is no size on any of them.
        if self.active_range is not None:
            resolve_active_range(self.active_range, _LARGEST_BYTES, _SMALLEST_SECTOR_BYTES)
        if self.size is not None:
            parse_size_bytes(self.size)

    def _check_purge(self) -> None:
        given = [
            option
            for option, value in (
                ("--no-purge", self.no_purge),
                ("--purge", self.purge_method),
                ("--purge-command", self.purge_command),
            )
            if value
        ]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} exclude each other: give one of them")
        if self.purge_method is not None:
            _one_of("purge method", self.purge_method, METHOD_NAMES)
        if given and self.suite == "hdd":
            raise UsageError(f"{given[0]}: hard disks are not purged")


def _one_of(what: str, value: str, known: object) -> None:
    names = list(known)  # type: ignore[call-overload]
    if value not in names:
        raise UsageError(f"{what} '{value[:40]}': known are {', '.join(names)}")
