"""A batch as it was asked for, in a file or on the command line, before its drives are found."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tkperf.analysis.claims_file import parse_claims
from tkperf.batch.drive_finder import DriveFinder, FoundDrive
from tkperf.batch.request import DEFAULT_TKPERF, BatchDrive, BatchRequest, BatchSettings
from tkperf.model.choices import SIMULATED
from tkperf.model.errors import DeviceError, InputFileError, TkperfError, UsageError
from tkperf.model.input_files import CLAIMS_BYTES, is_toml_path, read_text_input
from tkperf.pipeline.fitted_profile import choose_profile
from tkperf.pipeline.run_request import LONGEST_NAME, RunRequest, require_name

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._+-]+")


class DraftedDrive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A drive as the user named it, by the keys of a batch file; a text alone is its ``drive``.

    ``size``: it is a file that is created; ``host``: as SSH takes it; ``facts``: added to those of all drives.
    """

    drive: Text
    slot: Text | int | None = None
    name: Text | None = None
    size: Text | None = None
    host: Text | None = None
    facts: dict[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A batch whose drives were looked for; ``faults`` by the drive's number, from 1; ``source`` as in
    ``BatchDraft``.
    """

    request: BatchRequest
    faults: Mapping[int, TkperfError]
    source: str = ""

    def require_sound(self) -> BatchRequest:
        """Return the request if no drive has a fault.

        Raises:
            DeviceError: drives are missing.
            UsageError: a drive was given twice, or its name could be several.
        """
        if not self.faults:
            return self.request
        faults = [_place(self.source, _name_drive(self.source, number), fault) for number, fault in self.faults.items()]
        gravest = next((one for one in faults if isinstance(one, DeviceError)), faults[0])
        raise type(gravest)("; ".join(map(str, faults)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDraft:
    """A batch as it was asked for.

    Attributes:
        common: fields of ``RunRequest`` for all drives, without the device.
        drives: in their order.
        source: where it is from, for messages: ``batch lab.toml``; empty: the command line.
        folder: the folder that relative paths of drives begin in.
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
        """Find the drives and give each its run.

        Raises:
            UsageError: something that concerns all drives is wrong, or the names of runs.
        """
        # Whatever concerns all drives is said once, not for each drive.
        with self._naming():
            claims = None if self.claims_path is None else read_claims(self.claims_path)
            common = self._place_files()
            asked = [(drive.drive, (drive.size or common.get("size")) is not None) for drive in self.drives]
            # Drives of other hosts are looked for there.
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
        """Return the common fields with the paths of profile and workload files as they are from any folder."""
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
        """Add the batch file and the place in it to an error; its own text names files that are read for it."""
        try:
            yield
        except UsageError as error:
            if isinstance(error, InputFileError) or not (self.source or where):
                raise
            raise _place(self.source, where, error) from error


def _find_elsewhere(drive: DraftedDrive) -> FoundDrive:
    """Return a drive of another host by its name alone, for the name of its run."""
    name = drive.drive
    fault = None
    if "/" in name and not name.startswith(("/", SIMULATED)):
        fault = UsageError(f"'{name}' is on {drive.host}: give its whole path there")
    is_serial = "/" not in name and not name.startswith(SIMULATED)
    return FoundDrive(path=name, serial=name if is_serial else None, fault=fault)


def _place(source: str, where: str, fault: TkperfError) -> TkperfError:
    """Return a fault with its place; the call itself is right if that is a file."""
    kind: type[TkperfError] = InputFileError if source else UsageError
    if isinstance(fault, DeviceError):
        kind = DeviceError
    return kind(f"{', '.join(filter(None, (source, where)))}: {fault}")


def _name_drive(source: str, number: int) -> str:
    """Return the place of a drive: its key in the file, or its place in the call."""
    return f"drives {number}" if source else f"drive {number}"


def find_again(request: BatchRequest, names: Collection[str], finder: DriveFinder | None = None) -> BatchRequest:
    """Return a request with the paths that its drives have now: the kernel may have named them anew since.

    Args:
        names: the runs whose drives are needed; the others stay as they are.

    Raises:
        DeviceError: drives with a serial number are no longer there.
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
        raise DeviceError(f"{'; '.join(faults)}; skip a drive with --without and its name")
    return msgspec.structs.replace(request, drives=tuple(drives))


def read_claims(path: Path) -> str:
    """Return the text of a claims file that has no mistake.

    Raises:
        InputFileError: it cannot be read, or has a mistake.
    """
    text = read_text_input(path, what="claims", limit_bytes=CLAIMS_BYTES)
    parse_claims(text, file=str(path))
    return text


def _name_run(batch: str, number: int, drive: FoundDrive, taken: Collection[str]) -> str:
    """Return the name of a run: the batch's with the serial number, or with the place where that names
    no single run.
    """
    serial = _NOT_IN_A_NAME.sub("-", drive.serial or "").strip("-")
    name = f"{batch}-{serial}"
    is_fit = serial and len(name) <= LONGEST_NAME and name not in taken
    return name if is_fit else f"{batch}-{number:02}"
