"""The drives of a batch as the user sees them before the question."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.model.batch import DriveShown
from tkperf.model.units import format_capacity, format_count
from tkperf.page.page import TableView

_NOTHING = "-"


def build_consent_table(drives: Sequence[DriveShown], *, asked: int) -> TableView:
    """Return what the processes of the drives found: a row each; ``asked`` of them lose data."""
    title = format_count(len(drives), "drive")
    lost = "nothing on them can be lost" if not asked else f"{asked} of them are erased"
    return TableView(
        title=f"{title}: {'all are erased' if asked == len(drives) else lost}",
        columns=("", "slot", "drive", "model", "serial number", "size", "holds", "run"),
        labels=3,
        rows=tuple(
            (
                str(drive.number),
                drive.slot or _NOTHING,
                drive.path,
                drive.model or _NOTHING,
                drive.serial or _NOTHING,
                format_capacity(drive.capacity_bytes),
                ", ".join(drive.data) or ("nothing to lose" if drive.confirm_id is None else "no data recognised"),
                drive.name,
            )
            for drive in drives
        ),
    )  # fmt: skip
