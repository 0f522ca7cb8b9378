"""What the user asked of tkperf ssd."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tkperf.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class SsdOptions:
    """The options of one run, as given; None where the profile or a default decides.

    Raises:
        UsageError: NAME cannot be a file name.
    """

    name: str
    device: str
    jobs: int | None
    io_depth: int | None
    step_s: float | None
    tests: tuple[str, ...]
    profile: str
    active_range: str | None
    size: str | None
    folder: Path
    ioengine: str | None
    description: Path | None
    feature_matrix: Path | None
    force: bool
    yes_destroy: str | None
    no_purge: bool
    progress: str
    quiet: bool
    debug: bool
    command_line: tuple[str, ...]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", self.name):
            raise UsageError(
                f"NAME '{self.name}' becomes a file name: use letters, digits and . _ + - only, "
                "beginning with a letter or digit"
            )

    @property
    def run_path(self) -> Path:
        return self.folder / f"{self.name}.tkperf"

    @property
    def log_path(self) -> Path:
        return self.folder / f"{self.name}.log"


def expand_lists(args: Sequence[str], flags: Collection[str], words: Collection[str]) -> list[str]:
    """``-ssdt iops lat`` as ``-ssdt iops -ssdt lat``."""
    expanded: list[str] = []
    flag = ""
    for index, word in enumerate(args):
        follows_flag = index > 0 and args[index - 1] in flags
        if word in flags:
            flag = word
        elif flag and word in words and not follows_flag:
            expanded.append(flag)
        elif not follows_flag:
            flag = ""
        expanded.append(word)
    return expanded
