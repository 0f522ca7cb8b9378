"""Write a data set of many runs: a folder ``run_id=ID`` for each run, with a Parquet file for each table.

In addition to the tables of a run, each folder contains a table of the run itself and a table of its figures. A folder
receives its final name only when all its tables are complete, and an existing folder is replaced in one step. A reader
therefore finds either the complete run or no run (ADR 61).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from uuid import UUID

import msgspec

from tkperf.analysis.comparing.decision import Unranked
from tkperf.analysis.comparing.ranking import freeze_conditions, order_of
from tkperf.analysis.comparing.run_figures import FIXED, MEASURES, FigureValue, RunFigures
from tkperf.analysis.results import RunResult
from tkperf.analysis.verdict import judge_run
from tkperf.model.decoding import make_json_decoder
from tkperf.model.errors import UsageError, reason_of
from tkperf.model.input_files import read_input
from tkperf.page.verdict_texts import describe_verdict
from tkperf.render.export_json import DRIVE, WORKLOAD, Row, workload_row
from tkperf.render.export_tables import DataTable
from tkperf.render.parquet import render_parquet
from tkperf.runfile.writers import FileStamp
from tkperf.system.output_files import UNFINISHED, make_folder, remove_folder, replace_file, replace_folder

MARKER = "_tkperf_dataset.json"
"""The name of the file that identifies a data set. Programs that read Parquet ignore files whose names begin with an
underscore.
"""
FORMAT = 1
_EXPORTED = "_export.json"
_PARTITION = "run_id="
_MOST_BYTES = 1 << 16
_CODE = ("dataset", "export_json", "export_tables", "parquet")


class ExportedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a run in a data set.

    Attributes:
        file: the name of the run file.
        stamp, digest: the state and the digest of the run file.
        entries: number of log entries in the run file. The number increases when a run is resumed.
        made_by: the version and the code of tkperf, the columns of the tables, and the options of the export.
        files: the size of each file in the folder.
    """

    run_id: str
    file: str
    stamp: FileStamp
    digest: str
    entries: int
    made_by: str
    files: dict[str, int]


def _file_of(table: DataTable) -> str:
    return f"{table.name}.parquet"


class _Marker(msgspec.Struct, frozen=True):
    tkperf_dataset: int


_DECODE_RUN = make_json_decoder(ExportedRun)
_DECODE_MARKER = make_json_decoder(_Marker)


@cache
def describe_columns() -> str:
    """Return a digest of the code that determines tables and columns. If this code changes, all runs are exported
    again.
    """
    folder = resources.files("tkperf.render")
    digest = hashlib.sha256()
    for name in _CODE:
        digest.update((folder / f"{name}.py").read_bytes())
    return digest.hexdigest()[:16]


class Dataset:
    """An open data set. No other process can write to the data set while it is open. ``runs`` contains the runs, with
    the IDs of the runs as the keys.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.runs = dict(self._read_runs())
        self._states = {(run.stamp, run.made_by) for run in self.runs.values()}

    def has(self, stamp: FileStamp, made_by: str) -> bool:
        """Return whether a run was exported from a file in this state by the same code and with the same options."""
        return (stamp, made_by) in self._states

    def path_of(self, run_id: str) -> Path:
        """Return the folder of a run."""
        # The ID is written with dashes, so that no program interprets it as a number.
        return self._folder / f"{_PARTITION}{UUID(run_id)}"

    def put(self, run: ExportedRun, tables: Sequence[DataTable]) -> ExportedRun:
        """Write a run to the data set. If the data set already contains a run with the same ID, that run is replaced.
        Return the run with the sizes of its files.

        Raises:
            UsageError: the folder of the run contains other files, is not a folder, or cannot be written.
        """
        path = self.path_of(run.run_id)
        sizes: dict[str, int] = {}
        put = msgspec.structs.replace(run, files=sizes)

        def render() -> Iterator[tuple[str, bytes]]:
            for table in tables:
                content = render_parquet(table, run.run_id)
                sizes[_file_of(table)] = len(content)
                yield _file_of(table), content
            yield _EXPORTED, msgspec.json.encode(put)

        self._require_own_files(path, {*map(_file_of, tables), _EXPORTED})
        try:
            replace_folder(path, render())
        except OSError as error:
            raise UsageError(
                f"tkperf cannot write {path}: {reason_of(error)}. The preceding runs were exported"
            ) from error
        self.runs[run.run_id] = put
        return put

    def note_state(self, former: ExportedRun, stamp: FileStamp) -> None:
        """Record the new state of a run file. Call this method if the content of the run file has not changed. The next
        export then does not need to read the run file.
        """
        noted = msgspec.structs.replace(former, stamp=stamp)
        # An error is ignored. Its only consequence is that the next export reads the file again.
        with suppress(OSError):
            replace_file(self.path_of(former.run_id) / _EXPORTED, [msgspec.json.encode(noted)])
        self.runs[former.run_id] = noted

    def _require_own_files(self, path: Path, names: Iterable[str]) -> None:
        if path.exists():
            former = self.runs.get(UUID(path.name.removeprefix(_PARTITION)).hex)
            own = {*names, *(former.files if former else ())}
            others = sorted(name for name in os.listdir(path) if name not in own)  # noqa: PTH208 - names only
            if others:
                raise UsageError(
                    f"{path / others[0]} is not a table of tkperf, so nothing was replaced. Move this file away"
                )

    def _read_runs(self) -> Iterator[tuple[str, ExportedRun]]:
        for path in sorted(self._folder.glob(f"{_PARTITION}*")):
            with suppress(UsageError, msgspec.MsgspecError, ValueError, OSError):
                content = read_input(path / _EXPORTED, what="state of a run", limit_bytes=_MOST_BYTES)
                run: ExportedRun = _DECODE_RUN.decode(content)
                complete = all((path / name).stat().st_size == size for name, size in run.files.items())
                if complete and path == self.path_of(run.run_id):
                    yield run.run_id, run


@contextmanager
def open_dataset(folder: Path) -> Iterator[Dataset]:
    """Open a data set, or create a data set in a new or empty folder.

    Raises:
        UsageError: the folder has other content, another version of tkperf created the data set, or another process is
            writing to it.
    """
    try:
        make_folder(folder)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _require_dataset(folder)
        except BlockingIOError:
            raise UsageError(f"another 'tkperf export' is writing to {folder}. Wait until it has ended") from None
        except OSError as error:
            raise _cannot_write(folder, error) from error
        _remove_unfinished(descriptor)
        yield Dataset(folder)
    finally:
        os.close(descriptor)


def _cannot_write(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"tkperf cannot write the data set {folder}: {reason_of(error)}")


def _require_dataset(folder: Path) -> None:
    if not (folder / MARKER).exists():
        if not all(map(UNFINISHED.fullmatch, os.listdir(folder))):  # noqa: PTH208 - names only
            raise UsageError(
                f"{folder} contains files that do not belong to a data set of tkperf. Nothing was written. Choose a "
                "new folder"
            )
        replace_file(folder / MARKER, [msgspec.json.encode(_Marker(FORMAT))])
        return
    content = read_input(folder / MARKER, what="data set", limit_bytes=_MOST_BYTES)
    try:
        form = _DECODE_MARKER.decode(content).tkperf_dataset
    except msgspec.MsgspecError:
        form = None
    if form != FORMAT:
        raise UsageError(f"{folder} is a data set of another version of tkperf. Choose a new folder")


def _remove_unfinished(folder: int) -> None:
    """Remove the incomplete folders that an export left behind when it was killed. No other process writes to the data
    set at this time.
    """
    for name in filter(UNFINISHED.fullmatch, os.listdir(folder)):
        # If the entry is a link, or a folder that contains folders, no export created it. The entry may remain, because
        # programs that read the data set ignore its hidden name.
        with suppress(OSError):
            if name.endswith(".part"):
                os.unlink(name, dir_fd=folder)
            else:
                remove_folder(folder, name)


_USES = {fixed.key: fixed.use for fixed in FIXED}
_PLACE = {"run": str, "target": str}
_RUN = {
    "uuid": str,
    "suite": str,
    "profile": str,
    "specification": str,
    "started_utc": str,
    "ended_utc": str,
    "status": str,
    "verdict": str,
    "reasons": str,
    "simulated": bool,
    **DRIVE,
    "write_cache": str,
    "active_range_bytes": int,
    "host": str,
    "kernel": str,
    "cpu": str,
    "fio_version": str,
    "tkperf_version": str,
    "media_errors": int,
    "parts_left_out": int,
}
_FIGURE = {
    "test": str,
    "section": str,
    "figure": str,
    "use": str,
    "part": str,
    **WORKLOAD,
    "key": str,
    "unit": str,
    "better": str,
    "value": float,
    "low_95": float,
    "high_95": float,
    "not_ranked": str,
    "preferred": bool,
    "fills": float,
    "conditions": str,
}


def build_dataset_tables(result: RunResult, figures: RunFigures) -> Iterator[DataTable]:
    """Yield the table of the run, which has one row, and the table of the figures of the run, which has a row for each
    value.
    """
    yield DataTable(name="runs", types={**_PLACE, **_RUN}, rows=(_build_run(result, figures),))
    yield DataTable(name="figures", types={**_PLACE, **_FIGURE}, rows=tuple(_build_figures(figures)))


def _build_run(result: RunResult, figures: RunFigures) -> Row:
    info, device = result.info, result.info.device
    return (
        info.name,
        _text(device.get("kind")),
        info.uuid,
        info.suite,
        info.profile_name,
        info.specification,
        info.started_utc,
        result.ended_utc,
        result.status.value,
        judge_run(result).state.value,
        "; ".join(describe_verdict(result).reasons),
        info.is_simulated,
        _text(device.get("model")),
        _text(device.get("serial")),
        _text(device.get("firmware")),
        _count(device.get("capacity_bytes")),
        _text(device.get("interface")),
        figures.device.get("form_factor"),
        _text(device.get("write_cache_in_run")),
        info.active_range_length_bytes,
        figures.host,
        _text(info.host.get("kernel")),
        _text(info.host.get("cpu_model")),
        info.fio_version,
        info.tkperf_version,
        result.media_errors,
        len(result.left_out),
    )


def _build_figures(figures: RunFigures) -> Iterator[Row]:
    for key, measure in MEASURES.items():
        values = sorted((value for value in figures.values if value.key == key), key=order_of)
        known = [value for value in values if value.entry.value is not None]
        for value in known:
            level = None if value.entry.uncertainty is None else value.entry.uncertainty.of_level
            yield (
                figures.name,
                _text(figures.device.get("kind")),
                value.test,
                value.section,
                key,
                _USES.get(key),
                value.part or None,
                *workload_row(value.workload),
                measure.key,
                measure.unit_in_data,
                measure.better.value,
                value.entry.value,
                level and level.low,
                level and level.high,
                _find_unranked(figures, value),
                value is known[0],
                value.fills,
                "; ".join(f"{name}={text}" for name, text in freeze_conditions(figures, value)),
            )


def _find_unranked(figures: RunFigures, value: FigureValue) -> Unranked | None:
    return value.unranked if figures.is_valid else Unranked.NOT_COMPARABLE


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _count(value: object) -> int | None:
    """Return the number, or None if the number does not fit into the column. A run file from another source can contain
    any number.
    """
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None
