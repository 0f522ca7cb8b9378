"""What opens a result, as data."""

from __future__ import annotations

from dataclasses import dataclass

from tkperf.model.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A sentence of what a test found, without its full stop.

    Attributes:
        test: its name.
        section: what it is about; None: the whole test.
        alarm: it says why a figure is not what it seems, or what is missing.
    """

    test: str
    section: str | None
    text: str
    alarm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A figure that a reader asks for first.

    Attributes:
        label: what it is of, such as ``4 KiB random write``.
        key: of the quantity or characteristic.
        unit: as data files have it.
        value: in full.
        text: the value with its unit as people read it; of what lies beyond all that was tried, where it can be.
        sure: its interval of 95 % in percent, such as ``± 0.35 %``, of a lower limit ``at least ± 0.35 %``; empty: not known.
        verdict: whether it is of a steady state, in words; empty: there is no such rule.
        alarm: that was not reached, or the section did not come to its end.
        workload: what it was measured of; None: of no single one.
    """

    test: str
    section: str
    label: str
    key: str
    unit: str
    value: float | None
    text: str
    sure: str
    verdict: str
    alarm: bool
    workload: Workload | None
