"""The request for a run, before tkperf examines the device and the host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from tkperf.device.raid.config import RaidConfig
from tkperf.model.choices import ALL_TESTS, DEEPEST_QUEUE, LONGEST_STEP_S, MOST_JOBS, PURGES, WRITE_CACHE
from tkperf.model.errors import UsageError, not_known
from tkperf.model.input_files import is_toml_path
from tkperf.model.run_info import check_names
from tkperf.model.units import parse_size_bytes
from tkperf.procedures import SUITES
from tkperf.procedures.profiles import Profile, resolve_range

# The greatest length of NAME in bytes. File systems accept names of 255 bytes, including the text that tkperf adds
# before and after NAME.
LONGEST_NAME = 200

T = TypeVar("T")
_OF_PROFILE = "of the profile"
OfProfile: TypeAlias = Annotated[T, _OF_PROFILE]
"""An option that changes numbers of the profile. The profile is stored with the changed numbers."""

_LARGEST_BYTES, _SMALLEST_SECTOR_BYTES = 2**62, 512

# Fields that a run file stores elsewhere than among its options.
NO_OPTIONS = ("suite", "device", "tests", "profile", "raid")


class RunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run as the user requests it, on the command line, in Python or in a file.

    If a field is None, the profile or the facts about the device determine its value.

    Attributes:
        suite: ``ssd``, ``hdd`` or ``raid``.
        device: a block device, a file, ``sim:PRESET``, or the node for a new RAID set.
        tests: names of the suite's tests, or ``all`` for every test that the profile defines, and paths of workload
            files. If ``tests`` is empty, the default tests run.
        profile: name of a shipped profile, path of a TOML file, or a profile.
        jobs, io_depth: thread count and queue depth of every test that does not define them itself.
        auto_demand: whether to find thread count and queue depth first, with a search on the preconditioned device.
        step_s: length in s of each step, and of each slice of write saturation.
        active_range: ``75%`` or ``16GiB``, from the start of the device.
        size: size of a scratch file that is created as the device, such as ``1GiB``.
        ioengine: ``io_uring`` or ``libaio``.
        write_cache: ``on``, ``off`` or ``keep``.
        strict: whether to refuse a host that is not suitable, to measure disturbed steps again, and to end the run if
            the repetitions are also disturbed.
        accept_disturbed: whether a window may be steady although a tracked value in it was disturbed.
        tune: whether to set CPU governor, I/O scheduler and similar settings for the run, and to restore them.
        purge_method, purge_command, no_purge: how the device is purged. No more than one of these fields may be set.
        telemetry: whether to read the logs of the drives during the run.
        raid: configuration of the RAID set. The suite ``raid`` requires this field, and the other suites do not accept
            this field.
        remove_set: whether to remove the RAID set after the run.
        facts: facts that reports contain although no program can determine them. The keys are names: ``NAND type``,
            ``Test sponsor`` ...

    Raises:
        UsageError: a value is impossible on any device, or two values exclude each other.
    """

    suite: str
    device: str
    tests: tuple[str, ...] = ()
    profile: str | Profile | None = None
    jobs: OfProfile[int | None] = None
    io_depth: OfProfile[int | None] = None
    auto_demand: OfProfile[bool] = False
    step_s: OfProfile[float | None] = None
    active_range: OfProfile[str | None] = None
    size: str | None = None
    ioengine: str | None = None
    write_cache: OfProfile[str | None] = None
    strict: bool = False
    accept_disturbed: OfProfile[bool] = False
    tune: bool = False
    purge_method: str | None = None
    purge_command: str | None = None
    no_purge: bool = False
    telemetry: bool = True
    raid: RaidConfig | None = None
    remove_set: bool = False
    facts: dict[str, str] = {}

    def __post_init__(self) -> None:
        if isinstance(self.tests, list):
            msgspec.structs.force_setattr(self, "tests", tuple(self.tests))
        if isinstance(self.profile, Path):
            msgspec.structs.force_setattr(self, "profile", str(self.profile))
        self._check_types()
        named = check_names("facts", self.facts.items())
        msgspec.structs.force_setattr(self, "facts", named)
        _one_of("suite", self.suite, SUITES)
        for test in self.tests:
            if not is_toml_path(test):
                _one_of("test", test, (*SUITES[self.suite], ALL_TESTS))
        if (self.suite == "raid") is (self.raid is None):
            raise UsageError(
                "the suite raid needs the configuration of a RAID set (raid.json). The other suites accept no such "
                "configuration"
            )
        if self.raid is not None:
            self.raid.require_possible()
        self._check_values()
        self._check_purge()
        self._check_auto_demand()

    @property
    def options(self) -> dict[str, object]:
        """Return all fields except suite, device, tests, profile and set, in the form of the run file."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name not in NO_OPTIONS}

    @property
    def profile_options(self) -> dict[str, Any]:
        """Return the options that change numbers of the profile."""
        return {name: getattr(self, name) for name in profile_option_names()}

    @property
    def size_bytes(self) -> int | None:
        return None if self.size is None else parse_size_bytes(self.size)

    def _check_types(self) -> None:
        """Check the types of the fields. Python accepts values of any type, and a wrong value would cause an error in
        the middle of a run.
        """
        if isinstance(self.tests, str):
            raise UsageError(f"tests: '{self.tests[:40]}' is a single text. Pass a list of names")
        for name in self.__struct_fields__:
            if fault := find_type_fault(name, getattr(self, name)):
                raise UsageError(f"{name}: {fault}")
        if "\0" in self.device:
            raise UsageError("device: a path cannot contain a zero byte")
        if self.profile == "":
            raise UsageError("the name of the profile is empty. Omit the profile, or pass its name")

    def _check_values(self) -> None:
        for what, value, most in (
            ("number of threads", self.jobs, MOST_JOBS),
            ("queue depth", self.io_depth, DEEPEST_QUEUE),
            ("length of a step in seconds", self.step_s, LONGEST_STEP_S),
        ):
            if value is not None and not 1 <= value <= most:
                raise UsageError(f"{what}: {value} is not within 1 to {most}")
        if self.ioengine is not None:
            from tkperf.engine.registry import find_engine  # noqa: PLC0415 - few requests name an interface

            find_engine(self.ioengine)
        if self.write_cache is not None:
            _one_of("write cache", self.write_cache, WRITE_CACHE)
        # A text that is not a size on any device is refused before tkperf examines a device.
        with _naming("--active-range"):
            if self.active_range is not None:
                resolve_range(self.active_range, _LARGEST_BYTES, _SMALLEST_SECTOR_BYTES)
        with _naming("--size"):
            if self.size is not None and parse_size_bytes(self.size) < _SMALLEST_SECTOR_BYTES:
                raise UsageError(
                    f"'{self.size}' is less than one sector of {_SMALLEST_SECTOR_BYTES} bytes. Write, for example, "
                    "512MiB, 16GiB or 960GB"
                )

    @property
    def searches_demand(self) -> bool:
        """Return whether a search finds the demand of those tests that do not define a demand themselves."""
        tests = SUITES[self.suite]
        return self.auto_demand or any(test.finds_demand for test in tests.values() if test.name in self.tests)

    def _check_auto_demand(self) -> None:
        if self.auto_demand and not any(test.finds_demand for test in SUITES[self.suite].values()):
            raise UsageError(f"--auto-demand: the suite {self.suite} cannot search for the demand. Omit this option")
        given = [option for option, value in (("-nj", self.jobs), ("-iod", self.io_depth)) if value is not None]
        if self.searches_demand and given:
            raise UsageError(
                f"{' and '.join(given)} would have no effect, because a search chooses the number of threads and the "
                "queue depth. Omit either the search or these options"
            )

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
            raise UsageError(f"{' and '.join(given)} exclude each other. Pass only one of them")
        if self.purge_method is not None:
            _one_of("purge method", self.purge_method, PURGES)
        if given and self.suite == "hdd":
            raise UsageError(f"{given[0]}: tkperf does not purge hard disks. Omit this option")


def find_type_fault(field: str, value: object) -> str | None:
    """Return the reason why a field of a request cannot have this value, such as ``'yes' is not of type bool``. None
    means that the type is correct.
    """
    kinds = _find_kinds()[field]
    if isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds):
        return None
    wanted = " or ".join(kind.__name__ for kind in kinds if kind is not NoneType)
    return f"{str(value)[:40]!r} is not of type {wanted}"


@cache
def profile_option_names() -> tuple[str, ...]:
    """Return the names of the fields that change numbers of the profile."""
    hints = get_type_hints(RunRequest, include_extras=True)
    return tuple(name for name, hint in hints.items() if _OF_PROFILE in get_args(hint)[1:])


@cache
def _find_kinds() -> dict[str, tuple[type, ...]]:
    """Return the types that each field accepts, according to its declaration."""
    kinds: dict[str, tuple[type, ...]] = {}
    for name, hint in get_type_hints(RunRequest).items():
        types = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        plain = tuple(get_origin(each) or each for each in types)
        kinds[name] = (int, *plain) if float in plain else plain
    return kinds


@contextmanager
def _naming(option: str) -> Iterator[None]:
    """Add the name of the option to an error about the value of the option."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from error


def _one_of(what: str, value: str, choices: Iterable[str]) -> None:
    names = list(choices)
    if value not in names:
        raise not_known(what, value, names)


def require_name(name: str) -> None:
    """Raise UsageError if a run cannot have this name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise UsageError(
            f"NAME '{name}' becomes a file name. Use only letters, digits and the characters '.', '_', '+' and '-'. "
            "Begin with a letter or digit"
        )
    refuse_long_name("NAME", name)


def refuse_long_name(what: str, name: str) -> None:
    """Raise UsageError if a name is too long for a file name."""
    if len(name) > LONGEST_NAME:
        raise UsageError(
            f"{what} has {len(name)} characters, but it becomes a file name. Use at most {LONGEST_NAME} characters"
        )
