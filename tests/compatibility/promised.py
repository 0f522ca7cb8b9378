"""The content that docs/reference/compatibility.md promises, in a form that can be stored in a file and compared."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import json
import sqlite3
import typing
from contextlib import closing
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any

from click.testing import CliRunner

import tkperf
from tkperf.cli.main import cli
from tkperf.model.errors import ExitCode, TkperfError

SOURCES = Path(__file__).parents[2]
# The commands for which the JSON output is promised. RUN and OTHER stand for the run files, and CLAIMS stands for an
# example in the documentation.
COMMANDS = {
    "show": ("show", "RUN", "--json"),
    "check": ("check", "RUN", "CLAIMS", "--json"),
    "compare": ("compare", "RUN", "OTHER", "--json", "-"),
    "rank": ("rank", "RUN", "OTHER", "--json"),
    "status": ("status", "RUN", "--json"),
    "plan": ("plan", "ssd", "planned", "sim:sata-ssd", "--json"),
}
_SHORT = ("--profile", "short.toml", "--no-report")
RUN_WORDS = ("ssd", "run", "sim:sata-ssd", *_SHORT, "--progress", "json")
OTHER_WORDS = ("ssd", "other", "sim:nvme-4kn", "--test", "iops", *_SHORT, "-q")


def call(*words: str) -> str:
    """Return the output of a command. A check of claims that are not met ends with exit code 1."""
    done = CliRunner().invoke(cli, words)
    code = getattr(done.exception, "exit_code", done.exit_code)
    assert code in {ExitCode.DONE, ExitCode.CLAIMS_NOT_MET}, (words, done.exception)
    return done.stdout


def shape_of(value: object) -> Any:
    """Return the keys of a document, and the types of its values. All items of a list have one shape."""
    if isinstance(value, dict):
        return {"object": {key: shape_of(each) for key, each in value.items()}}
    if isinstance(value, list):
        items: dict[str, Any] = {}
        for each in value:
            items = merge(items, shape_of(each))
        return {"array": items}
    if isinstance(value, bool):
        return {"boolean": True}
    if isinstance(value, (int, float)):
        return {"number": True}
    return {"string": True} if isinstance(value, str) else {"null": True}


def merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Merge two shapes. Return the shape of values that can have either of them."""
    merged = dict(one)
    for kind, content in other.items():
        if kind == "object" and kind in merged:
            keys = dict(merged[kind])
            for key, shape in content.items():
                keys[key] = merge(keys.get(key, {}), shape)
            merged[kind] = keys
        elif kind == "array" and kind in merged:
            merged[kind] = merge(merged[kind], content)
        else:
            merged[kind] = content
    return merged


def broken(promised: dict[str, Any], now: dict[str, Any], place: str = "") -> list[str]:
    """Return a description of each position at which a document breaks its promise: a key is missing, or a value has
    another type.
    """
    problems = []
    for kind in now:
        if kind not in promised and kind != "null" and set(promised) - {"null"}:
            problems.append(f"{place or 'the document'} was {', '.join(promised)}, and is {kind}")
    for key, shape in promised.get("object", {}).items():
        if key in now.get("object", {}):
            problems += broken(shape, now["object"][key], f"{place}.{key}")
        elif "object" in now:
            problems.append(f"{place}.{key} is missing")
    if "array" in promised and now.get("array"):
        problems += broken(promised["array"], now["array"], f"{place}[]")
    return problems


def json_shapes(folder: Path) -> dict[str, Any]:
    """Return the schema and the shape of the JSON that each command prints for the run files in a folder."""
    named = {
        "RUN": str(folder / "run.tkperf"),
        "OTHER": str(folder / "other.tkperf"),
        "CLAIMS": str(SOURCES / "docs/examples/claims.toml"),
    }
    shapes = {}
    for name, words in COMMANDS.items():
        document = json.loads(call(*(named.get(word, word) for word in words)))
        shapes[name] = {"schema": document.get("schema"), "shape": shape_of(document)}
    return shapes


def event_shapes(printed: str) -> dict[str, Any]:
    """Return the shape of each kind of event that --progress json printed."""
    shapes: dict[str, Any] = {}
    for line in printed.splitlines():
        event = json.loads(line)
        shapes[event["event"]] = merge(shapes.get(event["event"], {}), shape_of(event))
    return shapes


def csv_columns(folder: Path, tables: Path) -> dict[str, list[str]]:
    """Return the columns of each table that tkperf report and tkperf compare write for the run files in a folder."""
    run, other = str(folder / "run.tkperf"), str(folder / "other.tkperf")
    call("report", run, "--csv", str(tables))
    call("compare", run, other, "--csv", str(tables / "comparison.csv"))
    columns = {}
    for path in sorted(tables.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            columns[path.stem] = next(csv.reader(file))
    return columns


def exit_codes() -> dict[str, int]:
    return {code.name: code.value for code in ExitCode}


def schema_of(run: Path) -> dict[str, str]:
    """Return the definition of each table and index of a run file. White space is normalised."""
    with closing(sqlite3.connect(run)) as db:
        rows = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
    return {name: " ".join(sql.split()) for name, sql in rows}


def python_names() -> dict[str, Any]:
    """Return the promise for each name that tkperf exports, and the attributes of each record in a result."""
    names = {name: _promise_of(getattr(tkperf, name)) for name in tkperf.__all__}
    records: dict[str, Any] = {}
    _add_records(tkperf.RunResult, records)
    return {"names": names, "records": records}


def _promise_of(value: object) -> dict[str, Any]:
    if isinstance(value, type) and issubclass(value, TkperfError):
        bases = [base.__name__ for base in value.__mro__ if issubclass(base, TkperfError)]
        return {"error": bases, "exit_code": int(value.exit_code)}
    if isinstance(value, type) and issubclass(value, Enum):
        return {"attributes": sorted(value.__members__)}
    if isinstance(value, type):
        return {"parameters": _parameters(value), "attributes": _attributes(value)}
    if callable(value):
        return {"parameters": _parameters(value)}
    if isinstance(value, UnionType) or typing.get_origin(value) is typing.Union:
        return {"one_of": sorted(each.__name__ for each in typing.get_args(value))}
    return {"type": type(value).__name__}


def _parameters(value: Any) -> list[list[Any]]:
    """Return the parameters of a call in order. For each parameter, return its name, its kind, and a mark that states
    whether the parameter is required.
    """
    return [
        [each.name, each.kind.name, each.default is inspect.Parameter.empty]
        for each in inspect.signature(value).parameters.values()
    ]


def _attributes(value: type) -> list[str]:
    """Return the fields of a record, and the properties and methods that tkperf defines for the record."""
    names = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    for each in value.__mro__:
        names |= set(vars(each)) if each.__module__.startswith("tkperf.") else set()
    return sorted(name for name in names if not name.startswith("_"))


def _add_records(kind: Any, records: dict[str, Any]) -> None:
    """Add a record of the results, and the records of the results that its fields contain."""
    for part in typing.get_args(kind):
        _add_records(part, records)
    if not isinstance(kind, type) or kind.__module__ != tkperf.RunResult.__module__ or kind.__name__ in records:
        return
    if dataclasses.is_dataclass(kind):
        records[kind.__name__] = _attributes(kind)
        for each in typing.get_type_hints(kind).values():
            _add_records(each, records)
