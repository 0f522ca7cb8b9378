"""One run from the command line: plan, show it, ask, execute with views, show the results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from tkperf.cli.awake import kept_awake
from tkperf.cli.consent import consent_of, show_plan, show_resumption
from tkperf.cli.console import plain, tell
from tkperf.cli.detach import Departure, depart
from tkperf.cli.ending import Ending, concluded
from tkperf.cli.outlook import outlook_of
from tkperf.cli.output import open_log
from tkperf.cli.progress import open_observers
from tkperf.cli.run_options import RunOptions
from tkperf.cli.show import print_run
from tkperf.cli.signals import ended_by_signals
from tkperf.device.identity import TargetKind
from tkperf.device.raid.config import load_raid_config
from tkperf.model.errors import RunFileError, UsageError, reason_of
from tkperf.pipeline.fitting import choose_profile
from tkperf.pipeline.keeping import Destination, keep_resumed, keep_run
from tkperf.pipeline.request import RunRequest
from tkperf.pipeline.resume import ResumeRequest, make_resume_plan
from tkperf.pipeline.run_info import RunTitle
from tkperf.pipeline.run_plan import RunPlan, plan_run
from tkperf.runner.events import Observer


def run_session(options: RunOptions) -> None:
    """Run ``tkperf ssd``, ``tkperf hdd`` or ``tkperf raid``, from the options to the results."""
    departure = depart(options)
    with concluded() as ending, ended_by_signals(once=True):
        _begin(options, departure, ending)
    show_results(options, ending)


def _begin(options: RunOptions, departure: Departure, ending: Ending) -> None:
    """Take a run from the request to its end."""
    request = request_of(options)
    # Before any folder is made, so that a mistake in a user's file leaves nothing behind.
    profile = choose_profile(request)
    destination = Destination(
        name=options.name,
        folder=options.folder,
        beside=(options.log_path, options.report_path),
    )
    destination.require_free(options.device)
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


def resume_session(request: ResumeRequest, options_of: Callable[[str, str], RunOptions]) -> None:
    """Run ``tkperf resume``; ``options_of`` a suite and a device returns the options of views and consent."""
    # With the options known so far: the place of the run file, and the views.
    departure = depart(options_of("", request.device or ""))
    with concluded() as ending, ended_by_signals(once=True):
        options = _go_on(request, options_of, departure, ending)
    show_results(options, ending)


def _go_on(
    request: ResumeRequest,
    options_of: Callable[[str, str], RunOptions],
    departure: Departure,
    ending: Ending,
) -> RunOptions:
    """Take a resumed run from the request to its end, and return its options."""
    resumed = make_resume_plan(request)
    plan = resumed.plan
    options = options_of(plan.request.suite, plan.request.device)
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
    return options


def request_of(options: RunOptions) -> RunRequest:
    """Return the request for a run that the options make.

    Raises:
        UsageError: no device could do this, or raid.json has a mistake.
    """
    raid = None if options.raid_config is None else load_raid_config(options.raid_config)
    return RunRequest(
        suite=options.suite,
        device=options.device,
        tests=options.tests,
        profile=options.profile,
        jobs=options.jobs,
        io_depth=options.io_depth,
        auto_demand=options.auto_demand,
        step_s=options.step_s,
        active_range=options.active_range,
        size=options.size,
        ioengine=options.ioengine,
        write_cache=options.write_cache,
        strict=options.strict,
        accept_disturbed=options.accept_disturbed,
        tune=options.tune,
        purge_method=options.purge_method,
        purge_command=options.purge_command,
        no_purge=options.no_purge,
        telemetry=not options.no_telemetry,
        raid=raid,
        remove_set=options.remove_set,
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
    with ExitStack() as stack:
        views = stack.enter_context(open_observers(options, on_note=on_note))
        if plan.subject.identity.kind is not TargetKind.SIMULATED:
            stack.enter_context(kept_awake(options.name, on_note=views[0]))
        yield views


def show_results(options: RunOptions, ending: Ending) -> None:
    """Print the tables on stdout, and the paths of the files on stderr."""
    if options.detach or options.progress == "json":
        ending.say_where()
        return
    run_path = options.run_path
    try:
        print_run(run_path)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(
            f"the run has ended, but its results cannot be printed: {reason_of(error)}; see them "
            f"with tkperf show {run_path}"
        ) from error
    tell(f"\nrun file: {plain(run_path)}")
    if ending.report is None:
        tell(f"report:   tkperf report {plain(run_path)}")
    ending.say_where()
