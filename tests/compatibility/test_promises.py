"""The promises of docs/reference/compatibility.md. A promise of a release remains valid in every later version with the
same major version number.

Each folder in the folder of this module contains the promises of one release. tests.compatibility.record wrote these
folders. If a test fails, the change breaks programs of users. Keep the old name, or release a new major version.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tkperf
from tests.compatibility import promised
from tkperf.runfile.schema import VERSION
from tkperf.runfile.writer import RunFileWriter

RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if (path / "run.tkperf").exists())
PAGE = promised.SOURCES / "docs/reference/compatibility.md"


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def recorded(release: Path, name: str) -> Any:
    return json.loads((release / f"{name}.json").read_text(encoding="utf-8"))


def test_old_run_files_are_read(release: Path) -> None:
    """Every later version can read the run file of a release, and finds all of its measurements."""
    run = tkperf.load(release / "run.tkperf")
    assert (str(run.status), run.info.tkperf_version) == ("complete", release.name)
    assert not run.left_out
    assert [test.name for test in run.tests] == ["iops", "lat", "tp", "writesat"]
    (section,) = run.tests[0].sections
    assert section.steady
    assert {cell.workload.mix_and_size for cell in section.cells} == {
        f"{mix} {size}" for mix in ("100/0", "65/35", "0/100") for size in ("4k", "64k")
    }
    assert all(cell.value(tkperf.IOPS) for cell in section.cells)
    with tkperf.open_run(release / "run.tkperf") as run_file:
        for test in run_file.record().tests:
            assert all(len(run_file.samples(test.name, step)) for step in test.steps)


def test_a_changed_schema_has_a_new_version(release: Path, tmp_path: Path) -> None:
    """A run file with the number of an old schema has exactly the old schema. A changed schema has a new number, and
    tkperf can read or migrate the old schema.
    """
    RunFileWriter(tmp_path / "new.tkperf").close()
    with closing(sqlite3.connect(release / "run.tkperf")) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
    same = promised.schema_of(tmp_path / "new.tkperf") == promised.schema_of(release / "run.tkperf")
    assert same == (version == VERSION), "raise VERSION in tkperf.runfile.schema, and write a migration"


def test_json_keeps_its_keys(release: Path) -> None:
    """The JSON output keeps its schema and its keys. Each key keeps its position and the type of its value."""
    now = promised.json_shapes(release)
    for command, old in recorded(release, "json").items():
        assert now[command]["schema"] == old["schema"], command
        assert not promised.broken(old["shape"], now[command]["shape"]), f"tkperf {command} --json"


def test_events_keep_their_keys(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The events of --progress json keep their names and their keys."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.toml").write_bytes((promised.SOURCES / "tests/short.toml").read_bytes())
    now = promised.event_shapes(promised.call(*promised.RUN_WORDS))
    for event, shape in recorded(release, "events").items():
        assert not promised.broken(shape, now[event]), event


def test_csv_keeps_its_columns(release: Path, tmp_path: Path) -> None:
    """The CSV output keeps its tables and columns. A new version may add columns, because programs find columns by
    their names.
    """
    now = promised.csv_columns(release, tmp_path / "tables")
    for table, columns in recorded(release, "csv").items():
        assert set(columns) <= set(now[table]), table


def test_exit_codes_keep_their_meanings(release: Path) -> None:
    """An exit code keeps its meaning. A new version may add exit codes."""
    assert recorded(release, "exit-codes").items() <= promised.exit_codes().items()


def test_python_keeps_its_names(release: Path) -> None:
    """The names that tkperf exports keep their parameters and attributes. A new parameter must have a default."""
    old, now = recorded(release, "python"), promised.python_names()
    for name, promise in old["names"].items():
        assert name in now["names"], name
        kept = now["names"][name]
        assert _same_calls(promise.get("parameters", []), kept.get("parameters", [])), name
        for key in ("attributes", "one_of", "error"):
            assert set(promise.get(key, [])) <= set(kept.get(key, [])), name
        for key in ("type", "exit_code"):
            assert promise.get(key) == kept.get(key), name
    for name, attributes in old["records"].items():
        assert set(attributes) <= set(now["records"][name]), name


def _same_calls(old: list[list[Any]], now: list[list[Any]]) -> bool:
    """Return whether every call that was valid for the old parameters is still valid."""
    parameters = {name: (kind, required) for name, kind, required in now}
    for name, kind, required in old:
        if name not in parameters or parameters[name][0] != kind or (parameters[name][1] and not required):
            return False
    by_place = [name for name, kind, _ in old if kind.startswith("POSITIONAL")]
    added = [name for name, _, required in now if required and name not in {each[0] for each in old}]
    return [name for name, kind, _ in now if kind.startswith("POSITIONAL")][: len(by_place)] == by_place and not added


@pytest.mark.parametrize(
    ("now", "problem"),
    [
        ({"a": 1, "more": 2}, ".b is missing"),
        ({"a": "1", "b": [{"c": None}]}, ".a was number, and is string"),
        ({"a": 1, "b": [{"d": 1}]}, ".b[].c is missing"),
        ({"a": 1, "b": {"c": 1}}, ".b was array, and is object"),
    ],
)
def test_a_broken_promise_is_found(now: object, problem: str) -> None:
    """The comparison of two documents names the position of a missing key and of a changed type."""
    promise = promised.shape_of({"a": 1, "b": [{"c": 2}]})
    assert promised.broken(promise, promised.shape_of(now)) == [problem]
    assert not promised.broken(promise, promised.shape_of({"a": None, "b": [], "more": True}))


def test_a_broken_call_is_found() -> None:
    """A new version may give a default to a parameter. It must not remove or move a parameter, require an optional one,
    or add a parameter without a default.
    """
    either, keyword = "POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY"
    old = [["path", either, True], ["name", either, False], ["deep", keyword, False]]
    assert _same_calls(old, [["path", either, False], *old[1:], ["wide", keyword, False]])
    assert not _same_calls(old, old[:2])
    assert not _same_calls(old, [old[1], old[0], old[2]])
    assert not _same_calls(old, [old[0], ["name", either, True], old[2]])
    assert not _same_calls(old, [*old, ["wide", keyword, True]])


def test_the_page_names_every_schema(release: Path) -> None:
    """The page about compatibility names the schema of run files and the schema of each JSON document."""
    page = PAGE.read_text(encoding="utf-8")
    assert f"| run file | schema {VERSION}" in page
    for command, old in recorded(release, "json").items():
        assert f"`tkperf {command}" in page
        assert old["schema"] is None or f"`{old['schema']}`" in page
