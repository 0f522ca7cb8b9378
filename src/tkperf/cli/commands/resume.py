"""tkperf resume: resume an interrupted run, or repeat or add tests of an ended one."""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE, Device
from tkperf.cli.options import CONSENT, STRICT, VIEWS, on_test, purge_command
from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import UsageError


def _split(_ctx: object, _param: object, given: tuple[str, ...]) -> tuple[str, ...]:
    names = [name.strip() for text in given for name in text.split(",")]
    return tuple(dict.fromkeys(names))


_TESTS = (
    on_test(
        "--accept-interruption", "accept", is_flag=True,
        help="Continue where it stopped, also within a stream or a steady-state window; everything that spans the interruption is marked. Purges and fills are still repeated.",
    ),
    on_test(
        "--repeat", metavar="TEST,...", multiple=True, callback=_split,
        help="Measure a test of the run again; the earlier measurement is kept and named.",
    ),
    on_test(
        "--test", "add", metavar="TEST,...", multiple=True, callback=_split,
        help="Measure another test, too, by the run's own profile and options.",
    ),
)  # fmt: skip


@click.command(
    cls=Command,
    params=[
        click.Argument(["run_file"], type=RUN_FILE),
        click.Argument(["device"], required=False, type=Device()),
        *_TESTS, STRICT, purge_command("Repeat the run's --purge-command; none is taken from its file."),
        *CONSENT, *VIEWS,
    ],
)  # fmt: skip
def resume(run_file: Path, **options: Any) -> None:
    """Resume the run in RUN_FILE after a kill, a crash, a power cut, Ctrl-C or an error.

    Everything is as the run was begun with: profile, options, tests, device. DEVICE says where the
    device is now, if it has another name since; it has to be the same one. It is erased, so it is
    confirmed again. The interrupted part is measured again, as far as its test needs it to be valid: a round, or
    everything from the last purge on; tkperf names it before the question.

    \b
    Examples:
      tkperf resume D3-S4510.tkperf
      tkperf resume D3-S4510.tkperf /dev/sdc --yes-destroy PHYH850500YA960L
      tkperf resume D3-S4510.tkperf --repeat lat
      tkperf resume D3-S4510.tkperf --test hir,xsr
    """
    from tkperf.cli.run_options import RunOptions
    from tkperf.cli.session import resume_session
    from tkperf.pipeline.resume import ResumeRequest

    if run_file.suffix != RUN_FILE_SUFFIX and os.path.exists(run_file):  # noqa: PTH110 # False also for names too long
        raise UsageError(f"RUN_FILE {run_file}: a run goes on in its run file, NAME.tkperf")
    asked = {
        field.name: options.pop(field.name)
        for field in fields(ResumeRequest)
        if field.name in options
    }
    run_options = RunOptions(
        name=run_file.stem, folder=run_file.parent, command_line=tuple(sys.argv), **options
    )
    resume_session(ResumeRequest(path=run_file, **asked), run_options)
