"""What a click on a cell opens, as plain data small enough to travel within the page."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tkperf.analysis.details import CellDetail, Part
from tkperf.analysis.flags import describe_disturbances, describe_flags, explain_marks
from tkperf.analysis.host_facts import HOST_FACTS
from tkperf.analysis.results import CellResult, RoundResult, SliceResult
from tkperf.analysis.tables import figure
from tkperf.analysis.uncertainty.wording import COVERED, add_interval
from tkperf.histogram import coarse_edges_ns, coarsen
from tkperf.measurement import NO_IO, Measurement
from tkperf.quantity import (
    IOPS,
    IOS,
    LATENCY_MAX,
    LATENCY_MEAN,
    PERCENTILES,
    THROUGHPUT,
    Direction,
    Figures,
    combine,
    percentile,
)
from tkperf.report.charts.latency import (
    MARKS,
    exceedance,
    histogram_rows,
    mark_rows,
    response_time_histogram,
)
from tkperf.report.charts.seconds import (
    LATENCIES,
    flagged_rows,
    over_seconds,
    part_rows,
    window_rows,
)
from tkperf.report.charts.vega import Spec
from tkperf.report.naming import capitalise, describe_together
from tkperf.report.page import CellView, Facts, TableView
from tkperf.report.subject import Subject
from tkperf.report.wording import format_fact
from tkperf.units import NOT_MEASURED, format_number

_SHOWN = (IOPS, THROUGHPUT, LATENCY_MEAN, *PERCENTILES, LATENCY_MAX, IOS)
_IN_ROUNDS = (IOPS, THROUGHPUT, LATENCY_MEAN, percentile(99.9), LATENCY_MAX)
# A day of minutes would make the page larger by all that nothing happened in.
MOST_HOST_ROWS = 100
# The page draws five digits; what single precision has beyond them would only make it larger.
_FORGOTTEN_BITS = 6


def build_cell_charts() -> dict[str, Spec]:
    """The charts of a cell by name, without data: the page fills them for the cell clicked."""
    seconds = {IOPS.key: (IOPS,), THROUGHPUT.key: (THROUGHPUT,), "latency": LATENCIES}
    return {
        **{
            name: over_seconds(
                [], [], [], [], quantities, f"{describe_together(quantities)}, every second"
            )
            for name, quantities in seconds.items()
        },
        "histogram": response_time_histogram([], [], "Response time histogram"),
        "exceedance": exceedance([], [], "Exceedance"),
    }


def build_cell(subject: Subject, detail: CellDetail) -> CellView:
    """What lies behind a cell of a section, or behind a stream."""
    section = subject.section
    stream = bool(section.slices)
    rate = subject.rate.key
    buckets = histogram_rows(detail.whole)
    seconds = detail.seconds
    return CellView(
        key=subject.links[detail.workload],
        title=f"{section.name}: {detail.workload}",
        facts=_facts(subject, detail),
        rate=rate,
        seconds={
            name: pack(_shorten(getattr(seconds, name)))
            for name in ("start_s", rate, *(quantity.key for quantity in LATENCIES))
        }
        if len(seconds)
        else {},
        buckets={
            name: pack(np.array([row[name] for row in buckets], dtype=np.float64))
            for name in ("lower", "upper", "count")
        }
        if buckets
        else {},
        marks=tuple(mark_rows(detail.whole)),
        window=tuple(window_rows(detail)),
        parts=tuple(part_rows(detail)),
        flagged=tuple(flagged_rows(detail)),
        host=_host(detail, section.areas),
        rounds=None if stream else _rounds(detail, section.rounds, areas=section.areas),
        words=_words(subject, detail),
        job=detail.job_file,
        part_name="slice" if stream else "area" if section.areas else "round",
        part_numbers=tuple(part.number for part in detail.parts),
        part_buckets=_part_buckets(detail.parts),
        part_marks=tuple(name for name, _ in MARKS),
    )


def _part_buckets(parts: Sequence[Part]) -> dict[str, str]:
    """The histogram of each part, in coarse buckets, and its marks (``MARKS``); none of one part alone.

    Counts stand row by row: all buckets of the first part, then those of the second ...
    """
    stats = [part.read + part.write for part in parts]
    histograms = [coarsen(of_part.histogram) for of_part in stats]
    if len(parts) < 2 or not any(histogram.total for histogram in histograms):
        return {}
    filled = np.unique(np.concatenate([histogram.indices for histogram in histograms]))
    counts = np.zeros((len(parts), filled.size))
    for row, histogram in enumerate(histograms):
        counts[row, np.searchsorted(filled, histogram.indices)] = histogram.counts
    lower_ns, upper_ns = coarse_edges_ns(filled)
    marks = [[_us_or_nan(mark(of_part)) for _, mark in MARKS] for of_part in stats]
    return {
        "lower": pack(lower_ns / 1000),
        "upper": pack((upper_ns + 1) / 1000),
        "counts": pack(counts.ravel()),
        "marks": pack(np.array(marks).ravel()),
    }


def _us_or_nan(value_ns: float | None) -> float:
    return float("nan") if value_ns is None else value_ns / 1000


def _words(subject: Subject, detail: CellDetail) -> str:
    section = subject.section
    if section.slices:
        where, what = "Every second of this stream", "all its slices"
    elif section.areas:
        where, what = "Every second of this cell, areas end to end", "all areas measured"
    else:
        where = "Every second of this cell, rounds end to end"
        what = "the window's rounds" if section.window else "all its rounds"
    shaded = ""
    if any(part.judged for part in detail.parts):
        shaded = " Shaded green: the window that was judged for steady state."
    return (
        f"{where}; where a point stands for several seconds the shade reaches from the lowest to the "
        f"highest, and zooming in (wheel or pinch) shows each.{shaded} The histogram and percentiles "
        f"are of the I/Os of {what}{_other_histograms(subject, detail)}"
    )


def _other_histograms(subject: Subject, detail: CellDetail) -> str:
    """How to get at those of a part, and of some seconds."""
    choice = "; those of one alone can be chosen (buckets of up to 1/16)" * (len(detail.parts) > 1)
    # A section has one stream; of several workloads the name is needed, too.
    several = len(subject.details) > 1
    name = (
        f"{subject.section.name}, {detail.workload.mix_and_size}"
        if several
        else subject.section.name
    )
    seconds = f"Those of any seconds: tkperf report RUN --histogram '{name}: 12-40s'."
    return f"{choice}." + f" {seconds}" * bool(len(detail.seconds))


def pack(values: NDArray[np.float32] | NDArray[np.float64]) -> str:
    """Numbers as the page unpacks them: little-endian, compressed (zlib), base 64."""
    little_endian = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(zlib.compress(little_endian)).decode()


def _shorten(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Single precision, rounded to the bits that a drawing can show."""
    bits = values.astype(np.float32).view(np.uint32)
    half = np.uint32(1 << (_FORGOTTEN_BITS - 1))
    kept = (bits + half) >> _FORGOTTEN_BITS << _FORGOTTEN_BITS
    # NaN is "not measured" and must stay one.
    return np.where(np.isnan(values), np.float32(np.nan), kept.view(np.float32))


def _facts(subject: Subject, detail: CellDetail) -> Facts:
    section = subject.section
    if section.slices:
        whole = _whole_stream(section.slices, detail)
        apart = () if len(section.cells) != 1 else _apart(section.cells[0])
        # With a window the section's cell is of that, not of the whole.
        known = None if section.window or len(section.cells) != 1 else section.cells[0]
        return (("Slices", f"{len(section.slices)}, all of them"), *_values(whole, known), *apart)
    cell = section.cell(detail.workload)
    if cell is None:
        return ()
    what = "areas" if section.areas else "rounds"
    apart = _apart(cell)
    window = section.window
    if detail.workload.offered_iops is not None:  # a level of an offered rate is a round of its own
        window = tuple(part.number for part in detail.parts)
    return (
        (f"Mean of {what}", _list(window)),
        *_values(cell.all, cell),
        *apart,
        ("Limited by the host's CPUs", format_fact(cell.host_limited)),
        ("Disturbed", describe_disturbances(cell, cell.foreign_bytes)),
    )


def _apart(cell: CellResult) -> Facts:
    """Of a mix the reads and the writes, where they were told apart."""
    return tuple(
        (name, _listed(figures))
        for name, figures in (("Reads", cell.read), ("Writes", cell.write))
        if figures is not None and 0 < cell.workload.read_percent < 100
    )


def _whole_stream(slices: Sequence[SliceResult], detail: CellDetail) -> Figures:
    """A stream as a single measurement."""
    figures = combine(
        [
            Measurement(
                duration_s=sum(slice_result.duration_s for slice_result in slices),
                read=detail.whole,
                write=NO_IO,
                rates_known=all(
                    slice_result.values.value(IOPS) is not None for slice_result in slices
                ),
            )
        ],
        detail.workload,
    )
    counted = all(slice_result.values.value(IOS) is not None for slice_result in slices)
    return figures if counted else figures | {IOS.key: None}


def _values(figures: Figures, known: CellResult | None) -> Facts:
    """``known``: whose uncertainties they have; None: nobody's."""
    sure = {
        quantity: None if known is None else known.uncertainty_of(quantity) for quantity in _SHOWN
    }
    facts = [
        (
            capitalise(quantity.title),
            add_interval(figures[quantity.key], sure[quantity], quantity.digits),
        )
        for quantity in _SHOWN
    ]
    if any(one is not None and one.known for one in sure.values()):
        facts.append(("± and (from to)", f"interval of {COVERED}"))
    return tuple(facts)


def _listed(figures: Figures) -> str:
    """The most telling values of one direction, in a line."""
    return ", ".join(
        f"{quantity.short} {format_number(figures[quantity.key], quantity.digits)}"
        for quantity in _IN_ROUNDS
    )


def _list(numbers: tuple[int, ...]) -> str:
    if len(numbers) > 2 and numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(str(number) for number in numbers) or "none"


def _rounds(
    detail: CellDetail, rounds: Sequence[RoundResult], *, areas: int | None
) -> TableView | None:
    """The cell in every round, or area, that it was measured in."""
    of_cell: list[tuple[int, CellResult]] = [
        (round_result.number, cell)
        for round_result in rounds
        for cell in round_result.cells
        if cell.workload == detail.workload
    ]
    judged = {part.number for part in detail.parts if part.judged}
    return TableView(
        title="Every area" if areas else "Every round; * in the window",
        columns=("", *(capitalise(quantity.title) for quantity in _IN_ROUNDS)),
        rows=tuple(
            (
                f"{number}{'*' if number in judged else ''}",
                *(figure(cell, quantity, Direction.ALL).text() for quantity in _IN_ROUNDS),
            )
            for number, cell in of_cell
        ),
        notes=explain_marks(cell for _, cell in of_cell),
    )


def _host(detail: CellDetail, areas: int | None) -> TableView | None:
    """What the host did beside each round, area or slice of a cell, of what is known of any."""
    parts = [(part, part.host) for part in detail.parts if part.host is not None]
    of = "area" if areas else "round or slice"
    title = f"Host beside each {of}"
    if len(parts) > MOST_HOST_ROWS:
        parts = [(part, use) for part, use in parts if describe_flags(part)][:MOST_HOST_ROWS]
        title = f"Host beside each {of} that is flagged, {MOST_HOST_ROWS} at most"
    shown = [fact for fact in HOST_FACTS if any(fact.value(use) is not None for _, use in parts)]
    if not shown:
        return None
    return TableView(
        title=title,
        columns=("", *(fact.title for fact in shown), "others on the CPUs", "kernel log"),
        rows=tuple(
            (
                str(part.number),
                *(format_number(fact.value(use), fact.digits) for fact in shown),
                ", ".join(use.others) or NOT_MEASURED,
                "not known"
                if use.kernel_lines is None
                else "; ".join(use.kernel_lines) or "nothing",
            )
            for part, use in parts
        ),
        notes=explain_marks(part for part, _ in parts),
    )
