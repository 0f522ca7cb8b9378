"""Whole runs with disturbances. tkperf records and shows each disturbance, and prints a warning about it. tkperf
reports no disturbance that did not occur.

The tests control the drive, its counters, the host and the clock, so that their results do not depend on how busy the
real host is. ``tests/model/test_disturbance.py`` and ``tests/model/test_host_use.py`` test the detection itself.
``bench/disturbance.py`` disturbs real runs and counts what tkperf finds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.builders import FreeTarget, run_info
from tests.busy_host import BusyHost
from tests.model.test_disturbance import Flow, Model
from tkperf.cli.main import cli
from tkperf.engine import Execution, OnSample
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import FlashModel
from tkperf.model.disturbance.io import DeviceLook
from tkperf.model.host_use import HostLook
from tkperf.model.measurement import Sample
from tkperf.model.record import RunRecord, StepKind, StepRecord
from tkperf.model.workload import Workload
from tkperf.procedures import SSD_TESTS, parse_profile
from tkperf.procedures.profiles import Profile
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import Event, StepStarted
from tkperf.runner.runner import RunParts, execute_run

SHORT = Path(__file__).parents[1] / "short.toml"
STEP_S = 5
RANGE_BYTES = 64 << 20
STEADY = FlashModel(capacity_bytes=1 << 40, noise=0.01)
# The round and the position of the disturbed step.
DISTURBED = (2, 1)
FOREIGN_BYTES_PER_S, FOREIGN_S = 50e6, 3.0


def short_profile() -> Profile:
    """Return a profile with five rounds of two steps."""
    text = SHORT.read_text().replace("step_s = 1\n", f"step_s = {STEP_S}\n")
    text = text.replace("read_percents = [100, 65, 0]", "read_percents = [100, 0]")
    text = text.replace("_rounds = 2", "_rounds = 5")
    return parse_profile(text.replace("block_sizes_kib = [64, 4]", "block_sizes_kib = [4]"), file="short.toml")


@dataclass
class CountedDrive:
    """A simulated drive with counters. During a run, another process can write to the drive, or tkperf can be
    stopped.
    """

    clock: Callable[[], float]
    model: Model = field(default_factory=Model)

    def take(self) -> list[DeviceLook]:
        self.model.now_s = self.clock()
        return self.model.take()

    def look_seldom(self, from_s: float, until_s: float) -> None:
        self.model.look_seldom(from_s, until_s)


class CountedEngine(SimulatedEngine):
    """A simulated drive with counters. Like fio, it reports each second of a load when the second ends."""

    def __init__(self) -> None:
        super().__init__(STEADY, RANGE_BYTES)
        self.drive_counters = CountedDrive(self.clock)

    def _run(
        self, workload: Workload, duration_s: float | None, on_sample: OnSample, amount_bytes: int | None = None
    ) -> Execution:
        began_s = self._begins_s

        def arrive(sample: Sample, arrived_s: float | None) -> None:
            begin_s, end_s = began_s + sample.start_s, began_s + sample.start_s + sample.duration_s
            for moved_bytes, reads in ((sample.read.bytes, True), (sample.write.bytes, False)):
                if moved_bytes:
                    flow = Flow(begin_s, end_s, moved_bytes / sample.duration_s, reads)
                    self.drive_counters.model.flows.append(flow)
            stops = self.drive_counters.model.stops
            self._clock_s = max([end_s, *(end for begin, end in stops if begin < end_s < end)])
            on_sample(sample, arrived_s)

        return super()._run(workload, duration_s, arrive, amount_bytes)


@dataclass
class LimitedHost(BusyHost):
    """A host on which the cgroup of tkperf has no CPU time left for a quarter of each busy step."""

    def look(self) -> HostLook:
        looked = super().look()
        return replace(looked, throttled_s=self.burnt_s / 4, throttled_times=round(10 * self.burnt_s))

    look_at_threads = look


def is_disturbed(event: StepStarted) -> bool:
    return (event.kind, event.number, event.position) == (StepKind.ROUND, *DISTURBED)


def run(
    folder: Path, act: Callable[[CountedDrive], None] = lambda _: None, host_type: type[BusyHost] | None = None
) -> RunRecord:
    """Run the IOPS test. When the step that is to be disturbed begins, call ``act``."""
    engine = CountedEngine()
    host = None if host_type is None else host_type(engine.clock, is_disturbed)

    def notice(event: Event) -> None:
        if isinstance(event, StepStarted) and is_disturbed(event):
            act(engine.drive_counters)

    with closing(RunFileWriter(folder / "run.tkperf")) as writer:
        execute_run(
            RunParts(
                info=run_info(active_range_length_bytes=RANGE_BYTES),
                tests=[SSD_TESTS["iops"]],
                profile=short_profile(),
                engine=engine,
                target=FreeTarget(),
                observers=(notice, writer, *([] if host is None else [host])),
                clock=engine.clock,
                counters=engine.drive_counters,
                host=host,
            )
        )
    return read_run(folder / "run.tkperf")


def codes(record: RunRecord) -> dict[tuple[int, int], set[str]]:
    """Return the disturbances of steps. The key is the round and the position of the step. Require that only steps of
    rounds have disturbances.
    """
    found = {}
    for step in (step for test in record.tests for step in test.steps):
        if step.disturbances:
            assert step.kind is StepKind.ROUND
            found[step.number, step.position] = {each.code.value for each in step.disturbances}
    return found


def disturbed_step(record: RunRecord) -> StepRecord:
    (step,) = [
        step
        for step in record.tests[0].steps
        if (step.kind, step.number, step.position) == (StepKind.ROUND, *DISTURBED)
    ]
    return step


def shown(folder: Path) -> str:
    done = CliRunner().invoke(cli, ["show", "--full", str(folder / "run.tkperf")], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def warned(record: RunRecord) -> set[str]:
    return {warning.code for warning in record.warnings}


def test_a_run_that_nobody_disturbs_says_nothing(tmp_path: Path) -> None:
    """In a run without disturbances, tkperf compares all rounds with the counters of the device, and reports no I/O of
    other processes in any step.
    """
    record = run(tmp_path)
    assert codes(record) == {}
    rounds = [step for step in record.tests[0].steps if step.kind is StepKind.ROUND]
    assert {(step.foreign_read_bytes, step.foreign_write_bytes) for step in rounds} == {(0, 0)}
    assert "! disturbed" not in " ".join(shown(tmp_path).split())


def test_a_foreign_writer_is_said_and_marked(tmp_path: Path) -> None:
    """If another process writes to the device during one step, only this step is marked. A warning of the run reports
    the I/O of the other process.
    """

    def write(drive: CountedDrive) -> None:
        began_s = drive.clock() + 1
        drive.model.flows.append(Flow(began_s, began_s + FOREIGN_S, FOREIGN_BYTES_PER_S))

    record = run(tmp_path, write)
    assert codes(record) == {DISTURBED: {"foreign-io"}}
    assert disturbed_step(record).foreign_write_bytes == pytest.approx(FOREIGN_S * FOREIGN_BYTES_PER_S, rel=0.02)
    assert "foreign-io" in warned(record)
    text = shown(tmp_path)
    assert "with other I/O on the device" in text
    assert "of the window disturbed" in text
    assert "! disturbed: other I/O on the device" in " ".join(text.split())


def stop(lasting_s: float) -> Callable[[CountedDrive], None]:
    """Return a function that pauses tkperf for this time, beginning half a second after the function is called. fio
    continues.
    """

    def act(drive: CountedDrive) -> None:
        began_s = drive.clock() + 0.5
        drive.model.stops = [(began_s, began_s + lasting_s)]

    return act


def test_a_stopped_tkperf_is_said(tmp_path: Path) -> None:
    """If tkperf was stopped for 2 s within a step, the step is reported as "stopped". The pause delays fio's seconds,
    but this delay causes no other report.
    """
    record = run(tmp_path, stop(2.0))
    assert codes(record) == {DISTURBED: {"stopped"}}
    assert "stopped" in warned(record)
    assert "! disturbed: tkperf stood still" in " ".join(shown(tmp_path).split())


def test_a_tkperf_that_is_stopped_beyond_a_step_leaves_the_device_idle(tmp_path: Path) -> None:
    """If tkperf is stopped until 3.5 s after the end of a step, the device is idle during this time. The next step is
    flagged because it begins late.
    """
    record = run(tmp_path, stop(8.0))
    assert codes(record) == {DISTURBED: {"stopped"}, (3, 0): {"idle-before"}}
    late = next(step for step in record.tests[0].steps if (step.number, step.position) == (3, 0))
    assert late.gap_s == pytest.approx(3.5)
    assert {"stopped", "idle-before"} <= warned(record)


def test_cpu_burners_are_said_and_named(tmp_path: Path) -> None:
    """If a program uses one of two CPUs during one step, fio waits for a CPU half of the time. The report names this
    program.
    """
    record = run(tmp_path, host_type=BusyHost)
    assert codes(record) == {DISTURBED: {"host-cpu"}}
    ((found,), use) = (disturbed_step(record).disturbances or (), disturbed_step(record).host)
    assert "other programs used 100 % of a CPU (burner 100 %) while fio waited for one 50.0 %" in found.text
    assert use is not None
    assert use.others_cpu_percent == pytest.approx(100)
    assert "host-cpu" in warned(record)


def test_a_limit_on_the_cpu_time_of_tkperf_is_said(tmp_path: Path) -> None:
    """If a limit on the CPU time of tkperf's cgroup stops the processes in this cgroup for a quarter of a step, the
    limit is reported for this step.
    """
    record = run(tmp_path, host_type=LimitedHost)
    assert codes(record) == {DISTURBED: {"host-cpu", "cpu-quota"}}
    texts = " ".join(found.text for found in disturbed_step(record).disturbances or ())
    assert "used up the CPU time of their cgroup for 25.0 % of the time" in texts
    assert "cpu-quota" in warned(record)
