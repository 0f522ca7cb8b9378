"""The Python API, which can plan, run and resume with one call each, and can read the results of run files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tkperf.analysis.claim_results import Checked
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import ClaimsFile, parse_claims
from tkperf.analysis.results import RunResult
from tkperf.model.errors import UsageError
from tkperf.model.input_files import CLAIMS_BYTES, read_text_input
from tkperf.pipeline.consent import Ask, Consent
from tkperf.pipeline.result_cache import read_results
from tkperf.pipeline.resume_plan import ResumePlan
from tkperf.pipeline.run_disclosure import RunTitle
from tkperf.pipeline.run_plan import RunPlan, plan_run
from tkperf.pipeline.run_request import RunRequest
from tkperf.pipeline.run_to_file import Destination, resume_to_file, run_to_file
from tkperf.runfile.reader import RunFile
from tkperf.runner.events import Observer


def load(path: str | Path) -> RunResult:
    """Return the results of a run file as typed data. They are the same results as in reports. None means "not
    measured".

    Raises:
        RunFileError: the file is missing, damaged, or not a run file.
    """
    return read_results(Path(path))


def open_run(path: str | Path) -> RunFile:
    """Open a run file to read its steps, seconds, jobs and fio's output. Close the returned object after use.

    Raises:
        RunFileError: the file is missing, damaged, or not a run file.
    """
    return RunFile(Path(path))


def make_plan(suite: str, device: str | Path, **options: Any) -> RunPlan:
    """Plan a run on a device: examine the device and check the request. The function asks no question, and creates and
    writes nothing.

    Args:
        suite: ``ssd``, ``hdd`` or ``raid``.
        device: a block device, a file, ``sim:PRESET``, or the node for a new RAID set.
        options: fields of ``tkperf.pipeline.run_request.RunRequest`` by name: ``tests``, ``profile``, ``jobs``,
            ``io_depth``, ``step_s``, ``active_range``, ``size``, ``no_purge``, ``raid`` ...

    Raises:
        UsageError: an option does not exist or is impossible, or the device does not support the option.
        DeviceError: the device is missing, or cannot be measured or purged.
        RefusedError: the device is in use.
    """
    try:
        request = RunRequest(suite=suite, device=str(device), **options)
    except TypeError as error:
        raise UsageError(f"make_plan: {error}") from None
    return plan_run(request)


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
    """Execute a plan, store all data in ``NAME.tkperf``, and return the results.

    Args:
        plan: a plan that was just made. The run examines the device again before it writes to the device.
        name: name of the run file. Every report shows this name.
        folder: folder of the run file. The folder is created if it does not exist.
        confirm: the value of ``plan.confirm_id``. Pass this value only if you know that the data on the device may be
            destroyed.
        ask: a function that asks the user and returns the answer. tkperf calls this function only if ``confirm`` is
            None.
        observers: functions that receive every event of the run (``tkperf.runner.events``). They are called in the
            thread of the run, so they must return quickly. An observer that raises a ``TkperfError`` ends the run.
        description: text about the device for the report.

    Raises:
        RefusedError: the consent is missing, or the device is in use. The device was not changed.
        RunFileError: the name is in use, or the folder has too little free space.
        TkperfError: an error ended the run early. The run file contains everything that was measured.
    """
    destination = Destination(name=name, folder=Path(folder))
    destination.require_free(plan.request.device)
    destination.require_space(plan.fitted)

    title = RunTitle(name=name, command_line=tuple(sys.argv), description=description)
    with plan.dut.open(plan.fitted, Consent(confirm=confirm, ask=ask)) as equipment:
        run_to_file(plan, equipment, destination, title, watch=lambda _: nullcontext(observers))
    return load(destination.run_path)


def resume(
    plan: ResumePlan, *, confirm: str | None = None, ask: Ask | None = None, observers: Sequence[Observer] = ()
) -> RunResult:
    """Continue a run in its own run file, and return the results of the whole run.

    Args:
        plan: a plan that ``tkperf.pipeline.resume_plan.make_resume_plan`` has just made.
        confirm, ask, observers: see ``run``.

    Raises:
        RefusedError: the consent is missing, or the device is in use. The device was not changed.
        RunFileError: the run file was changed after the plan was made, or cannot be written to.
        TkperfError: an error ended the run early. The run file contains everything that was measured.
    """
    path = plan.request.path
    destination = Destination(name=path.stem, folder=path.parent)
    destination.require_space(plan.plan.fitted)

    with plan.plan.dut.open(plan.plan.fitted, Consent(confirm=confirm, ask=ask)) as equipment:
        resume_to_file(plan, equipment, destination, tuple(sys.argv), watch=lambda _: nullcontext(observers))
    return load(path)


def read_claims(claims_file: Path) -> ClaimsFile:
    """Return the content of a claims file. Raise UsageError if the file cannot be read."""
    text = read_text_input(claims_file, what="the claims", limit_bytes=CLAIMS_BYTES)
    return parse_claims(text, file=str(claims_file))


def read_and_check(claims_file: Path, result: RunResult) -> Checked:
    """Read a claims file and check a run against it.

    Raises:
        UsageError, RunFileError: the file cannot be read or contains no claim, or its baseline cannot be read.
    """
    claims = read_claims(claims_file)
    return check_claims(claims, result, load=load, folder=claims_file.parent)
