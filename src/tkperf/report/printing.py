"""A PDF is made by a process of its own, which gets ready while results are still being read.

Meanwhile this one renders the page for the screen.
"""

from __future__ import annotations

import pickle
from types import TracebackType
from typing import Self

import typst  # noqa: F401 - that it is missing is to be known before anything is written

from tkperf.aside import Aside
from tkperf.report.paper import Document


class Printer:
    """Makes one PDF. Make it early."""

    def __init__(self) -> None:
        self._process = Aside("tkperf.report.pdf")
        self._document = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._process.close()

    def start(self, document: Document) -> None:
        """Begin with it. To be called once."""
        self._document = pickle.dumps(document)
        self._process.send(self._document)

    def finish(self) -> bytes:
        """The PDF; made here if the process failed. To be called once."""
        made = self._process.receive()
        if made is not None:
            return made
        from tkperf.report.pdf import set_document  # noqa: PLC0415 - only then

        return set_document(pickle.loads(self._document))  # noqa: S301 - of ``start``
