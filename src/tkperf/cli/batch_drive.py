"""The process of one drive in a batch. The process examines its drive, holds it, waits for consent and for its turn,
and measures the drive.

If the process of the batch ends before it has sent the order to begin, the process of the drive ends too, because the
consent is no longer valid. After this order, the process of the drive needs no other process and no terminal.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from tkperf.analysis.estimates import RunEstimate
from tkperf.batch.drive_processes import Begun, Channel, Ended, Go, Held, Read, ReadsDone, Repeatable
from tkperf.batch.ledger import DriveEnded, append_end
from tkperf.batch.question import short, show_drive
from tkperf.batch.request import AGAIN, BatchDrive
from tkperf.cli.output import open_log_or_null
from tkperf.cli.run_options import RunOptions, estimate_of
from tkperf.cli.session import watch
from tkperf.cli.standard_streams import ended_by_signals, point_streams_to
from tkperf.device.identity import DeviceIdentity
from tkperf.engine.registry import find_engine
from tkperf.model.batch_state import BatchPlace
from tkperf.model.errors import DeviceError, ExitCode, RefusedError, TkperfError, reason_of
from tkperf.pipeline.consent import Consent, Question
from tkperf.pipeline.device_under_test import Equipment
from tkperf.pipeline.fitted_profile import choose_profile
from tkperf.pipeline.resume_plan import ResumePlan, ResumeRequest, make_resume_plan
from tkperf.pipeline.run_disclosure import RunTitle
from tkperf.pipeline.run_plan import RunPlan, plan_run
from tkperf.pipeline.run_to_file import Destination, resume_to_file, run_to_file
from tkperf.system.host import now_utc

# The duration, in seconds, of each read when tkperf compares the read rates of drives alone and together. Several reads
# show how steady the rate is.
READING_S = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveTask:
    """The order that the process of a drive receives. ``ledger`` is the ledger of the batch. ``resumes`` means that the
    process continues an existing run file.
    """

    number: int
    drive: BatchDrive
    options: RunOptions
    ledger: Path
    resumes: bool


def run_drive_process(task: DriveTask, channel: Channel) -> NoReturn:
    """Do the whole work for one drive, and then end this process. This function must be the first call in a new
    process.
    """
    # The process of the drive has a separate session. Signals of the terminal therefore reach only the batch, which
    # forwards them if they concern drives.
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    point_streams_to(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), (0, 1, 2))
    gate = _Gate(task, channel)
    code: int = ExitCode.DEFECT
    text = ""
    try:
        with ended_by_signals(once=True):
            _measure(task, gate)
        code = ExitCode.DONE
    except KeyboardInterrupt:
        code, text = ExitCode.STOPPED, "stopped by the user"
    except TkperfError as error:
        code, text = error.exit_code, str(error)
    except BaseException as error:  # an unexpected error is a defect of tkperf, and is also written to the log
        text = f"this is a defect of tkperf: {reason_of(error)}"
        with suppress(OSError):
            sys.stderr.write(traceback.format_exc())
            sys.stderr.flush()
    finally:
        text = short(text)
        if gate.has_begun:
            gate.note_end(code, text)
        channel.send(Ended(exit_code=code, text=text))
        # The forked process must not clean up the resources of its parent.
        os._exit(code)


def _measure(task: DriveTask, gate: _Gate) -> None:
    options, drive = task.options, task.drive
    destination = Destination(name=options.name, folder=options.folder, other_files=(options.log_path,))
    resumed: ResumePlan | None = None
    if task.resumes:
        asked = ResumeRequest(
            path=options.run_path, device=drive.request.device, purge_command=drive.request.purge_command
        )
        resumed = make_resume_plan(asked)
        plan = resumed.plan
    else:
        profile = choose_profile(drive.request)
        destination.require_free(drive.request.device)
        plan = plan_run(drive.request, profile=profile)
    _require_meant(drive, plan.dut.identity)
    estimate = estimate_of(options, plan)
    gate.show = partial(_held, task, plan, estimate, resumed)
    gate.reads = partial(_read, plan.dut.identity)
    with plan.dut.open(plan.fitted, Consent(ask=gate.ask)) as equipment:
        gate.wait_for_turn()
        equipment.siblings = gate.siblings
        point_streams_to(open_log_or_null(options.log_path), (1, 2))
        _keep(task, gate, plan, resumed, equipment, destination)
        if gate.wait_for_repetition():
            again = replace(options, name=f"{options.name}{AGAIN}")
            point_streams_to(open_log_or_null(again.log_path), (1, 2))
            place = Destination(name=again.name, folder=again.folder)
            _keep(replace(task, options=again), gate, plan, None, equipment, place)


def _require_meant(drive: BatchDrive, identity: DeviceIdentity) -> None:
    """Check that the path of the requested drive still leads to the same drive. Raise DeviceError if it leads to
    another drive.
    """
    if drive.serial is not None and identity.serial != drive.serial:
        raise DeviceError(
            f"{identity.path} now has the serial number {identity.serial}, but the requested drive "
            f"has the serial number {drive.serial}. The kernel has assigned new names to the drives. "
            "Start the batch again"
        )


def _keep(
    task: DriveTask,
    gate: _Gate,
    plan: RunPlan,
    resumed: ResumePlan | None,
    equipment: Equipment,
    destination: Destination,
) -> None:
    options = task.options
    views = partial(watch, options, plan)
    if resumed is not None:
        resume_to_file(resumed, equipment, destination, options.command_line, watch=views, began=gate.report_start)
        return
    title = RunTitle(
        name=options.name,
        command_line=options.command_line,
        description=options.description,
        feature_matrix=options.feature_matrix,
        batch=gate.place,
    )
    run_to_file(plan, equipment, destination, title, watch=views, began=gate.report_start)


class _Gate:
    """The state of a process that holds its drive and waits until the batch orders it to begin."""

    def __init__(self, task: DriveTask, channel: Channel) -> None:
        self._task = task
        self._channel = channel
        self._go: Go | None = None
        self._has_run = False
        self._all_cpus = os.sched_getaffinity(0)
        self.show: Callable[[Question | None], Held]
        self.reads: Callable[[int], ReadsDone]

    @property
    def has_begun(self) -> bool:
        """Return whether the process received the order to begin from the batch."""
        return self._go is not None

    @property
    def place(self) -> BatchPlace | None:
        """The place of the drive in its batch, such as the number and the slot of the drive. The run file stores this
        place.
        """
        return None if self._go is None else self._go.place

    @property
    def siblings(self) -> tuple[int, ...]:
        return () if self._go is None else self._go.siblings

    def ask(self, question: Question) -> str:
        """Send the facts and the content of this drive to the batch, and wait for the answer of the user."""
        return self._wait(question).answer or ""

    def wait_for_turn(self) -> None:
        """Wait for the order to begin if no question was necessary, as for a simulated drive or a new file."""
        if self._go is None:
            self._wait(None)

    def report_start(self) -> None:
        self._channel.send(Begun())

    def wait_for_repetition(self) -> bool:
        """Hold the drive if a second run may follow, and wait for the order to begin this run. Return whether the order
        arrived. If the batch has ended, no second run follows.
        """
        if self._go is None or not self._go.repeatable:
            return False
        self.note_end(ExitCode.DONE, "")
        self._has_run = True
        self._channel.send(Repeatable())
        while (message := self._channel.receive_from_batch()) is not None:
            if isinstance(message, Go):
                self._go = message
                os.sched_setaffinity(0, self._all_cpus)
                return True
        return False

    def note_end(self, code: int, text: str) -> None:
        """Write the end of a run to the ledger."""
        ended = DriveEnded(
            number=self._task.number, utc=now_utc(), pid=os.getpid(), exit_code=code, text=text, again=self._has_run
        )
        append_end(self._task.ledger, ended)

    def _wait(self, question: Question | None) -> Go:
        held = self.show(question)
        where = held.shown.path
        self._channel.send(held)
        while True:
            message = self._channel.receive_from_batch()
            if message is None:
                raise RefusedError(
                    f"{where}: the batch ended before the run of this drive began, so your consent is no longer "
                    "valid. Nothing was touched"
                )
            if isinstance(message, Read):
                self._channel.send(self.reads(message.seconds))
                continue
            if message.digest != held.shown.digest:
                raise RefusedError(
                    f"{where} is no longer the drive that was confirmed. Start the batch again. Nothing was touched"
                )
            self._go = message
            if message.place.cpus:
                os.sched_setaffinity(0, message.place.cpus)
            return message


def _held(
    task: DriveTask, plan: RunPlan, estimate: RunEstimate, resumed: ResumePlan | None, question: Question | None
) -> Held:
    again = "" if resumed is None else resumed.replayed.again or "continues where it stopped"
    return show_drive(task.number, task.drive, plan, estimate, question=question, resumed=again)


def _read(identity: DeviceIdentity, seconds: int) -> ReadsDone:
    """Return the rates of several short sequential reads at the start of a drive."""
    try:
        rates = [
            find_engine().read_bytes_per_s(identity.path, identity.capacity_bytes, seconds=READING_S)
            for _ in range(max(1, seconds // READING_S))
        ]
    except TkperfError as error:
        return ReadsDone(text=short(str(error)))
    return ReadsDone(bytes_per_s=tuple(rates))
