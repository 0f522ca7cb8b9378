"""The beginning of every output: sentences and headline figures that are computed from the results of any test."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.analysis.made_up import made_up_run, made_up_section
from tests.builders import run_info, simulate, view_of, work
from tkperf.analysis.characteristics import AFTER_RECOVERY, FRESH, RECOVERY, STEADY, STEADY_FROM, Characteristic
from tkperf.analysis.characteristics_search import with_characteristics
from tkperf.analysis.results import CellUncertainty, RunResult, SectionResult
from tkperf.analysis.timeline.levels import LevelKind, RateLevel
from tkperf.analysis.timeline.timelines import Recorded, Timeline
from tkperf.analysis.uncertainty.estimate import Uncertainty
from tkperf.model.figures import Figure, FigureKind
from tkperf.model.quantity import IOPS, LATENCY_MAX, LATENCY_MEAN, Quantity, percentile
from tkperf.model.record import RunNote, RunStatus
from tkperf.model.steady_state import judge
from tkperf.page.findings import headlines
from tkperf.page.findings.headlines import MOST, build_headlines, describe_interval
from tkperf.page.findings.section_findings import describe_recovery, describe_section
from tkperf.page.findings.whole_test_findings import build_findings
from tkperf.page.view import build_view
from tkperf.page.words.run import find_badges, find_banners, group_warnings, summarise_warnings
from tkperf.procedures import HDD_TESTS, SSD_TESTS
from tkperf.render.export_json import render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.html import render_view
from tkperf.render.terminal.page_text import print_page

WRITES, READS, MIXED = work(), work(100), work(65)


def sentences(run: RunResult) -> list[str]:
    return [finding.text for finding in build_findings(run.tests)]


def with_latencies(section: SectionResult, mean: float, p999: float, most: float) -> SectionResult:
    """Return the section with these latencies in µs in each cell."""
    given = {LATENCY_MEAN.key: mean, percentile(99.9).key: p999, LATENCY_MAX.key: most}
    return replace(section, cells=tuple(replace(cell, all={**cell.all, **given}) for cell in section.cells))


def saturated(*, steady: float | None = 27_000.0) -> SectionResult:
    """Return a stream that falls from 88,800 IOPS to a steady level, or that continues to fall."""
    section = made_up_section("Stream", {WRITES: [30_000.0] * 3}, stream=True, window=False)
    fresh = RateLevel(kind=LevelKind.FRESH, start=0, end=540, value=88_800)
    last = RateLevel(kind=LevelKind.STEADY, start=2460, end=9000, value=27_000)
    course = Timeline(
        workload=WRITES,
        quantity="iops",
        recorded=Recorded.SLICES,
        values=100,
        levels=(fresh, last) if steady else (fresh,),
        settled=steady is not None,
    )
    values = {FRESH: 88_800.0, STEADY: steady, STEADY_FROM[Recorded.SLICES]: 2460.0}
    found = tuple(Characteristic(key=measure.key, workload=WRITES, value=value) for measure, value in values.items())
    section = replace(section, steady=None, timelines=(course,), characteristics=found)
    return with_latencies(section, 240.0, 1204.0, 35_100.0)


def test_a_stream_is_told_by_where_it_settles() -> None:
    """The sentence about a stream contains three facts: its fresh rate, the time and the rate at which it settles, and
    the latency of its later I/Os.
    """
    assert describe_section(saturated()) == (
        "Random 4 KiB writes settle after 41 min 00 s at 27,000 IOPS (median), 30.4 % of the 88,800 IOPS fresh out of "
        "box; "
        "99.9 % of all I/Os complete within 1.204 ms, the slowest in 35.1 ms"
    )


def test_a_stream_that_still_changes_is_not_called_settled() -> None:
    assert describe_section(saturated(steady=None)).startswith(
        "Random 4 KiB writes run at 30,000 IOPS on average and were still changing at the end; "
    )


def test_a_window_that_is_steady_may_still_change() -> None:
    """A window can be steady although the rate still changes, because the steady-state rule of the specification is
    less strict than tkperf's rule for a constant rate. The sentence then states both facts.
    """
    told = describe_section(replace(saturated(steady=None), steady=True))
    assert "still changing at the end, within the limits of steady state; " in told
    assert told.endswith("; steady state was reached")


def test_only_what_was_judged_steady_holds_a_rate() -> None:
    """A sentence states that a stream holds a rate only if the stream was judged steady. Otherwise the sentence
    contains the mean, as the tables do.
    """
    stream = saturated()
    even = replace(stream, timelines=(replace(stream.timelines[0], levels=stream.timelines[0].levels[1:]),))
    for steady, words in ((None, "run at"), (False, "run at"), (True, "hold")):
        judged = replace(even, steady=steady)
        assert f"writes {words} 30,000 IOPS" in describe_section(judged)
        run = made_up_run("R", {"writesat": [judged]})
        assert (build_headlines(run.tests)[0].label, build_headlines(run.tests)[0].text) == (
            "4 KiB random write",
            "30,000 IOPS",
        )


def test_a_share_of_fresh_is_the_same_wherever_it_stands() -> None:
    """Every output states the steady rate as the same share of the fresh rate. If a window was judged steady, the
    steady rate is the mean of the window, as in the tables. In this test, the mean is 30,000 of 88,800 IOPS.
    """
    stream = replace(saturated(), steady=True)
    run = made_up_run("R", {"writesat": [stream]})
    (share,) = [one for one in build_headlines(run.tests) if one.key == "share_of_fresh_percent"]
    assert share.text == "33.8 %"
    assert "settle after 41 min 00 s at 30,000 IOPS, 33.8 % of the " in build_findings(run.tests)[0].text


def test_the_headline_of_a_stream_is_what_the_sentence_says() -> None:
    """The headline of a stream is the settled rate in the sentence, and not the mean of the whole stream. A figure that
    another test already provided is not repeated.
    """

    def first(*sections: SectionResult) -> list[tuple[str, str]]:
        named = {f"test {number}": [section] for number, section in enumerate(sections)}
        run = made_up_run("R", named)
        return [(one.label, one.text) for one in build_headlines(run.tests)]

    settled = ("4 KiB random write, settled (median)", "27,000 IOPS")
    rounds = made_up_section("IOPS", {WRITES: [28_000.0] * 5})
    of_all = ("4 KiB random write", "30,000 IOPS")
    assert first(saturated())[0] == settled
    assert first(replace(saturated(), steady=True))[0] == of_all
    assert first(saturated(steady=None))[0] == of_all
    together = first(rounds, saturated())
    assert together[0] == ("4 KiB random write", "28,000 IOPS")
    assert settled not in together


def test_cells_are_told_writes_first() -> None:
    """The sentence about cells begins with 4 KiB writes if they were measured. The sentence names the rounds in which
    the cells were steady.
    """
    cells = {work(100, 8192): [9.0] * 5, READS: [98_000.0] * 5, MIXED: [40_000.0] * 5, WRITES: [27_000.0] * 5}
    section = with_latencies(made_up_section("Rounds", cells), 37.21, 120.4, 5000.0)
    assert describe_section(section) == (
        "Random 4 KiB writes run at 27,000 IOPS, reads at 98,000 IOPS, mixed I/Os (65 % reads) at "
        "40,000 IOPS; 99.9 % of the writes complete within 120.4 µs, the slowest in 5.00 ms; steady in "
        "rounds 1–5"
    )


def test_what_was_not_measured_is_not_told() -> None:
    """A value that was not measured is not mentioned in a sentence. It appears neither as 0 nor as a dash."""
    section = made_up_section("Rounds", {WRITES: [None] * 5, READS: [None] * 5})
    assert describe_section(section) == ""
    run = made_up_run("run", {"unheard of": [section]})
    assert build_headlines(run.tests) == ()


@pytest.mark.parametrize(
    ("half", "at_least", "text"),
    [(270.0, False, "± 1.0 %"), (270.0, True, "at least ± 1.0 %"), (1.0, False, "± < 0.05 %"), (1.0, True, "")],
)
def test_a_headline_says_where_its_interval_is_a_lower_limit(half: float, at_least: bool, text: str) -> None:
    """If an interval is only a lower limit, the headline contains the words "at least" before it. The sign "<" is never
    used for this purpose.
    """
    known = Uncertainty(standard=half / 2, low=27_000 - half, high=27_000 + half, at_least=at_least)
    section = made_up_section("Rounds", {WRITES: [27_000.0] * 5})
    cell = replace(section.cells[0], uncertainty=CellUncertainty(all={IOPS.key: known}))
    run = made_up_run("R", {"iops": [replace(section, cells=(cell,))]})
    assert [one.sure for one in build_headlines(run.tests) if one.key == IOPS.key] == [text]


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [(IOPS, 27_000.0, "20,000 to 62,000 or wider"), (LATENCY_MEAN, 900.0, "667 µs to 2.07 ms or wider")],
)
def test_a_headline_has_the_ends_of_an_asymmetric_interval(quantity: Quantity, value: float, text: str) -> None:
    """If an interval extends much further to one side, the headline contains its two ends. Half of its width would
    contradict the ends in the finding about the same figure. Each end of a latency has its unit.
    """
    known = Uncertainty(standard=1.0, low=value / 1.35, high=value * 2.3, at_least=True)
    assert describe_interval(value, known, quantity) == text


def test_a_mix_of_one_size_has_no_second_size() -> None:
    """If each mix of a section was measured with only one block size, the sentence names this size."""
    cells = {"1024k": READS, "128k": work(100, 128 * 1024), "4k": work(0, 1024 * 1024)}
    sections = [replace(made_up_section(name, {load: [500.0] * 5}), name=name) for name, load in cells.items()]
    run = made_up_run("R", {"tp": sections})
    figure = Figure(kind=FigureKind.MATRIX, quantities=(IOPS.key,))
    run = replace(run, tests=(replace(run.tests[0], figures=(figure,)),))
    assert sentences(run)[0] == (
        "Random writes run at 500 IOPS with 1024 KiB blocks, reads run at 500 IOPS with 128 KiB "
        "blocks and 500 IOPS with 4 KiB"
    )


def test_each_figure_of_several_demands_names_its_own() -> None:
    """If a test has several demands, the headline of each demand names this demand and is shown only once."""
    most, least = work(jobs=4, io_depth=32), work()
    grid = made_up_section("Grid", {most: [64_000.0] * 5, least: [9_800.0] * 5}, steady=None)
    tails = [
        with_latencies(made_up_section(name, {demand: [rate] * 3}, stream=True, window=False), 240.0, 1204.0, 35_100.0)
        for name, demand, rate in (("Maximum", most, 63_000.0), ("Minimum", least, 9_700.0))
    ]
    run = made_up_run("R", {"grid": [grid, *tails]})
    rates = [one for one in build_headlines(run.tests) if one.key == IOPS.key]
    assert [one.label for one in rates] == [
        "4 KiB random write, highest, at TC4 QD32",
        "4 KiB random write, at TC4 QD32",
    ]
    assert all("at TC4 QD32" in one.label for one in build_headlines(run.tests))


def test_a_grid_is_told_by_its_peak_and_its_first_step() -> None:
    grid = {work(jobs=4, io_depth=32): [64_000.0] * 5, work(): [9_800.0] * 5}
    section = with_latencies(made_up_section("Grid", grid, steady=None), 102.04, 200.0, 900.0)
    assert describe_section(section) == (
        "Random 4 KiB writes reach 64,000 IOPS at TC4 QD32 (102.0 µs on average), and 9,800 IOPS with a "
        "single outstanding I/O (102.0 µs on average)"
    )


def grid_of(**mean_us: float) -> SectionResult:
    """Return a grid of demands with the given mean latencies. The IOPS of each demand are 1,000 for each thread, with
    an interval of 5 %.
    """
    loads = {work(jobs=int(name[1:])): us for name, us in mean_us.items()}
    made = made_up_section("Grid", {load: [1000.0 * load.jobs] for load in loads}, steady=None)
    cells = []
    for cell in made.cells:
        iops = 1000.0 * cell.workload.jobs
        known = Uncertainty(low=0.95 * iops, high=1.05 * iops)
        figures = {**cell.all, "latency_mean_us": loads[cell.workload]}
        uncertainty = CellUncertainty(all={"iops": known})
        cells.append(replace(cell, all=figures, uncertainty=uncertainty))
    return replace(made, cells=tuple(cells))


def test_the_maximum_of_a_grid_is_below_the_ceiling_of_its_test() -> None:
    """The maximum of a grid is the highest rate at which the latency is below the limit of the test. Without a limit,
    it is the highest rate of all. The sentence also names the demands whose rates are within noise of the maximum.
    """
    cells = grid_of(t10=200.0, t20=4000.0, t21=4900.0, t30=5000.0)
    below = describe_section(replace(cells, latency_ceiling_us=5000.0))
    assert below.startswith(
        "Random 4 KiB writes reach 21,000 IOPS at TC21 QD1 (4.90 ms on average), the highest rate below 5 ms "
        "on average, within noise of TC20 QD1"
    )
    (headline, *_) = build_headlines(made_up_run("R", {"made up": [replace(cells, latency_ceiling_us=5000.0)]}).tests)
    assert headline.label == "4 KiB random write, MaxIOPS at TC21 QD1"
    assert describe_section(cells).startswith("Random 4 KiB writes reach 30,000 IOPS at TC30 QD1 (5.00 ms on average)")
    assert "none below 3 ms" in describe_section(replace(grid_of(t10=4000.0, t20=5000.0), latency_ceiling_us=3000.0))


def test_the_headline_of_dirth_is_the_maximum_that_it_measured(tmp_path: Path) -> None:
    result = simulate(tmp_path, run_info(), suite={"dirth": SSD_TESTS["dirth"]})
    sections = {section.name: section for section in result.tests[0].sections}
    assert sections["Demand grid"].latency_ceiling_us == 5000
    (most,) = [one for one in build_headlines(result.tests) if one.section == "Demand grid"]
    assert most.workload == sections["Maximum: response times"].cells[0].workload


def offered(*done: float, **figures: float | None) -> SectionResult:
    """Return a section with levels of 1,000, 2,000 ... offered IOPS. The levels have the given figures."""
    levels = {replace(WRITES, offered_iops=1000.0 * number): [rate] for number, rate in enumerate(done, start=1)}
    section = made_up_section("Levels", levels, steady=None)
    cells = tuple(replace(cell, all={**cell.all, **figures}) for cell in section.cells)
    test = made_up_run("run", {"demand": [replace(section, cells=cells)]}).tests[0]
    return with_characteristics(test).sections[0]


@pytest.mark.parametrize(
    ("done", "text"),
    [
        (
            (1000.0, 1500.0),
            "Random 4 KiB writes have no backlog up to 1,000 IOPS and saturate at 1,500 IOPS; at 1,000 IOPS they take "
            "1.000 ms on average",
        ),
        (
            (1000.0, 2000.0),
            "Random 4 KiB writes have no backlog up to 2,000 IOPS, the highest rate offered; at 2,000 IOPS they take",
        ),
        (
            (600.0, 600.0),
            "Random 4 KiB writes have a backlog at the lowest rate offered, 1,000 IOPS, and saturate at 600 IOPS",
        ),
    ],
)
def test_an_offered_rate_is_described_by_its_limits(done: tuple[float, float], text: str) -> None:
    assert describe_section(offered(*done)).startswith(text)


@pytest.mark.parametrize(
    ("with_wait", "words"),
    [
        (60_000.0, "they take 60.0 ms on average including the wait to be issued, 1.000 ms once issued"),
        (1005.0, "they take 1.000 ms on average"),
        (None, "they take 1.000 ms on average"),
    ],
)
def test_latency_at_an_offered_rate_has_its_wait(with_wait: float | None, words: str) -> None:
    """The latency at an offered rate includes the wait before submission, which fio's latency does not include. A wait
    below 1 % is not mentioned.
    """
    section = offered(1000.0, 1500.0, latency_with_wait_us=with_wait)
    assert words in describe_section(section)


def test_areas_are_told_from_the_first_to_the_last() -> None:
    section = made_up_section("Disk", {READS: [220.0, 180.0, 150.0]}, areas=True, steady=None)
    assert describe_section(section).startswith(
        "Random 4 KiB reads run at 183.3 IOPS on average over the disk (220 in its first area, 150.0 in its last)"
    )


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([100.0, 104.0, 108.0, 112.0, 116.0], "slope 14.8 % (allowed 10 %)"),
        ([100.0, 100.0, 126.0, 100.0, 100.0], "range 24.7 % (allowed 20 %)"),
        ([100.0, 100.0], "2 of the 5 rounds a window needs"),
    ],
)
def test_what_is_not_steady_says_by_how_much(values: Sequence[float], why: str) -> None:
    """If a section was judged not steady, the finding is an alarm that states by how much the section missed the limit.
    Too few rounds lead to a finding without an alarm.
    """
    verdict = judge(range(1, len(values) + 1), values, tracking="RND 4k IOPS", unit="IOPS")
    section = made_up_section("Rounds", {WRITES: values}, steady=False if verdict.judged else None)
    section = replace(section, verdict=verdict, verdicts=(verdict,), window_verdicts=(verdict,))
    run = made_up_run("run", {"unheard of": [section]})
    found = build_findings(run.tests)[-1]
    judged = "did not reach steady state" if verdict.judged else "has too few rounds for the steady-state rule"
    assert (found.text, found.alarm) == (f"Rounds {judged}: {why}", verdict.judged)


def test_a_section_of_a_load_that_was_told_is_named() -> None:
    """A sentence names its section if an earlier section had the same load. Otherwise two sentences about one load
    would seem to contradict each other.
    """
    first, second = (made_up_section(name, {WRITES: [rate]}, steady=None) for name, rate in (("A", 5.0), ("B", 7.0)))
    first_text, second_text = sentences(made_up_run("run", {"unheard of": [first, second]}))
    assert first_text.startswith("Random 4 KiB writes run at 5.00 IOPS")
    assert second_text.startswith("B: random 4 KiB writes run at 7.00 IOPS")


@pytest.mark.parametrize("name", [*SSD_TESTS, *(f"hdd {name}" for name in HDD_TESTS)])
def test_every_test_is_told_of(tmp_path: Path, name: str) -> None:
    """Every test is described by sentences and by at least one headline figure. None of them is empty, and no test
    needs separate code for them.
    """
    disk = name.startswith("hdd ")
    test = HDD_TESTS[name[4:]] if disk else SSD_TESTS[name]
    preset = "hdd" if disk else "sata-ssd"
    run = simulate(tmp_path, run_info(suite="hdd" if disk else "ssd"), preset, suite={test.name: test})
    texts = [finding.text for finding in build_findings(run.tests)]
    assert any(not finding.alarm for finding in build_findings(run.tests))
    assert 1 <= len(build_headlines(run.tests)) <= MOST
    for text in (*texts, *(one.text for one in build_headlines(run.tests))):
        assert not re.search(r"None|nan|\binf\b|\.$| - ", text), text
    assert len(set(texts)) == len(texts)
    assert all(
        one.value is not None or "at least" in one.text or "over" in one.text or "below" in one.text
        for one in build_headlines(run.tests)
    )


def test_each_test_has_a_figure_before_any_has_two(tmp_path: Path) -> None:
    """Each test provides one headline before any test provides a second headline. No combination of load and quantity
    appears in two headlines.
    """
    run = simulate(tmp_path, run_info())
    assert len(build_headlines(run.tests)) == MOST
    assert {one.test for one in build_headlines(run.tests)} == {test.name for test in run.tests}
    assert [one.test for one in build_headlines(run.tests)] == sorted(
        (one.test for one in build_headlines(run.tests)), key=[test.name for test in run.tests].index
    )
    assert len({(one.label, one.key) for one in build_headlines(run.tests)}) == MOST


def test_every_output_has_the_same_sentences(tmp_path: Path) -> None:
    """The outputs in the terminal, Markdown, HTML and JSON contain the same sentences about a run."""
    run = simulate(tmp_path, run_info())
    console = Console(file=io.StringIO(), width=10_000)
    print_page(build_view(run), console)
    assert isinstance(console.file, io.StringIO)
    shown, page = console.file.getvalue(), render_view(view_of(tmp_path / "run.tkperf"))
    plain = re.sub(r"</?span[^>]*>", "", page)
    markdown = render_markdown(build_view(run))
    document = json.loads(render_json(run))
    for finding, kept in zip(build_findings(run.tests), document["findings"], strict=True):
        assert finding.text == kept["text"]
        assert f"{finding.text}." in shown
        assert f"{finding.text}." in plain
        assert f"{finding.text}." in markdown
    for headline, kept in zip(headlines(run), document["headlines"], strict=True):
        assert (headline.text, headline.value) == (kept["text"], kept["value"])
        for said in (shown, page, markdown):
            assert headline.text in said
        # These tests run at different demands, and their latencies differ accordingly.
        title = next(test.title for test in run.tests if test.name == headline.test)
        for said in (shown, markdown):
            row = next(line for line in said.splitlines() if headline.label in line)
            assert title in row.partition(headline.text)[2]


def test_a_warning_is_told_once() -> None:
    """Warnings are grouped by their subject, and a repeated warning is shown once. The sentences about the tests are
    not repeated among the warnings.
    """
    host = RunNote(code="host-disturbs", text="CPU governor: powersave")
    step = RunNote(code="foreign-io", text="others wrote", test="iops", at_s=1.0)
    again = RunNote(code="resumed", text="the run: stopped and went on")
    run = replace(made_up_run("run", {}), warnings=(host, step, host, again))
    groups = group_warnings(run)
    assert [(group.title, group.count, group.texts) for group in groups] == [
        ("host", 2, ("CPU governor: powersave (2 times)",)),
        ("disturbances", 1, ("others wrote",)),
    ]
    assert summarise_warnings(groups) == "3 warnings: host (2), disturbances (1)"


def test_a_run_that_was_cut_off_has_a_badge() -> None:
    run = replace(made_up_run("run", {}), status=RunStatus.INTERRUPTED, ended_because="Ctrl-C")
    assert find_badges(run) == ("RUN INTERRUPTED: Ctrl-C",)


def test_what_the_verdict_says_is_no_banner() -> None:
    """A fact in the verdict is not repeated as a banner, so that the top of a page contains each fact only once. All
    other notices remain banners.
    """
    run = made_up_run("run", {})
    notices = ("SIMULATED: a model", "QUICK PROFILE: short", "OWN WORKLOAD: mine", "ALTERED: a -> b")
    info = replace(run.info, notices=notices, ioengine="simulated", profile_name="quick", alterations=("a -> b",))
    cut = replace(run, info=info, status=RunStatus.INTERRUPTED, ended_because="Ctrl-C")
    assert find_banners(cut) == ("OWN WORKLOAD: mine",)
    assert [text.split(":")[0] for text in find_badges(cut)] == [
        "RUN INTERRUPTED",
        "SIMULATED",
        "QUICK PROFILE",
        "OWN WORKLOAD",
        "ALTERED",
    ]
    imported = replace(info, ioengine="not known", profile_name="pts-e-1.1", alterations=())
    assert find_banners(replace(run, info=imported)) == notices


def judged_grid(reads: Sequence[float]) -> SectionResult:
    """Return five rounds of writes and reads, with the writes as the tracking variable."""
    writes = [100.0, 101.0, 99.0, 100.0, 100.0]
    section = made_up_section("IOPS", {WRITES: writes, READS: list(reads)})
    verdict = judge([1, 2, 3, 4, 5], writes, tracking="RND 0/100 4k IOPS", unit="IOPS")
    return replace(section, verdict=verdict, window_verdicts=(verdict,))


def test_steady_is_said_only_of_what_was_judged() -> None:
    """Only a cell that was judged is described as steady. If another cell in the window varied by more than the limits
    of the rule permit, its headline states the amount of this variation.
    """
    section = judged_grid([50.0, 100.0, 60.0, 126.0, 64.0])
    told, run = describe_section(section), made_up_run("run", {"iops": [section]})
    writes, reads = build_headlines(run.tests)
    assert (writes.verdict, writes.alarm, writes.varied_percent) == ("steady state", False, None)
    assert (reads.verdict, reads.alarm) == ("in the steady window, varied by 95 %", True)
    assert reads.varied_percent == pytest.approx(95)
    assert told.endswith("; steady in rounds 1–5, in which reads varied by 95 %")
    even = judged_grid([50.0, 51.0, 50.0, 51.0, 50.0])
    _, reads = build_headlines(made_up_run("run", {"iops": [even]}).tests)
    assert (reads.verdict, reads.alarm) == ("in the steady window", False)
    assert describe_section(even).endswith("; steady in rounds 1–5")


def test_a_stream_that_still_falls_says_how_much() -> None:
    """If the rate of a stream is still falling at the end of the stream, the sentence states by how much the rate fell
    in the last quarter. If the change is within noise, the sentence states only that the rate was still changing.
    """
    stream = saturated(steady=None)
    course = replace(stream.timelines[0], end_change_percent=-7.3, end_noise_percent=2.0)
    stream = replace(stream, timelines=(course,))
    assert describe_section(stream).startswith(
        "Random 4 KiB writes run at 30,000 IOPS on average and were still falling at the end, by 7.3 % in the last "
        "quarter, "
        "after 88,800 IOPS fresh out of box; "
    )
    within_noise = replace(course, end_noise_percent=9.0)
    assert "still changing at the end; " in describe_section(replace(stream, timelines=(within_noise,)))


def test_the_headline_of_a_stream_that_still_falls_says_so() -> None:
    """If the rate of a stream is still falling at the end of the stream, the headline states this fact, because the
    mean of the whole stream is not the rate at the end. A verdict on steady state has priority over this remark.
    """

    def verdict_of(stream: SectionResult) -> str:
        return build_headlines(made_up_run("run", {"writesat": [stream]}).tests)[0].verdict

    stream = saturated(steady=None)
    course = replace(stream.timelines[0], end_change_percent=-7.3, end_noise_percent=2.0)
    assert verdict_of(replace(stream, timelines=(course,))) == "still falling at the end"
    assert verdict_of(stream) == "still changing at the end"
    rounds = judge([1, 2, 3, 4, 5], [100.0, 50.0, 60.0, 40.0, 30.0], tracking="IOPS", unit="IOPS")
    assert verdict_of(replace(stream, verdict=rounds, steady=False)) == "NOT steady"
    assert verdict_of(saturated()) == ""


@pytest.mark.parametrize(("least", "words"), [(60.0, ", then down to 60.0 % of that rate"), (93.0, "")])
def test_a_rate_that_was_reached_only_for_a_moment_says_what_followed(least: float, words: str) -> None:
    """If a stream reached its earlier rate only for a short time, the sentence also names the later, lower rate. A fall
    within noise is not mentioned.
    """
    found = (
        Characteristic(key=RECOVERY.key, workload=WRITES, value=180.0),
        Characteristic(key=AFTER_RECOVERY.key, workload=WRITES, value=least),
    )
    section = replace(saturated(), characteristics=found)
    assert list(describe_recovery(section, "A")) == [f"reached again after 3 min 00 s{words}"]


def test_a_share_names_what_it_is_a_share_of() -> None:
    labels = [headline.label for headline in build_headlines(made_up_run("run", {"writesat": [saturated()]}).tests)]
    assert "4 KiB random write, share of the 88,800 IOPS fresh out of box" in labels
