"""The control groups of tkperf and fio, version 1 and 2: the folders of their limits and counters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroups:
    """The folders of a process's groups, from its own group up to the root, for versions 2 and 1."""

    unified: tuple[Path, ...]
    by_controller: dict[str, tuple[Path, ...]]

    def of(self, controller: str) -> tuple[Path, ...]:
        """Return the folders of a controller's files, nearest first: a limit in any of them applies."""
        return (*self.by_controller.get(controller, ()), *self.unified)


def find_control_groups(root: Path, process: str = "self") -> ControlGroups | None:
    """Find the groups of a process, below a root folder; None if the kernel shows none there."""
    mounts = root / "sys/fs/cgroup"
    unified: tuple[Path, ...] = ()
    by_controller = {}
    for row in _rows(root / "proc" / process / "cgroup"):
        _, _, rest = row.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            top = mounts if (mounts / "cgroup.controllers").exists() else mounts / "unified"
            unified = _chain(top, path)
            continue
        for controller in controllers.split(","):
            chain = _chain(mounts / controllers, path) or _chain(mounts / controller, path)
            by_controller[controller] = chain
    if not unified and not any(by_controller.values()):
        return None
    return ControlGroups(unified=unified, by_controller=by_controller)


def _rows(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _chain(top: Path, path: str) -> tuple[Path, ...]:
    """Return the folders from a group up to the top.

    In a container the path may be the host's: the result has only its folders that exist here.
    """
    if not top.is_dir():
        return ()
    folders = [top]
    for name in path.strip("/").split("/"):
        deeper = folders[-1] / name
        if not name or name == ".." or not deeper.is_dir():
            break
        folders.append(deeper)
    return tuple(reversed(folders))
