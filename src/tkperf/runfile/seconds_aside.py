"""The seconds of a long run, taken apart by a process of its own while its steps are still being read.

Run as a module, this is that process: where a run file is comes in, its seconds go out.
"""

from __future__ import annotations

import os
import pickle
import sys
from dataclasses import fields
from pathlib import Path

from tkperf.aside import Aside
from tkperf.errors import RunFileError
from tkperf.runfile.kept_seconds import read_steps
from tkperf.runfile.limits import open_metered
from tkperf.runfile.schema import VERSION
from tkperf.seconds import Seconds, join, split
from tkperf.units import MIB

# Of smaller files they are there before another Python has begun.
LEAST_FILE_BYTES = 4 * MIB
"""About a day of a stream: a run of four tests has less than half of it."""


class SecondsAside:
    """The seconds of the steps in a run file. Make it before the steps are read."""

    def __init__(self, path: Path, status: os.stat_result) -> None:
        """``status``: of the file that is meant, should another take its place."""
        worth_it = status.st_size >= LEAST_FILE_BYTES and len(os.sched_getaffinity(0)) > 1
        self._process = Aside(__name__) if worth_it else None
        if self._process is not None:
            self._process.send(pickle.dumps((path.absolute(), _identify(status))))

    def take(self) -> dict[int, Seconds]:
        """By the sequence of their step, those that could be read; none from the second time on."""
        if self._process is None:
            return {}
        with self._process as process:
            answer = process.receive()
        self._process = None
        if answer is None:
            return {}
        sequences, counts, seconds = pickle.loads(answer)  # noqa: S301 - of our own process
        return dict(zip(sequences, split(seconds, counts), strict=True))

    def close(self) -> None:
        if self._process is not None:
            self._process.close()


def _identify(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _read(path: Path, identity: tuple[int, int]) -> bytes:
    """All seconds in a run file that is of the newest schema.

    Raises:
        RunFileError: it is not, or another by now.
    """
    db, meter = open_metered(path)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version != VERSION or _identify(path.stat()) != identity:
        raise RunFileError(f"{path} is another file by now, or of an older version")
    sequences = [sequence for (sequence,) in db.execute("SELECT sequence FROM step")]
    found = {}
    for sequence, seconds in zip(sequences, read_steps(db, sequences), strict=True):
        if isinstance(seconds, Seconds):
            meter.spend(len(fields(Seconds)) * len(seconds))
            found[sequence] = seconds
    counts = [len(seconds) for seconds in found.values()]
    return pickle.dumps(([*found], counts, join([*found.values()], [0.0] * len(found))))


if __name__ == "__main__":
    sys.stdout.buffer.write(_read(*pickle.load(sys.stdin.buffer)))  # noqa: S301 - of who started us
