"""How much memory the Python values of a JSON text need, counted before the text is decoded.

A text of empty objects, such as ``{},{},{}``, needs 24 times its size. The count is an upper bound: it assumes the
largest size of each dictionary, array and string. A minified document of fio with full histograms needs up to ten times
its size with msgspec, which shares few keys. It needs half of that with Python's own decoder, which shares all equal
keys but takes three times as long.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tkperf.model.units import MIB

# Memory per byte of the file, and memory that every file may need.
MOST_PER_BYTE, ALWAYS_BYTES = 10, 64 * MIB
# Bytes of CPython 3.11, whose allocator rounds up to 16: an empty object, its first entries, each further entry (a
# table that has just grown has room for two entries and three slots of 4 bytes for each), an empty array, its first
# places, each further place (a short array that has just grown is half empty), a number.
_OBJECT, _ENTRIES, _ENTRY, _ARRAY, _PLACES, _PLACE, _NUMBER = 64, 128, 44, 64, 32, 12, 32
_FIRST_ENTRIES = 4
# While a dictionary grows, its old table still exists. This matters for the largest dictionary only.
_GROWING_ENTRY = 22
# Memory of a string without its characters: a string of only ASCII characters, and a string with
# other characters.
_STRING, _OTHER_STRING = 66, 92
# An entry of the table in which Python's decoder finds equal keys.
_SHARED_KEY = _ENTRY + _GROWING_ENTRY
# CPython stores each number from -5 to 256 once, so a number of one or two digits needs no further memory.
_LEAST_DIGITS = 3
_PIECE_CHARACTERS = MIB
_KEY = re.compile(r'"([^"]*)"\s*:')
# Escapes of characters that take two bytes, and of halves of characters that take four.
_TWO_BYTES, _FOUR_BYTES = re.compile(r"\\u(?!00)"), re.compile(r"\\u[dD][89a-fA-F]")
_SPACES = np.isin(np.arange(256), list(b" \n\t\r"))
_OF_NUMBERS = np.isin(np.arange(256), list(b"0123456789+-.eE"))

_Bytes = NDArray[np.uint8]


@dataclass(slots=True)
class _Need:
    """Memory for the values of a text, in the pieces read so far.

    Attributes:
        bytes: memory of all values without the old table of a growing dictionary.
        keys: the number of keys.
        saved_bytes: memory of keys that equal another key, if these are counted.
        is_inside: whether the last piece ended inside a string.
        entries: entries of the object in which the last piece ended, as far as no other object interrupts them.
        longest: the greatest number of such entries.
        objects_as_values: entries of objects that are objects themselves.
    """

    is_inside: bool
    bytes: int = 0
    keys: int = 0
    saved_bytes: int = 0
    entries: int = 0
    longest: int = 0
    objects_as_values: int = 0

    @property
    def growing_bytes(self) -> int:
        return _GROWING_ENTRY * max(self.longest, self.objects_as_values)


def fits_msgspec(text: str, file_bytes: int) -> bool:
    """Return whether a text and its values, decoded by msgspec, need at most ten times the size of the file.

    64 MiB are always allowed.
    """
    need = _find_need(text)
    return need.bytes + need.growing_bytes <= _find_room(text, file_bytes)


def fits_python(text: str, file_bytes: int, *, begins_inside: bool = False) -> bool:
    """Return the same for Python's own decoder.

    Args:
        begins_inside: count as if a quote preceded the text. Other text before a JSON value may contain such a quote,
            which makes objects look like the inside of a string.
    """
    left_bytes = _find_room(text, file_bytes)
    # Finding equal keys takes long. Usually the memory suffices for all keys, each with a place in
    # the table of keys.
    need = _find_need(text, begins_inside=begins_inside)
    if need.bytes + need.growing_bytes + _SHARED_KEY * need.keys <= left_bytes:
        return True
    need = _find_need(text, begins_inside=begins_inside, share_keys=True)
    return need.bytes - need.saved_bytes + need.growing_bytes <= left_bytes


def _find_room(text: str, file_bytes: int) -> int:
    """Return the memory that values may need next to the text."""
    # The decoder needs UTF-8, so it copies a text that is not ASCII. The allocator keeps some of
    # the memory that held the file.
    text_bytes = sys.getsizeof(text) + (0 if text.isascii() else 2 * file_bytes)
    return max(MOST_PER_BYTE * file_bytes, ALWAYS_BYTES) - text_bytes


def _find_need(text: str, *, begins_inside: bool = False, share_keys: bool = False) -> _Need:
    """Return the memory for the values of a text. Malformed text is counted, too.

    Args:
        share_keys: find the keys that Python's decoder shares, which takes longer.
    """
    width, string_bytes = _find_width(text), _STRING
    if not text.isascii() or "\\u" in text:
        string_bytes = _OTHER_STRING
    need = _Need(is_inside=begins_inside)
    for piece in _pieces_of(text):
        if share_keys:
            keys = _KEY.findall(piece[piece.find('"') + 1 :] if need.is_inside else piece)
            distinct = set(keys)
            characters = sum(map(len, keys)) - sum(map(len, distinct))
            need.saved_bytes += string_bytes * (len(keys) - len(distinct)) + width * characters
            need.saved_bytes -= _SHARED_KEY * len(distinct)
        _count_piece(need, piece, width, string_bytes)
    return need


def _find_width(text: str) -> int:
    """Return the bytes of a character in the widest string."""
    width = max(1, round(sys.getsizeof(text) / (len(text) + 64)))
    if width < 4 and _FOUR_BYTES.search(text):
        return 4
    return 2 if width < 2 and _TWO_BYTES.search(text) else width


def _pieces_of(text: str) -> Iterator[str]:
    """Yield the text in pieces without escapes of quotes and backslashes."""
    kept = ""
    for first in range(0, len(text), _PIECE_CHARACTERS):
        piece = kept + text[first : first + _PIECE_CHARACTERS]
        # A backslash at the end moves to the next piece, so that no escape is divided.
        kept = "\\" if (len(piece) - len(piece.rstrip("\\"))) % 2 else ""
        yield piece[: len(piece) - len(kept)].replace("\\\\", "__").replace('\\"', "__")


def _count_piece(need: _Need, piece: str, width: int, string_bytes: int) -> None:
    data = np.frombuffer(piece.encode("latin-1", "replace"), dtype=np.uint8)
    quotes = data == ord('"')
    # A place is inside a string if an odd number of quotes precedes it.
    count = int(np.count_nonzero(quotes)) + need.is_inside
    inside = (np.cumsum(quotes, dtype=np.int32) + need.is_inside) & 1 == 1
    outside = data[~inside & ~_SPACES[data]]
    objects, arrays, entries, commas = (_count(outside, letter) for letter in "{[:,")
    filled = max(0, objects - _count_pairs(outside, "{}"))
    places = max(0, commas - max(0, entries - filled))
    need.bytes += (
        _OBJECT * objects
        + _ENTRIES * filled
        + _ENTRY * max(0, entries - _FIRST_ENTRIES * filled)
        + _ARRAY * arrays
        + _PLACES * max(0, arrays - _count_pairs(outside, "[]"))
        + _PLACE * places
        + string_bytes * (count // 2)
        + width * int(np.count_nonzero(inside))
        + _find_numbers_bytes(outside)
    )
    need.keys += entries
    need.is_inside = bool(count & 1)
    need.objects_as_values += _count_pairs(outside, "},")
    _count_runs(need, outside)


def _count(outside: _Bytes, letter: str) -> int:
    return int(np.count_nonzero(outside == ord(letter)))


def _find_pairs(outside: _Bytes, pair: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (outside[:-1] == ord(pair[0])) & (outside[1:] == ord(pair[1]))
    return found


def _count_pairs(outside: _Bytes, pair: str) -> int:
    return int(np.count_nonzero(_find_pairs(outside, pair)))


def _find_numbers_bytes(outside: _Bytes) -> int:
    """Return the memory of all numbers. Each digit adds half a byte, because a number may have
    thousands of digits.
    """
    of_number = _OF_NUMBERS[outside]
    ends = of_number.copy()
    ends[:-1] &= ~of_number[1:]
    long = ends.copy()
    long[: _LEAST_DIGITS - 1] = False
    for back in range(1, _LEAST_DIGITS):
        long[back:] &= of_number[:-back]
    # A negative number of one digit also counts as a number.
    negative = np.zeros_like(ends)
    negative[1:] = ends[1:] & (outside[:-1] == ord("-"))
    numbers = int(np.count_nonzero(long | negative))
    return _NUMBER * numbers + int(np.count_nonzero(of_number)) // 2


def _count_runs(need: _Need, outside: _Bytes) -> None:
    """Count the entries of each object up to the next object that is not empty."""
    braces = (outside == ord("{")) | (outside == ord("}"))
    empty = _find_pairs(outside, "{}")
    braces[:-1] &= ~empty
    braces[1:] &= ~empty
    runs = np.bincount(np.cumsum(braces)[outside == ord(":")], minlength=1)
    last = int(np.count_nonzero(braces))
    runs[0] += need.entries
    need.longest = max(need.longest, int(runs.max()))
    need.entries = int(runs[last]) if last < runs.size else 0
