"""From the text of a job file to that of a workload file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tkperf.interop.fio_jobfile.account import Account, Refusal
from tkperf.interop.fio_jobfile.reading import ReadFile, read_jobs
from tkperf.interop.fio_jobfile.rules import ALIASES, KNOWN
from tkperf.interop.fio_jobfile.sequence import build_phases
from tkperf.interop.fio_jobfile.toml_text import render_toml
from tkperf.model.errors import InputFileError, UsageError, not_known
from tkperf.procedures import load_profile, with_workload
from tkperf.procedures.own_workloads.files import parse_workload_file

ANY_PROFILE, ANY_SUITE = "pts-e-1.1", "ssd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """The workload file, and what became of every option."""

    text: str
    account: Account


class OptionsRefusedError(InputFileError):
    """Options of a job file that cannot be kept."""

    def __init__(self, file: str, refusals: Collection[Refusal]) -> None:
        names = sorted({refusal.option for refusal in refusals if refusal.option is not None})
        way_out = f"; to go without them: {' '.join(f'--without {name}' for name in names)}"
        count = len(refusals)
        super().__init__(
            f"{file}: {count} {'option' if count == 1 else 'options'} cannot be kept, nothing was written"
            f"{way_out if names else ''}"
        )
        self.refusals = tuple(refusals)


def convert_job_file(
    text: str,
    *,
    file: str,
    name: str,
    read_included: ReadFile,
    without: Collection[str] = (),
) -> Converted:
    """The workload file of a job file.

    Args:
        name: of the test.
        without: options that the user gives up.

    Raises:
        OptionsRefusedError: options cannot be kept.
        UsageError: no job file, an impossible value, or nothing to give up of an option.
    """
    waived = {ALIASES.get(option, option) for option in without}
    for option in sorted(waived - KNOWN):
        raise not_known("--without", option, sorted(KNOWN))
    account = Account(waived=waived)
    phases = build_phases(read_jobs(file, text, read_included), account)
    if account.refusals:
        raise OptionsRefusedError(file, account.refusals)
    for option in sorted(waived - account.given_up.keys()):
        raise UsageError(
            f"--without {option}: {file} has nothing of it that would have to be given up"
        )
    written = render_toml(name=name, file=file, phases=phases, account=account)
    _check(written, file)
    return Converted(text=written, account=account)


def _check(text: str, file: str) -> None:
    """As a run reads it, with the numbers of any profile in the place of what it leaves out."""
    table = parse_workload_file(text, file=f"of {file}")
    with_workload(load_profile(ANY_PROFILE), ANY_SUITE, table, file=f"of {file}")
