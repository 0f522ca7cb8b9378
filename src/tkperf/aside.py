"""A module of ours at work in a Python of its own, while this one does something else.

It is asked for nothing that could not be done here: what it fails to do, for whatever reason, its user does.
"""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Self

from tkperf.process import Process, start_module


class Aside:
    """Bytes go in, bytes come out. Make it early: it gets ready in the background."""

    def __init__(self, module: str) -> None:
        self._process: Process | None = None
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
        """All that it is to know. To be called once."""
        if self._process is None or self._process.stdin is None:
            return
        with suppress(BrokenPipeError):  # it ended early; what it answers tells
            self._process.stdin.write(asked)
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def receive(self) -> bytes | None:
        """Its answer, waited for; None: it failed. To be called once."""
        if self._process is None or self._process.stdout is None:
            return None
        answer = self._process.stdout.read()
        return answer if self._process.wait() == 0 else None

    def close(self) -> None:
        """Nobody waits for it any more."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                with suppress(BrokenPipeError):  # what was never taken
                    stream.close()
