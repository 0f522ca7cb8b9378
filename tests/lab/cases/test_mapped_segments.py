"""Every I/O of a test is inside the segments, and no other part of the drive is used. The segments may be anywhere on
the drive.

The evidence is the kernel's own trace of the requests that it sent to the drive (block:block_rq_issue).
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from tests.lab.cases.conftest import Drive, Monitor, shell, tkperf
from tests.lab.cases.test_faults import no_fio_left
from tests.lab.cases.warm import start_warm
from tkperf.device.device_mapper import create_mapping
from tkperf.device.identity import read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.device.safety import find_objections
from tkperf.device.targets import DriveTarget, SegmentMapping, SegmentsTarget, build_table
from tkperf.device.write_cache import WriteCache
from tkperf.model.errors import RefusedError
from tkperf.model.segments import Segments, draw_segments

PROFILE = Path(__file__).parent / "segments.toml"
TRACING = Path("/sys/kernel/tracing")
# An example of a line: nvme-12 [000] 1.5: block_rq_issue: 259,0 WS 4096 () 2048 + 8 [fio]
ISSUED = re.compile(r"block_rq_issue: (\d+),(\d+) (\w+) \d+ \(.*?\) (\d+) \+ (\d+) \[(.*)\]")
MIB = 1 << 20


@dataclass(frozen=True)
class Issued:
    """One request to the drive. The start and the length are in bytes."""

    kind: str
    start: int
    length: int
    by: str


@contextmanager
def traced(drive: Drive) -> Iterator[list[Issued]]:
    """Yield the list of all requests to a drive, in order. The list is filled when the ``with`` statement ends."""
    shell(f"mountpoint -q {TRACING} || mount -t tracefs tracefs {TRACING}")
    number = os.stat(drive.path).st_rdev
    (TRACING / "trace").write_text("")
    (TRACING / "buffer_size_kb").write_text("65536")
    event = TRACING / "events/block/block_rq_issue"
    # The kernel's internal device numbers contain the major number in bit 20 and the higher bits.
    (event / "filter").write_text(f"dev == {os.major(number) << 20 | os.minor(number)}")
    (event / "enable").write_text("1")
    requests: list[Issued] = []
    try:
        yield requests
    finally:
        (event / "enable").write_text("0")
        for line in (TRACING / "trace").read_text().splitlines():
            if found := ISSUED.search(line):
                _, _, kind, start, length, by = found.groups()
                requests.append(Issued(kind, 512 * int(start), 512 * int(length), by))
        for cpu in TRACING.glob("per_cpu/cpu*/stats"):
            assert "overrun: 0" in cpu.read_text()


def start(folder: Path, drive: Drive, *arguments: object) -> ForkProcess:
    command = [
        "ssd",
        "case",
        drive.path,
        "--no-report",
        "--profile",
        PROFILE,
        "--output",
        folder,
        "--yes-destroy",
        drive.serial,
        "--progress",
        "plain",
        "--test",
        "iops",
        *arguments,
    ]
    with (folder / "log.txt").open("wb") as log:
        return start_warm(list(map(str, command)), log.fileno(), log.fileno())


@pytest.fixture(autouse=True, scope="module")
def device_mapper() -> None:
    """Load the device mapper. Most distributions load it at boot, for LVM or encryption."""
    shell("modprobe dm-mod && udevadm settle")


def layout(facts: dict[str, int]) -> Segments:
    """Return the segments. The function computes them again from the facts in the run file."""
    return draw_segments(
        count=facts["count"],
        amount_bytes=facts["count"] * facts["length_bytes"],
        within_bytes=facts["within_bytes"],
        seed=facts["seed"],
    )


def mapping_of(drive: Drive) -> Path | None:
    """Return the sysfs folder of the mapping that claims a drive. Return None if no mapping claims the drive."""
    holders = list(Path(f"/sys/class/block/{drive.name}/holders").glob("dm-*"))
    return holders[0].resolve() if holders else None


def wait_until(reached: Callable[[], object], run: ForkProcess | None = None) -> None:
    """Wait until a condition is true. The run must not end earlier. Only the time limit of the case ends the wait,
    because the machine is slow on a busy host.
    """
    while not reached():
        assert run is None or run.exitcode is None, "the run has ended"
        time.sleep(0.1)


def is_free(drive: Drive) -> bool:
    """Return whether a file system on the drive can be mounted."""
    try:
        os.close(os.open(drive.path, os.O_RDONLY | os.O_EXCL))
    except OSError:
        return False
    return True


def test_every_io_of_a_test_is_inside_and_each_segment_alike(nvme: Drive, tmp_path: Path) -> None:
    """Fills write to 80 % of the drive. All other I/O is inside the segments that were drawn from the seed, and is
    evenly distributed over them.
    """
    with traced(nvme) as requests:
        process = start(tmp_path, nvme)
        process.join(300)
        assert process.exitcode == 0, (tmp_path / "log.txt").read_text()
    assert mapping_of(nvme) is None
    assert is_free(nvme)
    shown = json.loads(tkperf("show", "--json", tmp_path / "case.tkperf").stdout)
    device = shown["info"]["device"]
    segments = layout(device["segments"])
    assert device["serial"] == nvme.serial
    assert device["layer"] == "device-mapper (linear)"
    assert device["segments"]["sha256"] == segments.check_sum
    assert len(segments.starts_bytes) == 2048
    # Only fills issue write requests of more than 8 KiB.
    filling = {n for n, each in enumerate(requests) if "W" in each.kind and each.length > 8192}
    within = nvme.size_bytes * 8 // 10 // 512 * 512
    filled = [requests[number] for number in filling]
    assert sum(each.length for each in filled) == within
    assert max(each.start + each.length for each in filled) <= within
    # When the drive is free again, udev reads it. These reads are left out.
    last = max(number for number, each in enumerate(requests) if each.by.startswith("fio"))
    tested = requests[max(filling) + 1 : last + 1]
    hits = Counter(segment_of(each, segments) for each in tested)
    assert hits[None] == 0, [each for each in tested if segment_of(each, segments) is None][:20]
    assert {each.length for each in tested} == {4096, 8192}
    # For a uniform choice among 2,048 segments, chi-squared has the mean 2,047 and the standard deviation 64.
    expected = len(tested) / 2048
    assert expected >= 5
    chi_squared = sum((hits[number] - expected) ** 2 / expected for number in range(2048))
    assert abs(chi_squared - 2047) < 5 * 64, (len(tested), chi_squared)
    found = {warning["code"] for warning in shown["warnings"]}
    assert not found & {"foreign-io", "missing-io", "step-repeated"}, shown["warnings"]
    (Path("/lab") / "segments.txt").write_text(
        f"{len(tested)} requests, {expected:.1f} a segment, chi-squared {chi_squared:.0f}, {found}"
    )


def segment_of(request: Issued, segments: Segments) -> int | None:
    """Return the number of the segment that contains the whole request. None means that no segment contains it."""
    number = bisect_right(segments.starts_bytes, request.start) - 1
    end = segments.starts_bytes[number] + segments.length_bytes
    return number if number >= 0 and request.start + request.length <= end else None


@pytest.mark.core
def test_a_killed_run_leaves_nothing_and_a_drive_in_use_is_refused(nvme: Drive, tmp_path: Path) -> None:
    """While the segments of a drive are measured, no other program can use the drive. If the run is killed, its fio and
    its mapping end too, and the drive receives no further writes.
    """
    before = nvme.written_bytes()
    process = start(tmp_path, nvme, "-rt", "60")
    try:
        wait_until(lambda: mapping_of(nvme) and nvme.written_bytes() - before > 16 * MIB, process)
        mapping = mapping_of(nvme)
        assert mapping is not None
        assert (mapping / "dm/name").read_text() == f"tkperf-segments-{nvme.name}\n"
        assert not is_free(nvme)
        said = [objection.text for objection in find_objections(read_identity(nvme.path))]
        assert any(f"used by {mapping.name} (segments that a tkperf measures" in text for text in said), said
        mounted = subprocess.run(["mount", nvme.path, "/mnt"], capture_output=True, check=False)
        assert mounted.returncode != 0
    finally:
        process.kill()
        process.join()
    wait_until(lambda: mapping_of(nvme) is None and no_fio_left())
    assert "tkperf" not in shell("dmsetup ls")
    assert is_free(nvme)
    before = nvme.written_bytes()
    time.sleep(2)
    assert nvme.written_bytes() == before


@pytest.mark.makes_trouble
def test_a_pulled_drive_ends_the_run_with_its_reason(nvme_pulled: Drive, monitor: Monitor, tmp_path: Path) -> None:
    """If the drive is pulled, the run ends and reports the reason. The mapping does not hide the reason, and tkperf
    removes the mapping.
    """
    before = nvme_pulled.written_bytes()
    process = start(tmp_path, nvme_pulled, "-rt", "60")
    wait_until(lambda: mapping_of(nvme_pulled) and nvme_pulled.written_bytes() - before > 16 * MIB, process)
    monitor("device_del", id=nvme_pulled.serial)
    process.join(200)
    assert process.exitcode in {4, 5}
    said = (tmp_path / "log.txt").read_text()
    assert "Traceback" not in said
    assert nvme_pulled.name in said
    assert "tkperf" not in shell("dmsetup ls")


def test_a_mapping_costs_little(tmp_path: Path) -> None:
    """Random reads through a mapping are hardly slower than reads of the disk itself. The test reads a disk without
    latency, with one outstanding I/O, and compares the best seconds of alternating measurements.
    """
    shell(
        "modprobe configfs; mount -t configfs none /sys/kernel/config; "
        "modprobe null_blk nr_devices=0 && cd /sys/kernel/config/nullb && mkdir case && "
        "cd case && echo 1024 >size && echo 1 >power && udevadm settle"
    )
    number = os.stat("/dev/case").st_rdev
    segments = draw_segments(count=2048, amount_bytes=32 * MIB, within_bytes=1024 * MIB * 8 // 10, seed=1)
    table = build_table(segments, f"{os.major(number)}:{os.minor(number)}")
    mapping = create_mapping("tkperf-segments-case", table)
    rates: dict[str, list[float]] = {"/dev/case": [], str(mapping.node): []}
    try:
        for path in [*rates] * 8:
            text = shell(
                f"fio --name=a --filename={path} --ioengine=psync --direct=1 --rw=randread --bs=4k "
                "--size=32m --runtime=2 --time_based --norandommap --output-format=json"
            )
            rates[path].append(json.loads(text)["jobs"][0]["read"]["iops"])
    finally:
        mapping.let_go()
        wait_until(lambda: not Path(f"/sys/block/{mapping.node.name}").exists())
        shell("rmdir /sys/kernel/config/nullb/case; modprobe -r null_blk")
    plain, mapped = (max(measured) for measured in rates.values())
    Path("/lab/segments-cost.txt").write_text(
        f"{plain:.0f} IOPS, mapped {mapped:.0f}: {1e6 / mapped - 1e6 / plain:.1f} us more than {1e6 / plain:.1f} us\n"
    )
    assert mapped > 0.5 * plain


def test_what_is_written_through_a_mapping_lies_in_its_segments(tmp_path: Path) -> None:
    """Data that is written through a mapping is in the segments of the loop device, byte for byte. If root creates
    another mapping on the device, the next check refuses to continue.
    """
    shell(f"truncate -s 64M {tmp_path}/image && losetup /dev/loop7 {tmp_path}/image")
    try:
        identity = read_identity("/dev/loop7")
        permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem()
        segments = draw_segments(count=64, amount_bytes=2 * MIB, within_bytes=identity.capacity_bytes * 8 // 10, seed=5)
        target = SegmentsTarget(SegmentMapping(permit, segments), DriveTarget(permit, None, WriteCache(permit, "keep")))
        target.recheck()
        assert target.permit.identity.capacity_bytes == 2 * MIB
        data = random.Random(1).randbytes(2 * MIB)
        with Path(target.permit.path).open("r+b") as mapping:
            mapping.write(data)
        shell("dmsetup create theirs --table '0 8 linear /dev/loop7 0'")
        with pytest.raises(RefusedError, match=r"loop7 is used by dm-\d+ \(a layer above it\)"):
            target.recheck()
        shell("dmsetup remove theirs")
        target.recheck()
        with pytest.raises(OSError, match="busy"):
            os.open("/dev/loop7", os.O_RDONLY | os.O_EXCL)
        target.take_away()
        target.take_away()
        permit.take_back()
        assert permit.descriptor >= 0
        permit.release()
        written = Path("/dev/loop7").read_bytes()
        expected = bytearray(64 * MIB)
        length = segments.length_bytes
        for number, start in enumerate(segments.starts_bytes):
            expected[start : start + length] = data[number * length : (number + 1) * length]
        assert written == expected
    finally:
        shell("losetup -d /dev/loop7")
