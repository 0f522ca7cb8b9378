"""Simulated hosts for tests. Each host has network namespaces, a real sshd, a user who may run tkperf as root, and its
own disks.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.test_bad_input import ENV

PROGRAMS = ("sshd", "ssh", "sudo", "ip", "unshare", "nsenter", "ssh-keygen")
USER = "measure"
_UID = 4711


def why_no_hosts() -> str | None:
    """Return the reason why this machine cannot run hosts in network namespaces, or None if it can."""
    if os.geteuid() != 0:
        return "needs root for network namespaces"
    missing = [name for name in PROGRAMS if find(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (scripts/setup.sh test)"
    done = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "mount", "-t", "tmpfs", "none", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode == 0 else f"no namespaces: {done.stderr.strip()[:100]}"


def find(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


@dataclass
class Host:
    """A host in separate namespaces. ``name`` is the name that SSH accepts."""

    name: str
    address: str
    folder: Path
    keeper: subprocess.Popen[bytes]
    link: str = ""
    sshd: subprocess.Popen[bytes] | None = None

    @property
    def user(self) -> str:
        return f"{USER}@{self.name}"

    @property
    def root(self) -> Path:
        return Path(f"/proc/{self.keeper.pid}/root")

    @property
    def batches(self) -> Path:
        """Return the folder of batches on the host, as a path outside the host."""
        return self.root / "var/lib/tkperf"

    def enter(self, *words: str | Path) -> list[str]:
        return ["nsenter", "-t", str(self.keeper.pid), "-n", "-m", "-u", "--", *map(str, words)]

    def run(self, *words: str | Path) -> str:
        return subprocess.run(self.enter(*words), check=True, capture_output=True, text=True).stdout

    @property
    def processes(self) -> list[int]:
        """Return the ids of all processes on this host, except the process that keeps its namespaces."""
        own = os.readlink(f"/proc/{self.keeper.pid}/ns/net")
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != self.keeper.pid:
                with suppress(OSError):
                    if os.readlink(entry / "ns/net") == own:
                        found.append(int(entry.name))
        return found

    def kill_all(self) -> None:
        while found := self.processes:
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self.sshd is not None:
                self.sshd.wait()
            time.sleep(0.05)

    def start_sshd(self) -> None:
        self.sshd = subprocess.Popen(
            self.enter(find("sshd") or "", "-D", "-E", self.folder / "sshd.log"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def kill_sshd(self) -> None:
        """Kill sshd and all its connections. Programs that were started through these connections continue."""
        for pid in self.processes:
            with suppress(OSError):
                # Since OpenSSH 9.8, the process of a connection is named sshd-session.
                if Path(f"/proc/{pid}/comm").read_text() in ("sshd\n", "sshd-session\n"):
                    os.kill(pid, signal.SIGKILL)
        if self.sshd is not None:
            self.sshd.wait()

    def boot(self) -> None:
        """Kill all processes of the host, as if its power failed, and start the host again."""
        self.kill_all()
        self.set_boot_id(os.urandom(16).hex())
        self.start_sshd()

    def set_boot_id(self, text: str) -> None:
        (self.folder / "boot_id").write_text(f"{text}\n")

    def set_tkperf(self, script: str) -> None:
        """Replace tkperf with a shell script."""
        path = self.folder / "bin/tkperf"
        new = path.with_name("new")
        new.write_text(script)
        new.chmod(0o755)
        new.rename(path)

    def restore_tkperf(self) -> None:
        self.set_tkperf(f'#!/bin/sh\nexec {sys.executable} -P -m tkperf "$@"\n')


@dataclass
class Lab:
    """A host that conducts batches, and other hosts that it reaches over SSH."""

    folder: Path
    here: Host
    hosts: list[Host] = field(default_factory=list)

    @property
    def tkperf(self) -> Path:
        """Return the path of tkperf on each host."""
        return self.folder / "bin/tkperf"

    def call(self, *words: str | Path, cwd: Path) -> list[str]:
        """Return the command line that calls tkperf on the conducting host, with ``cwd`` as the working directory."""
        return self.here.enter("env", f"--chdir={cwd}", sys.executable, "-P", "-m", "tkperf", *words)

    def run(self, *words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.call(*words, cwd=cwd),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            env=ENV,
            check=False,
        )

    def start(self, *words: str | Path, cwd: Path, log: Path) -> subprocess.Popen[bytes]:
        """Start tkperf and write its output to a file."""
        with log.open("ab") as output:
            return subprocess.Popen(
                self.call(*words, cwd=cwd), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=ENV
            )

    def cut(self, host: Host) -> None:
        """Block all further packets to the host."""
        self.here.run("ip", "link", "set", host.link, "down")

    def join(self, host: Host) -> None:
        self.here.run("ip", "link", "set", host.link, "up")


def wait_until(holds: Callable[[], object], what: Callable[[], str], within_s: float = 180.0) -> None:
    until_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until_s, f"never: {what()}"
        time.sleep(0.05)


@contextmanager
def make_lab(names: Sequence[str] = ("lab3", "lab4")) -> Iterator[Lab]:
    """Create hosts. Afterwards, end all processes that run on them."""
    folder = Path(tempfile.mkdtemp(prefix="tkperf-lab-"))
    folder.chmod(0o755)
    made: list[Host] = []
    try:
        key = _make_key(folder / "key")
        here = _make_host(folder, "here", "10.77.0.1", made)
        lab = Lab(folder=folder, here=here)
        for number, name in enumerate(names, 1):
            host = _make_host(folder, name, f"10.77.{number}.2", made)
            _connect(here, host, number)
            _admit(host, folder, key)
            lab.hosts.append(host)
        _configure(here, lab.hosts, folder)
        for host in lab.hosts:
            host.start_sshd()
        for host in lab.hosts:
            wait_until(lambda host=host: _answers(here, host), lambda: "sshd")  # type: ignore[misc]
        yield lab
    finally:
        for host in made:
            host.kill_all()
            with host.keeper:
                host.keeper.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _make_key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path.with_name(f"{path.name}.pub").read_text()


# The mounts exist only in this namespace, so the files of the machine do not change. The namespace begins with copies
# of the mounts of other tests. These copies are removed, because devices would remain in use as long as the host
# exists.
_PREPARE = """set -e
mount --make-rprivate /
findmnt --raw --noheadings --output TARGET | grep /pytest-of- | while read -r point; do
    umount --lazy "$(printf '%b' "$point")" || true
done
cp -a /etc "$2/etc" && mount --bind "$2/etc" /etc
mount -t tmpfs -o mode=755 none /run && mkdir -p /run/sshd
mount -t tmpfs -o mode=755,size=2g none /var/lib
mount -t tmpfs -o mode=755,size=16m none /opt
mkdir -p "$1/bin" && mount --bind "$2/bin" "$1/bin"
mount --bind "$2/boot_id" /proc/sys/kernel/random/boot_id
hostname "$3"
ip link set lo up
echo ready
exec sleep infinity
"""


def _make_host(folder: Path, name: str, address: str, made: list[Host]) -> Host:
    own = folder / name
    for each in (own, own / "bin", folder / "bin"):
        each.mkdir(exist_ok=True)
    (own / "boot_id").write_text(f"{name}\n")
    keeper = subprocess.Popen(
        ["unshare", "--net", "--mount", "--uts", "sh", "-c", _PREPARE, "sh", folder, own, name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    host = Host(name=name, address=address, folder=own, keeper=keeper)
    made.append(host)
    assert keeper.stdout is not None
    assert keeper.stdout.readline() == b"ready\n"
    host.restore_tkperf()
    return host


def _connect(here: Host, host: Host, number: int) -> None:
    host.link = f"to-{host.name}"
    subprocess.run(
        [
            "ip",
            "link",
            "add",
            host.link,
            "netns",
            str(here.keeper.pid),
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            str(host.keeper.pid),
        ],
        check=True,
    )
    here.run("ip", "address", "add", f"10.77.{number}.1/24", "dev", host.link)
    here.run("ip", "link", "set", host.link, "up")
    host.run("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
    host.run("ip", "link", "set", "eth0", "up")


def _admit(host: Host, folder: Path, key: str) -> None:
    """Permit the user to log in with a key. As root, the user may run only the command of tkperf."""
    etc, home = host.folder / "etc", host.folder / "home"
    home.mkdir()
    os.chown(home, _UID, _UID)
    with (etc / "passwd").open("a") as file:
        file.write(f"{USER}:x:{_UID}:{_UID}::{home}:/bin/sh\n")
    with (etc / "shadow").open("a") as file:
        file.write(f"{USER}:*:19000:0:99999:7:::\n")
    set_sudoers(host, f"{USER} ALL=(root) NOPASSWD: {folder}/bin/tkperf on-host\n")
    (etc / "ssh/authorized_keys").write_text(key)
    make_host_key(host)
    (etc / "ssh/sshd_config").write_text(
        "ListenAddress 0.0.0.0\nHostKey /etc/ssh/host_key\nAuthorizedKeysFile /etc/ssh/authorized_keys\n"
        "PasswordAuthentication no\nUsePAM no\nStrictModes no\nPidFile none\nLogLevel ERROR\n"
    )


def set_sudoers(host: Host, line: str) -> None:
    path = host.folder / "etc/sudoers.d/tkperf"
    path.unlink(missing_ok=True)
    path.write_text(line)
    path.chmod(0o440)


def make_host_key(host: Host) -> None:
    path = host.folder / "etc/ssh/host_key"
    for each in (path, path.with_name("host_key.pub")):
        each.unlink(missing_ok=True)
    _make_key(path)


def _configure(here: Host, hosts: Sequence[Host], folder: Path) -> None:
    """Write the SSH configuration of the user. The command lines of tkperf contain no part of this configuration."""
    ssh = here.folder / "etc/ssh"
    text, known = "", ""
    for host in hosts:
        text += f"Host {host.name}\n  HostName {host.address}\n  HostKeyAlias {host.name}\n"
        known += f"{host.name} {(host.folder / 'etc/ssh/host_key.pub').read_text()}"
    shutil.rmtree(ssh / "ssh_config.d", ignore_errors=True)
    (ssh / "ssh_config").write_text(
        f"{text}Host *\n  IdentityFile {folder}/key\n  IdentitiesOnly yes\n  UserKnownHostsFile /etc/ssh/known_hosts\n"
    )
    (ssh / "known_hosts").write_text(known)


def _answers(here: Host, host: Host) -> bool:
    done = subprocess.run(
        here.enter("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=2", host.user, "true"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0
