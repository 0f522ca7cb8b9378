"""Numbers in the names of files, folders and jobs: which numbers count rounds, and which
distinguish drives and conditions.

Names belong together if they differ only in a count of rounds, a date or a process id. Any other
difference separates series, because results are rounds of one series only if nothing distinguishes
them.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Words before the number of a round. If a name contains several counts, the earlier word in this
# list decides.
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
# Job names contain other numbers, too, so only full words count rounds there.
_JOB_ROUND = re.compile(r"(?<![a-z])(round|pass|loop|cycle|iter|iteration)([-_ ]?)\d+", re.IGNORECASE)
# More words before a number that does not distinguish conditions: "result3", "day2".
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
# World-wide names as in /dev/disk/by-id or without their prefix (64 bits), and PCI addresses, whose
# parts look like times; then serial numbers: capitals and digits mixed.
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
# Digits that are part of a name, replaced with characters that are not digits.
_KEPT_DIGITS = {ord(str(digit)): chr(0xE000 + digit) for digit in range(10)}


def without_round(job: str) -> str:
    """Return a job's name without the number of a round.

    Such a number follows a word for rounds; any other number may count drives.
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
        # 7op-1, 16qd_2: the word belongs to the number before it.
        return is_attached or not before[: found.start(1)][-1:].isdigit()
    if not is_attached:
        return False
    if len(word) == 1:  # such as drive D3 and model S4510; p1 and t2 may count anything
        return word in "Dd" or (is_folder and (word not in "RrIiNnPpTt" or len(digits) > 3))
    if is_folder:
        return True
    return len(word) > 2 and len(digits) > 2 and digits[0] != "0"


def find_rounds(file: str, job: str) -> dict[tuple[str, str], int]:
    """Return the numbers that count rounds, by their place and the word before them: ``("file", "round"): 12``.

    If a word occurs several times at a place, its last number counts rounds, and the other numbers
    have separate places: ``r70_r3.json`` is round 3 of a mix, ``r3_r70.json`` may be.
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
    """Return a sort key that puts the column that counts rounds before columns that count larger
    units.
    """
    place, word = column
    return ROUND_WORDS.index(word), ("file", "job").index(place) if place in ("file", "job") else 2


def find_numbers(file: str) -> tuple[int, ...]:
    """Return the numbers in a path, without dates."""
    text = _DATES.sub(" ", file)
    return tuple(int(digits) for digits in re.findall(r"\d{1,18}", text))
