"""The process that makes a PDF. It prepares itself while results are still being read.

During this time, the main process renders the page for the screen.
"""

from __future__ import annotations

import pickle

import typst  # noqa: F401 - that it is missing is to be known before anything is written

from tkperf.render.paper import Document
from tkperf.system.process import Worker


class Printer(Worker):
    """Maker of one PDF. Create it early."""

    def __init__(self) -> None:
        super().__init__("tkperf.render.pdf")
        self._document = b""

    def start(self, document: Document) -> None:
        """Start the process on the document. Call it once."""
        self._document = pickle.dumps(document)
        self.send(self._document)

    def finish(self) -> bytes:
        """Return the PDF. If the process failed, this function makes the PDF. Call it once."""
        made = self.receive()
        if made is not None:
            return made
        from tkperf.render.pdf import set_document  # noqa: PLC0415 - only then

        return set_document(pickle.loads(self._document))  # noqa: S301 - of ``start``
