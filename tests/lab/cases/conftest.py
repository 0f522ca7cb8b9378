"""Fixtures for lab cases: drives that are selected by role, a check of the kernel log, and a command line.

A case receives a whole drive that is free and blank, and leaves it blank. After each case, the kernel log is read. An
error in the log fails the case unless the case is marked ``makes_trouble``.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab import disks
from tests.lab.cases.warm import run_warm
from tests.lab.disks import Disk

KERNEL_TROUBLE = re.compile(
    r"BUG:|Oops|WARNING:|Call Trace|general protection|I/O error|blocked for more than|"
    r"soft lockup|Buffer I/O"
)
# The emulated AHCI aborts a read-ahead (REQ_RAHEAD, 0x80000) that is in progress while hdparm sends a command.
EMULATED_TROUBLE = re.compile(r"op 0x0:\(READ\) flags 0x80\d{3}")
PROFILE = Path(__file__).parent / "lab.toml"
COMMAND_LIMIT_S = 600


# A case may take longer only if it is marked with its own limit. The limit prevents a device that does not answer from
# blocking the lab.
CASE_LIMIT_S = 600


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a line for each case immediately, with the failure if it failed. A boot of the lab takes a long time, and a
    case may never end.
    """
    if report.when == "call" or report.failed:
        case = report.nodeid.removeprefix("tests/lab/cases/")
        sys.stdout.write(f"\n{report.outcome:7} {report.duration:6.1f} s  {case}")
        if report.failed:
            sys.stdout.write(f" ({report.when})\n{report.longreprtext}\n")
        sys.stdout.flush()


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str]:
    """Return the word with which the summary counts a case, and no dot for the case."""
    counts = report.when == "call" or not report.passed
    return report.outcome if counts else "", "", ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """End a case that takes longer than its limit."""
    own = item.get_closest_marker("limit_s")
    limit_s = CASE_LIMIT_S if own is None else own.args[0]

    def give_up(*_: object) -> None:
        raise TimeoutError(f"the case took longer than {limit_s} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(limit_s)
    try:
        return (yield)
    finally:
        signal.alarm(0)


@dataclass(frozen=True, slots=True)
class Drive:
    """A disk of the virtual machine, with its device node in this boot."""

    serial: str
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def sysfs(self, attribute: str) -> str:
        return (Path("/sys/class/block") / self.name / attribute).read_text().strip()

    def write_pattern(self) -> None:
        """Fill the drive with data in which no sector is zero and no two sectors are equal. The data consists of copies
        of one random MiB, with a different number written into each sector of 4 KiB.
        """
        opened = os.open(self.path, os.O_WRONLY | os.O_DIRECT)
        with mmap.mmap(-1, 1 << 20) as block, os.fdopen(opened, "wb", buffering=0) as file:
            block.write(os.urandom(len(block)))
            for number in range(self.size_bytes // 4096):
                place = number * 4096 % len(block)
                block[place : place + 8] = number.to_bytes(8)
                if place + 4096 == len(block):
                    file.write(block)

    def is_zero(self) -> bool:
        # If all bytes are zero, cmp prints only "EOF on ...".
        done = subprocess.run(["cmp", "--silent", f"--bytes={self.size_bytes}", self.path, "/dev/zero"], check=False)
        return done.returncode == 0

    @property
    def size_bytes(self) -> int:
        return int(self.sysfs("size")) * 512

    def written_bytes(self) -> int:
        """Return the number of bytes written to the drive, according to the kernel's counters."""
        return int(self.sysfs("stat").split()[6]) * 512


def shell(command: str, *, limit_s: float = COMMAND_LIMIT_S) -> str:
    """Run a shell command of the lab, and require that it succeeds."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=limit_s, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    stdout: str
    stderr: str


def tkperf(*arguments: object, limit_s: float = COMMAND_LIMIT_S) -> Ended:
    """Run tkperf as a user would call it, but without reports, which take too long in the lab. Require that the output
    contains no traceback.
    """
    runs = arguments[0] in ("ssd", "hdd", "raid", "sweep", "batch", "resume")
    ended = Ended(*run_warm([*map(str, arguments), *(["--no-report"] if runs else [])], limit_s))
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended


def measure(folder: Path, drive: Drive, *arguments: object) -> dict[str, Any]:
    """Run the short SSD suite on a drive, and return the results in machine-readable form."""
    ended = tkperf(
        "ssd",
        "case",
        drive.path,
        "--profile",
        PROFILE,
        "--output",
        folder,
        "--yes-destroy",
        drive.serial,
        "--progress",
        "plain",
        *arguments,
    )
    assert ended.status == 0, ended.stderr
    shown = tkperf("show", "--json", folder / "case.tkperf")
    results = json.loads(shown.stdout)
    assert isinstance(results, dict)
    return results


def run_without_purge(
    folder: Path,
    device: Path,
    consent: object,
    test: object,
    *options: object,
    profile: Path,
    limit_s: float = COMMAND_LIMIT_S,
) -> Path:
    """Run one test on a device without a purge, and require that the run succeeds. Return the run file."""
    words = ("ssd", "case", device, "--profile", profile, "--output", folder, "--test", test, "--no-purge")
    ended = tkperf(*words, "--yes-destroy", consent, "--progress", "plain", *options, limit_s=limit_s)
    assert ended.status == 0, ended.stderr
    return folder / "case.tkperf"


def add_figures(file: Path, name: str, figures: object) -> None:
    """Add measured figures to a file that is kept after the lab machine has ended."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(kept | {name: figures}, indent=2) + "\n")


_found: dict[str, Path] = {}


def find(disk: Disk) -> Drive:
    """Return the drive with the device node that belongs to this serial number in this boot. The drive keeps its node
    until it is pulled.
    """
    if disk.serial not in _found or not _found[disk.serial].exists():
        _found[disk.serial] = _find_node(disk)
    return Drive(disk.serial, _found[disk.serial])


def _find_node(disk: Disk) -> Path:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        listed = json.loads(shell("lsblk --json --nodeps -o PATH,SERIAL,WWN"))["blockdevices"]
        for row in listed:
            if row["serial"] == disk.serial:
                return Path(row["path"])
        time.sleep(0.5)
    raise LookupError(f"no disk {disk.serial}")


_blank: set[str] = set()
"""The serial numbers of drives that were wiped at the end of a case, and that no case has used since."""


@pytest.fixture
def drive_of() -> Iterator[Callable[[Disk], Drive]]:
    """Yield a function that returns the drive of an entry in disks.py. The drive is blank before and after the case."""
    used: list[Drive] = []

    def get(disk: Disk) -> Drive:
        drive = find(disk)
        used.append(drive)
        if disk.serial not in _blank:
            subprocess.run(["wipefs", "-qa", drive.path], check=True)
            subprocess.run(["udevadm", "settle"], check=True)
        _blank.discard(disk.serial)
        return drive

    yield get
    for drive in used:
        if drive.path.exists() and subprocess.run(["wipefs", "-qa", drive.path], check=False).returncode == 0:
            _blank.add(drive.serial)
    subprocess.run(["udevadm", "settle"], check=True)


def _fixture(disk: Disk) -> Callable[..., Drive]:
    def give(drive_of: Callable[[Disk], Drive]) -> Drive:
        return drive_of(disk)

    return pytest.fixture(give)


nvme = _fixture(disks.NVME)
nvme_4kn = _fixture(disks.NVME_4KN)
nvme_pulled = _fixture(disks.NVME_PULLED)
sata = _fixture(disks.SATA)
sas = _fixture(disks.SAS)
scsi = _fixture(disks.VIRTIO_SCSI)
usb = _fixture(disks.USB)


@pytest.fixture
def members(drive_of: Callable[[Disk], Drive]) -> list[Drive]:
    """Return four drives for RAID sets."""
    return [drive_of(disk) for disk in disks.RAID_MEMBERS]


class Monitor:
    """QEMU's monitor, with which a case removes or damages drives."""

    def __init__(self) -> None:
        self._port = os.open("/dev/virtio-ports/lab.qmp", os.O_RDWR)
        self("qmp_capabilities")

    def __call__(self, command: str, **arguments: object) -> None:
        message = {"execute": command, "arguments": arguments}
        os.write(self._port, json.dumps(message).encode() + b"\n")
        time.sleep(0.3)

    @contextmanager
    def throttled(self, drive: str, *, iops: int) -> Iterator[None]:
        """Limit the drive to this number of I/Os per second, for reads and writes together. ``drive`` is the id of the
        device in QEMU.
        """
        no_limits = dict.fromkeys(("bps", "bps_rd", "bps_wr", "iops_rd", "iops_wr"), 0)
        self("block_set_io_throttle", id=drive, iops=iops, **no_limits)
        try:
            yield
        finally:
            self("block_set_io_throttle", id=drive, iops=0, **no_limits)

    def close(self) -> None:
        os.close(self._port)


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    connection = Monitor()
    yield connection
    connection.close()


def _read_log(log: int) -> list[str]:
    """Return all lines that the kernel has logged since the last call. Each read returns one line."""
    lines = []
    while True:
        try:
            lines.append(os.read(log, 8192).decode(errors="replace").partition(";")[2])
        except BlockingIOError:
            return lines
        except BrokenPipeError:
            continue  # the kernel has overwritten the oldest lines, and the next read returns the oldest remaining line


@pytest.fixture(autouse=True)
def kernel_log(request: pytest.FixtureRequest) -> Iterator[None]:
    """Require that the kernel log contains no error, unless the case is marked ``makes_trouble``."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(log, 0, os.SEEK_END)
    yield
    new = _read_log(log)
    os.close(log)
    if request.node.get_closest_marker("makes_trouble") is None:
        assert not [line for line in new if KERNEL_TROUBLE.search(line) and not EMULATED_TROUBLE.search(line)]
