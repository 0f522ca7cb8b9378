"""Run files below the served folders, by ids."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.runfile.writers import state_of
from tkperf.web.site import KnownFile


class FolderLibrary:
    """Files as they lie in the folders; an id is a digest of the place."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    def find(self, run_id: str) -> KnownFile | None:
        """Return the file of a run; None: there is none."""
        return self.list_runs().get(run_id)

    def list_runs(self) -> dict[str, KnownFile]:
        """Return all files by their ids."""
        found = {}
        for folder in self._folders:
            for path in sorted(folder.rglob(f"*{RUN_FILE_SUFFIX}")):
                if path.is_file() and not path.is_symlink():
                    place = str(path.relative_to(folder))
                    known = KnownFile(folder=folder, place=place, stamp=state_of(path.stat()))
                    found[hashlib.sha256(str(path).encode()).hexdigest()[:32]] = known
        return found
