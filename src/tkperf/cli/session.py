"""Execute a run from the command line. tkperf builds and shows the plan, asks the user, executes the run with its
views, and shows the results.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import click

from tkperf.cli.consent_prompt import consent_of, show_plan, show_resumption
from tkperf.cli.ending import Ending, concluded, print_ended
from tkperf.cli.output import open_log, open_log_or_null
from tkperf.cli.run_options import CallOptions, RunOptions, estimate_of
from tkperf.cli.run_views import open_observers
from tkperf.cli.standard_streams import complain, ended_by_signals, point_streams_to, warning_of
from tkperf.device.identity import TargetKind
from tkperf.model.errors import EngineError, RunFileError, UsageError, reason_of
from tkperf.model.record import RunNote
from tkperf.pipeline.fitted_profile import choose_profile
from tkperf.pipeline.resume_plan import ResumeRequest, make_resume_plan
from tkperf.pipeline.run_disclosure import RunTitle
from tkperf.pipeline.run_plan import RunPlan, plan_run
from tkperf.pipeline.run_request import RunRequest
from tkperf.pipeline.run_to_file import Destination, resume_to_file, run_to_file
from tkperf.render.terminal.console import plain, print_lines
from tkperf.runner.events import Noted, Observer
from tkperf.system.process import PIPE, Process, find_program, fork_early, start_process, stop_process


@contextmanager
def _session(options: RunOptions) -> Iterator[tuple[Departure, Ending]]:
    """Yield the objects that separate a run from its terminal and that conclude the run. When the context ends, show
    the results of the run, even if the run was stopped or failed.
    """
    departure = depart(options)
    try:
        with concluded() as ending, ended_by_signals(once=True):
            yield departure, ending
    except BaseException:
        # An error that occurs while the results are shown does not change the outcome of the run.
        if ending.has_run:
            with warning_of("its results were not printed"), ended_by_signals(once=False):
                show_results(options, ending)
        raise
    show_results(options, ending)


def run_session(request: RunRequest, options: RunOptions) -> None:
    """Execute ``tkperf ssd``, ``tkperf hdd`` or ``tkperf raid``, from the request to the results."""
    with _session(options) as (departure, ending):
        # The profile is read and checked before the first folder is created, so that a mistake in a user's file leaves
        # no folder behind.
        profile = choose_profile(request)
        destination = Destination(
            name=options.name, folder=options.folder, other_files=(options.log_path, options.report_path)
        )
        is_new_folder = not os.path.lexists(options.folder)
        destination.require_free(request.device)
        if is_new_folder and not options.quiet:
            complain(f"tkperf: the folder {options.folder} did not exist and was created")
        _require_log(options)
        plan = plan_run(request, profile=profile)
        destination.require_space(plan.fitted)
        show_plan(options, estimate_of(options, plan))
        title = RunTitle(
            name=options.name,
            command_line=options.command_line,
            description=options.description,
            feature_matrix=options.feature_matrix,
        )
        # From this point on, tkperf changes settings of the device. They are always restored when the run ends, even
        # after an error.
        with plan.dut.open(plan.fitted, consent_of(options)) as equipment:
            departure.leave_terminal()
            run_to_file(
                plan,
                equipment,
                destination,
                title,
                watch=partial(watch, options, plan),
                began=departure.report_start,
                ended=partial(ending.ran, options),
            )


def resume_session(request: ResumeRequest, options: RunOptions) -> None:
    """Run ``tkperf resume``."""
    with _session(options) as (departure, ending):
        resumed = make_resume_plan(request)
        plan = resumed.plan
        destination = Destination(name=options.name, folder=options.folder)
        _require_log(options)
        destination.require_space(plan.fitted)
        show_resumption(options, resumed)
        with plan.dut.open(plan.fitted, consent_of(options)) as equipment:
            departure.leave_terminal()
            resume_to_file(
                resumed,
                equipment,
                destination,
                options.command_line,
                watch=partial(watch, options, plan),
                began=departure.report_start,
                ended=partial(ending.ran, options),
            )


def _require_log(options: RunOptions) -> None:
    """Check that tkperf can write to the log. Without this check, a log that cannot be written would end the run after
    the purge. The text of the log is written later.
    """
    if not os.path.lexists(options.log_path):
        return
    try:
        os.close(open_log(options.log_path))
    except OSError as error:
        raise RunFileError(
            f"tkperf cannot write to the output folder {options.folder}: {reason_of(error)}. Choose another folder "
            "with --output"
        ) from error


@contextmanager
def watch(options: RunOptions, plan: RunPlan, on_note: Observer) -> Iterator[Sequence[Observer]]:
    """Open the log and the view that the user chose, and prevent the host from sleeping."""
    simulated = plan.dut.identity.kind is TargetKind.SIMULATED
    with ExitStack() as stack:
        views = stack.enter_context(open_observers(options, on_note=on_note, simulated=simulated))
        if not simulated:
            stack.enter_context(kept_awake(options.name, on_note=views[0]))
        yield views


def show_results(options: RunOptions, ending: Ending) -> None:
    """Print the verdict and the headline figures on stdout. Print the locations of the other results on stderr."""
    if options.detach or options.progress == "json":
        ending.say_where()
        return
    run_path = options.run_path
    try:
        print_ended(run_path)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(
            f"the run has ended, but tkperf cannot print the results: {reason_of(error)}. Show the results with "
            f"'tkperf show {run_path}'"
        ) from error
    print_lines(f"\nresults:  tkperf show {plain(run_path)}")
    if ending.report is None:
        print_lines(f"report:   tkperf report {plain(run_path)}")
    ending.say_where()


# The waiting process passes these signals on to the run. They can therefore also end a run that has not begun.
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BEGUN = b"begun"


class Departure:
    """The separation of a run from its terminal. Without ``--detach``, the run is not separated from the terminal."""

    def leave_terminal(self) -> None:
        """Separate the process from the terminal after the question, so that signals of the terminal no longer reach
        the run.
        """

    def report_start(self) -> None:
        """Report that the run file contains the run. After this report, no process needs to wait for the run."""


class _Leaving(Departure):
    def __init__(self, options: CallOptions, begun: int) -> None:
        self._options = options
        self._begun = begun

    def leave_terminal(self) -> None:
        # Start a new session, which has no terminal. The kernel allows this, because a forked child is not the leader
        # of its group.
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        point_streams_to(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), (0,))

    def report_start(self) -> None:
        # Errors before this point are printed on the terminal.
        point_streams_to(open_log_or_null(self._options.log_path), (1, 2))
        with suppress(OSError):  # no process waits
            os.write(self._begun, _BEGUN)
        os.close(self._begun)


def depart(options: CallOptions) -> Departure:
    """Start a second process if ``--detach`` is given, and return only in the second process (docs/adr/0029).

    The second process is created at the very beginning. The first process only waits. The second process does all the
    work, so that the device, locks, leases, databases and threads never have to be moved to another process. Until the
    run has begun, both processes belong to the terminal.
    """
    if not options.detach:
        return Departure()
    sys.stdout.flush()
    sys.stderr.flush()
    reader, begun = os.pipe()
    child = fork_early()
    if child == 0:
        os.close(reader)
        return _Leaving(options, begun)
    os.close(begun)
    raise click.exceptions.Exit(_wait(options, child, reader))


def _wait(options: CallOptions, child: int, reader: int) -> int:
    """Wait until the run has begun or has ended, and return the exit code."""
    stopped = False

    def pass_on(number: int, _: object) -> None:
        nonlocal stopped
        # If the terminal is lost, SIGHUP does not stop a confirmed run, because the run needs no terminal.
        stopped = stopped or number != signal.SIGHUP
        with suppress(ProcessLookupError):
            os.kill(child, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    if os.read(reader, len(_BEGUN)) == _BEGUN and not stopped:
        _print_where(options, child)
        return 0
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        complain(f"\ntkperf: the run was killed by signal {-code} before it began")
        return 128 - code
    return code


def _print_where(options: CallOptions, child: int) -> None:
    if options.quiet:
        return
    path = plain(options.path)
    print_lines(
        f"\n{plain(options.name)} runs without this terminal now, as process {child}",
        f"{options.kept_in}:".ljust(10) + path,
        f"log:      {plain(options.log_path)}",
        f"watch:    tkperf attach {path}",
        f"stop:     {'sudo ' if 'SUDO_USER' in os.environ else ''}tkperf stop {path}",
    )


INHIBIT = "systemd-inhibit"
HELD = b"held\n"
ANSWER_S = 5.0


@contextmanager
def kept_awake(name: str, *, on_note: Observer) -> Iterator[None]:
    """Prevent sleep, suspend and the action of the lid switch until the context ends. If this fails, ``on_note``
    receives a note.

    systemd-inhibit holds the lock until its child process ends. If tkperf is killed, the kernel ends both processes. A
    failure of this function never ends a run.
    """
    process: Process | None = None
    try:
        try:
            process = _inhibit_sleep(name)
        except EngineError as error:
            text = f"nothing keeps the host from sleeping during the run: {error}"
            on_note(Noted(note=RunNote(code="sleep-not-inhibited", text=text)))
        yield
    finally:
        if process is not None:
            stop_process(process, grace_s=2.0)
            _close(process)


def _inhibit_sleep(name: str) -> Process:
    """Start a process that holds the lock."""
    if find_program(INHIBIT) is None:
        raise EngineError(f"there is no {INHIBIT}")
    argv = [
        INHIBIT,
        "--what=sleep:idle:handle-lid-switch",
        "--who=tkperf",
        f"--why=measuring {name}",
        "--mode=block",
        "sh",
        "-c",
        "echo held; exec sleep infinity",
    ]
    process = start_process(argv, cwd=Path("/"), stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], ANSWER_S)
    if ready and process.stdout.readline() == HELD:
        return process
    stop_process(process, grace_s=2.0)
    assert process.stderr is not None
    words = process.stderr.read().split() if process.poll() is not None else []
    _close(process)
    reason = b" ".join(words).decode(errors="replace")[:200]
    raise EngineError(reason or f"{INHIBIT} does not answer")


def _close(process: Process) -> None:
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
