"""tkperf's folder in the user's cache. Everything in it can be made again."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def find_cache_folder(name: str = "") -> Path | None:
    """Return tkperf's folder in the user's cache, or the folder of that name in it; make it if it is missing.

    None: there is none that belongs to the effective user alone. So root neither uses nor makes a folder in the home of
    another user.
    """
    with suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
        given = Path(os.environ.get("XDG_CACHE_HOME", ""))
        cache = given if given.is_absolute() else Path.home() / ".cache"
        above = next(each for each in (cache, *cache.parents) if os.path.lexists(each))
        if above.stat().st_uid != 0 == os.geteuid():
            return None
        folder = cache / "tkperf"
        for each in (folder, folder / name):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = each.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                return None
            if stat.S_IMODE(status.st_mode) & 0o077:
                each.chmod(0o700)
        return folder / name
    return None
