"""The results of a batch, by its ledger and its run files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tkperf.analysis.batch_verdict import BatchDriveResult, BatchResult, compare_drives
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import ClaimsFile, parse_claims
from tkperf.analysis.results import RunResult
from tkperf.model.batch_state import BatchState, DriveState
from tkperf.model.errors import RunFileError, UsageError
from tkperf.pipeline.result_cache import read_results


def read_answer(
    state: BatchState,
    *,
    claims: ClaimsFile | None = None,
    folder: Path | None = None,
    load: Callable[[Path], RunResult] = read_results,
) -> BatchResult:
    """Read the runs of a batch and put them together.

    Args:
        claims: check these instead of the batch's own; ``folder`` is that of their file.
        load: reads the baseline of claims.

    Raises:
        UsageError: the batch's own claims cannot be read.
    """
    if claims is None and state.claims is not None:
        file = state.claims_path or state.path
        claims = parse_claims(state.claims, file=file)
        folder = Path(file).parent
    baselines: dict[Path, RunResult] = {}

    def load_once(path: Path) -> RunResult:
        if path not in baselines:
            baselines[path] = load(path)
        return baselines[path]

    drives = tuple(map(_read, state.drives))
    if claims is not None:
        checks = claims
        drives = tuple(_check(one, checks, folder or Path(), load_once) for one in drives)
    names = {drive.shown.number: drive.shown.label for drive in state.drives}
    groups, why_not = compare_drives(drives, names)
    return BatchResult(state=state, drives=drives, has_claims=claims is not None, groups=groups, not_compared=why_not)


def with_reports(answer: BatchResult, folder: Path) -> BatchResult:
    """Return the answer with the reports of drives that lie in the folder of its page."""
    drives = []
    for one in answer.drives:
        report = Path(one.state.run_file).with_suffix(".html")
        is_there = (folder / report.name).is_file()
        drives.append(replace(one, report=report.name) if is_there else one)
    return replace(answer, drives=tuple(drives))


def _read(drive: DriveState) -> BatchDriveResult:
    if not drive.stage.has_begun or not Path(drive.run_file).exists():
        return BatchDriveResult(state=drive)
    try:
        return BatchDriveResult(state=drive, result=read_results(Path(drive.run_file)))
    except RunFileError as error:
        return BatchDriveResult(state=drive, error=str(error))


def _check(
    one: BatchDriveResult, claims: ClaimsFile, folder: Path, load_baseline: Callable[[Path], RunResult]
) -> BatchDriveResult:
    if one.result is None:
        return one
    try:
        return replace(one, checked=check_claims(claims, one.result, load=load_baseline, folder=folder))
    except (UsageError, RunFileError) as error:
        return replace(one, not_checked=str(error))
