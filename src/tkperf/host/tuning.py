"""The tuning of the host for a measurement. Settings are recorded, set, verified, and restored when the last run that
needs them has ended.

All settings are safe and reversible. They are the governor and the energy preference of the CPUs, and the queue
settings of the measured drives. tkperf stops no service and changes no other drive. Before the first change, tkperf
writes the former values to /run, so that ``tkperf tune --restore`` can restore them even if tkperf was killed. A reboot
resets both the settings and /run.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from tkperf.device.sysfs import process_fields, text
from tkperf.host.settings import Setting, read_setting
from tkperf.model.decoding import decode_json
from tkperf.model.errors import DeviceError, InputFileError, TkperfError, reason_of

FOLDER = Path("run/tkperf")
SCHEMA = "tkperf-tune-state/1"
# The owner of the settings that the command ``tkperf tune`` changed, until the command restores them. Other owners are
# processes.
BY_COMMAND = "tkperf tune"
# As root, tkperf writes only to these paths, regardless of which user wrote the file of former values.
_PATHS = re.compile(
    r"/sys/devices/system/cpu/cpufreq/policy\d+/(scaling_governor|energy_performance_preference)"
    r"|/sys/block/(?!\.{1,2}/)[^/]+/queue/(scheduler|nr_requests|rq_affinity|wbt_lat_usec)"
)
_VALUE = re.compile(r"[\w.+-]{1,64}")
_LONGEST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSetting:
    """A setting that was changed from ``before`` to ``changed_to``. ``owners`` are the runs or commands that need the
    setting.

    ``changed_to`` is None for a setting that changes only together with another setting.
    """

    path: str
    before: str
    changed_to: str | None
    owners: tuple[str, ...]
    disk_sequence: str | None = None

    def __post_init__(self) -> None:
        if not _PATHS.fullmatch(self.path):
            raise ValueError(f"path: tkperf does not change the setting {self.path!r}")
        for value in (self.before, self.changed_to):
            if value is not None and not _VALUE.fullmatch(value):
                raise ValueError(f"{value!r} is no value of {self.path}")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All settings that are currently changed. ``boot`` is the kernel's id of the current boot."""

    boot: str
    settings: tuple[ChangedSetting, ...] = ()
    schema: str = SCHEMA


class StateFile:
    """The file that contains the former values of the settings. A lock protects the file and the settings."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self.folder = root / FOLDER
        self.path = self.folder / "tune.json"

    @property
    def boot(self) -> str:
        return text(self._root / "proc/sys/kernel/random/boot_id") or "not known"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock on the settings, because two runs may begin or end at the same time.

        Raises:
            DeviceError: the folder cannot be written to, for example because tkperf does not run as root.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.folder / "tune.lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            advice = ". Run tkperf as root" if os.geteuid() else ""
            raise DeviceError(
                f"tkperf cannot save the earlier settings in {self.folder}: {reason_of(error)}{advice}"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def read(self) -> State:
        """Return the changed settings that the file contains.

        Raises:
            InputFileError: the file cannot be read, or was not written by tkperf.
        """
        try:
            content = self.path.read_bytes()[:_LONGEST_BYTES]
        except FileNotFoundError:
            return State(boot=self.boot)
        except OSError as error:
            raise InputFileError(f"{self.path} cannot be read: {reason_of(error)}") from error
        try:
            state = decode_json(content, State)
        except (msgspec.DecodeError, ValueError) as error:
            raise InputFileError(
                f"{self.path} cannot be read: {reason_of(error)}. tkperf therefore restores no settings. Restore the "
                "settings that the file contains by hand, and remove the file"
            ) from error
        if state.schema != SCHEMA:
            raise InputFileError(f"{self.path}: schema: {state.schema[:40]!r} is not {SCHEMA}")
        return state

    def read_current(self) -> State:
        """Return only the changes that were made after the last boot, because a reboot resets the settings. Raise the
        same errors as ``read``.
        """
        state = self.read()
        return state if state.boot == self.boot else State(boot=self.boot)

    def write(self, state: State) -> None:
        """Write the file. If tkperf is killed, either the old file or the complete new file exists.

        Raises:
            DeviceError: the file cannot be written.
        """
        try:
            if state.settings:
                fresh = self.path.with_suffix(".new")
                fresh.write_bytes(msgspec.json.format(msgspec.json.encode(state)))
                fresh.replace(self.path)
            else:
                self.path.unlink(missing_ok=True)
        except OSError as error:
            raise DeviceError(f"{self.path} cannot be written: {reason_of(error)}") from error


def own_name(root: Path = Path("/")) -> str:
    """Return the name of this process as an owner. The name contains the start time of the process, because a later
    process may have the same number.
    """
    return f"{os.getpid()} {_started(root, os.getpid())}"


def is_alive(owner: str, root: Path = Path("/")) -> bool:
    """Return whether an owner still exists and therefore needs its settings."""
    if owner == BY_COMMAND:
        return True
    number, _, started = owner.partition(" ")
    return bool(started) and number.isdecimal() and _started(root, int(number)) == started


def _started(root: Path, number: int) -> str:
    """Return the start of a process in ticks since boot (proc(5), field 22 of stat). The result is empty if there is no
    such process.
    """
    fields = process_fields(root / f"proc/{number}")
    return fields[19] if len(fields) > 19 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of restoring settings. The result contains texts about settings that were restored, left unchanged, or
    not restored because of an error.

    ``kept_for`` contains the settings that a run still uses.
    """

    put_back: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    kept_for: tuple[str, ...] = ()
    rebooted: bool = False


def apply_settings(settings: Sequence[Setting], owner: str = BY_COMMAND, *, root: Path = Path("/")) -> tuple[str, ...]:
    """Apply the settings whose value must change. Return each change as ``PATH: BEFORE -> AFTER``.

    If a setting fails, the other settings are still applied.

    Raises:
        DeviceError: a setting was not accepted. The other changes remain, and are recorded for a later restore.
        UsageError: the file of former values is damaged.
    """
    file = StateFile(root)
    with file.locked():
        kept = {entry.path: entry for entry in file.read_current().settings}
        for setting in _to_keep(settings):
            if setting.path in kept:
                owners = dict.fromkeys((*kept[setting.path].owners, owner))
                kept[setting.path] = replace(kept[setting.path], owners=tuple(owners))
            elif setting.wanted is None or setting.is_changed:
                assert setting.now is not None
                kept[setting.path] = ChangedSetting(
                    path=setting.path,
                    before=setting.now,
                    changed_to=setting.wanted,
                    owners=(owner,),
                    disk_sequence=setting.disk_sequence,
                )
        file.write(State(boot=file.boot, settings=tuple(kept.values())))
        changes, failures = [], []
        for setting in settings:
            if not setting.is_changed:
                continue
            assert setting.wanted is not None
            # An earlier setting may have changed this setting as well.
            if read_setting(_below(root, setting.path)) != setting.wanted:
                failure = _set(root, setting.path, setting.wanted)
                if failure is not None:
                    failures.append(failure)
                    continue
            changes.append(f"{setting.path}: {setting.now} -> {setting.wanted}")
    if failures:
        raise DeviceError("; ".join(failures))
    return tuple(changes)


def release_settings(owner: str = BY_COMMAND, *, root: Path = Path("/")) -> Restored:
    """Restore the settings that only this owner needed. Settings of owners that have ended are restored as well.

    Raises:
        DeviceError: the file of former values cannot be written or removed.
        UsageError: the file of former values is damaged.
    """
    file = StateFile(root)
    if not file.path.exists():
        return Restored()
    with file.locked():
        state = file.read()
        if state.boot != file.boot:
            file.write(State(boot=file.boot))
            return Restored(rebooted=True)
        stays: list[ChangedSetting] = []
        words_of: dict[str, list[str]] = {}
        for entry in state.settings:
            owners = tuple(name for name in entry.owners if name != owner and is_alive(name, root))
            if owners:
                stays.append(replace(entry, owners=owners))
                words_of.setdefault("kept_for", []).append(entry.path)
                continue
            outcome, words = _put_back(root, entry)
            if outcome == "failed":
                stays.append(replace(entry, owners=(BY_COMMAND,)))
            if words:
                words_of.setdefault(outcome, []).append(words)
        file.write(State(boot=state.boot, settings=tuple(stays)))
    return Restored(**{outcome: tuple(words) for outcome, words in words_of.items()})  # type: ignore[arg-type]


@contextmanager
def tuned(settings: Sequence[Setting], *, root: Path = Path("/")) -> Iterator[tuple[str, ...]]:
    """Apply settings for the duration of a run, and restore them at the end, even after an error. Yield the changes.

    Raises:
        DeviceError: a setting is not accepted, or cannot be restored.
    """
    owner = own_name(root)
    try:
        changes = apply_settings(settings, owner, root=root)
        yield changes
    except TkperfError as error:
        failed = _release_quietly(owner, root)
        if failed:
            raise type(error)("; ".join((str(error), *failed))) from error
        raise
    except BaseException:
        _release_quietly(owner, root)
        raise
    failed = release_settings(owner, root=root).failed
    if failed:
        raise DeviceError("; ".join(failed))


def _release_quietly(owner: str, root: Path) -> tuple[str, ...]:
    """Restore settings and return the failures. The function raises no error, because a failure must not hide the
    reason why the run ended.
    """
    with suppress(TkperfError):
        return release_settings(owner, root=root).failed
    return ("what tkperf had set on this host is not put back: tkperf tune --restore",)


def find_left_behind(root: Path = Path("/")) -> int:
    """Return the number of recorded settings whose owners have all ended."""
    try:
        entries = StateFile(root).read_current().settings
    except TkperfError:
        return 0
    return sum(not any(is_alive(name, root) for name in entry.owners) for entry in entries)


def _to_keep(settings: Sequence[Setting]) -> Iterator[Setting]:
    """Yield the settings to record: all settings with a wanted value that is or will be set, and the settings that
    change together with them.
    """
    schedulers = {s.drive for s in settings if s.path.endswith("/scheduler") and s.is_changed}
    for setting in settings:
        if setting.now is None or setting.offered is False:
            continue
        if setting.wanted is not None or setting.drive in schedulers:
            yield setting


def _put_back(root: Path, entry: ChangedSetting) -> tuple[str, str]:
    """Restore a setting. Return the field of ``Restored`` for the outcome, and a text. An empty text means that the
    setting already had its former value.
    """
    path = _below(root, entry.path)
    now = read_setting(path)
    if now is None:
        return "left", f"{entry.path}: it is gone"
    if _disk_sequence(path) != entry.disk_sequence:
        return "left", f"{entry.path}: another drive has that name now"
    if now == entry.before:
        return "put_back", ""
    if entry.changed_to is not None and now != entry.changed_to:
        return "left", f"{entry.path}: it was set to {now} since, it was {entry.before} before"
    failure = _set(root, entry.path, entry.before)
    if failure is not None:
        return "failed", f"{failure}; it was {entry.before} before"
    return "put_back", f"{entry.path}: {now} -> {entry.before}"


def _disk_sequence(path: Path) -> str | None:
    return text(path.parent.parent / "diskseq") if path.parent.name == "queue" else None


def _set(root: Path, name: str, value: str) -> str | None:
    """Write a setting and read it back. Return the reason for a failure. None means that the setting was accepted."""
    path = _below(root, name)
    try:
        # the file is never created, because it belongs to the kernel
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, f"{value}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        advice = ". Run tkperf as root" if isinstance(error, PermissionError) else ""
        return f"{name} does not take {value}: {reason_of(error)}{advice}"
    now = read_setting(path)
    return None if now == value else f"{name} was set to {value}, but reads {now}"


def _below(root: Path, name: str) -> Path:
    return root / name.removeprefix("/")
