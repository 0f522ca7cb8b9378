"""Mutations of input files. The same seed leads to the same mutations."""

from __future__ import annotations

import random
import re
import sqlite3
import zlib
from contextlib import suppress
from pathlib import Path

ODD_NUMBERS = (
    "0",
    "-1",
    "1",
    "NaN",
    "Infinity",
    "-Infinity",
    "null",
    "true",
    '""',
    "[]",
    "{}",
    '"x"',
    "1.5",
    "-0.0",
    "1e-300",
    "1e308",
    "1e999",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "9" * 400,
    "9" * 5000,
    "2147483648",
    "nan",
    "inf",
)
ODD_TEXTS = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\x1b[2J",
    "\u0665".encode(),
    b"\\ud800",
    b"\\u0000",
    b"../../etc/passwd",
    b"a" * 10_000,
    b"[" * 2000,
    b"{" * 2000,
    b"\n{\n",
    b"\n}\n",
    b"&lt;",
    b"<a>",
    b"'",
    b'"',
    b"\xed\xa0\x80",
)
ODD_VALUES: tuple[object, ...] = (
    None,
    0,
    1,
    -1,
    2**31,
    2**53,
    2**63 - 1,
    -(2**63),
    1.5,
    -1e-300,
    1e308,
    float("inf"),
    "",
    "NaN",
    "x",
    "Infinity",
    "1e999",
    "\x1b[2J",
    "\u0665",
    "[]",
    "{}",
    "null",
    "[1e999, NaN]",
    "[" * 5000,
    '"\\ud800"',
    "9" * 400,
    b"",
    b"\x00",
    b"\xff" * 100,
    b"\x01\x00\x00" + bytes(4),
    b"x" * 10_000,
)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Change, remove, duplicate or move a few bytes or a part of the data."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        at = rng.randrange(len(changed) + 1)
        size = rng.choice((1, 1, 2, 8, 100, 4000))
        match rng.randrange(6):
            case 0 if changed:
                changed[at % len(changed)] ^= 1 << rng.randrange(8)
            case 1:
                changed[at : at + size] = rng.randbytes(size)
            case 2:
                del changed[at : at + size]
            case 3:
                changed[at:at] = changed[at : at + size]
            case 4:
                del changed[at:]
            case _:
                other = rng.randrange(len(changed) + 1)
                changed[at : at + size] = changed[other : other + size]
    return bytes(changed)


def mutate_text(rng: random.Random, data: bytes) -> bytes:
    """Mutate a text. The mutation replaces numbers with unusual numbers, inserts unusual text, removes or duplicates
    lines, or changes bytes.
    """
    if rng.random() < 0.2:
        return mutate_bytes(rng, data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        numbers = list(_NUMBER.finditer(data))
        match rng.randrange(4):
            case 0 | 1 if numbers:
                found = rng.choice(numbers)
                odd = rng.choice(ODD_NUMBERS).encode()
                data = data[: found.start()] + odd + data[found.end() :]
            case 2:
                at = rng.randrange(len(data) + 1)
                data = data[:at] + rng.choice(ODD_TEXTS) + data[at:]
            case _:
                lines = data.split(b"\n")
                at = rng.randrange(len(lines))
                lines[at : at + 1] = rng.choice(([], [lines[at]] * 2, [rng.choice(lines)]))
                data = b"\n".join(lines)
    return data


def mutate_database(rng: random.Random, path: Path) -> None:
    """Mutate the database at ``path``. The mutation changes bytes, whole pages, or values in the tables."""
    kind = rng.randrange(10)
    if kind == 0:
        path.write_bytes(mutate_bytes(rng, path.read_bytes()))
    elif kind == 1:
        data = bytearray(path.read_bytes())
        page = int.from_bytes(data[16:18], "big")
        one, other = (rng.randrange(len(data) // page) * page for _ in range(2))
        piece = data[other : other + page] if rng.random() < 0.6 else rng.randbytes(page)
        data[one : one + page] = piece
        path.write_bytes(data)
    elif kind == 2:  # the header of a database page, which describes the content of the page
        data = bytearray(path.read_bytes())
        page = int.from_bytes(data[16:18], "big")
        at = rng.randrange(len(data) // page) * page + rng.randrange(60)
        data[at] = rng.randrange(256)
        path.write_bytes(data)
    else:
        db = sqlite3.connect(path, isolation_level=None)
        try:
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA journal_mode = OFF")
            for _ in range(rng.choice((1, 1, 2, 5))):
                with suppress(sqlite3.Error):
                    _change_row(rng, db)
        finally:
            db.close()


def _change_row(rng: random.Random, db: sqlite3.Connection) -> None:
    tables = ("run", "host", "test", "purge", "job", "step", "verdict", "warning", "note")
    table = rng.choice(tables)
    column = rng.choice([row[1] for row in db.execute(f"PRAGMA table_info({table})")])
    (rows,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    if not rows:
        return
    chosen = f"(SELECT {column} FROM {table} LIMIT 1 OFFSET {rng.randrange(rows)})"
    where = "1" if rng.random() < 0.2 else f"{column} IS {chosen}"
    (value,) = db.execute(f"SELECT {column} FROM {table} WHERE {where}").fetchone()
    match rng.randrange(8):
        case 0:
            db.execute(f"DELETE FROM {table} WHERE {where}")
        case 1 | 2 | 3 if column in ("value", "outcome", "verdict") and isinstance(value, str):
            odd = mutate_text(rng, value.encode()).decode(errors="replace")
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (odd,))
        case 1 | 2 | 3 if isinstance(value, bytes):
            odd_blob = mutate_bytes(rng, value)
            with suppress(zlib.error):  # change the uncompressed data, because zlib uses a checksum
                if rng.random() < 0.7:
                    odd_blob = zlib.compress(mutate_bytes(rng, zlib.decompress(value)))
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (odd_blob,))
        case _:
            odd_value = rng.choice(ODD_VALUES)
            db.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {where}", (odd_value,))
