"""Opening of a result, as data."""

from __future__ import annotations

from dataclasses import dataclass

from tkperf.model.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A sentence about a test, without its full stop.

    Attributes:
        test: name of the test.
        section: name of the section; None: the whole test.
        alarm: the sentence qualifies a figure, or names missing ones.
    """

    test: str
    section: str | None
    text: str
    alarm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A figure that a reader asks for first.

    Attributes:
        label: load and further words, such as ``4 KiB random write``.
        key: key of the quantity or characteristic.
        unit: unit in data files.
        value: value in full.
        text: value with its unit for readers; a bound if the value lies beyond everything that was tried.
        sure: interval of 95 % in percent, such as ``± 0.35 %``; ``at least ± 0.35 %`` for a lower limit;
            empty: not known.
        verdict: verdict on steady state, in words; empty: the section has no such rule.
        alarm: the section did not reach steady state, or did not complete.
        workload: measured workload; None: no single one.
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
