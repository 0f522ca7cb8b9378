"""Consent for all drives of a batch: by a file, or typed once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tkperf.model.batch import DriveShown
from tkperf.model.errors import RefusedError


def confirm_by_file(path: Path, shown: Sequence[DriveShown]) -> None:
    """Check the lines of a file against the drives."""
    lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    if sorted(lines) != sorted(drive.confirm_id or "" for drive in shown):
        raise RefusedError(f"{path} does not confirm these drives. Nothing was touched")
