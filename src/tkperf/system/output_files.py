"""Output files and their folders. To reach them, tkperf follows no link that other users may have created.

tkperf follows a path name by name, and opens each folder before it looks up the next name in this folder. If another
user replaces a name in the meantime, tkperf therefore cannot be led to another folder.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tkperf.model.errors import UsageError

# The greatest number of names in a path, including the names in its links. The kernel follows up to 40 links.
_MOST_NAMES = 4096
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RENAME_EXCHANGE = 2  # linux/fs.h
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# The kernel creates the links in this folder, such as the target of /dev/stdout. These links lead to files without a
# name.
_PROC = Path("/proc")
UNFINISHED = re.compile(r"\.tkperf-[0-9a-f]{16}\.(part|folder(\.old)?)")
"""The pattern for the name of a file or folder that is not complete yet, or of a folder that was replaced."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An open folder, and a name in it. ``is_magic`` means that the name refers to a descriptor, such as
    /dev/stdout.
    """

    folder: int
    name: str
    is_magic: bool = False

    def open(self, flags: int, mode: int = 0o666) -> int:
        """Open the file with this name. A link with this name is not followed."""
        flags |= os.O_CLOEXEC | os.O_NOCTTY | (0 if self.is_magic else os.O_NOFOLLOW)
        return os.open(self.name, flags, mode, dir_fd=self.folder)

    def kind(self) -> int | None:
        """Return the type of the file with this name, in the form of ``stat.S_IFMT``. None means that the file does not
        exist.
        """
        try:
            status = os.stat(self.name, dir_fd=self.folder, follow_symlinks=self.is_magic)
        except FileNotFoundError:
            return None
        return stat.S_IFMT(status.st_mode)


@contextmanager
def reach(path: Path, *, makes_folder: bool = False, look_only: bool = False) -> Iterator[FolderEntry]:
    """Yield the open folder of a file to write, with the name of the file in this folder.

    Args:
        makes_folder: whether to create the folder of the file if it is missing. Its parent folder must exist.
        look_only: whether a folder that ``makes_folder`` would create is not created. If this folder is missing, the
            result is its parent folder.

    Raises:
        UsageError: the folder of the file does not exist, or the path contains another user's link or pipe.
        OSError: a folder of the path cannot be opened or created.
    """
    walk = _Walk(path)
    try:
        yield walk.go(makes_folder=makes_folder, look_only=look_only)
    finally:
        os.close(walk.folder)


def make_folder(folder: Path) -> None:
    """Create a folder if it is missing. Its parent folder must exist. Raise the same errors as ``reach``."""
    walk = _Walk(folder / "file", named=folder)
    try:
        walk.go(makes_folder=True, look_only=False)
    finally:
        os.close(walk.folder)


def replace_file(path: Path, pieces: Iterable[bytes], *, makes_folder: bool = False) -> None:
    """Write a file, which receives its name only when it is complete. If the path is an existing device or pipe, write
    to it directly.

    A hard link to an earlier file with this name keeps the earlier content. Raise the same errors as ``reach``.
    """
    with reach(path, makes_folder=makes_folder) as place:
        if place.kind() not in (None, stat.S_IFREG) or place.is_magic:
            with open(place.open(os.O_WRONLY | os.O_APPEND), "wb") as file:
                file.writelines(pieces)
            return
        # Other users may have permission to write to this folder. The name is therefore random, and the file must be
        # new.
        unfinished = f".tkperf-{os.urandom(8).hex()}.part"
        try:
            part = FolderEntry(place.folder, unfinished).open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with open(part, "wb") as file:
                file.writelines(pieces)
            os.replace(unfinished, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished, dir_fd=place.folder)
            raise


def replace_folder(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a folder of files, which receives its name only when it is complete.

    An existing folder with this name is replaced in one step, and its files are deleted. The existing folder may
    contain only files. A link with this name is refused, because the files of another folder would be deleted. The
    parent folder must exist. Raise the same errors as ``reach``.
    """
    with reach(path.parent) as entry:
        above = os.open(entry.name, _FOLDER, dir_fd=entry.folder)
    try:
        kind = FolderEntry(above, path.name).kind()
        if kind not in (None, stat.S_IFDIR):
            raise UsageError(f"{path} is not a folder, and tkperf does not replace it. Move this file away")
        unfinished = f".tkperf-{os.urandom(8).hex()}.folder"
        os.mkdir(unfinished, dir_fd=above)
        try:
            _write_files(FolderEntry(above, unfinished), files)
            if kind is None:
                os.rename(unfinished, path.name, src_dir_fd=above, dst_dir_fd=above)
            else:
                _exchange(above, unfinished, path.name)
        finally:
            with suppress(FileNotFoundError):
                remove_folder(above, unfinished)
    finally:
        os.close(above)


def _write_files(folder: FolderEntry, files: Iterable[tuple[str, bytes]]) -> None:
    inside = os.open(folder.name, _FOLDER, dir_fd=folder.folder)
    try:
        for name, content in files:
            new = FolderEntry(inside, name).open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with open(new, "wb") as file:
                file.write(content)
    finally:
        os.close(inside)


def remove_folder(above: int, name: str) -> None:
    """Remove a folder that contains only files. ``above`` is a descriptor of the parent folder."""
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        for file in os.listdir(folder):  # noqa: PTH208 - the folder is a descriptor
            os.unlink(file, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=above)


def _exchange(folder: int, name: str, other: str) -> None:
    """Exchange two names in a folder. The exchange is one step if the kernel and the file system support this."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is not None:
        done = renameat2(folder, os.fsencode(name), folder, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE))
        if done == 0:
            return
        failed = ctypes.get_errno()
        if failed not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise OSError(failed, os.strerror(failed))
    spare = f"{name}.old"
    os.rename(other, spare, src_dir_fd=folder, dst_dir_fd=folder)
    os.rename(name, other, src_dir_fd=folder, dst_dir_fd=folder)
    os.rename(spare, name, src_dir_fd=folder, dst_dir_fd=folder)


class _Walk:
    """A step-by-step resolution of a path. ``folder`` is the open folder that the resolution has reached, and ``_at``
    is the folder's path.

    Error messages contain the path ``named``.
    """

    def __init__(self, path: Path, *, named: Path | None = None) -> None:
        self._path = named or path
        self._at = Path("/")
        self._names = [*reversed(path.absolute().parts[1:])]
        self.folder = os.open("/", _FOLDER)

    def go(self, *, makes_folder: bool, look_only: bool) -> FolderEntry:
        for _ in range(_MOST_NAMES):
            if not self._names:
                break
            name = self._names.pop()
            try:
                status = os.stat(name, dir_fd=self.folder, follow_symlinks=False)
            except FileNotFoundError:
                if not self._names:
                    return FolderEntry(self.folder, name)
                if not makes_folder or len(self._names) > 1:
                    raise self._missing(name) from None
                if look_only:
                    break
                os.mkdir(name, dir_fd=self.folder)
                self._enter(name)
                continue
            self._refuse_laid_by_others(name, status)
            is_link = stat.S_ISLNK(status.st_mode)
            is_magic = is_link and self._at.is_relative_to(_PROC)
            if is_link and not is_magic:
                self._follow(name)
            elif not self._names:
                return FolderEntry(self.folder, name, is_magic)
            else:
                self._enter(name, follow=is_magic)
        return FolderEntry(self.folder, ".")

    def _enter(self, name: str, *, follow: bool = False) -> None:
        flags = _FOLDER & ~os.O_NOFOLLOW if follow else _FOLDER
        self._become(os.open(name, flags, dir_fd=self.folder))
        self._at = self._at.parent if name == ".." else self._at / name

    def _follow(self, name: str) -> None:
        target = Path(os.readlink(name, dir_fd=self.folder))
        if target.is_absolute():
            self._become(os.open("/", _FOLDER))
            self._at = Path("/")
        self._names += reversed(target.parts[target.is_absolute() :])

    def _become(self, folder: int) -> None:
        os.close(self.folder)
        self.folder = folder

    def _missing(self, name: str) -> UsageError:
        folder = self._at.joinpath(name, *reversed(self._names[1:]))
        return UsageError(
            f"{self._path}: the folder {self._at / name} does not exist. Nothing was written. Create "
            f"the folder first (mkdir -p {folder}), or name another folder"
        )

    def _refuse_laid_by_others(self, name: str, status: os.stat_result) -> None:
        """Refuse a link or pipe anywhere in the path, unless only this user or root can have created it.

        Root can write to every folder. For root, other users must therefore not be able to write to the folder of a
        link either. The kernel has such a rule for folders like /tmp, but only if a program opens the link itself.
        """
        is_link = stat.S_ISLNK(status.st_mode)
        if not is_link and not stat.S_ISFIFO(status.st_mode):
            return
        why = None
        if status.st_uid not in (0, os.geteuid()):
            why = f"is a link or a pipe that another user created (uid {status.st_uid})"
        elif is_link and os.geteuid() == 0 and os.fstat(self.folder).st_mode & _OTHERS_WRITE:
            why = "is a link in a folder that others can write to"
        if why is not None:
            raise UsageError(
                f"{self._path}: {self._at / name} {why}. Nothing was written. Pass the path of a regular file"
            )


def find_cache_folder(name: str = "") -> Path | None:
    """Return tkperf's folder in the user's cache, or the folder ``name`` in it. Create the folder if it is missing.

    None means that no such folder belongs to the effective user alone. Root therefore neither uses nor creates a folder
    in the home of another user.
    """
    with suppress(OSError, RuntimeError):  # a RuntimeError means that the user has no home folder
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
