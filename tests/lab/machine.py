"""The lab machine: QEMU with emulated drives of every bus, which Debian's real drivers control.

The machine is booted for one job, or for several consecutive jobs with the same disks. A job runs as root and sees the
host's files through a writable layer in memory. A job can destroy only the disks in disks.py, which are sparse files
created for this boot.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.lab.disks import DISKS, Disk
from tests.lab.kernel import Kernel, LabUnavailableError, get_kernel

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".lab"
KERNEL_COMMAND_LINE = (
    # On a busy host, the interrupts of the emulated timer may arrive too late for the kernel's check of this timer. A
    # failed check causes a kernel panic.
    "no_timer_check console=ttyS0 loglevel=4 panic=-1 mitigations=off cryptomgr.notests audit=0 apparmor=0 "
    "nvme_core.io_timeout=10"
)
# Under TCG, the machine begins its job after 6 s to 16 s. A machine that freezes under KVM never begins its job.
PROBE_LIMIT_S = 20.0
# The machine writes its uptime every 20 s (guest/start). On a busy host, a minute may pass between two writes,
# but never four minutes.
FROZEN_AFTER_S = 240.0


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job.

    If ``status`` is None, the machine ended without finishing the job. ``frozen`` contains the last uptime that the
    machine wrote before it froze, and the state of its CPU. If ``frozen`` is None, the machine did not freeze before it
    ended or reached its time limit.
    """

    status: int | None
    output: str
    kernel_log: str
    frozen: str | None = None


def run_job(
    *boots: str, limit_s: float, disks: tuple[Disk, ...] = DISKS, keep: Path | None = None, echo: bool = True
) -> JobResult:
    """Boot the machine, run a shell script as root in the checkout, and power off.

    Args:
        boots: a script for each boot of the same machine. All scripts except the last may reset the machine.
        limit_s: the machine is stopped after this time in each boot. It is stopped earlier if it freezes.
        keep: folder that receives the files that the job leaves in /lab.
        echo: whether to print the job's output while the job runs.

    Raises:
        LabUnavailableError: QEMU or the kernel is not available on this machine.
    """
    kernel = get_kernel(CACHE)
    accelerator = _choose_accelerator(kernel)
    with tempfile.TemporaryDirectory(prefix="tkperf-lab-", dir="/var/tmp") as folder:
        share = Path(folder) / "share"
        share.mkdir()
        for disk in disks:
            with (Path(folder) / disk.serial).open("wb") as image:
                image.truncate(disk.size_bytes)
        frozen = None
        for job in boots:
            for left in ("status", "dmesg.txt", "uptime"):
                (share / left).unlink(missing_ok=True)
            frozen = _boot(kernel, accelerator, Path(folder), job, disks, limit_s, echo)
            if frozen is not None:
                break
        if keep is not None:
            shutil.copytree(share, keep, dirs_exist_ok=True)
        return JobResult(
            status=int(_text(share / "status") or -1) if (share / "status").exists() else None,
            output=_text(share / "output.txt"),
            kernel_log=_text(share / "dmesg.txt") or _text(Path(folder) / "console.txt"),
            frozen=frozen,
        )


def _choose_accelerator(kernel: Kernel) -> str:
    """Return "kvm" if this kernel boots under KVM, and "tcg" otherwise. The answer is stored in the folder of the
    kernel.
    """
    if shutil.which("qemu-system-x86_64") is None:
        raise LabUnavailableError("'qemu-system-x86_64' is not installed (qemu-system-x86)")
    kept = kernel.image.parent / "accelerator"
    if kept.exists():
        return kept.read_text()
    accelerator = "tcg"
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        with tempfile.TemporaryDirectory(prefix="tkperf-lab-", dir="/var/tmp") as folder:
            (Path(folder) / "share").mkdir()
            with suppress(LabUnavailableError):
                _boot(kernel, "kvm", Path(folder), "true", (), PROBE_LIMIT_S, echo=False)
            if _text(Path(folder) / "share/status").strip() == "0":
                accelerator = "kvm"
    kept.write_text(accelerator)
    return accelerator


def _boot(
    kernel: Kernel, accelerator: str, folder: Path, job: str, disks: tuple[Disk, ...], limit_s: float, echo: bool
) -> str | None:
    """Boot the machine for a job. Return a description if the machine froze, and None otherwise."""
    share = folder / "share"
    shutil.copy(Path(__file__).parent / "guest/start", share / "start")
    (share / "job").write_text(job)
    (share / "environment").write_text(
        f"LAB_MODULES={shlex.quote(str(kernel.modules))}\nLAB_CHECKOUT={shlex.quote(str(CHECKOUT))}\n"
    )
    for socket_ in ("qmp", "control", "monitor"):
        (folder / socket_).unlink(missing_ok=True)
    command = [
        "qemu-system-x86_64",
        "-M",
        "q35",
        "-accel",
        accelerator,
        "-cpu",
        # Under emulation, "rep movsb" copies one byte at a time. Without the CPU flag erms, the kernel of the machine
        # copies and clears memory in larger units.
        "host" if accelerator == "kvm" else "max,-erms",
        "-smp",
        # On a busy host, a machine with two emulated CPUs needs twice as much CPU time for the same cases as a machine
        # with one emulated CPU, because each CPU waits for the other.
        "2" if accelerator == "kvm" else "1",
        "-m",
        "3072",
        "-nodefaults",
        "-display",
        "none",
        "-no-reboot",
        "-rtc",
        "base=utc",
        "-kernel",
        str(kernel.image),
        "-initrd",
        str(kernel.initramfs),
        "-append",
        KERNEL_COMMAND_LINE,
        "-serial",
        f"file:{folder / 'console.txt'}",
        "-fsdev",
        "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
        "-device",
        "virtio-9p-pci,fsdev=host,mount_tag=host",
        "-fsdev",
        f"local,id=lab,path={share},security_model=none",
        "-device",
        "virtio-9p-pci,fsdev=lab,mount_tag=lab",
        # Through this connection, a test in the virtual machine can unplug disks of this machine.
        "-qmp",
        f"unix:{folder / 'qmp'},server=on,wait=off",
        "-chardev",
        f"socket,id=control,path={folder / 'control'},server=on,wait=off",
        "-device",
        "virtio-serial-pci",
        "-device",
        "virtserialport,chardev=control,name=lab.qmp",
        # Through this connection, the registers of the CPU can be read if the machine freezes.
        "-monitor",
        f"unix:{folder / 'monitor'},server=on,wait=off",
    ]
    command += [argument for disk in disks for argument in disk.arguments(folder / disk.serial)]
    for port in dict.fromkeys(disk.root_port for disk in disks if disk.root_port):
        slot = int(port.removeprefix("port"))
        command[command.index("-qmp") : command.index("-qmp")] = [
            "-device",
            f"pcie-root-port,id={port},chassis={slot},slot={slot}",
        ]
    with (folder / "qemu.txt").open("wb") as log:
        qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        threading.Thread(target=_relay, args=(folder, qemu), daemon=True).start()
        frozen = _watch(qemu, share, limit_s, echo)
        if frozen is not None:
            frozen = f"{frozen}\n{_ask_monitor(folder / 'monitor', 'info registers')}"
    finally:
        qemu.kill()
        qemu.wait()
    complaint = _text(folder / "qemu.txt").strip()
    if complaint and not (share / "status").exists():
        raise LabUnavailableError(f"QEMU said: {complaint[-600:]}")
    return frozen


def _watch(qemu: subprocess.Popen[bytes], share: Path, limit_s: float, echo: bool) -> str | None:
    """Wait until the machine ends. Return a description if the machine froze, and None otherwise."""
    output = share / "output.txt"
    until = time.monotonic() + limit_s
    shown = 0
    uptime, written_at = "", time.monotonic()
    while time.monotonic() < until:
        ended = qemu.poll() is not None
        if echo and output.exists():
            text = output.read_bytes()
            sys.stdout.write(text[shown:].decode(errors="replace"))
            sys.stdout.flush()
            shown = len(text)
        if ended:
            return None
        if (newer := _text(share / "uptime").strip()) != uptime:
            uptime, written_at = newer, time.monotonic()
        if uptime and time.monotonic() - written_at > FROZEN_AFTER_S:
            return f"it stood still {uptime} s after its start: for {FROZEN_AFTER_S:.0f} s nothing came from it"
        time.sleep(0.5)
    return None


def _ask_monitor(path: Path, command: str) -> str:
    """Return the answer of QEMU's monitor, or the reason why it did not answer."""
    answer = b""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.settimeout(5.0)
        try:
            monitor.connect(str(path))
            monitor.sendall(command.encode() + b"\n")
            while data := monitor.recv(65536):
                answer += data
        except TimeoutError:
            pass
        except OSError as error:
            return f"QEMU's monitor: {error}"
    # The monitor echoes the command as if it were typed, with codes that move the cursor.
    return answer.decode(errors="replace").rpartition(f"{command}\x1b[K\r\n")[2].replace("\r", "")


def _relay(folder: Path, qemu: subprocess.Popen[bytes]) -> None:
    """Connect the machine's serial port to QEMU's monitor."""
    ends: list[socket.socket] = []
    for name in ("qmp", "control"):
        end = socket.socket(socket.AF_UNIX)
        while qemu.poll() is None:
            try:
                end.connect(str(folder / name))
                break
            except OSError:
                time.sleep(0.1)
        ends.append(end)

    def pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            return

    monitor, control = ends
    threading.Thread(target=pump, args=(control, monitor), daemon=True).start()
    pump(monitor, control)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
