"""A running fio process.

The process waits at a gate until tkperf releases it. tkperf reads and parses the output of the process. tkperf ends the
process, even after an error.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from tkperf.engine.fio_job import count_threads
from tkperf.engine.fio_output import NOTHING_YET, DocumentSplitter, FioReading, find_fio_fault, parse_document
from tkperf.engine.gate import Gate
from tkperf.model.errors import EngineError, LostAtGateError, StepFailedError, reason_of
from tkperf.model.units import format_count
from tkperf.model.workload import Workload
from tkperf.system.process import PIPE, Process, ProcessTimeout, start_process, stop_process

# The pipe can contain several status documents, so that fio never waits for tkperf.
PIPE_BYTES = 1 << 20
# fio prints a document in up to sixty pieces within a few ms. Each read by tkperf briefly uses a CPU that the load
# needs. If tkperf read each piece immediately, a job with 16 outstanding I/Os would wait sixty times a second. These
# waits would change the job's 99.9th percentile.
PIECES_S = 0.005
# fio reports each second. If tkperf wakes up without new output, it also uses a CPU that the load needs.
LONGEST_READ_S = 1.5
# If the remaining time until the deadline is longer than this, tkperf waits until all pieces of a document have
# arrived.
UNHURRIED_S = 0.1
# An error message quotes up to this number of bytes from the standard error of fio.
KEPT_STDERR_BYTES = 8 << 10
# Before fio prints its last status document, it may have to wait for a deep queue, or for a device that does not answer
# until the kernel resets it (after 30 s by default, in several attempts).
LONGEST_SILENCE_S = 120.0
# fio usually reaches its gate within a third of a second. On a loaded host, fio may need longer.
LONGEST_START_S = 30.0
# The helpers at a closed gate end within milliseconds, and on a loaded host within a second.
LONGEST_END_OF_HELPERS_S = 3.0
# The longest time for which fio may continue after its planned end, or may report that no further byte was transferred.
# In a test with a device that completed 1 IOPS and was reset, fio ended 69 s late. The kernel reports an error of a
# SCSI disk after 30 s and five attempts. At 1 IOPS, a deep queue needs minutes to become empty.
LONGEST_OVERRUN_S = 300.0
# fio usually starts its first I/O 3 ms after the gate is opened. A start after this time is late.
LATE_S = 0.02
# When the helper of a job at the gate ends, the kernel sends SIGCHLD to one of fio's threads and so interrupts the
# thread's wait for I/O. With io_uring, fio treats this interruption as an error without a number (fio 3.33 makes the
# system call without libc, so errno is not set). A job without a completed I/O then ends immediately.
NOT_TO_WAKE_FIO = (signal.SIGCHLD,)
FOREVER = float("inf")
# If the difference between the wall clock and the monotonic clock changes by this much within seconds, the wall clock
# was set. NTP changes the difference by only 2 ms in 4 s.
CLOCK_SET_S = 0.01
# Documents that wait in the pipe may fill this share of the pipe's capacity.
GATHERED_SHARE = 0.5
# The interval at which tkperf counts fio's threads while tkperf waits until the threads have ended.
TASKS_POLL_S = 0.001

OnReading = Callable[[FioReading], None]


def at_once() -> float:
    """Return 0, which means that documents do not wait in the pipe."""
    return 0.0


class FioProcess:
    """A fio job that waits at a gate or runs.

    ``on_reading`` is called with each reading while one of the waiting methods runs.

    Attributes:
        shown_job: the job without the gate, in a form that a user can run again.
        starts_bytes: the start of each sequential job within its region. The tuple is empty for other jobs.
        last: the newest reading, which arrived at ``last_at_s``.
        document: the JSON document of this reading.
        start_took_s: the time from the start of fio until all threads had reached the gate. The value is set when the
            gate is opened.
        released_s: the time just before the gate was opened. fio issued no I/O before this time.
        began_s: the beginning of I/O on the monotonic clock. This is the time at which the gate was opened, or a later
            time according to fio's clock.
    """

    def __init__(
        self,
        job_text: str,
        folder: Path,
        gate: Gate,
        device: str,
        *,
        shown_job: str,
        starts_bytes: tuple[int, ...] = (),
        load: Workload | None = None,
        inherit: Sequence[int] = (),
    ) -> None:
        """Start fio.

        Args:
            load: the load of a step. None means that fio fills a range.
            folder: the folder for the files of this process. The method ``stop`` removes the folder.
            inherit: the file descriptors that fio inherits, such as the lock on the device.
        """
        self._folder = folder
        job_path = folder / "job.fio"
        job_path.write_text(job_text, encoding="utf-8")
        self._gate = gate
        self._threads = count_threads(job_text)
        self._device = device
        self.shown_job = shown_job
        self.starts_bytes = starts_bytes
        self._load = load
        self.last: FioReading = NOTHING_YET
        self.last_at_s = 0.0
        self.document = b""
        self.released_s: float | None = None
        self.began_s = self.start_took_s = 0.0
        self._began = False
        self.released_wall_clock_s = 0.0
        self.ended = False
        self._stopped = False
        self._lost: str | None = None
        # The number of fio's threads that are not job threads. None means that the number is not known yet.
        self._other_tasks: int | None = None
        self._process = start_process(
            ["fio", "--output-format=json+", "--status-interval=1", "--eta=never", job_path.name],
            cwd=folder,
            stdout=PIPE,
            stderr=PIPE,
            inherit=inherit,
            blocked=NOT_TO_WAKE_FIO,
        )
        self._pipes = FioPipes(self._process)
        self._wall_ahead_s = _wall_ahead_s()
        self._started_s = self._silent_since_s = self._still_since_s = time.monotonic()

    # Section: at the gate.

    @property
    def at_gate(self) -> bool:
        """Return whether every thread is alive and waits at the gate."""
        return self._process.poll() is None and self._gate.waiting >= self._threads

    @property
    def lost_at_gate(self) -> bool:
        """Return whether fio or one of its helpers ended, or was killed, while fio waited at the gate."""
        return self._lost is not None or self._process.poll() is not None or self._gate.lost

    def come_to_gate(self) -> None:
        """Wait until all threads have reached the gate."""
        while not self.at_gate:
            if self._lost:
                raise LostAtGateError(self._lost)
            if self._process.poll() is not None:
                self._gate.close()  # fio's helpers keep the ends of fio's pipes open
                self.read_to_end(ignore)
            if self._gate.lost:
                self.stop()
                raise LostAtGateError(
                    f"the gate that holds fio's threads on {self._device} before their first I/O no longer "
                    "exists. A process of the gate was killed, or the folder of the gate was removed"
                )
            if time.monotonic() - self._started_s > LONGEST_START_S:
                came = self._gate.waiting
                self.stop()
                raise StepFailedError(
                    f"only {came} of {format_count(self._threads, 'thread')} of fio reached the start on "
                    f"{self._device} within {LONGEST_START_S:.0f} s{self._pipes.quote()}. Check the limits on "
                    "processes (ulimit -u, pids.max)"
                )
            self._read(0.002, ignore)

    def release(self) -> None:
        """Open the gate. The first I/O of fio follows within milliseconds.

        Raises:
            LostAtGateError: the gate was removed from its folder, so all waiting threads will fail.
        """
        self.was_stopped()  # clear the record of earlier stops
        others = self._count_tasks() - self._threads
        self._other_tasks = others if others > 0 else None
        try:
            # Read the clocks first. On a busy host, fio may complete many I/Os before tkperf runs again.
            now_s, wall_clock_s = time.monotonic(), time.time()
            self._gate.open()
        except OSError as error:
            self.stop()
            self._lost = f"the folder that holds fio back on {self._device} is gone"
            raise LostAtGateError(f"{self._lost}: {reason_of(error)}") from error
        if self._gate.came_s is not None:
            waited_s = max(0.0, wall_clock_s - self._gate.came_s)
            self.start_took_s = max(0.0, now_s - self._started_s - waited_s)
        self.released_s = self.began_s = self._silent_since_s = self._still_since_s = now_s
        self.released_wall_clock_s = wall_clock_s

    # Section: running.

    def _count_tasks(self) -> int:
        try:
            return sum(1 for _ in Path(f"/proc/{self._process.pid}/task").iterdir())
        except OSError:
            return 0

    @property
    def jobs_ended(self) -> bool:
        """Return whether all job threads have ended, so that all I/Os are complete.

        fio exits 15 to 35 ms after this moment. Version 3.37 and newer versions exit after 110 to 150 ms.
        """
        if self.ended:
            return True
        if self.released_s is None or self._other_tasks is None:
            return False
        return self._count_tasks() <= self._other_tasks

    def _jobs_run(self) -> bool:
        """Return whether a job thread exists now.

        If a job thread exists, fio wrote all previous reports while its jobs ran.
        """
        return self._other_tasks is not None and self._count_tasks() > self._other_tasks

    @property
    def _helper_ended(self) -> bool:
        """Return whether the helper thread of fio, which writes the reports, has ended. It outlives the job threads."""
        return self._other_tasks is not None and self._count_tasks() < self._other_tasks

    def report_now(self, deadline_s: float, on_reading: OnReading) -> None:
        """Make fio report immediately, and accept the report if it arrives before the deadline.

        The helper thread of fio reports within 2 ms, even while fio ends its jobs. If this thread has ended, the
        function does not ask. fio then writes its last report and frees the memory that the signal handler uses. A
        signal after that would end fio with SIGSEGV or SIGABRT (``helper_thread.c`` of fio 3.33 to 3.42).
        """
        if self.released_s is None or self.ended or self._helper_ended:
            return
        before = self.document
        self._process.send_signal(signal.SIGUSR1)
        while self.document is before and not self.ended:
            if (left_s := deadline_s - time.monotonic()) <= 0:
                return
            self._read(left_s, on_reading)

    def wait_for_jobs(self, deadline_s: float, on_reading: OnReading) -> bool:
        """Accept output until every job thread has ended. Return False if some threads still run at the deadline."""
        while not self.jobs_ended:
            if time.monotonic() >= deadline_s:
                return False
            self.read_until(time.monotonic() + TASKS_POLL_S, on_reading)
        return True

    def interrupt(self, longest_s: float) -> None:
        """Make fio end its jobs, and wait up to ``longest_s`` for the outstanding I/O of the jobs. The caller must call
        ``stop`` afterwards.
        """
        if not self.ended:
            self._process.send_signal(signal.SIGINT)
        self.wait_for_jobs(time.monotonic() + longest_s, ignore)

    def read_until(self, deadline_s: float, on_reading: OnReading, *, gather_s: Callable[[], float] = at_once) -> bool:
        """Read fio's output until a time on the monotonic clock. Return False if fio ended before
        that time.

        Args:
            gather_s: a function that returns the longest time for which documents may wait in the pipe, so that several
                documents are read and parsed together.
        """
        while not self.ended and (left_s := deadline_s - time.monotonic()) > 0:
            wait_s = min(gather_s(), left_s)
            if wait_s > 0 and self._pipes.has_room(len(self.document), wait_s):
                time.sleep(wait_s)
                self._read(0.0, on_reading, waited=True)
            else:
                self._read(left_s, on_reading)
        return not self.ended

    def read_while(
        self,
        wanted: Callable[[], bool],
        on_reading: OnReading,
        *,
        until_s: float = FOREVER,
        still_s: float = FOREVER,
        every_s: Callable[[], float] = lambda: LONGEST_READ_S,
    ) -> None:
        """Accept output of fio while ``wanted`` returns True and fio runs.

        Args:
            every_s: a function that returns the interval at which ``wanted`` is called while fio prints no output.
            until_s: the latest time by which fio must end, on the monotonic clock. At this time the process is stopped.
            still_s: the longest time in seconds for which fio may transfer no byte.
        """
        while not self.ended and wanted():
            self._read(every_s(), on_reading)
            now_s = time.monotonic()
            if now_s - self._silent_since_s > LONGEST_SILENCE_S:
                self._give_up(
                    EngineError,
                    f"did not answer for {LONGEST_SILENCE_S:.0f} s and was stopped: the device hangs or has failed",
                )
            if now_s > until_s:
                self._give_up(
                    StepFailedError, "kept reporting long after its end and was stopped: the device hangs, or fio does"
                )
            if now_s - self._still_since_s > still_s:
                self._give_up(
                    StepFailedError,
                    f"moved nothing for {still_s:.0f} s and was stopped: the device hangs or has failed",
                )

    def _give_up(self, kind: type[EngineError], what: str) -> NoReturn:
        self.stop()
        raise kind(f"fio on {self._device} {what}; check the kernel log")

    def read_to_end(self, on_reading: OnReading, *, until_s: float = FOREVER, still_s: float = FOREVER) -> None:
        """Accept output of fio until fio exits. Raise an error if the exit shows that the measurement is unusable."""
        self.read_while(lambda: True, on_reading, until_s=until_s, still_s=still_s)
        try:
            status = self._process.wait(timeout=30)
        except ProcessTimeout:
            self.stop()
            raise EngineError(f"fio on {self._device} closed its output, but the process did not end") from None
        finally:
            self._gate.close()
        fault = find_fio_fault(
            status,
            self.last.errors,
            device=self._device,
            has_result=bool(self.document),
            ended_at_gate=self.released_s is None,
            output=self._pipes.quote(),
        )
        if fault is not None:
            raise fault

    def was_stopped(self) -> bool:
        """Return whether a signal has stopped fio since the last call or, in the first call, since fio was released."""
        self._look_for_stops()
        stopped, self._stopped = self._stopped, False
        return stopped

    def _look_for_stops(self) -> None:
        """Ask the kernel whether the process was stopped, now or earlier. The kernel reports stops until the process
        has exited.
        """
        with suppress(ChildProcessError):  # the exit status of the process was already collected
            options = os.WSTOPPED | os.WCONTINUED | os.WNOHANG
            self._stopped |= os.waitid(os.P_PID, self._process.pid, options) is not None

    def stop(self) -> None:
        """End fio, even if it does not respond. The caller may call this method at any time."""
        self._gate.close()
        stop_process(self._process, grace_s=3.0)
        if self.released_s is None:
            self._await_end_of_helpers()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._pipes.forget()
        shutil.rmtree(self._folder, ignore_errors=True)
        self.ended = True

    def _await_end_of_helpers(self) -> None:
        """Wait until the helpers at the gate have ended. The helpers have the device open, and fail after the gate was
        closed.

        After the gate was opened, other processes may have the process ids of the helpers, so the caller must not wait.
        """
        until_s = time.monotonic() + LONGEST_END_OF_HELPERS_S
        while self._gate.waiting and time.monotonic() < until_s:
            time.sleep(0.002)

    def _read(self, longest_s: float, on_reading: OnReading, *, waited: bool = False) -> None:
        """Read the output that fio prints within ``longest_s``. ``waited`` states that the documents may have waited in
        the pipe before.
        """
        documents = self._pipes.read(longest_s)
        self._look_for_stops()
        self.ended = self.ended or self._pipes.ended
        wall_ahead_s = self._follow_wall_clock() if documents and waited else None
        for document in documents:
            now_s = self._silent_since_s = time.monotonic()
            before, self.document = self.last, document
            self.last = parse_document(document, read_s=now_s, wall_ahead_s=wall_ahead_s, load=self._load)
            if self._load is not None and self._load.pauses:
                self._place_counts()
            self.last_at_s = now_s if self.last.arrived_s is None else self.last.arrived_s
            if len(self.last.jobs) != self._threads:
                raise StepFailedError(
                    f"fio on {self._device} reports {format_count(len(self.last.jobs), 'job')}, but tkperf started "
                    f"{self._threads}"
                )
            if self.last.moved_bytes > before.moved_bytes:
                self._still_since_s = self.last_at_s
            self._note_beginning()
            on_reading(self.last)

    def _place_counts(self) -> None:
        """Correct the time and the bytes of a status document if fio had to wait for paused threads.

        fio first records its clock and the bytes. It then waits until each running thread has answered, and only then
        reads the counts and latencies (``__show_running_run_stats`` in ``stat.c`` of fio 3.33 to 3.42). A paused thread
        does not answer. The timestamp of the document is the time of the counts.
        """
        if self.released_s is None or not self._jobs_run():
            return
        assert self._load is not None
        stamped_s = self.last.wall_clock_s - self.released_wall_clock_s
        placed = replace(self.last, elapsed_s=max(self.last.elapsed_s, stamped_s))
        self.last = placed.with_bytes_of_counts(self._load)

    def _follow_wall_clock(self) -> float | None:
        """Return the difference between the wall clock and the monotonic clock. None means that the wall clock was set
        since the last call.
        """
        before_s, self._wall_ahead_s = self._wall_ahead_s, _wall_ahead_s()
        return None if abs(self._wall_ahead_s - before_s) > CLOCK_SET_S else self._wall_ahead_s

    def _note_beginning(self) -> None:
        """Correct ``began_s`` according to fio's clock, because fio may begin late on a busy host.

        fio 3.36 and newer report when their jobs began. Older versions show the beginning only in a document that was
        written while jobs ran: the beginning is the time of the document minus the running time of the jobs. fio writes
        the last document up to 150 ms after the jobs have ended, so the last document would show a beginning that is
        too late. If tkperf reads a document late, the beginning seems late only on tkperf's clock. If the wall clock
        was set, the beginning seems late only on the wall clock. ``began_s`` therefore changes only if both clocks show
        a late beginning.
        """
        if self._began or self.last.elapsed_s <= 0 or self.released_s is None:
            return
        began_wall_clock_s = self.last.began_wall_clock_s
        if began_wall_clock_s is None:
            if not self._jobs_run():
                return
            began_wall_clock_s = self.last.wall_clock_s - self.last.elapsed_s
        self._began = True
        late_s = min(
            self.last_at_s - self.last.elapsed_s - self.released_s, began_wall_clock_s - self.released_wall_clock_s
        )
        if late_s > LATE_S:
            self.began_s = self.released_s + late_s


class FioPipes:
    """The output pipes of one fio process. ``FioProcess`` closes the pipes."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdout = process.stdout.fileno()
        self._stderr = process.stderr.fileno()
        self._open = [self._stdout, self._stderr]
        self._splitter = DocumentSplitter()
        # the buffer is created once, because its creation takes longer than a read
        self._buffer = memoryview(bytearray(PIPE_BYTES))
        self._stderr_text = b""
        self.ended = False
        for pipe in self._open:
            os.set_blocking(pipe, False)
        with suppress(OSError):  # the kernel limits each user's pipe memory, but a smaller pipe is sufficient
            fcntl.fcntl(self._stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._room_bytes = fcntl.fcntl(self._stdout, fcntl.F_GETPIPE_SZ)

    def has_room(self, document_bytes: int, seconds: float) -> bool:
        """Return whether the documents that fio prints in ``seconds`` fit into the pipe. fio then never waits for
        tkperf.
        """
        return document_bytes * (seconds + 1) <= GATHERED_SHARE * self._room_bytes

    def read(self, longest_s: float) -> list[bytes]:
        """Return the documents that are completed within ``longest_s`` or LONGEST_READ_S. At the end of the output, set
        ``ended``.
        """
        ready, _, _ = select.select(self._open, [], [], max(0.0, min(longest_s, LONGEST_READ_S)))
        if self._stderr in ready:
            self._read_stderr()
        if self._stdout not in ready:
            return []
        if longest_s >= UNHURRIED_S:
            time.sleep(PIECES_S)
        data = bytes(self._buffer[: os.readv(self._stdout, [self._buffer])])
        self.ended = not data
        return list(self._splitter.feed(data)) if data else []

    def quote(self) -> str:
        """Return fio's first lines of text for an error message. The result is empty if fio printed no text."""
        with suppress(BlockingIOError):
            if self._stderr in self._open:
                self._read_stderr()
        lines = [*self._stderr_text.decode(errors="replace").splitlines(), *self._splitter.notes]
        words = [line.strip() for line in lines if line.strip() and "Saving output" not in line]
        return f"; it said: {' | '.join(words[:3])[:400]}" if words else ""

    def forget(self) -> None:
        """Stop reading, because the pipes are closed."""
        self._open = []

    def _read_stderr(self) -> None:
        """Read fio's standard error, and keep only its first bytes."""
        data = os.read(self._stderr, PIPE_BYTES)
        if not data:
            self._open = [self._stdout]
        self._stderr_text += data[: KEPT_STDERR_BYTES - len(self._stderr_text)]


def _wall_ahead_s() -> float:
    """Return the wall clock minus the monotonic clock, in seconds. The function reads both clocks three times and uses
    the fastest reading, because a busy host may interrupt tkperf between the two clocks.
    """
    readings = [(time.monotonic(), time.time(), time.monotonic()) for _ in range(3)]
    before_s, wall_s, after_s = min(readings, key=lambda each: each[2] - each[0])
    return wall_s - (before_s + after_s) / 2


def ignore(_reading: FioReading) -> None:
    """Ignore a report that does not end a sample, such as a report before the first I/O or between two seconds."""
