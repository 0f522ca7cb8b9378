"""Puts man pages into the wheel, so that pipx makes them available to man. scripts/wheel.sh creates the man pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface):  # type: ignore[misc] # its package is there at builds only
    """Builds without man pages, such as an editable install, need none of tkperf's packages."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if folder := os.environ.get("TKPERF_MAN_PAGES"):
            for page in sorted(Path(folder).iterdir()):
                build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"
