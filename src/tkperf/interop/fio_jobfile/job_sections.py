"""A reader of fio's job files, which returns the jobs with their options.

The format (fio's HOWTO, "Job file format", and tests with fio 3.33) differs from INI files in the following points, so
configparser cannot read it. Sections with the same name are different jobs. A global section applies only to the jobs
below it, and every section whose name begins with ``global`` is a global section. Indented lines are options, not
continuations. ``;`` and ``#`` begin a comment anywhere in a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tkperf.interop.fio_options import DEFAULT_BLOCK_BYTES, parse_number, parse_time_s
from tkperf.model.errors import InputFileError
from tkperf.model.units import format_count
from tkperf.model.workload import Arrival, BlockShare, Zone
from tkperf.procedures.own_workloads.parts import SMALLEST_PART_BYTES

# Aliases of the options that are carried over or refused.
ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blockalign": "ba",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "io_limit": "io_size",
    "fill_fs": "fill_device",
    "fileoffset": "offset",
    "nr_files": "nrfiles",
    "timeout": "runtime",
    "iomem": "mem",
    "ratemin": "rate_min",
    "wait_for_previous": "stonewall",
    "ratecycle": "rate_cycle",
    "disable_bw": "disable_bw_measurement",
    "ss": "steadystate",
    "ss_dur": "steadystate_duration",
    "ss_ramp": "steadystate_ramp_time",
    "ss_interval": "steadystate_check_interval",
    # Names that are aliases since fio 3.39. In earlier versions, they were separate options.
    "allrandrepeat": "randrepeat",
    "log_max_value": "log_window_value",
    "log_unix_epoch": "log_alternate_epoch",
    "data_placement": "dataplacement",
    "fdp_pli": "plids",
    "fdp_pli_select": "plid_select",
}
MOST_SECTIONS = 256
LONGEST_SHOWN = 60
_BYTE_ORDER_MARK = "\ufeff"
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_KEYWORD = re.compile(r"\$(?:mb_memory|ncpus|pagesize)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a job file. ``value`` is None if the option is written without ``=``.

    ``name`` is fio's name of the option. ``spelled`` is the name in the job file, which may be an alias.
    """

    name: str
    spelled: str
    value: str | None
    place: str

    def __str__(self) -> str:
        """Return the option in shortened form, such as ``bs=4k``."""
        return shorten_text(self.spelled if self.value is None else f"{self.spelled}={self.value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A section that is a job, with the options of the global sections above it.

    ``options`` have fio's names, in the order of the file. If an option is repeated, the last occurrence applies.

    Attributes:
        overridden: options that a later option replaces.
        is_only_global: whether the file contains no job. In this case, this job has the options of the file's global
            sections.
    """

    name: str
    place: str
    line: int
    options: Mapping[str, Option]
    overridden: Sequence[Option] = ()
    is_only_global: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    file: str
    number: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.number}"

    def error(self, reason: str) -> InputFileError:
        return InputFileError(f"{self.place}: {reason}")


def read_jobs(file: str, text: str, variables: Mapping[str, str] | None = None) -> tuple[Job, ...]:
    """Return the jobs of a job file, in order.

    A file that contains only global sections counts as one job, because test suites add a section for each device when
    they run such a file.

    Args:
        file: name of the job file.
        text: the job file.
        variables: the values of ``${NAME}``. fio itself reads these values from its environment.
    """
    jobs: list[Job] = []
    shared: dict[str, Option] = {}
    replaced_shared: list[Option] = []
    options: dict[str, Option] | None = None
    replaced = replaced_shared
    for line in _fill_in(file, tuple(_lines(file, text)), variables or {}):
        if line.text.startswith("["):
            name = _section_name(line)
            options, replaced = shared, replaced_shared
            if not name.startswith("global"):
                options, replaced = dict(shared), list(replaced_shared)
                job = Job(name=name, place=line.place, line=line.number, options=options, overridden=replaced)
                jobs.append(job)
        elif re.match(r"include\b", line.text):
            raise line.error(f"'{shorten_text(line.text)}': tkperf reads one file: write its lines here instead")
        elif line.text.startswith(_BYTE_ORDER_MARK):
            raise line.error("the file begins with a byte order mark, which fio refuses: save the file without it")
        elif options is None:
            raise line.error(
                f"'{shorten_text(line.text)}' is above the first [section], which fio refuses; is it a job file?"
            )
        else:
            option = _option(line)
            if earlier := options.pop(option.name, None):
                replaced.append(earlier)
            options[option.name] = option
        if len(jobs) > MOST_SECTIONS:
            raise InputFileError(
                f"{file}: the file contains more than {MOST_SECTIONS} jobs, but a test can run at most "
                "that number. Divide the file into several files"
            )
    if not jobs and shared:
        name = file.rpartition("/")[2].rpartition(".")[0] or "job"
        only = Job(name=name, place=file, line=1, options=shared, overridden=replaced_shared, is_only_global=True)
        return (only,)
    if not jobs:
        raise InputFileError(f"{file}: the file contains no job. A job is a section such as [randread]")
    return tuple(jobs)


def name_variables(text: str) -> tuple[str, ...]:
    """Return the names of the variables in a job file, in order."""
    lines = _lines("", text)
    return tuple(dict.fromkeys(name for line in lines for name in _VARIABLE.findall(line.text)))


def _fill_in(file: str, lines: Sequence[_Line], variables: Mapping[str, str]) -> Iterator[_Line]:
    """Yield the lines with the values of their variables.

    Raises:
        InputFileError: variables have no value. The message names all of these variables.
    """
    missing = {name: None for line in lines for name in _VARIABLE.findall(line.text) if name not in variables}
    if missing:
        wanted = " ".join(f"--set {shorten_text(name)}=.." for name in missing)
        raise InputFileError(
            f"{file}: this file refers to environment variables for {format_count(len(missing), 'value')}. Add {wanted}"
        )
    for line in lines:
        yield _Line(line.file, line.number, _VARIABLE.sub(lambda found: variables[found[1]], line.text))


def shorten_text(text: str) -> str:
    """Return the text of a file in shortened form, for a message."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _section_name(line: _Line) -> str:
    if not line.text.endswith("]") or not line.text[1:-1].strip():
        raise line.error(f"'{shorten_text(line.text)}' is no section: it is [name]")
    return line.text[1:-1]


def _option(line: _Line) -> Option:
    name, equals, value = line.text.partition("=")
    name = name.strip()
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise line.error(f"'{shorten_text(line.text)}' is neither an option nor a section; is it a job file?")
    found = _KEYWORD.search(value)
    if found:
        raise line.error(
            f"{name}: fio fills in {shorten_text(found[0])} from the host, so that the load would not be known: write "
            "its value"
        )
    return Option(name=ALIASES.get(name, name), spelled=name, value=value.strip() if equals else None, place=line.place)


def _lines(file: str, text: str) -> Iterator[_Line]:
    """Yield the lines that are not empty, without their comments."""
    if "\0" in text:
        raise InputFileError(f"{file}: the file contains binary data, so it is not a job file")
    for number, line in enumerate(text.split("\n"), 1):
        left = re.split("[;#]", line, maxsplit=1)[0].strip()
        if left:
            yield _Line(file, number, left)


T = TypeVar("T")
# Values for reads, writes and trims, in this order.
Sides = tuple[T, T, T]
Blocks = tuple[BlockShare, ...]
DEFAULT_BLOCKS: Blocks = (BlockShare(DEFAULT_BLOCK_BYTES, 100),)
_MOST_BYTES = 1 << 50


class Unclear(Exception):  # noqa: N818 - what a value is, not what went wrong
    """A value that fio refuses, or that fio interprets differently from what a user would expect. The message describes
    a valid value.
    """


def read_flag(value: str | None) -> bool:
    """Return the state of a switch. ``stonewall`` and ``stonewall=1`` are on, and ``stonewall=0`` is off."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A position or length, either in percent of the device or in bytes. The field of the other unit is None. If the
    amount is 0, both fields are 0.
    """

    percent: int | None = None
    bytes: int | None = None


NOTHING = Amount(percent=0, bytes=0)


def read_amount(value: str | None, kb_base: int) -> Amount:
    """Return a position or a length on the device: ``25%``, ``10g``, or 0."""
    text = value or ""
    if re.fullmatch(r"0+[a-z%]{0,3}", text, re.IGNORECASE):
        return NOTHING
    if text.endswith("%"):
        return Amount(percent=read_count(text.removesuffix("%").strip(), 0, 1000))
    size_bytes = _size_bytes(text, kb_base)
    if size_bytes % SMALLEST_PART_BYTES:
        raise Unclear("in tkperf it is whole 4 KiB")
    return Amount(bytes=size_bytes)


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
    """Return a time in s. 0 is allowed."""
    text = value or ""
    time_s = parse_time_s(text)
    if time_s is None and not re.fullmatch(r"0+\s*[a-z]*", text):
        raise Unclear("it is a time such as 60, 90s, 5m or 1h")
    return time_s or 0.0


def read_pause_s(value: str | None) -> float:
    """Return a pause in s. fio interprets a number without a unit as a time in µs."""
    text = value or ""
    return read_time_s(f"{text}us" if text.isdecimal() else text)


def read_rates(value: str | None, kb_base: int) -> Sides[int]:
    """Return the rates from ``rate`` or ``rate_iops``. A missing rate is 0, which means no limit."""
    return _map_sides(value, lambda text: _rate(text, kb_base), 0)


def _rate(text: str, kb_base: int) -> int:
    return 0 if re.fullmatch("0+", text) else _size_bytes(text, kb_base)


def read_percents(value: str | None) -> Sides[int]:
    """Return the percentages from ``percentage_random``. A missing percentage is 100."""
    return _map_sides(value, lambda text: read_count(text, 0, 100), 100)


def read_sizes_bytes(value: str | None, kb_base: int) -> Sides[int]:
    """Return the sizes of each direction in bytes, in the notation of ``bs``."""
    return _map_sides(value, lambda text: _size_bytes(text, kb_base), DEFAULT_BLOCK_BYTES)


def read_blocks(name: str, value: str | None, kb_base: int) -> Sides[Blocks]:
    """Return the sizes of each direction, from ``bs`` or ``bsrange``."""
    if name == "bs":
        return _map_sides(value, lambda text: (BlockShare(_size_bytes(text, kb_base), 100),), DEFAULT_BLOCKS)
    return _map_sides(value, lambda text: _parse_range(text, kb_base), DEFAULT_BLOCKS)


def read_split(value: str | None, kb_base: int) -> Sides[Blocks | None]:
    """Return the sizes of each direction with their percentages, from ``bssplit``. None means that the sizes of ``bs``
    apply to the direction.
    """
    return _map_sides(value, lambda text: _parse_split(text, kb_base), None)


def read_zones(value: str | None) -> tuple[Zone, ...]:
    """Return the zones of a text such as ``zoned:50/5:30/15:20/``, in which a missing number means the rest. For
    ``random``, the result is empty.
    """
    kind, _, zones = (value or "").partition(":")
    if value == "random":
        return ()
    if kind != "zoned":
        raise Unclear("tkperf spreads addresses evenly, or by random_distribution=zoned")
    rows = [entry.partition("/")[::2] for entry in zones.split(":")]
    accesses = _percentages([access for access, _ in rows])
    ranges = _percentages([share for _, share in rows])
    return tuple(
        Zone(access_percent=access, range_percent=share) for access, share in zip(accesses, ranges, strict=True)
    )


def _map_sides(value: str | None, read: Callable[[str], T], default: T) -> Sides[T]:
    """Return the values for reads, writes and trims from a text such as ``read,write,trim``. If values are missing at
    the end, the last given value applies to the remaining directions.

    If the text of a direction is empty, for example after a comma at the end, the direction has the default.
    """
    texts = [part.strip() for part in (value or "").split(",")]
    if len(texts) > 3:
        raise Unclear("it is one value, or those of reads, writes and trims")
    values = [read(text) if text else default for text in texts]
    return values[0], values[min(1, len(values) - 1)], values[-1]


def _size_bytes(text: str, kb_base: int) -> int:
    """Return the number of bytes of a size such as ``4k``, ``4KiB`` or ``4096``."""
    if found := re.fullmatch(r"([0-9]+[a-z]*)[-:/][0-9]+[a-z]*", text, re.IGNORECASE):
        raise Unclear(f"fio takes {text} as {found[1]}: write that, or a share for each size")
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
    """Return the block sizes with the shares that fio uses to draw them.

    fio sorts the sizes by their percentages, adds the percentages up, and uses the last size for the remainder up to
    100 %. Sizes without a percentage, or with 0, share the rest equally (``bssplit_ddir`` and ``get_next_buflen``).
    """
    rows = [entry.partition("/")[::2] for entry in text.split(":") if entry.strip()]
    sizes = [_size_bytes(size.strip(), kb_base) for size, _ in rows]
    given = [read_count(share.strip(), 0, 100) if share.strip() else 0 for _, share in rows]
    blank, left = given.count(0), 100 - sum(given)
    if blank and left < 0:
        raise Unclear("its percentages are more than 100 without the sizes that have none")
    shares = [share or left // blank for share in given]
    drawn: dict[int, int] = {}
    room = 100
    by_share = sorted(zip(sizes, shares, strict=True), key=lambda row: row[1])
    for number, (size, share) in enumerate(by_share, start=1):
        taken = room if number == len(by_share) and share else min(share, room)
        drawn[size] = drawn.get(size, 0) + taken
        room -= taken
    return tuple(BlockShare(size, drawn[size]) for size in dict.fromkeys(sizes) if drawn[size])


def _percentages(texts: Sequence[str]) -> list[int]:
    """Return whole percentages whose sum is 100. Missing percentages share the rest equally."""
    given = [read_count(text.strip(), 0, 100) if text.strip() else None for text in texts]
    left, blank = 100 - sum(number or 0 for number in given), given.count(None)
    if left < 0 or (left and not blank) or (blank and left % blank):
        raise Unclear("its percentages do not add up to 100")
    return [left // blank if number is None else number for number in given]
