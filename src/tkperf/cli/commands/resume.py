"""tkperf resume: continue an interrupted run, or repeat or add tests of a run that has ended."""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE, Device, InputFile
from tkperf.cli.suite_options import CONSENT, STRICT, VIEWS, common, on_target, purge_command
from tkperf.model.choices import BATCH_SUFFIX, RUN_FILE_SUFFIX
from tkperf.model.errors import UsageError


def _split(_ctx: object, _param: object, given: tuple[str, ...]) -> tuple[str, ...]:
    names = [name.strip() for text in given for name in text.split(",")]
    return tuple(dict.fromkeys(names))


_TESTS = (
    common(
        "--accept-interruption",
        "accept",
        is_flag=True,
        help="Continue at the point where the run stopped, even within a stream or a steady-state window. tkperf "
        "marks results that span the interruption. tkperf still repeats interrupted purges and fills.",
    ),
    common(
        "--repeat",
        metavar="TEST,...",
        multiple=True,
        callback=_split,
        help="Measure a test of the run again. The earlier results remain in the run file.",
    ),
    common(
        "--test",
        "add",
        metavar="TEST,...",
        multiple=True,
        callback=_split,
        help="Add a test, which runs with the profile and the options of the run.",
    ),
)
_WITHOUT = on_target(
    "--without", metavar="NAME", multiple=True, help="For a batch, do not resume the run with this name."
)
_YES_DESTROY_FILE = on_target(
    "--yes-destroy-file",
    metavar="FILE",
    type=InputFile(),
    help="For a batch, confirm the erasure in advance. FILE contains a line for each drive.",
)


@click.command(
    cls=Command,
    params=[
        click.Argument(["run_file"], type=RUN_FILE),
        click.Argument(["device"], required=False, type=Device()),
        *_TESTS,
        _WITHOUT,
        STRICT,
        purge_command(
            "The --purge-command of the run. You must pass the command again, because tkperf executes no command from "
            "a run file."
        ),
        *CONSENT,
        _YES_DESTROY_FILE,
        *VIEWS,
    ],
)
def resume(run_file: Path, **options: Any) -> None:
    """Resume the run in RUN_FILE after a kill, a crash, a power cut, Ctrl-C or an error.

    The run continues with the same profile, options, tests and device. Pass DEVICE if the name of the device has
    changed. The run erases the device again, so tkperf asks for consent again. So that the results are valid, tkperf
    repeats the interrupted round, or everything since the last purge. Before the question, tkperf names the part that
    it will repeat.

    For a batch, RUN_FILE is NAME.batch. After one question, tkperf starts or continues the runs of all drives that are
    not done.

    \b
    Examples:
      tkperf resume D3-S4510.tkperf
      tkperf resume D3-S4510.tkperf /dev/sdc --yes-destroy PHYH850500YA960L
      tkperf resume D3-S4510.tkperf --repeat lat
      tkperf resume D3-S4510.tkperf --test hir,xsr
      tkperf resume rack7.batch --without rack7-PHYH850500YA960L
    """
    from tkperf.cli.run_options import RunOptions
    from tkperf.cli.session import resume_session
    from tkperf.pipeline.resume_plan import ResumeRequest

    if run_file.suffix == BATCH_SUFFIX:
        _resume_batch(run_file, options)
    if options.pop("without") or options.pop("yes_destroy_file"):
        raise UsageError("--without and --yes-destroy-file work only with a batch. Pass NAME.batch as RUN_FILE")
    if run_file.suffix != RUN_FILE_SUFFIX and os.path.exists(run_file):  # noqa: PTH110 # also False for too long names
        raise UsageError(
            f"the name of {run_file} does not end in .tkperf, so tkperf does not resume it. Pass the "
            "run file of the run that you want to continue"
        )
    asked = {field.name: options.pop(field.name) for field in fields(ResumeRequest) if field.name in options}
    run_options = RunOptions(name=run_file.stem, folder=run_file.parent, command_line=tuple(sys.argv), **options)
    resume_session(ResumeRequest(path=run_file, **asked), run_options)


def _resume_batch(path: Path, options: dict[str, Any]) -> NoReturn:
    """Continue a batch, and end the program with its exit code."""
    from tkperf.batch.ledger import read_log
    from tkperf.cli.batch_session import resume_batch
    from tkperf.cli.run_options import BatchOptions

    own = {field.name for field in fields(BatchOptions)}
    ctx = click.get_current_context()
    for param in ctx.command.params:
        name = str(param.name)
        if name in ("run_file", "without") or name in own:
            continue
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(
                f"{param.opts[-1]} works only with a single run, not with a batch. Use it with the run file of the "
                "drive"
            )
    without = options.pop("without")
    asked = {name: value for name, value in options.items() if name in own}
    batch_options = BatchOptions(name=path.stem, folder=path.parent, command_line=tuple(sys.argv), **asked)
    if read_log(path).begun.request.hosts:
        from tkperf.cli.hosts_session import resume_batch_on_hosts

        raise click.exceptions.Exit(resume_batch_on_hosts(batch_options, without=without))
    raise click.exceptions.Exit(resume_batch(batch_options, without=without))
