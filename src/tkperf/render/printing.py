"""A PDF is made by a process of its own, which gets ready while results are still being read.

Meanwhile this one renders the page for the screen.
"""

from __future__ import annotations

import pickle

import typst  # noqa: F401 - that it is missing is to be known before anything is written

from tkperf.render.paper import Document
from tkperf.system.worker import Aside


class Printer(Aside):
    """Makes one PDF. Make it early."""

    def __init__(self) -> None:
        super().__init__("tkperf.render.pdf")
        self._document = b""

    def start(self, document: Document) -> None:
        """Begin with it. To be called once."""
        self._document = pickle.dumps(document)
        self.send(self._document)

    def finish(self) -> bytes:
        """The PDF; made here if the process failed. To be called once."""
        made = self.receive()
        if made is not None:
            return made
        from tkperf.render.pdf import set_document  # noqa: PLC0415 - only then

        return set_document(pickle.loads(self._document))  # noqa: S301 - of ``start``
