"""Drives that fail during a measurement. The run ends, reports the reason, and keeps the steps that it has
completed.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.cases.conftest import Drive, Ended, Monitor, shell, tkperf
from tests.lab.cases.warm import start_warm
from tkperf.model.record import RunStatus
from tkperf.runfile.reader import read_run

PROFILE = Path(__file__).parent / "lab.toml"
LONGEST_S = 240


@contextmanager
def measuring(
    folder: Path, drive: Path, confirm: str, *arguments: object, test: str = "iops"
) -> Iterator[Callable[[], Ended]]:
    """Start a run and wait for its first step. Yield a function that waits for the end of the run."""
    words = ("ssd", "case", drive, "--profile", PROFILE, "--output", folder, "--yes-destroy", confirm, "-ssdt", test)
    options = ("--progress", "json", "--no-report", *arguments)
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as err, os.fdopen(reading) as events:
        run = start_warm([str(word) for word in (*words, *options)], writing, err.fileno())
        os.close(writing)
        for line in events:
            if json.loads(line)["event"] == "StepEnded":
                break

        def wait() -> Ended:
            out = events.read()
            run.join(LONGEST_S)
            assert run.exitcode is not None
            err.seek(0)
            return Ended(run.exitcode, out, err.read().decode())

        try:
            yield wait
        finally:
            run.kill()
            run.join()


def check_kept(folder: Path) -> str:
    """Check that the run file has the status "failed" and contains the earlier steps. Return the recorded reason."""
    record = read_run(folder / "case.tkperf")
    assert record.status is RunStatus.FAILED
    assert record.tests[0].steps
    assert tkperf("show", folder / "case.tkperf").status == 0
    return record.ended_because or ""


def no_fio_left() -> bool:
    return subprocess.run(["pgrep", "-x", "fio"], check=False, capture_output=True).returncode == 1


@pytest.mark.core
@pytest.mark.makes_trouble
def test_nvme_pulled_while_measuring(nvme_pulled: Drive, tmp_path: Path, monitor: Monitor) -> None:
    """If a drive is pulled out of its slot, the run ends with an error that names the drive. The earlier steps are
    kept, and no fio remains.
    """
    with measuring(tmp_path, nvme_pulled.path, nvme_pulled.serial, "-rt", 5) as wait:
        time.sleep(1)
        monitor("device_del", id=nvme_pulled.serial)
        ended = wait()
    assert ended.status in (4, 5), ended.stderr
    assert "Traceback" not in ended.stderr
    assert str(nvme_pulled.path) in ended.stderr
    check_kept(tmp_path)
    assert no_fio_left()


@pytest.mark.makes_trouble
def test_scsi_disk_removed_while_measuring(tmp_path: Path) -> None:
    """If the kernel deletes a SCSI disk during a run, as after a lost link, the run ends with an error that names the
    disk.
    """
    shell("modprobe scsi_debug dev_size_mb=96 lbpu=1 delay=0 lbprz=1")
    shell("udevadm settle")
    try:
        path = shell("lsblk -nrdo PATH,MODEL | awk '$2 ~ /scsi_debug/ {print $1}'").strip()
        serial = json.loads(tkperf("doctor", path, "--json").stdout)["confirm_id"]
        with measuring(tmp_path, Path(path), serial, "-rt", 15, "--write-cache", "keep") as wait:
            time.sleep(3)
            shell(f"echo 1 > /sys/block/{Path(path).name}/device/delete")
            ended = wait()
        assert ended.status in (4, 5), ended.stderr
        assert path in ended.stderr
        check_kept(tmp_path)
    finally:
        subprocess.run(["modprobe", "-r", "scsi_debug"], check=False)


@contextmanager
def mapped(drive: Drive, table: str) -> Iterator[Path]:
    shell(f"echo '{table}' | dmsetup create case && udevadm settle")
    try:
        yield Path(shell("readlink -f /dev/mapper/case").strip())
    finally:
        shell("udevadm settle; dmsetup remove --retry case")


@pytest.mark.makes_trouble
def test_io_errors_while_measuring(nvme: Drive, tmp_path: Path) -> None:
    """If the device begins to answer with I/O errors, the run ends. The message contains fio's own error text and the
    name of the device.
    """
    sectors = nvme.size_bytes // 512
    with mapped(nvme, f"0 {sectors} linear {nvme.path} 0") as path:
        with measuring(tmp_path, path, str(path), "-rt", 15) as wait:
            time.sleep(2)
            shell(f"dmsetup suspend case && echo '0 {sectors} error' | dmsetup load case && dmsetup resume case")
            ended = wait()
        assert ended.status in (4, 5), ended.stderr
        assert "Input/output error" in ended.stderr
        assert str(path) in ended.stderr
        check_kept(tmp_path)


@pytest.mark.makes_trouble
def test_a_hung_device_while_measuring(nvme: Drive, tmp_path: Path) -> None:
    """If the device stops answering, the run ends as soon as fio has not answered for the longest permitted time."""
    sectors = nvme.size_bytes // 512
    with mapped(nvme, f"0 {sectors} linear {nvme.path} 0") as path:
        with measuring(tmp_path, path, str(path), "-rt", 15) as wait:
            time.sleep(2)
            shell("dmsetup suspend --nolockfs --noflush case")
            try:
                ended = wait()
            finally:
                shell("dmsetup resume case")
        assert ended.status == 5, ended.stderr
        assert "did not answer for" in ended.stderr
        check_kept(tmp_path)


@pytest.mark.core
def test_swapped_under_its_name(members: list[Drive], tmp_path: Path) -> None:
    """If the node of the drive begins to refer to another drive, the run continues to measure the confirmed drive."""
    drive, other = members[:2]
    before, confirmed_before = other.written_bytes(), 0
    try:
        with measuring(tmp_path, drive.path, drive.serial, test="writesat") as wait:
            # The node is replaced without starting a program, because the run writes for only two more seconds.
            replace_node(drive.path, other)
            confirmed_before = drive.written_bytes()
            ended = wait()
    finally:
        replace_node(drive.path, drive)
    assert ended.status == 0, ended.stderr
    assert other.written_bytes() == before
    assert drive.written_bytes() > confirmed_before


def replace_node(path: Path, drive: Drive) -> None:
    """Let the node at this path refer to a drive."""
    path.unlink(missing_ok=True)
    major, minor = drive.sysfs("dev").split(":")
    os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(int(major), int(minor)))
