"""tkperf workload from-fio: turn a job file of fio into a workload file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from tkperf.cli.output import STDOUT, Outputs
from tkperf.cli.streams import complain
from tkperf.interop.fio_jobfile.convert import (
    OptionsRefusedError,
    convert_job_file,
    name_of_test,
)
from tkperf.model.errors import InputFileError, UsageError
from tkperf.model.input_files import SETTINGS_BYTES, read_text_input
from tkperf.model.units import on_one_line
from tkperf.procedures import TAKEN_NAMES

MOST_REFUSALS_SHOWN = 40


def from_fio(
    job_file: Path, output: Path, name: str | None, without: tuple[str, ...], force: bool
) -> None:
    """Write the workload file of a job file, and list what happened to its options."""
    outputs = Outputs([output], inputs=[job_file])
    text = read_text_input(
        job_file, what="job file", limit_bytes=SETTINGS_BYTES, error=InputFileError
    )
    try:
        converted = convert_job_file(
            text,
            file=on_one_line(str(job_file)),
            name=name or name_of_test(job_file.stem, TAKEN_NAMES),
            read_included=_read_included,
            without=without,
        )
    except OptionsRefusedError as error:
        for refusal in error.refusals[:MOST_REFUSALS_SHOWN]:
            complain(f"refused: {on_one_line(str(refusal))}")
        if len(error.refusals) > MOST_REFUSALS_SHOWN:
            complain(f"refused: and {len(error.refusals) - MOST_REFUSALS_SHOWN} more")
        raise
    if output != STDOUT and output.exists() and not force:
        raise UsageError(f"{output} is there and is not overwritten: --force replaces it")
    outputs.write(output, converted.text)
    if output != STDOUT:  # the workload file on stdout has them as comments
        for line in converted.options:
            click.echo(line)


def _read_included(wanted: str, by: str) -> tuple[str, str]:
    """Read an included file from where fio looks for it: here, else in the folder of the including file."""
    path = Path(by).parent / wanted
    with suppress(OSError):  # a name too long for any file: reading it reports the error
        path = Path(wanted) if Path(wanted).exists() else path
    return str(path), read_text_input(path, what="included file", limit_bytes=SETTINGS_BYTES)
