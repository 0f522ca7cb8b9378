"""The results and overviews of runs in the user's cache, so that a run file that has not changed is not
analysed again.

An entry contains the results of one state of one file, computed by one state of tkperf's code. If the entry cannot be
read or written, the results are computed again. A list of runs shows only the overview of each run. The overview has a
separate entry, which is a hundred times smaller. The figures that a ranking uses have a third entry.
"""

from __future__ import annotations

import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from tkperf.analysis.comparing.run_figures import RunFigures, build_run_figures
from tkperf.analysis.over_seconds import analyse_opened
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_overview import RunOverview, build_ended_overview
from tkperf.analysis.verdict import judge_run
from tkperf.model.decoding import make_msgpack_decoder
from tkperf.model.errors import UsageError
from tkperf.model.record import RunRecord, RunStatus
from tkperf.model.version import __version__
from tkperf.runfile.reader import RunFile
from tkperf.runfile.writers import FileStamp, is_being_written, state_of
from tkperf.system.output_files import find_cache_folder, replace_file

MOST_BYTES = 256 << 20
"""The greatest size of all entries of one kind in bytes. A thousand runs of four tests need less."""
_MOST_BYTES_OF_ENTRY = 64 << 20
# The number of writes between two checks of the total size. A check needs microseconds for each entry.
_KEEPS_BETWEEN_LOOKS = 100
_MOST_ENTRIES = 20_000
# Subpackages whose code influences the results.
_ROOMS = ("analysis", "interop", "model", "procedures", "runfile", "runner")


_RESULTS, _OVERVIEWS, _FIGURES = "results", "overviews", "figures"

_keeps = Counter[str]()
"""The number of entries of each kind that this process has written."""

Content = TypeVar("Content", RunResult, RunOverview, RunFigures)


class _Entry(msgspec.Struct, Generic[Content], array_like=True, frozen=True):
    made_by: str
    state: FileStamp
    content: Content


def read_results(path: Path) -> RunResult:
    """Return the results of a run file, from the cache if the cache contains them.

    Raises:
        RunFileError: the file is missing, damaged, or not a run file.
    """
    _, kept = _look_up(_RESULTS, RunResult, path)
    if kept is not None:
        return kept
    with RunFile(path, briefly=True) as opened:
        return _compute(opened, opened.record())


def read_figures(path: Path) -> RunFigures:
    """Return the figures by which a run file is ranked, from the cache if the cache contains them.

    Raises:
        RunFileError: the file is missing, damaged, or not a run file.
    """
    state, kept = _look_up(_FIGURES, RunFigures, path)
    if kept is not None:
        return kept
    result = read_results(path)
    figures = build_run_figures(result)
    if state is not None and _is_final(result):
        with suppress(OSError):
            if state_of(path.stat()) == state:  # in any other case, the figures may belong to a later state of the file
                _keep(_FIGURES, state, figures)
    return figures


def find_results(opened: RunFile, record: RunRecord) -> RunResult:
    """Return the results of an open run file, from the cache if the cache contains them. ``record`` was read from the
    file.
    """
    running = record.status is RunStatus.RUNNING
    kept = None if running else _find_kept(_RESULTS, RunResult, opened.state)
    return kept or _compute(opened, record)


def _compute(opened: RunFile, record: RunRecord) -> RunResult:
    result = analyse_opened(opened, record)
    keep_results(opened.state, result)
    if _is_final(result):
        verdict = judge_run(result).state
        keep_overview(opened.state, build_ended_overview(record, opened.log(), verdict))
    return result


def keep_results(state: FileStamp, result: RunResult) -> None:
    """Store the results of a file in this state. The results of a running run, or of a damaged file, are not stored.
    The function raises no error.
    """
    if _is_final(result):
        _keep(_RESULTS, state, result)


def _is_final(result: RunResult) -> bool:
    """Return whether the run has ended, and whether its whole file could be read."""
    return result.status is not RunStatus.RUNNING and not result.left_out


def find_overview(path: Path) -> RunOverview | None:
    """Return the overview of a finished run from the cache. None means that the cache does not contain it. The function
    raises no error.
    """
    _, kept = _look_up(_OVERVIEWS, RunOverview, path)
    return None if kept is None else replace(kept, run_file=str(path))


def keep_overview(state: FileStamp, overview: RunOverview) -> None:
    """Store the overview of a finished run, with its verdict. The overview of a damaged file is not stored. The
    function raises no error.
    """
    _keep(_OVERVIEWS, state, overview)


def _keep(kind: str, state: FileStamp, content: RunResult | RunOverview | RunFigures) -> None:
    # A TypeError occurs if an interrupted step has a histogram, because msgspec cannot encode a histogram.
    with suppress(OSError, UsageError, TypeError):
        encoded = msgspec.msgpack.encode(_Entry(describe_maker(), state, content))
        if len(encoded) <= _MOST_BYTES_OF_ENTRY and (place := _place_of(kind, state)) is not None:
            replace_file(place, [zlib.compress(encoded, 1)])
            if _keeps[kind] % _KEEPS_BETWEEN_LOOKS == 0:
                _remove_oldest(place.parent)
            _keeps[kind] += 1


def _look_up(kind: str, type_: type[Content], path: Path) -> tuple[FileStamp | None, Content | None]:
    """Return the state of a run file, and the content of the entry for this state. The content is None if there is no
    such entry. Both results are None if a process is writing the file, or if the file cannot be read.
    """
    with suppress(OSError):
        if not is_being_written(path):
            state = state_of(path.stat())
            return state, _find_kept(kind, type_, state)
    return None, None


def _find_kept(kind: str, type_: type[Content], state: FileStamp) -> Content | None:
    with suppress(OSError, zlib.error, msgspec.MsgspecError):
        if (place := _place_of(kind, state)) is not None:
            entry_type: Any = _Entry[type_]  # type: ignore[valid-type]
            decoder = make_msgpack_decoder(entry_type)
            entry: _Entry[Content] = decoder.decode(zlib.decompress(place.read_bytes()))
            if (entry.made_by, entry.state) == (describe_maker(), state):
                return entry.content
    return None


def _place_of(kind: str, state: FileStamp) -> Path | None:
    """Return the path of the entry of a file. An entry for a later state of the file has the same path, and therefore
    replaces the earlier entry. None means that no cache exists.
    """
    folder = find_cache_folder(kind)
    device, inode, *_ = state
    return None if folder is None else folder / f"{device:x}-{inode:x}"


def _remove_oldest(folder: Path) -> None:
    """Remove the oldest quarter of the entries if there are too many entries, or if their total size is too large."""
    stats = ((one, one.stat()) for one in folder.iterdir())
    found = sorted((stat.st_mtime_ns, stat.st_size, one) for one, stat in stats)
    kept_bytes, kept = sum(size for _, size, _ in found), len(found)
    if kept_bytes <= MOST_BYTES and kept <= _MOST_ENTRIES:
        return
    for _, size, entry in found:
        if kept_bytes > MOST_BYTES * 3 // 4 or kept > _MOST_ENTRIES * 3 // 4:
            entry.unlink()
            kept_bytes -= size
            kept -= 1


@cache
def describe_maker() -> str:
    """Return the version of tkperf, with a digest of the code that influences results."""
    digest = blake2b(np.__version__.encode(), digest_size=16)
    package = Path(str(resources.files("tkperf")))
    for room in _ROOMS:
        for file in sorted((package / room).rglob("*.*")):
            if file.suffix in (".py", ".toml"):
                digest.update(file.read_bytes())
    return f"{__version__} {digest.hexdigest()}"
