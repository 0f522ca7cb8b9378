"""Parts that the pages share: the files that are known, the workers, and errors that become pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tkperf.runfile.writers import FileStamp
from tkperf.web.workers import Workers

RUN_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFile:
    """A file that the library found.

    Attributes:
        folder: the served folder that it is in.
        place: its path below that folder.
        stamp: at the library's latest look.
    """

    folder: Path
    place: str
    stamp: FileStamp

    @property
    def name(self) -> str:
        return Path(self.place).stem


class Library(Protocol):
    """Run files and batches below the served folders, by ids that no path can be made of."""

    def find(self, run_id: str) -> KnownFile | None:
        """Return the file of a run; None: there is none."""

    def find_batch(self, batch_id: str) -> KnownFile | None:
        """Return the book of a batch; None: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Parts that every page may use."""

    library: Library
    workers: Workers
