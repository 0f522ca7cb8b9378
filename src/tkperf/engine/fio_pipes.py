"""The output of a running fio: its documents and its own words, read without ever making it wait."""

from __future__ import annotations

import fcntl
import os
import select
import time
from contextlib import suppress

from tkperf.engine.fio_output import DocumentSplitter
from tkperf.system.process import Process

# Room for several status documents, so that fio never waits for tkperf to read.
PIPE_BYTES = 1 << 20
# fio prints a document in up to sixty pieces within some ms. Each reading of one would take a CPU from the
# load: 16 I/Os outstanding in a job that is kept waiting sixty times a second are a part of its 99.9th percentile.
PIECES_S = 0.005
# fio reports each second. Each time tkperf wakes up to find nothing takes a CPU from the load, too.
LONGEST_READ_S = 1.5
# With more time than this left, reading the document can wait for its pieces.
UNHURRIED_S = 0.1
# An error message needs no more of fio's stderr than this.
KEPT_STDERR_BYTES = 8 << 10


class FioPipes:
    """The output pipes of one fio. The process closes them, not this class."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdout = process.stdout.fileno()
        self._stderr = process.stderr.fileno()
        self._open = [self._stdout, self._stderr]
        self._splitter = DocumentSplitter()
        self._stderr_text = b""
        self.ended = False
        for pipe in self._open:
            os.set_blocking(pipe, False)
        with suppress(OSError):  # a user's share of such room has a limit; less will do
            fcntl.fcntl(self._stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def read(self, longest_s: float) -> list[bytes]:
        """Return the documents completed within at most so long or LONGEST_WAIT_S; ``ended`` is set at the last."""
        ready, _, _ = select.select(self._open, [], [], max(0.0, min(longest_s, LONGEST_READ_S)))
        if self._stderr in ready:
            self._read_stderr()
        if self._stdout not in ready:
            return []
        if longest_s >= UNHURRIED_S:
            time.sleep(PIECES_S)
        data = os.read(self._stdout, PIPE_BYTES)
        self.ended = not data
        return list(self._splitter.feed(data)) if data else []

    def quote(self) -> str:
        """Return fio's own words, shortened, for an error message."""
        with suppress(BlockingIOError):
            if self._stderr in self._open:
                self._read_stderr()
        lines = [*self._stderr_text.decode(errors="replace").splitlines(), *self._splitter.notes]
        words = [line.strip() for line in lines if line.strip() and "Saving output" not in line]
        return f"; it said: {' | '.join(words[:3])[:400]}" if words else ""

    def forget(self) -> None:
        """Read nothing more: the pipes are closed."""
        self._open = []

    def _read_stderr(self) -> None:
        """Take in fio's standard error, keeping its first words only."""
        data = os.read(self._stderr, PIPE_BYTES)
        if not data:
            self._open = [self._stdout]
        self._stderr_text += data[: KEPT_STDERR_BYTES - len(self._stderr_text)]
