"""The result cache returns only the results of a run file that has not changed."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import run_info, simulate
from tkperf.analysis import over_seconds
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_overview import find_verdict
from tkperf.analysis.run_results import analyse
from tkperf.analysis.verdict import VerdictState, judge_run
from tkperf.model.record import RunRecord, RunStatus
from tkperf.pipeline import result_cache, running_runs
from tkperf.pipeline.result_cache import read_results
from tkperf.pipeline.running_runs import read_overview
from tkperf.procedures import SSD_TESTS
from tkperf.render.export_json import render_json
from tkperf.runfile.reader import read_run
from tkperf.system.output_files import find_cache_folder


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    simulate(folder, run_info(), suite={name: SSD_TESTS[name] for name in ("tp", "writesat")})
    return folder / "run.tkperf"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the cache entries. The test uses a separate cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/tkperf/results"


@pytest.fixture
def analyses(monkeypatch: pytest.MonkeyPatch) -> list[RunResult]:
    """Return a list to which every result is added when it is computed."""
    found: list[RunResult] = []
    analyse: Callable[..., RunResult] = over_seconds.analyse_opened

    def note(*args: object) -> RunResult:
        found.append(analyse(*args))
        return found[-1]

    monkeypatch.setattr(result_cache, "analyse_opened", note)
    return found


def test_kept_results_are_the_results(measured: Path, cache: Path, analyses: list[RunResult]) -> None:
    """Cached results equal the computed results in every digit and type, and need no second analysis. Only the user can
    read the cached results.
    """
    first, second = read_results(measured), read_results(measured)
    assert len(analyses) == 1
    assert second == first
    assert render_json(second) == render_json(first)
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_changed_file_is_analysed_again(
    measured: Path, cache: Path, analyses: list[RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the run file or the code of tkperf has changed, the run is analysed again. The new entry replaces the old
    entry.
    """
    read_results(measured)
    os.utime(measured)
    read_results(measured)
    assert len(analyses) == 2
    monkeypatch.setattr(result_cache, "describe_maker", lambda: "a later version")
    read_results(measured)
    read_results(measured)
    assert len(analyses) == 3
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damage", [lambda _: b"", lambda old: old[:-9], lambda old: old[:99] + b"\0" + old[100:]])
def test_a_damaged_entry_is_made_again(
    damage: Callable[[bytes], bytes], measured: Path, cache: Path, analyses: list[RunResult]
) -> None:
    """If a cache entry is damaged (empty, truncated or with a changed byte), the results are computed again without a
    message.
    """
    sound = read_results(measured)
    (entry,) = cache.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    assert read_results(measured) == sound
    assert read_results(measured) == sound
    assert len(analyses) == 2


def test_a_run_under_way_has_no_kept_results(measured: Path, cache: Path, analyses: list[RunResult]) -> None:
    """A run in progress does not use the results that were cached when the run ended earlier, and the results of a run
    in progress are not cached.
    """
    read_results(measured)
    with measured.open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        read_results(measured)
    assert len(analyses) == 2
    (entry,) = cache.iterdir()
    before = entry.stat().st_mtime_ns
    result_cache.keep_results((1, 2, 3, 4), replace(analyses[0], status=RunStatus.RUNNING))
    assert [one.stat().st_mtime_ns for one in cache.iterdir()] == [before]


def test_without_a_cache_results_are_computed(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, analyses: list[RunResult]
) -> None:
    """Without a cache folder, results are computed without an error."""
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", Path("/proc/none")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(place))
        assert find_cache_folder() is None
        assert read_results(measured).tests
    assert len(analyses) == 2


def test_the_oldest_entries_make_room(measured: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest cache entries are deleted when the number or the size of the entries exceeds its limit. While tkperf
    lists thousands of runs, it checks these limits only at intervals.
    """
    result = read_results(measured)
    (entry,) = cache.iterdir()
    os.utime(entry, (0, 0))
    monkeypatch.setattr(result_cache, "_KEEPS_BETWEEN_LOOKS", 1)
    with monkeypatch.context() as smaller:
        smaller.setattr(result_cache, "MOST_BYTES", 3 * entry.stat().st_size)
        for inode in (1, 2, 3):
            result_cache.keep_results((1, inode, 3, 4), result)
        assert sorted(one.name for one in cache.iterdir()) == ["1-2", "1-3"]
    monkeypatch.setattr(result_cache, "_MOST_ENTRIES", 3)
    for inode in (4, 5):
        result_cache.keep_results((1, inode, 3, 4), result)
    assert sorted(one.name for one in cache.iterdir()) == ["1-4", "1-5"]
    monkeypatch.setattr(result_cache, "_KEEPS_BETWEEN_LOOKS", 100)
    monkeypatch.setattr(result_cache, "_keeps", Counter(results=99))
    result_cache.keep_results((1, 6, 3, 4), result)
    assert len(list(cache.iterdir())) == 3
    result_cache.keep_results((1, 7, 3, 4), result)
    assert len(list(cache.iterdir())) == 2


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[RunRecord]:
    """Return a list to which a record is added when its verdict is computed for a list of runs."""
    found: list[RunRecord] = []

    def note(record: RunRecord) -> VerdictState:
        found.append(record)
        return find_verdict(record)

    monkeypatch.setattr(running_runs, "find_verdict", note)
    return found


@pytest.mark.usefixtures("cache")
def test_a_run_is_judged_once_for_lists_of_runs(
    measured: Path, judged: list[RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is judged once for all lists of runs, so the second list does not open the run file. If the run file or the
    code of tkperf has changed, the run is judged again.
    """
    first = read_overview(measured, judged=True)
    with monkeypatch.context() as closed:
        closed.setattr(running_runs, "RunFile", None)
        assert read_overview(measured, judged=True) == first
    assert first.verdict is judge_run(analyse(read_run(measured))).state
    assert len(judged) == 1
    os.utime(measured)
    assert read_overview(measured, judged=True) == first
    assert len(judged) == 2
    monkeypatch.setattr(result_cache, "describe_maker", lambda: "a later version")
    assert read_overview(measured, judged=True) == first
    assert len(judged) == 3


@pytest.mark.usefixtures("cache")
def test_a_list_of_runs_takes_the_verdict_of_results_that_were_computed(
    measured: Path, judged: list[RunRecord]
) -> None:
    """If the results of a run were already computed, for example at the end of the run, a list of runs uses the verdict
    of these results. The first list is then as fast as the second list.
    """
    read_results(measured)
    kept = read_overview(measured, judged=True)
    assert judged == []
    os.utime(measured)
    assert read_overview(measured, judged=True) == kept
    assert len(judged) == 1


@pytest.mark.usefixtures("cache", "judged")
def test_a_run_is_judged_without_its_histograms(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of runs judges a run without reading its histograms. Decompressing histograms would take longer than all
    other work, and no verdict needs them.
    """

    def never(*_: object) -> None:
        raise AssertionError("a histogram is unpacked")

    expected = judge_run(analyse(read_run(measured))).state
    monkeypatch.setattr("tkperf.runfile.columns.unpack_integers", never)
    assert read_overview(measured, judged=True).verdict is expected


@pytest.mark.usefixtures("cache")
def test_a_run_that_goes_on_has_no_kept_verdict(measured: Path, judged: list[RunRecord]) -> None:
    """If a run was resumed, its verdict is not taken from the cache, because the resumed run may end with another
    verdict.
    """
    os.utime(measured)
    read_overview(measured, judged=True)
    with measured.open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        read_overview(measured, judged=True)
    assert len(judged) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a home of another user")
def test_root_leaves_the_cache_of_another_user_alone(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If root runs tkperf in the home folder of another user, tkperf neither creates files in the cache of this user
    nor trusts existing files there.
    """
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 1234, 1234)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    read_results(measured)
    assert not list(home.iterdir())
    (home / ".cache/tkperf").mkdir(parents=True)
    os.chown(home / ".cache/tkperf", 1234, 1234)
    assert find_cache_folder() is None


def test_others_cannot_read_an_older_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "tkperf").mkdir(mode=0o755)
    assert find_cache_folder() == tmp_path / "tkperf"
    assert (tmp_path / "tkperf").stat().st_mode & 0o777 == 0o700
    (tmp_path / "tkperf").rmdir()
    (tmp_path / "tkperf").symlink_to("/tmp")
    assert find_cache_folder() is None
