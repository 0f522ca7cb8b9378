"""The read speed of a device, found in a few seconds, without writing and without a permit."""

from __future__ import annotations

import msgspec

from tkperf.model.errors import EngineError
from tkperf.system.process import run_command

PROBE_S = 10
_BLOCK_BYTES = 128 * 1024
_IO_DEPTH = 32


def read_bytes_per_s(path: str, capacity_bytes: int, *, seconds: int = PROBE_S) -> float:
    """Return the bytes a second of sequential reads from the start of the device, over some seconds.

    Options keep fio from writing, and from flushing what other programs have not written yet, as it
    otherwise does before it opens a device.

    Raises:
        EngineError: fio is missing or cannot read the device, with its reason.
    """
    answer = run_command(
        [
            "fio",
            "--name=read-probe",
            f"--filename={path.replace(':', chr(92) + ':')}",
            "--ioengine=libaio",
            "--rw=read",
            f"--bs={min(_BLOCK_BYTES, capacity_bytes)}",
            f"--iodepth={_IO_DEPTH}",
            f"--runtime={seconds}",
            "--time_based",
            "--direct=1",
            "--thread=1",
            "--readonly",
            "--allow_file_create=0",
            "--invalidate=0",
            "--output-format=json",
        ],
        timeout_s=seconds + 60,
    )
    printed, brace, document = answer.stdout.partition("{")
    try:
        job = msgspec.json.decode(brace + document)["jobs"][0]
        read, wrong = job["read"], int(job["error"])
        bytes_per_s = read["io_bytes"] / (read["runtime"] / 1000) if read["runtime"] else 0.0
    except (msgspec.DecodeError, KeyError, IndexError, TypeError, ValueError):
        wrong, bytes_per_s = 1, 0.0
    if answer.status == 0 and not wrong and bytes_per_s > 0:
        return float(bytes_per_s)
    lines = (line.strip() for line in f"{answer.stderr}\n{printed}".splitlines())
    reason = next((line for line in lines if any(map(str.isalpha, line))), "it says nothing")
    raise EngineError(f"fio cannot read {path}: {reason[:200]}")
