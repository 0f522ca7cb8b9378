"""fio's values, read more strictly than fio does: it takes ``4q`` for 4 and ``4.5k`` for 4 bytes.

What fio reads otherwise than it looks is no value here. Sizes, times and their units are those of
``importers.fio_options``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tkperf.interop.fio_options import DEFAULT_BLOCK_BYTES, parse_number, parse_time_s
from tkperf.model.workload import BlockShare, Zone

_MOST = 1 << 50


class Unclear(Exception):  # noqa: N818 - what a value is, not what went wrong
    """A value that fio refuses, or reads otherwise than it looks; says what it should be."""


def read_flag(value: str | None) -> bool:
    """``norandommap``, ``norandommap=1``; ``=0`` is off."""
    if value in (None, "1", "0"):
        return value != "0"
    raise Unclear("it is 1 or 0")


def read_needed_flag(value: str | None) -> bool:
    """``direct=1``; fio does not take it without a value."""
    if value is None:
        raise Unclear("it needs a value, 1 or 0, which fio insists on")
    return read_flag(value)


def read_count(value: str | None, least: int, most: int) -> int:
    """A whole number without unit."""
    if value is None or not re.fullmatch(r"[0-9]{1,12}", value) or not least <= int(value) <= most:
        raise Unclear(f"it is a whole number from {least} to {most:,}")
    return int(value)


def read_size_bytes(text: str | None, kb_base: int) -> int:
    """``4k``, ``4KiB``, ``4096`` as fio reads it."""
    if text is None or not re.fullmatch(
        r"[0-9]{1,15} ?(?:[kmgtp](?:i?b)?|b)?", text, re.IGNORECASE
    ):
        raise Unclear("it is a size such as 4k, 1m or 4096")
    size_bytes = parse_number(text.replace(" ", ""), kb_base)
    if size_bytes is None or not 0 < size_bytes <= _MOST:
        raise Unclear("it is a size of 1 byte or more, and no more than any drive's")
    return size_bytes


def read_time_s(value: str | None) -> float:
    """A time in s; 0 where it says 0."""
    text = value or ""
    time_s = parse_time_s(text)
    if time_s is None and not re.fullmatch(r"0+\s*[a-z]*", text):
        raise Unclear("it is a time such as 60, 90s, 5m or 1h")
    return time_s or 0.0


def for_sides(value: str | None, default: str = "") -> tuple[str, str]:
    """Of ``read,write,trim`` what holds for reads and for writes; one value is for all."""
    values = [part.strip() or default for part in (value or "").split(",")]
    if len(values) > 3:
        raise Unclear("it is one value, or those of reads, writes and trims")
    return values[0], values[min(1, len(values) - 1)]


def read_rates(value: str | None) -> tuple[int, int]:
    """Of ``rate_iops`` the rates of reads and of writes; what is left out is 0, no limit."""
    read, write = for_sides(value, "0")
    return read_count(read, 0, 10**9), read_count(write, 0, 10**9)


def read_block_sizes(value: str | None, kb_base: int) -> tuple[int, int]:
    """Of ``bs`` the sizes of reads and writes in bytes."""
    read, write = for_sides(value, str(DEFAULT_BLOCK_BYTES))
    return read_size_bytes(read, kb_base), read_size_bytes(write, kb_base)


def read_block_range(value: str | None, kb_base: int) -> tuple[int, int]:
    """Of ``bsrange`` the one size of reads and of writes in bytes."""
    sizes = []
    for side in for_sides(value):
        low, dash, high = side.replace(":", "-").partition("-")
        if not dash or read_size_bytes(low, kb_base) != read_size_bytes(high, kb_base):
            raise Unclear(
                "tkperf draws no sizes from a range; write the sizes as bssplit=4k/50:8k/50"
            )
        sizes.append(read_size_bytes(low, kb_base))
    return sizes[0], sizes[1]


def read_block_split(
    value: str | None, kb_base: int
) -> tuple[tuple[BlockShare, ...], tuple[BlockShare, ...]]:
    """Of ``bssplit`` the sizes of reads and of writes with their percentages."""
    of_reads, of_writes = for_sides(value)
    return _split(of_reads, kb_base), _split(of_writes, kb_base)


def read_zones(value: str) -> tuple[Zone, ...]:
    """Of ``zoned:50/5:30/15:20/`` the zones; what is left out is the rest."""
    rows = [entry.partition("/")[::2] for entry in value.split(":")]
    accesses = _percentages([access for access, _ in rows])
    ranges = _percentages([share for _, share in rows])
    return tuple(
        Zone(access_percent=access, range_percent=share)
        for access, share in zip(accesses, ranges, strict=True)
    )


def _split(text: str, kb_base: int) -> tuple[BlockShare, ...]:
    rows = [entry.partition("/")[::2] for entry in text.split(":") if entry.strip()]
    sizes = [read_size_bytes(size.strip(), kb_base) for size, _ in rows]
    percentages = _percentages([share for _, share in rows])
    if len(set(sizes)) < len(sizes):
        raise Unclear("a size stands there twice")
    shares = zip(sizes, percentages, strict=True)
    return tuple(BlockShare(size, percent) for size, percent in shares if percent)


def _percentages(texts: Sequence[str]) -> list[int]:
    """Whole percentages that add up to 100; those left out share the rest equally."""
    given = [read_count(text.strip(), 0, 100) if text.strip() else None for text in texts]
    left, blank = 100 - sum(number or 0 for number in given), given.count(None)
    if left < 0 or (left and not blank) or (blank and left % blank):
        raise Unclear("its percentages do not add up to 100")
    return [left // blank if number is None else number for number in given]
