"""A reader of fio's JSON documents in any text. It finds the documents, limits the memory that decoding needs,
separates the jobs of several hosts, and counts each run once.

A text of empty objects, such as ``{},{},{}``, needs 24 times its size in memory. The computed memory is an upper bound:
it assumes the largest size of each dictionary, array and string. With msgspec, which shares few keys, a minified
document of fio with full histograms needs up to ten times its size in memory. Python's own decoder shares all equal
keys, so it needs half of this memory, but three times the time.
"""

from __future__ import annotations

import json
import re
import sys
from calendar import timegm
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate
from io import StringIO
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tkperf.interop.fio_options import options_of, pattern_of
from tkperf.interop.imported import Unusable
from tkperf.model.decoding import decode_json
from tkperf.model.units import MIB

# The memory that is allowed for each byte of the file, and the memory in bytes that every file may need regardless of
# its size.
MOST_PER_BYTE, ALWAYS_BYTES = 10, 64 * MIB
# Sizes in bytes in CPython 3.11, whose allocator rounds up to a multiple of 16. The order is: an empty object, its
# first entries, and each further entry; an empty array, its first places, and each further place; a number. A table
# that has just grown reserves, for each entry, the space of two entries and three slots of 4 bytes. A short array that
# has just grown is half empty.
_OBJECT, _ENTRIES, _ENTRY, _ARRAY, _PLACES, _PLACE, _NUMBER = 64, 128, 44, 64, 32, 12, 32
_FIRST_ENTRIES = 4
# While a dictionary grows, its old table still exists. This is the size in bytes of an entry in the old table. Only the
# largest dictionary needs this reserve.
_GROWING_ENTRY = 22
# The size in bytes of a string without its characters. The first number is for a string of only ASCII characters, and
# the second number for a string with other characters.
_STRING, _OTHER_STRING = 66, 92
# The size in bytes of an entry in the table in which Python's decoder searches for equal keys.
_SHARED_KEY = _ENTRY + _GROWING_ENTRY
# CPython stores each number from -5 to 256 once, so a number of one or two digits needs no further memory.
_LEAST_DIGITS = 3
_PIECE_CHARACTERS = MIB
_KEY = re.compile(r'"([^"]*)"\s*:')
# Escapes of characters that need two bytes, and escapes of surrogates. A surrogate is half of a character that needs
# four bytes.
_TWO_BYTES, _FOUR_BYTES = re.compile(r"\\u(?!00)"), re.compile(r"\\u[dD][89a-fA-F]")
_SPACES = np.isin(np.arange(256), list(b" \n\t\r"))
_OF_NUMBERS = np.isin(np.arange(256), list(b"0123456789+-.eE"))

_Bytes = NDArray[np.uint8]


@dataclass(slots=True)
class _Need:
    """The memory for the values of a text, in the pieces read so far.

    Attributes:
        bytes: memory of all values without the old table of a growing dictionary.
        keys: the number of keys.
        saved_bytes: memory of keys that are equal to an earlier key, if such keys are counted.
        is_inside: whether the last piece ended inside a string.
        entries: number of entries of the object in which the last piece ended. The count begins after the last object
            inside this object.
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
    """Return whether a text and its values, decoded by msgspec, need no more memory than ten times the size of the
    file.

    64 MiB are always allowed.
    """
    need = _find_need(text)
    return need.bytes + need.growing_bytes <= _find_room(text, file_bytes)


def fits_python(text: str, file_bytes: int, *, begins_inside: bool = False) -> bool:
    """Return whether a text and its values, decoded by Python's own decoder, need no more memory than ``fits_msgspec``
    allows.

    Args:
        begins_inside: whether to count as if the text began inside a string. Other text before a JSON value may contain
            a quote, and objects would then be taken for the inside of a string.
    """
    left_bytes = _find_room(text, file_bytes)
    # The search for equal keys is slow. Usually the memory is sufficient even if every key is counted separately.
    need = _find_need(text, begins_inside=begins_inside)
    if need.bytes + need.growing_bytes + _SHARED_KEY * need.keys <= left_bytes:
        return True
    need = _find_need(text, begins_inside=begins_inside, share_keys=True)
    return need.bytes - need.saved_bytes + need.growing_bytes <= left_bytes


def _find_room(text: str, file_bytes: int) -> int:
    """Return the memory in bytes that values may need in addition to the text."""
    # The decoder needs UTF-8, so it copies a text that is not ASCII. The allocator does not release all of the memory
    # that contained the file.
    text_bytes = sys.getsizeof(text) + (0 if text.isascii() else 2 * file_bytes)
    return max(MOST_PER_BYTE * file_bytes, ALWAYS_BYTES) - text_bytes


def _find_need(text: str, *, begins_inside: bool = False, share_keys: bool = False) -> _Need:
    """Return the memory for the values of a text. Malformed text is counted in the same way.

    Args:
        share_keys: whether to find the keys that Python's decoder shares. This search is slower.
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
    """Return the number of bytes for each character of the string with the widest characters."""
    width = max(1, round(sys.getsizeof(text) / (len(text) + 64)))
    if width < 4 and _FOUR_BYTES.search(text):
        return 4
    return 2 if width < 2 and _TWO_BYTES.search(text) else width


def _pieces_of(text: str) -> Iterator[str]:
    """Yield the text in pieces, without the escapes of quotes and backslashes."""
    kept = ""
    for first in range(0, len(text), _PIECE_CHARACTERS):
        piece = kept + text[first : first + _PIECE_CHARACTERS]
        # A backslash at the end is moved to the next piece, so that no escape is divided.
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
    """Return the memory of all numbers in bytes. Each digit adds half a byte, because a number may have thousands of
    digits.
    """
    of_number = _OF_NUMBERS[outside]
    ends = of_number.copy()
    ends[:-1] &= ~of_number[1:]
    long = ends.copy()
    long[: _LEAST_DIGITS - 1] = False
    for back in range(1, _LEAST_DIGITS):
        long[back:] &= of_number[:-back]
    # A negative number with one digit also needs memory, while a positive number with one digit needs none.
    negative = np.zeros_like(ends)
    negative[1:] = ends[1:] & (outside[:-1] == ord("-"))
    numbers = int(np.count_nonzero(long | negative))
    return _NUMBER * numbers + int(np.count_nonzero(of_number)) // 2


def _count_runs(need: _Need, outside: _Bytes) -> None:
    """Count the entries of each object until the next object that is not empty."""
    braces = (outside == ord("{")) | (outside == ord("}"))
    empty = _find_pairs(outside, "{}")
    braces[:-1] &= ~empty
    braces[1:] &= ~empty
    runs = np.bincount(np.cumsum(braces)[outside == ord(":")], minlength=1)
    last = int(np.count_nonzero(braces))
    runs[0] += need.entries
    need.longest = max(need.longest, int(runs.max()))
    need.entries = int(runs[last]) if last < runs.size else 0


# The longest time in ms without a running job between two status reports of one fio process.
IDLE_MS = 2000.0
# The shortest time in ms for which jobs ran between two reports, if fio reports no time of day.
SHORTEST_INTERVAL_MS = 100.0
# The largest number of I/Os that complete between two reports with the same runtime.
MOST_OUTSTANDING_IOS = 256
# fio writes no larger number.
LARGEST = 1e18
# The greatest number of braces in the text around results. A file with more braces is not output of fio, and a search
# through it would take too long.
MOST_ATTEMPTS = 1000
# The limit for text that is decoded again after a brace that begins no JSON, as a multiple of the text's size.
MOST_REPEATED = 10
# The greatest depth at which other tools nest fio's documents in their JSON.
DEEPEST = 5
# The name of the row in which fio's client adds the results of all servers.
ALL_CLIENTS = "All clients"

# The message that fio prints after a signal. fio still writes the results up to the signal. STOPPED is the key that
# tkperf adds to such a document.
SIGNALLED = "fio: terminating on signal"
STOPPED = "stopped by a signal"

_TOO_MUCH_MEMORY = f"its values would need more than {MOST_PER_BYTE} times its size in memory; is it fio's output?"
_BEGINS_ALIKE = re.compile(r'"(fio version|jobs|client_stats)"')
# Old versions of fio print C's words nan and inf for values that are not finite. The replacement has the same number of
# characters, so that positions do not change.
_NO_NUMBER = re.compile(r"(?<=[:,\[\s])(-?)(?:nan|inf)(?=[\s,}\]])")
# A backslash in a Windows path that is not part of a JSON escape is a literal backslash.
_ESCAPED = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')

# Patterns of fio's other output formats. The patterns match the line of each job in the normal output, and a line of
# the terse output with or without the prefix of a server.
_FOR_PEOPLE = re.compile(r"\(groupid=\d+, jobs=\d+\): err=")
_TERSE = re.compile(r"^(?:<[^>]*> )?\d;fio-\d", re.MULTILINE)


def describe_text(text: str) -> str | None:
    """Return why a text without JSON cannot be imported, if the text is another output format of
    fio.
    """
    for name, form in (("text", _FOR_PEOPLE), ("terse", _TERSE)):
        if form.search(text):
            return f"it is fio's {name} output, which lacks many numbers: run fio with --output-format=json+"
    return None


class Documents:
    """The documents of one text in their order. ``cut_off`` has its final value after the last document.

    ``file_bytes`` is the size of the file. The values of the text may need up to ten times this size in memory.
    """

    def __init__(self, content: str, file_bytes: int | None = None) -> None:
        self._text = content
        self._file_bytes = len(content) if file_bytes is None else file_bytes
        self.cut_off = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the documents."""
        if fits_msgspec(self._text, self._file_bytes):
            try:
                # For a file that consists of a single document, decoding with msgspec is three times as fast.
                values = [decode_json(self._text, object)]
            except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
                pass
            else:
                yield from _documents_in(values.pop(), DEEPEST)
                return
        if not fits_python(self._text, self._file_bytes):
            raise Unusable(_TOO_MUCH_MEMORY)
        yield from self._search()

    def _search(self) -> Iterator[dict[str, Any]]:
        decoder, position, failed, ended = json.JSONDecoder(), 0, 0, 0
        noise_is_checked = False
        # A limit on the number of characters that are decoded without a result. The limit is necessary, because the
        # rest of the text may contain many braces that begin no JSON.
        left = MOST_REPEATED * len(self._text) + MIB
        text = _replace(_NO_NUMBER, self._text, lambda match: " NaN" if match[1] else "NaN")
        text = _replace(_ESCAPED, text, lambda match: None if match[1] else "\\\\")
        while (position := text.find("{", position)) >= 0:
            if not noise_is_checked and '"' in text[ended:position]:
                noise_is_checked = True
                if not fits_python(self._text, self._file_bytes, begins_inside=True):
                    raise Unusable(_TOO_MUCH_MEMORY)
            try:
                value, position = decoder.raw_decode(text, position)
            except (ValueError, RecursionError) as error:
                if isinstance(error, json.JSONDecodeError):
                    left -= error.pos - position
                if _BEGINS_ALIKE.search(text, position, position + 400):
                    self.cut_off = True
                position, failed = position + 1, failed + 1
                if left < 0:
                    raise Unusable("it contains only JSON that is cut off or damaged") from None
                if failed > MOST_ATTEMPTS:
                    raise Unusable(
                        f"more than {MOST_ATTEMPTS:,} braces in it begin no JSON; it is probably not output of fio"
                    ) from None
                continue
            stopped = SIGNALLED in text[ended:position]
            for document in _documents_in(value, DEEPEST):
                yield document | {STOPPED: True} if stopped else document
                ended = position


def _replace(pattern: re.Pattern[str], text: str, find_new: Callable[[re.Match[str]], str | None]) -> str:
    """Replace each match for which ``find_new`` returns a text.

    ``Pattern.sub`` would keep an object for each match and for each text between matches. These objects need up to 20
    times as much memory as the text.
    """
    written, end = StringIO(), 0
    for match in pattern.finditer(text):
        if (new := find_new(match)) is not None:
            written.write(text[end : match.start()])
            written.write(new)
            end = match.end()
    if not end:
        return text
    written.write(text[end:])
    return written.getvalue()


def _documents_in(value: object, deep: int) -> Iterator[dict[str, Any]]:
    """Yield fio's documents in a JSON value. The value itself may be such a document."""
    if isinstance(value, dict):
        is_document = isinstance(value.get("jobs"), list)
        is_of_clients = isinstance(value.get("client_stats"), list)
        if (is_document or is_of_clients) and (deep == DEEPEST or "fio version" in value):
            if is_of_clients and not is_document:
                _divide_clients(value)
            _divide_unified(value)
            yield value
            return
    if isinstance(value, dict | list) and deep:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _documents_in(inner, deep - 1)


def _divide_clients(document: dict[str, Any]) -> None:
    """Separate the jobs of each host from the sum that fio computes over all hosts."""
    rows = document["client_stats"]
    is_sum = [isinstance(row, dict) and row.get("jobname") == ALL_CLIENTS for row in rows]
    document["jobs"] = [row for row, total in zip(rows, is_sum, strict=True) if not total]
    document["all clients"] = [row for row, total in zip(rows, is_sum, strict=True) if total]


def _divide_unified(document: dict[str, Any]) -> None:
    """Copy ``mixed`` results (unified_rw_reporting) to the direction of the job, for jobs that only read or
    only wrote.
    """
    for job in document["jobs"]:
        if isinstance(job, dict) and is_unified(job):
            options = options_of(document, job)
            side = pattern_of(options).removeprefix("rand")
            if side in ("read", "write"):
                job[side] = job["mixed"]


def is_unified(job: Mapping[str, Any]) -> bool:
    """Return whether reads and writes of a job were counted only together."""
    return "mixed" in job and not ("read" in job or "write" in job)


def host_of(job: Mapping[str, Any]) -> str | None:
    """Return the server that ran a job. None means that fio itself ran the job."""
    if "hostname" not in job:
        return None
    port = job.get("port")
    return f"{job['hostname']}" if port in (None, 8765) else f"{job['hostname']}:{port}"


def last_of_each_run(documents: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield only the last report of each fio process, because the reports are cumulative."""
    kept: dict[str, Any] | None = None
    for document in documents:
        if kept is not None and not _continues(kept, document):
            yield kept
        elif kept is not None and STOPPED in kept:
            document[STOPPED] = True
        kept = document
    if kept is not None:
        yield kept


def _continues(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether two documents are reports of one fio process.

    Two such reports contain the same jobs, and no counter decreases. The growth of the jobs' runtimes equals the time
    between the reports. The runtimes of jobs that wait for each other are added. A second run of the same jobs takes
    about as long as the first run, but reports about the same runtimes as the first run.
    """
    if _identity(before) != _identity(after):
        return False
    earlier, later = _counters(before), _counters(after)
    grown = [
        [value - was for was, value in zip(side, side_later, strict=True)]
        for side, side_later in zip(earlier, later, strict=True)
    ]
    if any(min(side) < 0 for side in grown):
        return False
    if any(map(_grows_without_time, grown, later)):
        return False
    ran_ms = _ran_ms(after, [runtime_ms for runtime_ms, _, _ in grown])
    first_ms, second_ms = stamp_ms(before), stamp_ms(after)
    if first_ms is not None and second_ms is not None:
        idle_ms = min(IDLE_MS, max((runtime_ms for runtime_ms, _, _ in later), default=0.0) / 2)
        passed_ms = second_ms - first_ms
        return _jobs_by_host(before) == _jobs_by_host(after) or -idle_ms <= passed_ms <= ran_ms + idle_ms
    # The runtime, the I/Os and the bytes of a direction either grow together, or do not grow.
    consistent = all(len({value > 0 for value in side}) == 1 for side in grown)
    return consistent and ran_ms >= SHORTEST_INTERVAL_MS


def _grows_without_time(grown: Sequence[float], later: tuple[float, float, float]) -> bool:
    """Return whether a direction completed more I/Os in the same runtime. In this case, the results are from two runs
    at the same time.

    Between two reports of one fio process, the I/Os of less than a millisecond and the I/Os that were outstanding at
    the first report may be added.
    """
    runtime_ms, ios, _ = later
    if grown[0] > 0 or runtime_ms <= 0:
        return False
    return grown[1] > MOST_OUTSTANDING_IOS + 2 * ios / runtime_ms


def _ran_ms(document: Mapping[str, Any], grown_ms: Sequence[float]) -> float:
    """Return the time for which jobs ran, from the growth of the runtimes of their reads and writes.

    Jobs of a group run at the same time. Jobs that wait for other jobs (stonewall) form a new group.
    """
    longest: dict[str, float] = {}
    for number, job in enumerate(_jobs_by_host(document)):
        group = str(job.get("groupid", f"job {number}"))
        longest[group] = max(longest.get(group, 0.0), *grown_ms[2 * number : 2 * number + 2])
    return sum(longest.values())


def _identity(document: Mapping[str, Any]) -> object:
    """Return the parts of a document that are equal in every report of one fio process."""
    return (
        document.get("fio version"),
        document.get("global options"),
        [
            (host_of(job), job.get("jobname"), job.get("groupid"), job.get("job options"))
            for job in _jobs_by_host(document)
        ],
    )


def _jobs_by_host(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the jobs in an order that is the same in all reports of one fio process. fio's client itself writes the
    hosts in the order in which their reports arrive.
    """
    jobs = [job for job in document["jobs"] if isinstance(job, dict)]
    return sorted(jobs, key=lambda job: host_of(job) or "")


def _counters(document: Mapping[str, Any]) -> list[tuple[float, float, float]]:
    """Return the runtime in ms, the I/Os and the bytes of each direction of each job. The reads of a job precede its
    writes.
    """
    counters = []
    for job in _jobs_by_host(document):
        for side in ("read", "write"):
            direction = job.get(side)
            direction = direction if isinstance(direction, dict) else {}
            runtime, ios, moved = (_finite(direction.get(name)) or 0.0 for name in ("runtime", "total_ios", "io_bytes"))
            counters.append((runtime, ios, moved))
    return counters


def _finite(value: object) -> float | None:
    """Return the value if it is a number of plausible size. Otherwise, return None."""
    return float(value) if isinstance(value, int | float) and abs(value) < LARGEST else None


def stamp_ms(document: Mapping[str, Any]) -> float | None:
    """Return the time at which fio wrote the document, in ms since 1970.

    Older versions of fio write whole seconds, or the date in words. None means that the time is not known.
    """
    for name, factor in (("timestamp_ms", 1), ("timestamp", 1000)):
        stamp = _finite(document.get(name))
        if stamp is not None and stamp > 0:
            return stamp * factor
    # an example is Tue Oct 6 11:17:44 2015, in the local time of the host
    written = parsedate(str(document.get("time", "")))
    return timegm(written) * 1000.0 if written and 1970 <= written[0] <= 9999 else None
