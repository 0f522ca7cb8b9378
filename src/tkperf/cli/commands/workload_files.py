"""tkperf workload: explain files in which users describe their own tests, or create such a file from a fio job file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tkperf.cli.calling import Command, CommandGroup
from tkperf.cli.kinds import OUTPUT_FILE, InputFile
from tkperf.cli.standard_streams import complain
from tkperf.cli.suite_options import json_option, profile_option
from tkperf.model.errors import InputFileError, UsageError
from tkperf.model.input_files import SETTINGS_BYTES, read_text_input

MOST_REFUSALS_SHOWN = 40
LONGEST_RUNTIME_S = 30 * 86_400


@click.command("from-fio", cls=Command)
@click.argument("job_file", metavar="JOB.fio", type=InputFile(".fio"))
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    default="-",
    metavar="FILE.toml",
    help="Name of the workload file to write. Default: standard output.",
)
@click.option("--name", metavar="NAME", help="Name of the test. Default: the name of the job file.")
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of ${NAME} in the job file; fio reads this value from its environment. Repeat the option for each "
    "variable.",
)
@click.option("--direct", is_flag=True, help="Treat jobs without direct=1 like jobs with direct=1.")
@click.option(
    "--align-4k",
    is_flag=True,
    help="Align the I/Os in a mix of block sizes to multiples of 4 KiB, even if fio would align them differently.",
)
@click.option("--runtime", metavar="TIME", help="Runtime of jobs that set no runtime, such as 60, 90s, 5m or 1h.")
@click.option("--force", is_flag=True, help="Replace FILE.toml if it exists.")
def from_fio(
    job_file: Path,
    output: Path,
    name: str | None,
    given: tuple[str, ...],
    direct: bool,
    align_4k: bool,
    runtime: str | None,
    force: bool,
) -> None:
    """Convert a job file of fio into a workload file.

    Jobs that run at the same time become loads that run at the same time. Jobs that wait until the earlier jobs have
    ended (stonewall) become phases, in the order of the job file. The output and the head of FILE.toml list every
    option of the job file as carried over, without effect, or not carried over, with the reason. tkperf refuses an
    option that would change the meaning of the numbers. Change the option in the job file, or remove the option.
    tkperf executes nothing from the job file, and does not touch any file that the job file names.

    \b
    Examples:
      tkperf workload from-fio ssd.fio -o ssd.toml
      tkperf workload from-fio web.fio --set DEV=/dev/sdb --set TIME=60 --direct -o web.toml
      tkperf ssd D3-S4510 /dev/sdb --test ./ssd.toml
    """
    from tkperf.cli.output import STDOUT, Outputs
    from tkperf.interop.fio_jobfile.convert import OptionsRefusedError, convert_job_file, name_of_test
    from tkperf.interop.fio_jobfile.job_load import Wishes
    from tkperf.model.units import on_one_line
    from tkperf.procedures import TAKEN_NAMES

    outputs = Outputs([output], inputs=[job_file])
    text = read_text_input(job_file, what="job file", limit_bytes=SETTINGS_BYTES, error=InputFileError)
    try:
        written, options = convert_job_file(
            text,
            file=on_one_line(str(job_file)),
            name=name or name_of_test(job_file.stem, TAKEN_NAMES),
            variables=_variables(given),
            wishes=Wishes(direct=direct, align_4k=align_4k, runtime_s=_runtime_s(runtime)),
        )
    except OptionsRefusedError as error:
        for refusal in error.refusals[:MOST_REFUSALS_SHOWN]:
            complain(f"refused: {on_one_line(str(refusal))}")
        if len(error.refusals) > MOST_REFUSALS_SHOWN:
            complain(f"refused: and {len(error.refusals) - MOST_REFUSALS_SHOWN} more")
        raise
    if output != STDOUT and output.exists() and not force:
        raise UsageError(f"{output} exists already. Pass --force to replace the file")
    outputs.write(output, written)
    if output != STDOUT:  # if the workload file is written to stdout, it contains the same lines as comments
        for line in options:
            click.echo(line)


def _variables(given: Sequence[str]) -> dict[str, str]:
    """Return the values of ``--set``. The names are the keys."""
    variables: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name or not value.isprintable():
            raise UsageError(f"--set {each!r} does not have the form NAME=VALUE. Write, for example, --set TIME=60")
        if variables.setdefault(name, value) != value:
            raise UsageError(
                f"--set {name}: the name has two values, {variables[name]} and {value}. Pass only one of them"
            )
    return variables


def _runtime_s(runtime: str | None) -> float | None:
    from tkperf.interop.fio_options import parse_time_s

    if runtime is None:
        return None
    runtime_s = parse_time_s(runtime)
    if runtime_s is None or round(runtime_s * 1000) % 100 or runtime_s > LONGEST_RUNTIME_S:
        raise UsageError(
            f"--runtime {runtime!r} is not a valid time. Write, for example, 60, 90s, 5m or 1h. The longest time is "
            "30 days"
        )
    return runtime_s


@click.group(cls=CommandGroup)
def workload() -> None:
    """Check, convert and explain the files of your own tests. A workload file in TOML describes the loads, the phases
    and the steady-state rule of a test.

    'tkperf ssd', 'hdd' and 'raid' run such a test with --test FILE.toml. You can report and compare the results like
    the results of any other test. 'tkperf workload keys' lists every key of a workload file.
    """


@workload.command(cls=Command)
def keys() -> None:
    """List every key of a workload file, with the possible values and the meaning of the key.

    \b
    Example:
      tkperf workload keys
    """
    from tkperf.render.terminal.plans_and_profiles import list_keys

    list_keys()


@workload.command(cls=Command, params=[click.Argument(["file"], type=InputFile(".toml")), profile_option("pts-e-1.1")])
@json_option
def show(**options: Any) -> None:
    """Check a workload file, and describe what the test would measure.

    The output describes the test step by step. If the file does not set TC, QD, the preconditioning or the steady-state
    rule, tkperf uses the values of the profile.

    \b
    Examples:
      tkperf workload show ./database.toml
      tkperf workload show ./database.toml --profile quick
    """
    from tkperf.render.terminal.plans_and_profiles import print_workload

    print_workload(**options)


workload.add_command(from_fio)
