"""A module of ours at work in a Python of its own, while this one does something else.

It is asked for nothing that could not be done here: what it fails to do, for whatever reason, its user does.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Self

from tkperf.system.process import Process, ProcessTimeout, start_module

# Many times what any of them takes on a slow machine.
LONGEST_WAIT_S = 600.0


class Aside:
    """Bytes go in, bytes come out. Make it early: it gets ready in the background."""

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
        """All that it is to know. To be called once; nothing is waited for."""
        if self._process is None:
            return
        talk = Thread(target=self._communicate, args=(self._process, asked), daemon=True)
        with suppress(RuntimeError):  # no more threads for this user
            talk.start()
            self._talk = talk

    def receive(self) -> bytes | None:
        """Its answer to what was sent, waited for; None: it failed, or seems to hang."""
        if self._talk is not None:
            self._talk.join()
        return self._answer

    def close(self) -> None:
        """Nobody waits for it any more."""
        if self._process is None:
            return
        self._process.kill()
        if self._talk is not None:
            self._talk.join()
        with self._process:
            pass

    def _communicate(self, process: Process, asked: bytes) -> None:
        with process:  # which closes what it was talked to by
            try:
                answer, _ = process.communicate(asked, timeout=LONGEST_WAIT_S)
            except ProcessTimeout:
                process.kill()
                return
        self._answer = answer if process.returncode == 0 else None
