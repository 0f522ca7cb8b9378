"""Functions that enlarge one table, text or blob of a run file. The module also lists all cases that use these
functions.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

Enlarge = Callable[[sqlite3.Connection, int], None]
"""A function that enlarges an open run file by about the given number of bytes."""

CASES: dict[str, Enlarge] = {}


def case(enlarge: Enlarge) -> Enlarge:
    CASES[enlarge.__name__.replace("_", "-")] = enlarge
    return enlarge


def numbers(count: int) -> str:
    """Return SQL for a table ``c`` with the numbers from 1 to ``count``."""
    return f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count}) "


def copy_rows(db: sqlite3.Connection, table: str, count: int, **changes: str) -> None:
    """Insert copies of the first row of a table. ``changes`` are SQL expressions with ``n``, the number of the copy."""
    names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    key = names[0]
    chosen = {name: f"t.{name}" for name in names}
    chosen |= {key: f"(SELECT max({key}) FROM {table}) + n"}
    chosen |= changes
    db.execute(
        numbers(count)
        + f"INSERT INTO {table} SELECT {', '.join(chosen.values())} "
        + f"FROM (SELECT * FROM {table} ORDER BY {key} LIMIT 1) t, c"
    )


def copy_steps(db: sqlite3.Connection, count: int, **changes: str) -> None:
    """Insert copies of a step of a round, without seconds and histograms."""
    names = [row[1] for row in db.execute("PRAGMA table_info(step)")]
    (last,) = db.execute("SELECT max(sequence) FROM step").fetchone()
    empty = dict.fromkeys(("seconds", "second_histograms", "fio_json", "read_histogram", "write_histogram"), "NULL")
    chosen = {name: f"t.{name}" for name in names} | empty
    chosen |= {"sequence": f"{last + 1000} + n"} | changes
    db.execute(
        numbers(count)
        + f"INSERT INTO step SELECT {', '.join(chosen[name] for name in names)} "
        + "FROM (SELECT * FROM step WHERE kind = 'round' ORDER BY sequence LIMIT 1) t, c"
    )


def set_fact(db: sqlite3.Connection, key: str, value: object) -> None:
    db.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, json.dumps(value)))


def change_json(db: sqlite3.Connection, table: str, column: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the JSON value in the first row of a table."""
    row, text = db.execute(f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL LIMIT 1").fetchone()
    value = json.loads(text)
    change(value)
    db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (json.dumps(value), row))
