"""Drawings of a section in tkperf show: its course, and the distribution of its response times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10

from rich.console import Console
from rich.text import Text

from tkperf.analysis.results import CellResult, SectionResult
from tkperf.model.quantity import IOPS, QUANTITIES, Quantity
from tkperf.model.seconds import Seconds
from tkperf.model.workload import Workload
from tkperf.page.chart import Chart
from tkperf.page.figures.streams import draw_courses
from tkperf.render.terminal.blocks import (
    BlockLetters,
    Values,
    blocks_for,
    columns,
    sparkline,
    squeeze,
)
from tkperf.render.terminal.histories import draw_histories, format_short

WIDEST = 100
_MOST_BARS = 60
_HISTOGRAM_LINES = 6
# The first that fits.
_BINS_A_DECADE = (32, 24, 16, 12, 8, 4, 2)
# Columns that the label of the greatest share takes.
_SCALE = 9


def print_drawings(
    section: SectionResult, console: Console, seconds: Seconds | None = None
) -> None:
    """Print the course of a section that has one, and the histogram of a stream. ``seconds``: of a short stream."""
    blocks = blocks_for(console.encoding)
    width = min(WIDEST, console.width)
    course = draw_course(section, width, blocks, seconds)
    for line in (*course, *draw_histogram(section, width, blocks)):
        line.plain = blocks.spell(line.plain)
        console.print(line, highlight=False, no_wrap=True)


def draw_course(
    section: SectionResult, width: int, blocks: BlockLetters, seconds: Seconds | None = None
) -> Iterator[Text]:
    """Yield bars from 0 to the greatest: for a stream over its time, for cells over rounds or areas."""
    if charts := draw_courses(section, seconds):
        yield from _draw_lines(charts, width, blocks)
    elif len(section.rounds) > 1:
        keys = section.plan.quantities
        quantity = next((QUANTITIES[key] for key in keys if key in QUANTITIES), IOPS)
        what = "area by area from the start" if section.areas else "round by round"
        yield Text()
        yield from draw_histories(
            f"{quantity.title}, {what}", _histories(section, quantity), width, blocks=blocks
        )


def _histories(section: SectionResult, quantity: Quantity) -> dict[Workload, Values]:
    """Return the values of each cell by round; None for a round that has not come to it."""
    by_round = [{cell.workload: cell for cell in one.cells} for one in section.rounds]
    workloads = dict.fromkeys(workload for cells in by_round for workload in cells)
    return {
        workload: [_value(cells.get(workload), quantity) for cells in by_round]
        for workload in workloads
    }


def _value(cell: CellResult | None, quantity: Quantity) -> float | None:
    return None if cell is None else cell.value(quantity)


def _draw_lines(charts: Sequence[Chart], width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield a line for each chart of a stream."""
    yield Text()
    yield Text(f"{charts[0].title}, from 0 to the greatest; first and last value", style="dim")
    label = max(len(chart.y.title) for chart in charts)
    bars = max(1, min(_MOST_BARS, width - label - 16))
    for chart in charts:
        values = chart.curves[0].values
        yield Text.assemble(
            (chart.y.title.ljust(label), "dim"),
            " ",
            (sparkline(squeeze(values, bars), blocks), "cyan"),
            f" {format_short(values[0])} {format_short(values[-1])}",
        )


def draw_histogram(section: SectionResult, width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield response times in bins of equal logarithmic width, so that no step comes from the widths of buckets."""
    buckets = section.histogram_us
    if not buckets:
        return
    room = width - _SCALE
    per_decade = next(
        (many for many in _BINS_A_DECADE if len(spread_in_bins(buckets, many)[1]) <= room), 1
    )
    first, ios = spread_in_bins(buckets, per_decade)
    whole = sum(ios)
    yield Text()
    yield Text(
        "Response times of all I/Os; share of them in each bin of equal logarithmic width",
        style="dim",
    )
    top = f"{max(ios) / whole:.1%}".replace("%", " %")
    for number, line in enumerate(columns(ios, _HISTOGRAM_LINES, blocks)):
        yield Text.assemble((f"{top if number == 0 else '':>{_SCALE - 1}} ", "dim"), (line, "cyan"))
    yield Text(" " * _SCALE + _axis(first, len(ios), per_decade), style="dim")


def spread_in_bins(
    buckets: Sequence[tuple[float, float, int]], per_decade: int
) -> tuple[int, list[float]]:
    """Return the I/Os in bins of equal logarithmic width, and first the number of the first bin.

    Buckets are (lower, upper edge in us, count); their I/Os are spread evenly over their logarithmic width. Bin n
    reaches from 10^(n / per_decade) us to the next.
    """
    bins: dict[int, float] = {}
    for lower_us, upper_us, ios in buckets:
        # Bins do not distinguish times below 1 ns.
        low, high = (log10(max(edge, 1e-3)) * per_decade for edge in (lower_us, upper_us))
        if high <= low:
            bins[floor(low)] = bins.get(floor(low), 0.0) + ios
            continue
        for number in range(floor(low), ceil(high)):
            within = min(high, number + 1) - max(low, number)
            bins[number] = bins.get(number, 0.0) + ios * within / (high - low)
    first, last = min(bins), max(bins)
    return first, [bins.get(number, 0.0) for number in range(first, last + 1)]


def _axis(first: int, count: int, per_decade: int) -> str:
    """Return powers of ten below the bins that begin with them."""
    text = ""
    for decade in range(ceil(first / per_decade), (first + count) // per_decade + 1):
        place = decade * per_decade - first
        if place >= len(text) and place < count:
            text = text.ljust(place) + f"|{_name_us(10.0**decade)} "
    return text.rstrip()


def _name_us(us: float) -> str:
    """Return a time such as ``100 µs`` or ``10 ms``."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= factor:
            return f"{us / factor:g} {unit}"
    return f"{us:g} µs"
