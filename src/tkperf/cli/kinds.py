"""Kinds of values on the command line. Their shell completion offers only files of the right kind."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import isnan
from pathlib import Path
from stat import S_ISBLK
from typing import Any

import click
from click.shell_completion import CompletionItem

from tkperf.cli.calling import offer
from tkperf.model.choices import BATCH_SUFFIX, PRESETS, RUN_FILE_SUFFIX, SIMULATED
from tkperf.model.errors import UsageError
from tkperf.model.input_files import START_OF_A_RUN_FILE, TEXT_BYTES, read_input

_DEVICES = "/dev/"
_MOST_NAMED = 5


class Count(click.IntRange):
    """The type of an option whose value is a whole number within limits. Help and messages show the limits as ``1 to
    1,024``.
    """

    def _describe_range(self) -> str:
        return f"{self.min:,} to {self.max:,}"


class Number(click.FloatRange):
    """The type of an option whose value is a number within limits. NaN is never within the limits."""

    def _describe_range(self) -> str:
        return f"{self.min:,} to {self.max:,}"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number = float(super().convert(value, param, ctx))
        if isnan(number):
            self.fail("NaN is no number", param, ctx)
        return number


class InputFile(click.ParamType[Path]):
    """The type of an option whose value is an input file. The command itself reports a fault in the content of the
    file.
    """

    name = "file"

    def __init__(self, *suffixes: str) -> None:
        """Store ``suffixes``, the file name extensions that completion offers."""
        self._suffixes = suffixes

    def convert(self, value: Any, param: object, ctx: object) -> Path:
        return Path(value)

    def shell_complete(self, ctx: object, param: object, incomplete: str) -> list[CompletionItem]:
        return offer_files(incomplete, self._suffixes)


class RunFolder(InputFile):
    """The type of an option whose value is the folder of a run. The run itself reports an error if it cannot write to
    the folder.
    """

    name = "folder"

    def shell_complete(self, ctx: object, param: object, incomplete: str) -> list[CompletionItem]:
        return _folders(incomplete)


class TextOf(click.ParamType[str]):
    """The type of an option whose value is the text of a file. The file is read at once, so that an unreadable file is
    reported before the purge.
    """

    name = "file"

    def __init__(self, what: str) -> None:
        self._what = what

    def convert(self, value: str, param: object, ctx: click.Context | None) -> str:
        # completion does not read the file, because the file may be a pipe
        if ctx is not None and ctx.resilient_parsing:
            return ""
        content = read_input(Path(value), what=self._what, limit_bytes=TEXT_BYTES)
        return content.decode(errors="replace")

    def shell_complete(self, ctx: object, param: object, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


class RunFileArgument(click.ParamType[Path]):
    """The type of an argument that names a run file. The argument is a path with or without ``.tkperf``, or a folder
    that contains no other run file.
    """

    name = "run file"

    def convert(self, value: Any, param: object, ctx: object) -> Path:
        return find_run_file(os.fspath(value))

    def shell_complete(self, ctx: object, param: object, incomplete: str) -> list[CompletionItem]:
        return offer_files(incomplete, (RUN_FILE_SUFFIX, BATCH_SUFFIX))


class RunsArgument(click.ParamType[Path]):
    """The type of an argument that names runs. The argument is a run file with or without ``.tkperf``, a batch, or a
    folder that contains run files at any depth.
    """

    name = "runs"

    def convert(self, value: Any, param: object, ctx: object) -> Path:
        given = os.fspath(value)
        return Path(given) if os.path.isdir(given) else find_run_file(given)  # noqa: PTH112

    def shell_complete(self, ctx: object, param: object, incomplete: str) -> list[CompletionItem]:
        return offer_files(incomplete, (RUN_FILE_SUFFIX, BATCH_SUFFIX)) + _folders(incomplete)


class Device(click.ParamType[str]):
    """The type of the argument DEVICE. Completion offers the presets of simulated drives, and block devices."""

    name = "device"

    def __init__(self, *, simulated: bool = True) -> None:
        self._presets = PRESETS if simulated else ()

    def shell_complete(self, ctx: object, param: object, incomplete: str) -> list[CompletionItem]:
        simulated = [f"{SIMULATED}{preset}" for preset in self._presets]
        if incomplete.startswith(_DEVICES):
            return offer_files(incomplete, (), block_devices=True)
        return offer([*simulated, _DEVICES], incomplete)


class ProfileName(click.ParamType[str]):
    """The type of an option whose value is the name of a shipped profile, or the path of the user's own TOML file."""

    name = "profile"

    def __init__(self, offered: Sequence[str]) -> None:
        """Store ``offered``, the shipped profiles that the command can use."""
        self._offered = offered

    def shell_complete(self, ctx: object, param: object, incomplete: str) -> list[CompletionItem]:
        return offer(self._offered, incomplete) or offer_files(incomplete, (".toml",))


RUN_FILE = RunFileArgument()
RUNS = RunsArgument()
# A file or folder for output is created if it does not exist. The file name ``-`` means stdout.
OUTPUT_FILE = click.Path(dir_okay=False, readable=False, path_type=Path, allow_dash=True)
OUTPUT_FOLDER = click.Path(file_okay=False, readable=False, path_type=Path)


def _folders(begun: str) -> list[CompletionItem]:
    return [CompletionItem(begun, type="dir")]


def find_run_file(given: str) -> Path:
    """Return the run file that a word means. The word is the path of the file, NAME instead of NAME.tkperf, or a folder
    that contains only one run file.
    """
    if given.endswith(RUN_FILE_SUFFIX) and os.path.exists(given):  # noqa: PTH110 # also False for too long names
        return Path(given)
    meant = list(_candidates(given))
    if len(meant) > 1:
        listed = ", ".join(meant[:_MOST_NAMED])
        more = f" and {len(meant) - _MOST_NAMED} more" if len(meant) > _MOST_NAMED else ""
        raise UsageError(f"the name '{given[:80]}' can mean any of the run files {listed}{more}. Name one of them")
    # If no file matches, the code that reads the file reports the error.
    return Path(meant[0] if meant else given)


def find_run_file_instead(given: str) -> str | None:
    """Return the run file or the batch that a word names although the command expects another kind of file. None means
    that the word names neither a run file nor a batch.
    """
    if given.endswith((RUN_FILE_SUFFIX, BATCH_SUFFIX)) or _is_run_file(given):
        return given
    if os.path.lexists(given) and not os.path.isdir(given):  # noqa: PTH112
        return None
    return next(_candidates(given), None)


def _candidates(given: str) -> Iterator[str]:
    """Yield all run files that a word can mean if the word is not the complete name of a run file."""
    if _is_run_file(given):
        yield given
    if os.path.isfile(f"{given}{RUN_FILE_SUFFIX}"):  # noqa: PTH113
        yield f"{given}{RUN_FILE_SUFFIX}"
    elif os.path.isfile(f"{given}{BATCH_SUFFIX}"):  # noqa: PTH113
        yield f"{given}{BATCH_SUFFIX}"
    if os.path.isdir(given):  # noqa: PTH112
        with suppress(OSError):
            yield from sorted(map(str, Path(given).glob(f"*{RUN_FILE_SUFFIX}")))


def _is_run_file(path: str) -> bool:
    """Return whether a file begins with the first bytes of a run file although its name does not end with .tkperf. The
    function never waits, for example for a file under /proc.
    """
    try:
        if not os.path.isfile(path) or not os.path.getsize(path):  # noqa: PTH113, PTH202
            return False
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, len(START_OF_A_RUN_FILE)) == START_OF_A_RUN_FILE
        finally:
            os.close(descriptor)
    except OSError:
        return False


def offer_files(begun: str, suffixes: Iterable[str], *, block_devices: bool = False) -> list[CompletionItem]:
    """Return completions: the files with these extensions whose names begin with ``begun``. If there are none, return
    folders that may contain such files.

    Names with control characters are omitted, because the answer to a shell consists of lines.
    """
    folder, slash, name = begun.rpartition("/")
    hidden = name.startswith(".")
    try:
        with os.scandir(f"{folder}{slash}" or ".") as entries:
            found = sorted(
                f"{folder}{slash}{entry.name}"
                for entry in entries
                if entry.name.startswith(name)
                and (hidden or not entry.name.startswith("."))
                and entry.name.isprintable()
                and (_is_block_device(entry) if block_devices else entry.name.endswith(tuple(suffixes)))
            )
    except OSError:
        found = []
    return [CompletionItem(path, is_path=True) for path in found] or _folders(begun)


def _is_block_device(entry: os.DirEntry[str]) -> bool:
    try:
        return S_ISBLK(entry.stat().st_mode)
    except OSError:
        return False
