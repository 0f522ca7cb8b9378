"""The estimate of a batch. Each drive is examined in the same way as before a run. No drive is opened for writing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from tkperf.analysis.estimates import BatchEstimate, DriveEstimate, Rates, RunEstimate
from tkperf.batch.draft import Settled
from tkperf.batch.drive_processes import Held
from tkperf.batch.neighbours import Neighbours
from tkperf.batch.question import show_drive
from tkperf.batch.request import BatchDrive, BatchRequest
from tkperf.host.paths import read_cores
from tkperf.model.errors import RefusedError, TkperfError
from tkperf.model.units import format_duration
from tkperf.pipeline.estimate_run import Rating, estimate_run
from tkperf.pipeline.run_plan import RunPlan, plan_run

RatesOf = Callable[[RunPlan], Rates]


def estimate_batch(settled: Settled, rates_of: RatesOf, rating: Rating | None = None) -> BatchEstimate:
    """Examine every drive of a batch, and return the estimate of the batch. If a drive has a fault, the estimate of
    this drive contains the fault.

    Args:
        rates_of: a function that returns the rates of the device that a plan measures.
    """
    request = settled.request
    drives: list[DriveEstimate] = []
    held: list[Held] = []
    for number, drive in enumerate(request.drives, start=1):
        fault: TkperfError | None = settled.faults.get(number)
        found: tuple[RunPlan, RunEstimate] | None = None
        if fault is None:
            try:
                plan = plan_run(drive.request, look_only=True)
                found = plan, estimate_run(plan, rates_of(plan), rating)
            except TkperfError as error:
                fault = error
        if found is None:
            path = None if number in settled.faults else drive.request.device
            drives.append(_build(number, drive, path=path, fault=str(fault)))
            continue
        plan, estimate = found
        shown = show_drive(number, drive, plan, estimate)
        held.append(shown)
        drives.append(
            _build(
                number,
                drive,
                path=shown.shown.path,
                slot=shown.shown.slot,
                estimate=estimate,
                host=plan.audit.as_plain_data(),
            )
        )
    settings = tuple(_describe_settings(request))
    if not held:
        return BatchEstimate(name=request.name, drives=tuple(drives), settings=settings)
    neighbours = Neighbours(request=request, held=held, allowed=os.sched_getaffinity(0), cores=read_cores())
    return BatchEstimate(
        name=request.name,
        drives=tuple(drives),
        groups=neighbours.groups,
        cpus=neighbours.cpus,
        bounds_s=neighbours.bounds_s,
        refused=_find_refusal(neighbours),
        settings=settings,
    )


def _build(number: int, drive: BatchDrive, **found: Any) -> DriveEstimate:
    return DriveEstimate(number=number, name=drive.name, given=drive.given, **{"slot": drive.slot, **found})


def _find_refusal(neighbours: Neighbours) -> str:
    try:
        neighbours.require_within()
    except RefusedError as error:
        return str(error)
    return ""


def _describe_settings(request: BatchRequest) -> Iterator[tuple[str, str]]:
    """Yield the settings that control how a batch proceeds, such as the number of parallel drives, each with
    its label.
    """
    yield "at once", str(request.parallel) + (" (strict)" if request.strict else "")
    if request.stagger_s:
        yield "stagger", f"{format_duration(request.stagger_s)} between beginnings on one link"
    if request.compare_reads:
        yield "reads", "each drive alone and all together, before anything is purged"
    if request.alone_again:
        yield "again", "a drive that the others slowed down is measured again alone"
    if not request.own_cpus:
        yield "CPUs", "shared by all drives"
    if request.claims is not None:
        yield "claims", request.claims_path or "given"
