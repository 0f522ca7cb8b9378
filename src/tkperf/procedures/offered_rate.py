"""Decide whether a device kept up with an offered rate, and describe by how much it did not."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from tkperf.model.measurement import Measurement
from tkperf.model.quantity import BACKLOG, Window
from tkperf.model.workload import Arrival, Workload

ARRIVALS_SPREAD = 3.0  # standard deviations of the number of random arrivals


def keeps_up(workload: Workload, measured: Sequence[Measurement], kept_up_percent: float) -> bool:
    """Return whether this share of the offered I/Os was done. Random arrivals may be fewer by chance."""
    assert workload.offered_iops is not None
    due = workload.offered_iops * sum(step.duration_s for step in measured)
    fewer = ARRIVALS_SPREAD * sqrt(due) if workload.arrival is Arrival.POISSON else 0.0
    return sum(step.ios for step in measured) >= due * kept_up_percent / 100 - fewer


def describe_missed(workload: Workload, measured: Sequence[Measurement]) -> str:
    """Return ``of 4,000 it did 3,000 (75.0 %) and was 60,000 I/Os behind after 60 s``; the longest backlog."""
    assert workload.offered_iops is not None
    iops = sum(step.ios for step in measured) / sum(step.duration_s for step in measured)
    backlog_ios = BACKLOG.combine(Window(rounds=measured, workload=workload)) or 0.0
    return (
        f"of {workload.offered_iops:,.0f} it did {iops:,.0f} "
        f"({100 * iops / workload.offered_iops:.1f} %) and was {backlog_ios:,.0f} I/Os behind after "
        f"{max(step.duration_s for step in measured):.0f} s"
    )
