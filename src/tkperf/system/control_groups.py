"""The control groups that tkperf or fio is in, of version 1 and 2: where their limits and counters lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroups:
    """The folders of a process's group from its own up to the root, of version 2 and of version 1."""

    unified: tuple[Path, ...]
    by_controller: dict[str, tuple[Path, ...]]

    def of(self, controller: str) -> tuple[Path, ...]:
        """Where a controller's files lie, nearest first: a limit of any of them holds."""
        return (*self.by_controller.get(controller, ()), *self.unified)


def find_control_groups(root: Path, process: str = "self") -> ControlGroups | None:
    """Below a root folder, of a process by its number; None: the kernel shows none there."""
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
    """From a group up to the top. In a container the path may be the host's: of it only what is shown here."""
    if not top.is_dir():
        return ()
    folders = [top]
    for name in path.strip("/").split("/"):
        deeper = folders[-1] / name
        if not name or name == ".." or not deeper.is_dir():
            break
        folders.append(deeper)
    return tuple(reversed(folders))
