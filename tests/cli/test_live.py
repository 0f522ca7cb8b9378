"""The live view fits into a terminal of any size, shows the current state of the run, and leaves no lines behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest
from msgspec import to_builtins
from rich.console import Console
from rich.text import Text

from tests.builders import io_stats, run_info, work
from tests.cli.screen import Screen
from tests.render.test_histories import MIXES, SIZES
from tests.runfile.runs import a_step
from tkperf.analysis.workload_axes import name_stream
from tkperf.cli.run_views import InBackground, LiveView, RedrawnLines
from tkperf.model.disturbance.io import Disturbance, DisturbanceCode
from tkperf.model.figures import FigureKind, SectionPlan, TestPlan, drawn
from tkperf.model.measurement import NO_IO, IoStats, Measurement, Sample, StreamPart
from tkperf.model.phases import Fill, Round
from tkperf.model.record import RunNote, StepKind
from tkperf.model.steady_state import judge
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.workload import ActiveRange, Step, Stream, Workload, combine, list_loads
from tkperf.page.progress import build_progress
from tkperf.pipeline.run_state import RunState
from tkperf.procedures.interference import InterferenceTable
from tkperf.procedures.read_profiles import load_profile
from tkperf.render.terminal.progress_lines import format_end, render_lines
from tkperf.runner.events import (
    PhaseStarted,
    RunStarted,
    SampleSeen,
    StepEnded,
    StepStarted,
    TelemetrySeen,
    TestStarted,
    Warned,
)
from tkperf.web.jobs import render_progress

NOW = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
GB = 10**9


@pytest.fixture(autouse=True)
def by_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def second(ios: int, at_s: float, written_bytes: int | None = None) -> SampleSeen:
    stats = IoStats(
        ios=ios,
        bytes=ios * 4096 if written_bytes is None else written_bytes,
        latency_ios=ios,
        latency_sum_ns=ios * 1_440_000,
    )
    sample = Sample(start_s=at_s, duration_s=1.0, read=NO_IO, write=stats)
    return SampleSeen(test="iops", sample=sample, at_s=at_s)


def begin(kind: StepKind, workload: Workload, *, planned_bytes: int | None = None, at_s: float = 16_000) -> StepStarted:
    return StepStarted(
        test="iops",
        section="IOPS",
        kind=kind,
        number=6,
        position=30,
        steps=56,
        workload=workload,
        planned_s=None if planned_bytes else 60.0,
        planned_bytes=planned_bytes,
        at_s=at_s,
    )


def in_a_round(ioengine: str = "io_uring") -> RunState:
    """Return the state of a run in the IOPS test, in the middle of the sixth round."""
    state = RunState()
    state.take(RunStarted(info=run_info(name="D3", ioengine=ioengine), tests=("iops", "lat", "tp", "writesat")))
    state.take(TestStarted(test="iops", at_s=0))
    steps = tuple(Step(workload=work(mix, size), duration_s=60) for mix in MIXES for size in SIZES)
    phase = Round(section="IOPS", number=6, steps=steps)
    state.take(PhaseStarted(test="iops", phase=phase, at_s=15_000, shortest_s=9_000, longest_s=90_000, at_most=25))
    for step in steps:
        state.histories[step.workload] = [3e4, 2e4, 1e4]
    state.take(begin(StepKind.ROUND, steps[30].workload))
    for number in range(30):
        state.take(second(88_000, 16_000 + number + 1))
    return state


def lines_of(state: RunState, width: int = 79, height: int = 23, **options: str) -> list[str]:
    return [line.plain for line in render_lines(build_progress(state), width=width, height=height, now=NOW, **options)]


def test_a_round_is_told_in_24_lines_of_80_columns() -> None:
    """In a round, 24 lines of 80 columns show the number of the round, the progress of the step and of the run, and the
    expected end. The lines also show the figures of the current second and of every cell.
    """
    lines = lines_of(in_a_round())
    assert lines[0].startswith("── D3 ── test 1 of 4: iops lat tp writesat ──")
    assert lines[1] == ("IOPS, round 6 of at most 25, step 31 of 56  RND 4k R/W 50/50 TC1/QD1")
    assert lines[2] == "run     ██▒▒▒▒▒▒▒▒▒▒░░░░░░░ 15 to 67 %   ends 14:12 to Fri 12:42"
    assert lines[3] == "step    █████████░░░░░░░░░░ 50 % of 1 min 00 s"
    assert lines[4] == ("now          88,000 IOPS       360 MB/s   mean  1.440 ms   p99         -")
    assert lines[5] == "88.0k   " + "█" * 30
    assert lines[11] == "30 s    " + "█" * 30
    assert lines[12] == "IOPS, round by round; Block size (KiB) down, R/W % across"
    assert [line.split()[0] for line in lines[14:22]] == ["0.5", "4", "8", "16", "32", "64", "128", "1024"]
    assert lines[22] == ("4 h 27 min gone, 2 h 12 min to 24 h 42 min left, 10.8 GB written")


READER = replace(work(100, jobs=2, io_depth=8), offered_iops=2000.0)
COMBINATION = combine(
    (Stream(name="reader", workload=READER), Stream(name="log", workload=replace(work(), flush_every=4)))
)


def with_streams() -> RunState:
    """Return the state of a run in the middle of a step. In this step, a reader runs at the same time as a log writer
    that flushes.
    """
    state = in_a_round()
    state.take(begin(StepKind.ROUND, COMBINATION))
    reads, writes = io_stats([100_000] * 1990), io_stats([20_000] * 400)
    flushes = replace(io_stats([2_000_000] * 100), bytes=0)
    parts = (StreamPart(name="reader", read=reads), StreamPart(name="log", write=writes, flush=flushes))
    sample = Sample(start_s=0.0, duration_s=1.0, read=reads, write=writes, flush=flushes, streams=parts)
    state.take(SampleSeen(test="iops", sample=sample, at_s=16_001.0))
    return state


def test_each_stream_of_a_combination_has_a_line() -> None:
    """In a combination, the rate, the offered rate and the latencies of a stream are calculated from the stream's I/Os
    in the last second. Flushes have a separate line without MB/s. A percentile of too few I/Os is not shown.
    """
    lines = lines_of(with_streams())
    first = next(number for number, line in enumerate(lines) if line.startswith("stream"))
    words = [line.split() for line in lines[first : first + 4]]
    assert words[0] == ["stream", "IOPS", "offered", "MB/s", "mean", "p99"]
    assert words[1] == ["reader", "1,990", "2,000", "8.15", "100.0", "µs", "100.0", "µs"]
    assert words[2] == ["log", "400", "-", "1.638", "20.0", "µs", "-"]
    assert words[3] == ["log,", "flushes", "100.0", "-", "-", "2.00", "ms", "-"]
    page = render_progress(build_progress(with_streams()))
    assert page.count('<th scope="row">') == 3
    assert "<td>1,990</td><td>2,000</td>" in page


def test_each_stream_has_a_history() -> None:
    """At the end of a step, one value is added to the history of each stream, to the history of its flushes, and to the
    history of all streams.
    """
    state = with_streams()
    assert state.sample is not None
    measured = Measurement(
        duration_s=1.0,
        read=state.sample.read,
        write=state.sample.write,
        flush=state.sample.flush,
        streams=state.sample.streams,
    )
    record = replace(a_step(6), workload=COMBINATION, measurement=measured)
    state.take(StepEnded(test="iops", record=record))
    values = {name_stream(workload): values for workload, values in state.histories.items() if workload.together}
    assert values == {"all": [2390.0], "reader": [1990.0], "log": [400.0], "log, flushes": [100.0]}


GRID_PLAN = TestPlan(
    title="Grid",
    sections=(SectionPlan(name="IOPS", quantities=("iops",), figures=(drawn(FigureKind.INTERFERENCE, "p99_us"),)),),
)
# A cell of one second with 1,000 reads. This number is just enough for a 99th percentile.
ENOUGH = 1000.0


def in_a_grid() -> RunState:
    """Return the state of a run in the middle of a grid of reads and writes. The limit for the latency is 0.5 ms."""
    table = msgspec.structs.replace(load_profile("quick").table(InterferenceTable), latency_limit_ms=0.5)
    state = in_a_round()
    state.take(RunStarted(info=run_info(name="D3", profile={"interference": to_builtins(table)}), tests=("iops",)))
    state.take(TestStarted(test="iops", at_s=0, plan=GRID_PLAN))
    # Each row contains the offered reads, the offered writes, the completed reads and the latency of the reads.
    for read_iops, write_iops, done, latency_ns in (
        (ENOUGH, None, 1000, 90_000),
        (ENOUGH, 500.0, 1000, 120_000),
        (2 * ENOUGH, 500.0, 2000, 600_000),
        (2 * ENOUGH, 1000.0, 1500, 100_000),
        (100.0, None, 100, 90_000),
        (None, 500.0, 0, 0),
    ):
        of_reads, of_writes = io_stats([latency_ns] * done), io_stats([9_000_000] * int(write_iops or 0))
        reads, writes = (
            None if rate is None else replace(load, offered_iops=rate)
            for load, rate in ((work(100), read_iops), (work(block_size_bytes=128 * 1024), write_iops))
        )
        measured = Measurement(duration_s=1.0, read=of_reads, write=of_writes)
        load = reads or writes
        assert load is not None
        if reads is not None and writes is not None:
            load = combine((Stream(name="reader", workload=reads), Stream(name="writer", workload=writes)))
            parts = (StreamPart(name="reader", read=of_reads), StreamPart(name="writer", write=of_writes))
            measured = replace(measured, streams=parts)
        state.take(StepEnded(test="iops", record=replace(a_step(6), workload=load, measurement=measured)))
    return state


def test_a_grid_of_reads_and_writes_shows_the_percentile_that_decides() -> None:
    """Each cell of the grid is the 99th percentile of the reads in µs. If the offered rates of a cell were not reached,
    or if a cell has too few reads or no reads, the cell contains a word, and the view explains this word. The grid has
    the axes of the report and fits a terminal of 80 columns.
    """
    lines = lines_of(in_a_grid(), 80, 30)
    head = next(number for number, line in enumerate(lines) if line.startswith("Reads, "))
    assert lines[head] == "Reads, p99 latency (µs), limit 500; MB/s of writes down, read IOPS across"
    assert [line.split() for line in lines[head + 1 : head + 5]] == [
        ["0", "100", "1.0k", "2.0k"],
        ["131.1", "-"],
        ["65.5", "done", "120", "600"],
        ["0", "few", "90.0"],
    ]
    assert lines[head + 5] == "-: offered rates not reached; few: too few reads for p99; done: all writes done"
    assert max(map(len, lines)) <= 80


def test_a_browser_shows_the_grid_of_reads_and_writes() -> None:
    """The page of a running test contains the grid of reads and writes as a table. A cell whose latency exceeds the
    limit is marked.
    """
    page = render_progress(build_progress(in_a_grid()))
    assert page.count('<td class="within">') == 2
    assert '<td class="beyond">600</td>' in page
    assert page.count("<tr>") == 4
    assert "few: too few reads for p99" in page


def test_steps_with_an_offered_rate_keep_their_histograms_for_views() -> None:
    """A view in the process of the run receives histograms only for steps with an offered rate."""
    measured = Measurement(duration_s=1.0, read=io_stats([1000] * 2000), write=NO_IO)
    seen: list[object] = []

    @contextmanager
    def view() -> Iterator[Callable[[object, datetime], None]]:
        yield lambda event, _: seen.append(event)

    observer = InBackground(view, name="test")
    for load in (work(100), READER):
        observer(StepEnded(test="iops", record=replace(a_step(6), workload=load, measurement=measured)))
    observer.close()
    kept = [event.record.measurement.read.histogram.total for event in seen if isinstance(event, StepEnded)]
    assert kept == [0, 2000]


def test_streams_of_a_combination_are_named_in_their_rows() -> None:
    """The rows of the histories contain the names of the streams, and not the parameters in which the streams
    differ.
    """
    state = in_a_round()
    state.take(TestStarted(test="iops", at_s=0))
    for load in list_loads(COMBINATION):
        state.histories[load] = [1000.0]
    lines = [line.strip().split("  ")[0] for line in lines_of(state, 80, 30)]
    assert {"all", "reader", "log", "log, flushes"} <= set(lines)


def after_sections(count: int) -> RunState:
    """Return the state of a run in a round after ``count`` finished sections. The first section has a verdict. The
    state contains the newest value of each of the other sections.
    """
    state = RunState()
    state.take(RunStarted(info=run_info(name="D3"), tests=("iops", "lat")))
    state.take(TestStarted(test="iops", at_s=0))
    state.take(StepEnded(test="iops", record=a_step(1, section="IOPS")))
    state.verdict = judge([1, 2, 3, 4, 5], [4e4] * 5, tracking="4k IOPS", unit="IOPS")
    for number in range(1, count):
        state.take(TestStarted(test="tp", at_s=0))
        state.take(StepEnded(test="tp", record=a_step(1, section=f"size {number}")))
    state.take(TestStarted(test="lat", at_s=9))
    for number in range(300):
        state.take(second(50_000 + 100 * number, 10.0 + number))
    return state


@pytest.mark.parametrize("height", [23, 49, 59])
@pytest.mark.parametrize("count", [1, 4, 40])
def test_a_tall_terminal_shows_more_of_seconds_and_sections(count: int, height: int) -> None:
    """In a tall terminal, the free lines show two items: a chart of the last seconds with the greatest value of these
    seconds, and the finished sections of the run.
    """
    state = after_sections(count)
    lines = lines_of(state, height=height)
    assert len(lines) <= height
    at = next(number for number, line in enumerate(lines) if line.startswith("now "))
    end = next(number for number, line in enumerate(lines) if line.startswith("71 s"))
    assert 3 <= end - at <= 20
    assert lines[at + 1].startswith("79.9k ")
    sections = [line for line in lines if "4k IOPS 40,000" in line or "  last 2" in line]
    assert sections[0].startswith("before  ")
    assert f" size {count - 1} " in sections[-1] or count == 1
    assert len(lines) == height or (len(sections), end - at) == (count, 20)
    if count == 4:
        assert sections[0] == "before  iops        steady, rounds 1–5: 4k IOPS 40,000"
        assert sections[3].startswith("        tp, size 3  last 2.00 IOPS, RND 4k ")


def test_a_section_that_the_run_enters_again_is_not_one_it_has_left() -> None:
    state = after_sections(2)
    state.take(TestStarted(test="tp", at_s=400))
    state.take(StepEnded(test="tp", record=a_step(2, section="size 1")))
    assert [name for name, _ in build_progress(state).left] == ["iops"]


def test_the_newest_second_is_always_the_last_of_its_line() -> None:
    """The newest second is always the last value of the line of seconds. Older values leave the line at its
    left end.
    """
    state = in_a_round()
    for number in range(300):
        state.take(second(1 if number < 299 else 88_000, 16_030 + number))
    for width in (79, 199):
        (line,) = [line for line in lines_of(state, width) if line.startswith(f"{width - 8} s")]
        assert line[8:] == "▁" * (width - 9) + "█"


@pytest.mark.parametrize("width", [20, 40, 79, 119, 199])
@pytest.mark.parametrize("height", [1, 2, 5, 9, 15, 23, 60])
def test_it_never_is_larger_than_the_terminal(width: int, height: int) -> None:
    """The view is never larger than the terminal. If the terminal has at least two lines, the line of the current
    second is visible, even if the view contains many remarks.
    """
    state = in_a_round()
    state.verdict = judge([2, 3, 4, 5, 6], [9e4, 8.8e4, 8.9e4, 1e4, 8e4], tracking="T", unit="IOPS")
    state.notices = ("QUICK PROFILE: " + "how the tool works " * 9,)
    for number in range(4):
        state.take(Warned(warning=RunNote(code="x", text=f"{number} " + "slow " * 60)))
    lines = lines_of(state, width, height, footer="attached, read-only")
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    if height > 1:
        assert any(line.startswith("now ") for line in lines)


def test_the_share_of_a_fill_is_told_with_its_own_end() -> None:
    state = in_a_round()
    fill = Fill(section="IOPS", workload=work(0, 1 << 17), passes=2)
    state.take(PhaseStarted(test="iops", phase=fill, at_s=100, shortest_s=9e3, longest_s=9e4))
    state.take(begin(StepKind.FILL, fill.workload, planned_bytes=4 * GB, at_s=100))
    state.take(second(1000, 110, written_bytes=GB))
    lines = lines_of(state)
    assert lines[1].startswith("IOPS, preconditioning  SEQ") or lines[1].startswith("IOPS, preconditioning  RND")
    assert lines[3] == "filling ████░░░░░░░░░░░░░░░ 25 % of 4.0 GB, 30 s left at this pace"


def test_a_simulated_run_has_no_time_of_the_end() -> None:
    """The view of a simulated run does not show the time of day at which the run ends, because a simulated run does not
    use the clock of the host.
    """
    assert "ends" not in " ".join(lines_of(in_a_round("simulated")))


def test_disturbed_steps_and_temperature_are_told() -> None:
    state = in_a_round()
    state.take(TelemetrySeen(reading=Reading(at_s=1, drive="sda", source="nvme", temperature_c=41.4)))
    state.take(TelemetrySeen(reading=Reading(at_s=1, drive="sdb", source="nvme", temperature_c=None)))
    foreign = Disturbance(code=DisturbanceCode.FOREIGN_IO, text="others read 3 MB", started_s=0.0, duration_s=1.0)
    for number in (4, 5):
        step = a_step(number, disturbances=(foreign,))
        state.take(StepEnded(test="iops", record=step))
    state.take(StepEnded(test="iops", record=a_step(6, disturbances=())))
    lines = lines_of(state)
    assert "disturbed: 2 steps, last IOPS 5, 0/100 4k: other I/O on the device" in lines
    (totals,) = [line for line in lines if line.startswith("4 h 27 min gone")]
    assert ", 41 °C, " in totals


def test_steps_told_before_their_phase_are_in_the_histories() -> None:
    """If a view receives steps before it receives the phase of these steps, the view adds the steps to the histories of
    the phase. ``attach`` passes on such steps. Steps of another section are not added to these histories.
    """
    state = RunState()
    state.take(TestStarted(test="iops", at_s=0))
    state.take(StepEnded(test="iops", record=a_step(1, section="Before")))
    for number in (1, 2):
        state.take(StepEnded(test="iops", record=a_step(number)))
    step = Step(workload=a_step().workload, duration_s=1)
    phase = Round(section="IOPS", number=3, steps=(step,))
    state.take(PhaseStarted(test="iops", phase=phase, at_s=9, shortest_s=9, longest_s=9))
    assert state.histories == {step.workload: [2.0, 2.0]}


def test_areas_of_a_disk_are_a_history_of_each_cell() -> None:
    """A cell of a hard disk test has one history over all areas, although the test measures the cell at another
    position on the disk in each area.
    """
    state = RunState()
    state.take(TestStarted(test="iops", at_s=0))
    for number in (1, 2, 3):
        region = ActiveRange(offset_bytes=number * GB, length_bytes=GB)
        workload = replace(work(), region=region)
        phase = Round(section="IOPS", number=number, steps=(Step(workload=workload, duration_s=1),), areas=8)
        state.take(PhaseStarted(test="iops", phase=phase, at_s=9, shortest_s=9, longest_s=9))
        record = a_step(number, kind=StepKind.AREA, workload=workload)
        state.take(StepEnded(test="iops", record=record))
    assert state.histories == {work(): [2.0, 2.0, 2.0]}
    assert "IOPS, area by area" in lines_of(state)


def test_a_terminal_without_blocks_gets_ascii() -> None:
    r"""A terminal without block characters receives ASCII. Otherwise the view would print each block as \u2588."""
    state = in_a_round()
    state.temperatures_c = {"sda": 40.0}
    for width in (30, 79):
        assert "".join(lines_of(state, width, encoding="ascii")).isascii()


def test_warnings_are_told_apart_and_earlier_ones_are_counted() -> None:
    """The view shows the last two warnings in separate lines and counts the earlier warnings, because more lines would
    push the figures off the screen.
    """
    state = RunState()
    for text in ("one", "two", "three", "four"):
        state.take(Warned(warning=RunNote(code="telemetry", text=text)))
    lines = lines_of(state)
    assert lines[-3:] == ["2 earlier warnings in the log", "warning: three", "warning: four"]


@pytest.mark.parametrize(
    ("shortest_s", "longest_s", "text"),
    [
        (60, 80, "12:01"),
        (60, 7_200, "12:01 to 14:00"),
        (7_200, 43_200, "14:00 to Fri 00:00"),
        (86_400 * 6, 86_400 * 8, "Wed 12:00 to Fri 13 Mar 12:00"),
    ],
)
def test_the_end_is_a_time_of_day(shortest_s: float, longest_s: float, text: str) -> None:
    assert format_end(NOW, shortest_s, longest_s) == text


def frame_on(screen: Screen, width: int = 40) -> RedrawnLines:
    return RedrawnLines(Console(file=screen, force_terminal=True, width=width, height=24))


def test_each_frame_replaces_the_one_before_and_the_last_leaves_nothing() -> None:
    """Each frame replaces the preceding frame, and no line of the view remains after the last frame. The lines above
    the view remain, even if the view became shorter and the user pressed Ctrl-C.
    """
    screen = Screen()
    screen.write("the plan\r\n")
    frame = frame_on(screen)
    frame.show([Text("one"), Text("two and more"), Text("three", style="bold")])
    assert screen.rows == ["the plan", "one", "two and more", "three", ""]
    screen.write("^C")
    frame.show([Text("four"), Text("five")])
    assert screen.rows == ["the plan", "four", "five", ""]
    frame.clear()
    assert screen.rows == ["the plan", "", "", ""]
    assert (screen.row, screen.column) == (1, 0)
    frame.clear()
    assert (screen.row, screen.column) == (1, 0)


def test_lines_that_a_narrower_terminal_broke_are_found_again() -> None:
    """A line that a narrower terminal wrapped into two rows is overwritten completely."""
    screen = Screen()
    console = Console(file=screen, force_terminal=True, width=40, height=24)
    frame = RedrawnLines(console)
    frame.show([Text("x" * 30)])
    console.width = 20
    screen.rows = ["x" * 20, "x" * 10, ""]  # the terminal has wrapped the line
    screen.row = 2
    frame.show([Text("y")])
    assert screen.rows == ["y", ""]


def test_a_frame_is_written_at_once_and_erases_nothing_first() -> None:
    """Each frame is written in one call, and no text is erased before this call. Otherwise a terminal that draws
    between two writes would flicker.
    """
    written: list[str] = []

    class Written(Screen):
        def write(self, text: str) -> int:
            if text:
                written.append(text)
            return super().write(text)

    frame = frame_on(Written())
    frame.show([Text("one"), Text("two")])
    written.clear()
    frame.show([Text("uno"), Text("due")])
    assert written == ["\r\x1b[2Auno\x1b[K\r\ndue\x1b[K\r\n\x1b[J"]


def test_nothing_is_drawn_where_it_could_not_be_replaced() -> None:
    """The live view writes no output to a file, because the view could not replace its lines there."""
    screen = Screen()
    with LiveView(Console(file=screen, force_terminal=False, width=80)) as view:
        view.draw()
    assert screen.rows == [""]
