"""A batch as a file or the command line requests it, before tkperf searches for its drives."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec

from tkperf.analysis.claims_file import parse_claims
from tkperf.batch.drive_finder import MOST_DRIVES, DriveFinder, FoundDrive
from tkperf.batch.ledger import Ledger
from tkperf.batch.request import DEFAULT_TKPERF, BatchDrive, BatchRequest, BatchSettings, parse_seconds
from tkperf.model.batch_state import DriveStage
from tkperf.model.choices import NO_BATCH_OF_SETS, SIMULATED
from tkperf.model.errors import DeviceError, InputFileError, RunFileError, TkperfError, UsageError
from tkperf.model.input_files import CLAIMS_BYTES, SETTINGS_BYTES, is_toml_path, read_text_input
from tkperf.model.strict import convert_strictly, decode_strictly, shallow
from tkperf.pipeline.fitted_profile import choose_profile
from tkperf.pipeline.run_request import LONGEST_NAME, RunRequest, require_name
from tkperf.pipeline.run_to_file import Destination
from tkperf.pipeline.running_runs import outline_first
from tkperf.runfile.writers import delete_run_file, is_being_written, require_own_input

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._+-]+")


class DraftedDrive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A drive as the user named it, with the keys of a batch file. If a batch file contains a text instead of this
    table, the text is the value of the key ``drive``.

    ``size`` means that the drive is a file, which tkperf creates with this size. ``host`` is the name that is passed to
    SSH. ``facts`` are facts about this drive, in addition to the facts about all drives.
    """

    drive: Text
    slot: Text | int | None = None
    name: Text | None = None
    size: Text | None = None
    host: Text | None = None
    facts: dict[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A batch after the search for its drives. ``faults`` maps the number of a drive to the fault of this drive. The
    first drive has the number 1. For ``source``, see ``BatchDraft``.
    """

    request: BatchRequest
    faults: Mapping[int, TkperfError]
    source: str = ""

    def require_sound(self) -> BatchRequest:
        """Return the request if no drive has a fault.

        Raises:
            DeviceError: drives are missing.
            UsageError: a drive was given twice, or its name matches several drives.
        """
        if not self.faults:
            return self.request
        faults = [_place(self.source, _name_drive(self.source, number), fault) for number, fault in self.faults.items()]
        gravest = next((one for one in faults if isinstance(one, DeviceError)), faults[0])
        raise type(gravest)("; ".join(map(str, faults)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDraft:
    """A batch as the user requested it.

    Attributes:
        common: fields of ``RunRequest`` for all drives, without the device.
        drives: the drives in their order.
        source: the source of the request, for messages, such as ``batch lab.toml``. An empty value means the command
            line.
        folder: the folder to which paths of drives are relative.
        claims_path: a claims file.
        tkperf: the path of tkperf on the hosts of the drives.
    """

    common: Mapping[str, Any]
    drives: tuple[DraftedDrive, ...]
    source: str = ""
    folder: Path = Path()
    settings: BatchSettings = field(default_factory=BatchSettings)
    claims_path: Path | None = None
    tkperf: str = DEFAULT_TKPERF

    def settle(self, name: str, finder: DriveFinder | None = None) -> Settled:
        """Find the drives, and return the batch with a run for each drive. Raise UsageError if a setting for all drives
        or the name of a run is wrong.
        """
        # A fault that concerns all drives is reported once, not for each drive.
        with self._naming():
            claims = None if self.claims_path is None else read_claims(self.claims_path)
            common = self._place_files()
            asked = [(drive.drive, (drive.size or common.get("size")) is not None) for drive in self.drives]
            # Each host searches for its own drives.
            if any(drive.host is not None for drive in self.drives):
                found = tuple(map(_find_elsewhere, self.drives))
            else:
                found = (finder or DriveFinder(folder=self.folder)).find(asked)
            choose_profile(RunRequest(device=asked[0][0], **common))
        drives: list[BatchDrive] = []
        faults: dict[int, TkperfError] = {}
        for number, (drive, one) in enumerate(zip(self.drives, found, strict=True), start=1):
            own: dict[str, Any] = {"facts": {**common.get("facts", {}), **drive.facts}}
            if drive.size is not None:
                own["size"] = drive.size
            with self._naming(_name_drive(self.source, number)):
                run = RunRequest(device=one.path, **{**common, **own})
            if one.fault is not None:
                faults[number] = one.fault
            if drive.name is not None:
                with self._naming(f"{_name_drive(self.source, number)}, key name"):
                    require_name(drive.name)
            taken = {other.name for other in drives}
            drives.append(
                BatchDrive(
                    name=drive.name or _name_run(name, number, one, taken),
                    request=run,
                    given=drive.drive,
                    slot=None if drive.slot is None else str(drive.slot),
                    serial=one.serial if drive.host is None else None,
                    host=drive.host,
                )
            )
        with self._naming():
            request = BatchRequest(
                name=name,
                drives=tuple(drives),
                claims=claims,
                claims_path=None if self.claims_path is None else str(self.claims_path.absolute()),
                tkperf=self.tkperf,
                **msgspec.structs.asdict(self.settings),
            )
        return Settled(request=request, faults=faults, source=self.source)

    def _place_files(self) -> dict[str, Any]:
        """Return the common fields. The paths of profile and workload files are made absolute, so that they are valid
        in any folder.
        """
        common = {**self.common, "strict": self.settings.strict or self.common.get("strict", False)}
        if isinstance(profile := common.get("profile"), str):
            common["profile"] = self._from_here(profile)
        common["tests"] = tuple(map(self._from_here, common.get("tests", ())))
        return common

    def _from_here(self, name_or_path: str) -> str:
        if not is_toml_path(name_or_path):
            return name_or_path
        return str(self.folder.absolute() / name_or_path)

    @contextmanager
    def _naming(self, where: str = "") -> Iterator[None]:
        """Add the name of the batch file, and the place in this file, to an error. An InputFileError is not changed,
        because it already names the faulty file to which the batch file refers.
        """
        try:
            yield
        except UsageError as error:
            if isinstance(error, InputFileError) or not (self.source or where):
                raise
            raise _place(self.source, where, error) from error


def _find_elsewhere(drive: DraftedDrive) -> FoundDrive:
    """Return a drive of another host. tkperf knows only the name of this drive, and derives the name of the run from
    the name of the drive.
    """
    name = drive.drive
    fault = None
    if "/" in name and not name.startswith(("/", SIMULATED)):
        fault = UsageError(
            f"'{name}' is a relative path, but the drive is on {drive.host}. Write the absolute path of the drive on "
            "that host"
        )
    is_serial = "/" not in name and not name.startswith(SIMULATED)
    return FoundDrive(path=name, serial=name if is_serial else None, fault=fault)


def _place(source: str, where: str, fault: TkperfError) -> TkperfError:
    """Return a fault whose message names the place of the fault. A fault in a batch file becomes an
    InputFileError, unless the fault is a DeviceError.
    """
    kind: type[TkperfError] = InputFileError if source else UsageError
    if isinstance(fault, DeviceError):
        kind = DeviceError
    return kind(f"{', '.join(filter(None, (source, where)))}: {fault}")


def _name_drive(source: str, number: int) -> str:
    """Return the place of a drive: its key in the file, or its position in the command line."""
    return f"drives {number}" if source else f"drive {number}"


def find_again(request: BatchRequest, names: Collection[str], finder: DriveFinder | None = None) -> BatchRequest:
    """Return the request with the current paths of the drives. The kernel may have renamed the drives in the meantime.

    Args:
        names: the runs whose drives are needed. The other drives do not change.
    """
    finder = finder or DriveFinder(folder=Path())
    drives, faults = [], []
    for drive in request.drives:
        device = drive.request.device
        try:
            if drive.serial is not None and drive.name in names:
                device = finder.find_again(device, drive.serial)
        except DeviceError as error:
            faults.append(f"{drive.name}: {error}")
        run = msgspec.structs.replace(drive.request, device=device)
        drives.append(msgspec.structs.replace(drive, request=run))
    if faults:
        raise DeviceError(f"{'; '.join(faults)}. To skip a drive, pass --without and the name of its run")
    return msgspec.structs.replace(request, drives=tuple(drives))


def read_claims(path: Path) -> str:
    """Return the text of a claims file after a check that it contains no mistake.

    Raises:
        InputFileError: the file cannot be read, or contains a mistake.
    """
    text = read_text_input(path, what="claims", limit_bytes=CLAIMS_BYTES)
    parse_claims(text, file=str(path))
    return text


def _name_run(batch: str, number: int, drive: FoundDrive, taken: Collection[str]) -> str:
    """Return the name of a run. The name consists of the name of the batch and the serial number of the drive. If the
    serial number is not known, or if this name is too long or belongs to another run, the name consists of the name of
    the batch and the number of the drive.
    """
    serial = _NOT_IN_A_NAME.sub("-", drive.serial or "").strip("-")
    name = f"{batch}-{serial}"
    is_fit = serial and len(name) <= LONGEST_NAME and name not in taken
    return name if is_fit else f"{batch}-{number:02}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveSelection:
    """The drives that one command starts: all drives of a new batch, or the remaining drives of a batch that
    continues.

    Attributes:
        numbers: the numbers of the drives in the request.
        resumed: the drives whose run files are continued.
        running: drives that another process of the batch is still measuring.
    """

    request: BatchRequest
    numbers: tuple[int, ...]
    resumed: frozenset[int] = frozenset()
    running: frozenset[int] = frozenset()


def choose_all(request: BatchRequest, ledger_path: Path, folder: Path, written: Iterable[Path]) -> DriveSelection:
    """Return all drives of a new batch.

    Args:
        folder: the folder of the run files.
        written: all files that the batch and its runs may write.

    Raises:
        RunFileError: a name is in use, or the folder cannot be written to. The message contains all names.
    """
    faults = []
    if os.path.lexists(ledger_path):
        faults.append(f"{ledger_path} exists: continue it with 'tkperf resume {ledger_path}', or choose another NAME")
    targets = {os.path.realpath(path) for path in written}
    for drive, name in request.run_names:
        device = drive.request.device
        try:
            if os.path.realpath(device) in targets:
                raise RunFileError(
                    f"the batch would write results to {device}, which is one of the files to be measured. Choose "
                    "another NAME"
                )
            Destination(name=name, folder=folder).require_free(device)
        except RunFileError as error:
            faults.append(str(error))
    if faults:
        # A fault of the folder is the same for all drives, so it is reported once.
        raise RunFileError("; ".join(dict.fromkeys(faults)))
    return DriveSelection(request=request, numbers=tuple(range(1, len(request.drives) + 1)))


def choose_rest(ledger: Ledger, without: Collection[str] = ()) -> DriveSelection:
    """Return the drives of a batch that have not finished and that are not running.

    Args:
        without: names of runs whose drives are omitted.

    Raises:
        RunFileError: the ledger cannot be read.
        DeviceError: a remaining drive is missing.
        UsageError: no drive remains, or a name in ``without`` is not the name of a run.
    """
    request, state = ledger.read().begun.request, ledger.read_state()
    if unknown := sorted(set(without) - {drive.name for drive in request.drives}):
        raise UsageError(
            f"--without {unknown[0]}: the batch has no run with this name. Show the names with "
            f"'tkperf status {ledger.path}'"
        )
    rest = [
        drive
        for drive in state.drives
        if drive.stage not in (DriveStage.DONE, DriveStage.RUNNING) and drive.shown.name not in without
    ]
    if not rest:
        raise UsageError(
            f"{ledger.path}: every drive is done, so nothing remains to be measured. Show the results with 'tkperf "
            f"show {ledger.path}'"
        )
    return DriveSelection(
        request=find_again(request, {drive.shown.name for drive in rest}),
        numbers=tuple(drive.shown.number for drive in rest),
        resumed=frozenset(drive.shown.number for drive in rest if _goes_on(Path(drive.run_file))),
        running=frozenset(drive.shown.number for drive in state.drives if drive.stage is DriveStage.RUNNING),
    )


def _goes_on(run_file: Path) -> bool:
    """Return whether a run file contains the beginning of a run, or is being written. If a process was killed before it
    had stored the beginning of a run, delete the run file and its journal.
    """
    if not run_file.exists():
        return False
    if run_file.stat().st_size and outline_first(run_file).record.planned:
        return True
    if is_being_written(run_file):  # another process is continuing the batch
        return True
    delete_run_file(run_file)
    return False


# Fields of a run that have their own keys in a batch file, or that apply only to RAID sets.
_NOT_OPTIONS = ("suite", "device", "tests", "profile", "raid", "remove_set")


class BatchFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a batch file. ``options`` contains fields of ``RunRequest``."""

    suite: Literal["ssd", "hdd"]
    drives: Annotated[tuple[DraftedDrive, ...], msgspec.Meta(min_length=1, max_length=MOST_DRIVES)]
    tests: tuple[Text, ...] = ()
    profile: Text | None = None
    claims: Text | None = None
    parallel: Literal["auto", "all"] | Annotated[int, msgspec.Meta(ge=1, le=MOST_DRIVES)] = "auto"
    stagger: Text | Annotated[float, msgspec.Meta(ge=0)] = 0.0
    strict: bool = False
    compare_reads: bool = True
    alone_again: bool = False
    own_cpus: bool = True
    tkperf: Text = DEFAULT_TKPERF
    options: dict[str, Any] = {}


def read_batch_file(path: Path) -> BatchDraft:
    """Read a batch file that only root and the effective user can have written.

    Raises:
        InputFileError: the file cannot be read or contains a mistake. The message names the file and the key.
        RefusedError: another user may have written the file.
    """
    require = partial(require_own_input, path)
    text = read_text_input(path, what="batch", limit_bytes=SETTINGS_BYTES, check=require)
    return parse_batch_file(text, path)


def parse_batch_file(text: str, path: Path) -> BatchDraft:
    """Return the batch that a batch file describes. Errors contain ``path``. Relative paths in the file start at its
    folder.
    """
    source = f"batch {path}"

    def parse() -> object:
        return _with_tables(tomllib.loads(shallow(text)), source)

    file = decode_strictly(parse, BatchFile, what=source, language="TOML")
    options = convert_strictly(file.options, _options_type(), what=f"{source}, options")
    common = {"suite": file.suite, "tests": file.tests, "profile": file.profile}
    common |= {key: getattr(options, key) for key in file.options}
    _require_possible(common, source)
    stagger = file.stagger
    try:
        stagger_s = parse_seconds(stagger) if isinstance(stagger, str) else stagger
    except UsageError as error:
        raise InputFileError(f"{source}, key stagger: {error}") from None
    return BatchDraft(
        source=source,
        folder=path.parent,
        common=common,
        drives=file.drives,
        settings=BatchSettings(
            parallel=file.parallel,
            stagger_s=stagger_s,
            strict=file.strict,
            compare_reads=file.compare_reads,
            alone_again=file.alone_again,
            own_cpus=file.own_cpus,
        ),
        claims_path=None if file.claims is None else path.parent / file.claims,
        tkperf=file.tkperf,
    )


def _with_tables(data: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the data of a batch file in which each drive is a table."""
    if data.get("suite") == "raid":
        raise InputFileError(f"{source}, key suite: {NO_BATCH_OF_SETS}")
    drives = data.get("drives")
    if isinstance(drives, list):
        data["drives"] = [{"drive": one} if isinstance(one, str) else one for one in drives]
    return data


@cache
def _options_type() -> type[msgspec.Struct]:
    """Return the type of the table ``options``. Its keys are the fields of a run for which the batch file has no other
    key.
    """
    hints = get_type_hints(RunRequest)
    fields = [
        (field.name, hints[field.name], msgspec.field(default=None))
        for field in msgspec.structs.fields(RunRequest)
        if field.name not in _NOT_OPTIONS
    ]
    return msgspec.defstruct("Options", fields, frozen=True, kw_only=True, forbid_unknown_fields=True)


def _require_possible(common: dict[str, Any], source: str) -> None:
    """Raise InputFileError if a value is impossible for every run. The message contains the key of the value."""
    device = "sim:"
    try:
        RunRequest(device=device, **common)
    except UsageError as error:
        whole = str(error)
    else:
        return
    suite = common["suite"]
    for key, value in common.items():
        try:
            RunRequest(**{"suite": suite, "device": device, key: value})
        except UsageError as error:
            name = key if key in _NOT_OPTIONS else f"options.{key}"
            raise InputFileError(f"{source}, key {name}: {error}") from None
    raise InputFileError(f"{source}: {whole}")
