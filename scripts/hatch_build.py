"""Add files that are not in git to a build: the version and the man pages.

The version is a module, because reading it from the metadata of the package would take 50 ms at each start. pipx makes
the man pages in a wheel available to man. scripts/wheel.sh creates the man pages. The sdist contains the man pages, so
a wheel that is built from the sdist contains them as well.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VERSION = "tkperf/model/built_version.py"
MAN_PAGES = "man"


class BuiltFiles(BuildHookInterface):  # type: ignore[misc] # only builds install its package
    """The build hook. An editable installation writes the version into the checkout. All other builds leave the sources
    unchanged.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        module = f'"""The version with which this tkperf was built."""\n\n__version__ = "{self.metadata.version}"\n'
        if version == "editable":
            (Path(self.root, "src", VERSION)).write_text(module, encoding="utf-8")
            return
        self.folder = Path(tempfile.mkdtemp(prefix="tkperf-build-"))
        built = self.folder / Path(VERSION).name
        built.write_text(module, encoding="utf-8")
        build_data["force_include"][str(built)] = f"src/{VERSION}" if self.target_name == "sdist" else VERSION
        pages = Path(os.environ.get("TKPERF_MAN_PAGES") or Path(self.root, MAN_PAGES))
        for page in sorted(pages.glob("*.1")):
            if self.target_name == "sdist":
                build_data["force_include"][str(page)] = f"{MAN_PAGES}/{page.name}"
            else:
                build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"

    def finalize(self, version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self.folder)
