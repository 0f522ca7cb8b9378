"""The values of settings before tkperf changed them: kept in /run, where a reboot forgets both.

They are written and synced before anything is changed, so that ``tkperf tune --restore`` finds them
however tkperf ended.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from tkperf.device.sysfs import text
from tkperf.model.errors import DeviceError, InputFileError, reason_of

FOLDER = Path("run/tkperf")
SCHEMA = "tkperf-tune-state/1"
# The owner of settings made by the command, until it puts them back; other owners are processes.
BY_COMMAND = "tkperf tune"
# tkperf writes as root only to these paths, whoever wrote the file.
_PATHS = re.compile(
    r"/sys/devices/system/cpu/cpufreq/policy\d+/(scaling_governor|energy_performance_preference)"
    r"|/sys/block/(?!\.{1,2}/)[^/]+/queue/(scheduler|nr_requests|rq_affinity|wbt_lat_usec)"
)
_VALUE = re.compile(r"[\w.+-]{1,64}")
_LONGEST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A setting that was changed from ``before`` to ``changed_to``, for ``owners``.

    ``changed_to`` is None for a setting that only changes along with another one.
    """

    path: str
    before: str
    changed_to: str | None
    owners: tuple[str, ...]
    disk_sequence: str | None = None

    def __post_init__(self) -> None:
        if not _PATHS.fullmatch(self.path):
            raise ValueError(f"path: {self.path!r} is no setting of tkperf's")
        for value in (self.before, self.changed_to):
            if value is not None and not _VALUE.fullmatch(value):
                raise ValueError(f"{value!r} is no value of {self.path}")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All settings that are changed now; ``boot`` is the kernel's id of this boot."""

    boot: str
    settings: tuple[Kept, ...] = ()
    schema: str = SCHEMA


class StateFile:
    """The file of earlier values, with a lock for its use."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self.folder = root / FOLDER
        self.path = self.folder / "tune.json"

    @property
    def boot(self) -> str:
        return text(self._root / "proc/sys/kernel/random/boot_id") or "not known"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock on the settings: two runs may begin or end at once.

        Raises:
            DeviceError: the folder cannot be written to, as without root.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.folder / "tune.lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            advice = "; run tkperf as root" if os.geteuid() else ""
            raise DeviceError(
                f"{self.folder}: what was set before cannot be kept: {reason_of(error)}{advice}"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def read(self) -> State | None:
        """Return the changed settings; None: there are none.

        Raises:
            InputFileError: the file cannot be read, or is not tkperf's.
        """
        try:
            content = self.path.read_bytes()[:_LONGEST_BYTES]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputFileError(f"{self.path} cannot be read: {reason_of(error)}") from error
        try:
            state = msgspec.json.decode(content, type=State)
        except (msgspec.DecodeError, ValueError) as error:
            raise InputFileError(
                f"{self.path}: {reason_of(error)}; nothing is put back: look at it, set by hand what it names, "
                "and remove it"
            ) from error
        if state.schema != SCHEMA:
            raise InputFileError(f"{self.path}: schema: {state.schema[:40]!r} is not {SCHEMA}")
        return state

    def write(self, state: State) -> None:
        """Write the file durably: a crash leaves either the old file or all of the new one.

        Raises:
            DeviceError: the file cannot be written.
        """
        try:
            if not state.settings:
                with suppress(FileNotFoundError):
                    self.path.unlink()
            else:
                fresh = self.path.with_suffix(".new")
                with fresh.open("wb") as file:
                    file.write(msgspec.json.format(msgspec.json.encode(state)))
                    file.flush()
                    os.fsync(file.fileno())
                fresh.replace(self.path)
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise DeviceError(f"{self.path} cannot be written: {reason_of(error)}") from error


def own_name(root: Path = Path("/")) -> str:
    """Return this process as an owner; its start separates it from a later one with the same number."""
    return f"{os.getpid()} {_started(root, os.getpid())}"


def is_alive(owner: str, root: Path = Path("/")) -> bool:
    """Return whether an owner still wants its settings."""
    if owner == BY_COMMAND:
        return True
    number, _, started = owner.partition(" ")
    return bool(started) and number.isdecimal() and _started(root, int(number)) == started


def _started(root: Path, number: int) -> str:
    """Return the start of a process, in ticks since boot (proc(5): the 22nd field); empty: there is none."""
    fields = (text(root / f"proc/{number}/stat") or "").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def with_owner(kept: Kept, owner: str) -> Kept:
    return kept if owner in kept.owners else replace(kept, owners=(*kept.owners, owner))
