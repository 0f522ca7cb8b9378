"""tkperf import: results of other tools as run files."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from tkperf import __version__
from tkperf.errors import UsageError
from tkperf.events import (
    Judged,
    RunEnded,
    RunStarted,
    StepEnded,
    TestEnded,
    TestStarted,
    Warned,
)
from tkperf.importers.tkperf_xml import ImportedRun, parse_tkperf_xml
from tkperf.profiles import apply_options, load_profile
from tkperf.record import RunInfo, RunStatus
from tkperf.runfile.writer import RunFileWriter


@click.command("import", short_help="Results of TKperf 1.x-2.2 (XML) as run files.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Folder for the run files; default: here.",
)
def import_results(files: tuple[Path, ...], folder: Path) -> None:
    """Turn each result XML of TKperf into a run file, to report, compare and check it.

    Steady state is judged anew. Nothing is overwritten; every result says that it was imported.

    \b
    Example:
      tkperf import old/D3-S4510.xml          writes D3-S4510.tkperf
    """
    for file in files:
        try:
            text = file.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {file}: {error.strerror}") from error
        run = parse_tkperf_xml(text, file=str(file))
        path = folder / f"{_file_name(run.name)}.tkperf"
        _write(run, file, path)
        click.echo(path)


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name).lstrip("._+-") or "imported"


def _write(run: ImportedRun, file: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = RunFileWriter(path)
    try:
        writer(RunStarted(info=_info(run, file), tests=tuple(test.name for test in run.tests)))
        for warning in run.warnings:
            writer(Warned(warning=warning))
        for test in run.tests:
            writer(TestStarted(test=test.name, at_s=0.0))
            for step in test.steps:
                writer(StepEnded(test=test.name, record=step))
            for record in test.verdicts:
                writer(
                    Judged(
                        test=test.name,
                        section=record.section,
                        number=record.number,
                        verdict=record.verdict,
                    )
                )
            writer(TestEnded(test=test.name, status=test.status, outcome=test.outcome, at_s=0.0))
        writer(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc=""))
    finally:
        writer.close()


def _info(run: ImportedRun, file: Path) -> RunInfo:
    """What TKperf kept; everything else is not known."""
    profile = apply_options(load_profile("tkperf-2.2"), step_s=run.step_s).as_plain_data()
    demand = profile["demand"]
    assert isinstance(demand, dict)
    profile = {**profile, "demand": {**demand, **run.demand}}
    imported = datetime.now(UTC).isoformat(timespec="seconds")
    return RunInfo(
        name=run.name,
        suite="ssd",
        tkperf_version=f"{run.tool}, imported by tkperf {__version__}",
        fio_version=run.fio_version,
        engine="as TKperf chose",
        command_line=(run.command_line,) if run.command_line else (),
        started_utc=run.date or "",
        profile_name="tkperf-2.2",
        profile=msgspec.to_builtins(profile),
        options={},
        device={"model": None, "kind": "imported result", "write_cache_in_run": None},
        host={**run.host, "hostname": None},
        active_range_offset_bytes=None,
        active_range_length_bytes=None,
        device_description=run.description,
        feature_matrix=run.feature_matrix,
        notices=(
            f"IMPORTED from {file.name}, written by {run.tool}, on {imported[:10]}: numbers are "
            "that tool's; docs/tkperf-2.2.md lists its known faults",
        ),
    )
