"""Batches on drives of several buses. A fault of one drive affects only this drive, and a drive that the batch does not
name remains unchanged.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.lab import disks
from tests.lab.cases.conftest import PROFILE, Drive, Monitor, find, shell, tkperf
from tests.lab.cases.test_faults import mapped, no_fio_left
from tkperf.analysis.batch_verdict import exit_code_of
from tkperf.batch.ledger import read_batch
from tkperf.model.batch_state import DriveStage, DriveState, find_place
from tkperf.model.errors import ExitCode
from tkperf.model.record import RunStatus
from tkperf.runfile.reader import read_run
from tkperf.runfile.writers import find_writer

# The events of all batches of this boot are written to this file, so that they can be read before the long boot ends.
EVENTS = Path("/lab/batch-events.jsonl")
# This rate is low enough for the emulated CPUs, even when four drives are measured at the same time.
SLOW_IOPS = 200
# At the beginning of a step of three seconds, QEMU admits a burst of I/Os, so 237 IOPS were measured at a limit of 200.
# test_accuracy.py tests how accurate a measured rate is.
MOST_SLOW_IOPS = SLOW_IOPS * 1.5
# The longest case measures four drives with two emulated CPUs.
LIMIT_S = 900
NO_LIMITS = dict.fromkeys(("bps", "bps_rd", "bps_wr", "iops_rd", "iops_wr"), 0)


@pytest.fixture(autouse=True)
def bystander(drive_of: Callable[[disks.Disk], Drive]) -> Iterator[None]:
    """Require that a drive with data receives no writes and does not change. The drive is on the controller of a
    measured drive, but belongs to no batch.
    """
    drive = drive_of(disks.SATA_SECOND)
    shell(f"dd if=/dev/urandom of={drive.path} bs=1M count=4 oflag=direct status=none")
    before = shell(f"sha256sum {drive.path}"), drive.written_bytes()
    yield
    assert (shell(f"sha256sum {drive.path}"), drive.written_bytes()) == before


@dataclass(slots=True)
class Batch:
    """A running batch. ``events`` contains the events that the batch has written so far."""

    folder: Path
    process: subprocess.Popen[str]
    events: list[dict[str, Any]] = field(default_factory=list)

    def follow(self) -> Iterator[dict[str, Any]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            with EVENTS.open("a") as kept:
                kept.write(line)
            self.events.append(event)
            yield event

    @property
    def drives(self) -> tuple[DriveState, ...]:
        return read_batch(self.folder / "b.batch").drives

    @property
    def stages(self) -> list[DriveStage]:
        return [drive.stage for drive in self.drives]

    @property
    def complaints(self) -> str:
        return (self.folder / "complaints.txt").read_text()


def short_profile(folder: Path) -> Path:
    """Return a profile that measures only two cells per round, on a quarter of the range. The profile is small because
    several drives share the emulated CPUs.
    """
    text = PROFILE.read_text()
    for old, new in (("block_sizes_kib = [4, 0.5]", "block_sizes_kib = [4]"), ("64MiB", "16MiB")):
        assert old in text
        text = text.replace(old, new)
    path = folder / "batch.toml"
    path.write_text(text)
    return path


@contextmanager
def measuring(folder: Path, paths: Sequence[Path], lines: Sequence[str], *others: object) -> Iterator[Batch]:
    """Start a batch in a separate process, with the given lines in the consent file."""
    command = [
        "tkperf",
        "batch",
        "b",
        "ssd",
        *paths,
        "--profile",
        short_profile(folder),
        "--output",
        folder,
        "-ssdt",
        "iops",
        "--no-report",
        "--progress",
        "json",
        "--yes-destroy-file",
        consent_file(folder, lines),
        *others,
    ]
    with (folder / "complaints.txt").open("w") as complaints:
        process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=complaints, text=True
        )
    batch = Batch(folder, process)
    try:
        yield batch
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        for drive in batch.drives if (folder / "b.batch").exists() else ():
            if drive.stage is DriveStage.RUNNING and drive.pid:
                with suppress(ProcessLookupError):
                    os.kill(drive.pid, signal.SIGKILL)


def consent_file(folder: Path, lines: Sequence[str]) -> Path:
    path = folder / "yes.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds. The time limit of the case ends the wait."""
    while not condition():
        time.sleep(1)


@pytest.fixture
def second_path(sas: Drive, monitor: Monitor) -> Iterator[Path]:
    """Add a second device node for the SAS drive behind another adapter. Both nodes report all properties of the same
    drive.
    """
    size = disks.SAS.size_bytes
    monitor("blockdev-add", driver="null-co", size=size, **{"node-name": "second", "read-zeroes": True})
    monitor(
        "device_add",
        driver="scsi-hd",
        id="second",
        drive="second",
        bus="vscsi.0",
        serial=sas.serial,
        wwn=0x5000C500B0000001,
        vendor="LAB",
        product="SASDISK",
        **{"scsi-id": 5},
    )

    def nodes() -> set[str]:
        listed = shell("udevadm settle; lsblk --nodeps --noheadings --output PATH,SERIAL").splitlines()
        found = {path for path, *serial in map(str.split, listed) if serial == [sas.serial]}
        return found - {str(sas.path)}

    wait_for(lambda: bool(nodes()))
    yield Path(*nodes())
    monitor("device_del", id="second")
    wait_for(lambda: not nodes())
    monitor("blockdev-del", **{"node-name": "second"})


def test_one_drive_twice(sas: Drive, sata: Drive, second_path: Path, tmp_path: Path) -> None:
    """If a batch names two paths to one drive, the batch is refused, and the message contains both names. Two
    namespaces of one drive are also refused. No file remains, and the drives receive no writes.
    """
    first = find(disks.NVME_TWO).path
    namespaces = (Path(f"{str(first)[:-1]}1"), Path(f"{str(first)[:-1]}2"))
    lines = consent_file(tmp_path, [sas.serial, sata.serial, disks.NVME_TWO.serial])
    output = tmp_path / "results"
    output.mkdir()

    def refuse(*given: object) -> str:
        words = ("ssd", *given, "--profile", PROFILE, "--output", output)
        ended = tkperf("batch", "b", *words, "--yes-destroy-file", lines)
        assert ended.status == ExitCode.WRONG_USE, ended.stderr
        assert not list(output.iterdir())
        planned = tkperf("plan", "batch", "b", *words, "--no-probe", "--json")
        assert planned.status == 0, planned.stderr
        assert "would-be-refused" in planned.stdout
        return ended.stderr

    before = sas.written_bytes(), sata.written_bytes()
    said = refuse(sata.path, sas.path, second_path)
    assert "two paths to one drive: both have the world-wide name naa.5000c500b0000001" in said
    assert str(sas.path) in said
    assert str(second_path) in said
    said = refuse(sata.serial, sas.serial)
    assert f"2 devices report the serial number '{sas.serial}'" in said
    assert str(second_path) in said
    said = refuse(*namespaces)
    assert all(str(path) in said for path in namespaces)
    assert (sas.written_bytes(), sata.written_bytes()) == before


@pytest.mark.limit_s(LIMIT_S)
@pytest.mark.makes_trouble
def test_one_slow_one_failing_one_pulled(
    sata: Drive, scsi: Drive, sas: Drive, drive_of: Callable[[disks.Disk], Drive], tmp_path: Path, monitor: Monitor
) -> None:
    """In a batch with drives on four buses, the healthy drive and the slow drive are measured to their end. For the
    failing drive and the pulled drive, the batch reports the failure.
    """
    pulled = drive_of(disks.NVME_PULLED_OF_BATCH)
    sectors = sas.size_bytes // 512
    monitor("block_set_io_throttle", id=scsi.serial, iops=SLOW_IOPS, **NO_LIMITS)
    try:
        with mapped(sas, f"0 {sectors} linear {sas.path} 0") as failing:
            trouble: dict[int, Callable[[], object]] = {
                3: lambda: shell(
                    f"dmsetup suspend case && echo '0 {sectors} error' | dmsetup load case && dmsetup resume case"
                ),
                4: lambda: monitor("device_del", id=pulled.serial),
            }
            paths = (sata.path, scsi.path, failing, pulled.path)
            lines = (f"{sata.serial}  # bay 1", scsi.serial, str(failing), pulled.serial)
            with measuring(tmp_path, paths, lines, "-rt", 3, "--no-purge", "--parallel", "all") as batch:
                for event in batch.follow():
                    if event["event"] == "StepEnded" and event["drive"] in trouble:
                        trouble.pop(event["drive"])()
                status = batch.process.wait()
    finally:
        monitor("block_set_io_throttle", id=scsi.serial, iops=0, **NO_LIMITS)
    assert "Traceback" not in batch.complaints
    state = read_batch(tmp_path / "b.batch")
    done, failed = state.drives[:2], state.drives[2:]
    expected = [DriveStage.DONE] * 2 + [DriveStage.FAILED] * 2
    assert batch.stages == expected, [(drive.stage, drive.text) for drive in state.drives]
    assert status == exit_code_of(state) in (ExitCode.DEVICE, ExitCode.FIO)
    for drive in state.drives:
        record = read_run(Path(drive.run_file))
        assert record.tests[0].steps
        place = find_place(record.info.host)
        assert place is not None
        assert (place.name, place.number, place.others) == ("b", drive.shown.number, 3)
    for drive in done:
        assert read_run(Path(drive.run_file)).status is RunStatus.COMPLETE
    for drive, path in zip(failed, paths[2:], strict=True):
        record = read_run(Path(drive.run_file))
        assert record.status is RunStatus.FAILED
        assert str(path) in drive.text
        # The ledger stores the reason and what the user can do next. The reason is one line of at most a thousand
        # characters.
        assert record.ended_because
        assert drive.text.startswith(record.ended_because[:60])
    assert "Input/output error" in failed[0].text
    reads = [
        event["iops"]
        for event in batch.events
        if event["event"] == "StepEnded" and event["drive"] == 2 and event["workload"]["read_percent"] == 100
    ]
    assert reads
    assert max(reads) <= MOST_SLOW_IOPS
    shown = tkperf("status", tmp_path / "b.batch")
    assert shown.status == 0, shown.stderr
    assert no_fio_left()


@pytest.mark.limit_s(LIMIT_S)
def test_a_killed_supervisor(nvme: Drive, sata: Drive, scsi: Drive, tmp_path: Path) -> None:
    """If the process of the batch is killed, the measurements that are already running continue. The waiting drive
    remains untouched until the user gives consent again, and is then measured.
    """
    drives = (nvme, sata, scsi)
    ledger = tmp_path / "b.batch"
    before = [drive.written_bytes() for drive in drives]
    options = ("-rt", 2, "--parallel", 2)
    with measuring(tmp_path, [one.path for one in drives], [one.serial for one in drives], *options) as batch:
        begun = set()
        for event in batch.follow():
            begun |= {event["drive"]} if event["event"] == "StepEnded" else set()
            if len(begun) == 2:
                break
        batch.process.kill()
        batch.process.wait()
        assert find_writer(ledger) is None
        # The batch starts its drives in the order of their slots.
        (left,) = {1, 2, 3} - begun
        last = drives[left - 1]

        def stages(others: DriveStage) -> list[DriveStage]:
            return [DriveStage.CONSENT_ENDED if one == left else others for one in (1, 2, 3)]

        assert batch.stages == stages(DriveStage.RUNNING)
        wait_for(lambda: DriveStage.RUNNING not in batch.stages)
        assert batch.stages == stages(DriveStage.DONE)
        assert last.written_bytes() == before[left - 1]
        done = [Path(drive.run_file) for drive in batch.drives if drive.shown.number in begun]
        runs = [path.read_bytes() for path in done]
        refused = tkperf("resume", ledger)
        assert refused.status == ExitCode.REFUSED, refused.stderr
        assert "--yes-destroy-file" in refused.stderr
        # The consent file must name only the drives that still need consent. It must not name drives that are
        # already done.
        refused = tkperf("resume", ledger, "--yes-destroy-file", tmp_path / "yes.txt")
        assert refused.status == ExitCode.REFUSED, refused.stderr
        assert last.written_bytes() == before[left - 1]
        ended = tkperf("resume", ledger, "--yes-destroy-file", consent_file(tmp_path, [last.serial]))
        assert ended.status == ExitCode.DONE, ended.stderr
        assert batch.stages == [DriveStage.DONE] * 3
        assert [path.read_bytes() for path in done] == runs
