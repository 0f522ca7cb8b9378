"""A batch of drives: the facts that the user saw about each drive before consent, and the progress of each drive."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from tkperf.model.choices import SIMULATED
from tkperf.model.decoding import convert
from tkperf.model.sharing import SharingState
from tkperf.model.units import drop_controls


class DriveStage(StrEnum):
    """The progress of a drive in a batch."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """An error ended the run of the drive, or the run could not begin."""
    STOPPED = "stopped"
    """The stage of a drive whose run the user stopped. The run can be resumed."""
    KILLED = "killed"
    """The process of the drive was killed, or ended without a message. The run can be resumed."""
    CONSENT_ENDED = "consent ended"
    """The drive was waiting for the start of its measurement when its process, or the process of the batch, ended.
    tkperf asks for consent again.
    """

    @property
    def has_begun(self) -> bool:
        """Return whether tkperf told the process of the drive to begin. In this case, a run file may exist."""
        return self not in (DriveStage.WAITING, DriveStage.CONSENT_ENDED)


IN_TROUBLE = (DriveStage.FAILED, DriveStage.KILLED, DriveStage.CONSENT_ENDED, DriveStage.STOPPED)
"""Stages in which the measurement of a drive ended early. ``tkperf resume`` continues with the drives in these
stages.
"""


class DriveShown(msgspec.Struct, frozen=True, kw_only=True):
    """A drive as tkperf shows it to the user before consent. The process of the drive reads these facts.

    Attributes:
        number: the number of the drive in the batch, counted from 1.
        name: the name of the run.
        host: the host to which the drive is attached. None means this host.
        slot: the slot of the drive, as the user or the host names it.
        data: the data that tkperf recognised on the drive.
        confirm_id: the text that confirms the erasure. None means that no data is lost.
        is_file: whether the target is a file and not a drive.
        link: the link of the drive in words, such as ``PCIe 4.0 x4``.
    """

    number: int
    name: str
    path: str
    capacity_bytes: int
    host: str | None = None
    slot: str | None = None
    model: str | None = None
    serial: str | None = None
    wwn: str | None = None
    firmware: str | None = None
    link: str | None = None
    data: tuple[str, ...] = ()
    confirm_id: str | None = None
    is_file: bool = False

    @property
    def is_simulated(self) -> bool:
        return self.path.startswith(SIMULATED)

    @property
    def label(self) -> str:
        """Return the name of the drive for messages: the slot with the serial number, such as ``slot 7 (S4510-17)``. If
        the serial number is not known, return the name of the run.
        """
        serial = self.serial or self.name
        if not self.slot:
            return drop_controls(serial)
        slot = self.slot if any(map(str.isalpha, self.slot)) else f"slot {self.slot}"
        return drop_controls(f"{slot} ({serial})")

    @property
    def digest(self) -> str:
        """Return a digest of everything that the user saw about the drive. The user's answer contains this digest. The
        process of the drive compares this digest with the digest of the facts that the process itself reads.
        """
        shown = json.dumps(msgspec.to_builtins(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(shown.encode()).hexdigest()


class BatchPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a drive in its batch, and the resources that the drive shared with the other drives. The process of
    the drive receives the place with the command to begin, and the run file stores the place.

    Attributes:
        name: the name of the batch.
        number: the number of the drive in the batch, counted from 1.
        others: the largest number of other drives that were measured at the same time.
        sharing: a text about the effect of the other drives on this drive's results.
        cpus: the CPUs that only this drive used. If the value is empty, the drive shared its CPUs with other drives.
    """

    name: str
    number: int
    others: int
    sharing: SharingState
    slot: str | None = None
    cpus: tuple[int, ...] = ()


class DriveState(msgspec.Struct, frozen=True, kw_only=True):
    """A drive of a batch, with its run.

    Attributes:
        run_file: path of the run file, which exists once the run has begun.
        pid: the number of the process of the drive. None means that the value is not known.
        exit_code, text: the exit code of the process, and the reason why the process ended. While the process runs, the
            code is None and the reason is empty.
        place: the place among the drives that are measured at the same time. None means that the run has not begun.
        again_file: run file of a second run, in which the drive was measured alone. None means that there is no second
            run.
    """

    shown: DriveShown
    run_file: str
    stage: DriveStage = DriveStage.WAITING
    pid: int | None = None
    exit_code: int | None = None
    text: str = ""
    started_utc: str | None = None
    ended_utc: str | None = None
    place: BatchPlace | None = None
    again_file: str | None = None

    @property
    def outcome(self) -> str:
        """Return the progress of the drive, with the reason, such as ``failed: no space left`` or
        ``stopped by the user``.
        """
        if self.stage is DriveStage.STOPPED and self.text.startswith(self.stage):
            # The rest of the text repeats commands for the run of this drive. The user needs the commands for the batch
            # instead.
            return drop_controls(self.text.split("; ")[0])
        return drop_controls(": ".join(filter(None, (self.stage, self.text))))


def find_place(host: Mapping[str, object]) -> BatchPlace | None:
    """Return the place of a run in its batch. ``host`` contains the facts about the host of the run, as the run file
    stores them. None means that the run was not part of a batch, or that the place is not known.
    """
    kept = host.get("batch")
    try:
        return None if kept is None else convert(kept, BatchPlace)
    except msgspec.ValidationError:  # The file is damaged.
        return None


class ConnectedHost(msgspec.Struct, frozen=True, kw_only=True, tag="host"):
    """A host of a batch, as tkperf found it at the last connection. The ledger of the batch contains this record as one
    line.

    Attributes:
        host: the name that is passed to SSH.
        tkperf: the path of tkperf on the host.
        boot_id: an identifier that changes whenever the host is booted.
        ahead_s: the clock of the host minus the clock of this machine, in seconds. The uncertainty of this difference
            is ``within_s``.
    """

    host: str
    tkperf: str
    boot_id: str
    fio_version: str | None
    ahead_s: float
    within_s: float


class SnapshotMark(msgspec.Struct, frozen=True, kw_only=True):
    """The mark in a run file that was copied from another host, during the run or after the run.

    Attributes:
        host: the name of the host in the batch.
        utc: time of the copy, according to the clock of the machine on which the batch runs.
        ahead_s: the clock of the host minus the clock of that machine, in seconds. The times in the file are times of
            the host's clock.
        running: whether the run continued after the copy.
    """

    host: str
    utc: str
    ahead_s: float
    running: bool

    @property
    def words(self) -> str:
        """Return the time and the place of the snapshot: ``as of 2026-11-27T12:00:03+00:00 from user@lab3``."""
        return drop_controls(f"as of {self.utc} from {self.host}")


def find_snapshot(host: Mapping[str, object]) -> SnapshotMark | None:
    """Return the mark of a copied run file (snapshot). ``host`` contains the facts about the host of the run, as the
    run file stores them. None means that the file is not a snapshot, or has no such mark.
    """
    kept = host.get("snapshot")
    try:
        return None if kept is None else convert(kept, SnapshotMark)
    except msgspec.ValidationError:  # The file is damaged.
        return None


class BatchState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a batch according to its ledger.

    Attributes:
        path: the ledger, NAME.batch.
        began_utc: the time at which the user confirmed the drives.
        supervisor: the number (PID) of the process that starts the runs of the drives. None means that no such process
            runs.
        claims: text of the claims file. None means that the batch has no claims file.
        claims_path: path of the claims file, for messages and to find the baseline.
        notes: notes about the whole batch, such as budgets, and the read rates of drives alone and together.
    """

    name: str
    path: str
    drives: tuple[DriveState, ...]
    began_utc: str | None = None
    supervisor: int | None = None
    claims: str | None = None
    claims_path: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_under_way(self) -> bool:
        """Return whether a drive is being measured or waits for its measurement. A second measurement, in which the
        drive runs alone, counts as well. If another machine follows the batch, the result describes the last known
        state.
        """
        return self.supervisor is not None or any(
            drive.stage is DriveStage.RUNNING and drive.shown.host is None for drive in self.drives
        )
