"""tkperf export: write the tables of many runs as one data set."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import OUTPUT_FOLDER, RUNS
from tkperf.cli.standard_streams import complain, without_garbage_collection
from tkperf.model.choices import BATCH_SUFFIX
from tkperf.model.errors import RunFileError

if TYPE_CHECKING:
    from tkperf.render.dataset import Dataset, ExportedRun


class _Outcome(StrEnum):
    """The outcome of exporting one run file. The last line of the output contains these words."""

    EXPORTED = "exported"
    UNCHANGED = "unchanged"
    UNDER_WAY = "under way"
    COPY = "other files of these runs"
    LEFT_OUT = "left out"


@click.command(cls=Command)
@click.argument("runs", nargs=-1, required=True, type=RUNS)
@click.option(
    "--parquet",
    "dataset_folder",
    type=OUTPUT_FOLDER,
    required=True,
    metavar="DATASET",
    help="Folder of the data set, which contains a folder for each run. tkperf creates the folder if it does not "
    "exist.",
)
@click.option(
    "--no-seconds",
    is_flag=True,
    help="Omit the table with the values of every second. This table contains most of the data.",
)
def export(runs: tuple[Path, ...], dataset_folder: Path, no_seconds: bool) -> None:
    """Write the tables of RUNS as one data set for DuckDB, Spark or pandas, with a folder for each run.

    RUNS are run files, batches, and folders with run files in or below them. A later call exports only runs that are
    new or have changed. A run appears in the data set when all its tables are complete. tkperf omits a run that has not
    ended yet.

    \b
    Examples:
      tkperf export /srv/results --parquet /srv/fleet
      tkperf export /srv/results --parquet /srv/fleet --no-seconds
      tkperf export rack7.batch D3.tkperf --parquet fleet
    """
    from tkperf.pipeline.run_folders import expand_folders
    from tkperf.render.dataset import open_dataset
    from tkperf.render.parquet import require_parquet

    if any(path.suffix == BATCH_SUFFIX and not path.is_dir() for path in runs):
        from tkperf.cli.batch_output import expand_batches

        runs = expand_batches(runs)
    run_files = expand_folders(runs)
    require_parquet()
    counts: Counter[_Outcome] = Counter()
    failed: list[RunFileError] = []
    with open_dataset(dataset_folder) as dataset:
        for path in run_files:
            try:
                with without_garbage_collection():
                    outcome = _export(path, dataset, seconds=not no_seconds)
            except RunFileError as error:
                failed.append(error)
                outcome = _Outcome.LEFT_OUT
            counts[outcome] += 1
        total = len(dataset.runs)
    shown = (outcome for outcome in _Outcome if counts[outcome] or outcome is _Outcome.EXPORTED)
    click.echo(f"{dataset_folder}: {', '.join(f'{counts[one]:,} {one}' for one in shown)}; {total:,} runs in all")
    for each in failed[:-1]:
        complain(f"tkperf: left out: {each}")
    if failed:
        raise failed[-1]


def _export(path: Path, dataset: Dataset, *, seconds: bool) -> _Outcome:
    """Export a run file, unless the data set already contains the current state of the file."""
    from tkperf.analysis.comparing.run_figures import build_run_figures
    from tkperf.analysis.drive_telemetry import place_readings
    from tkperf.model.errors import reason_of
    from tkperf.model.record import RunStatus
    from tkperf.model.run_info import find_run_id
    from tkperf.pipeline.result_cache import describe_maker, find_results
    from tkperf.render.dataset import ExportedRun, build_dataset_tables, describe_columns
    from tkperf.render.export_tables import build_tables
    from tkperf.runfile.reader import RunFile
    from tkperf.runfile.writers import is_being_written, state_of

    made_by = f"{describe_maker()} {describe_columns()} {'seconds' if seconds else 'no seconds'}"
    try:
        if dataset.has(state_of(path.stat()), made_by) and not is_being_written(path):
            return _Outcome.UNCHANGED
    except OSError as error:
        raise RunFileError(f"cannot read {path}: {reason_of(error)}") from error
    with RunFile(path, briefly=True) as opened:
        record = opened.record()
        if record.status is RunStatus.RUNNING:
            return _Outcome.UNDER_WAY
        run = ExportedRun(
            run_id=find_run_id(record.info),
            file=path.name.encode(errors="replace").decode(),  # the name of a file may not be valid UTF-8
            stamp=opened.state,
            digest=opened.digest().hex(),
            entries=len(opened.log()),
            made_by=made_by,
            files={},
        )
        former = dataset.runs.get(run.run_id)
        if former is not None and not _replaces(run, former):
            if former.digest != run.digest:
                complain(
                    f"tkperf: {path}: {former.file} is another file of the same run and has at least as many log "
                    "entries, so tkperf keeps the exported tables of that file"
                )
            elif former.file == run.file:
                dataset.note_state(former, run.stamp)
                return _Outcome.UNCHANGED
            return _Outcome.COPY
        result = find_results(opened, record)
        steps = [(test.name, step) for test in record.tests for step in test.steps]
        tables = build_tables(result, steps if seconds else (), opened.samples_left, tuple(place_readings(record)))
        dataset.put(run, (*build_dataset_tables(result, build_run_figures(result)), *tables))
        for left_out in dict.fromkeys(opened.left_out):
            complain(f"tkperf: {path}: not in the data set: {left_out}")
    return _Outcome.EXPORTED


def _replaces(run: ExportedRun, former: ExportedRun) -> bool:
    """Return whether the tables of a run must replace the tables that were already exported. The new tables must
    replace the exported tables in two cases: the new tables contain a later state of the run, or the exported tables
    contain the same state but were written by another version or with other options.

    A state is later if the same file has changed, or if the log of the run contains more entries.
    """
    if run.digest == former.digest:
        return run.made_by != former.made_by
    return run.stamp[:2] == former.stamp[:2] or run.entries > former.entries
