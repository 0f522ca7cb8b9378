"""tkperf import: results of other tools as run files."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import click

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
from tkperf.importers.fio_json import parse_fio_json
from tkperf.importers.imported import ImportedRun, one_line
from tkperf.importers.tkperf_xml import parse_tkperf_xml
from tkperf.record import IMPORTED, RunInfo, RunStatus
from tkperf.runfile.writer import write_whole


@click.command("import", short_help="Results of TKperf (XML) or fio (JSON) as run files.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Folder for the run files; default: here.",
)
@click.option("--name", metavar="NAME", help="Name of the run made of fio's files.")
def import_results(files: tuple[Path, ...], folder: Path, name: str | None) -> None:
    """Turn results of other tools into run files, to report, compare and check them.

    Each result XML of TKperf 1.x to 2.2 becomes a run. JSON files of fio, given together, become
    one: the n-th result of a workload is its n-th round. Steady state is judged anew. Nothing is
    overwritten; every result says that it was imported.

    \b
    Examples:
      tkperf import old/D3-S4510.xml                    writes D3-S4510.tkperf
      tkperf import rounds/*.json --name D3-S4510-fio   writes D3-S4510-fio.tkperf
    """
    texts = [(file, _read(file)) for file in files]
    xml = [(file, text) for file, text in texts if text.lstrip()[:1] == b"<"]
    fio = [
        (str(file), text.decode(errors="replace"))
        for file, text in texts
        if text.lstrip()[:1] != b"<"
    ]
    runs = [(parse_tkperf_xml(text, file=str(file)), file.name) for file, text in xml]
    if fio:
        first = Path(fio[0][0])
        source = first.name if len(fio) == 1 else f"{len(fio)} files of fio"
        runs.append((parse_fio_json(fio, name=one_line(name or first.stem)), source))
    # Nothing is written before everything was understood.
    for run, source in runs:
        path = folder / f"{_file_name(run.name)}.tkperf"
        _write(run, one_line(source), path)
        click.echo(path)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name).lstrip("._+-") or "imported"


def _write(run: ImportedRun, source: str, path: Path) -> None:
    with write_whole(path) as writer:
        writer(RunStarted(info=_info(run, source), tests=tuple(test.name for test in run.tests)))
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
            writer(TestEnded(test=test.name, status=test.status, outcome=test.outcome, at_s=None))
        writer(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc=None))


def _info(run: ImportedRun, source: str) -> RunInfo:
    """What the other tool kept; everything else is not known."""
    imported = datetime.now(UTC).isoformat(timespec="seconds")
    return RunInfo(
        name=run.name,
        suite="ssd",
        tkperf_version=f"{run.tool}, imported by tkperf {__version__}",
        fio_version=run.fio_version,
        engine="not known",
        command_line=(run.command_line,) if run.command_line else (),
        started_utc=run.date,
        profile_name=run.profile_name,
        profile=run.profile,
        options={},
        device={"model": None, "kind": IMPORTED, "write_cache_in_run": None},
        host={**run.host, "hostname": None},
        active_range_offset_bytes=None,
        active_range_length_bytes=None,
        device_description=run.description,
        feature_matrix=run.feature_matrix,
        notices=(
            f"IMPORTED from {source}, written by {run.tool}, on {imported[:10]}: numbers are "
            "that tool's, purge and preconditioning are not known",
            *run.notices,
        ),
    )
