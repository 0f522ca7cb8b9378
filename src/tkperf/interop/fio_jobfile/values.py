"""Readers of fio's values, stricter than fio: it takes ``4q`` for 4 and ``4.5k`` for 4 bytes.

A value is unclear if fio reads it differently from its look. Sizes, times and their units follow
``interop.fio_options``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tkperf.interop.fio_options import DEFAULT_BLOCK_BYTES, parse_number, parse_time_s
from tkperf.model.workload import Arrival, BlockShare, Zone

Blocks = tuple[BlockShare, ...]
DEFAULT_BLOCKS: Blocks = (BlockShare(DEFAULT_BLOCK_BYTES, 100),)
_MOST_BYTES = 1 << 50


class Unclear(Exception):  # noqa: N818 - what a value is, not what went wrong
    """Value that fio refuses, or reads differently from its look; the message describes a valid one."""


def read_flag(value: str | None) -> bool:
    """Return the state of a switch: ``stonewall`` and ``stonewall=1`` are on, ``stonewall=0`` is off."""
    if value in (None, "1", "0"):
        return value != "0"
    raise Unclear("it is 1 or 0")


def read_needed_flag(value: str | None) -> bool:
    """Return the state of a switch that needs a value in fio, such as ``direct=1``."""
    if value is None:
        raise Unclear("it needs a value, 1 or 0, which fio insists on")
    return read_flag(value)


def read_count(value: str | None, least: int, most: int) -> int:
    """Return a whole number without unit."""
    if value is None or not re.fullmatch(r"[0-9]{1,12}", value) or not least <= int(value) <= most:
        raise Unclear(f"it is a whole number from {least} to {most:,}")
    return int(value)


def read_percent(value: str | None) -> int:
    """Return a part of the range in percent: ``25%``, or ``0``."""
    text = value or ""
    if not text.endswith("%") and text != "0":
        raise Unclear(
            "a workload file has parts of the range in percent: write ..%, or give it up, and give the "
            "range itself to the run with --active-range"
        )
    return read_count(text.removesuffix("%").strip(), 0, 100)


def read_arrival(value: str | None) -> Arrival:
    """Return the spacing of the I/Os of an offered rate."""
    if value not in tuple(Arrival):
        raise Unclear(f"it is {' or '.join(Arrival)}")
    return Arrival(value)


def read_kb_base(value: str | None) -> int:
    """Return the base of ``k`` and larger units in sizes."""
    if value not in ("1000", "1024"):
        raise Unclear("it is 1000 or 1024")
    return int(value)


def read_time_s(value: str | None) -> float:
    """Return a time in s, 0 included."""
    text = value or ""
    time_s = parse_time_s(text)
    if time_s is None and not re.fullmatch(r"0+\s*[a-z]*", text):
        raise Unclear("it is a time such as 60, 90s, 5m or 1h")
    return time_s or 0.0


def read_rates(value: str | None) -> tuple[int, int]:
    """Return the rates of reads and of writes in ``rate_iops``; a missing one is 0, no limit."""
    read, write = _for_sides(value, "0")
    return read_count(read, 0, 10**9), read_count(write, 0, 10**9)


def read_sizes_bytes(value: str | None, kb_base: int) -> tuple[int, int]:
    """Return the sizes of reads and of writes in bytes, in the notation of ``bs``."""
    read, write = _for_sides(value, str(DEFAULT_BLOCK_BYTES))
    return _size_bytes(read, kb_base), _size_bytes(write, kb_base)


def read_blocks(name: str, value: str | None, kb_base: int) -> tuple[Blocks, Blocks]:
    """Return sizes of reads and of writes with their percentages, from ``bs``, ``bsrange`` or ``bssplit``."""
    if name == "bs":
        read, write = read_sizes_bytes(value, kb_base)
        return (BlockShare(read, 100),), (BlockShare(write, 100),)
    parse = _parse_split if name == "bssplit" else _parse_range
    of_reads, of_writes = _for_sides(value, "")
    return parse(of_reads, kb_base), parse(of_writes, kb_base)


def read_zones(value: str | None) -> tuple[Zone, ...]:
    """Return the zones of ``zoned:50/5:30/15:20/`` (a missing number is the rest); none for ``random``."""
    kind, _, zones = (value or "").partition(":")
    if value == "random":
        return ()
    if kind != "zoned":
        raise Unclear("tkperf spreads addresses evenly, or by random_distribution=zoned")
    rows = [entry.partition("/")[::2] for entry in zones.split(":")]
    accesses = _percentages([access for access, _ in rows])
    ranges = _percentages([share for _, share in rows])
    return tuple(
        Zone(access_percent=access, range_percent=share)
        for access, share in zip(accesses, ranges, strict=True)
    )


def _for_sides(value: str | None, default: str) -> tuple[str, str]:
    """Return the values of reads and of writes in ``read,write,trim``; one value applies to all."""
    sides = [part.strip() or default for part in (value or "").split(",")]
    if len(sides) > 3:
        raise Unclear("it is one value, or those of reads, writes and trims")
    return sides[0], sides[min(1, len(sides) - 1)]


def _size_bytes(text: str, kb_base: int) -> int:
    """Return a size such as ``4k``, ``4KiB``, ``4096``, in bytes."""
    if not re.fullmatch(r"[0-9]{1,15} ?(?:[kmgtp](?:i?b)?|b)?", text, re.IGNORECASE):
        raise Unclear("it is a size such as 4k, 1m or 4096")
    size_bytes = parse_number(text.replace(" ", ""), kb_base)
    if size_bytes is None or not 0 < size_bytes <= _MOST_BYTES:
        raise Unclear("it is a size of 1 byte or more, and no more than any drive's")
    return size_bytes


def _parse_range(text: str, kb_base: int) -> Blocks:
    low, dash, high = text.replace(":", "-").partition("-")
    if not dash or _size_bytes(low, kb_base) != _size_bytes(high, kb_base):
        raise Unclear("tkperf draws no sizes from a range; write the sizes as bssplit=4k/50:8k/50")
    return (BlockShare(_size_bytes(low, kb_base), 100),)


def _parse_split(text: str, kb_base: int) -> Blocks:
    rows = [entry.partition("/")[::2] for entry in text.split(":") if entry.strip()]
    sizes = [_size_bytes(size.strip(), kb_base) for size, _ in rows]
    percentages = _percentages([share for _, share in rows])
    if len(set(sizes)) < len(sizes):
        raise Unclear("it has a size twice")
    shares = zip(sizes, percentages, strict=True)
    return tuple(BlockShare(size, percent) for size, percent in shares if percent)


def _percentages(texts: Sequence[str]) -> list[int]:
    """Return whole percentages with the sum 100; missing ones share the rest equally."""
    given = [read_count(text.strip(), 0, 100) if text.strip() else None for text in texts]
    left, blank = 100 - sum(number or 0 for number in given), given.count(None)
    if left < 0 or (left and not blank) or (blank and left % blank):
        raise Unclear("its percentages do not add up to 100")
    return [left // blank if number is None else number for number in given]
