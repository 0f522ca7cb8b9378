"""A worker: a module of tkperf in a separate Python process, while this process does something else.

It only gets work that this process could do, too: if the worker fails for any reason, its user does the work.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Self

from tkperf.system.process import Process, ProcessTimeout, start_module

# Many times the duration of any of them on a slow machine.
ANSWER_LIMIT_S = 600.0


class Worker:
    """A worker that takes bytes and returns bytes. Make it early: it gets ready in the background."""

    def __init__(self, module: str) -> None:
        self._process: Process | None = None
        self._talk: Thread | None = None
        self._answer: bytes | None = None
        with suppress(OSError):
            self._process = start_module(module)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, asked: bytes) -> None:
        """Send the worker all its input. Call it once; it does not wait."""
        if self._process is None:
            return
        talk = Thread(target=self._communicate, args=(self._process, asked), daemon=True)
        with suppress(RuntimeError):  # no more threads for this user
            talk.start()
            self._talk = talk

    def receive(self) -> bytes | None:
        """Wait for the answer and return it; None: the worker failed, or seems to hang."""
        if self._talk is not None:
            self._talk.join()
        return self._answer

    def close(self) -> None:
        """End the worker without waiting for its answer."""
        if self._process is None:
            return
        self._process.kill()
        if self._talk is not None:
            self._talk.join()
        with self._process:
            pass

    def _communicate(self, process: Process, asked: bytes) -> None:
        with process:  # closes its pipes at the end
            try:
                answer, _ = process.communicate(asked, timeout=ANSWER_LIMIT_S)
            except ProcessTimeout:
                process.kill()
                return
        self._answer = answer if process.returncode == 0 else None
