"""How wide texts are in the reports' type family, read from its files: advances of letters, and kerning."""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from itertools import pairwise
from unicodedata import combining, normalize

from tkperf.render.fonts import FILES

# Of a kerning table: by the class that a glyph has in each of a pair's two places, not by the pair.
_BY_CLASS = 2


@lru_cache(maxsize=4096)
def measure_text(text: str, bold: bool) -> float:
    """The width of a line, in parts of the size of the type."""
    font = _load(700 if bold else 400)
    return font.measure(normalize("NFC", " ".join(text.split())))


@cache
def _load(weight: int) -> _Font:
    return _Font(FILES[weight].read_bytes())


class _Font:
    """A TrueType file, as far as widths need it (OpenType specification: cmap, hmtx, GPOS)."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        (count,) = struct.unpack_from(">H", data, 4)
        tables = (struct.unpack_from(">4s4xLL", data, 12 + 16 * number) for number in range(count))
        at = {tag.decode(): (offset, length) for tag, offset, length in tables}
        (self._units,) = struct.unpack_from(">H", data, at["head"][0] + 18)
        (metrics,) = struct.unpack_from(">H", data, at["hhea"][0] + 34)
        both = struct.unpack_from(f">{2 * metrics}H", data, at["hmtx"][0])
        self._advances: tuple[int, ...] = both[::2]
        self._glyphs = _read_letters(data, at["cmap"][0])
        self._lookups = _read_lookups(data, at["GPOS"][0]) if "GPOS" in at else []
        self._kerned: dict[tuple[int, int], int] = {}

    def measure(self, text: str) -> float:
        glyphs = [self._glyphs.get(ord(letter), 0) for letter in text]
        last = len(self._advances) - 1
        width: int = sum(
            self._advances[min(glyph, last)]
            for letter, glyph in zip(text, glyphs, strict=True)
            if not combining(letter)  # stands above or below the letter before
        )
        width += sum(self._kern(pair) for pair in pairwise(glyphs))
        return width / float(self._units)

    def _kern(self, pair: tuple[int, int]) -> int:
        if pair not in self._kerned:
            self._kerned[pair] = sum(lookup.find(*pair) for lookup in self._lookups)
        return self._kerned[pair]


class _Lookup:
    """Kerning by the tables of one lookup: the first that knows a pair's first glyph and has a value."""

    def __init__(self, data: bytes, tables: list[int]) -> None:
        self._data, self._tables = data, tables
        self._covered = [_read_coverage(data, at + _number(data, at + 2)) for at in tables]
        self._classes = [
            tuple(_read_classes(data, at + _number(data, at + place)) for place in (8, 10))
            if _number(data, at) == _BY_CLASS
            else ({}, {})
            for at in tables
        ]

    def find(self, first: int, second: int) -> int:
        for at, covered, classes in zip(self._tables, self._covered, self._classes, strict=True):
            if first not in covered:
                continue
            if _number(self._data, at) == _BY_CLASS:
                ones, others = classes
                across = _number(self._data, at + 14)
                place = ones.get(first, 0) * across + others.get(second, 0)
                return _signed(self._data, at + 16 + 2 * place)
            found = self._of_pair(at + _number(self._data, at + 10 + 2 * covered[first]), second)
            if found is not None:
                return found
        return 0

    def _of_pair(self, at: int, second: int) -> int | None:
        pairs = struct.unpack_from(f">{2 * _number(self._data, at)}h", self._data, at + 2)
        return next(
            (pairs[place + 1] for place in range(0, len(pairs), 2) if pairs[place] == second), None
        )


def _number(data: bytes, at: int) -> int:
    return data[at] << 8 | data[at + 1]


def _signed(data: bytes, at: int) -> int:
    number = _number(data, at)
    return number - 0x10000 if number & 0x8000 else number


def _read_letters(data: bytes, at: int) -> dict[int, int]:
    """The glyph of each character, of the table of Unicode's first plane."""
    subtables = (
        struct.unpack_from(">HHL", data, at + 4 + 8 * number)
        for number in range(_number(data, at + 2))
    )
    begin = next(at + offset for *_, offset in subtables if _number(data, at + offset) == 4)
    count = _number(data, begin + 6) // 2
    ends = begin + 14
    starts = ends + 2 * count + 2
    glyphs: dict[int, int] = {}
    for number in range(count):
        place = starts + 2 * number
        first, last = _number(data, place), _number(data, ends + 2 * number)
        delta, away = _number(data, place + 2 * count), _number(data, place + 4 * count)
        if last == 0xFFFF:
            continue
        for code in range(first, last + 1):
            glyph = (
                code if not away else _number(data, place + 4 * count + away + 2 * (code - first))
            )
            if glyph or not away:
                glyphs[code] = (glyph + delta) & 0xFFFF
    return glyphs


def _read_lookups(data: bytes, at: int) -> list[_Lookup]:
    """Those that adjust pairs by how far the first one advances; others do not change a width."""
    listed = at + _number(data, at + 8)
    lookups = [
        listed + _number(data, listed + 2 + 2 * number) for number in range(_number(data, listed))
    ]
    return [
        _Lookup(
            data,
            [
                lookup + _number(data, lookup + 6 + 2 * number)
                for number in range(_number(data, lookup + 4))
            ],
        )
        for lookup in lookups
        if _number(data, lookup) == 2
    ]


def _read_coverage(data: bytes, at: int) -> dict[int, int]:
    """The place of each glyph in a list of them."""
    kind, count = _number(data, at), _number(data, at + 2)
    if kind == 1:
        return {
            glyph: place
            for place, glyph in enumerate(struct.unpack_from(f">{count}H", data, at + 4))
        }
    ranges = (struct.unpack_from(">HHH", data, at + 4 + 6 * number) for number in range(count))
    return {
        glyph: place + glyph - first
        for first, last, place in ranges
        for glyph in range(first, last + 1)
    }


def _read_classes(data: bytes, at: int) -> dict[int, int]:
    """The class of each glyph that has one; in ranges, as the package's fonts have them."""
    assert _number(data, at) == 2
    ranges = (
        struct.unpack_from(">HHH", data, at + 4 + 6 * number)
        for number in range(_number(data, at + 2))
    )
    return {glyph: each for first, last, each in ranges for glyph in range(first, last + 1)}
