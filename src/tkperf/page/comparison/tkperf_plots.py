"""Four charts of tkperf-cmp, by the names of its tests and of its files.

Part of the codec of TKperf's format: TKperf chose the cells that each chart shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.entries import ComparedRow
from tkperf.model.quantity import IOPS, LATENCY_MEAN, THROUGHPUT, Quantity
from tkperf.model.units import KIB
from tkperf.page.chart import PALETTE, Axis, Chart, Curve, Mark, Point, Scale
from tkperf.page.comparison.stream_charts import build_over_time, find_streams
from tkperf.page.figures.curves import flag
from tkperf.page.naming import Naming, listing_axes
from tkperf.page.page import ChartView

_FOUR_KIB = 4 * KIB
# Quantity, name of the file, title, mixes at 4 KiB.
_BARS: dict[str, tuple[Quantity, str, str, tuple[int, ...]]] = {
    "iops": (IOPS, "compIOPSPlt", "IOPS measurement test, 4 KiB", (100, 50, 0)),
    "lat": (LATENCY_MEAN, "compLATPlt", "LAT measurement test: mean latency, 4 KiB", (100, 65, 0)),
}


def build_tkperf_charts(comparison: Comparison, test: str) -> Iterator[ChartView]:
    """Yield the charts of one test; none for a test that TKperf does not have."""
    rows = [row for row in comparison.rows if row.test == test]
    if test == "writesat":
        for sections in list(find_streams(comparison, test).values())[:1]:
            yield build_over_time(sections, "compWriteSatIOPSPlt", "Write saturation test")
    elif comparison.results[0].info.suite == "hdd":
        return
    elif test == "tp":
        yield from _bars(comparison, "compTPPlt", _of(rows, THROUGHPUT), "TP R/W measurement test")
    elif test in _BARS:
        quantity, key, title, mixes = _BARS[test]
        of_mixes = [
            row
            for row in _of(rows, quantity)
            if row.workload.block_size_bytes == _FOUR_KIB
            and row.workload.read_percent in mixes
            # The histogram run repeats a cell of the latency test.
            and row.section == rows[0].section
        ]
        yield from _bars(comparison, key, of_mixes, title)


def _of(rows: list[ComparedRow], quantity: Quantity) -> list[ComparedRow]:
    return [row for row in rows if row.quantity is quantity]


def _bars(comparison: Comparison, key: str, rows: list[ComparedRow], title: str) -> Iterator[ChartView]:
    """Yield a bar for each run of each workload."""
    if not rows:
        return
    naming = Naming(axes=listing_axes(row.workload for row in rows))
    curves = tuple(
        Curve(
            name=name,
            mark=Mark.BAR,
            colour=PALETTE[number % len(PALETTE)],
            points=tuple(
                Point(naming.name_of(row.workload), entry.value, flag=flag(entry))
                for row in rows
                if (entry := row.entries[number]).value is not None
            ),
        )
        for number, name in enumerate(comparison.names)
    )
    places = dict.fromkeys(naming.name_of(row.workload) for row in rows)
    chart = Chart(
        title=title,
        x=Axis(title=naming.title, scale=Scale.ORDINAL, places=tuple(places)),
        y=Axis(title=rows[0].quantity.title),
        curves=curves,
        series="Run",
        grouped=True,
    )
    yield ChartView(key=key, text=f"{title}: a bar for each run.", chart=chart)
