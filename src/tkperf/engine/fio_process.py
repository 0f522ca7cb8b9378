"""One running fio: held at its gate, its stream turned into readings, always brought to an end."""

from __future__ import annotations

import fcntl
import os
import select
import time
from collections.abc import Callable
from pathlib import Path

from tkperf.engine.fio_output import NOTHING_YET, DocumentSplitter, Reading, parse_document
from tkperf.engine.gate import Gate
from tkperf.errors import EngineError
from tkperf.process import PIPE, ProcessTimeout, start_process, stop_process

# fio may drain a deep queue, or a device may hang until the kernel resets it (30 s by default
# and several tries), before the last document comes.
LONGEST_SILENCE_S = 120.0
# fio comes to its gate in a third of a second; a loaded host may need longer.
LONGEST_START_S = 30.0
# From the opened gate to the first I/O it takes some 3 ms; a beginning later than this is late.
LATE_S = 0.02
# Room for several status documents, so that fio never waits for tkperf to read.
PIPE_BYTES = 1 << 20

OnReading = Callable[[Reading], None]


class FioProcess:
    """A fio job behind a gate.

    ``threads`` is how many job threads come to the gate. Readings come through ``on_reading`` while one of the waiting methods runs; ``last`` is the
    newest one, ``document`` the JSON it came from. ``began_s`` is when I/O began, on the monotonic
    clock: when the gate opened, or later where fio's own clock says so.
    """

    def __init__(
        self, job_text: str, folder: Path, gate: Gate, device: str, *, threads: int
    ) -> None:
        folder.mkdir(exist_ok=True)
        job_path = folder / "job.fio"
        job_path.write_text(job_text, encoding="utf-8")
        self._gate = gate
        self._threads = threads
        self._device = device
        self._stderr_path = folder / "stderr.txt"
        self._splitter = DocumentSplitter()
        self.last: Reading = NOTHING_YET
        self.document = b""
        self.released_s: float | None = None
        self.began_s = 0.0
        self._began = False
        self._released_wall_clock_s = 0.0
        self.ended_s: float | None = None
        with self._stderr_path.open("wb") as stderr:
            self._process = start_process(
                [
                    "fio",
                    "--output-format=json+",
                    "--status-interval=1",
                    "--eta=never",
                    str(job_path.name),
                ],
                cwd=folder,
                stdout=PIPE,
                stderr=stderr,
            )
        assert self._process.stdout is not None
        self._stdout = self._process.stdout.fileno()
        os.set_blocking(self._stdout, False)
        fcntl.fcntl(self._stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._silent_since_s = time.monotonic()

    def wait_at_gate(self) -> None:
        """Give a fio just started the time to come to its gate, or to end before."""
        until_s = time.monotonic() + LONGEST_START_S
        while self._gate.waiting < self._threads and time.monotonic() < until_s:
            if self._process.poll() is not None:
                return
            time.sleep(0.002)

    def release(self) -> None:
        """Open the gate: fio's first I/O follows within milliseconds."""
        self._gate.open()
        self.released_s = self.began_s = self._silent_since_s = time.monotonic()
        self._released_wall_clock_s = time.time()

    def read_until(self, deadline_s: float, on_reading: OnReading) -> bool:
        """Take in fio's output until a moment on the monotonic clock; False if fio ended before."""
        while self.ended_s is None and (left_s := deadline_s - time.monotonic()) > 0:
            self._read(left_s, on_reading)
        return self.ended_s is None

    def read_while(
        self,
        wanted: Callable[[], bool],
        on_reading: OnReading,
        *,
        patience_s: float = LONGEST_SILENCE_S,
    ) -> None:
        """Take in fio's output while ``wanted`` says so and fio runs.

        Raises:
            EngineError: no output for ``patience_s``; fio was stopped.
        """
        while self.ended_s is None and wanted():
            self._read(0.5, on_reading)
            if time.monotonic() - self._silent_since_s > patience_s:
                self.stop()
                raise EngineError(
                    f"fio on {self._device} did not answer for {patience_s:.0f} s and was stopped: "
                    "the device hangs or has failed; check the kernel log"
                )

    def read_to_end(self, on_reading: OnReading) -> None:
        """Take in fio's output until it exits, and judge the exit.

        Raises:
            EngineError: silence, a failed exit, or an error of any job.
        """
        self.read_while(lambda: True, on_reading)
        self._require_success()

    def stop(self) -> None:
        """End fio whatever it does. Safe at any time."""
        self._gate.close()
        stop_process(self._process, grace_s=3.0)
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self.ended_s is None:
            self.ended_s = time.monotonic()

    def _read(self, longest_s: float, on_reading: OnReading) -> None:
        ready, _, _ = select.select([self._stdout], [], [], min(longest_s, 0.5))
        if not ready:
            return
        data = os.read(self._stdout, PIPE_BYTES)
        if not data:
            self.ended_s = time.monotonic()
            return
        for document in self._splitter.feed(data):
            self._silent_since_s = time.monotonic()
            self.document = document
            self.last = parse_document(document)
            self._note_beginning()
            on_reading(self.last)

    def _note_beginning(self) -> None:
        """A host too busy to let fio begin at once must not hide that: believe fio's own clock.

        A reading taken in late only looks late by our clock, and a clock that was set only by the
        wall's; so both must say it.
        """
        if self._began or self.last.elapsed_s <= 0 or self.released_s is None:
            return
        self._began = True
        late_s = min(
            time.monotonic() - self.last.elapsed_s - self.released_s,
            self.last.wall_clock_s - self.last.elapsed_s - self._released_wall_clock_s,
        )
        if late_s > LATE_S:
            self.began_s = self.released_s + late_s

    def _require_success(self) -> None:
        try:
            status = self._process.wait(timeout=30)
        except ProcessTimeout:
            self.stop()
            raise EngineError(f"fio on {self._device} closed its output but did not exit") from None
        finally:
            self._gate.close()
        failed = [error for error in self.last.errors if error]
        if status == 0 and not failed and self.document:
            return
        said = self._said()
        if status == 0 and not failed:
            raise EngineError(
                f"fio on {self._device} ended without printing a result{said}; "
                "is the 'fio' on PATH the real one?"
            )
        names = ", ".join(f"{error} ({os.strerror(error)})" for error in sorted(set(failed)))
        cause = f"job error {names}" if failed else f"exit status {status}"
        raise EngineError(f"fio failed on {self._device}: {cause}{said}")

    def _said(self) -> str:
        """fio's own words, shortened, for an error message."""
        stderr = self._stderr_path.read_text(encoding="utf-8", errors="replace")
        lines = [*stderr.splitlines(), *self._splitter.notes]
        words = [line.strip() for line in lines if line.strip() and "Saving output" not in line]
        return f"; it said: {' | '.join(words[:3])[:400]}" if words else ""
