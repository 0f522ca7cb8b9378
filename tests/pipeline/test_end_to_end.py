"""The main task with real fio. tkperf does the work that the user requested, and shows the values that fio measured."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.builders import run_info
from tests.render.visits import find_specs
from tkperf.analysis.run_results import analyse
from tkperf.device.identity import read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.device.purge import plan_purge
from tkperf.device.targets import DriveTarget
from tkperf.device.write_cache import WriteCache
from tkperf.engine import ChosenEngine
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.device_jobs import DeviceJobs, Seeds
from tkperf.engine.fio import FioEngine
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.phases import Fill
from tkperf.model.plausibility import BYTES_TOLERANCE, RUNNING_TRAIL_IOS, RUNNING_TRAIL_S
from tkperf.model.record import RunStatus, StepKind
from tkperf.model.units import format_number
from tkperf.model.workload import Access, ActiveRange, Workload
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.runfile.reader import RunFile, read_run
from tkperf.runner.events import Event, PurgeEnded, StepEnded
from tkperf.runner.runner import RunParts, execute_run

pytestmark = pytest.mark.fio
PROFILE = Path(__file__).parents[1] / "short.toml"
# The number of rounds in the window. The window contains all rounds of the profile.
ROUNDS = 2
# The size is not a multiple of the block size of the fill, so the fill must also write the remainder.
SIZE_BYTES = (96 << 20) + 36 * 1024


# A busy host may delay an event by this number of seconds.
LATE_S = 30.0
# This variable identifies the programs that these tests start among all programs of the host.
MARK, MARK_VALUE = "TKPERF_TESTED_BY", secrets.token_hex(8)


def start_tkperf(*argv: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tkperf", *[str(word) for word in argv]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: MARK_VALUE},
    )


def what_goes_on() -> list[str]:
    """Return the names of the programs that these tests started through tkperf and that are still running."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{MARK}={MARK_VALUE}\0".encode() in (process / "environ").read_bytes():
                found.append((process / "comm").read_text().strip())
    return found


def require_nothing_goes_on() -> None:
    """Require that all programs that these tests started through tkperf end soon."""
    until = time.monotonic() + 60
    while found := what_goes_on():
        assert time.monotonic() < until, found
        time.sleep(0.2)


def trailing_ios(iops: float, workload: Workload) -> float:
    """Return the number of I/Os by which two counters of a running fio may differ."""
    return RUNNING_TRAIL_S * iops + RUNNING_TRAIL_IOS + workload.total_outstanding_ios


def tkperf(*argv: str | Path) -> str:
    process = start_tkperf(*argv)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run file of a whole suite that ran on a scratch file."""
    folder = tmp_path_factory.mktemp("suite")
    out = tkperf(
        "ssd",
        "suite",
        folder / "scratch",
        "--size",
        str(SIZE_BYTES),
        "--profile",
        PROFILE,
        "--output",
        folder,
        "--progress",
        "plain",
    )
    (folder / "stdout.txt").write_text(out)
    return folder / "suite.tkperf"


@pytest.fixture(scope="module")
def results(finished: Path) -> dict[str, object]:
    document: dict[str, object] = json.loads(tkperf("show", "--json", finished))
    return document


def sections(results: dict[str, object]) -> dict[str, dict[str, object]]:
    return {
        section["name"]: section
        for test in results["tests"]  # type: ignore[attr-defined]
        for section in test["sections"]
    }


def test_the_suite_runs_in_tkperfs_order_and_completes(finished: Path) -> None:
    """The suite runs iops, lat, tp and writesat completely and in this order. The run has a notice that its target is a
    file.
    """
    record = read_run(finished)
    assert record.status is RunStatus.COMPLETE
    assert [test.name for test in record.tests] == ["iops", "lat", "tp", "writesat"]
    assert {test.status for test in record.tests} == {RunStatus.COMPLETE}
    assert any("FILE TARGET" in notice for notice in record.info.notices)
    assert any("SHORT PROFILE" in notice for notice in record.info.notices)
    assert record.info.fio_version is not None
    assert record.info.fio_version.startswith("fio-3.")


def test_the_host_is_watched_and_a_file_has_no_counters_to_compare(finished: Path) -> None:
    """The record of each step contains the load of the host. The I/O of other processes on a file is not known, and is
    recorded as not known and not as 0.
    """
    record = read_run(finished)
    steps = [step for test in record.tests for step in test.steps]
    assert all(step.host is not None and step.host.cpu_busy_percent is not None for step in steps)
    assert {step.foreign_write_bytes for step in steps} == {None}
    assert "not comparable" in str(record.info.device["other_io"])


def test_the_clock_that_fio_was_given_is_recorded(finished: Path) -> None:
    """Every job file names the clock that the run file records for fio. On a busy host, another run may use another
    clock.
    """
    record = read_run(finished)
    jobs = [step.job_file for test in record.tests for step in test.steps]
    assert jobs
    given = record.info.host["fio_clock"] == "the CPU's (TSC), tested before the run"
    assert all(("\nclocksource=cpu\n" in job) == given for job in jobs)


def test_every_test_is_purged_and_filled_exactly_twice(finished: Path) -> None:
    """Every test is purged first and then filled twice. Workload-independent preconditioning writes the active range
    twice with two jobs, including the remainder.
    """
    record = read_run(finished)
    length = record.info.active_range_length_bytes
    assert length == SIZE_BYTES
    for test in record.tests:
        assert [purge.method for purge in test.purges] == ["hole punched in the scratch file"]
        fills = [step for step in test.steps if step.kind is StepKind.FILL]
        amounts = [fill.measurement.write.bytes for fill in fills]
        assert amounts == ([] if test.name == "writesat" else [2 * length])


def test_steps_run_in_the_order_of_the_specification(finished: Path) -> None:
    """In every round, the read/write mix is the outer loop and the block size is the inner loop."""
    steps = [step for step in read_run(finished).tests[0].steps if step.kind is StepKind.ROUND]
    one_round = [(mix, kib * 1024) for mix in (100, 65, 0) for kib in (64, 4)]
    assert [(step.workload.read_percent, step.workload.block_size_bytes) for step in steps] == one_round * ROUNDS
    assert [step.number for step in steps] == [n for n in range(1, ROUNDS + 1) for _ in one_round]
    assert {step.workload.access for step in steps} == {Access.RANDOM}
    started = [step.started_s for step in steps]
    assert started == sorted(started)


def test_mixes_and_block_sizes_are_what_was_asked(finished: Path) -> None:
    """Each I/O transfers a whole block. A mix of 65/35 contains about 65 % reads. A step without a mix has only one
    direction.
    """
    for test in read_run(finished).tests:
        for step in test.steps:
            seen, workload = step.measurement, step.workload
            if step.kind is StepKind.FILL:
                continue
            # The byte count of a running stream may lag behind its I/O count.
            trailing = 0.0
            if step.kind is StepKind.CONTINUOUS:
                trailing = trailing_ios(seen.iops, workload) + BYTES_TOLERANCE * seen.ios
            assert seen.bytes / workload.block_size_bytes == pytest.approx(seen.ios, abs=trailing)
            if not seen.ios and step.kind is StepKind.CONTINUOUS:
                continue  # a busy host may leave a slice without an I/O
            share = 100 * seen.read.ios / seen.ios
            # The direction of each I/O is random. If there are few I/Os, as on a busy host, the share of reads deviates
            # more.
            part = workload.read_percent / 100
            chance = 4 * 100 * (part * (1 - part) / seen.ios) ** 0.5
            assert share == pytest.approx(workload.read_percent, abs=max(3 if chance else 0, chance))
            # A slice of a stream ends with a report from fio. A busy host may delay this report, and the end of a step.
            if step.kind is StepKind.ROUND:
                assert step.planned_s is not None
                assert step.planned_s - 0.7 <= seen.duration_s <= step.planned_s + LATE_S


def test_seconds_add_up_to_their_step(finished: Path) -> None:
    """The samples of a step contain all I/Os and all latencies of the step."""
    with RunFile(finished) as run_file:
        for test in run_file.record().tests:
            for step in test.steps:
                samples = run_file.samples(test.name, step)
                seen = step.measurement
                if step.kind is StepKind.FILL:
                    continue
                # The interval between the last reports of fio can be shorter than the shortest sample, by at most 50
                # ms.
                covered_s = sum(sample.duration_s for sample in samples)
                assert covered_s == pytest.approx(seen.duration_s, abs=0.051)
                assert sum(sample.both.ios for sample in samples) == seen.ios
                assert sum(sample.both.histogram.total for sample in samples) == seen.both.histogram.total
                # fio reads the counts and the histogram one after the other while its threads run. On a busy host, fio
                # may have to wait for a CPU in between. I/Os of a second with a high rate may then be counted in a
                # second with a low rate.
                fastest_iops = max(sample.both.ios / sample.duration_s for sample in samples)
                for sample in samples:
                    slack = trailing_ios(fastest_iops, step.workload) + 0.01 * sample.both.ios
                    assert sample.both.histogram.total == pytest.approx(sample.both.ios, abs=slack)


def test_fios_own_output_is_kept_and_agrees(finished: Path) -> None:
    """The raw JSON output of fio at the end of a step has the same counts as the step."""
    with RunFile(finished) as run_file:
        test = run_file.record().tests[0]
        for step in test.steps[:10]:
            document = json.loads(run_file.engine_output("iops", step))
            writes = sum(job["write"]["total_ios"] for job in document["jobs"])
            assert writes == step.measurement.write.ios
            assert "refill_buffers=1" in step.job_file
            assert "exec_prerun" not in step.job_file


def test_write_saturation_is_one_uninterrupted_stream(finished: Path) -> None:
    """The slices of write saturation follow each other without a gap. If a second fio process had to measure a slice,
    the slice is marked and this process also measures the rest.
    """
    steps = read_run(finished).tests[3].steps
    assert len(steps) == 6
    assert len({step.job_file for step in steps}) <= 2
    for before, step in pairwise(steps):
        if step.job_file == before.job_file:
            assert step.gap_s == pytest.approx(0, abs=0.002)
        else:
            assert DisturbanceCode.IDLE_BEFORE in {each.code for each in step.disturbances or ()}
    covered_s = sum(step.measurement.duration_s for step in steps)
    assert covered_s >= 6 - 0.7
    if len({step.job_file for step in steps}) == 1:
        assert covered_s <= 6 + LATE_S


def test_results_are_means_of_the_window(finished: Path, results: dict[str, object]) -> None:
    """Each cell of ``tkperf show --json`` is the mean of its rounds in the run file."""
    steps = read_run(finished).tests[0].steps
    for cell in sections(results)["IOPS"]["cells"]:  # type: ignore[attr-defined]
        key = msgspec.convert(cell["workload"], Workload)
        rounds = [step.measurement for step in steps if step.kind is StepKind.ROUND and step.workload == key]
        assert len(rounds) == cell["rounds"] == ROUNDS
        assert cell["all"]["iops"] == pytest.approx(sum(seen.iops for seen in rounds) / ROUNDS)
        maxima = [seen.both.latency_max_ns for seen in rounds]
        assert cell["all"]["latency_max_us"] == max(ns for ns in maxima if ns is not None) / 1000


class Tables(HTMLParser):
    """All tables of a page, as a mapping from captions to rows. Each row contains the texts of its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._text: list[str] = []
        self._rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th", "caption"):
            self._text = []

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "caption":
            self._rows = self.tables.setdefault("".join(self._text), [])
        if tag in ("td", "th"):
            self._rows[-1].append("".join(self._text).strip())


@pytest.fixture(scope="module")
def page(finished: Path) -> str:
    path = Path(tkperf("report", finished).strip())
    return path.read_text(encoding="utf-8")


def test_every_number_in_the_html_is_that_of_the_run_file(page: str, results: dict[str, object]) -> None:
    """Every number in the result tables of the HTML page equals the number in the run file, and no number is
    missing.
    """
    parser = Tables()
    parser.feed(page)
    expected: dict[tuple[str, str], Callable[[dict[str, Any]], float | None]] = {
        ("IOPS", "IOPS by"): lambda cell: cell["iops"],
        ("Latency", "Mean latency ("): lambda cell: cell["latency_mean_us"],
        ("Latency", "Maximum latency ("): lambda cell: cell["latency_max_us"],
        ("Latency", "p50 latency ("): lambda cell: cell["p50_us"],
        ("Throughput 128k", "Throughput (MB/s) by"): lambda cell: cell["megabytes_per_s"],
    }
    compared = 0
    for (section, caption), value in expected.items():
        ((title, rows),) = [table for table in parser.tables.items() if table[0].startswith(caption)]
        # A table of latencies uses a unit that suits its values.
        parts = {"(µs)": 1.0, "(ms)": 1e3, "(s)": 1e6}
        per_unit = next((part for unit, part in parts.items() if unit in title), 1.0)
        mixes = [int(head.split("/")[0]) for head in rows[0][1:]]
        found = {
            (mix, round(float(row[0]) * 1024)): text.rstrip("*!")
            for row in rows[1:]
            for mix, text in zip(mixes, row[1:], strict=True)
        }
        cells = sections(results)[section]["cells"]
        for cell in cells:  # type: ignore[attr-defined]
            key = (cell["workload"]["read_percent"], cell["workload"]["block_size_bytes"])
            number = value(cell["all"])
            assert found.pop(key) == format_number(number if number is None else number / per_unit)
            compared += 1
        assert not found
    assert compared == 6 + 3 * 1 + 2


def curves(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the points of a chart."""
    return list(spec["datasets"]["curves"])


def test_every_number_in_the_charts_is_that_of_the_run_file(page: str, results: dict[str, object]) -> None:
    """The convergence chart and the write saturation chart contain the measured values."""
    by_title = {spec["title"]["text"]: spec for spec in find_specs(page)}
    iops = sections(results)["IOPS"]
    drawn = {
        (row["x"], row["series"]): row["value"] for row in curves(by_title["Steady state convergence: RND writes"])
    }
    measured = {
        (each["number"], f"{cell['workload']['block_size_bytes'] / 1024:g}"): cell["all"]["iops"]
        for each in iops["rounds"]  # type: ignore[attr-defined]
        for cell in each["cells"]
        if cell["workload"]["read_percent"] == 0
    }
    # The page contains numbers that are rounded to six digits.
    assert drawn == pytest.approx(measured, rel=1e-5)
    stream = [row["value"] for row in curves(by_title["IOPS over time"])]
    slices = sections(results)["Write Saturation"]["slices"]
    kept = [each["values"]["all"]["iops"] for each in slices]  # type: ignore[attr-defined]
    assert stream == pytest.approx(kept, rel=1e-5)


def test_a_run_ends_with_its_verdict_and_headlines_which_show_has_with_the_tables(finished: Path) -> None:
    printed = (finished.parent / "stdout.txt").read_text()
    shown = tkperf("show", "--full", finished)
    assert len(printed.splitlines()) <= 25
    _name, verdict, *headlines = printed.splitlines()
    assert "a file was measured, not a device" in verdict
    for line in (verdict, *headlines[:7]):
        assert line in shown.splitlines()
    for words in ("IOPS", "Latency", "Throughput", "Write Saturation", "65/35", "Maximum latency"):
        assert words in shown


def test_nothing_keeps_running_and_nothing_is_left(finished: Path) -> None:
    """A finished run leaves neither a fio process nor a working folder. The scratch file remains, because it belongs to
    the user.
    """
    assert "fio" not in what_goes_on()  # tkperf waits for its fio before it ends
    require_nothing_goes_on()
    assert (finished.parent / "scratch").stat().st_size == SIZE_BYTES


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_run_keeps_everything_and_leaves_no_fio(tmp_path: Path, how: signal.Signals) -> None:
    """A run that was ended with Ctrl-C, SIGTERM or kill -9 keeps the measurements in a readable file, which also
    records how the run ended. No fio process remains.
    """
    process = start_tkperf(
        "ssd",
        "cut",
        tmp_path / "scratch",
        "--size",
        "64MiB",
        "--profile",
        PROFILE,
        "--output",
        tmp_path,
        "--progress",
        "json",
    )
    assert process.stdout is not None
    try:
        ended = 0
        for line in process.stdout:
            ended += json.loads(line)["event"] == "StepEnded"
            if ended == 4:
                break
        # Without this check, the test would prove nothing if no fio had been running.
        until = time.monotonic() + LATE_S
        while "fio" not in (found := what_goes_on()):
            assert time.monotonic() < until, found
            time.sleep(0.05)
    finally:
        os.kill(process.pid, how)
    _, err = process.communicate(timeout=300)
    if how is not signal.SIGKILL:
        assert process.returncode == 130
        assert "kept" in err
        assert "tkperf show" in err
        assert "fio" not in what_goes_on()  # tkperf waits for its fio before it ends
    record = read_run(tmp_path / "cut.tkperf")
    assert record.status is RunStatus.INTERRUPTED
    assert len(record.tests[0].steps) >= 4
    assert analyse(record).tests[0].sections
    assert "interrupted" in tkperf("show", tmp_path / "cut.tkperf")
    require_nothing_goes_on()


def test_a_killed_run_leaves_no_fio_that_would_run_for_long(tmp_path: Path) -> None:
    """If tkperf is killed with SIGKILL, its fio ends too. The load of this test lasts ten minutes, so that fio does not
    end by itself while the test waits.
    """
    options = ("--test", "writesat", "-rt", "600", "--progress", "json")
    process = start_tkperf(
        "ssd", "cut", tmp_path / "scratch", "--size", "64MiB", "--profile", PROFILE, "--output", tmp_path, *options
    )
    assert process.stdout is not None
    try:
        assert any(json.loads(line)["event"] == "SampleSeen" for line in process.stdout)
        assert "fio" in what_goes_on()
    finally:
        process.kill()
        process.communicate(timeout=300)
    require_nothing_goes_on()


def test_what_others_run_is_none_of_ours() -> None:
    """The search for remaining programs does not count programs that these tests did not start, even if their command
    lines resemble those of tkperf and fio.
    """
    words = ["sh", "-c", "read line", "exec_prerun", "job.fio"]
    started = [
        subprocess.Popen(words, stdin=subprocess.PIPE, env={**os.environ, MARK: by})
        for by in ("another test run", MARK_VALUE)
    ]
    try:
        until = time.monotonic() + 60
        while (found := what_goes_on()) != ["sh"]:
            assert time.monotonic() < until, found
            time.sleep(0.05)
    finally:
        for process in started:
            process.kill()
            process.communicate()


def test_fio_holds_the_lock_as_long_as_it_runs(tmp_path: Path) -> None:
    """fio keeps the device locked until it stops writing, even after tkperf was killed."""
    process = start_tkperf(
        "ssd",
        "cut",
        tmp_path / "scratch",
        "--size",
        "64MiB",
        "--profile",
        PROFILE,
        "--output",
        tmp_path,
        "--progress",
        "json",
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "SampleSeen":
            break
    inode = (tmp_path / "scratch").stat().st_ino
    until = time.monotonic() + 60
    while not (holding := fios_holding(inode, process.pid)) and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=300)
    assert holding


def fios_holding(inode: int, parent: int) -> list[str]:
    """For a tkperf process, return those of its fio processes that hold the file open through a locked descriptor."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if is_fio_of(folder, parent):
                for each in (folder / "fd").iterdir():
                    locked = "FLOCK" in (folder / "fdinfo" / each.name).read_text()
                    if locked and each.stat().st_ino == inode:
                        found.append(folder.name)
    return found


def is_fio_of(folder: Path, parent: int) -> bool:
    with suppress(OSError):
        status = (folder / "status").read_text()
        return f"PPid:\t{parent}\n" in status and (folder / "comm").read_text() == "fio\n"
    return False


def test_a_device_that_shrinks_under_the_run_ends_it(tmp_path: Path) -> None:
    """If the device shrinks during a run, the run ends with an error. The steps that were already completed are
    kept.
    """
    scratch = tmp_path / "scratch"
    process = start_tkperf(
        "ssd", "gone", scratch, "--size", "64MiB", "--profile", PROFILE, "--output", tmp_path, "--progress", "json"
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "Judged":
            break
    scratch.unlink()
    _, err = process.communicate(timeout=300)
    assert process.returncode == 4
    assert "Traceback" not in err
    record = read_run(tmp_path / "gone.tkperf")
    assert record.status is RunStatus.FAILED
    assert record.tests[0].verdicts


@pytest.mark.root
def test_the_devices_own_counters_agree(loop_device: Callable[..., Path]) -> None:
    """The kernel's counters of a loop device agree with the run file. The fill writes the range twice, and each step
    transfers the recorded number of bytes.
    """
    device = loop_device(size=SIZE_BYTES)
    stat = Path("/sys/block", device.name, "stat")

    def written_bytes() -> int:
        return int(stat.read_text().split()[6]) * 512

    counted: dict[str, int] = {}
    seen: list[StepEnded] = []

    def watch(event: Event) -> None:
        if isinstance(event, PurgeEnded):
            counted["purged"] = written_bytes()
        if isinstance(event, StepEnded):
            if event.record.kind is StepKind.FILL:
                counted["filled"] = written_bytes()
            seen.append(event)

    permit = grant_permit(hold_target(read_identity(device)), confirmed_id=str(device)).redeem()
    method = plan_purge(permit.identity).choose(None, device=str(device))
    active = ActiveRange(offset_bytes=0, length_bytes=permit.identity.capacity_bytes)
    permitted = PermittedDevice(permit=permit, ioengine=ChosenEngine(name="libaio"), active_range=active)
    engine = FioEngine(DeviceJobs(permitted), version="", cpus=2, seeds=Seeds(1))
    try:
        execute_run(
            RunParts(
                info=run_info(active_range_length_bytes=active.length_bytes),
                tests=[SSD_TESTS["iops"]],
                profile=load_profile(str(PROFILE)),
                engine=engine,
                target=DriveTarget(permit, method, WriteCache(permit, "keep")),
                observers=(watch,),
                clock=time.monotonic,
            )
        )
    finally:
        permit.release()
    assert active.length_bytes == SIZE_BYTES
    assert counted["filled"] - counted["purged"] == 2 * SIZE_BYTES
    total = sum(event.record.measurement.write.bytes for event in seen)
    assert written_bytes() - counted["purged"] == total


@pytest.mark.root
def test_members_are_filled_each_by_its_own_amount(loop_device: Callable[..., Path]) -> None:
    """If two devices are preconditioned at the same time, each of them is written with twice its own capacity. The
    kernel's counters confirm this.
    """
    devices = [loop_device(size=SIZE_BYTES) for _ in range(2)]

    def written_bytes(device: Path) -> int:
        return int(Path("/sys/block", device.name, "stat").read_text().split()[6]) * 512

    permits = [
        grant_permit(hold_target(read_identity(device)), confirmed_id=str(device)).redeem() for device in devices
    ]
    before = [written_bytes(device) for device in devices]
    engine = FioEngine(
        DeviceJobs(
            PermittedDevice(
                permit=permits[0],
                ioengine=ChosenEngine(name="libaio"),
                active_range=ActiveRange(offset_bytes=0, length_bytes=SIZE_BYTES),
                member_permits=tuple(permits),
            )
        ),
        version="",
        cpus=2,
        seeds=Seeds(1),
    )
    workload = load_profile(str(PROFILE)).workload(Access.SEQUENTIAL, 0, 128)
    try:
        fill = Fill(section="fill", workload=workload, passes=2)
        execution = engine.fill(fill, then=None, on_sample=lambda *_: None)
    finally:
        engine.close()
        for permit in permits:
            permit.release()
    after = [written_bytes(device) for device in devices]
    assert [late - early for late, early in zip(after, before, strict=True)] == [2 * SIZE_BYTES] * 2
    assert execution.measurement.write.bytes == 4 * SIZE_BYTES
