"""Findings over time, marked on charts of a stream, of rounds and of seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tkperf.analysis.timeline.findings import Recorded, Timeline
from tkperf.analysis.timeline.levels import LevelKind
from tkperf.model.quantity import QUANTITIES, Quantity
from tkperf.page.chart import Chart, Rule, RuleKind, Spot, SpotKind

MOST_SPIKES = 2000


def mark_found(
    chart: Chart, timelines: Iterable[Timeline], quantities: Sequence[Quantity], scale: float = 1.0
) -> Chart:
    """Return the chart with marks of the findings in these quantities; unchanged without findings.

    Levels are lines at their value with a boundary at their start, drops and periodic spikes are points.

    Args:
        scale: factor from a place to a value on the chart's axis.
    """
    keys = {quantity.key for quantity in quantities}
    marked = [timeline for timeline in timelines if timeline.quantity in keys]
    rules = [rule for timeline in marked for rule in _levels(timeline, scale)]
    drops = [spot for timeline in marked for spot in _drops(timeline, scale)]
    spikes = [spot for timeline in marked for spot in _spikes(timeline, scale)][:MOST_SPIKES]
    if not (rules or drops or spikes):
        return chart
    return replace(chart, rules=(*chart.rules, *rules), spots=(*chart.spots, *drops, *spikes))


def _levels(timeline: Timeline, scale: float) -> Iterator[Rule]:
    if not timeline.changes:
        return
    levels = [level for level in timeline.levels if level.kind is not LevelKind.TRANSITION]
    for number, level in enumerate(levels):
        # The curve comes from the level before; from the first level it goes to the next.
        other = levels[number - 1] if number else levels[min(1, len(levels) - 1)]
        start = level.start * scale
        if number:
            yield Rule(kind=RuleKind.BOUNDARY, x=start)
        yield Rule(
            kind=RuleKind.LEVEL, x=start, x_end=level.end * scale, y=level.value,
            name=str(level.kind), below=level.value < other.value,
        )  # fmt: skip


def _drops(timeline: Timeline, scale: float) -> Iterator[Spot]:
    for drop in timeline.drops:
        yield Spot(kind=SpotKind.DROP, x=drop.start * scale, y=drop.least, text="sudden drop")


def _spikes(timeline: Timeline, scale: float) -> Iterator[Spot]:
    spikes = timeline.spikes
    if spikes is None:
        return
    unit = "rounds" if timeline.recorded is Recorded.ROUNDS else "s"
    words = f"{QUANTITIES[timeline.quantity].label}: every {spikes.period:,.1f} {unit}"
    for place in spikes.places:
        yield Spot(kind=SpotKind.SPIKE, x=place * scale, y=None, text=words)
