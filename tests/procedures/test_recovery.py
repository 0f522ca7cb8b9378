"""The tests for host idle recovery (HIR) and cross stimulus recovery (XSR): their full procedures, and the results that
are computed from them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import msgspec
import pytest

from tests.builders import FreeTarget, run_info, view_of
from tests.charts import rows_of
from tests.procedures.test_procedures import drive, run, steadily
from tkperf.analysis.details import loads_by_test
from tkperf.analysis.run_results import analyse
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import PRESET_MODELS
from tkperf.engine.simulation.service import Latency, Second
from tkperf.model.errors import ProfileError
from tkperf.model.phases import Continuous, Idle, Phase, PhaseSequence, Procedure, Purge, SectionOutcome
from tkperf.model.record import StepRecord
from tkperf.model.units import NOT_MEASURED
from tkperf.model.workload import Access, Workload
from tkperf.page.findings.headlines import build_headlines
from tkperf.page.tables.verdict_tables import build_section_tables
from tkperf.procedures import SSD_TESTS, Test, load_profile, parse_profile
from tkperf.procedures.building_blocks import slices_of
from tkperf.procedures.cross_stimulus_recovery import CrossStimulusRecoveryTable
from tkperf.procedures.forecast import Case, forecast
from tkperf.procedures.host_idle_recovery import HostIdleRecoveryTable, section_plan
from tkperf.procedures.profiles import Profile
from tkperf.procedures.write_saturation import WriteSaturationTable
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import Event, PhaseStarted, StepEnded
from tkperf.runner.runner import RunParts, execute_run

GIB = 1 << 30
IDLE_S = (5, 10, 15, 25, 50)
STATES = tuple(name for idle_s in IDLE_S for name in (f"Wait state {idle_s} s", f"Baseline after {idle_s} s"))


def measure(
    test: Test,
    profile: Profile,
    *,
    engine: type[SimulatedEngine] = SimulatedEngine,
    file: Path | None = None,
    range_bytes: int = 240_057_409_536,
) -> list[Event]:
    """Return all events of a run of one test on the simulated drive."""
    drive_ = engine(PRESET_MODELS["sata-ssd"], range_bytes)
    seen: list[Event] = []
    writer = None if file is None else RunFileWriter(file)
    execute_run(
        RunParts(
            info=run_info(active_range_length_bytes=range_bytes),
            tests=(test,),
            profile=profile,
            engine=drive_,
            target=FreeTarget(),
            observers=(seen.append, *([writer] if writer else [])),
            clock=drive_.clock,
        )
    )
    if writer:
        writer.close()
    return seen


def steps_of(events: list[Event]) -> list[StepRecord]:
    return [event.record for event in events if isinstance(event, StepEnded)]


def by_section(steps: list[StepRecord]) -> dict[str, list[StepRecord]]:
    return {name: list(steps) for name, steps in groupby(steps, key=lambda step: step.section)}


def end_s(step: StepRecord) -> float:
    return step.started_s + step.measurement.duration_s


def test_host_idle_recovery_asks_for_its_wait_states_in_their_order() -> None:
    """HIR of PTS-E 1.1 runs a purge and writes until steady state. For each idle time from 5 to 50 s, HIR then writes
    360 times for 5 s, with this idle time between the writes. After these bursts, HIR writes for 30 min without pauses.
    """
    phases, verdicts, outcomes = run("hir")
    assert isinstance(phases[0], Purge)
    before = phases[1:122]
    assert [(type(p), p.number, p.duration_s) for p in before if isinstance(p, Continuous)] == [
        (Continuous, number, 60.0) for number in range(1, 122)
    ]
    assert verdicts[-1].rounds == outcomes[0].window == (1, 31, 61, 91, 121)
    expected: list[tuple[object, ...]] = []
    for idle_s in IDLE_S:
        for number in range(1, 361):
            expected.append((f"Wait state {idle_s} s", number, 5.0, 5.0))
            expected.append((f"Wait state {idle_s} s", idle_s))
        expected += [(f"Baseline after {idle_s} s", number, 5.0, 1800.0) for number in range(1, 361)]
    assert [_row(phase) for phase in phases[122:]] == expected
    # The five wait states and their baselines last 780 + 150 minutes.
    assert sum(getattr(phase, "duration_s", 0.0) for phase in phases[122:]) == 930 * 60
    assert {phase.workload for phase in phases if isinstance(phase, Continuous)} == {
        Workload(access=Access.RANDOM, read_percent=0, block_size_bytes=4096, jobs=4, io_depth=32)
    }
    assert [each.section for each in outcomes[1:]] == list(STATES)


def _row(phase: Phase) -> tuple[object, ...]:
    if isinstance(phase, Idle):
        return phase.section, phase.duration_s
    assert isinstance(phase, Continuous)
    return phase.section, phase.number, phase.duration_s, phase.longest_s


def test_host_idle_recovery_goes_on_after_25_rounds_without_steady_state() -> None:
    """After 25 judged slices, HIR runs its wait states even if the drive never became steady. The result then states
    that steady state was not reached.
    """

    def jumps(phase: Phase, _work: Workload) -> float:
        return 1000.0 * 2.0 ** int(getattr(phase, "number", 0) % 7)

    phases, _, outcomes = run("hir", iops=jumps)
    first = [phase for phase in phases if phase.section == outcomes[0].section]
    assert len(first) == 1 + 24 * 30 + 1
    assert outcomes[0].ended_because.startswith("no steady state in 721 slices: ")
    assert outcomes[0].window == ()
    assert phases[-1].section == STATES[-1]


def test_host_idle_recovery_leaves_the_device_idle_exactly() -> None:
    """The pause between the end of a burst and the beginning of the next burst is exactly the planned idle time. The
    test has a tenth of the bursts and slices of the specification.
    """
    profile = load_profile("pts-e-1.1")
    full = profile.table(HostIdleRecoveryTable)
    assert (full.bursts, full.baseline_slices) == (360, 360)
    profile = profile.with_tables(msgspec.structs.replace(full, bursts=36, baseline_slices=36))
    steps = by_section(steps_of(measure(SSD_TESTS["hir"], profile)))
    assert list(steps) == ["Steady-state preconditioning", *STATES]
    for idle_s, state, baseline in zip(IDLE_S, STATES[::2], STATES[1::2], strict=True):
        bursts, after = steps[state], steps[baseline]
        assert len(bursts) == len(after) == 36
        assert {step.measurement.duration_s for step in (*bursts, *after)} == {5.0}
        pauses_s = [b.started_s - end_s(a) for a, b in pairwise((*bursts, after[0]))]
        assert pauses_s == pytest.approx([idle_s] * 36, abs=1e-6)
        assert [b.started_s - end_s(a) for a, b in pairwise(after)] == pytest.approx([0] * 35, abs=1e-6)
        assert [step.planned_pause for step in bursts[1:]] == [True] * 35
        assert not any(step.disturbances for step in bursts)
        written = sum(step.measurement.write.bytes for step in bursts)
        assert written == 4096 * sum(step.measurement.write.ios for step in bursts)
    # The first burst follows the preconditioning without a pause. Each later wait state follows the baseline before it
    # without a pause.
    first = steps["Steady-state preconditioning"][-1], steps[STATES[0]][0]
    assert first[1].started_s == pytest.approx(end_s(first[0]), abs=1e-6)
    whole_s = end_s(steps[STATES[-1]][-1]) - steps[STATES[0]][0].started_s
    assert whole_s == pytest.approx(93 * 60, abs=1e-3)


def test_cross_stimulus_recovery_asks_for_its_groups_back_to_back() -> None:
    """XSR of PTS-E 1.1 runs a purge. It then writes blocks of 1024 KiB sequentially for 8 h, blocks of 8 KiB randomly
    for 6 h, and blocks of 1024 KiB sequentially for 8 h. All writes use TC 1 / QD 32 and slices of a minute.
    """
    phases, _, outcomes = run("xsr")
    assert isinstance(phases[0], Purge)
    slices = [phase for phase in phases[1:] if isinstance(phase, Continuous)]
    assert len(slices) == len(phases) - 1 == 480 + 360 + 480
    groups = [(name, list(each)) for name, each in groupby(slices, key=lambda phase: phase.section)]
    assert [(name, len(each), each[0].longest_s / 3600) for name, each in groups] == [
        ("AG1 SEQ 1024k", 480, 8.0),
        ("AG2 RND 8k", 360, 6.0),
        ("AG3 SEQ 1024k", 480, 8.0),
    ]
    for (_, each), count in zip(groups, (480, 360, 480), strict=True):
        assert [phase.number for phase in each] == list(range(1, count + 1))
        assert {phase.duration_s for phase in each} == {60.0}
        assert len({phase.workload for phase in each}) == 1
    loads = [each[0].workload for _, each in groups]
    assert loads[0] == loads[2]
    assert [(load.access, load.block_size_bytes, load.read_percent) for load in loads[:2]] == [
        (Access.SEQUENTIAL, 1 << 20, 0),
        (Access.RANDOM, 8192, 0),
    ]
    assert {(load.jobs, load.io_depth) for load in loads} == {(1, 32)}
    assert [each.section for each in outcomes] == [name for name, _ in groups]


def test_cross_stimulus_recovery_is_one_series_without_a_gap() -> None:
    """On the simulated drive, XSR is one series without a gap. Every slice begins where the preceding slice ends, even
    when the load changes.
    """
    table = load_profile("pts-e-1.1").table(CrossStimulusRecoveryTable)
    # With slices of one second, the result is the same, but only a 60th of the samples is computed.
    profile = load_profile("pts-e-1.1").with_tables(msgspec.structs.replace(table, slice_s=1))
    steps = steps_of(measure(SSD_TESTS["xsr"], profile))
    assert len(steps) == 1320
    gaps_s = [b.started_s - end_s(a) for a, b in pairwise(steps)]
    assert gaps_s == pytest.approx([0] * 1319, abs=1e-6)
    assert [step.number for step in steps] == [*range(1, 481), *range(1, 361), *range(1, 481)]
    assert not any(step.planned_pause for step in steps[1:])
    for step in steps:
        assert step.measurement.write.bytes == step.workload.block_size_bytes * step.measurement.write.ios


class SlowAfterRandom(SimulatedEngine):
    """A drive that writes sequentially at a third of its rate for four seconds after random writes."""

    slow_seconds = 0
    sound_iops = 300.0

    def _serve(self, workload: Workload, duration_s: float) -> Second:
        if workload.access is Access.RANDOM:
            self.slow_seconds, self.sound_iops = 4, 303.0
            rate = 5000.0
        else:
            self.slow_seconds -= 1
            rate = 100.0 if self.slow_seconds >= 0 else self.sound_iops
        latency = Latency(workload.total_outstanding_ios / rate * 1e9)
        return Second(rate=rate, read=latency, write=latency)


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("xsr") / "run.tkperf"
    measure(SSD_TESTS["xsr"], load_profile("quick"), engine=SlowAfterRandom, file=path)
    return path


def test_the_recovery_time_is_stated(cross: Path) -> None:
    """The recovery time ends with the first slice whose rate is near the median of the first group's slices. Four slow
    seconds precede this slice.
    """
    result = analyse(read_run(cross))
    (table,) = build_section_tables(result.tests[0], None)
    assert table.title == "Throughput (MB/s) of each section"
    assert table.columns[-3:] == ("of the first (%)", "recovery time (s)", "least after recovery (% of the first)")
    recovered = tuple(row[-2] for row in table.rows)
    (found,) = [
        one for section in result.tests[0].sections for one in section.characteristics if one.key == "recovery_s"
    ]
    assert found.value is not None
    assert recovered[2] == found.text()
    assert recovered[:2] == (NOT_MEASURED, NOT_MEASURED)
    third = result.tests[0].sections[2]
    mean = result.tests[0].sections[0].cells[0].all["megabytes_per_s"]
    assert mean is not None
    rates = [each.values.all["megabytes_per_s"] or 0.0 for each in third.slices]
    assert all(rate < mean / 2 for rate in rates[:4])
    first = next(number for number, rate in enumerate(rates, start=1) if rate >= mean)
    assert 5 <= first <= 10
    assert found.value == pytest.approx(float(first))


def test_a_change_of_load_is_drawn_second_by_second(cross: Path) -> None:
    """A change of load is drawn second by second. The change is at time 0. The chart shows one group of writes before
    the change and one group after it. In the preceding chart, all groups share one axis.
    """
    shown = view_of(cross).tests[0].charts
    assert [chart.key for chart in shown] == ["xsrtimeline", "xsrchange"]
    charts = {view.key: view for chart in shown for view in chart.on_paper}
    assert list(charts) == ["xsrtimeline", "xsrtimeline2", "xsrchange", "xsrchange2", "xsrchange3", "xsrchange4"]
    assert shown[1].switches == (
        ("throughput", "latency"),
        ("AG1 SEQ 1024k to AG2 RND 8k", "AG2 RND 8k to AG3 SEQ 1024k"),
    )
    for row in rows_of(charts["xsrchange2"]):
        assert row["series"] == ("AG2 RND 8k" if row["x"] < 0 else "AG3 SEQ 1024k")
    assert [row["x"] for row in rows_of(charts["xsrchange2"])] == [
        pytest.approx(second + 0.5) for second in range(-10, 10)
    ]
    whole = rows_of(charts["xsrtimeline"])
    assert [row["x"] for row in whole] == [pytest.approx(second + 0.5) for second in range(30)]
    latencies = {row["variant"] for row in rows_of(charts["xsrtimeline2"])}
    assert latencies == {"mean latency", "maximum latency"}  # one second contains too few I/Os for p99.999


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hir") / "run.tkperf"
    measure(SSD_TESTS["hir"], load_profile("quick"), file=path, range_bytes=GIB)
    return path


def test_a_headline_names_its_wait_state(idle: Path) -> None:
    """A headline of HIR names its wait state, because the mean of bursts does not describe the drive without the idle
    time. Only one wait state has a headline.
    """
    rates = [one.label for one in build_headlines(analyse(read_run(idle)).tests) if one.key == "iops"]
    assert rates == ["4 KiB random write, bursts after 1 s idle"]
    assert section_plan("Baseline after 5 s").state == "baseline after 5 s idle"


def test_all_wait_states_are_on_one_figure(idle: Path) -> None:
    """One figure shows all wait states. Each wait state has a curve that begins at 0. The curve shows the bursts first
    and then the baseline.
    """
    view = view_of(idle)
    shown, course = view.tests[0].charts, view.tests[0].events.charts
    assert [chart.key for chart in shown] == ["hiroverlaid"]
    assert shown[0].switches == (("all wait states", "Wait state 1 s", "Wait state 2 s"),)
    charts = {each.key: each for chart in (*shown, *course) for each in chart.on_paper}
    assert list(charts) == ["hiroverlaid", "hirtimeline", "hirtimeline2", "hirtimeline3"]
    rows = rows_of(charts["hiroverlaid"])
    at_s: dict[str, list[float]] = {}
    for row in rows:
        at_s.setdefault(row["series"], []).append(row["x"])
    assert at_s == {
        "Wait state 1 s": pytest.approx([0.5, 2.5, 4.5, 6.5, 7.5, 8.5, 9.5, 10.5]),
        "Wait state 2 s": pytest.approx([0.5, 3.5, 6.5, 9.5, 10.5, 11.5, 12.5, 13.5]),
    }
    around = {row["series"] for row in rows_of(charts["hirtimeline2"])}
    assert around == {"Baseline after 1 s", "Wait state 2 s", "Baseline after 2 s"}
    (table,) = view.tests[0].tables
    assert [row[0] for row in table.rows] == [
        "Steady-state preconditioning",
        "Wait state 1 s",
        "Baseline after 1 s",
        "Wait state 2 s",
        "Baseline after 2 s",
    ]
    assert "recovered (s)" not in table.columns  # the drive had no other load from which it could recover


def test_preconditioning_is_drawn_over_time_in_every_test(tmp_path: Path) -> None:
    """Preconditioning is drawn on the timeline of each test, separately from the rounds. A view of this chart shows
    only the preconditioning.
    """
    path = tmp_path / "run.tkperf"
    measure(SSD_TESTS["tp"], load_profile("quick"), file=path, range_bytes=GIB)
    (done,) = view_of(path).tests[0].events.charts
    charts = {view.key: view for view in done.views}
    assert list(charts) == ["tptimeline", "tppreconditioning", "tppreconditioning2"]
    assert [view.key for view in done.on_paper] == ["tptimeline"]
    names = [row["series"] for row in rows_of(charts["tptimeline"])]
    assert [name for name, _ in groupby(names)] == [
        "preconditioning",
        "Throughput 1024k",
        "preconditioning",
        "Throughput 128k",
    ]
    # The fill writes 1 GiB twice at slightly less than 530 MB/s. It lasts five seconds, and the last of them is
    # incomplete.
    assert [row["series"] for row in rows_of(charts["tppreconditioning"])] == ["preconditioning"] * 5


def test_steps_that_all_began_at_once_have_no_timeline(idle: Path) -> None:
    """If all steps have the same start, as in an imported run without start times, no timeline is drawn, because tkperf
    does not invent times.
    """
    record = read_run(idle)
    steps = tuple(replace(step, started_s=0.0) for step in record.tests[0].steps)
    imported = replace(record, tests=(replace(record.tests[0], steps=steps),))
    assert loads_by_test(imported, {}) == {}


def two_streams(profile: Profile, _range_bytes: int, *, course: bool) -> Procedure:
    load = profile.workload(Access.RANDOM, 0, 4)
    other = replace(load, io_depth=1)
    phases: list[Phase] = [
        *slices_of("one", load, 2, 3),
        Idle(section="one", duration_s=4),
        *slices_of("two", other, 1, 2),
    ]
    if course:
        answers = yield PhaseSequence(phases=tuple(phases))
        assert isinstance(answers, tuple)
        assert [answer is None for answer in answers] == [False] * 3 + [True] + [False] * 2
    else:
        for phase in phases:  # noqa: UP028  # a list cannot receive the answers
            yield phase
    yield SectionOutcome(section="two", window=(), verdict=None, ended_because="enough")


def test_a_course_is_its_phases_one_after_the_other() -> None:
    """If a series of phases is requested together, its steps, times and remaining times are the same as if the phases
    were requested one by one.
    """
    told = []
    for course in (True, False):
        test = Test(
            name="made-up",
            title="Made up",
            procedure=lambda profile, size, course=course: two_streams(profile, size, course=course),  # type: ignore[misc]
            section_plan=SSD_TESTS["xsr"].section_plan,
        )
        events = measure(test, load_profile("quick"))
        left = [(e.phase, e.shortest_s, e.longest_s) for e in events if isinstance(e, PhaseStarted)]
        assert [each[1] for each in left] == pytest.approx([12, 10, 8, 6, 2, 1])
        told.append((left, steps_of(events)))
        ahead = forecast(test.procedure(load_profile("quick"), GIB), (), Case.WORST, active_range_bytes=GIB)
        assert (len(ahead), sum(ahead)) == (6, 12.0)
    assert told[0] == told[1]


def changed_saturation(**changes: object) -> Profile:
    profile = load_profile("pts-e-1.1")
    table = msgspec.structs.replace(profile.table(WriteSaturationTable), **changes)
    return profile.with_tables(table)


def test_write_saturation_takes_other_stimuli_and_six_hours() -> None:
    """Write saturation also accepts the length and the mixes of PTS 2.0, for instance random 8 KiB 65/35. The histogram
    is then measured during 20 minutes of the same workload.
    """
    profile = changed_saturation(
        read_percent=65, block_size_kib=8, max_slices=360, round_every_slices=0, histogram_s=1200
    )
    procedure = SSD_TESTS["writesat"].procedure(profile, 10**15)
    phases, _, outcomes = drive(procedure, steadily)
    slices = [phase for phase in phases if isinstance(phase, Continuous)]
    assert [phase.duration_s for phase in slices] == [60.0] * 360 + [1200.0]
    assert {phase.workload for phase in slices} == {
        Workload(access=Access.RANDOM, read_percent=65, block_size_bytes=8192, jobs=4, io_depth=32)
    }
    assert outcomes[0].ended_because == "longest time of 360 slices"
    assert outcomes[1].section == "Response time histogram"
    assert outcomes[1].ended_because == "ran its full time, NOT after steady state"


def test_the_histogram_of_write_saturation_may_have_its_own_demand() -> None:
    """The histogram of write saturation may have a separate demand. Some readers interpret PTS 2.0 as one outstanding
    I/O after a stream at TC 4 / QD 32. The stream may be sequential.
    """
    profile = changed_saturation(access=Access.SEQUENTIAL, histogram_s=60, histogram_jobs=1, histogram_io_depth=1)
    phases, _, outcomes = drive(SSD_TESTS["writesat"].procedure(profile, 10**15), steadily)
    *stream, last = [phase for phase in phases if isinstance(phase, Continuous)]
    assert (len(stream), stream[0].workload.access) == (121, Access.SEQUENTIAL)
    assert (last.workload.jobs, last.workload.io_depth) == (1, 1)
    assert (stream[0].workload.jobs, stream[0].workload.io_depth) == (4, 32)
    assert outcomes[1].ended_because == "ran its full time"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("bursts = 360", "bursts = 4000", r"host_idle_recovery\.bursts: .* more than 20,000"),
        ("idle_s = [5, 10,", "idle_s = [5, 5,", r"host_idle_recovery\.idle_s: a value occurs twice"),
        ("idle_s = [5,", "idle_s = [0,", r"host_idle_recovery\.idle_s"),
        ('access = "random"', 'access = "zigzag"', r"cross_stimulus_recovery\.groups"),
        ("block_size_kib = 8,", "block_size_kib = 0.7,", r"cross_stimulus_recovery: block_size_bytes 717"),
        (" slices = 360", " slices = 19500", r"cross_stimulus_recovery\.groups: more than 20,000"),
        (" slices = 360", " slice = 360", r"cross_stimulus_recovery\.groups"),
        (
            "round_every_slices = 30",
            "round_every_slices = 30\nhistogram_jobs = 1",
            r"histogram_jobs: without histogram_s",
        ),
    ],
)
def test_a_slip_in_their_tables_is_named(old: str, new: str, found: str) -> None:
    """A mistake in the tables of the recovery tests is refused before any phase runs. The message is one line with the
    file, the key and the reason.
    """
    text = (Path(__file__).parents[2] / "src/tkperf/procedures/profiles/pts-e-1.1.toml").read_text()
    assert old in text
    with pytest.raises(ProfileError, match=found) as refused:
        parse_profile(text.replace(old, new, 1), file="mine.toml")
    assert "mine.toml" in str(refused.value)
    assert "\n" not in str(refused.value)
