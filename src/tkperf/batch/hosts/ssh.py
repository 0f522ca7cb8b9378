"""A host and the connection to it. The connection uses OpenSSH with the user's own configuration, and tkperf runs on
the host as root.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from tkperf.batch.hosts.messages import (
    PROTOCOL,
    Clock,
    FromHost,
    Hello,
    HostSilentError,
    InvalidMessageError,
    Lines,
    Refused,
    ToHost,
    send,
)
from tkperf.model.batch_state import ConnectedHost
from tkperf.model.errors import DeviceError, ExitCode, InputFileError, TkperfError, reason_of
from tkperf.model.units import on_one_line
from tkperf.model.version import __version__
from tkperf.system.process import PIPE, ProcessTimeout, run_command, start_process, stop_process

COMMAND = "on-host"
HOSTS_FOLDER = Path("/var/lib/tkperf")
"""The folder of the batches on each host. It contains a folder for each batch."""
CONNECT_LIMIT_S = 60.0
# Forwarding is off, so that a host under test cannot use the user's keys or displays. A broken connection ends after 15
# s.
SSH = (
    "ssh",
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "ForwardAgent=no",
    "-o",
    "ForwardX11=no",
)
# The exit status of a shell that does not find a command. The status does not depend on the language of the shell's
# messages.
COMMAND_NOT_FOUND = 127
# Texts which show that sudo refused. Error messages of sudo begin with the name of the program. Refusals of sudo do not
# begin with this name, but refusals of sudo-rs do.
SUDO_REFUSES = ("sudo:", "sorry, user", "is not in the sudoers file", "is not allowed to run sudo")
_WORDS_BYTES = 8192
_GRACE_S = 2.0
Expected = TypeVar("Expected", bound=FromHost)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteHost:
    """A host: the name that is passed to SSH, and the path of tkperf on the host."""

    host: str
    tkperf: str

    @property
    def argv(self) -> list[str]:
        return [*SSH, "--", self.host, "sudo", "-n", "--", self.tkperf, COMMAND]

    def connect(self) -> SshConnection:
        """Start tkperf on the host, and wait for its first line.

        Raises:
            HostSilentError: the host cannot be reached, or another program answers.
            DeviceError: the host refuses, or a different version of tkperf is installed on it.
        """
        return SshConnection(self)

    def explain(self, words: str, status: int | None) -> TkperfError:
        """Return the error for a connection without a first line. ``words`` is the output of ssh and of the host on
        stderr.
        """
        # If sudo cannot resolve the host name, sudo only prints a warning and continues.
        words = "\n".join(line for line in words.splitlines() if "unable to resolve" not in line)
        said = words.lower()
        name = self.host.rpartition("@")[2]
        if "host identification has changed" in said:
            text = (
                "its key is not the one in known_hosts: another machine may answer. Compare the key on that host; if "
                "it is "
                f"right: ssh-keygen -R {name}, then ssh {self.host} once"
            )
        elif "host key verification failed" in said:
            text = (
                f"its key is not in known_hosts yet: ssh {self.host} once, and compare the fingerprint that ssh shows "
                "with "
                "the one on that host: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
            )
        elif "permission denied (" in said:
            text = f"SSH lets nobody in without a password: ssh-copy-id {self.host}"
        elif status == COMMAND_NOT_FOUND and "sudo" in said and self.tkperf not in words:
            text = "sudo is not installed: apt-get install sudo"
        elif self.tkperf in words and ("not found" in said or "no such file" in said):
            text = f"there is no {self.tkperf}: install tkperf {__version__} there, or give --push"
        elif any(each in said for each in SUDO_REFUSES):
            text = (
                "sudo asks for a password, or does not allow tkperf. This line in /etc/sudoers.d/tkperf there allows "
                "it: "
                f"{_find_user(self.host)} ALL=(root) NOPASSWD: {self.tkperf} {COMMAND}"
            )
        elif status == ExitCode.WRONG_USE:
            text = f"its {self.tkperf} does not know '{COMMAND}': install tkperf {__version__} there, or give --push"
        else:
            last = words.strip().splitlines()[-1:] or [f"ssh ended with {status}"]
            return HostSilentError(f"{self.host}: cannot be reached: {on_one_line(last[0])[:300]}")
        return DeviceError(f"{self.host}: {text}")


class SshConnection:
    """A connection to tkperf on a host. Close the connection in the thread that created the connection, because ssh
    ends together with this thread.
    """

    def __init__(self, remote_host: RemoteHost) -> None:
        self.remote_host = remote_host
        self._process = start_process(remote_host.argv, cwd=Path("/"), stdin=PIPE, stdout=PIPE, stderr=PIPE)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._lines: Lines[FromHost] = Lines(self._process.stdout.fileno(), FromHost)
        self._errors = self._process.stderr.fileno()
        os.set_blocking(self._errors, False)
        self._words = bytearray()
        try:
            self.hello = self._greet()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _greet(self) -> Hello:
        try:
            hello = self.receive(CONNECT_LIMIT_S)
        except InvalidMessageError as error:
            raise InvalidMessageError(
                f"{error}. Another program printed to stdout on the host before tkperf did. Check the start-up files "
                "of the user's shell, such as ~/.bashrc"
            ) from None
        except HostSilentError as error:
            status = self._wait()
            if self._words or status:
                raise self.remote_host.explain(self._words.decode(errors="replace"), status) from error
            raise
        if not isinstance(hello, Hello):
            raise HostSilentError(
                f"{self.remote_host.host}: tkperf on the host did not answer within {CONNECT_LIMIT_S:.0f} s. Check "
                "the load of the host, and try again"
            )
        if (hello.protocol, hello.tkperf_version) != (PROTOCOL, __version__):
            raise DeviceError(
                f"{self.remote_host.host} has tkperf {hello.tkperf_version} (protocol {hello.protocol}), but this "
                f"machine has tkperf {__version__} (protocol {PROTOCOL}). Update the older version, for example with "
                "--push"
            )
        return hello

    def order(self, order: ToHost) -> ConnectedHost:
        """Send an order, and return the host with the offset of its clock.

        Raises:
            HostSilentError: the connection has ended.
        """
        before_s = time.time()
        self.send(order)
        clock = self.expect(Clock, CONNECT_LIMIT_S)
        now_s = time.time()
        return ConnectedHost(
            host=self.remote_host.host,
            tkperf=self.remote_host.tkperf,
            boot_id=self.hello.boot_id,
            fio_version=self.hello.fio_version,
            ahead_s=clock.utc_s - (before_s + now_s) / 2,
            within_s=(now_s - before_s) / 2,
        )

    def send(self, message: ToHost) -> None:
        """Send a message.

        Raises:
            HostSilentError: the connection has ended. The error contains the name of the host.
        """
        assert self._process.stdin is not None
        try:
            send(self._process.stdin.fileno(), message)
        except HostSilentError as error:
            raise HostSilentError(f"{self.remote_host.host}: {error}") from None

    def receive(self, timeout_s: float) -> FromHost | None:
        """Return the next message. None means that no message arrived in time.

        Raises:
            HostSilentError: the connection has ended, or the line is not a message. The error contains the name of the
                host.
        """
        try:
            return self._lines.receive(timeout_s)
        except HostSilentError as error:
            raise type(error)(f"{self.remote_host.host}: {error}") from None
        finally:
            self._drain()

    def expect(self, kind: type[Expected], timeout_s: float) -> Expected:
        """Return the next message, which must be of this kind.

        Raises:
            HostSilentError: no message of this kind arrives.
            TkperfError: the host refuses.
        """
        message = self.receive(timeout_s)
        if isinstance(message, Refused):
            raise HostRefusedError(self.remote_host.host, message)
        if not isinstance(message, kind):
            came = "nothing" if message is None else type(message).__name__
            raise HostSilentError(f"{self.remote_host.host}: {came} came in place of {kind.__name__}")
        return message

    @property
    def taken_bytes(self) -> int:
        """The bytes of all messages so far."""
        return self._lines.taken_bytes

    def read_bytes(self, most: int, timeout_s: float) -> bytes:
        try:
            return self._lines.read_bytes(most, timeout_s)
        except HostSilentError as error:
            raise HostSilentError(f"{self.remote_host.host}: {error}") from None

    def close(self) -> None:
        process = self._process
        with suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        stop_process(process, grace_s=_GRACE_S)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()

    def _wait(self) -> int | None:
        until_s = time.monotonic() + _GRACE_S
        while (status := self._process.poll()) is None and time.monotonic() < until_s:
            self._drain()
            time.sleep(0.02)
        self._drain()
        return status

    def _drain(self) -> None:
        """Read stderr, and keep its beginning. If the pipe were full, ssh would stop."""
        with suppress(OSError):
            while piece := os.read(self._errors, _WORDS_BYTES):
                self._words += piece[: _WORDS_BYTES - len(self._words)]


class HostRefusedError(DeviceError):
    """A refusal by the tkperf of a host. ``exit_code`` is the exit code that the host reported."""

    def __init__(self, host: str, refused: Refused) -> None:
        super().__init__(f"{host}: {refused.text}")
        self.refusal = refused


def _find_user(host: str) -> str:
    """Return the user that SSH would use on a host."""
    if "@" in host:
        return host.partition("@")[0]
    with suppress(TkperfError):
        for line in run_command(["ssh", "-G", "--", host], timeout_s=10).stdout.splitlines():
            if line.startswith("user "):
                return line.split()[1]
    return "USER"


_NAME = re.compile(rf"(tkperf-{re.escape(__version__)}-linux-([a-z0-9_]+))\.tar\.gz")
_LIBC = re.compile(rb"needs glibc (\d+\.\d+) or newer")
_LIMIT_S = 900.0
_FOLDER = "/opt"
# The script does not unpack the archive on another architecture, with an older C library, or below a folder to which a
# user other than root can write. The name of the tree contains the hash of its archive, so a tree that is in use is not
# overwritten.
_SCRIPT = """set -eu
[ "$(uname -m)" = {machine} ] || {{ echo "it is a $(uname -m), and the archive is for {machine}" >&2; exit 9; }}
has=$(getconf GNU_LIBC_VERSION | cut -d" " -f2)
[ "$(printf "%s\\n" {libc} "$has" | sort -V | head -n 1)" = {libc} ] ||
    {{ echo "it has glibc $has, and the archive needs {libc}" >&2; exit 9; }}
exec sudo -n -- sh -eu -c '
umask 022
link=$1 folder=$2 name=$3 tree=$2/$3-$4
mkdir -p -- "$folder" "$(dirname -- "$link")"
for path in "$folder" "$(dirname -- "$link")"; do
    path=$(readlink -f -- "$path")
    while :; do
        if [ "$(stat -c %u -- "$path")" != 0 ] || [ -n "$(find "$path" -maxdepth 0 -perm /022)" ]; then
            echo "others than root can write to $path, so root runs nothing below it" >&2
            exit 9
        fi
        [ "$path" != / ] || break
        path=$(dirname -- "$path")
    done
done
if [ ! -e "$tree" ]; then
    new=$(mktemp -d -- "$folder/.tkperf-XXXXXX")
    trap "rm -rf -- \\"$new\\"" EXIT
    tar -xzf - --no-same-owner -C "$new"
    mv -T -- "$new/$name" "$tree"
fi
ln -sfn -- "$tree/bin/tkperf" "$link.new"
mv -T -- "$link.new" "$link"
' sh {link} {folder} {name} {digest}
"""


def push_archive(archive: Path, host: str, link: str) -> None:
    """Unpack the archive on a host, and let the link ``link`` lead to the unpacked files. This link is the path of
    tkperf on the host.

    Raises:
        InputFileError: the file is not an archive of this version.
        DeviceError: the host cannot run this tkperf, or does not accept the archive.
    """
    found = _NAME.fullmatch(archive.name)
    if found is None:
        raise InputFileError(
            f"{archive} is not an archive of tkperf {__version__}. Create the archive with 'make archive'"
        )
    try:
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
            script = _SCRIPT.format(
                machine=found[2],
                libc=_read_libc(archive, found[1]),
                link=link,
                folder=_FOLDER,
                name=found[1],
                digest=digest,
            )
            file.seek(0)
            _send(host, script, file.fileno())
    except OSError as error:
        raise InputFileError(f"{archive}: {reason_of(error)}") from error


def _read_libc(archive: Path, name: str) -> str:
    try:
        with tarfile.open(archive) as tar:
            readme = tar.extractfile(f"{name}/README.txt")
            found = None if readme is None else _LIBC.search(readme.read(10_000))
    except (tarfile.TarError, KeyError, EOFError) as error:
        raise InputFileError(
            f"{archive} is not an archive of tkperf: {error}. Create the archive with 'make archive'"
        ) from error
    if found is None:
        raise InputFileError(
            f"README.txt in the archive {archive} does not name the C library that tkperf needs. Create the archive "
            "again with 'make archive'"
        )
    return found[1].decode()


def _send(host: str, script: str, content: int) -> None:
    process = start_process([*SSH, "--", host, script], cwd=Path("/"), stdin=content, stdout=PIPE, stderr=PIPE)
    with process:
        try:
            _, words = process.communicate(timeout=_LIMIT_S)
        except ProcessTimeout:
            raise DeviceError(
                f"{host}: the installation of tkperf on the host did not end within {_LIMIT_S / 60:.0f} min. Check "
                "the connection to the host, and try again"
            ) from None
        finally:
            stop_process(process, grace_s=1.0)
    if process.returncode:
        last = words.decode(errors="replace").strip().splitlines()[-1:] or ["ssh failed"]
        raise DeviceError(f"{host}: tkperf could not be installed on the host: {on_one_line(last[0])[:300]}")
