"""tkperf workload from-fio: turn a job file of fio into a workload file."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import OUTPUT_FILE, InputFile


@click.command("from-fio", cls=Command)
@click.argument("job_file", metavar="JOB.fio", type=InputFile(".fio"))
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    default="-",
    metavar="FILE.toml",
    help="The workload file; default: standard output.",
)
@click.option("--name", metavar="NAME", help="Name of the test; default: that of the job file.")
@click.option(
    "--without",
    multiple=True,
    metavar="OPTION",
    help="Give up an option of fio that cannot be kept; the report says so. May be given again.",
)
@click.option("--force", is_flag=True, help="Replace FILE.toml if it is there.")
def from_fio(**options: Any) -> None:
    """Make a workload file of a job file of fio.

    The output and the head of FILE.toml list the options that are carried over, and those that are
    not. Jobs that wait for each other (stonewall) become phases, in order; those that run at the
    same time have to be the same load. An option that would give the numbers another meaning is
    refused, with its reason, and nothing is written; --without gives it up knowingly. Nothing of
    the job file is run, and its files are not touched: DEVICE is named when the test is run.

    \b
    Examples:
      tkperf workload from-fio ssd.fio -o ssd.toml
      tkperf workload from-fio database.fio -o database.toml --without fsync --without size
      tkperf ssd D3-S4510 /dev/sdb --test ./ssd.toml
    """
    from tkperf.cli.workload_from_fio import from_fio as act

    act(**options)
