"""Put this version's archive, which ``scripts/archive.py`` makes, on a host where root runs it."""

from __future__ import annotations

import hashlib
import re
import tarfile
from pathlib import Path

from tkperf.batch.hosts.ssh import SSH
from tkperf.model.errors import DeviceError, InputFileError, reason_of
from tkperf.model.units import on_one_line
from tkperf.model.version import __version__
from tkperf.system.process import PIPE, ProcessTimeout, start_process, stop_process

_NAME = re.compile(rf"(tkperf-{re.escape(__version__)}-linux-([a-z0-9_]+))\.tar\.gz")
_LIBC = re.compile(rb"needs glibc (\d+\.\d+) or newer")
_LIMIT_S = 900.0
_FOLDER = "/opt"
# Nothing is unpacked on another architecture or an older C library, or below a folder that is not root's alone.
# A tree has the hash of its archive: one that runs meanwhile stays.
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


def push_archive(archive: Path, host: str, connection: str) -> None:
    """Unpack the archive on a host, and make ``connection``, the path of tkperf there, lead to it.

    Raises:
        InputFileError: it is no archive of this version.
        DeviceError: the host cannot run it, or does not take it.
    """
    found = _NAME.fullmatch(archive.name)
    if found is None:
        raise InputFileError(f"{archive} is no archive of tkperf {__version__}: 'make archive' makes it")
    try:
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
            script = _SCRIPT.format(
                machine=found[2],
                libc=_read_libc(archive, found[1]),
                connection=connection,
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
        raise InputFileError(f"{archive} is no archive of tkperf: {error}") from error
    if found is None:
        raise InputFileError(f"{archive} does not name the C library that it needs")
    return found[1].decode()


def _send(host: str, script: str, content: int) -> None:
    process = start_process([*SSH, "--", host, script], cwd=Path("/"), stdin=content, stdout=PIPE, stderr=PIPE)
    with process:
        try:
            _, words = process.communicate(timeout=_LIMIT_S)
        except ProcessTimeout:
            raise DeviceError(f"{host}: tkperf is not there after {_LIMIT_S / 60:.0f} min") from None
        finally:
            stop_process(process, grace_s=1.0)
    if process.returncode:
        last = words.decode(errors="replace").strip().splitlines()[-1:] or ["ssh failed"]
        raise DeviceError(f"{host}: tkperf is not put there: {on_one_line(last[0])[:300]}")
