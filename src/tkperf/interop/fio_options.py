"""fio's own notation of numbers with units, times, and the block sizes of each direction.

Sizes follow fio's HOWTO, "Parameter types", and tests with fio 3.33. With ``kb_base=1024``, the default, ``k`` and
``kB`` mean 1,024 bytes, and ``KiB`` means 1,000 bytes. This rule keeps old job files valid. With ``kb_base=1000``,
``k`` and ``kB`` mean 1,000 bytes, and ``KiB`` means 1,024 bytes. Case is not significant, and text after the unit is
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Options = Mapping[str, Any]

# Keys by which fio's client names the server of a job, or of an entry of global options.
SERVER = ("hostname", "port")
# fio's default size.
DEFAULT_BLOCK_BYTES = 4096
_RANGES = ("bsrange", "blocksize_range")
_SIZES = ("bs", "blocksize", *_RANGES)
# A number with more digits is not from fio.
_MOST_DIGITS = 30
_TIME_UNITS_S = {
    "us": 1e-6,
    "usec": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86_400.0,
    "day": 86_400.0,
}


def options_of(document: Options, job: Options) -> dict[str, Any]:
    """Return the options of a job together with the options of all jobs. The options of the job override the common
    options.
    """
    shared, own = document.get("global options"), job.get("job options")
    own = own if isinstance(own, dict) else {}
    if isinstance(shared, list):
        shared = _of_server(shared, job)
    shared = shared if isinstance(shared, dict) else {}
    return {key: value for key, value in shared.items() if key not in own} | own


def _of_server(entries: Sequence[object], job: Options) -> dict[str, Any]:
    """Return the global options of the server that ran a job. An empty result means that this server received no global
    options.

    Since fio 3.39, fio's client writes a list if it uses several servers. The list contains an entry for each server
    with global options (``client.c``, commit 6f771553). ``find_server_fault`` checks that the list is unambiguous.
    """
    place = [job.get(name) for name in SERVER]
    for entry in entries:
        if isinstance(entry, dict) and [entry.get(name) for name in SERVER] == place:
            return {key: value for key, value in entry.items() if key not in SERVER}
    return {}


def find_server_fault(document: Options) -> str | None:
    """Return why the global options of several servers cannot be distinguished. None means that tkperf can assign the
    options to each job.
    """
    entries = document.get("global options")
    if not isinstance(entries, list):
        return None
    known: dict[str, object] = {}
    for entry in entries:
        if not isinstance(entry, dict) or "hostname" not in entry:
            return "an entry of its global options names no server"
        place = str([entry.get(name) for name in SERVER])
        if known.setdefault(place, entry) != entry:
            return "its global options have two different entries for one server"
    if not all("hostname" in job for job in document["jobs"]):
        return "its global options are from several servers, and one of its jobs names no server"
    return None


def pattern_of(options: Options) -> str:
    """Return the pattern of ``rw`` without its suffix, such as ``randwrite`` for ``randwrite:8``. An empty result means
    that the pattern is not known.
    """
    return str(options.get("rw", options.get("readwrite", ""))).partition(":")[0].strip()


def kb_base_of(options: Options) -> int:
    return 1000 if str(options.get("kb_base", "")).strip() == "1000" else 1024


def parse_number(value: object, kb_base: int = 1024) -> int | None:
    """Return the whole number that fio reads from this value. None means that the text does not begin with a number."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    text = str(value).strip().lower()
    if text.startswith("0x"):
        digits = re.match(r"0x([0-9a-f]{1,16})", text)
        return int(digits[1], 16) if digits else None
    match = re.match(r"([0-9]+)(.*)", text[: _MOST_DIGITS + 10], re.DOTALL)
    if match is None or len(match[1]) > _MOST_DIGITS:
        return None
    power = "kmgtp".find(match[2][:1]) + 1 if match[2] else 0
    swapped = power and match[2][1:3] == "ib"
    base = {1024: 1000, 1000: 1024}[kb_base] if swapped else kb_base
    return int(match[1]) * int(base**power)


def parse_time_s(value: object) -> float | None:
    """Return the time in seconds that fio reads from this value. A number without a unit is in seconds. None means that
    the text is not a time, or is 0.
    """
    match = re.fullmatch(r"([0-9]{1,12})\s*([a-z]*)", str(value).strip().lower())
    if match is None or match[2] not in _TIME_UNITS_S:
        return None
    return int(match[1]) * _TIME_UNITS_S[match[2]] or None


def is_rate_set(value: object) -> bool:
    """Return whether a rate option limits the rate. fio interprets ``0``, ``0,0`` and ``,0`` as no limit.

    Limits may differ by direction, as in ``rate=1m,500k,``. Text that is not a number counts as a limit.
    """
    parts = (part.strip() for part in str(value).split(","))
    return any(part and parse_number(part) != 0 for part in parts)


def is_size_given(options: Options) -> bool:
    return "bssplit" in options or any(name in options for name in _SIZES)


def block_sizes_of(options: Options, side: str, kb_base: int) -> tuple[int | None, ...]:
    """Return the I/O sizes of one direction in bytes. None stands for a size that is not a number. An empty result
    means that all sizes have 0 %.

    If several of ``bs``, ``bsrange`` and their long forms are given, the last of these options applies. ``bssplit``
    overrides all of them.
    """
    if "bssplit" in options:
        return _split(str(options["bssplit"]), side, kb_base)
    given = [name for name in options if name in _SIZES]
    if not given:
        return (DEFAULT_BLOCK_BYTES,)
    text = str(options[given[-1]])
    if given[-1] in _RANGES:
        low_high = re.split("[-:]", _for_side(text.split(","), side) or text)
        return tuple(dict.fromkeys(parse_number(bound, kb_base) for bound in low_high))
    # fio reads "4k-8k" and "4k:8k" as "4k,8k".
    sizes = text.split(",") if "," in text else re.split("[-:]", text)
    size = _for_side(sizes, side)
    return (parse_number(size, kb_base) if size else DEFAULT_BLOCK_BYTES,)


def name_sizes(options: Options) -> str:
    """Return the option with the block size, in the form in which it was given."""
    given = [name for name in options if name in _SIZES]
    name = "bssplit" if "bssplit" in options else given[-1] if given else "bs"
    return f"{name}={options.get(name, '4k')}"


def _for_side(values: list[str], side: str) -> str:
    """Return the value of a direction from values for reads, writes and trims. A single value applies to all
    directions.
    """
    at = 1 if side == "write" and len(values) > 1 else 0
    return values[at].strip()


def _split(text: str, side: str, kb_base: int) -> tuple[int | None, ...]:
    """Return the sizes in a text such as ``4k/60:8k/40``, without sizes that have 0 % of the I/Os."""
    sizes = []
    for entry in _for_side(text.split(","), side).split(":"):
        size, _, share = entry.partition("/")
        if share.strip() != "0":
            sizes.append(parse_number(size, kb_base))
    return tuple(dict.fromkeys(sizes))
