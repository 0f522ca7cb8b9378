"""A PDF is made by a process of its own, which gets ready while results are still being read.

Meanwhile this one renders the page for the screen.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from types import TracebackType
from typing import Self

import typst  # noqa: F401 - that it is missing is to be known before anything is written

from tkperf.process import Process, start_module
from tkperf.report.paper import Document


class Printer:
    """Makes one PDF. Make it early: it gets ready in the background."""

    def __init__(self) -> None:
        self._process = _start_process()
        self._document = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                stream.close()

    def start(self, document: Document) -> None:
        """Begin with it. To be called once."""
        self._document = pickle.dumps(document)
        if self._process is None or self._process.stdin is None:
            return
        with suppress(BrokenPipeError):  # it ended early; what it answers tells
            self._process.stdin.write(self._document)
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def finish(self) -> bytes:
        """The PDF; made here if the process failed, for whatever reason. To be called once."""
        if self._process is not None and self._process.stdout is not None:
            made = self._process.stdout.read()
            if self._process.wait() == 0:
                return made
        from tkperf.report.pdf import set_document  # noqa: PLC0415 - only then

        return set_document(pickle.loads(self._document))  # noqa: S301 - of ``start``


def _start_process() -> Process | None:
    try:
        return start_module("tkperf.report.pdf")
    except OSError:
        return None
