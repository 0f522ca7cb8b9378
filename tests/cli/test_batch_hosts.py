"""Batches over hosts with a real sshd on each host. The tests check what users see, and what is lost after interrupted
connections, kills and reboots.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import signal
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.test_bad_input import assert_clear
from tests.cli.test_detach import SHORT, Terminal
from tests.hosts import Host, Lab, make_host_key, make_lab, set_sudoers, wait_until, why_no_hosts
from tkperf.batch.hosts.host_thread import _is_snapshot
from tkperf.batch.ledger import read_batch
from tkperf.model.batch_state import BatchState, DriveStage, find_snapshot
from tkperf.model.record import RunStatus
from tkperf.model.version import __version__
from tkperf.runfile.reader import read_run

MIB = 1 << 20
WORKLOAD = """
format = 1
name = "own"
title = "Reads"

[loads.reads]
access = "random"
read_percent = 100
block_size_kib = 4

[[phases]]
kind = "rounds"
section = "Reads"
loads = ["reads"]
step_s = 1
rounds = 1
"""

pytestmark = pytest.mark.skipif(why_no_hosts() is not None, reason=why_no_hosts() or "")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with make_lab() as made:
        yield made


@pytest.fixture
def folder(lab: Lab, request: pytest.FixtureRequest) -> Path:
    path: Path = lab.folder / request.node.name[:60]
    path.mkdir()
    for host in lab.hosts:
        shutil.rmtree(host.batches, ignore_errors=True)
    return path


def write_batch(lab: Lab, folder: Path, *drives: str, options: str = "") -> None:
    lines = ",\n  ".join(f"{{ {drive} }}" for drive in drives)
    (folder / "b.toml").write_text(
        f'suite = "ssd"\ntests = ["lat"]\nprofile = "{SHORT}"\ntkperf = "{lab.tkperf}"\ncompare_reads = false\n'
        f"drives = [\n  {lines}\n]\n{options}"
    )


def on(host: Host, drive: str, more: str = "") -> str:
    return f'drive = "{drive}", host = "{host.user}"{more}'


def state(folder: Path) -> BatchState:
    return read_batch(folder / "b.batch")


def test_drives_of_two_hosts_have_one_answer_and_their_run_files_here(lab: Lab, folder: Path) -> None:
    lab3, lab4 = lab.hosts
    write_batch(lab, folder, on(lab3, "sim:sata-ssd", ', slot = "bay 1"'), on(lab4, "sim:nvme-4kn"))
    # The order to a remote host contains the content of local files, because the paths of local files do not exist on
    # the remote hosts.
    (folder / "own.toml").write_text(WORKLOAD)
    batch = folder / "b.toml"
    batch.write_text(batch.read_text().replace('tests = ["lat"]', 'tests = ["lat", "./own.toml"]'))
    done = lab.run("batch", "b", "b.toml", "--progress", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    ends = {(one["drive"], one["host"]) for one in events if one.get("stage") == "done"}
    assert ends == {(1, lab3.user), (2, lab4.user)}
    assert [drive.stage for drive in state(folder).drives] == [DriveStage.DONE] * 2
    for host, name in ((lab3, "b-01"), (lab4, "b-02")):
        path = folder / f"{name}.tkperf"
        record = read_run(path)
        assert record.status is RunStatus.COMPLETE
        assert record.planned == ("lat", "own")
        mark = find_snapshot(record.info.host)
        assert mark is not None
        assert (mark.host, mark.running) == (host.user, False)
        assert path.stat().st_mode & 0o777 == 0o600
        assert record.info.host["hostname"] == host.name
        assert _is_snapshot(path, name, host.user)
        assert not _is_snapshot(path, "b-03", host.user)
        assert not _is_snapshot(path, name, "another")
    assert (folder / "b.html").exists()
    # This run file belongs to a drive of another machine, so the run cannot be resumed here.
    again = lab.run("resume", "b-01.tkperf", "--repeat", "lat", cwd=folder)
    assert_clear(again, 2, lab3.user, "cannot be resumed on this machine")
    # The batch is complete, so the resumption starts no measurement.
    over = lab.run("resume", "b.batch", "--no-report", cwd=folder)
    assert over.returncode == 0, over.stderr


def test_each_host_that_cannot_take_part_is_named_with_what_to_do(lab: Lab, folder: Path) -> None:
    lab3, lab4 = lab.hosts
    set_sudoers(lab3, "")
    key = lab4.folder / "etc/ssh/host_key"
    before = key.read_bytes()
    lab4.kill_all()
    make_host_key(lab4)
    lab4.start_sshd()
    try:
        write_batch(
            lab,
            folder,
            on(lab3, "sim:sata-ssd"),
            on(lab4, "sim:sata-ssd"),
            'drive = "sim:sata-ssd", host = "measure@10.99.0.1"',
        )
        done = lab.run("batch", "b", "b.toml", cwd=folder)
    finally:
        set_sudoers(lab3, f"measure ALL=(root) NOPASSWD: {lab.tkperf} on-host\n")
        lab4.kill_all()
        key.write_bytes(before)
        lab4.start_sshd()
    assert_clear(
        done,
        4,
        "3 of 3 hosts",
        f"measure ALL=(root) NOPASSWD: {lab.tkperf} on-host",
        f"ssh-keygen -R {lab4.name}",
        "measure@10.99.0.1: cannot be reached",
        "no drive was touched",
    )
    assert sorted(path.name for path in folder.iterdir()) == ["b.toml"]


def test_runs_go_on_whatever_becomes_of_link_sshd_and_batch(lab: Lab, folder: Path) -> None:
    """The runs of one batch with real I/O continue after an interrupted connection, a killed sshd, a killed and resumed
    batch and a reboot. Finally, Ctrl-C ends the batch.
    """
    lab3, lab4 = lab.hosts
    disks = [folder / f"{host.name}.img" for host in lab.hosts]
    write_batch(
        lab,
        folder,
        *(on(host, str(disk), ', size = "16MiB"') for host, disk in zip(lab.hosts, disks, strict=True)),
        options="[options]\nstep_s = 600\n",
    )
    log = folder / "log"

    def said(text: str) -> None:
        def comes() -> bool:
            assert text in log.read_text() or batch.poll() is None, log.read_text()
            return text in log.read_text()

        wait_until(comes, lambda: f"{text} in {log.read_text()}")

    batch = lab.start("batch", "b", "b.toml", "--no-report", cwd=folder, log=log)
    said("b-01 (measure@lab3): running")
    said("b-02 (measure@lab4): running")

    lab.cut(lab4)
    lab3.kill_sshd()
    said("no word from measure@lab3")
    lab3.start_sshd()
    said("measure@lab3 is heard of again")
    said("no word from measure@lab4")

    batch.kill()
    batch.wait()
    lab.join(lab4)
    left = state(folder)
    assert not left.is_under_way
    assert [drive.stage for drive in left.drives] == [DriveStage.RUNNING] * 2
    assert all("as of" in drive.text for drive in left.drives)
    stopped = lab.run("stop", "b.batch", cwd=folder)
    assert stopped.returncode == 2
    assert "tkperf resume b.batch" in stopped.stderr

    log.write_text("")
    batch = lab.start("resume", "b.batch", "--no-report", "--progress", "json", cwd=folder, log=log)
    # The batch prints this event of the run on lab4.
    said('"PhaseStarted","drive":2,"name":"b-02","slot":null,"host":"measure@lab4"')
    lab4.boot()
    said("measure@lab4 was rebooted meanwhile")
    os.kill(batch.pid, signal.SIGINT)
    assert batch.wait(300) == 130, log.read_text()

    assert [drive.stage for drive in state(folder).drives] == [DriveStage.STOPPED, DriveStage.KILLED]
    for name, host in (("b-01", lab3), ("b-02", lab4)):
        record = read_run(folder / f"{name}.tkperf")
        mark = find_snapshot(record.info.host)
        assert mark is not None
        assert mark.host == host.user
        assert record.status is RunStatus.INTERRUPTED


def test_a_typed_answer_begins_on_all_hosts_and_one_with_a_full_disk_waits(lab: Lab, folder: Path) -> None:
    lab3 = lab.hosts[0]
    lab3.run("mount", "-o", "remount,size=64m", "/var/lib")
    disks = [folder / f"{host.name}.img" for host in lab.hosts]
    for disk in disks:
        disk.write_bytes(b"\xa5" * (16 * MIB))
    write_batch(lab, folder, *map(on, lab.hosts, map(str, disks)))

    def runs_fio() -> bool:
        """Return whether fio is measuring. A call of ``fio --version`` does not count."""
        return bool(pids_with(lab3, b"--status-interval"))

    terminal = Terminal(call=lab.call("batch", "b", "b.toml", "--no-report", cwd=folder))
    try:
        terminal.read_until("(b 2) to continue")
        assert all(tkperfs(host) for host in lab.hosts)
        assert all(disk.read_bytes() == b"\xa5" * (16 * MIB) for disk in disks)
        terminal.type("b 2\n")
        wait_until(runs_fio, lambda: terminal.text)
        lab3.run("sh", "-c", "cat /dev/zero > /var/lib/fill 2> /dev/null || true")
        wait_until(lambda: not runs_fio(), lambda: terminal.text)
        # On a busy host, the batch may learn only after the disk is full that the run has begun.
        wait_until(lambda: state(folder).drives[0].stage is DriveStage.RUNNING, lambda: terminal.text)
        lab3.run("rm", "/var/lib/fill")
        assert terminal.wait() == 0, terminal.text
    finally:
        terminal.close()
        lab3.run("rm", "-f", "/var/lib/fill")
        lab3.run("mount", "-o", "remount,size=2g", "/var/lib")
    for name in ("b-01", "b-02"):
        assert read_run(folder / f"{name}.tkperf").status is RunStatus.COMPLETE


def test_holds_end_with_the_connection_and_nothing_is_lost(lab: Lab, folder: Path) -> None:
    """When the connection ends, a host releases its drive unchanged in three cases: the host has too little disk space,
    consent is missing, or the consent is for another drive.
    """
    lab3, lab4 = lab.hosts
    disk = folder / "a.img"
    disk.write_bytes(b"\xa5" * (16 * MIB))
    before = hashlib.sha256(disk.read_bytes()).hexdigest()
    write_batch(lab, folder, on(lab3, str(disk)), on(lab4, "sim:sata-ssd"))
    lab4.run("mount", "-o", "remount,size=1m", "/var/lib")
    try:
        full = lab.run("batch", "b", "b.toml", cwd=folder)
    finally:
        lab4.run("mount", "-o", "remount,size=2g", "/var/lib")
    assert_clear(full, 6, "1 of 2 hosts", lab4.user, "Make room")
    write_batch(lab, folder, on(lab3, str(disk)))
    refused = lab.run("batch", "b", "b.toml", cwd=folder)
    assert_clear(refused, 3, "tkperf cannot ask for consent, because there is no terminal")
    (folder / "yes").write_text(f"{disk}\n")
    others = lab.run("batch", "b", "b.toml", "--yes-destroy-file", "yes", cwd=folder)
    assert_clear(others, 3, f"measure@lab3:{disk}")
    wait_until(lambda: not tkperfs(lab3), lambda: "the holds end")
    assert hashlib.sha256(disk.read_bytes()).hexdigest() == before
    assert not (folder / "b.batch").exists()
    assert not list((lab3.batches / "b").glob("b.batch"))


def tkperfs(host: Host) -> list[int]:
    """Return the PIDs of tkperf on a host, including the PIDs of the ``sudo`` that started it."""
    return pids_with(host, b"on-host")


def pids_with(host: Host, word: bytes) -> list[int]:
    """For a host, return the PIDs of all processes whose command line contains the word."""
    found = []
    for pid in host.processes:
        with suppress(OSError):
            if word in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def make_archive(folder: Path, libc: str = "2.17", machine: str | None = None) -> Path:
    """Create an archive with the same form as an archive of ``scripts/archive.py``. The program in this archive starts
    the tkperf under test.
    """
    name = f"tkperf-{__version__}-linux-{machine or platform.machine()}"
    tree = folder / name
    (tree / "bin").mkdir(parents=True)
    (tree / "bin/tkperf").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m tkperf "$@"\n')
    (tree / "bin/tkperf").chmod(0o755)
    (tree / "README.txt").write_text(f"The machine needs glibc {libc} or newer")
    archive = folder / f"{name}.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tree, name)
    return archive


def test_an_archive_is_put_only_where_root_may_run_it(lab: Lab, folder: Path) -> None:
    lab3, lab4 = lab.hosts
    every = "measure ALL=(root) NOPASSWD: ALL\n"
    for host in lab.hosts:
        set_sudoers(host, every)
    write_batch(lab, folder, on(lab3, "sim:sata-ssd"), on(lab4, "sim:sata-ssd"))
    path = folder / "b.toml"
    path.write_text(path.read_text().replace(str(lab.tkperf), "/opt/bin/tkperf"))
    try:
        for libc, machine, says in (("9.99", None, "it has glibc"), ("2.17", "vax", "the archive is for vax")):
            (made := folder / says).mkdir()
            archive = make_archive(made, libc, machine)
            done = lab.run("batch", "b", "b.toml", "--push", archive, cwd=folder)
            assert_clear(done, 4, says, lab3.user, lab4.user)
        archive = make_archive(folder)
        (lab4.root / "opt").chmod(0o777)
        done = lab.run("batch", "b", "b.toml", "--push", archive, cwd=folder)
        assert_clear(done, 4, "others than root can write to /opt", lab4.user)
        assert not (lab4.root / "opt/bin/tkperf").is_symlink()
        (lab4.root / "opt").chmod(0o755)
        done = lab.run("batch", "b", "b.toml", "--push", archive, "--no-report", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert (lab3.root / "opt/bin/tkperf").is_symlink()
    finally:
        for host in lab.hosts:
            set_sudoers(host, f"measure ALL=(root) NOPASSWD: {lab.tkperf} on-host\n")


@pytest.mark.skipif("TKPERF_ARCHIVE" not in os.environ, reason="TKPERF_ARCHIVE is not set")
def test_the_archive_of_make_archive_measures_there(lab: Lab, folder: Path) -> None:
    """The archive that 'make archive' creates can measure on a host. The test runs only if TKPERF_ARCHIVE contains the
    path of this archive: dist/tkperf-VERSION-linux-MACHINE.tar.gz.
    """
    lab3 = lab.hosts[0]
    lab3.run("mount", "-o", "remount,size=1g", "/opt")
    set_sudoers(lab3, "measure ALL=(root) NOPASSWD: ALL\n")
    write_batch(lab, folder, on(lab3, str(folder / "a.img"), ', size = "16MiB"'))
    path = folder / "b.toml"
    path.write_text(path.read_text().replace(str(lab.tkperf), "/opt/bin/real"))
    archive = Path(os.environ["TKPERF_ARCHIVE"]).absolute()
    try:
        done = lab.run("batch", "b", "b.toml", "--push", archive, "--no-report", cwd=folder)
    finally:
        set_sudoers(lab3, f"measure ALL=(root) NOPASSWD: {lab.tkperf} on-host\n")
    assert done.returncode == 0, done.stderr
    assert read_run(folder / "b-01.tkperf").status is RunStatus.COMPLETE
