"""The engine with a scripted fio that reports wrong numbers, stops responding, prints too much, or ends."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.builders import FreeTarget, run_info
from tests.engine import fake_fio as scripted
from tests.engine.conftest import Scenario, workload
from tkperf.engine import Execution, Next, fio_process, waiting
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_process import FioProcess
from tkperf.model.errors import EngineError, StepFailedError
from tkperf.model.figures import generic_section
from tkperf.model.measurement import Sample
from tkperf.model.phases import Continuous, Fill, Procedure, Round, SectionOutcome
from tkperf.model.record import RunStatus
from tkperf.model.workload import Access, Step
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.runner.events import Event, RunEnded, SampleSeen, StepEnded, StepStarted, Warned
from tkperf.runner.runner import RunParts, execute_run

Play = Callable[[Scenario], None]
MakeEngine = Callable[[], FioEngine]
LENGTH_S = 0.4
FIRST, SECOND = workload(block_size_bytes=4096), workload(block_size_bytes=8192)


def step(of: int = 4096, duration_s: float = LENGTH_S) -> Step:
    return Step(workload=workload(block_size_bytes=of), duration_s=duration_s)


def measure(engine: FioEngine, then: Next | None = None) -> Execution:
    return engine.measure(step(), then=then, on_sample=lambda *_: None)


def run_rounds(
    engine: FioEngine, *, rounds: int = 1, phase: Fill | Continuous | None = None
) -> tuple[list[Event], Exception | None]:
    """Run rounds of two steps, or another phase, with the runner. Return the events and the error."""

    def procedure(_profile: object, _range: int) -> Procedure:
        if phase is not None:
            yield phase
        else:
            for number in range(1, rounds + 1):
                yield Round(section="S", number=number, steps=(step(4096), step(8192)))
        yield SectionOutcome(section="S", window=(1,), verdict=None, ended_because="done")

    events: list[Event] = []
    failure: Exception | None = None
    try:
        execute_run(
            RunParts(
                info=run_info(device={"path": "/dev/case"}, active_range_length_bytes=64 << 20),
                tests=[
                    replace(SSD_TESTS["iops"], name="t", title="t", procedure=procedure, section_plan=generic_section)
                ],
                profile=load_profile("quick"),
                engine=engine,
                target=FreeTarget(),
                observers=(events.append,),
                clock=time.monotonic,
            )
        )
    except Exception as error:
        failure = error
    return events, failure


def kept(events: list[Event]) -> list[int]:
    """Return the block sizes of the steps that were kept."""
    return [event.record.workload.block_size_bytes for event in events if isinstance(event, StepEnded)]


def repeats(events: list[Event]) -> list[str]:
    return [
        event.warning.text for event in events if isinstance(event, Warned) and event.warning.code == "step-repeated"
    ]


Acts = list[Any]
LIES: dict[str, Acts] = {
    "a job that did nothing": [["run", {"job 2 write": {"io_bytes": 0, "total_ios": 0, "runtime": 0, "lat_ns": {}}}]],
    "10^6 s": [["run", {"write runtime": 10**9}]],
    "0.01 s": [["run", {"write runtime": 10}]],
    "more I/Os at once than asked": [
        [
            "run",
            {
                "write lat_ns": {
                    "min": 8 * 10**6,
                    "max": 8 * 10**6,
                    "mean": 8e6,
                    "N": 800,
                    "bins": {str(((8 * 10**6 >> 16) << 16) + (1 << 15)): 800},
                }
            },
        ]
    ],
    "8.4 M IOPS": [
        [
            "run",
            {
                "write total_ios": 1_680_000,
                "write io_bytes": 1_680_000 * 4096,
                "write lat_ns": {"min": 100, "max": 100, "mean": 100.0, "N": 1_680_000, "bins": {"100": 1_680_000}},
            },
        ]
    ],
    "I/Os missing in the histogram": [["run", {"write total_ios": 805}]],
    "bytes without I/Os": [["run", {"write io_bytes": 12345678}]],
    "a mean beyond the extremes": [["run", {"write lat_ns mean": 3e6}]],
    "a minimum that the histogram lacks": [["run", {"write lat_ns min": 5}]],
    "a depth never reached": [["run", {"iodepth_level": {"1": 100.0, "4": 0.0}}]],
    "reads in a write step": [
        [
            "run",
            {
                "read": {
                    "io_bytes": 4096,
                    "total_ios": 1,
                    "runtime": 1,
                    "lat_ns": {"min": 9, "max": 9, "mean": 9.0, "N": 1, "bins": {"9": 1}},
                }
            },
        ]
    ],
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lie_is_not_kept_and_the_step_is_measured_again(fake_fio: Play, make_engine: MakeEngine, lie: Acts) -> None:
    """A step with an impossible result is measured again once. The warning names the step and the reason."""
    fake_fio({"4096": [lie, [["run"]]]})
    events, failure = run_rounds(make_engine())
    assert failure is None
    assert kept(events) == [4096, 8192]
    (text,) = repeats(events)
    assert "S, round 1, step 1 of 2" in text
    assert "cannot be believed" in text
    assert "next step, RND 8k" in text
    first = next(event.record for event in events if isinstance(event, StepEnded))
    assert first.measurement.ios == 2 * 2000 * LENGTH_S


def test_a_report_that_lacks_a_job_is_refused(fake_fio: Play, make_engine: MakeEngine) -> None:
    """If fio reports fewer jobs than were started, the step fails, because the values of one job do not describe a
    workload with two jobs.
    """
    one_job = scripted.document(scripted.read_job("[step]\nrw=randwrite\nbs=4096\niodepth=4\n"), LENGTH_S)
    fake_fio({"*": [[["run", {"jobs": one_job["jobs"]}]]]})
    with pytest.raises(StepFailedError, match="reports 1 job, but tkperf started 2"):
        measure(make_engine())


def test_a_lie_told_twice_ends_the_run(fake_fio: Play, make_engine: MakeEngine) -> None:
    """If the result of a step is implausible twice, the run ends. The earlier steps are kept, the reason is reported,
    and no fio remains.
    """
    fake_fio({"8192": [LIES["10^6 s"]]})
    events, failure = run_rounds(make_engine())
    assert isinstance(failure, StepFailedError)
    assert "1e+06 s" in str(failure)
    assert "/dev/case" in str(failure)
    assert kept(events) == [4096]
    assert len(repeats(events)) == 1
    last = events[-1]
    assert isinstance(last, RunEnded)
    assert last.status is RunStatus.FAILED


def test_the_next_step_that_had_begun_is_run_again_in_full(
    fake_fio: Play, make_engine: MakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a step has to be repeated, the fio of the next step is discarded and started again, because this fio began its
    load at the planned end of the first measurement.
    """
    # On a busy host, the next step may reach its gate late, and the engine may notice a planned end late.
    monkeypatch.setenv("FAKE_FIO_LAST_WORDS_S", "2")
    monkeypatch.setattr(waiting, "PREPARE_AHEAD_S", 30.0)
    fake_fio({"4096": [LIES["10^6 s"], [["run"]]], "8192": [[["run"]]]})
    events, failure = run_rounds(make_engine())
    assert failure is None
    assert kept(events) == [4096, 8192]
    started = (tmp_path / "scenario.json.8192.count").stat().st_size
    assert started == 2
    records = [event.record for event in events if isinstance(event, StepEnded)]
    assert records[1].started_s > records[0].started_s
    # A repeated step is announced again, so that views show its new beginning.
    assert sum(isinstance(event, StepStarted) for event in events) == 3


def test_an_honest_fio_is_believed(fake_fio: Play, make_engine: MakeEngine) -> None:
    """If the scripted fio reports honest numbers, no step is repeated."""
    events, failure = run_rounds(make_engine(), rounds=2)
    assert failure is None
    assert kept(events) == [4096, 8192] * 2
    assert not repeats(events)


def test_the_end_of_a_helper_at_the_gate_ends_no_job(fake_fio: Play, make_engine: MakeEngine) -> None:
    """The end of a helper process at the gate must not wake a job of fio. If a job were woken while it waits for its
    first I/O, it would end.
    """
    fake_fio({"*": [[["helpers' ends wake job 2"]]]})
    events, failure = run_rounds(make_engine())
    assert failure is None
    assert kept(events) == [4096, 8192]
    assert not repeats(events)
    assert signal.SIGCHLD not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize("impossible", [-3.5, 4000.0, None])
def test_impossible_cpu_time_is_not_measured(fake_fio: Play, make_engine: MakeEngine, impossible: float | None) -> None:
    """If fio reports an impossible CPU time, the CPU time of the step is stored as None. The step is kept, because the
    CPU time contains no information about the device.
    """
    fake_fio({"*": [[["run", {"job 2 usr_cpu": impossible}]]]})
    assert measure(make_engine()).measurement.cpu is None


def test_a_fio_that_goes_on_after_its_end_is_stopped(
    fake_fio: Play, make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fio that continues to report after its planned end and ignores signals is stopped, and the step fails."""
    monkeypatch.setattr(fio_process, "LONGEST_OVERRUN_S", 0.5)
    reports: Acts = [act for n in range(1, 300) for act in (["status", {"elapsed_s": n / 10}], ["sleep", 0.1])]
    fake_fio({"*": [[["ignore signals"], *reports]]})
    engine = make_engine()
    with pytest.raises(StepFailedError, match="long after its end"):
        measure(engine)


def test_a_fill_that_moves_nothing_is_stopped(
    fake_fio: Play, make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fill that transfers no data is stopped, although fio still reports. The fill is not started again."""
    monkeypatch.setattr(fio_process, "LONGEST_OVERRUN_S", 0.5)
    reports: Acts = [act for n in range(1, 300) for act in (["status", {"elapsed_s": n / 10}], ["sleep", 0.1])]
    fake_fio({"*": [reports]})
    fill = Fill(section="S", workload=workload(access=Access.SEQUENTIAL), passes=2)
    events, failure = run_rounds(make_engine(), phase=fill)
    assert isinstance(failure, StepFailedError)
    assert "moved nothing for" in str(failure)
    assert not kept(events)
    assert not repeats(events)


def test_a_fill_in_which_a_job_wrote_too_little_fails(fake_fio: Play, make_engine: MakeEngine) -> None:
    """A fill fails if one job wrote less than its part, even if another job wrote more than its part."""
    half = (64 << 20) // 4096
    fake_fio(
        {
            "*": [
                [
                    [
                        "status",
                        {
                            "elapsed_s": 40.0,
                            "write runtime": 40,
                            "job 1 write total_ios": half - 1,
                            "job 1 write io_bytes": (half - 1) * 4096,
                            "job 2 write total_ios": half + 1,
                            "job 2 write io_bytes": (half + 1) * 4096,
                        },
                    ]
                ]
            ]
        }
    )
    fill = Fill(section="S", workload=workload(access=Access.SEQUENTIAL), passes=2)
    events, failure = run_rounds(make_engine(), phase=fill)
    assert isinstance(failure, StepFailedError)
    assert f"job 1 of 2 moved {(half - 1) * 4096} bytes" in str(failure)
    assert not kept(events)


def stream(slices: int, duration_s: float = 1.0) -> Continuous:
    return Continuous(section="S", number=1, workload=workload(), duration_s=duration_s, longest_s=slices + 10)


def test_a_slice_in_which_no_time_passed_waits_for_the_next_report(fake_fio: Play, make_engine: MakeEngine) -> None:
    """A slice in which no time passed waits for the next report. If a report arrives 3 s late, it ends one long slice,
    and each of the next two reports ends one slice.
    """
    late: Acts = [["status", {"elapsed_s": 0.3}], ["sleep", 3.5], ["status", {"elapsed_s": 3.6}]]
    # The real pauses between the reports are longer than the time that elapses according to the reports. tkperf can
    # therefore read each report before the next report arrives, even on a busy host.
    more: Acts = [act for n in range(1, 5) for act in (["sleep", 2.0], ["status", {"elapsed_s": 3.6 + n / 5}])]
    fake_fio({"*": [[*late, *more, ["sleep", 30]]]})
    engine = make_engine()
    slices = [engine.measure_slice(stream(3), then=None, on_sample=lambda *_: None) for _ in range(3)]
    lengths = [each.measurement.duration_s for each in slices]
    assert lengths[0] == pytest.approx(3.6)
    assert all(length > 0 for length in lengths)
    assert sum(lengths) == pytest.approx(4.0)


def test_a_stream_in_which_a_job_does_nothing_ends_the_run(fake_fio: Play, make_engine: MakeEngine) -> None:
    """If a job does no I/O in a stream, the first slice fails and the run ends, because a stream cannot be repeated."""
    nothing: dict[str, Any] = {"job 1 write": {"io_bytes": 0, "total_ios": 0, "runtime": 0, "lat_ns": {}}}
    fake_fio({"*": [[["sleep", 1], ["status", {"elapsed_s": 1.0, **nothing}], ["sleep", 30]]]})
    events, failure = run_rounds(make_engine(), phase=stream(3))
    assert isinstance(failure, StepFailedError)
    assert "job 1 of 2 did no I/O ever" in str(failure)
    assert not kept(events)


def test_a_stream_whose_reports_came_too_late_is_measured_to_its_end(fake_fio: Play, make_engine: MakeEngine) -> None:
    """If the reports of a stream arrive too late, the stream is still measured to its end. The slice during the delay
    is long, and a new fio measures the last slice.
    """
    hangs = [["status", {"elapsed_s": 1.0}], ["sleep", 2.0], ["status", {"elapsed_s": 3.0}], ["exit", 0]]
    fake_fio({"4096": [hangs, [["run"]]]})
    engine = make_engine()
    phase = replace(stream(3), longest_s=3.0)
    slices = [engine.measure_slice(phase, then=None, on_sample=lambda *_: None) for _ in range(3)]
    durations_s = [each.measurement.duration_s for each in slices]
    assert durations_s == [pytest.approx(1.0), pytest.approx(2.0), pytest.approx(1.0)]
    assert "runtime=1000ms" in slices[-1].job_file


def test_a_stream_whose_reports_stand_still_is_stopped(
    fake_fio: Play, make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine stops a stream if reports arrive but the elapsed time in these reports does not increase."""
    monkeypatch.setattr(fio_process, "LONGEST_OVERRUN_S", 0.5)
    still: Acts = [["status", {"elapsed_s": 0.1}], ["sleep", 0.1]] * 100
    fake_fio({"*": [still]})
    with pytest.raises(StepFailedError, match="long after"):
        make_engine().measure_slice(stream(3), then=None, on_sample=lambda *_: None)


def test_a_gate_to_which_not_all_come_fails(
    fake_fio: Play, make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If some threads of fio do not reach the gate, for instance because no more processes can be started, the gate
    remains closed and the step fails.
    """
    monkeypatch.setattr(fio_process, "LONGEST_START_S", 1.5)
    fake_fio({"*": [[["do not come"], ["run"]]]})
    with pytest.raises(StepFailedError, match=r"only [01] of 2 threads of fio reached the start"):
        measure(make_engine())


def test_on_a_slow_machine_what_follows_is_started_earlier(fake_fio: Play, make_engine: MakeEngine) -> None:
    """If a fio reached its gate late, the next fio is started earlier. Each fio is started at least three seconds
    before the end of the preceding step. After a single slow start, the time before the end returns to three seconds.
    """
    engine = make_engine()
    fake_fio({"*": [[["comes late", 2.5], ["run"]], [["run"]]]})
    assert engine._waiting.ahead_s == 3.0
    assert measure(engine).measurement.ios == 2 * 2000 * LENGTH_S
    assert engine._waiting.ahead_s >= 5.0
    while engine._waiting.ahead_s > 3.0:  # after a single slow start, the time returns to its usual value
        measure(engine)


LAST_S = [["jobs end"], ["status", {"elapsed_s": LENGTH_S}]]


@pytest.mark.parametrize("kind", [[], [["is fio 3.36"]]], ids=["fio 3.33", "fio 3.36"])
def test_a_late_last_document_is_no_late_beginning(fake_fio: Play, make_engine: MakeEngine, kind: Acts) -> None:
    """If the last document of a step arrives late, this delay does not count as a late beginning of the step. fio 3.37
    and newer need up to 150 ms from the end of the jobs to the last document.

    In this test, the last document arrives four seconds late.
    """
    fake_fio({"*": [[*kind, ["sleep", LENGTH_S], ["jobs end"], ["sleep", 4.0], *LAST_S]]})
    done = measure(make_engine())
    assert done.earliest_s is not None
    assert done.started_s - done.earliest_s < 3.0


@pytest.mark.parametrize(
    "acts",
    [
        [["begins late", 1.0], ["sleep", 0.2], ["status", {"elapsed_s": 0.2}], ["sleep", 0.3], *LAST_S],
        [["is fio 3.36"], ["begins late", 1.0], ["sleep", LENGTH_S], *LAST_S],
    ],
    ids=["fio 3.33, by a document while its jobs run", "fio 3.36, by any document"],
)
def test_a_late_beginning_is_seen(fake_fio: Play, make_engine: MakeEngine, acts: Acts) -> None:
    """If the jobs begin a second after their gate was opened, because the host is busy, the engine reports this late
    beginning. The device is idle during this second.
    """
    fake_fio({"*": [acts]})
    done = measure(make_engine())
    assert done.earliest_s is not None
    assert 0.5 <= done.started_s - done.earliest_s <= 31


def test_a_fio_killed_at_the_gate_is_started_again_once(
    fake_fio: Play, make_engine: MakeEngine, tmp_path: Path
) -> None:
    """If a fio is killed at the gate, it is started again once, because it has not issued any I/O yet. If the second
    fio is killed too, the step ends with an error.
    """
    dies: Acts = [["killed at the gate"], ["do not come"], ["run"]]
    fake_fio({"*": [dies, [["run"]]]})
    assert measure(make_engine()).measurement.ios == 2 * 2000 * LENGTH_S
    (tmp_path / "scenario.json.*.count").unlink()
    fake_fio({"*": [dies]})
    with pytest.raises(EngineError, match="was killed by signal 9"):
        measure(make_engine())
    assert (tmp_path / "scenario.json.*.count").stat().st_size == 2


def test_a_fio_that_does_not_start_tells_why(fake_fio: Play, make_engine: MakeEngine) -> None:
    """A fio that ends by itself at its start is not started again. The error contains the reason that fio printed."""
    fake_fio({"*": [[["exit at once"]]]})
    with pytest.raises(EngineError, match="nonesuch not loadable"):
        measure(make_engine())


def test_a_fio_killed_in_mid_step_is_a_failed_step(fake_fio: Play, make_engine: MakeEngine) -> None:
    """If fio is killed during a step, for instance because the host lacks memory, the step fails and is repeated."""
    fake_fio({"4096": [[["status", {"elapsed_s": 0.1}], ["kill self"]], [["run"]]]})
    events, failure = run_rounds(make_engine())
    assert failure is None
    assert "killed by signal 9" in repeats(events)[0]
    assert kept(events) == [4096, 8192]


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Limit the memory of the test to 400 MB beyond the memory that is in use now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + (400 << 20), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("little_memory")
def test_a_flood_on_stderr_is_taken_and_forgotten(fake_fio: Play, make_engine: MakeEngine, tmp_path: Path) -> None:
    """If fio prints 600 MB on stderr, this output fills neither the memory nor /dev/shm. The error contains the
    beginning of the output.
    """
    fake_fio({"*": [[["flood", "stderr", 600 << 20], ["exit", 3]]]})
    with pytest.raises(EngineError, match="exit status 3; it said: xxxx") as raised:
        measure(make_engine())
    assert len(str(raised.value)) < 1000
    assert not list(tmp_path.rglob("stderr*"))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("where", ["before", "within"])
def test_a_flood_on_stdout_is_an_error(fake_fio: Play, make_engine: MakeEngine, where: str) -> None:
    """Too much output on stdout causes an error, because the size of fio's notes and the size of a document are
    limited.
    """
    acts: Acts = [["flood", "stdout", 300 << 20]]
    fake_fio({"*": [[*([["raw", "{"]] if where == "within" else []), *acts, ["exit", 0]]]})
    with pytest.raises(EngineError, match="printed more than"):
        measure(make_engine())


RUBBISH: dict[str, dict[str, object]] = {
    "negative latency": {"write lat_ns min": -5},
    "negative count": {"write total_ios": -1},
    "huge number": {"write io_bytes": 10**30},
    "huge mean": {"write lat_ns mean": 1e300},
    "huge error": {"error": 10**12},
    "missing key": {"write lat_ns": None},
    "no jobs": {"jobs": []},
    "text for a number": {"write runtime": "soon"},
    "a negative bin": {"write lat_ns bins": {"-7": 800}},
}


@pytest.mark.parametrize("rubbish", RUBBISH.values(), ids=RUBBISH)
def test_rubbish_is_an_error_in_words(fake_fio: Play, make_engine: MakeEngine, rubbish: dict[str, object]) -> None:
    """An impossible number leads to an error of the engine. The number is not stored, and it causes no traceback."""
    fake_fio({"*": [[["run", rubbish]]]})
    with pytest.raises(EngineError, match="fio printed"):
        measure(make_engine())


def test_nan_is_an_error_in_words(fake_fio: Play, make_engine: MakeEngine) -> None:
    """Text that resembles JSON but is not valid JSON, such as NaN, leads to an error of the engine."""
    fake_fio({"*": [[["raw", '{\n"jobs": [NaN]\n}']]]})
    with pytest.raises(EngineError, match="cannot read the JSON status"):
        measure(make_engine())


def test_samples_of_a_lie_may_be_shown_but_nothing_is_kept(fake_fio: Play, make_engine: MakeEngine) -> None:
    """Views may show the seconds of a step whose result is later rejected. The run file contains only steps whose
    results were checked.
    """
    fake_fio({"4096": [LIES["10^6 s"]]})
    events, failure = run_rounds(make_engine())
    assert failure is not None
    assert not kept(events)
    assert any(isinstance(event, SampleSeen) for event in events)


@dataclass
class Reading:
    """A record of how an engine read fio's output: the values of ``waited`` in order, and the times at which fio wrote
    its documents.
    """

    waited: list[bool] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)


@pytest.fixture
def read_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[FioEngine], Reading]:
    """Return a function that measures a step of 3.3 s. The next step is prepared half a second before the end of this
    step.
    """
    monkeypatch.setattr(waiting, "PREPARE_AHEAD_S", 0.5)
    monkeypatch.setattr(waiting, "START_MARGIN", 0.0)
    read = FioProcess._read

    def run(engine: FioEngine) -> Reading:
        seen = Reading()

        def note(process: FioProcess, *args: Any, waited: bool = False) -> None:
            seen.waited.append(waited)
            read(process, *args, waited=waited)

        def on_sample(_sample: Sample, arrived_s: float | None) -> None:
            assert arrived_s is not None
            seen.arrivals.append(arrived_s)

        monkeypatch.setattr(FioProcess, "_read", note)
        engine.measure(step(duration_s=3.3), then=None, on_sample=on_sample)
        return seen

    return run


ReadStep = Callable[[FioEngine], Reading]
BUSY: Acts = [["run", {"usr_cpu": 98.0}]]


def test_documents_wait_together_while_no_cpu_is_to_spare(
    fake_fio: Play, make_engine: MakeEngine, read_step: ReadStep
) -> None:
    """If no CPU is idle, documents are read in groups. Each sample keeps the time at which fio wrote its document."""
    fake_fio({"*": [BUSY]})
    seen = read_step(make_engine())
    assert any(seen.waited)
    assert len(seen.arrivals) >= 3
    assert all(later - earlier > 0.5 for earlier, later in pairwise(seen.arrivals[:3]))


def test_no_document_waits_while_a_cpu_is_to_spare(
    fake_fio: Play, make_engine: MakeEngine, read_step: ReadStep
) -> None:
    """If a CPU is idle, each document is read immediately, so that the live view shows each second without delay."""
    fake_fio({"*": [[["run"]]]})
    assert not any(read_step(make_engine()).waited)


def test_documents_that_would_fill_the_pipe_do_not_wait(
    fake_fio: Play, make_engine: MakeEngine, read_step: ReadStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the pipe can hold only a few documents, the documents are read immediately, because fio would stop as soon as
    the pipe is full.
    """
    monkeypatch.setattr(fio_process, "GATHERED_SHARE", 0.0)  # the pipe can hold only a few documents
    fake_fio({"*": [BUSY]})
    assert not any(read_step(make_engine()).waited)


def test_stamps_of_documents_count_only_while_the_wall_clock_runs_evenly(
    fake_fio: Play, make_engine: MakeEngine, read_step: ReadStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the wall clock was set during a step, the time stamps of fio's documents are not used. tkperf then uses, for
    all waiting documents, the time at which it read these documents.
    """
    monkeypatch.setattr(FioProcess, "_follow_wall_clock", lambda _: None)
    fake_fio({"*": [BUSY]})
    seen = read_step(make_engine())
    assert any(seen.waited)
    assert any(later - earlier < 0.5 for earlier, later in pairwise(seen.arrivals))
