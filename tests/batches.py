"""Batches with invented drives and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.analysis.made_up import made_up_run, made_up_section
from tests.builders import work
from tkperf.analysis.batch_verdict import BatchDriveResult, BatchResult, compare_drives
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import parse_claims
from tkperf.analysis.results import RunResult
from tkperf.model.batch_state import BatchPlace, BatchState, DriveShown, DriveStage, DriveState
from tkperf.model.sharing import SharingState


def drive(
    number: int,
    stage: DriveStage = DriveStage.DONE,
    *,
    exit_code: int | None = None,
    text: str = "",
    path: str = "/dev/sdz",
    slot: str | None = "",
    model: str | None = "MODEL",
    serial: str | None = None,
) -> DriveState:
    """Return a drive. By default, the slot has the same number as the drive. The caller can pass another slot, or None
    for no slot.
    """
    return DriveState(
        shown=DriveShown(
            number=number,
            name=f"lot-{number:02}",
            path=path,
            capacity_bytes=10**9,
            slot=str(number) if slot == "" else slot,
            model=model,
            serial=serial or f"S{number}",
        ),
        run_file=f"lot-{number:02}.tkperf",
        stage=stage,
        exit_code=exit_code,
        text=text,
        place=BatchPlace(name="lot", number=number, others=1, sharing=SharingState.NOT_KNOWN),
    )


def batch(*drives: DriveState, supervisor: int | None = None) -> BatchState:
    return BatchState(name="lot", path="lot.batch", drives=drives, supervisor=supervisor)


def measured(number: int, value: float, *, model: str = "MODEL") -> BatchDriveResult:
    """Return a drive that is done, with results for 4 KiB writes and reads."""
    section = made_up_section("IOPS", {work(): [value] * 5, work(100): [2 * value] * 5})
    device = {"model": model, "serial": f"S{number}", "capacity_bytes": 10**9}
    result = made_up_run(f"lot-{number:02}", {"iops": [section]}, device=device)
    return BatchDriveResult(state=drive(number, model=model), result=result)


def answer_of(*drives: BatchDriveResult) -> BatchResult:
    """Return the result of a batch without claims."""
    names = {one.number: one.state.shown.label for one in drives}
    groups, why = compare_drives(drives, names)
    return BatchResult(state=batch(*(one.state for one in drives)), drives=drives, groups=groups, not_compared=why)


def claims_of(*limits: tuple[int, float]) -> str:
    """Return claims with a minimum for IOPS. There is one claim for each share of reads."""
    return "".join(
        f'[[claim]]\ntest = "iops"\nmetric = "iops"\nread_percent = {reads}\nblock_size = "4k"\nat_least = {limit}\n'
        for reads, limit in limits
    )


def checked_answer(drives: Sequence[BatchDriveResult], claims: str) -> BatchResult:
    """Return the result of a batch with claims."""
    read = parse_claims(claims, file="claims.toml")

    def check(one: BatchDriveResult) -> BatchDriveResult:
        if one.result is None:
            return one
        return replace(one, checked=check_claims(read, one.result, load=_load_nothing, folder=Path()))

    return replace(answer_of(*map(check, drives)), has_claims=True)


def _load_nothing(path: Path) -> RunResult:
    raise AssertionError(path)
