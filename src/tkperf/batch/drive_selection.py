"""The drives that one call of a batch begins, and whether their results have a place."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tkperf.batch.draft import find_again
from tkperf.batch.ledger import Ledger
from tkperf.batch.request import BatchRequest
from tkperf.model.batch_state import DriveStage
from tkperf.model.errors import RunFileError, UsageError
from tkperf.pipeline.run_to_file import Destination
from tkperf.pipeline.running_runs import outline_first
from tkperf.runfile.writers import is_being_written


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveSelection:
    """The drives that one call begins: all of a new batch, or the rest of one that goes on.

    Attributes:
        numbers: their places in the request.
        resumed: those whose run file goes on.
        running: drives that another process of the batch still measures.
    """

    request: BatchRequest
    numbers: tuple[int, ...]
    resumed: frozenset[int] = frozenset()
    running: frozenset[int] = frozenset()


def choose_all(request: BatchRequest, ledger_path: Path, folder: Path, written: Iterable[Path]) -> DriveSelection:
    """Return all drives of a new batch.

    Args:
        folder: that of the run files.
        written: all files that the batch and its runs may write.

    Raises:
        RunFileError: a name is taken or the folder cannot be written to; the message has all names.
    """
    faults = []
    if os.path.lexists(ledger_path):
        faults.append(f"{ledger_path} exists: continue it with 'tkperf resume {ledger_path}', or choose another NAME")
    targets = {os.path.realpath(path) for path in written}
    for drive, name in request.run_names:
        device = drive.request.device
        try:
            if os.path.realpath(device) in targets:
                raise RunFileError(f"{device} is a file that the batch would write to: choose another NAME")
            Destination(name=name, folder=folder).require_free(device)
        except RunFileError as error:
            faults.append(str(error))
    if faults:
        # The folder's fault is that of all drives.
        raise RunFileError("; ".join(dict.fromkeys(faults)))
    return DriveSelection(request=request, numbers=tuple(range(1, len(request.drives) + 1)))


def choose_rest(ledger: Ledger, without: Collection[str] = ()) -> DriveSelection:
    """Return the drives of a batch that are neither done nor under way.

    Args:
        without: names of runs whose drives are left out.

    Raises:
        RunFileError: the ledger cannot be read.
        DeviceError: a drive that is left to measure is not there.
        UsageError: nothing is left to do, or no run has a name of ``without``.
    """
    request, state = ledger.read().begun.request, ledger.read_state()
    if unknown := sorted(set(without) - {drive.name for drive in request.drives}):
        raise UsageError(f"--without {unknown[0]}: the batch has no such run")
    rest = [
        drive
        for drive in state.drives
        if drive.stage not in (DriveStage.DONE, DriveStage.RUNNING) and drive.shown.name not in without
    ]
    if not rest:
        raise UsageError(f"{ledger.path}: no drive is left to measure; see tkperf show {ledger.path}")
    return DriveSelection(
        request=find_again(request, {drive.shown.name for drive in rest}),
        numbers=tuple(drive.shown.number for drive in rest),
        resumed=frozenset(drive.shown.number for drive in rest if _goes_on(Path(drive.run_file))),
        running=frozenset(drive.shown.number for drive in state.drives if drive.stage is DriveStage.RUNNING),
    )


def _goes_on(run_file: Path) -> bool:
    """Return whether a run has a beginning. A file without one, left by a process that was killed, is removed."""
    if not run_file.exists():
        return False
    if run_file.stat().st_size and outline_first(run_file).record.planned:
        return True
    if is_being_written(run_file):  # another process goes on with the batch just now
        return True
    run_file.unlink()
    return False
