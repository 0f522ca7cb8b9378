"""What is fixed about a run before its first I/O, disclosed in every result."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from tkperf.model.units import format_capacity, format_count, parse_size_bytes

# The kind of device of a run that another tool made.
IMPORTED = "imported result"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Everything fixed before the first I/O, disclosed in every result.

    ``device`` and each of ``hosts`` are facts as plain data (name -> value, None = not known);
    ``profile`` is the whole profile as plain data, user options applied, or of an imported run
    what is known of it; ``options`` what the user set. ``seed`` is the run's, from which
    the seeds of its fio jobs are drawn; None: not known, or there is none. ``alterations`` are the numbers of the
    specification that the user's options changed, each as ``runtime 60 s -> 1 s``. ``notices`` are shown on every page of a result (quick profile, file target,
    SIMULATED).
    """

    name: str
    suite: str
    tkperf_version: str
    fio_version: str | None
    ioengine: str
    command_line: tuple[str, ...]
    started_utc: str | None
    profile_name: str
    profile: dict[str, object]
    options: dict[str, object]
    device: dict[str, object]
    hosts: tuple[dict[str, object], ...]
    active_range_offset_bytes: int | None
    active_range_length_bytes: int | None
    device_description: str | None = None
    feature_matrix: str | None = None
    seed: int | None = None
    notices: tuple[str, ...] = ()
    alterations: tuple[str, ...] = ()

    @property
    def specification(self) -> str | None:
        """What was measured by, for every header: altered is what does not keep to its numbers."""
        title = self.profile.get("title")
        if title is None:
            return None
        return f"{title}, altered" if self.alterations else str(title)

    @property
    def host(self) -> dict[str, object]:
        """The first host, which has the device; no facts where it is not known."""
        return self.hosts[0] if self.hosts else {}

    @property
    def is_simulated(self) -> bool:
        """Whether a model was measured: nobody else can reach it, so there is nothing to be told apart."""
        return self.ioengine == "simulated"

    @property
    def fills_members(self) -> bool:
        """Whether the members of a RAID set were filled before it was made, and not the set itself."""
        if self.suite != "raid":
            return False
        filled = self.device.get("preconditioned")
        # Files of before this was kept: a controller's members were not known then.
        return filled == "members" if filled else bool(self.device.get("members"))

    @property
    def software(self) -> str:
        """The program that measured, with its version; of an imported run also who imported it."""
        return self.tkperf_version if self.imported else f"tkperf {self.tkperf_version}"

    @property
    def command_text(self) -> str:
        """The command line as a shell takes it; of an imported run as the other tool wrote it."""
        words = self.command_line
        return " ".join(words) if self.imported else shlex.join(words)

    def table(self, name: str) -> dict[str, object]:
        """A table of the profile; empty where it is not known, as in an imported run."""
        table = self.profile.get(name)
        return table if isinstance(table, dict) else {}

    @property
    def active_range_text(self) -> str | None:
        """``17.2 GB``, or ``17.2 GB in 2,048 segments``; None is not known."""
        if self.active_range_length_bytes is None:
            return None
        length, count = format_capacity(self.active_range_length_bytes), self._segments
        return length if count == 1 else f"{length} in {format_count(count, 'segment')}"

    @property
    def active_range_place(self) -> str | None:
        """The same with where that is; of segments with what their places can be drawn from again."""
        if self._segments == 1:
            offset_bytes = self.active_range_offset_bytes
            return (
                None
                if offset_bytes is None
                else f"{self.active_range_text} from byte {offset_bytes}"
            )
        words = [f"{self.active_range_text} at random places"]
        drawn = self.device.get("segments")
        if isinstance(drawn, dict):
            words += [
                f"seed {drawn.get('seed')} (layout {drawn.get('layout')})",
                f"SHA-256 {str(drawn.get('sha256'))[:16]}",
                f"by {self.device.get('layer')}",
            ]
        return ", ".join(words)

    @property
    def _segments(self) -> int:
        count = self.table("active_range").get("segments")
        return count if isinstance(count, int) else 1

    @property
    def preconditioned_length_bytes(self) -> int | None:
        """Of the range that preconditioning writes; None is not known."""
        length = self.table("preconditioning").get("length")
        return self.active_range_length_bytes if length is None else parse_size_bytes(str(length))

    @property
    def preconditioned_range(self) -> str:
        """``the active range``, or ``the first 80 % of the device``."""
        capacity_bytes, length_bytes = (
            self.device.get("capacity_bytes"), self.preconditioned_length_bytes
        )  # fmt: skip
        if self.table("preconditioning").get("length") is None or length_bytes is None:
            return "the active range"
        if not isinstance(capacity_bytes, int) or not capacity_bytes:
            return f"the first {format_capacity(length_bytes)} of the device"
        return f"the first {100 * length_bytes / capacity_bytes:.3g} % of the device"

    @property
    def imported(self) -> bool:
        """Whether another tool measured it: what nobody recorded is then not known."""
        return self.device.get("kind") == IMPORTED
