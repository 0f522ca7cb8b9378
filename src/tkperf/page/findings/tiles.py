"""Choose the tiles of a run. The first tile shows the finding that needs attention. The other tiles show six figures,
which are the same in every report of several tests.

A comparison shows the same figures, so a tile contains the same value as the cell in the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from tkperf.analysis.characteristics_search import Cache, find_cache
from tkperf.analysis.comparing.decision import DecisionFigure
from tkperf.analysis.comparing.decision_figures import FEWEST_FIXED, find_fixed_figures
from tkperf.analysis.comparing.run_figures import MEASURES
from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.analysis.timeline.levels import BAND
from tkperf.analysis.timeline.timelines import preferred
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.quantity import IOPS, QUANTITIES
from tkperf.model.units import format_capacity, format_duration, format_number
from tkperf.page.findings.choice import find_settled
from tkperf.page.findings.headlines import (
    Headline,
    build_headline,
    describe_interval,
    has_wide_interval,
    headline_spikes,
    is_doubtful,
    judge_section,
)
from tkperf.page.findings.section_findings import say_value
from tkperf.page.matrix import FIGURE_NAMES, TILES, describe_load
from tkperf.page.naming import list_words, name_figure

MISSING = "not measured"
_OVER_DISK = "over the whole disk"


def build_tiles(result: RunResult) -> tuple[Headline, ...]:
    """Return the finding that needs attention, followed by the six figures. The result is empty if the six figures are
    not suitable for the run.

    The figures are not suitable for a run of a single test, which has figures of its own. They are also not suitable
    for a run that measured too few of the six figures (``FEWEST_FIXED``).
    """
    if len(result.tests) + len(result.not_begun) < 2:
        return ()
    found = {figure.key: figure for figure in find_fixed_figures(result) if figure.key in TILES}
    if len(found) < FEWEST_FIXED:
        return ()
    tiles = (_build_tile(result, key, found.get(key)) for key in TILES)
    return (*find_attention(result), *tiles)


def _build_tile(result: RunResult, key: str, figure: DecisionFigure | None) -> Headline:
    name = FIGURE_NAMES[key][0]
    if figure is None:
        return Headline(
            test="",
            section="",
            label=name,
            key=MEASURES[key].key,
            unit=MEASURES[key].unit_in_data,
            value=None,
            text=MISSING,
            sure="",
            verdict="",
            alarm=False,
            workload=None,
        )
    test = next(one for one in result.tests if one.name == figure.test)
    section = next(one for one in test.sections if one.name == figure.section)
    load, quantity = describe_load(key, figure.workload), QUANTITIES[figure.measure.key]
    cell = section.cell(figure.workload)
    value, entry = figure.cells[0].entry.value, figure.cells[0].entry
    if cell is not None and not figure.part:
        tile = build_headline(test, section, cell, quantity, label=name, load=load)
        if tile is not None:
            return replace(tile, verdict=_OVER_DISK) if section.areas else tile
    return Headline(
        test=test.name,
        section=section.name,
        label=name,
        load=f"{load}, {figure.part}" if figure.part else load,
        key=quantity.key,
        unit=quantity.unit_in_data,
        value=value,
        text=MISSING if value is None else say_value(value, quantity),
        sure="" if value is None else describe_interval(value, entry.uncertainty, quantity),
        verdict=judge_section(section),
        alarm=is_doubtful(section) or (value is not None and has_wide_interval(value, entry.uncertainty)),
        workload=figure.workload,
    )


# ---- what needs attention


def find_attention(result: RunResult) -> tuple[Headline, ...]:
    """Return the finding that a reader must know together with the figures. The finding is about spikes, a cache, or
    throttling.

    The result is empty if there is no such finding. Throttling has the lowest priority, because the verdict also
    mentions throttling.
    """
    found = (*headline_spikes(result.tests), *_find_cache(result), *_find_throttling(result.tests))
    return tuple(replace(one, alarm=True, needs_attention=True) for one in found[:1])


def _find_throttling(tests: Sequence[TestResult]) -> Iterator[Headline]:
    """Yield the time for which a drive was throttled. The test with the longest such time is used."""
    times = {test.name: max((drive.throttled_s or 0.0 for drive in test.telemetry), default=0.0) for test in tests}
    hot = [test for test in tests if times[test.name] > 0]
    if not hot:
        return
    worst = max(hot, key=lambda test: times[test.name])
    also = list_words([test.title.split(" (")[0] for test in hot if test is not worst])
    yield Headline(
        test=worst.name,
        section="",
        label="Throttled for heat",
        key="throttled_s",
        unit="s",
        value=times[worst.name],
        text=format_duration(times[worst.name]),
        sure="",
        verdict=f"also in {also}" if also else "",
        alarm=True,
        workload=None,
    )


def _find_cache(result: RunResult) -> Iterator[Headline]:
    """Yield the first cache that a stream of writes filled."""
    capacity_bytes = result.info.device.get("capacity_bytes")
    if not isinstance(capacity_bytes, int):
        return
    for test in result.tests:
        for section in test.sections:
            cache = None if section.plan.prepares else find_cache(preferred(section.timelines), capacity_bytes)
            if cache is not None and not _is_throttled(section, cache):
                yield _name_cache(test, section, cache)
                return


def _is_throttled(section: SectionResult, cache: Cache) -> bool:
    """Return whether the temperature of the drive may have caused the fall of the rate."""
    return any(
        DisturbanceCode.THROTTLED in (one.values.disturbances or ())
        for one in section.slices
        if one.start_s <= cache.end_s and cache.start_s <= one.end_s
    )


def _name_cache(test: TestResult, section: SectionResult, cache: Cache) -> Headline:
    first, then = IOPS.text(cache.value), format_number(cache.value_after)
    text = f"first {format_capacity(cache.size_bytes)} at {first}, then {then}"
    at_end = _find_rate_at_end(section, cache)
    if at_end is not None and at_end < (1 - BAND) * cache.value_after:
        text += f", and {format_number(at_end)} at the end"
    return Headline(
        test=test.name,
        section=section.name,
        label=f"Cache, {name_figure(cache.workload)}",
        key="cache_bytes",
        unit="B",
        value=cache.size_bytes,
        text=text,
        sure="",
        verdict="",
        alarm=True,
        workload=cache.workload,
    )


def _find_rate_at_end(section: SectionResult, cache: Cache) -> float | None:
    """Return the IOPS at which the stream settled. If the stream did not settle, return the median of the IOPS in the
    last tenth of the stream.
    """
    cell = section.cell(cache.workload)
    settled = None if cell is None else find_settled(section, cell)
    if settled is not None:
        return settled
    last = section.slices[-max(1, len(section.slices) // 10) :]
    values = [value for one in last if (value := one.values.value(IOPS)) is not None]
    return median(values) if values else None
