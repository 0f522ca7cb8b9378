"""Whole runs that somebody disturbs, with real fio and a real device: said and marked, and only then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tkperf.model.disturbance.codes import DisturbanceCode
from tkperf.model.record import RunRecord, StepKind, StepRecord
from tkperf.runfile.reader import read_run

pytestmark = pytest.mark.fio
SHORT = Path(__file__).parents[1] / "short.toml"
STEP_S = 5
MIB = 1 << 20


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Two steps a round, long enough for a busy machine."""
    path = tmp_path / "profile.toml"
    text = SHORT.read_text().replace("step_s = 1\n", f"step_s = {STEP_S}\n")
    text = text.replace("read_percents = [100, 65, 0]", "read_percents = [100, 0]")
    path.write_text(text.replace("block_sizes_kib = [64, 4]", "block_sizes_kib = [4]"))
    return path


Act = Callable[[dict[str, Any], "subprocess.Popen[str]"], None]


def run(
    folder: Path,
    profile: Path,
    target: Path,
    *argv: str,
    act: Act | None = None,
    within: tuple[str, ...] = (),
) -> RunRecord:
    """A run of the IOPS test, started by ``within``; ``act`` is told of each of its steps as it begins."""
    with subprocess.Popen(
        [
            *within, sys.executable, "-m", "tkperf", "ssd", "run", str(target), "--profile", str(profile),
            "-ssdt", "iops", "--output", str(folder), "--progress", "json", "--no-report", *argv,
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if act and event["event"] == "StepStarted" and event["kind"] == StepKind.ROUND:
                act(event, process)
    assert process.returncode == 0
    return read_run(folder / "run.tkperf")


def rounds(record: RunRecord) -> list[StepRecord]:
    return [step for test in record.tests for step in test.steps if step.kind is StepKind.ROUND]


def codes(step: StepRecord) -> set[str]:
    return {each.code.value for each in step.disturbances or ()}


@pytest.fixture
def foreign(loop_device: Callable[..., Path]) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A loop device and somebody who writes to it for three seconds."""
    device = loop_device(size=256 * MIB)
    started: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        argv = [
            "fio", "--name=foreign", f"--filename={device}", "--direct=1", "--rw=write", "--bs=1m",
            "--ioengine=psync", "--time_based", "--runtime=3", "--output=/dev/null",
        ]  # fmt: skip
        started.append(subprocess.Popen(argv))

    yield device, begin
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.root
def test_a_foreign_writer_is_said_and_marked(
    tmp_path: Path, profile: Path, foreign: tuple[Path, Callable[[], None]]
) -> None:
    """Another process writes to the device in one step: a warning, a mark, its bytes."""
    device, begin = foreign

    def act(event: dict[str, Any], _: object) -> None:
        if (event["number"], event["position"]) == (2, 1):
            begin()

    record = run(tmp_path, profile, device, "--yes-destroy", str(device), act=act)
    steps = {(step.number, step.position): step for step in rounds(record)}
    disturbed = {key for key, step in steps.items() if "foreign-io" in codes(step)}
    # On a busy machine the writer may reach into the step that follows.
    assert (2, 1) in disturbed
    assert disturbed <= {(2, 1), (3, 0)}
    assert (steps[2, 1].foreign_write_bytes or 0) >= 10 * MIB
    assert DisturbanceCode.FOREIGN_IO in {warning.code for warning in record.warnings}
    shown = subprocess.check_output(
        [sys.executable, "-m", "tkperf", "show", str(tmp_path / "run.tkperf")], text=True
    )
    assert "with other I/O on the device" in shown
    assert "of the window disturbed" in shown
    assert "! disturbed: other I/O on the device" in " ".join(shown.split())


@pytest.mark.root
def test_a_run_nobody_disturbs_has_no_foreign_io(
    tmp_path: Path, profile: Path, loop_device: Callable[..., Path]
) -> None:
    """Steps were compared, but for what was over too soon on a busy host, and nothing was found."""
    device = loop_device(size=256 * MIB)
    record = run(tmp_path, profile, device, "--yes-destroy", str(device))
    compared = [step.foreign_write_bytes is not None for step in record.tests[0].steps]
    # A step of a second may be over before a busy machine has looked at the counters twice.
    assert sum(compared) > len(compared) / 2
    for step in record.tests[0].steps:
        # A machine that other things keep busy may let the device stand idle: that is true, too.
        assert codes(step) <= {"idle-before", "idle-inside", "stopped", "host-cpu", "steal"}


def test_a_stopped_tkperf_is_said(tmp_path: Path, profile: Path) -> None:
    """SIGSTOP for 2 s within a step, and for 8 s beyond its end: a stop, and idle time behind it."""
    stops = {(1, 0): 2.0, (2, 0): 8.0}

    def act(event: dict[str, Any], process: subprocess.Popen[str]) -> None:
        if lasting_s := stops.get((event["number"], event["position"])):
            process.send_signal(signal.SIGSTOP)
            time.sleep(lasting_s)
            process.send_signal(signal.SIGCONT)

    scratch = tmp_path / "scratch"
    record = run(tmp_path, profile, scratch, "--size", str(64 * MIB), act=act)
    steps = {(step.number, step.position): step for step in rounds(record)}
    assert "stopped" in codes(steps[1, 0])
    assert "stopped" in codes(steps[2, 0])
    assert "idle-before" in codes(steps[2, 1])
    assert (steps[2, 1].gap_s or 0) > 1
    assert {step.foreign_write_bytes for step in steps.values()} == {None}
    assert "not comparable" in str(record.info.device["other_io"])
    assert {"stopped", "idle-before"} <= {warning.code for warning in record.warnings}


def test_cpu_burners_are_said_and_named(tmp_path: Path, profile: Path) -> None:
    """Four of them in one step, on however many CPUs: their time, their name, how long fio waited."""
    cpus = len(os.sched_getaffinity(0))
    burners: list[subprocess.Popen[bytes]] = []

    def act(event: dict[str, Any], _: object) -> None:
        if (event["number"], event["position"]) == (2, 0):
            burners.extend(
                subprocess.Popen(["timeout", str(STEP_S - 1), "sh", "-c", "while :; do :; done"])
                for _ in range(4 * cpus)
            )

    record = run(tmp_path, profile, tmp_path / "scratch", "--size", str(64 * MIB), act=act)
    for burner in burners:
        burner.wait()
    steps = {(step.number, step.position): step for step in rounds(record)}
    (found,) = [each for each in steps[2, 0].disturbances or () if each.code == "host-cpu"]
    assert "other programs used" in found.text
    use = steps[2, 0].host
    assert use is not None
    assert (use.others_cpu_percent or 0) > 25 * cpus
    assert use.others
    assert "host-cpu" in {warning.code for warning in record.warnings}


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[tuple[tuple[str, ...], Callable[[float | None], None]]]:
    """What starts a program in a cgroup of its own, and what gives it so many CPUs; None: all."""
    folder = Path("/sys/fs/cgroup") / ("cpu" if Path("/sys/fs/cgroup/cpu").is_dir() else "")
    if os.geteuid() != 0:
        pytest.skip("needs root to make a cgroup")
    group = folder / f"tkperf-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")

    def limit(cpus: float | None) -> None:
        if (group / "cpu.cfs_quota_us").exists():
            period_us = int((group / "cpu.cfs_period_us").read_text())
            quota = -1 if cpus is None else round(cpus * period_us)
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text("max" if cpus is None else f"{round(cpus * 1e5)} 100000")

    try:
        if not ((group / "cpu.cfs_quota_us").exists() or (group / "cpu.max").exists()):
            pytest.skip("no cgroup here can limit CPU time")
        yield ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"), limit
    finally:
        group.rmdir()


@pytest.mark.root
def test_a_limit_on_the_cpu_time_of_tkperf_is_said(
    tmp_path: Path,
    profile: Path,
    limited: tuple[tuple[str, ...], Callable[[float | None], None]],
) -> None:
    """A tenth of a CPU for two seconds of one step, in tkperf's own cgroup."""
    within, limit = limited

    def act(event: dict[str, Any], _: object) -> None:
        if (event["number"], event["position"]) == (2, 0):
            limit(0.1)
            time.sleep(2)
            limit(None)

    record = run(
        tmp_path, profile, tmp_path / "scratch", "--size", str(64 * MIB), act=act, within=within
    )
    steps = {(step.number, step.position): step for step in rounds(record)}
    (found,) = [each for each in steps[2, 0].disturbances or () if each.code == "cpu-quota"]
    assert "used up the CPU time of their cgroup" in found.text
    assert [key for key, step in steps.items() if "cpu-quota" in codes(step)] == [(2, 0)]
