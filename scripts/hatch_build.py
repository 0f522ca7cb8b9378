"""Puts man pages into the wheel: pipx shows them to man. They are made by scripts/wheel.sh."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface):  # type: ignore[misc] # its package is there at builds only
    """Builds without them, such as that of an editable install, need none of tkperf's packages."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if folder := os.environ.get("TKPERF_MAN_PAGES"):
            for page in sorted(Path(folder).iterdir()):
                build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"
