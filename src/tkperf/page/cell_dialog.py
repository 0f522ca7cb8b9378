"""Build the content of the dialog that opens when a user clicks on a cell. The content is plain data that is small
enough to be part of the page.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tkperf.analysis.details import CellDetail, TimedStep
from tkperf.analysis.host_conditions import HOST_FACTS
from tkperf.analysis.results import CellResult
from tkperf.analysis.uncertainty.estimate import Uncertainty
from tkperf.analysis.workload_axes import name_stream
from tkperf.model.histogram import coarse_edges_ns, find_coarse_buckets
from tkperf.model.measurement import IoStats, Measurement, Seconds, add_all
from tkperf.model.quantity import (
    IOPS,
    IOS,
    LATENCY_MAX,
    LATENCY_MEAN,
    PERCENTILES,
    THROUGHPUT,
    Direction,
    Figures,
    Quantity,
    combine,
    percentile,
    stats_of,
)
from tkperf.model.reported_percentiles import TAIL_PERCENT
from tkperf.model.units import NOT_MEASURED, format_number
from tkperf.page.chart import AnyChart, Bucket, Distribution
from tkperf.page.facts import or_not_known, word
from tkperf.page.figures.curves import LATENCY_MARKS, find_buckets, find_marks
from tkperf.page.figures.timeline import (
    LATENCIES_OF_SECONDS,
    draw_any_seconds,
    find_flagged,
    find_judged,
    find_part_starts,
)
from tkperf.page.naming import MARKABLE, capitalise, name_quantities
from tkperf.page.page import CellView, Facts, PartShownView, PartsView, Stretches, TableView
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.cell_tables import figure
from tkperf.page.words.uncertainty import INTERVAL, add_interval, describe_disturbances, describe_flags, explain_marks

SHOWN = {
    capitalise(quantity.title): quantity
    for quantity in (IOPS, THROUGHPUT, LATENCY_MEAN, *PERCENTILES, LATENCY_MAX, IOS)
}
IN_A_LINE = (IOPS, THROUGHPUT, LATENCY_MEAN, percentile(TAIL_PERCENT), LATENCY_MAX)
ALL, WINDOW = "all", "window"
# Level 6 is the default of zlib. With this level, a page of all tests is 2 % smaller than with level 1, and the
# compression takes the same time.
_LEVEL = 6
# Start times are rounded to 10 ms, because a drawing cannot show smaller differences. The edges of a histogram are
# whole nanoseconds.
_STARTS_A_SECOND, _NS_IN_US = 100, 1000
_DIRECTIONS = {Direction.READ: "reads", Direction.WRITE: "writes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartShown:
    """A part of a cell as numbers, before tkperf describes the part in words.

    Attributes:
        parts: the same as in ``PartShownView``.
        stats: the I/Os of the part.
        known: the result that contains the uncertainties of the part; None if there is no such result.
        rows: the same as in ``PartShownView``; None if equal to ``parts``.
    """

    key: str
    words: str
    parts: Stretches
    stats: IoStats
    figures: Figures
    known: CellResult | None = None
    direction: Direction = Direction.ALL
    host: CellResult | None = None
    rows: Stretches | None = None


def build_parts_shown(shown: ShownSection, detail: CellDetail) -> tuple[tuple[PartShownView, ...], PartsView | None]:
    """Return two results. The first result contains the parts that the dialog can show: the part that the figures of
    the section cover, the whole cell if it contains more than this part, and the reads and the writes of a mix.

    The second result contains each round, area or slice. The second result is None for a single round, area or slice
    without separate reads and writes.
    """
    parts_shown = tuple(_parts_shown(shown, detail))
    directions = [part_shown.stats for part_shown in parts_shown if part_shown.direction is not Direction.ALL]
    apart = len(detail.parts) > 1 or directions
    return (
        tuple(_view(part_shown, shown, detail) for part_shown in parts_shown),
        _build_parts(shown, detail, directions) if apart else None,
    )


def _view(part_shown: _PartShown, shown: ShownSection, detail: CellDetail) -> PartShownView:
    return PartShownView(
        key=part_shown.key,
        words=part_shown.words,
        facts=(
            (f"{capitalise(shown.section.part_name)}s", list_numbers(_parts_of(part_shown, detail))),
            *_values(part_shown),
            *(
                _in_lines(part_shown.known, detail)
                if part_shown.known is not None and part_shown.direction is Direction.ALL
                else ()
            ),
            *(() if part_shown.host is None else _host_facts(part_shown.host)),
        ),
        marks=find_marks(part_shown.stats),
        latencies=_latencies(part_shown.figures),
        parts=part_shown.parts,
        rows=part_shown.rows or part_shown.parts,
    )


def _parts_shown(shown: ShownSection, detail: CellDetail) -> Iterator[_PartShown]:
    section, parts = shown.section, detail.parts
    window_numbers = set(section.window)
    in_window = [part for part in parts if part.number in window_numbers]
    cell = _cell(shown, detail)
    if not in_window or len(in_window) == len(parts):
        whole = _whole(shown, detail, cell)
        if in_window:
            whole = replace(whole, words=f"{whole.words}, the window")
        yield whole
        yield from _directions(detail, whole)
        return
    window = _PartShown(
        key=WINDOW,
        words=f"{section.part_name}s {list_numbers(in_window)}, the window",
        parts=_stretches(place for place, part in enumerate(parts) if part.number in window_numbers),
        stats=_sum(in_window) if section.slices else detail.whole,
        figures={} if cell is None else cell.all,
        known=cell,
        host=cell,
    )
    yield window
    yield _whole(shown, detail, None)
    yield from _directions(detail, window)


def _whole(shown: ShownSection, detail: CellDetail, known: CellResult | None) -> _PartShown:
    """Return the part that covers the whole cell. ``known`` contains the figures of the section if these figures cover
    the whole cell.
    """
    parts, name = detail.parts, shown.section.part_name
    if shown.section.slices:
        figures = _whole_stream(shown, detail)
    elif known is not None:
        figures = known.all
    else:
        figures = combine([part.measurement for part in parts], detail.workload)
    return _PartShown(
        key=ALL,
        words=f"{name} {parts[0].number}" if len(parts) == 1 else f"all {len(parts):,} {name}s",
        parts=((0, len(parts)),),
        stats=detail.whole if len(detail.counted) == len(parts) else _sum(parts),
        figures=figures,
        known=known,
        host=None if shown.section.slices else known,
    )


def _directions(detail: CellDetail, of: _PartShown) -> Iterator[_PartShown]:
    """Yield one part for the reads of a mix, and one part for its writes. Both cover the same rounds, areas or slices
    as the figures of the section.
    """
    if not all(detail.stats_of(direction).histogram.total for direction in _DIRECTIONS):
        return
    parts = _parts_of(of, detail)
    for row, (direction, words) in enumerate(_DIRECTIONS.items(), start=len(detail.parts)):
        known = None if of.known is None else getattr(of.known, direction)
        yield _PartShown(
            key=direction.value,
            words=f"{words} of {of.words}",
            parts=of.parts,
            rows=((row, row + 1),),
            stats=_sum(parts, direction),
            figures=known or combine([part.measurement for part in parts], detail.workload, direction),
            known=of.known,
            direction=direction,
        )


def _stretches(places: Iterable[int]) -> Stretches:
    """Return the ranges of consecutive numbers in a list of ascending numbers. The window of a stream may have gaps."""
    found: list[tuple[int, int]] = []
    for place in places:
        begin = found.pop()[0] if found and found[-1][1] == place else place
        found.append((begin, place + 1))
    return tuple(found)


def _parts_of(part_shown: _PartShown, detail: CellDetail) -> list[TimedStep]:
    return [part for stretch in part_shown.parts for part in detail.parts[slice(*stretch)]]


def _sum(parts: Sequence[TimedStep], direction: Direction = Direction.ALL) -> IoStats:
    return add_all(stats_of(part.measurement, direction) for part in parts)


def _cell(shown: ShownSection, detail: CellDetail) -> CellResult | None:
    """Return the result of the section for the cell, or None if the section has no such result."""
    return shown.cells.get(detail.workload)


def _whole_stream(shown: ShownSection, detail: CellDetail) -> Figures:
    """Return the figures of a whole stream. The stream counts as a single measurement."""
    whole = Measurement(
        duration_s=shown.slices_s, read=detail.read, write=detail.write, trim=detail.trim, rates_known=shown.has_rates
    )
    figures = combine([whole], detail.workload)
    return figures if shown.has_counts else figures | {IOS.key: None}


def list_numbers(parts: Sequence[TimedStep]) -> str:
    """Return the numbers of parts in words: ``2 to 6``, ``1, 4``."""
    numbers = [part.number for part in parts]
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]:,} to {numbers[-1]:,}"
    return ", ".join(str(number) for number in numbers) or "none"


def _values(part_shown: _PartShown) -> Facts:
    sure = {quantity: _sure(part_shown, quantity) for quantity in SHOWN.values()}
    facts = [
        (name, add_interval(part_shown.figures.get(quantity.key), sure[quantity], quantity.digits))
        for name, quantity in SHOWN.items()
    ]
    if any(one is not None and one.known for one in sure.values()):
        facts.append(("± and (from to)", INTERVAL))
    return tuple(facts)


def _sure(part_shown: _PartShown, quantity: Quantity) -> Uncertainty | None:
    return None if part_shown.known is None else part_shown.known.uncertainty_of(quantity, part_shown.direction)


def _in_lines(cell: CellResult, detail: CellDetail) -> Facts:
    """Return the values of the reads and those of the writes of a mix. The result is empty if the results contain no
    separate values.
    """
    return tuple(
        (name, _in_a_line(figures))
        for name, figures in (("Reads", cell.read), ("Writes", cell.write))
        if figures is not None and detail.workload.is_mixed
    )


def _in_a_line(figures: Figures) -> str:
    """Return the most important values of one direction as one line."""
    return ", ".join(
        f"{quantity.short} {format_number(figures[quantity.key], quantity.digits)}" for quantity in IN_A_LINE
    )


def _host_facts(cell: CellResult) -> Facts:
    """Return the influence of the host and of other programs on the cell."""
    return (
        ("Limited by the host's CPUs", or_not_known(word(cell.host_limited))),
        ("Disturbed", describe_disturbances(cell, cell.foreign_bytes)),
    )


def _latencies(figures: Figures) -> dict[str, float]:
    """Return the latencies in µs that the histogram can mark. Their short names are the keys."""
    values = ((quantity.short, figures.get(quantity.key)) for quantity in MARKABLE)
    return {name: value for name, value in values if value is not None}


# Functions for each round, area or slice.


def _build_parts(shown: ShownSection, detail: CellDetail, directions: Sequence[IoStats]) -> PartsView:
    parts = detail.parts
    cells = _cells_of(shown, detail)
    found = [cells.get(part.number) for part in parts]
    facts = [_part_facts(cell, detail) for cell in found]
    names = tuple(dict.fromkeys(name for of_part in facts for name in of_part))
    # In an array of floating-point numbers, None becomes NaN.
    latencies = [[None if cell is None else cell.value(quantity) for quantity in MARKABLE] for cell in found]
    return PartsView(
        name=shown.section.part_name,
        numbers=tuple(part.number for part in parts),
        start_s=pack(np.array([part.start_s for part in parts])),
        end_s=pack(np.array([part.end_s for part in parts])),
        seconds=pack(_places(detail)),
        fact_names=names,
        facts=pack_texts([[of.get(name, NOT_MEASURED) for name in names] for of in facts]),
        latency_names=tuple(quantity.short for quantity in MARKABLE),
        latencies=pack_single(_shorten(np.array(latencies, dtype=np.float64).ravel())),
        mark_names=tuple(name for name, _ in LATENCY_MARKS),
        **_histograms([*(part.measurement.both for part in parts), *directions]),
    )


def _places(detail: CellDetail) -> NDArray[np.float64]:
    """For each part, return the index of its first sample among the one-second samples of the cell. The last element of
    the result is the index after the last sample.
    """
    at_s = detail.seconds.start_s
    # Because of rounding, the first second of a part can begin up to 1 µs before the part.
    starts = np.searchsorted(at_s, [part.start_s - 1e-6 for part in detail.parts])
    return np.array([*starts, at_s.size], dtype=np.float64)


def _cells_of(shown: ShownSection, detail: CellDetail) -> Mapping[int, CellResult]:
    """Return the results of each part, with the number of the part as the key."""
    if shown.section.slices:
        return shown.slices[detail.workload]
    return {each.number: cell for each, cell in shown.rounds.get(detail.workload, ())}


def _part_facts(cell: CellResult | None, detail: CellDetail) -> dict[str, str]:
    if cell is None:
        return {}
    facts = {name: format_number(cell.value(quantity), quantity.digits) for name, quantity in SHOWN.items()}
    facts.update((*_in_lines(cell, detail), *_host_facts(cell)))
    return facts


def _histograms(stats: Sequence[IoStats]) -> dict[str, str]:
    """Return the histograms with coarse buckets, and the marks of each histogram (``LATENCY_MARKS``).

    The counts are stored row by row: all buckets of the first histogram, then all buckets of the second histogram, and
    so on.
    """
    histograms = [of_part.histogram for of_part in stats]
    # A cell of a long stream has a histogram for each minute of a day. For speed, one call of numpy fills all
    # histograms.
    buckets = find_coarse_buckets(np.concatenate([histogram.indices for histogram in histograms]))
    if not buckets.size:
        return {}
    is_filled = np.bincount(buckets) > 0
    filled = np.flatnonzero(is_filled)
    columns = (is_filled.cumsum() - 1)[buckets]
    rows = np.repeat(np.arange(len(stats)), [histogram.indices.size for histogram in histograms])
    counts = np.zeros(len(stats) * filled.size, dtype=np.int64)
    np.add.at(counts, rows * filled.size + columns, np.concatenate([histogram.counts for histogram in histograms]))
    lower_ns, upper_ns = coarse_edges_ns(filled)
    marks_ns = [[mark(of_part) for _, mark in LATENCY_MARKS] for of_part in stats]
    return {
        "lower": pack_integers(lower_ns, divisor=_NS_IN_US),
        "upper": pack_integers(upper_ns + 1, divisor=_NS_IN_US),
        # The stride is the length of one row, because most buckets differ little from one part to the next.
        "counts": pack_integers(counts, stride=filled.size),
        "marks": pack_single(_shorten(np.array(marks_ns, dtype=np.float64).ravel() / 1000)),
    }


def pack(values: NDArray[np.float64]) -> str:
    """Return numbers as text that the script of the page unpacks. The numbers are stored as little-endian bytes,
    compressed with zlib, and encoded in base 64.
    """
    return _compress(values.astype("<f8").tobytes())


def pack_single(values: NDArray[np.float32]) -> str:
    """Return single-precision numbers as text. There are two forms that the script of the page unpacks, and the shorter
    form is returned.

    After the prefix ``f:``, the bytes of each number follow each other. After the prefix ``s:``, the first bytes of all
    numbers are followed by all second bytes, and so on. The second form is usually shorter, except if many values are
    equal.
    """
    single = values.astype("<f4")
    forms = (f"f:{_compress(single.tobytes())}", f"s:{_compress(_shuffle(single))}")
    return min(forms, key=len)


def pack_integers(values: NDArray[np.float64] | NDArray[np.int64], *, stride: int = 1, divisor: int = 1) -> str:
    """Return whole numbers as text. For each number, the text contains the difference from the number that is
    ``stride`` places before it.

    The form is ``i``, the stride, the divisor that the script of the page applies, and the packed differences. The
    bytes of the differences are regrouped like those of ``pack_single``. If the differences do not fit into 32 bits,
    the numbers themselves are packed.
    """
    whole = values.astype(np.int64)
    steps = whole.copy()
    steps[stride:] -= whole[:-stride]
    if steps.size and max(-steps.min(), steps.max()) >= 1 << 31:
        return pack(whole / divisor)
    # Zigzag encoding converts small positive and negative differences to small unsigned numbers.
    zigzag = ((steps << 1) ^ (steps >> 63)).astype("<u4")
    return f"i,{stride},{divisor}:{_compress(_shuffle(zigzag))}"


def _shuffle(words: NDArray[np.float32] | NDArray[np.uint32]) -> bytes:
    return words.view(np.uint8).reshape(-1, 4).T.tobytes()


def pack_texts(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of texts, compressed and encoded in base 64 like the numbers. A text must not contain a line break or
    a tab.
    """
    return _compress("\n".join("\t".join(row) for row in rows).encode())


def _compress(plain: bytes) -> str:
    return base64.b64encode(zlib.compress(plain, _LEVEL)).decode()


# If a cell has more parts than this number, the table of the host's activity contains only parts with disturbances. If
# every minute of a day had a row, most rows would show parts without events.
MOST_HOST_ROWS = 100
# The number of bits by which single-precision numbers are rounded. The page shows no more than five digits, and a
# drawing shows even fewer. The other digits of single precision would only enlarge the page.
_FORGOTTEN_BITS = 8


def build_cell_charts() -> dict[str, AnyChart]:
    """Return the charts of a cell without data, with their names as the keys.

    The page inserts the data of the cell on which the user clicked.
    """
    seconds = {IOPS.key: (IOPS,), THROUGHPUT.key: (THROUGHPUT,), "latency": LATENCIES_OF_SECONDS}
    charts: dict[str, AnyChart] = {
        "histogram": _any_distribution("Response time histogram"),
        "exceedance": _any_distribution("Exceedance", exceedance=True),
    }
    for name, quantities in seconds.items():
        title = f"{name_quantities(quantities)}, every second"
        charts[name] = draw_any_seconds(quantities, title)
    return charts


def _any_distribution(title: str, *, exceedance: bool = False) -> Distribution:
    return Distribution(title=title, buckets=(), marks=(), exceedance=exceedance, filled=False)


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells that a click opens. A cell is built only when the caller iterates over the cells, because a printed
    report does not need them.
    """

    shown_sections: Sequence[ShownSection]

    def __iter__(self) -> Iterator[CellView]:
        for shown in self.shown_sections:
            for detail in shown.details.values():
                yield _build_cell(shown, detail)

    def __len__(self) -> int:
        return sum(len(shown.details) for shown in self.shown_sections)


def _build_cell(shown: ShownSection, detail: CellDetail) -> CellView:
    """Return the content of the dialog for one cell or stream of a section."""
    section = shown.section
    rate = section.rate.key
    buckets = find_buckets(detail.whole)
    seconds = detail.seconds
    parts_shown, apart = build_parts_shown(shown, detail)
    return CellView(
        key=shown.links[detail.workload],
        title=f"{section.name}: {detail.workload}",
        rate=rate,
        seconds=_pack_seconds(seconds, (rate, *(quantity.key for quantity in LATENCIES_OF_SECONDS))),
        buckets=_pack_buckets(buckets),
        # The fine buckets of a stream contain all I/Os of the stream, even if results are computed from a window.
        buckets_of=ALL if section.slices else parts_shown[0].key,
        scopes=parts_shown,
        apart=apart,
        window=find_judged(detail),
        parts=find_part_starts(detail),
        flagged=find_flagged(detail),
        host=_host(detail, section.areas),
        rounds=None if section.slices else _rounds(detail, shown),
        words=_words(shown, detail, parts_shown),
        job=detail.job_file,
    )


def _pack_seconds(seconds: Seconds, names: Sequence[str]) -> dict[str, str]:
    if not len(seconds):
        return {}
    starts = np.rint(seconds.start_s * _STARTS_A_SECOND)
    columns = {name: pack_single(_shorten(getattr(seconds, name))) for name in names}
    return {"start_s": pack_integers(starts, divisor=_STARTS_A_SECOND), **columns}


def _pack_buckets(buckets: Sequence[Bucket]) -> dict[str, str]:
    columns = dict(zip(Bucket._fields, zip(*buckets, strict=True), strict=False))
    edges = {name: np.rint(np.array(columns[name]) * _NS_IN_US) for name in ("lower", "upper") if name in columns}
    packed = {name: pack_integers(ns, divisor=_NS_IN_US) for name, ns in edges.items()}
    return packed | {
        name: pack_integers(np.array(column, dtype=np.float64)) for name, column in columns.items() if name not in edges
    }


def _words(shown: ShownSection, detail: CellDetail, parts_shown: Sequence[PartShownView]) -> str:
    """Return the explanation of the plots. The explanation applies to every part of the cell."""
    name, parts = shown.section.part_name, detail.parts
    several = "" if shown.section.slices or len(parts) < 2 else f", {name}s end to end"
    apart = any(len(part_shown.parts) > 1 for part_shown in parts_shown)
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
    """Return the hint that explains how to obtain the histogram of single seconds."""
    if not len(detail.seconds):
        return ""
    # If the section has several workloads, the command in the hint must also contain the name of the workload.
    work = detail.workload
    name = name_stream(work) if work.together else work.mix_and_size
    mix = f", {name}" if len(shown.details) > 1 else ""
    return f" Those of any seconds: tkperf report RUN --histogram '{shown.section.name}{mix}: 12-40s'."


def _shorten(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the values in single precision, rounded to the accuracy that a drawing can show."""
    bits = values.astype(np.float32).view(np.uint32)
    half = np.uint32(1 << (_FORGOTTEN_BITS - 1))
    kept = (bits + half) >> _FORGOTTEN_BITS << _FORGOTTEN_BITS
    # NaN means "not measured", so it must not be changed.
    return np.where(np.isnan(values), np.float32(np.nan), kept.view(np.float32))


def _rounds(detail: CellDetail, shown: ShownSection) -> TableView:
    """Return a table that shows the values of the cell in every round or area in which the cell was measured."""
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
    """Return a table of the host's activity during each round, area or slice of a cell, or None if no activity is
    known.
    """
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
