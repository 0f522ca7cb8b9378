"""Workers that read run files: a process for each job, which may die, hang or grow without harm to the server.

A process with everything loaded (``worker_process.py``) forks one for each job. The answer comes through a pipe; a job
that is over its time, or that no browser waits for any longer, is killed.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import msgspec

from tkperf.model.errors import TkperfError
from tkperf.system.process import Process, start_module

# Two keep a page from waiting for the index; more would take the CPUs of whatever else this host does.
AT_ONCE = 2
MOST_WAITING = 32
LIMIT_S = 60.0
# Of private memory of a job. A day of a mix takes 600 MB, its PDF as much again.
LIMIT_BYTES = 2 << 30
_PIPE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One job for the worker process; the pipe for its answer comes with it."""

    job: str
    arguments: Mapping[str, object]
    limit_s: float
    limit_bytes: int


Jobs = Mapping[str, Callable[..., bytes]]


class Answer(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """How a job ended; ``content`` is its result, or its error in words."""

    done: bool
    content: bytes


class JobError(TkperfError):
    """A job did not succeed. The message says why, and what to do."""

    status = 500


class FileError(JobError):
    """The file cannot be shown, as any command would say."""


class BusyError(JobError):
    """Too many jobs wait."""

    status = 503


class LateError(JobError):
    """A job was over its time."""

    status = 504


@dataclass(slots=True)
class _Running:
    """A job on its way: its process, once that has begun."""

    process: int | None = None

    def kill(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.process, signal.SIGKILL)


class Workers:
    """Run jobs by name, a few at a time, in the order in which they come.

    Args:
        module: the worker process; a test may have its own jobs.
    """

    def __init__(
        self,
        module: str = "tkperf.web.worker_process",
        *,
        limit_s: float = LIMIT_S,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self._module = module
        self._limit_s, self._limit_bytes = limit_s, limit_bytes
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._alone: dict[str, asyncio.Lock] = {}
        self._waiting = 0
        self._process: Process | None = None
        self._orders: socket.socket | None = None

    def start(self) -> None:
        """Start the worker process, which gets ready in the background."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = start_module(self._module, stdin=theirs.fileno())
        self._orders = ours

    def close(self) -> None:
        """End the worker process. Jobs under way are ended by whoever waits for them."""
        if self._orders is not None:
            self._orders.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._orders = self._process = None

    async def run(
        self, job: str, *, alone: bool = False, limit_s: float | None = None, **arguments: object
    ) -> bytes:
        """Return the result of a job; cancelling ends its process.

        Args:
            job: its name in ``jobs.JOBS``; ``arguments`` are those of that function.
            alone: no other job of this name runs at the same time.

        Raises:
            JobError: it failed, took too long, needed too much memory, or too many others wait.
        """
        if self._waiting >= MOST_WAITING:
            raise BusyError(
                f"{self._waiting} other pages are being made: load this one again in a minute"
            )
        self._waiting += 1
        try:
            async with AsyncExitStack() as stack:
                if alone:
                    await stack.enter_async_context(self._alone.setdefault(job, asyncio.Lock()))
                await stack.enter_async_context(self._turns)
                return await self._run(job, arguments, limit_s or self._limit_s)
        finally:
            self._waiting -= 1

    async def _run(self, job: str, arguments: Mapping[str, object], limit_s: float) -> bytes:
        running = _Running()
        order = Order(
            job=job,
            arguments=arguments,
            limit_s=limit_s,
            limit_bytes=self._limit_bytes,
        )
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._send(pickle.dumps(order), theirs.fileno())
            ours.setblocking(False)
            async with asyncio.timeout(limit_s):
                answer = await _receive(ours, running)
        except TimeoutError:
            raise LateError(
                f"it took longer than {limit_s:.0f} s to read: use tkperf report on the command line, "
                "which has no such limit"
            ) from None
        finally:
            running.kill()
            if running.process is not None:
                os.close(running.process)
            ours.close()
        if answer is None:
            raise JobError(
                "the process that read it ended early, as for a file that takes more memory than allowed or is "
                "damaged on purpose: 'tkperf show' on the command line gives more details"
            )
        if not answer.done:
            raise FileError(answer.content.decode(errors="replace"))
        return answer.content

    def _send(self, order: bytes, descriptor: int) -> None:
        """Send an order; a worker process that has died is started again, once."""
        for attempt in range(2):
            if self._orders is None:
                self.start()
            assert self._orders is not None
            try:
                socket.send_fds(self._orders, [order], [descriptor])
            except OSError as error:
                self.close()
                if attempt:
                    raise JobError(f"no process can be started to read it: {error}") from error
            else:
                return


async def _receive(answers: socket.socket, running: _Running) -> Answer | None:
    """Return the answer of a job, whose first message has its process; None: it ended without."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(answers, readable.set)
    try:
        await readable.wait()
        _, descriptors, _, _ = socket.recv_fds(answers, 1, 1)
        running.process = descriptors[0] if descriptors else None
    finally:
        loop.remove_reader(answers)
    content = bytearray()
    while piece := await loop.sock_recv(answers, _PIPE_BYTES):
        content += piece
    try:
        return msgspec.msgpack.decode(content, type=Answer)
    except msgspec.DecodeError:
        return None
