"""Finding a usable fio and the I/O engine that works on a device."""

from __future__ import annotations

import re

import msgspec

from tkperf.errors import EngineError, UsageError
from tkperf.process import run_command

# json+ histograms, exec_prerun and io_uring were checked with this version.
OLDEST_FIO = (3, 33)
IO_ENGINES = ("io_uring", "libaio")


def find_fio_version() -> str:
    """Version of the installed fio, e.g. ``fio-3.33``.

    Raises:
        EngineError: none, too old, or it does not say.
    """
    answer = run_command(["fio", "--version"], timeout_s=30)
    match = re.match(r"fio-(\d+)\.(\d+)", answer.stdout)
    if answer.status != 0 or match is None:
        said = (answer.stdout or answer.stderr).strip()[:200]
        raise EngineError(f"'fio --version' does not tell a version but: {said!r}; is it fio?")
    if (int(match[1]), int(match[2])) < OLDEST_FIO:
        oldest = ".".join(str(part) for part in OLDEST_FIO)
        raise EngineError(
            f"{answer.stdout.strip()} is too old: tkperf needs fio {oldest} or newer "
            "(Debian 12, Ubuntu 24.04 and later have it)"
        )
    return answer.stdout.strip()


def choose_ioengine(
    path: str, block_bytes: int, wanted: str | None, *, jobs: int, io_depth: int
) -> str:
    """The first I/O engine with which fio can read the device: io_uring, else libaio.

    It is tried with the jobs and the depth of the run: limits on locked memory or on
    asynchronous I/O show only then.

    Raises:
        UsageError: the wanted engine is not one of these.
        EngineError: none works, with fio's reason.
    """
    if wanted is not None and wanted not in IO_ENGINES:
        raise UsageError(f"--engine {wanted}: choose {' or '.join(IO_ENGINES)}")
    reasons = []
    for ioengine in (wanted,) if wanted else IO_ENGINES:
        reason = _why_not(path, block_bytes, ioengine, jobs, io_depth)
        if reason is None:
            return ioengine
        reasons.append(f"{ioengine}: {reason}")
    raise EngineError(f"fio cannot read {path} ({'; '.join(reasons)})")


def _why_not(path: str, block_bytes: int, ioengine: str, jobs: int, io_depth: int) -> str | None:
    """Read a few blocks with fio; what went wrong, or None."""
    answer = run_command(
        [
            "fio",
            "--name=probe",
            f"--filename={path.replace(':', chr(92) + ':')}",
            f"--ioengine={ioengine}",
            "--rw=read",
            f"--bs={block_bytes}",
            f"--size={8 * block_bytes}",
            f"--numjobs={jobs}",
            f"--iodepth={io_depth}",
            "--direct=1",
            "--thread=1",
            "--readonly",
            "--allow_file_create=0",
            "--invalidate=0",
            "--output-format=json",
        ],
        timeout_s=60,
    )
    start = answer.stdout.find("{")
    try:
        document = msgspec.json.decode(answer.stdout[start:] if start >= 0 else "")
        error = document["jobs"][0]["error"]
    except (msgspec.DecodeError, KeyError, IndexError, TypeError):
        error = "it printed no result"
    if answer.status == 0 and error == 0:
        return None
    words = (answer.stderr or answer.stdout).strip().splitlines()
    return words[0][:200] if words else f"error {error}"
