"""tkperf measures block devices by the SNIA Performance Test Specification.

From Python, ``tkperf.make_plan`` and ``tkperf.run`` measure, ``tkperf.load`` reads results;
docs/python-api.md has examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from tkperf.model.errors import TkperfError

if TYPE_CHECKING:
    from tkperf.analysis.results import RunResult
    from tkperf.pipeline.consent import Ask
    from tkperf.pipeline.request import Wishes
    from tkperf.pipeline.run_plan import RunPlan
    from tkperf.runfile.reader import RunFile
    from tkperf.runner.events import Observer

__version__ = "3.0.0.dev0"
__all__ = ["TkperfError", "__version__", "load", "make_plan", "open_run", "run"]


def load(path: str | Path) -> RunResult:
    """The results of a run file: what reports show, as typed data; None is "not measured".

    Raises:
        RunFileError: the file is missing, damaged, or no run file.
    """
    # The command line starts faster without what only this needs.
    from tkperf.analysis.over_seconds import analyse_opened  # noqa: PLC0415

    with open_run(path) as run_file:
        record = run_file.record()
        return analyse_opened(run_file, record)


def open_run(path: str | Path) -> RunFile:
    """A run file itself, for its steps, seconds, jobs and what fio printed; close it after use.

    Raises:
        RunFileError: the file is missing, damaged, or no run file.
    """
    from tkperf.runfile.reader import RunFile  # noqa: PLC0415

    return RunFile(Path(path))


def make_plan(suite: str, device: str | Path, **wishes: Unpack[Wishes]) -> RunPlan:
    """What would run on a device: looked at and checked, nothing asked, created or written.

    Args:
        suite: ``ssd``, ``hdd`` or ``raid``.
        device: a block device, a file, ``sim:PRESET``, or the node that a RAID set is to get.
        wishes: fields of ``tkperf.pipeline.request.RunRequest`` by name: ``tests``, ``profile``, ``jobs``,
            ``io_depth``, ``step_s``, ``active_range``, ``size``, ``no_purge``, ``raid`` ...

    Raises:
        UsageError: a wish is impossible, or the device cannot fulfil it.
        DeviceError: the device is missing or cannot be measured or purged.
        RefusedError: it is in use.
    """
    from tkperf.pipeline.request import RunRequest  # noqa: PLC0415
    from tkperf.pipeline.run_plan import make_plan  # noqa: PLC0415

    return make_plan(RunRequest(suite=suite, device=str(device), **wishes))


def run(
    plan: RunPlan,
    name: str,
    *,
    folder: str | Path = ".",
    confirm: str | None = None,
    ask: Ask | None = None,
    observers: Sequence[Observer] = (),
    description: str | None = None,
) -> RunResult:
    """Execute a plan, keep everything in ``NAME.tkperf``, and return the results.

    Args:
        name: of the run file, and in every report.
        folder: where the run file goes; created if need be.
        confirm: ``plan.confirm_id``, given by whoever knows that this data may be destroyed.
        ask: instead, a function that asks somebody and returns the answer.
        observers: functions that get every event of the run (``tkperf.runner.events``).
        description: text about the device for the report.

    Raises:
        RefusedError: no consent, or somebody uses the device; nothing was touched.
        RunFileError: the name is taken, or the folder has no room.
        TkperfError: what ended the run early; everything measured is in the run file.
    """
    from tkperf.pipeline.api import run as run_plan  # noqa: PLC0415

    return run_plan(
        plan,
        name,
        folder=folder,
        confirm=confirm,
        ask=ask,
        observers=observers,
        description=description,
    )
