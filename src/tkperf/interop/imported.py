"""The result of an importer in tkperf's records: the imported results, the omissions, and remarks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from tkperf.model.errors import InputFileError
from tkperf.model.figures import TestPlan
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import RunNote, RunStatus, StepRecord, TestRecord, VerdictRecord
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.units import format_count

# Words before the number of a round. If a name contains several numbers after such words, the word that is first in
# this list decides.
ROUND_WORDS = (
    "round",
    "r",
    "iteration",
    "iter",
    "it",
    "loop",
    "cycle",
    "pass",
    "repetition",
    "repeat",
    "rep",
    "trial",
    "try",
    "attempt",
    "run",
)
# Job names also contain other numbers, so in a job name only the full words in this pattern count rounds.
_JOB_ROUND = re.compile(r"(?<![a-z])(round|pass|loop|cycle|iter|iteration)([-_ ]?)\d+", re.IGNORECASE)
# Other words after which a number does not distinguish conditions, as in "result3" and "day2".
_COUNTED = frozenset(
    {
        *ROUND_WORDS,
        "test",
        "tests",
        "result",
        "results",
        "out",
        "output",
        "exp",
        "experiment",
        "measurement",
        "sample",
        "set",
        "day",
        "date",
        "week",
        "part",
        "no",
        "nr",
        "data",
        "log",
        "fio",
        "bench",
        "benchmark",
        "time",
        "file",
    }
)
# A number after these words is part of the name of a drive, a host or a condition.
_CONDITIONS = frozenset(
    {
        "lbaf",
        "lba",
        "format",
        "fmt",
        "sector",
        "nvme",
        "disk",
        "drive",
        "dev",
        "device",
        "ssd",
        "hdd",
        "slot",
        "bay",
        "port",
        "host",
        "node",
        "vm",
        "server",
        "client",
        "machine",
        "fw",
        "firmware",
        "kernel",
        "linux",
        "ns",
        "namespace",
        "raid",
        "md",
        "lun",
        "vol",
        "volume",
        "pool",
        "osd",
        "cpu",
        "numa",
        "core",
        "socket",
        "zone",
        "zones",
        "temp",
        "config",
        "cfg",
        "conf",
        "variant",
        "version",
        "ver",
        "v",
        "op",
        "partition",
        "bs",
        "qd",
        "iodepth",
        "depth",
        "numjobs",
        "nj",
        "tc",
        "threads",
        "thread",
        "gen",
        "pcie",
        "dut",
        "drv",
        "sn",
        "serial",
        "unit",
        "ch",
        "channel",
        "ctrl",
        "controller",
        "hba",
        "enclosure",
        "shelf",
        "tray",
        "rack",
        "box",
        "mmcblk",
        "dm",
        "nullb",
        "pmem",
        "ada",
        "da",
        "nda",
        "nvd",
        "zvol",
        "bcache",
    }
)
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATES = re.compile(
    # 2023-01-05, 20230105T120000Z, 2023-01-05_12:00
    r"(?<!\d)(19|20)\d\d[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])"
    r"([-_ .]?t?[-_ ]?\d\d[-_.:h]?\d\d([-_.:m]?\d\d(\.\d+)?)?[sz]?)?(?!\d)"
    # 05-01-2023
    r"|(?<!\d)\d{1,2}[-_.]\d{1,2}[-_.](19|20)\d\d(?!\d)"
    # Jan-05, 5-Jan-2023, Thu
    rf"|(?<![a-z])({_MONTHS})[-_ .]*\d{{1,2}}(?!\d)([-_ .,]*(19|20)\d\d)?"
    rf"|(?<!\d)\d{{1,2}}[-_ .]*({_MONTHS})(?![a-z])([-_ .]*(19|20)\d\d)?"
    r"|(?<![a-z])(mon|tue|wed|thu|fri|sat|sun)(?![a-z])"
    # 12:00:07
    r"|(?<!\d)\d\d:\d\d(:\d\d)?(?!\d)"
    # a UUID, and other random ids of hexadecimal digits
    r"|(?<![0-9a-z])[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])"
    r"|(?-i:(?<![0-9A-Za-z.])(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{6,}(?![0-9A-Za-z]))",
    re.IGNORECASE,
)
# Names in which digits do not count rounds. The first patterns match world-wide names (64 bits), as in /dev/disk/by-id,
# with or without their prefix, and PCI addresses, parts of which look like times. The next patterns match serial
# numbers, which mix capitals and digits.
_WORLD_WIDE = re.compile(
    r"(?<![a-z0-9])(eui\.|wwn-|naa\.|0x)[0-9a-fx]+"
    r"|(?<![a-z0-9])(?=[0-9]*[a-f])[0-9a-f]{16}(?![a-z0-9])"
    r"|(?<![a-z0-9])(0000|1000[0-9a-f])[-_:][0-9a-f]{2}[-_:][0-9a-f]{2}[-_.][0-7](?![a-z0-9])"
    r"|(?<![a-z0-9:])[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?![a-z0-9])",
    re.IGNORECASE,
)
_SERIAL = re.compile(
    r"(?<![A-Za-z0-9])(?![A-Z]+\d{1,6}(?![A-Z0-9]))(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{8,}(?![A-Za-z0-9])"
)
_WORD_BEFORE = re.compile(r"([A-Za-z]+)([-_ .(#=]*)$")
_LAST_OF_CAMEL_CASE = re.compile(r"[A-Z]?[a-z]+$")
_DEVICE_BEFORE = re.compile(r"((nvme\d+(c\d+)?n|nvme\d+n\d+p)|(^|[^A-Za-z])(sd|hd|vd|xvd)[a-z]{1,2})$")
_SEPARATORS = re.compile(r"[-_ .()#\[\],=+]+")
_UNIT_AFTER = re.compile(
    r"(k|kb|kib|m|mb|mib|g|gb|gib|tb|tib|pct|percent|qd|jobs|threads|op|c|w|rpm)(?![A-Za-z])|%", re.IGNORECASE
)
_ROUND = re.compile(
    rf"(?:(?<![A-Za-z])(?i:({'|'.join(ROUND_WORDS)}))|(?<=[a-z])(Round|Iteration|Iter|Loop|Cycle|Pass|Run))"
    # These words do not match r70_w30, which is a mix of reads and writes.
    r"[-_ .#=]*(\d{1,6})(?![0-9A-Za-z%])(?![-_ .]*w\d)"
)
# Digits that are part of a name are replaced with characters that are not digits.
_KEPT_DIGITS = {ord(str(digit)): chr(0xE000 + digit) for digit in range(10)}


def without_round(job: str) -> str:
    """Return a job's name without the number of a round.

    Such a number follows a word for rounds. Any other number remains, because it may count drives.
    """
    return _JOB_ROUND.sub(r"\1\2", job)


def split_path(file: str) -> tuple[str, str]:
    """Return the folder and the name of a path."""
    folder, _, name = file.replace("\\", "/").rpartition("/")
    return folder, name


@lru_cache(maxsize=4096)
def family_of_file(name: str) -> str:
    """Return the part of a file's name that the rounds of one series share."""
    return _family(name, is_folder=False)


@lru_cache(maxsize=4096)
def family_of_folder(folder: str) -> str:
    """Return the part of a folder's path that the rounds of one series share."""
    return "/".join(_family(part, is_folder=True) for part in folder.split("/"))


def _family(name: str, *, is_folder: bool) -> str:
    def keep(match: re.Match[str]) -> str:
        return match[0].translate(_KEPT_DIGITS)

    text = _DATES.sub("", _WORLD_WIDE.sub(keep, name))
    text = _SERIAL.sub(keep, text)
    text = re.sub(r"\d+", lambda match: keep(match) if _distinguishes(match, is_folder) else "", text)
    return _SEPARATORS.sub("", text).lower()


def _distinguishes(match: re.Match[str], is_folder: bool) -> bool:
    """Return whether a number is part of the name of a drive, a host or a condition."""
    before, after, digits = match.string[: match.start()], match.string[match.end() :], match[0]
    if _UNIT_AFTER.match(after) or _DEVICE_BEFORE.search(before):
        return True
    found = _WORD_BEFORE.search(before)
    if found is None:
        return is_folder and after[:1].isalpha()
    word, is_attached = found[1], not found[2]
    last = _LAST_OF_CAMEL_CASE.search(word)
    words = {word.lower(), last[0].lower() if last else ""}
    if words & _COUNTED:
        return False
    if words & _CONDITIONS:
        # In names such as 7op-1 and 16qd_2, the word (op, qd) is the unit of the number before it, not the name of
        # the number after it.
        return is_attached or not before[: found.start(1)][-1:].isdigit()
    if not is_attached:
        return False
    if len(word) == 1:  # D3 may be a drive and S4510 a model, but p1 and t2 may be counts of any kind
        return word in "Dd" or (is_folder and (word not in "RrIiNnPpTt" or len(digits) > 3))
    if is_folder:
        return True
    return len(word) > 2 and len(digits) > 2 and digits[0] != "0"


def find_rounds(file: str, job: str) -> dict[tuple[str, str], int]:
    """Return the numbers that count rounds. The key consists of the place of the number and the word before the number:
    ``("file", "round"): 12``.

    If a word occurs several times at a place, its last number counts rounds, and the other numbers have separate
    places. ``r70_r3.json`` is therefore round 3 of a mix with 70 % reads. In ``r3_r70.json``, it is not certain which
    number counts rounds.
    """
    folder, name = split_path(file)
    places = [("file", name), ("job", "".join(match[0] + " " for match in _JOB_ROUND.finditer(job)))]
    places += [(f"folder {at}", part) for at, part in enumerate(reversed(folder.split("/")))]
    found: dict[tuple[str, str], int] = {}
    for place, text in places:
        without_ids = _SERIAL.sub(" ", _WORLD_WIDE.sub(" ", text))
        counts = _ROUND.findall(_DATES.sub(" ", without_ids))
        for at, (word, camel, digits) in enumerate(reversed(counts)):
            key = place, (word or camel).lower()
            found[(f"{place}, before {at}", key[1]) if key in found else key] = int(digits)
    return found


def rank_of_rounds(column: tuple[str, str]) -> tuple[int, int]:
    """Return a sort key. Columns that count rounds precede columns that count larger units."""
    place, word = column
    return ROUND_WORDS.index(word), ("file", "job").index(place) if place in ("file", "job") else 2


def find_numbers(file: str) -> tuple[int, ...]:
    """Return the numbers in a path, without dates."""
    text = _DATES.sub(" ", file)
    return tuple(int(digits) for digits in re.findall(r"\d{1,18}", text))


# The largest number of threads, and the largest queue depth. A file with a larger number is damaged or invented.
LARGEST_DEMAND = 65_536
# The largest integer that a run file can store.
LARGEST_COUNT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """The records of an imported run. Facts that the other tool did not record are None.

    Attributes:
        date: the day, in the form in which the file contains it.
        written_s: time at which the other tool wrote the first file, after its steps, in seconds since 1970.
        profile: the tables and numbers of a profile that the file contains.
        notices: notices that the file itself contains.
    """

    name: str
    tool: str
    profile_name: str
    profile: dict[str, object]
    tests: tuple[TestRecord, ...]
    warnings: tuple[RunNote, ...]
    date: str | None = None
    written_s: float | None = None
    fio_version: str | None = None
    command_line: str | None = None
    description: str | None = None
    feature_matrix: str | None = None
    host: dict[str, object] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def imported_test(
    name: str,
    steps: Sequence[StepRecord],
    verdicts: Sequence[VerdictRecord],
    sections: Sequence[SectionOutcome],
    plan: TestPlan | None = None,
) -> TestRecord:
    """Return a complete test from the records of an importer. If ``plan`` is not given, reports show the test like a
    test of tkperf with this name.
    """
    return TestRecord(
        name=name,
        status=RunStatus.COMPLETE,
        started_s=0.0,
        ended_s=None,
        outcomes=tuple(sections),
        purges=(),
        steps=tuple(steps),
        verdicts=tuple(verdicts),
        plan=plan,
    )


def describe_rounds(rounds: int, files: str, verdict: SteadyStateVerdict) -> str:
    """Return the reason why a section ended, in words. The reason does not mention a missing verdict, because views
    explain missing verdicts themselves.
    """
    counted = f"{rounds} round{'s' * (rounds > 1)} in the imported {files}"
    if not verdict.judged:
        return counted
    reached = "reached" if verdict.reached else f"not reached: {verdict.reason}"
    return f"{counted}, steady state {reached}"


def require_room(steps: Sequence[StepRecord], *, place: str) -> None:
    """Refuse amounts that are too large for a run file, or for a sum over the rounds."""
    seen = [step.measurement for step in steps]
    sides = [side for one in seen for side in (one.read, one.write)]
    for quantity, largest in (
        ("I/Os", sum(one.ios for one in seen)),
        ("bytes", sum(one.bytes for one in seen)),
        ("I/Os in latency bins", sum(side.histogram.total for side in sides)),
        ("ns of latency", max((side.latency_sum_ns for side in sides), default=0)),
    ):
        if largest > LARGEST_COUNT:
            raise InputFileError(f"{place}: {largest:.3g} {quantity} are more than a run file can contain")


def readable(text: str) -> str:
    """Return a text from a file for storage and display. U+FFFD replaces control characters and surrogates."""
    return _UNREADABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return text that can be printed, on one line, for a name, a version or a date within a sentence."""
    return " ".join(readable(text).split())


# The number of names from a long list that a message shows.
MOST_LISTED = 5
# The greatest number of warnings, so that a large number of unusable files does not fill the run file with warnings.
MOST_WARNINGS = 50
_FILE_LEFT_OUT, _JOB_LEFT_OUT = "file-left-out", "job-left-out"

# Control characters except tab and line feed, and surrogates.
_UNREADABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
NaturalKey: TypeAlias = tuple[tuple[object, ...], str]


class Unusable(Exception):  # noqa: N818 - a finding about a file, not a fault of ours
    """A result that cannot be imported.

    ``kind`` is a reason that many results can share, and ``detail`` describes this result.
    """

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}{detail}")
        self.kind, self.detail = kind, detail


def natural_key(name: str) -> NaturalKey:
    """Return a sort key in which groups of digits count as numbers, so that ``r2`` precedes ``r10``."""
    pieces = re.split(r"(\d+)", name)
    key = tuple((len(piece.lstrip("0")), piece.lstrip("0")) if at % 2 else piece for at, piece in enumerate(pieces))
    return key, name


class Remarks:
    """A collector of omissions and remarks, for the run file and the command line."""

    def __init__(self) -> None:
        # Each key consists of a code and a reason. Each value consists of file, job and detail. An empty job means the
        # whole file.
        self._entries: dict[tuple[str, str], list[tuple[str, str, str]]] = {}

    def leave_out_file(self, file: str, why: Unusable) -> None:
        self.say(_FILE_LEFT_OUT, why.kind, file, why.detail)

    def leave_out_job(self, file: str, job: str, why: Unusable) -> None:
        entry = file, readable(job[:40]), why.detail
        self._entries.setdefault((_JOB_LEFT_OUT, why.kind), []).append(entry)

    def say(self, code: str, text: str, file: str, detail: str = "") -> None:
        """Add a remark on a file. ``text`` is the same in all remarks of one kind, and ``detail`` describes
        this file.
        """
        self._entries.setdefault((code, text), []).append((file, "", detail))

    def has(self, code: str) -> bool:
        return any(entry_code == code for entry_code, _ in self._entries)

    def warnings(self) -> tuple[RunNote, ...]:
        """Return the warnings, with omissions first. Each reason occurs once, with the number of its occurrences and
        the place of the first occurrence.
        """
        omissions = _FILE_LEFT_OUT, _JOB_LEFT_OUT
        kinds = sorted(self._entries, key=lambda kind: (kind[0] not in omissions, kind))
        warnings = [
            RunNote(code=code, text=one_line(_describe(code, text, self._entries[code, text])))
            for code, text in kinds[:MOST_WARNINGS]
        ]
        more = len(kinds) - MOST_WARNINGS
        if more > 0:
            text = f"and {format_count(more, 'more kind')} of warnings; import fewer files to see them"
            warnings.append(RunNote(code="more", text=text))
        return tuple(warnings)


def _describe(code: str, text: str, entries: Sequence[tuple[str, str, str]]) -> str:
    in_order = sorted(entries, key=lambda entry: natural_key(entry[0]))
    files = [file for file, _, _ in in_order]
    what = f"{text}{in_order[0][2]}"
    if code == _JOB_LEFT_OUT:
        jobs = list(dict.fromkeys(job for _, job, _ in in_order))
        who = f"job {jobs[0]} is"
        if len(entries) > 1:
            results = format_count(len(entries), "result")
            who = f"{results} of job{'s' * (len(jobs) > 1)} {list_readable_names(jobs)} are"
        return f"{who} left out (first in {readable(files[0])}): {what}"
    if code == _FILE_LEFT_OUT:
        who = f"{readable(files[0])} is"
        if len(files) > 1:
            who = f"{format_count(len(files), 'file')} ({list_readable_names(files)}) are"
        return f"{who} left out: {what}"
    return f"{list_readable_names(files)}: {what}"


def list_readable_names(names: Sequence[str]) -> str:
    """Return a text that lists the first few names, and the number of the other names."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - MOST_LISTED
    listed = ", ".join(readable(name) for name in unique[:MOST_LISTED])
    return f"{listed} and {more:,} more" if more > 0 else listed
