"""One run from the command line: plan, show it, ask, execute with views, show the results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from tkperf.cli.awake import kept_awake
from tkperf.cli.consent import consent_of, show_plan, show_resumption
from tkperf.cli.detach import Departure, depart
from tkperf.cli.ending import Ending, concluded
from tkperf.cli.output import open_log
from tkperf.cli.progress import open_observers
from tkperf.cli.results import print_ended
from tkperf.cli.run_options import RunOptions, outlook_of
from tkperf.cli.signals import ended_by_signals
from tkperf.device.identity import TargetKind
from tkperf.model.errors import RunFileError, UsageError, reason_of
from tkperf.pipeline.fitting import choose_profile
from tkperf.pipeline.keeping import Destination, keep_resumed, keep_run
from tkperf.pipeline.request import RunRequest
from tkperf.pipeline.resume import ResumeRequest, make_resume_plan
from tkperf.pipeline.run_info import RunTitle
from tkperf.pipeline.run_plan import RunPlan, plan_run
from tkperf.render.terminal.console import plain, tell
from tkperf.runner.events import Observer


def run_session(request: RunRequest, options: RunOptions) -> None:
    """Run ``tkperf ssd``, ``tkperf hdd`` or ``tkperf raid``, from the request to the results."""
    departure = depart(options)
    with concluded() as ending, ended_by_signals(once=True):
        _begin(request, options, departure, ending)
    show_results(options, ending)


def _begin(request: RunRequest, options: RunOptions, departure: Departure, ending: Ending) -> None:
    """Take a run from the request to its end."""
    # Before any folder is made, so that a mistake in a user's file leaves nothing behind.
    profile = choose_profile(request)
    destination = Destination(
        name=options.name,
        folder=options.folder,
        other_files=(options.log_path, options.report_path),
    )
    destination.require_free(request.device)
    _require_log(options)
    plan = plan_run(request, profile=profile)
    destination.require_space(plan.fitted)
    show_plan(options, plan, outlook_of(options, plan))
    title = RunTitle(
        name=options.name,
        command_line=options.command_line,
        description=options.description,
        feature_matrix=options.feature_matrix,
    )
    # From here on a device is changed, and is put back whatever ends the run.
    with plan.subject.open(plan.fitted, consent_of(options)) as equipment:
        departure.leave_terminal()
        keep_run(
            plan,
            equipment,
            destination,
            title,
            watch=partial(_watch, options, plan),
            began=departure.tell_begun,
            ended=partial(ending.ran, options),
        )


def resume_session(request: ResumeRequest, options: RunOptions) -> None:
    """Run ``tkperf resume``."""
    departure = depart(options)
    with concluded() as ending, ended_by_signals(once=True):
        _go_on(request, options, departure, ending)
    show_results(options, ending)


def _go_on(
    request: ResumeRequest, options: RunOptions, departure: Departure, ending: Ending
) -> None:
    """Take a resumed run from the request to its end."""
    resumed = make_resume_plan(request)
    plan = resumed.plan
    destination = Destination(name=options.name, folder=options.folder)
    _require_log(options)
    destination.require_space(plan.fitted)
    show_resumption(options, resumed)
    with plan.subject.open(plan.fitted, consent_of(options)) as equipment:
        departure.leave_terminal()
        keep_resumed(
            resumed,
            equipment,
            destination,
            options.command_line,
            watch=partial(_watch, options, plan),
            began=departure.tell_begun,
            ended=partial(ending.ran, options),
        )


def _require_log(options: RunOptions) -> None:
    """Check the log now, as an error would end the run after the purge. Text is written to it later.

    Raises:
        RunFileError: the log exists and cannot be written to.
    """
    if not os.path.lexists(options.log_path):
        return
    try:
        os.close(open_log(options.log_path))
    except OSError as error:
        raise RunFileError(
            f"cannot write to the output folder {options.folder}: {reason_of(error)}"
        ) from error


@contextmanager
def _watch(options: RunOptions, plan: RunPlan, on_note: Observer) -> Iterator[Sequence[Observer]]:
    """Open the log and the chosen view, and keep the host awake."""
    simulated = plan.subject.identity.kind is TargetKind.SIMULATED
    with ExitStack() as stack:
        views = stack.enter_context(open_observers(options, on_note=on_note, simulated=simulated))
        if not simulated:
            stack.enter_context(kept_awake(options.name, on_note=views[0]))
        yield views


def show_results(options: RunOptions, ending: Ending) -> None:
    """Print verdict and headline figures on stdout, and where the rest is on stderr."""
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
            f"the run has ended, but its results cannot be printed: {reason_of(error)}; see them "
            f"with tkperf show {run_path}"
        ) from error
    tell(f"\nresults:  tkperf show {plain(run_path)}")
    if ending.report is None:
        tell(f"report:   tkperf report {plain(run_path)}")
    ending.say_where()
