"""Sentences of a comparison: the decision, phases of streams, cohorts and histories."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.analysis.made_up import FOUR_KIB_WRITES, made_up_run, made_up_section
from tests.builders import work
from tkperf.analysis.comparing.compared_rows import Change, Entry, against_first
from tkperf.analysis.comparing.comparison import Arrangement, Comparison, compare, find_day
from tkperf.analysis.drive_telemetry import DriveTelemetry
from tkperf.analysis.results import CellUncertainty, RunResult, SectionResult
from tkperf.analysis.timeline.levels import LevelKind, RateLevel
from tkperf.analysis.timeline.spikes import PeriodicSpikes
from tkperf.analysis.timeline.timelines import Recorded, Timeline
from tkperf.analysis.uncertainty.estimate import Basis, Uncertainty
from tkperf.cli.commands.compare import ARRANGEMENTS
from tkperf.model.errors import UsageError
from tkperf.model.quantity import IOPS, LATENCY_MAX, LATENCY_MEAN, percentile
from tkperf.model.record import RunStatus
from tkperf.page.chart import Chart
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.comparison.conclusions import (
    describe_comparison_verdict,
    describe_days,
    find_comparison_notices,
    find_conclusions,
    find_telemetry_differences,
    find_verdict,
)
from tkperf.page.comparison.ratio_tables import build_headline_table, build_runs_table, build_section_table
from tkperf.page.comparison.ratio_texts import (
    describe_group,
    describe_loads,
    describe_ratio,
    describe_ratio_interval,
    format_ratio,
    name_headlines,
)
from tkperf.page.verdict_texts import NoteLevel, Verdict
from tkperf.page.words.conditions import ConditionGroup, find_conditions
from tkperf.render.export_comparison import render_comparison_json
from tkperf.render.export_markdown import inert, render_markdown
from tkperf.render.terminal.page_text import print_page

WRITES = {FOUR_KIB_WRITES: (100.0, 101.0, 102.0)}


def telemetry_differences(runs: Sequence[RunResult]) -> list[str]:
    compared = compare(runs)
    return [each.text for each in find_telemetry_differences(compared.names, compared.results)]


def conditions_of(comparison: Comparison) -> tuple[ConditionGroup, ...]:
    return find_conditions(comparison.names, comparison.results)


def worded(comparison: Comparison) -> Verdict:
    """Return the verdict on a comparison in words."""
    return describe_comparison_verdict(comparison, find_verdict(comparison, conditions_of(comparison)))


def drive(serial: str | None, firmware: str = "1.0", **changes: object) -> dict[str, object]:
    facts: dict[str, object] = {
        "kind": "block device",
        "model": "M1",
        "serial": serial,
        "firmware": firmware,
        "capacity_bytes": 10**9,
    }
    return facts | changes


MEASURED: dict[str, Any] = {"profile_name": "pts-e-1.1", "ioengine": "io_uring"}


def iops_run(name: str, values: Sequence[float], **info: Any) -> RunResult:
    """Return a run of one cell that was measured on a device."""
    section = made_up_section("IOPS", {FOUR_KIB_WRITES: values})
    return made_up_run(name, {"iops": [section]}, **(MEASURED | info))


def around(value: float) -> tuple[float, ...]:
    return (0.99 * value, value, 1.01 * value)


# ---- conclusions of a comparison of two runs


def test_it_opens_with_the_greatest_difference() -> None:
    """The conclusions begin with the greatest difference and its ratio. The next conclusion is the greatest difference
    in the other direction. The numbers of changes of each kind follow.
    """
    cells = {work(0): (100, 101), work(65): (100, 101), work(100): (100, 101)}
    other = {work(0): (870, 880), work(65): (300, 301), work(100): (50, 51)}
    runs = [
        made_up_run(name, {"iops": [made_up_section("IOPS", of_run)]}) for name, of_run in (("A", cells), ("B", other))
    ]
    assert tuple(find_conclusions(compare(runs))) == (
        "4 KiB random write: B has 8.71 × the IOPS of A (their ranges do not meet), beyond noise.",
        "4 KiB random read: B has 0.502 × the IOPS of A (their ranges do not meet), beyond noise.",
        "Of 3 figures of B: 2 better, 1 worse.",
    )


def test_nothing_but_noise_is_said_as_such() -> None:
    runs = [iops_run("A", (100, 110)), iops_run("B", (105, 115))]
    assert tuple(find_conclusions(compare(runs))) == (
        "No headline figure of B differs from that of A beyond noise.",
        "Of 1 figure of B: 1 within noise.",
    )


def test_few_differences_among_many_figures_may_be_chance() -> None:
    """The sentence with the number of differences also states how many differences are expected by chance: 1 of 20 with
    95 % intervals. The sentence is omitted if there are only two figures.
    """
    loads = [work(block_size_bytes=512 << number) for number in range(20)]

    def count(*faster: int) -> str:
        other = {load: (200.0, 210.0) if number in faster else (100.0, 110.0) for number, load in enumerate(loads)}
        runs = [
            made_up_run(name, {"iops": [made_up_section("IOPS", values)]})
            for name, values in (("A", dict.fromkeys(loads, (100.0, 110.0))), ("B", other))
        ]
        return tuple(find_conclusions(compare(runs)))[-1]

    chance = "by chance alone about 1 would be beyond noise."
    assert count(3) == f"Of 20 figures of B: 1 better, 19 within noise; {chance}"
    assert count(3, 4) == f"Of 20 figures of B: 2 better, 18 within noise; {chance}"
    assert count(3, 4, 5) == "Of 20 figures of B: 3 better, 17 within noise."
    assert count() == "Of 20 figures of B: 20 within noise."


def test_an_interval_that_is_a_lower_limit_is_called_that() -> None:
    ratio = Uncertainty(standard=0.1, low=1.9, high=2.1, at_least=True)
    assert describe_ratio_interval(Entry(value=2.0, ratio=2.0, ratio_uncertainty=ratio)) == "1.900 to 2.10 or wider"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.8, 2.2, "×2.00 ± 10 %"),
        (1.83, 2.23, "×2.00 ± 10 %"),
        (1.0, 2.2, "×2.00 (1.000 to 2.20)"),
        (1.9999999, 2.0, "×2.00 ± < 0.05 %"),
    ],
)
def test_an_interval_that_reaches_further_to_one_side_is_told_by_its_ends(low: float, high: float, text: str) -> None:
    """An asymmetric interval is described by its two ends. If the page showed half of the width as "±", a reader would
    assume a symmetric interval. Such an interval could contain 1 although the real interval does not, or exclude 1
    although the real interval contains 1.
    """
    ratio = Uncertainty(standard=0.1, low=low, high=high)
    assert describe_ratio(Entry(value=2.0, ratio=2.0, ratio_uncertainty=ratio)) == text


def test_what_was_measured_once_has_its_ratio_all_the_same() -> None:
    runs = [iops_run("A", (100,)), iops_run("B", (800,))]
    assert next(find_conclusions(compare(runs))) == ("4 KiB random write: B has 8.00 × the IOPS of A, noise not known.")


def test_an_interval_without_an_upper_end_is_told_by_its_lower_one() -> None:
    """An interval without an upper end is described by its lower end. The page then does not mention ranges, because no
    ranges were compared.
    """
    runs = [iops_run("A", (100,)), iops_run("B", (800,))]
    sure = (
        Uncertainty(standard=1, low=98, high=102, basis=Basis.ROUNDS),
        Uncertainty(low=790, high=None, basis=Basis.COUNTS),
    )
    runs = [
        replace(
            run,
            tests=(
                replace(
                    test,
                    sections=(
                        replace(section, cells=(replace(cell, uncertainty=CellUncertainty(all={IOPS.key: one})),)),
                    ),
                ),
            ),
        )
        for run, one in zip(runs, sure, strict=True)
        for test in run.tests
        for section in test.sections
        for cell in section.cells
    ]
    assert next(find_conclusions(compare(runs))) == (
        "4 KiB random write: B has 8.00 × the IOPS of A (above 7.81), beyond noise."
    )


def test_less_latency_is_said_to_be_better() -> None:
    runs = [
        made_up_run(name, {"lat": [made_up_section("Latency", {FOUR_KIB_WRITES: values})]})
        for name, values in (("A", (100.0, 101.0)), ("B", (50.0, 51.0)))
    ]
    assert next(find_conclusions(compare(runs))) == (
        "4 KiB random write: B has 0.502 × the mean latency of A (their ranges do not meet), better, beyond noise."
    )


def test_the_same_slowdown_is_worse_as_iops_and_as_latency() -> None:
    """If the same slowdown is measured as IOPS and as latency, both figures are worse. This rule also holds for a drive
    that never became steady and whose interval reaches below 0.
    """

    def entry(value: float, share: float) -> Entry:
        half = value * share
        known = Uncertainty(standard=half / 2, low=value - half, high=value + half, basis=Basis.ROUNDS)
        return Entry(value=value, uncertainty=known)

    for share in (0.9, 1.2):
        slower = against_first(entry(93_900, 0.003), entry(24_000, share), IOPS)
        longer = against_first(entry(97.5, 0.003), entry(97.5 * 93.9 / 24, share), LATENCY_MEAN)
        assert slower.change is longer.change is Change.WORSE


# ---- the verdict


def verdict_of(*runs: RunResult) -> str:
    return worded(compare(runs)).text


def test_a_comparison_of_alike_measurements_is_comparable() -> None:
    """Runs that were measured under the same conditions are comparable, even if their results differ greatly."""
    runs = [iops_run(name, around(value), device=drive(name)) for name, value in (("A", 9), ("B", 99))]
    assert verdict_of(*runs) == "Comparable"


def test_a_model_with_a_device_is_not_comparable() -> None:
    """A model and a device are not comparable, and every kind of comparison reports this. Two models are comparable and
    marked SIMULATED.
    """
    measured = iops_run("D3", around(100), device=drive("S1"))
    model = iops_run("model", around(100), device=drive("S2"), ioengine="simulated")
    text = "SIMULATED. Not comparable: model measured a model, the others a device; different I/O engine"
    assert verdict_of(measured, model) == text
    third = iops_run("D4", around(100), device=drive("S3"))
    cohort = compare([measured, model, third], Arrangement.COHORT)
    assert worded(cohort).level is NoteLevel.FAILURE
    assert verdict_of(model, model) == "SIMULATED. Comparable"


def test_a_comparison_is_no_better_than_its_runs() -> None:
    """The verdict on a comparison is never better than the verdicts on its runs. Runs with the same reason are named
    together. If one run failed, the runs are not comparable.
    """
    unsteady = made_up_section("IOPS", {FOUR_KIB_WRITES: around(100)}, steady=False)
    first, *others = (made_up_run(name, {"iops": [unsteady]}, **MEASURED) for name in ("A", "B"))
    steady = iops_run("C", around(100))
    text = "A, B: IOPS did not reach steady state"
    assert verdict_of(steady, first, *others) == f"Comparable with cautions: {text}"
    failed = replace(first, status=RunStatus.FAILED, ended_because="the drive is gone")
    text = "A: the run failed: the drive is gone; B: IOPS did not reach steady state"
    assert verdict_of(failed, *others) == f"Not comparable: {text}"


def test_tails_stand_behind_rates() -> None:
    """Conclusions about rates precede conclusions about tail latencies, even if the tail latencies differ more."""
    both = compare([saturation("A", falling(1)), saturation("B", falling(8))])
    tail = both.headlines[-1]
    assert tail.quantity is percentile(99.9)
    assert "p99.9" not in next(find_conclusions(both))


def test_conditions_that_differ_are_one_line_and_grouped_below() -> None:
    """One line of the verdict names all conditions that differ. Groups below the verdict list the values of these
    conditions.
    """
    runs = [
        iops_run("A", around(100), profile_name="quick", fio_version="fio-3.33"),
        iops_run("B", around(100), profile_name="pts-e-1.1", fio_version="fio-3.36", notices=("X",)),
    ]
    both = compare(runs)
    text = "different profile, fio; A: the profile quick is too short to judge a drive"
    assert worded(both).text == f"Comparable with cautions: {text}"
    assert [(group.title, group.texts) for group in conditions_of(both)] == [
        ("Specification", ("profile differs (A: quick, B: pts-e-1.1)",)),
        ("Drive and host", ("fio differs (A: fio-3.33, B: fio-3.36)",)),
        ("Remarks of the runs", ("B: X",)),
    ]


def test_what_is_not_known_of_a_run_is_not_said_to_differ() -> None:
    """A condition that one of two runs does not record is described as "not known". A condition that differs between
    two of three runs is described as "different".
    """
    versions = ("fio-3.33", None, "fio-3.36")
    runs = [iops_run(f"{v}", around(100), fio_version=v, device=drive(None)) for v in versions]
    both = compare(runs[:2])
    text = "Comparable with cautions: not known of every run: fio"
    assert worded(both).text == text
    (group,) = conditions_of(both)
    assert (group.names, group.not_known) == ((), ("fio",))
    assert group.texts == ("fio is not known of every run (fio-3.33: fio-3.33, None: not known)",)
    assert verdict_of(*runs) == "Comparable with cautions: different fio"


def test_what_runs_say_alike_is_said_once() -> None:
    """A remark that several runs share is shown once with the names of these runs. A notice that all runs carry is
    shown only at the top of the page.
    """
    runs = [
        iops_run(f"r{number}", around(100), notices=("SIMULATED",), warnings=["hot"] if number else [])
        for number in range(3)
    ]
    both = compare(runs)
    assert [group.texts for group in conditions_of(both)] == [("r1, r2: hot",)]
    assert find_comparison_notices(both) == ("SIMULATED",)


def test_a_notice_of_some_runs_names_them() -> None:
    """A notice that only some runs have names these runs. Without the names, the notice would seem to apply to all
    runs.
    """
    runs = [iops_run("A", around(100)), iops_run("B", around(100), notices=("NOT PURGED: no purge",))]
    assert find_comparison_notices(compare(runs)) == ("NOT PURGED (B): no purge",)


def test_conditions_of_many_runs_are_told_by_value() -> None:
    """Conditions of many runs are listed by value. Each value appears once with its runs. If many runs have the same
    value, only some of them are named.
    """
    runs = [
        iops_run(f"r{number}", around(100), fio_version="fio-3.36" if number == 7 else "fio-3.33")
        for number in range(8)
    ]
    (group,) = conditions_of(compare(runs))
    assert group.texts == ("fio differs (fio-3.33: r0, r1, r2, r3 and 3 more; fio-3.36: r7)",)


# ---- telemetry of the drives


def with_telemetry(run: RunResult, **facts: Any) -> RunResult:
    (test,) = run.tests
    return replace(run, tests=(replace(test, telemetry=(DriveTelemetry(drive="d", **facts),)),))


def test_telemetry_is_said_where_it_may_be_why() -> None:
    """A comparison lists differences of telemetry if temperatures differ by at least 10 °C, or if the write
    amplification differs by at least a tenth. Throttling is also a conclusion.
    """
    cool = with_telemetry(iops_run("A", around(100)), throttled_s=0.0, temperature_most_c=45.0, write_amplification=2.0)
    hot = with_telemetry(iops_run("B", around(50)), throttled_s=190.0, temperature_most_c=71.0, write_amplification=2.5)
    both = compare([cool, hot])
    assert telemetry_differences([cool, hot]) == [
        "throttled: B for 3 min 10 s; A not",
        "warmest: A 45 °C, B 71 °C",
        "write amplification: A 2.00, B 2.50",
    ]
    assert "IOPS, throttled: B for 3 min 10 s; A not." in tuple(find_conclusions(both))
    alike = with_telemetry(iops_run("B", around(50)), throttled_s=0.0, temperature_most_c=54.0, write_amplification=2.1)
    assert telemetry_differences([cool, alike]) == []
    silent = with_telemetry(iops_run("B", around(50)))
    assert telemetry_differences([cool, silent]) == []
    many = [cool, hot, *(replace(alike, info=replace(alike.info, name=name)) for name in "CDE")]
    assert "warmest: 45 °C (A) to 71 °C (B)" in telemetry_differences(many)


# ---- phases of streams


def stream(
    values: Sequence[float], levels: Sequence[tuple[LevelKind, int, int, float]], *, settled: bool = True
) -> SectionResult:
    """Return a section with slices of a second, and with the given levels. Each level has a kind, a first slice, an end
    and a value.
    """
    section = made_up_section("Write Saturation", {FOUR_KIB_WRITES: values}, stream=True, steady=None, window=False)
    timeline = Timeline(
        workload=FOUR_KIB_WRITES,
        quantity=IOPS.key,
        recorded=Recorded.SLICES,
        values=len(values),
        levels=tuple(
            RateLevel(kind=kind, start=float(start), end=float(end), value=value) for kind, start, end, value in levels
        ),
        settled=settled,
    )
    return replace(section, timelines=(timeline,))


def saturation(name: str, section: SectionResult, **info: Any) -> RunResult:
    return made_up_run(name, {"writesat": [section]}, **info)


def falling(factor: float) -> SectionResult:
    """Return a stream that is fresh for ten slices, in transition for five slices, and steady for 25 slices."""
    fresh = [factor * value for value in (1000, 1002, 998, 1001, 999) * 2]
    between = [factor * value for value in (800, 600, 400, 300, 200)]
    steady = [factor * value for value in (100, 102, 98, 101, 99) * 5]
    levels = (
        (LevelKind.FRESH, 0, 10, factor * 1000),
        (LevelKind.TRANSITION, 10, 15, factor * 400),
        (LevelKind.STEADY, 15, 40, factor * 100),
    )
    return stream([*fresh, *between, *steady], levels)


def test_a_stream_is_compared_by_its_phases() -> None:
    """Streams are compared phase by phase: the fresh phases with each other, and the steady phases with each other.
    Each phase has an uncertainty. A mean over both phases is never compared.
    """
    both = compare([saturation("A", falling(1)), saturation("B", falling(8))])
    rows = {(row.part, row.quantity): row for row in both.rows}
    assert (IOPS.key, "") not in {(row.quantity.key, row.part) for row in both.rows}
    assert {part for part, _ in rows} >= {"fresh out of box", "steady"}
    for part, value in (("fresh out of box", 1000), ("steady", 100)):
        first, second = rows[part, IOPS].entries
        assert (first.value, second.value) == (value, 8 * value)
        assert first.uncertainty is not None
        assert first.uncertainty.basis is Basis.SLICES
        assert (second.ratio, second.change) == (8.0, Change.BETTER)
        assert rows[part, LATENCY_MEAN].entries[1].change is Change.WORSE
    assert next(find_conclusions(both)).startswith("4 KiB random write, ")
    assert next(find_conclusions(both)).endswith("beyond noise.")
    assert list(name_headlines(both).values()) == [
        "4 KiB random write, fresh out of box: IOPS",
        "4 KiB random write, settled: IOPS",
        "4 KiB random write, settled: p99.9 latency",
    ]
    assert not [row for row in both.rows if row.entries[1].change is Change.INCONCLUSIVE]


def test_where_not_every_run_became_steady_the_last_quarters_are_compared() -> None:
    """If at least one run did not become steady, the last quarters of the runs are compared. A comparison with a rate
    that is still falling is inconclusive, because this rate may reach the rate of the other run.
    """
    unsettled = stream(
        [1000 - 20 * place for place in range(40)], [(LevelKind.TRANSITION, 0, 40, 600.0)], settled=False
    )
    both = compare([saturation("A", falling(1)), saturation("B", unsettled)])
    (row,) = [row for row in both.rows if row.part and row.quantity is IOPS]
    assert row.part == "last quarter"
    assert [entry.value for entry in row.entries] == [100.0, 1000 - 20 * 34.5]
    assert row.entries[1].change is Change.INCONCLUSIVE


def test_a_greatest_of_a_phase_is_told_by_ranges() -> None:
    """The maxima of two phases are compared by their ranges, because a maximum has no uncertainty."""
    section = falling(1)
    with_max = replace(section, plan=replace(section.plan, quantities=("iops", "latency_max_us")))
    runs = [saturation(name, with_max) for name in ("A", "B")]
    runs = [replace(run, tests=(replace(run.tests[0], sections=(with_max,)),)) for run in runs]
    (row,) = [row for row in compare(runs).rows if row.quantity is LATENCY_MAX and row.part == "steady"]
    assert (row.entries[0].value, row.entries[1].change) == (102.0, Change.WITHIN_NOISE)


@pytest.mark.parametrize(("fresh", "change"), [(3, Change.INCONCLUSIVE), (4, Change.WORSE)])
def test_a_greatest_of_few_slices_cannot_be_told(fresh: int, change: Change) -> None:
    """A comparison of maxima over three slices each is inconclusive, because in 1 of 10 cases such ranges are separate
    by chance alone. Four slices are enough.
    """

    def short(name: str, factor: float) -> RunResult:
        values = [factor * value for value in (1000, 1002, 998, 1001)[:fresh]]
        levels = [(LevelKind.FRESH, 0, fresh, factor * 1000), (LevelKind.STEADY, fresh, fresh + 5, factor * 100)]
        section = stream([*values, *(factor * v for v in (100, 102, 98, 101, 99))], levels)
        section = replace(section, plan=replace(section.plan, quantities=("latency_max_us",)))
        run = saturation(name, section)
        return replace(run, tests=(replace(run.tests[0], sections=(section,)),))

    rows = compare([short("A", 1), short("B", 8)]).rows
    (row,) = [row for row in rows if row.part == "fresh out of box"]
    assert (row.quantity, row.entries[1].change) == (LATENCY_MAX, change)


def test_the_specifications_window_stands_for_the_steady_phase() -> None:
    """If every run reached the steady-state window of the specification, this window replaces the steady phase. The
    fresh phase is still compared.
    """

    def judged(factor: float) -> SectionResult:
        section = falling(factor)
        cell = replace(section.cells[0], rounds=5)
        return replace(section, steady=True, window=(36, 37, 38, 39, 40), cells=(cell,))

    both = compare([saturation("A", judged(1)), saturation("B", judged(8))])
    assert {row.part for row in both.rows} == {"fresh out of box", ""}
    assert list(name_headlines(both).values()) == [
        "4 KiB random write, fresh out of box: IOPS",
        "4 KiB random write: IOPS",
        "4 KiB random write: p99.9 latency",
    ]
    mixed = compare([saturation("A", judged(1)), saturation("B", falling(8))])
    assert {row.part for row in mixed.rows} == {"fresh out of box", "steady"}


def test_a_level_stream_is_compared_as_a_whole() -> None:
    level = stream([100.0, 101.0] * 10, [(LevelKind.STEADY, 0, 20, 100.5)])
    both = compare([saturation("A", level), saturation("B", level)])
    assert {row.part for row in both.rows} == {""}


# ---- headline figures


def test_headlines_are_what_a_data_sheet_names() -> None:
    """The headline figures of a comparison are 4 KiB reads, the mix and writes. If two tests have the same load, each
    headline figure names its test.
    """
    cells = {work(mix, size): (10.0, 11.0) for mix in (100, 65, 50, 0) for size in (4096, 8192)}
    tests = {"iops": [made_up_section("IOPS", cells)]}
    both = compare([made_up_run("A", tests), made_up_run("B", tests)])
    assert list(name_headlines(both).values()) == [
        "4 KiB random read: IOPS",
        "4 KiB random, 65 % reads: IOPS",
        "4 KiB random write: IOPS",
    ]
    twice = {"one": [made_up_section("S", WRITES)], "two": [made_up_section("S", WRITES)]}
    both = compare([made_up_run("A", twice), made_up_run("B", twice)])
    loads = [describe_loads(both)[one.place] for one in both.headlines if one.quantity is IOPS]
    assert loads == ["one, 4 KiB random write", "two, 4 KiB random write"]


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.0344, "1.034"),
        (0.98, "0.980"),
        (8.704, "8.70"),
        (43.21, "43.2"),
        (1234.5, "1,234"),
        (0.034, "0.034"),
        (0.0, "0"),
    ],
)
def test_ratios_have_sensible_digits(ratio: float, text: str) -> None:
    assert format_ratio(ratio) == text


# ---- arrangement


def test_the_arrangement_follows_from_the_drives() -> None:
    """Runs of drives of one model with different serial numbers are a cohort. Runs of one serial number on different
    dates are a history. All other runs are neither a cohort nor a history.
    """

    def arrangement(*devices: Mapping[str, object], dated: bool = True) -> Arrangement:
        return compare(
            [
                iops_run(
                    f"r{number}",
                    around(100),
                    device=dict(device),
                    started_utc=f"2026-0{number + 1}-01T00:00:00+00:00" if dated else None,
                )
                for number, device in enumerate(devices)
            ]
        ).arrangement

    cohort = (drive("S1"), drive("S2"), drive("S3"))
    assert arrangement(*cohort) is Arrangement.COHORT
    assert arrangement(*cohort[:2]) is Arrangement.RUNS
    assert arrangement(*cohort, drive("S1")) is Arrangement.RUNS
    assert arrangement(*cohort, drive(None)) is Arrangement.RUNS
    assert arrangement(*cohort, drive("S4", model="M2")) is Arrangement.RUNS
    assert arrangement(*(drive("S1"),) * 3) is Arrangement.HISTORY
    assert arrangement(*(drive("S1"),) * 3, dated=False) is Arrangement.RUNS
    no_model = drive("S1", model=None)
    assert arrangement(no_model, no_model, no_model) is Arrangement.RUNS


def test_an_arrangement_can_be_asked_for_where_it_is_possible() -> None:
    runs = [iops_run(f"r{n}", around(100), device=drive(f"S{n}")) for n in range(3)]
    assert compare(runs, Arrangement.RUNS).arrangement is Arrangement.RUNS
    with pytest.raises(UsageError, match=r"a cohort needs at least 3 runs, but there are only 2\. Omit --as"):
        compare(runs[:2], Arrangement.COHORT)
    undated = [replace(run, info=replace(run.info, started_utc=None)) for run in runs[:1]]
    with pytest.raises(UsageError, match="a history needs the date of each run, but the date of r0 is not known"):
        compare([*undated, *runs[1:]], Arrangement.HISTORY)


def test_the_command_offers_every_arrangement() -> None:
    assert list(ARRANGEMENTS) == [each.value for each in Arrangement]


# ---- cohorts


def cohort_of(*values: float, **changes: Any) -> Comparison:
    return compare(
        [
            iops_run(f"d{number}", around(value), device=drive(f"S{number}"), **changes)
            for number, value in enumerate(values)
        ]
    )


def test_spikes_that_only_some_runs_have_are_the_answer() -> None:
    """A comparison reports periodic spikes that only some runs have. Neither a mean nor a percentile shows, for
    example, a pause of 0.4 s every 13 minutes.
    """
    spikes = PeriodicSpikes(period=780.0, first=180.0, expected=9, places=(180.0, 960.0), height=20.0, chance=1e-9)

    def run(name: str, found: PeriodicSpikes | None) -> RunResult:
        section = made_up_section("Write Saturation", WRITES, stream=True)
        timeline = Timeline(
            workload=FOUR_KIB_WRITES, quantity=LATENCY_MAX.key, recorded=Recorded.SECONDS, values=7200, spikes=found
        )
        return made_up_run(name, {"writesat": [replace(section, timelines=(timeline,))]})

    pair = compare([run("A", spikes), run("B", None)])
    answer = tuple(find_conclusions(pair))
    assert answer[0] == "4 KiB random write, latency spikes every 13 min: A 101.0 µs; B none."
    charts = build_comparison_page(pair).overview_charts
    assert charts[0].question == "Which run has latency spikes?"
    assert isinstance(charts[0].chart, Chart)
    assert charts[0].chart.names == ("A", "B")
    for found in (spikes, None):
        alike = find_conclusions(compare([run("A", found), run("B", found)]))
        assert not any("spikes" in sentence for sentence in alike)


def test_a_cohort_tells_its_spread_and_names_who_strays() -> None:
    """A cohort reports its spread and names its outliers. The expected median of 100.5 and the expected MAD of 1.5 were
    calculated by hand.
    """
    cohort = cohort_of(100, 101, 99, 102, 80, 103)
    assert tuple(find_conclusions(cohort))[:2] == (
        "Outlier d4: 4 KiB random write: IOPS 20 % below the median.",
        "6 drives of model M1: headline figures spread by 2.2 %.",
    )
    assert cohort.cohort is not None
    (figure,) = cohort.cohort.figures
    assert figure.distribution.median == 100.5
    assert figure.distribution.spread == pytest.approx(1.4826 * 1.5)
    assert [one.name for one in figure.outliers] == ["d4"]
    assert figure.outliers[0].change is Change.WORSE
    table = build_headline_table(cohort)
    assert table is not None
    assert table.rows[0][:3] == ("4 KiB random write", "IOPS", "100.5")
    assert table.rows[0][-1] == "d4"


def test_where_more_than_half_are_alike_no_spread_is_told() -> None:
    """A cohort in which more than half of the values are equal reports no spread. A spread of 0 would suggest that all
    drives are equal.
    """
    cohort = cohort_of(100, 100, 100, 100, 101, 100)
    assert tuple(find_conclusions(cohort))[1] == (
        "6 drives of model M1: in every headline figure more than half of the runs have the same value."
    )
    table = build_headline_table(cohort)
    assert table is not None
    assert table.rows[0][table.columns.index("Spread (%)")] == "alike"
    (figure,) = json.loads(render_comparison_json(cohort))["cohort"]["figures"]
    assert figure["spread_percent"] is None


def test_who_strays_within_its_own_uncertainty_is_no_outlier() -> None:
    """A drive is not an outlier if its own interval reaches the values of the other drives, because its measurement may
    be imprecise. The report names such a drive after the outliers.
    """
    runs = [
        iops_run(f"d{n}", around(value), device=drive(f"S{n}")) for n, value in enumerate((100, 101, 99, 102, 80, 103))
    ]
    comparison = compare(runs)
    (headline,) = comparison.headlines
    entries = list(headline.entries)
    entries[4] = replace(entries[4], uncertainty=Uncertainty(standard=10, low=60, high=101))
    from tkperf.analysis.comparing.arrangements import build_cohort

    unsure = replace(headline, entries=tuple(entries))
    cohort = build_cohort(comparison.names, [drive(f"S{n}") for n in range(6)], [unsure])
    assert cohort.figures[0].outliers == ()
    assert [one.name for one in cohort.figures[0].unsure] == ["d4"]
    assert next(find_conclusions(replace(comparison, cohort=cohort))) == (
        "d4 may be an outlier, but its own uncertainty reaches the median: "
        "4 KiB random write: IOPS 20 % below the median."
    )


def test_the_same_slowdown_strays_as_iops_and_as_latency() -> None:
    """A slow drive is an outlier both in IOPS and in latency, even if its wide interval reaches below 0."""
    from tkperf.analysis.comparing.arrangements import build_cohort

    strays = []
    for measure, usual, slowed in ((IOPS, 93_900.0, 24_000.0), (LATENCY_MEAN, 97.5, 381.0)):
        values = [usual * (1 + n / 1000) for n in range(5)] + [slowed]
        runs = [iops_run(f"d{n}", around(value)) for n, value in enumerate(values)]
        (headline,) = compare(runs, Arrangement.COHORT).headlines
        half = 1.2 * slowed
        wide = Uncertainty(standard=half / 2, low=slowed - half, high=slowed + half)
        entries = (*headline.entries[:-1], replace(headline.entries[-1], uncertainty=wide))
        names = [run.info.name for run in runs]
        row = replace(headline, quantity=measure, entries=entries)
        cohort = build_cohort(names, [drive(None)] * 6, [row])
        strays.append([one.name for one in cohort.figures[0].outliers])
    assert strays == [["d5"], ["d5"]]


def test_a_small_or_even_cohort_names_nobody() -> None:
    assert "Outliers are named among 5 runs or more." in tuple(find_conclusions(cohort_of(100, 101, 50)))
    assert "No outlier." in tuple(find_conclusions(cohort_of(*range(98, 104))))


def test_runs_of_one_drive_are_no_drives() -> None:
    """A cohort is described as several drives only if the serial numbers of its runs differ. A cohort that the user
    requested for other runs is described as several runs.
    """
    serials = {"several drives": ("S1", "S2", "S3"), "one": ("S1",) * 3, "not known": (None,) * 3}
    titles = {}
    for what, of_runs in serials.items():
        runs = [iops_run(f"d{n}", around(100 + n), device=drive(s)) for n, s in enumerate(of_runs)]
        titles[what] = describe_group(compare(runs, Arrangement.COHORT))
    assert titles == {
        "several drives": "3 drives of model M1",
        "one": "3 runs of model M1",
        "not known": "3 runs of model M1",
    }


def test_ratios_of_a_cohort_are_to_its_median() -> None:
    cohort = cohort_of(100, 101, 99, 102, 80, 103)
    table = build_section_table(cohort, cohort.rows)
    assert table.title == "Values"
    assert table.columns[-6:] == ("d0", "d1", "d2", "d3", "d4", "d5")
    assert table.rows[0][-2] == "80.0\u00a0×0.796"
    assert "ratio" not in table.hints[0][4]  # another column contains the ratio to the first run
    each = build_runs_table(cohort)
    assert each is not None
    assert each.rows[0][0] == "d4"
    ratios = [cell.split("×")[1] for cell in table.rows[0][-6:]]
    assert sorted(each.rows) == sorted(zip(cohort.names, ratios, strict=True))


# ---- histories


@pytest.mark.parametrize(("minutes", "said"), [(5, "5 min"), (119, "119 min"), (540, "9 h"), (17_280, "12 days")])
def test_what_runs_span_is_never_nothing(minutes: int, said: str) -> None:
    """The time between the first and the last run is never described as zero, even if simulated runs follow each other
    within minutes.
    """
    assert describe_days(minutes / 1440) == said


def history_of(*values: float, firmware: Sequence[str] = ()) -> Comparison:
    versions = firmware or ("1.0",) * len(values)
    runs = [
        iops_run(
            f"run{number}",
            around(value),
            device=drive("S1", versions[number]),
            started_utc=f"2026-01-{1 + 10 * number // 4:02}T12:00:00+00:00",
        )
        for number, value in enumerate(values)
    ]
    return compare(list(reversed(runs)))


def test_a_history_is_in_the_order_of_dates_with_its_trend() -> None:
    """A history sorts its runs by date. Its trend is in percent of the median per day and has an interval."""
    history = compare(
        [
            iops_run(
                f"run{day}",
                around(1000 - 10 * day),
                device=drive("S1"),
                started_utc=f"2026-01-{day + 1:02}T12:00:00+00:00",
            )
            for day in (4, 0, 1, 3, 2)
        ]
    )
    assert history.names == ("run0", "run1", "run2", "run3", "run4")
    assert history.history is not None
    (figure,) = history.history.figures
    assert figure.median == 980
    assert figure.trend is not None
    assert figure.trend.slope == pytest.approx(-100 * 10 / 980)
    assert figure.change is Change.WORSE
    assert tuple(find_conclusions(history))[:2] == (
        "Drive S1, 5 runs over 4 days: 4 KiB random write: IOPS -1.02 % per day (-1.02 to -1.02), worse, beyond noise.",
        "Of 1 headline figure: 1 getting worse.",
    )


def test_four_runs_are_too_few_for_a_trend() -> None:
    history = history_of(100, 99, 98, 97)
    assert next(find_conclusions(history)) == (
        "Drive S1, 4 runs over 7 days: too few to separate a trend from noise (5 or more are needed)."
    )


def test_runs_of_one_date_tell_no_trend() -> None:
    """If two runs of a history have the same date, no trend is shown, because the interval requires different dates.
    The number of runs does not matter.
    """
    runs = [
        iops_run(f"r{n}", around(100 + n), device=drive("S1"), started_utc=f"2026-01-{1 + n // 2:02}T12:00:00+00:00")
        for n in range(6)
    ]
    assert next(find_conclusions(compare(runs, Arrangement.HISTORY))) == (
        "Drive S1, 6 runs over 2 days: no trend can be shown where two runs have the same date."
    )


def test_a_new_firmware_is_marked() -> None:
    history = history_of(100, 100, 90, 90, firmware=("1.0", "1.0", "1.2", "1.2"))
    assert "Firmware changed from 1.0 to 1.2 before run run2: what looks like a trend may be a step there." in tuple(
        find_conclusions(history)
    )
    assert history.history is not None
    assert [change.after for change in history.history.firmware] == ["1.2"]
    assert "different firmware" in worded(history).reasons
    each = build_runs_table(history)
    assert each is not None
    assert [row[2] for row in each.rows] == ["1.0", "1.0", "1.2", "1.2"]


# ---- many runs, colours


def test_many_runs_are_told_by_their_ends() -> None:
    """A comparison of many runs names the runs with the least and the greatest value. The table for each run uses short
    names and fits into 80 columns.
    """
    runs = [iops_run(f"lab-{n:02}", around(100 + n), device=drive(None)) for n in range(20)]
    many = compare(runs)
    assert next(find_conclusions(many)) == (
        "4 KiB random write: IOPS from 1.000 × (lab-00) to 1.190 × (lab-19) that of lab-00, beyond noise."
    )
    summary = build_section_table(many, many.rows)
    assert summary.rows[0][-4:] == ("100.0", "×1.000\u00a0lab-00", "×1.190\u00a0lab-19", "×1.095")
    file = io.StringIO()
    print_page(build_comparison_page(many, 2), Console(file=file, width=80))
    assert max(len(line) for line in file.getvalue().splitlines()) <= 80


def test_of_many_runs_each_end_is_told_as_sure_as_it_is() -> None:
    """With more than two runs, the conclusion states the noise of the runs with the least and the greatest value. The
    noise of the other runs does not matter.
    """
    once, often = (50.0,), around(80)
    runs = [iops_run("A", around(100)), iops_run("B", often), iops_run("C", once)]
    told = next(find_conclusions(compare(runs)))
    assert told == ("4 KiB random write: IOPS from 0.500 × (C) to 1.000 × (A) that of A, noise not known.")
    runs[2:] = [iops_run("D", (200.0,))]
    assert next(find_conclusions(compare(runs))).endswith(
        "from 0.800 × (B) to 2.00 × (D) that of A, beyond noise for B only."
    )


def test_the_furthest_of_many_runs_may_be_so_by_chance() -> None:
    """If many runs are compared, the conclusion on the run with the greatest difference states how many runs would be
    beyond noise by chance. With only two other runs, the conclusion does not mention chance.
    """
    runs = [iops_run(f"r{n:02}", around(100 if n < 19 else 103), device=drive(None)) for n in range(20)]
    chance = "; by chance alone about 1 would be beyond noise."
    assert next(find_conclusions(compare(runs))).endswith(f"(r19) that of r00, beyond noise{chance}")
    assert next(find_conclusions(compare(runs[17:]))).endswith("(r19) that of r17, beyond noise.")


def test_no_two_runs_are_called_alike() -> None:
    """Each run of a comparison receives a different name, even if the files of several runs have the same name."""
    names = ("a (2)", "a", "a", "a (3)")
    assert compare([iops_run(name, (1, 2)) for name in names]).names == ("a (2)", "a (2) (2)", "a (3) (3)", "a (3)")


@pytest.mark.parametrize("told", ["NaT", "now", "today", "12345678901234567890", "2026-13-01", ""])
def test_what_is_no_date_is_not_known(told: str) -> None:
    """A text that is not a date is not used as a day. A day without a time is accepted, because an imported run may
    have no time.
    """
    assert find_day(iops_run("A", (1, 2), started_utc=told)) is None
    day = find_day(iops_run("A", (1, 2), started_utc="1970-01-03"))
    noon = find_day(iops_run("A", (1, 2), started_utc="1970-01-03T12:00:00+00:00"))
    assert (day, noon) == (2.0, 2.5)


def test_the_last_run_of_a_history_that_fell_is_named_first() -> None:
    """If a result fell in the last run of a history, the conclusions mention this fall first. A single fall is not a
    trend.
    """
    sentences = tuple(find_conclusions(history_of(100, 100.1, 100.2, 100.1, 50)))
    assert sentences[0].startswith("4 KiB random write: ")
    assert "0.500 × the IOPS of" in sentences[0]
    assert "no trend beyond noise" in sentences[1]


# ---- JSON and Markdown


def test_json_and_markdown_say_the_same() -> None:
    """JSON and Markdown begin with the same conclusions. Each headline figure in JSON refers to its row."""
    runs = [iops_run("A", (100, 101)), iops_run("B|x", (870, 880))]
    both = compare(runs)
    document = json.loads(render_comparison_json(both))
    assert document["schema"] == "tkperf-comparison/1"
    assert document["findings"] == list(find_conclusions(both))
    (row,) = [document["rows"][one["row"]] for one in document["headlines"]]
    assert (row["key"], row["entries"][1]["change"]) == ("iops", "better")
    assert row["entries"][1]["ratio"] == pytest.approx(875 / 100.5)
    text = render_markdown(build_comparison_page(both))
    assert text.splitlines()[4] == f"**{document['verdict']['text']}**" == "**Comparable**"
    assert text.splitlines()[0].replace("\\", "") == f"# {document['decision']['title']}"
    for use in document["decision"]["uses"]:
        assert f"**{inert(use['name'])}**: {inert(use['text'])}" in text
    assert "- 4 KiB random write: B\\|x has 8.71 × the IOPS of A" in text
    assert "| 4 KiB random write | IOPS | 100.5 | 875 | ×8.71 | better |" in text


def test_every_key_of_the_json_is_on_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/compare.md").read_text(encoding="utf-8")
    below = page[page.index("## JSON and CSV") :]
    document = json.loads(render_comparison_json(compare([iops_run("A", (1, 2)), iops_run("B", (3, 4))])))
    assert [key for key in document if f"`{key}`" not in below] == []


def test_json_tells_which_run_a_notice_is_of() -> None:
    """The JSON document of a comparison lists the notices of each run. A reader can therefore not mistake the numbers
    of a model for measured numbers.
    """
    runs = [iops_run("A", (1, 2)), iops_run("B", (3, 4), notices=("SIMULATED: a model",))]
    document = json.loads(render_comparison_json(compare(runs)))
    assert [one["notices"] for one in document["runs"]] == [[], ["SIMULATED: a model"]]
    assert [one["status"] for one in document["runs"]] == ["complete", "complete"]


def test_json_of_cohorts_and_histories_has_their_numbers() -> None:
    cohort = json.loads(render_comparison_json(cohort_of(100, 101, 99, 102, 80, 103)))
    assert cohort["arrangement"] == "cohort"
    assert cohort["cohort"]["figures"][0]["outliers"][0]["name"] == "d4"
    history = json.loads(render_comparison_json(history_of(100, 99, 98, 97, 96)))
    assert history["history"]["figures"][0]["change"] == "worse"
    assert history["history"]["figures"][0]["percent_per_period"] < 0


def test_the_terminal_says_what_a_question_mark_is() -> None:
    """The terminal explains the question mark below each table that contains a question mark. It explains parentheses
    only below a table that contains parentheses.
    """
    file = io.StringIO()
    view = build_comparison_page(compare([iops_run("A", (100,)), iops_run("B", (800,))]))
    print_page(view, Console(file=file, width=120))
    below = file.getvalue().split("Runs\n")[0]
    assert "×1.02?: noise is not known" in below
    assert "(×1.02):" not in below
