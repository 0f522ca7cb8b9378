"""Content of the dialog that a click on a cell opens, as plain data small enough to travel within the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tkperf.analysis.details import CellDetail
from tkperf.analysis.host_results import HOST_FACTS
from tkperf.model.quantity import IOPS, THROUGHPUT
from tkperf.model.units import NOT_MEASURED, format_number
from tkperf.page.cell_parts import ALL, IN_A_LINE, build_scopes, pack
from tkperf.page.chart import AnyChart, Bucket, Distribution
from tkperf.page.figures.response_times import find_buckets
from tkperf.page.figures.timeline import (
    LATENCIES_OF_SECONDS,
    draw_any_seconds,
    find_flagged,
    find_judged,
    find_part_starts,
)
from tkperf.page.naming import capitalise, describe_quantities
from tkperf.page.page import CellView, ScopeView, TableView
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.cell_tables import figure
from tkperf.page.words.uncertainty import describe_flags, explain_marks

# Rows for every minute of a day would fill the page with parts in which nothing happened.
MOST_HOST_ROWS = 100
# The page draws five digits; the further digits of single precision would only make it larger.
_FORGOTTEN_BITS = 6


def build_cell_charts() -> dict[str, AnyChart]:
    """Return the charts of a cell by name, without data: the page fills them for the cell clicked."""
    seconds = {IOPS.key: (IOPS,), THROUGHPUT.key: (THROUGHPUT,), "latency": LATENCIES_OF_SECONDS}
    charts: dict[str, AnyChart] = {
        "histogram": _any_distribution("Response time histogram"),
        "exceedance": _any_distribution("Exceedance", exceedance=True),
    }
    for name, quantities in seconds.items():
        title = f"{describe_quantities(quantities)}, every second"
        charts[name] = draw_any_seconds(quantities, title)
    return charts


def _any_distribution(title: str, *, exceedance: bool = False) -> Distribution:
    return Distribution(title=title, buckets=(), marks=(), exceedance=exceedance, filled=False)


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells that open at a click. Each is built on iteration: paper has no use for them."""

    shown_sections: Sequence[ShownSection]

    def __iter__(self) -> Iterator[CellView]:
        for shown in self.shown_sections:
            for detail in shown.details.values():
                yield _build_cell(shown, detail)

    def __len__(self) -> int:
        return sum(len(shown.details) for shown in self.shown_sections)


def _build_cell(shown: ShownSection, detail: CellDetail) -> CellView:
    """Return the view of one cell of a section, or of one stream."""
    section = shown.section
    rate = section.rate.key
    buckets = find_buckets(detail.whole)
    seconds = detail.seconds
    scopes, apart = build_scopes(shown, detail)
    return CellView(
        key=shown.links[detail.workload],
        title=f"{section.name}: {detail.workload}",
        rate=rate,
        seconds={
            name: pack(_shorten(getattr(seconds, name)))
            for name in ("start_s", rate, *(quantity.key for quantity in LATENCIES_OF_SECONDS))
        }
        if len(seconds)
        else {},
        buckets={
            name: pack(np.array(column, dtype=np.float64))
            for name, column in zip(Bucket._fields, zip(*buckets, strict=True), strict=False)
        },
        # The fine buckets of a stream count all its I/Os, even if it has a window.
        buckets_of=ALL if section.slices else scopes[0].key,
        scopes=scopes,
        apart=apart,
        window=find_judged(detail),
        parts=find_part_starts(detail),
        flagged=find_flagged(detail),
        host=_host(detail, section.areas),
        rounds=None if section.slices else _rounds(detail, shown),
        words=_words(shown, detail, scopes),
        job=detail.job_file,
    )


def _words(shown: ShownSection, detail: CellDetail, scopes: Sequence[ScopeView]) -> str:
    """Return the explanation of the plots, which holds for every part of the cell."""
    name, parts = shown.section.part_name, detail.parts
    several = "" if shown.section.slices or len(parts) < 2 else f", {name}s end to end"
    apart = any(len(scope.parts) > 1 for scope in scopes)
    between = " from the first to the last" if apart else ""
    shaded = " Shaded green: the window that was judged for steady state."
    coarse = (
        f" Those of a single {name}, and of what is added up of several, are in buckets of up to 1/16 "
        "of the response time."
    )
    return (
        f"Every second{between} of what is named above{several}; where a point covers several seconds the "
        "shade reaches from the lowest to the highest, and zooming in (wheel or pinch) shows each."
        + shaded * any(part.judged for part in parts)
        + " The histogram, the exceedance and the percentiles are of the same I/Os."
        + coarse * (len(parts) > 1)
        + _seconds_alone(shown, detail)
    )


def _seconds_alone(shown: ShownSection, detail: CellDetail) -> str:
    """Return the hint how to get the histogram of single seconds."""
    if not len(detail.seconds):
        return ""
    # A section has one stream; among several workloads the hint also needs the name.
    mix = f", {detail.workload.mix_and_size}" if len(shown.details) > 1 else ""
    return f" Those of any seconds: tkperf report RUN --histogram '{shown.section.name}{mix}: 12-40s'."


def _shorten(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the values in single precision, rounded to the bits that a drawing can show."""
    bits = values.astype(np.float32).view(np.uint32)
    half = np.uint32(1 << (_FORGOTTEN_BITS - 1))
    kept = (bits + half) >> _FORGOTTEN_BITS << _FORGOTTEN_BITS
    # NaN means "not measured" and has to stay NaN.
    return np.where(np.isnan(values), np.float32(np.nan), kept.view(np.float32))


def _rounds(detail: CellDetail, shown: ShownSection) -> TableView:
    """Return a table of the cell in every round, or area, that measured it."""
    of_cell = shown.rounds.get(detail.workload, ())
    judged = {part.number for part in detail.parts if part.judged}
    return TableView(
        title="Every area" if shown.section.areas else "Every round; * in the window",
        columns=("", *(capitalise(quantity.title) for quantity in IN_A_LINE)),
        rows=tuple(
            (
                f"{each.number}{'*' if each.number in judged else ''}",
                *(figure(cell, quantity).text() for quantity in IN_A_LINE),
            )
            for each, cell in of_cell
        ),
        notes=explain_marks(cell for _, cell in of_cell),
    )


def _host(detail: CellDetail, areas: int | None) -> TableView | None:
    """Return a table of the host's work during each round, area or slice of a cell; None without any known fact."""
    parts = [(part, use) for part in detail.parts if (use := part.step.host) is not None]
    of = "area" if areas else "round or slice"
    title = f"Host during each {of}"
    if len(parts) > MOST_HOST_ROWS:
        parts = [(part, use) for part, use in parts if describe_flags(part)][:MOST_HOST_ROWS]
        title = f"Host during each {of} that is flagged, {MOST_HOST_ROWS} at most"
    displayed = [fact for fact in HOST_FACTS if any(fact.value(use) is not None for _, use in parts)]
    if not displayed:
        return None
    return TableView(
        title=title,
        columns=("", *(fact.title for fact in displayed), "others on the CPUs", "kernel log"),
        rows=tuple(
            (
                str(part.number),
                *(format_number(fact.value(use), fact.digits) for fact in displayed),
                ", ".join(use.others) or NOT_MEASURED,
                "not known" if use.kernel_lines is None else "; ".join(use.kernel_lines) or "nothing",
            )
            for part, use in parts
        ),
        notes=explain_marks(part for part, _ in parts),
    )
