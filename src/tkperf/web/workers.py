"""Workers that read run files. Each job has a separate process. This process may crash, hang or use much memory without
harm to the server.

A process that has loaded all modules (``worker_process.py``) forks a process for each job. The process of the job
writes its result to a file, and reports its end through a socket. A job is killed if it exceeds its time limit, or if
no browser waits for it any longer.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import BinaryIO

from tkperf.model.errors import ExitCode, TkperfError, reason_of
from tkperf.system.process import DEVNULL, Process, start_module
from tkperf.web.bounds import (
    AT_ONCE,
    LIMIT_BYTES,
    LIMIT_S,
    MOST_FOLLOWED,
    MOST_MESSAGE_BYTES,
    MOST_RESULT_BYTES,
    MOST_WAITING,
)

_MOST_WORDS_BYTES = 1 << 16

Jobs = Mapping[str, Callable[..., bytes | Iterator[bytes]]]
"""The functions that execute jobs, with the names of the jobs as the keys. The function of a continuous job yields
messages.
"""

SIZE_BYTES = 4
DONE, FAILED, LOCKED = b"+", b"-", b"~"
"""The first byte of an answer. After ``FAILED`` and ``LOCKED``, the answer contains a text with the reason. ``LOCKED``
means that the file can be read later. After ``DONE``, the answer contains the size of a message.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A job for the worker process. The socket for the answer and the file for the result are sent together with the
    order.
    """

    job: str
    arguments: Mapping[str, object]
    limit_s: float
    limit_bytes: int


class JobError(TkperfError):
    """A failed job. The message contains the reason and the remedy. ``status`` is the HTTP status."""

    status = 500
    exit_code = ExitCode.RUN_FILE


class FileError(JobError):
    """A file that cannot be shown. The reason is the same as in every other command that reads the file."""

    status = 422


class LockedError(FileError):
    """A file that another program has locked."""

    status = 503


class BusyError(JobError):
    """A refusal because too many requests or jobs are already waiting."""

    status = 503


class LateError(JobError):
    """A job that exceeded its time limit."""

    status = 504


_FAILURES = {FAILED: FileError, LOCKED: LockedError}


class Workers:
    """An executor of jobs, which are identified by name. A few jobs run at the same time. Jobs begin in the order in
    which they arrive.

    Args:
        module: the module of the worker process. A test can use a module with jobs of its own.
    """

    def __init__(
        self, module: str = "tkperf.web.worker_process", *, limit_s: float = LIMIT_S, limit_bytes: int = LIMIT_BYTES
    ) -> None:
        self._module = module
        self._limit_s, self._limit_bytes = limit_s, limit_bytes
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._alone: dict[str, asyncio.Lock] = {}
        self._waiting = self._followed = 0
        self._process: Process | None = None
        self._orders: socket.socket | None = None

    def start(self) -> None:
        """Start the worker process. The process loads its modules in the background."""
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = start_module(self._module, stdin=theirs.fileno(), stdout=DEVNULL, stderr=None)

    def close(self) -> None:
        """End the worker process. To end a single job, cancel ``run`` or ``make``."""
        if self._orders is not None:
            self._orders.close()
        if self._process is not None:
            self._process.kill()
            with self._process:
                pass
        self._orders = self._process = None

    async def run(self, job: str, *, alone: bool = False, **arguments: object) -> bytes:
        """Return the result of a job. The result must be small enough for memory. For arguments and errors, see
        ``make``.
        """
        with open(os.memfd_create(job), "w+b") as result:
            await self.make(result, job, alone=alone, **arguments)
            return os.pread(result.fileno(), MOST_RESULT_BYTES, 0)

    async def make(self, result: BinaryIO, job: str, *, alone: bool = False, **arguments: object) -> None:
        """Execute a job that writes its result to an empty file. To end the process of the job, cancel the call.

        Args:
            job: the name of the job in ``jobs.JOBS``; ``arguments`` are the arguments of the function with this name.
            alone: whether no other job of this name may run at the same time.

        Raises:
            JobError: the job failed, took too long or needed too much memory, or too many other jobs are waiting.
        """
        if self._waiting >= MOST_WAITING:
            raise BusyError(f"tkperf is already creating {self._waiting} other pages. Load this page again in a minute")
        self._waiting += 1
        try:
            async with AsyncExitStack() as stack:
                if alone:
                    await stack.enter_async_context(self._alone.setdefault(job, asyncio.Lock()))
                await stack.enter_async_context(self._turns)
                answer = await self._work(result, job, arguments)
        finally:
            self._waiting -= 1
        if (error := _FAILURES.get(answer[:1])) is not None:
            raise error(answer[1:].decode(errors="replace"))
        if answer != DONE:
            raise JobError(
                "the process that read the file ended unexpectedly. The file may be damaged. Run 'tkperf show FILE' to "
                "see the reason"
            )

    async def _work(self, result: BinaryIO, job: str, arguments: Mapping[str, object]) -> bytes:
        order = Order(job=job, arguments=arguments, limit_s=self._limit_s, limit_bytes=self._limit_bytes)
        answer = await self._try(result, order)
        # If no process received the order, the order was lost, because the process that forks had just died. The second
        # attempt starts this process again.
        return answer if answer is not None else await self._try(result, order) or b""

    async def _try(self, result: BinaryIO, order: Order) -> bytes | None:
        """Return the answer of a job, or None if no process received the order."""
        answers, theirs = socket.socketpair()
        process: int | None = None
        try:
            with theirs:
                self._send(order, [theirs.fileno(), result.fileno()])
            sent_to = self._orders
            answers.setblocking(False)
            async with asyncio.timeout(self._limit_s):
                process = await _receive_process(answers)
                if process is None:
                    if self._orders is sent_to:
                        self.close()
                    return None
                return await _receive_words(answers)
        except TimeoutError:
            raise LateError(
                f"reading the file or creating the page takes longer than {self._limit_s:.0f} s. Use tkperf report "
                "on the command line, which has no such limit"
            ) from None
        finally:
            _end(process, answers)

    def require_follower(self) -> None:
        """Check that another continuous job may begin.

        Raises:
            BusyError: too many other continuous jobs are running.
        """
        if self._followed >= MOST_FOLLOWED:
            raise BusyError(f"{self._followed} other runs are being watched. Try again later")

    async def follow(self, job: str, **arguments: object) -> AsyncGenerator[bytes]:
        """Yield the messages of a continuous job. To end the process of the job, close the iterator.

        Raises:
            JobError: the job failed, a message did not arrive in time, or too many other continuous jobs are running.
        """
        self.require_follower()
        self._followed += 1
        order = Order(job=job, arguments=arguments, limit_s=self._limit_s, limit_bytes=self._limit_bytes)
        answers, theirs = socket.socketpair()
        process: int | None = None
        try:
            with theirs, open(os.devnull, "wb") as no_result:
                self._send(order, [theirs.fileno(), no_result.fileno()])
            answers.setblocking(False)
            process = await _receive_process(answers)
            while message := await asyncio.wait_for(_receive_message(answers), self._limit_s):
                yield message
        except TimeoutError:
            raise LateError("the process that watches the run no longer answers") from None
        finally:
            self._followed -= 1
            _end(process, answers)

    def _send(self, order: Order, descriptors: list[int]) -> None:
        """Send an order. If the worker process has died, start it again, and send the order once more."""
        for attempt in range(2):
            try:
                if self._orders is None:
                    self.start()
                assert self._orders is not None
                # The paths are passed in a file, because the size of a message is limited and the paths of many runs
                # may be longer.
                with open(os.memfd_create("order"), "w+b") as file:
                    file.write(pickle.dumps(order))
                    file.flush()
                    socket.send_fds(self._orders, [b"o"], [*descriptors, file.fileno()])
            except OSError as error:
                self.close()
                if attempt:
                    raise JobError(f"tkperf cannot start a process that reads the file: {reason_of(error)}") from error
            else:
                return


def _end(process: int | None, answers: socket.socket) -> None:
    """End the process of a job, and close the socket for its answers.

    Args:
        process: the descriptor of the process; None if the server has not received the descriptor yet. Even then, the
            process may already have sent its descriptor. The process must be killed in this case too, because otherwise
            the process would continue until the job is done.
    """
    with answers:
        if process is None:
            with suppress(OSError):
                # From this point on, no descriptor can arrive. If a process begins later, it cannot send its
                # descriptor, and ends.
                answers.shutdown(socket.SHUT_RD)
                process = _take_process(answers)
        if process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
            os.close(process)


def _take_process(answers: socket.socket) -> int | None:
    """Return the descriptor of the process of the job without waiting, or None if the descriptor has not arrived
    yet.
    """
    _, descriptors, _, _ = socket.recv_fds(answers, 1, 1, socket.MSG_DONTWAIT)
    return descriptors[0] if descriptors else None


async def _receive_message(answers: socket.socket) -> bytes:
    """Return a message of a continuous job. The message is empty if the job has ended.

    Raises:
        FileError: the job failed.
    """
    if (error := _FAILURES.get(await _receive_exactly(answers, 1))) is not None:
        raise error((await _receive_words(answers)).decode(errors="replace"))
    size = int.from_bytes(await _receive_exactly(answers, SIZE_BYTES), "big")
    if size > MOST_MESSAGE_BYTES:
        raise FileError(
            f"the state of the batch exceeds the limit of {MOST_MESSAGE_BYTES / 1e6:.0f} MB, so the page cannot show "
            "it. Run 'tkperf status NAME.batch' instead"
        )
    return await _receive_exactly(answers, size)


async def _receive_exactly(answers: socket.socket, count: int) -> bytes:
    """Return exactly ``count`` bytes. The result is empty if the process of the job closed its end of the socket
    earlier.
    """
    loop = asyncio.get_running_loop()
    found = bytearray()
    while len(found) < count:
        piece = await loop.sock_recv(answers, count - len(found))
        if not piece:
            return b""
        found += piece
    return bytes(found)


async def _receive_process(answers: socket.socket) -> int | None:
    """Return the descriptor of the process of the job, which arrives together with the first byte from this process.
    None means that the process could not begin.
    """
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(answers, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(answers)
    return _take_process(answers)


async def _receive_words(answers: socket.socket) -> bytes:
    """Return all bytes that arrive before the process of the job closes its end of the socket."""
    loop = asyncio.get_running_loop()
    words = b""
    while len(words) < _MOST_WORDS_BYTES and (piece := await loop.sock_recv(answers, _MOST_WORDS_BYTES)):
        words += piece
    return words
