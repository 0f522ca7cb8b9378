"""Jobs of workers that read many runs: comparisons and batches."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from tkperf.analysis.batch_verdict import BatchResult
from tkperf.analysis.comparing.comparison import Arrangement, compare
from tkperf.analysis.results import RunResult
from tkperf.batch.batch_results import read_answer
from tkperf.batch.ledger import read_batch
from tkperf.model.errors import UsageError
from tkperf.page.batch_results_page import build_batch_mail, build_batch_page
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.page import ReportView
from tkperf.pipeline.result_cache import read_results
from tkperf.render.document import compose
from tkperf.render.export_batch import build_batch_tables, render_batch_json
from tkperf.render.export_comparison import render_comparison_json
from tkperf.render.export_tables import DataTable, build_comparison_table, render_csv
from tkperf.render.html import PageFrame, render_view
from tkperf.render.pdf import set_document
from tkperf.web.files import KnownFile, reach
from tkperf.web.row_reader import reach_batch


def make_comparison(
    *, order: Sequence[str], arrangement: str, kind: str, frame: Mapping[str, str] | None, **files: KnownFile
) -> bytes:
    """Return a comparison of runs in this order, as a page or another kind of file."""
    results = [_read(files[run_id]) for run_id in order]
    comparison = compare(results, Arrangement(arrangement) if arrangement else None)
    match kind:
        case "csv":
            return "".join(render_csv(build_comparison_table(comparison))).encode()
        case "json":
            return render_comparison_json(comparison).encode()
    return _render(build_comparison_page(comparison), kind, frame)


def make_batch(
    *, ledger: KnownFile, addresses: Mapping[str, str], kind: str, frame: Mapping[str, str] | None, **files: KnownFile
) -> bytes:
    """Return a batch as a page or another kind of file.

    Args:
        files: run files by their names.
        addresses: the pages of runs, by the same names.
    """
    answer = _read_batch(ledger, files)
    match kind:
        case "mail":
            return "\n".join((*build_batch_mail(answer), "")).encode()
        case "json":
            return render_batch_json(answer).encode()
        case "csv":
            return pack_tables(build_batch_tables(answer), ledger.name)
    if frame is not None:
        drives = tuple(replace(one, report=addresses.get(Path(one.state.run_file).name, "")) for one in answer.drives)
        answer = replace(answer, drives=drives)
    return _render(build_batch_page(answer), kind, frame)


def _read_batch(ledger: KnownFile, files: Mapping[str, KnownFile]) -> BatchResult:
    """Read a batch with the runs that the library knows, and no other file that its ledger may name."""
    state = read_batch(reach_batch(ledger))
    folder = ledger.folder / Path(ledger.place).parent

    def find(run_file: str) -> str:
        known = files.get(Path(run_file).name)
        # A run file that the library does not have (yet) has no results.
        return str(folder / ".") if known is None else str(reach(known))

    def load_baseline(path: Path) -> RunResult:
        if not path.resolve().is_relative_to(ledger.folder):
            raise UsageError(f"the baseline {path.name} of its claims is not below the served folder")
        return read_results(path)

    drives = tuple(msgspec.structs.replace(drive, run_file=find(drive.run_file)) for drive in state.drives)
    return read_answer(msgspec.structs.replace(state, drives=drives), load=load_baseline)


def _read(known: KnownFile) -> RunResult:
    result = read_results(reach(known))
    reach(known)  # nor was another file there meanwhile
    return result


def _render(view: ReportView, kind: str, frame: Mapping[str, str] | None) -> bytes:
    if kind == "pdf":
        return set_document(compose(view))
    return render_view(view, None if frame is None else PageFrame(**frame)).encode()


def pack_tables(tables: Iterable[DataTable], name: str) -> bytes:
    """Return tables as CSV in a ZIP archive."""
    archive = io.BytesIO()
    name = name.encode(errors="replace").decode()  # the name of a file may be no text
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for table in tables:
            with packed.open(f"{name}/{table.name}.csv", "w") as member:
                member.writelines(piece.encode() for piece in render_csv(table))
    return archive.getvalue()
