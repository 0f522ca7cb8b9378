"""Whole runs that somebody disturbs, with real fio and a real device: said and marked, and only then."""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.record import RunRecord, StepKind, StepRecord
from tkperf.runfile.reader import read_run

# Whatever else takes all CPUs at the moment of a disturbance may hide it: then it is made again, twice at most.
pytestmark = [pytest.mark.fio, pytest.mark.flaky(reruns=2)]
SHORT = Path(__file__).parents[1] / "short.toml"
STEP_S = 5
MIB = 1 << 20


def write_profile(folder: Path) -> Path:
    """Two steps a round, long enough for a busy machine."""
    path = folder / "profile.toml"
    text = SHORT.read_text().replace("step_s = 1\n", f"step_s = {STEP_S}\n")
    text = text.replace("read_percents = [100, 65, 0]", "read_percents = [100, 0]")
    path.write_text(text.replace("block_sizes_kib = [64, 4]", "block_sizes_kib = [4]"))
    return path


def find_rounds(record: RunRecord) -> dict[tuple[int, int], StepRecord]:
    """The steps of rounds by round and place, from 1 and 0 on."""
    steps = (step for test in record.tests for step in test.steps)
    return {(step.number, step.position): step for step in steps if step.kind is StepKind.ROUND}


Act = Callable[[dict[str, Any], "subprocess.Popen[str]"], None]


def run(folder: Path, target: Path, *argv: str, act: Act, within: tuple[str, ...] = ()) -> RunRecord:
    """A run of the IOPS test, started by ``within``; ``act`` is called as each of its steps begins."""
    with subprocess.Popen(
        [
            *within,
            sys.executable,
            "-m",
            "tkperf",
            "ssd",
            "run",
            str(target),
            "--profile",
            str(write_profile(folder)),
            "-ssdt",
            "iops",
            "--output",
            str(folder),
            "--progress",
            "json",
            "--no-report",
            *argv,
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "StepStarted" and event["kind"] == StepKind.ROUND:
                act(event, process)
    assert process.returncode == 0
    return read_run(folder / "run.tkperf")


def codes(step: StepRecord) -> set[str]:
    return {each.code.value for each in step.disturbances or ()}


def write_for(device: Path, lasting_s: float) -> None:
    """Write to a device, as another program may do."""
    opened = os.open(device, os.O_WRONLY | os.O_DIRECT)
    with mmap.mmap(-1, MIB) as block, os.fdopen(opened, "wb", buffering=0) as file:
        until = time.monotonic() + lasting_s
        while time.monotonic() < until:
            file.seek(0)
            file.write(block)


@pytest.mark.root
def test_a_foreign_writer_is_said_and_marked(tmp_path: Path, loop_device: Callable[..., Path]) -> None:
    """Another process writes to the device in one step: a warning, a mark, its bytes; nothing is found in the others.

    They were compared, but for what was over too soon on a busy host.
    """
    device = loop_device(size=256 * MIB)

    def act(event: dict[str, Any], _: object) -> None:
        if (event["number"], event["position"]) == (2, 1):
            write_for(device, lasting_s=3)

    record = run(tmp_path, device, "--yes-destroy", str(device), act=act)
    steps = find_rounds(record)
    disturbed = {key for key, step in steps.items() if "foreign-io" in codes(step)}
    # On a busy machine the writer may reach into the step that follows.
    assert (2, 1) in disturbed
    assert disturbed <= {(2, 1), (3, 0)}
    assert (steps[2, 1].foreign_write_bytes or 0) >= 10 * MIB
    assert DisturbanceCode.FOREIGN_IO in {warning.code for warning in record.warnings}
    compared = [step.foreign_write_bytes is not None for step in record.tests[0].steps]
    # A step of a second may be over before a busy machine has looked at the counters twice.
    assert sum(compared) > len(compared) / 2
    for step in record.tests[0].steps:
        if (step.number, step.position) not in disturbed or step.kind is not StepKind.ROUND:
            # A machine that other things keep busy may let the device stand idle: that is true, too.
            assert codes(step) <= {"idle-before", "idle-inside", "stopped", "host-cpu", "steal"}
    shown = subprocess.check_output([sys.executable, "-m", "tkperf", "show", str(tmp_path / "run.tkperf")], text=True)
    assert "with other I/O on the device" in shown
    assert "of the window disturbed" in shown
    assert "! disturbed: other I/O on the device" in " ".join(shown.split())


class ControlGroup:
    """A cgroup for a run; ``missing`` is why there is none that limits CPU time here."""

    def __init__(self) -> None:
        folder = Path("/sys/fs/cgroup") / ("cpu" if Path("/sys/fs/cgroup/cpu").is_dir() else "")
        self._folder = folder / f"tkperf-test-{os.getpid()}"
        self.missing: str | None = None
        try:
            self._folder.mkdir()
        except OSError as error:
            self.missing = f"no cgroup can be made here: {error}"
            return
        if not any((self._folder / name).exists() for name in ("cpu.cfs_quota_us", "cpu.max")):
            self.remove()
            self.missing = "no cgroup here can limit CPU time"

    @property
    def starter(self) -> tuple[str, ...]:
        """Start a program in it by these words."""
        if self.missing is not None:
            return ()
        return ("sh", "-c", f'echo $$ > {self._folder}/cgroup.procs && exec "$@"', "sh")

    def limit(self, cpus: float | None) -> None:
        """Give it so many CPUs; None: all."""
        if (self._folder / "cpu.cfs_quota_us").exists():
            period_us = int((self._folder / "cpu.cfs_period_us").read_text())
            quota = -1 if cpus is None else round(cpus * period_us)
            (self._folder / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            text = "max" if cpus is None else f"{round(cpus * 1e5)} 100000"
            (self._folder / "cpu.max").write_text(text)

    def remove(self) -> None:
        if self.missing is None:
            self._folder.rmdir()


@pytest.fixture(scope="module")
def control_group() -> Iterator[ControlGroup]:
    group = ControlGroup()
    yield group
    group.remove()


# The steps of a run that are disturbed: how long tkperf is stopped, within a step and beyond its end; the step with
# other programs on the CPUs; that in which its cgroup has little CPU time.
STOPS_S = {(1, 0): 2.0, (2, 0): 8.0}
BURNT = (3, 0)
LIMITED = (4, 0)


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory, control_group: ControlGroup) -> RunRecord:
    """A run on a scratch file, disturbed in each of these steps.

    The plugin for reruns does not make a module's fixture again. A busy host may carry out a disturbance so late
    that it hits another step, so the run is repeated here if it did.
    """
    for _ in range(2):
        record = _run_disturbed(tmp_path_factory.mktemp("disturbed"), control_group)
        steps = find_rounds(record)
        if "idle-before" in codes(steps[2, 1]) and "host-cpu" in codes(steps[BURNT]):
            return record
    return _run_disturbed(tmp_path_factory.mktemp("disturbed"), control_group)


def _run_disturbed(folder: Path, control_group: ControlGroup) -> RunRecord:
    burners: list[subprocess.Popen[bytes]] = []

    def act(event: dict[str, Any], process: subprocess.Popen[str]) -> None:
        step = (event["number"], event["position"])
        if lasting_s := STOPS_S.get(step):
            process.send_signal(signal.SIGSTOP)
            time.sleep(lasting_s)
            process.send_signal(signal.SIGCONT)
        if step == BURNT:
            argv = ["timeout", str(STEP_S - 1), "sh", "-c", "while :; do :; done"]
            count = 4 * len(os.sched_getaffinity(0))
            burners.extend(subprocess.Popen(argv) for _ in range(count))
        if step == LIMITED and control_group.missing is None:
            control_group.limit(0.1)
            time.sleep(2)
            control_group.limit(None)

    size = ("--size", str(64 * MIB))
    record = run(folder, folder / "scratch", *size, act=act, within=control_group.starter)
    for burner in burners:
        burner.wait()
    return record


def test_a_stopped_tkperf_is_said(disturbed: RunRecord) -> None:
    """SIGSTOP for 2 s within a step, and for 8 s beyond its end: a stop, and idle time behind it."""
    steps = find_rounds(disturbed)
    assert all("stopped" in codes(steps[key]) for key in STOPS_S)
    assert "idle-before" in codes(steps[2, 1])
    assert (steps[2, 1].gap_s or 0) > 1
    assert {step.foreign_write_bytes for step in steps.values()} == {None}
    assert "not comparable" in str(disturbed.info.device["other_io"])
    assert {"stopped", "idle-before"} <= {warning.code for warning in disturbed.warnings}


def test_cpu_burners_are_said_and_named(disturbed: RunRecord) -> None:
    """Four of them in one step, on however many CPUs: their time, their name, how long fio waited."""
    step = find_rounds(disturbed)[BURNT]
    (found,) = [each for each in step.disturbances or () if each.code == "host-cpu"]
    assert "other programs used" in found.text
    use = step.host
    assert use is not None
    assert (use.others_cpu_percent or 0) > 25 * len(os.sched_getaffinity(0))
    assert use.others
    assert "host-cpu" in {warning.code for warning in disturbed.warnings}


@pytest.mark.root
def test_a_limit_on_the_cpu_time_of_tkperf_is_said(control_group: ControlGroup, disturbed: RunRecord) -> None:
    """A tenth of a CPU for two seconds of one step, in tkperf's own cgroup."""
    if control_group.missing is not None:
        pytest.skip(control_group.missing)
    steps = find_rounds(disturbed)
    (found,) = [each for each in steps[LIMITED].disturbances or () if each.code == "cpu-quota"]
    assert "used up the CPU time of their cgroup" in found.text
    assert [key for key, step in steps.items() if "cpu-quota" in codes(step)] == [LIMITED]
