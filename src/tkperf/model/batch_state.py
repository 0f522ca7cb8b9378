"""A batch of drives: what the user saw of each drive before consent, and the progress of each drive."""

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
    """How far a drive of a batch has come."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """An error ended its run, or it could not begin."""
    STOPPED = "stopped"
    """The user stopped its run, which can be resumed."""
    KILLED = "killed"
    """The drive's process was killed, or ended without a message. The run can be resumed."""
    CONSENT_ENDED = "consent ended"
    """The drive was waiting for its turn when its process or the batch's ended. tkperf asks for consent again."""

    @property
    def has_begun(self) -> bool:
        """Return whether the drive was given the word to begin, so that there may be a run file."""
        return self not in (DriveStage.WAITING, DriveStage.CONSENT_ENDED)


IN_TROUBLE = (DriveStage.FAILED, DriveStage.KILLED, DriveStage.CONSENT_ENDED, DriveStage.STOPPED)
"""Stages of drives that were not measured to their end and are no longer measured: ``tkperf resume`` goes on with them.
"""


class DriveShown(msgspec.Struct, frozen=True, kw_only=True):
    """A drive as its own process found it, and as the user sees it before consent.

    Attributes:
        number: the place of the drive in the batch, from 1.
        name: the name of the run.
        host: the host that the drive is attached to; None: this host.
        slot: the slot of the drive, from the user or from the host.
        data: the data that tkperf recognised on the drive.
        confirm_id: the text that confirms the erasure; None: no data is lost.
        is_file: the target is a file and not a drive.
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
        """Its name for people, by its slot and serial number: ``slot 7 (S4510-17)``, without a serial number by its
        run.
        """
        serial = self.serial or self.name
        if not self.slot:
            return drop_controls(serial)
        slot = self.slot if any(map(str.isalpha, self.slot)) else f"slot {self.slot}"
        return drop_controls(f"{slot} ({serial})")

    @property
    def digest(self) -> str:
        """Digest of everything shown: the answer carries it, and the drive's process compares it."""
        shown = json.dumps(msgspec.to_builtins(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(shown.encode()).hexdigest()


class BatchPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a drive in its batch, as its process gets it with the word to begin and its run file has it.

    Attributes:
        name: the batch's name.
        number: the drive's place in it, from 1.
        others: drives that were measured at the same time, at most.
        sharing: what is known of their effect.
        cpus: the CPUs of its own; empty: it shared them.
    """

    name: str
    number: int
    others: int
    sharing: SharingState
    slot: str | None = None
    cpus: tuple[int, ...] = ()


class DriveState(msgspec.Struct, frozen=True, kw_only=True):
    """A drive of a batch and its run.

    Attributes:
        run_file: path of its run file, which exists once the run has begun.
        pid: its process; None: none is known.
        exit_code, text: how its process ended, and why; None and empty before.
        place: its place among the drives that are measured at the same time; None: it has not begun.
        again_file: run file of its second run, alone; None: there is none.
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
        """How far it has come, and why: ``failed: no space left``, ``stopped by the user``."""
        if self.stage is DriveStage.STOPPED and self.text.startswith(self.stage):
            # The rest repeats commands for its run; the batch has its own.
            return drop_controls(self.text.split("; ")[0])
        return drop_controls(": ".join(filter(None, (self.stage, self.text))))


def find_place(host: Mapping[str, object]) -> BatchPlace | None:
    """Return the place of a run in its batch by the facts of its host; None: it was measured by itself, or it is not
    known.
    """
    kept = host.get("batch")
    try:
        return None if kept is None else convert(kept, BatchPlace)
    except msgspec.ValidationError:  # of a damaged file
        return None


class ConnectedHost(msgspec.Struct, frozen=True, kw_only=True, tag="host"):
    """A host of a batch as it was met last; also a line of the batch's ledger.

    Attributes:
        host: the name that SSH gets.
        tkperf: the path of tkperf there.
        boot_id: changes whenever the host is booted.
        ahead_s: how far its clock is ahead of the one here, in seconds, known within ``within_s``.
    """

    host: str
    tkperf: str
    boot_id: str
    fio_version: str | None
    ahead_s: float
    within_s: float


class SnapshotMark(msgspec.Struct, frozen=True, kw_only=True):
    """Mark of a run file that was copied from another host, while its run went on or afterwards.

    Attributes:
        host: the host, by the name that was given to the batch.
        utc: when, by the clock of the batch's host.
        ahead_s: how far the host's clock, which the times in the file are by, is ahead of that one.
        running: its run continued.
    """

    host: str
    utc: str
    ahead_s: float
    running: bool

    @property
    def words(self) -> str:
        """Time and place of the snapshot: ``as of 2026-11-27T12:00:03+00:00 from user@lab3``."""
        return drop_controls(f"as of {self.utc} from {self.host}")


def find_snapshot(host: Mapping[str, object]) -> SnapshotMark | None:
    """Return the mark of a snapshot from the facts of a run's host; None: the file is no snapshot, or
    has no such mark.
    """
    kept = host.get("snapshot")
    try:
        return None if kept is None else convert(kept, SnapshotMark)
    except msgspec.ValidationError:  # of a damaged file
        return None


class BatchState(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as its ledger has it.

    Attributes:
        path: the ledger, NAME.batch.
        began_utc: when the drives were confirmed.
        supervisor: the process that begins drives; None: none runs.
        claims: text of the claims file; None: the batch has none.
        claims_path: the file, for messages and for the path of a baseline.
        notes: what the whole batch says: budgets, drives that were read alone and together.
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
        """Return whether a drive is measured, waits for its turn, or is measured once more, alone; elsewhere: as far as
        a process follows.
        """
        return self.supervisor is not None or any(
            drive.stage is DriveStage.RUNNING and drive.shown.host is None for drive in self.drives
        )
