"""How much memory the Python values of a JSON text need, counted before the text is decoded.

A text of empty objects, such as ``{},{},{}``, needs 24 times its size. fio's documents need at most
five times their size, even without white space.
"""

from __future__ import annotations

import re
import sys

import numpy as np

from tkperf.model.units import MIB

# Memory per byte of the file, and memory that every file may need.
MOST_PER_BYTE, ALWAYS_BYTES = 10, 64 * MIB
# Bytes of CPython 3.11: an empty object and its first entries, each further entry, an array, its first places, each
# further place, a number. A string of other characters than those of Latin 1 takes more.
_OBJECT, _ENTRIES, _ENTRY, _ARRAY, _PLACES, _PLACE, _NUMBER = 64, 128, 36, 64, 32, 8, 32
_STRING, _WIDE_STRING = 56, 80
_FIRST_ENTRIES = 5
_PIECE_CHARACTERS = MIB
# CPython stores each number below 257 once, so a number of one or two digits needs no further
# memory.
_LEAST_DIGITS = 3
_KEY = re.compile(r'"([^"]*)"\s*:')


def needs_too_much(text: str, file_bytes: int) -> bool:
    """Return whether a text and its values need more than ten times the size of the file; 64 MiB
    are always allowed.
    """
    most_bytes = max(MOST_PER_BYTE * file_bytes, ALWAYS_BYTES)
    # The decoder needs UTF-8, so it copies a text that is not ASCII. The allocator keeps some of
    # the memory that held the file.
    text_bytes = sys.getsizeof(text) + (0 if text.isascii() else 2 * file_bytes)
    return text_bytes + find_memory_bytes(text) > most_bytes


def find_memory_bytes(text: str) -> int:
    """Return the memory for the values of a text. Malformed text is counted, too."""
    width = max(1, round(sys.getsizeof(text) / (len(text) + 64)))
    total, is_inside, kept = 0, False, ""
    for first in range(0, len(text), _PIECE_CHARACTERS):
        piece = kept + text[first : first + _PIECE_CHARACTERS]
        # A backslash at the end moves to the next piece, so that no escape is divided.
        kept = "\\" if (len(piece) - len(piece.rstrip("\\"))) % 2 else ""
        piece = piece[: len(piece) - len(kept)].replace("\\\\", "__").replace('\\"', "__")
        taken, is_inside = _of_piece(piece, is_inside, width)
        total += taken
    return total


def _of_piece(piece: str, is_inside: bool, width: int) -> tuple[int, bool]:
    """Return the memory for a piece of the text, and whether the piece ends inside a string.

    Args:
        is_inside: whether the piece begins inside a string.
        width: bytes of a character, at most.
    """
    data = np.frombuffer(piece.encode("latin-1", "replace"), dtype=np.uint8)
    quotes = data == ord('"')
    # A place is inside a string if an odd number of quotes precedes it.
    count = int(np.count_nonzero(quotes)) + is_inside
    inside = (np.cumsum(quotes, dtype=np.int32) + is_inside) & 1 == 1
    outside = data[~inside]
    outside = outside[(outside != ord(" ")) & (outside != ord("\n"))]

    def number_of(letter: str) -> int:
        return int(np.count_nonzero(outside == ord(letter)))

    def number_of_pairs(opening: str, closing: str) -> int:
        return int(np.count_nonzero((outside[:-1] == ord(opening)) & (outside[1:] == ord(closing))))

    objects, arrays, entries = number_of("{"), number_of("["), number_of(":")
    filled = max(0, objects - number_of_pairs("{", "}"))
    is_number = (outside >= ord("+")) & (outside <= ord("9")) & (outside != ord(","))
    ends = is_number.copy()
    ends[:-1] &= ~is_number[1:]
    ends[: _LEAST_DIGITS - 1] = False
    for back in range(1, _LEAST_DIGITS):
        ends[back:] &= is_number[:-back]
    # Equal keys share one object. If a piece begins inside a string, keys are searched only after
    # the end of that string.
    keys = len(set(_KEY.findall(piece[piece.find('"') + 1 :] if is_inside else piece)))
    strings = max(0, count // 2 - entries) + min(keys, entries)
    taken = (
        _OBJECT * objects
        + _ENTRIES * filled
        + _ENTRY * max(0, entries - _FIRST_ENTRIES * filled)
        + _ARRAY * arrays
        + _PLACES * max(0, arrays - number_of_pairs("[", "]"))
        + _PLACE * number_of(",")
        + (_STRING if width == 1 else _WIDE_STRING) * strings
        + _NUMBER * int(np.count_nonzero(ends))
        + width * int(np.count_nonzero(inside))
    )
    return taken, bool(count & 1)
