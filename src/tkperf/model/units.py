"""Sizes, times and their text forms. Only this module converts text into such values and back.

Block sizes and offsets are binary (KiB = 1024), capacities and rates are decimal (MB = 10^6), as in the PTS (PTS User
Guide, section 2, note on units).
"""

import re
import textwrap
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from math import floor, isfinite, isnan, log10

from tkperf.model.errors import UsageError

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
MB = 10**6
GB = 10**9

_FACTORS = {
    "": 1,
    "b": 1,
    "k": KIB,
    "kib": KIB,
    "m": MIB,
    "mib": MIB,
    "g": GIB,
    "gib": GIB,
    "t": 1024 * GIB,
    "tib": 1024 * GIB,
    "kb": 1000,
    "mb": MB,
    "gb": GB,
    "tb": 10**12,
}


_TOO_LARGE = 1 << 63

NOT_MEASURED = "-"
NOT_FOUND = "not found"
"""The text for a value that was not found among the measured values."""


def parse_size_bytes(text: str) -> int:
    """Return the bytes of a size such as ``512MiB``, ``1g``, ``960GB`` or ``4096``.

    A single letter is a binary unit, as in fio. ``kB MB GB TB`` are decimal units.

    Raises:
        UsageError: the text is not a size, or the size is not positive.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if match is None or match[2].lower() not in _FACTORS:
        raise UsageError(f"'{text[:40]}' is not a size. Write, for example, 512MiB, 16GiB, 960GB or a number of bytes")
    amount = Decimal(match[1])
    # Amounts that are too large must not be multiplied: a product with more digits than the precision of Decimal raises
    # another exception.
    size_bytes = _TOO_LARGE if amount >= _TOO_LARGE else int(amount * _FACTORS[match[2].lower()])
    if size_bytes <= 0:
        raise UsageError(f"'{text[:40]}' is not a size, because a size must be more than 0 bytes")
    if size_bytes >= _TOO_LARGE:
        raise UsageError(f"'{text[:40]}' is not a size of a drive, because no drive is that large")
    return size_bytes


def format_block_size(block_size_bytes: int) -> str:
    """Return a block size in the form that users of fio and TKperf write: ``1024k``, ``4k``, ``512``."""
    if block_size_bytes >= KIB and block_size_bytes % KIB == 0:
        return f"{block_size_bytes // KIB}k"
    return str(block_size_bytes)


def format_block_size_kib(block_size_bytes: int) -> str:
    """Return a block size in KiB without trailing zeros, for table heads: ``1024``, ``4``, ``0.5``."""
    return f"{block_size_bytes / KIB:g}"


def format_capacity(capacity_bytes: float) -> str:
    """Return a capacity in decimal units: ``960.2 GB``, ``536.9 MB``."""
    for factor, unit in ((10**12, "TB"), (GB, "GB"), (MB, "MB"), (10**3, "kB")):
        if capacity_bytes >= factor:
            return f"{capacity_bytes / factor:.1f} {unit}"
    return f"{capacity_bytes:.0f} B"


def format_duration(duration_s: float) -> str:
    """Return a duration as text for people to read: ``4 h 40 min``, ``2 min 05 s``, ``12 s``."""
    whole_s = max(0, round(duration_s))
    hours, minutes, seconds = whole_s // 3600, whole_s % 3600 // 60, whole_s % 60
    if hours:
        return f"{hours} h {minutes:02d} min"
    if minutes:
        return f"{minutes} min {seconds:02d} s"
    return f"{seconds} s"


def format_durations(shortest_s: float, longest_s: float) -> str:
    """Return a range of durations, such as ``2 h 10 min to 3 h 05 min``. If both texts are equal, return a single
    duration.
    """
    shortest, longest = format_duration(shortest_s), format_duration(longest_s)
    return shortest if shortest == longest else f"{shortest} to {longest}"


def format_count(count: int, what: str) -> str:
    """Return a count with a noun: ``1 slice``, ``1,440 slices``. The noun must have a regular plural."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def format_window(numbers: Sequence[int]) -> str:
    """Return consecutive round numbers in words: ``round 1``, ``rounds 4–8``."""
    if len(numbers) == 1:
        return f"round {numbers[0]}"
    return f"rounds {numbers[0]}–{numbers[-1]}"


def spaced(size: str) -> str:
    """Return a size that a user wrote, with a space before the unit: ``100 %`` for ``100%``, ``1 GiB`` for ``1GiB``."""
    return re.sub(r"(?<=\d)(?=[A-Za-z%])", " ", size.strip())


def capital(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


_COPIED = re.compile(r"\s*[a-z ]+: +(tkperf [a-z].*|\S+)$")


def is_copied(line: str) -> bool:
    """Return whether a line consists of a label and a command or path. Such a line must not be broken, because users
    copy the command or path.
    """
    return _COPIED.match(line) is not None


_COMMAND = re.compile(r"'(?:sudo )?tkperf [^']*'")


def wrap_words(text: str, width: int, *, indent: int = 0, hanging: int = 0, break_long_words: bool = True) -> list[str]:
    """Break a text into lines of whole words. A quoted command that fits on a line is not broken, because users copy
    the command.

    Args:
        indent: number of spaces before the first line.
        hanging: number of spaces before the other lines.
        break_long_words: whether a word that is longer than a line continues on the next line.
    """

    def bind(command: re.Match[str]) -> str:
        whole = command[0]
        return whole.replace(" ", "\0") if len(whole) <= width - hanging else whole

    lines = textwrap.wrap(
        _COMMAND.sub(bind, text),
        width,
        break_on_hyphens=False,
        break_long_words=break_long_words,
        initial_indent=" " * indent,
        subsequent_indent=" " * hanging,
    )
    return [line.replace("\0", " ") for line in lines]


CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""The pattern of characters that no output contains: control characters other than tab and line feed, characters that
change the direction of text, and halves of a surrogate pair.

A terminal would execute control characters, and with direction characters a name could look like another name.
"""


def escape_controls(json_text: str) -> str:
    """Return a JSON text in which control characters are escaped (RFC 8259). The values in the JSON text do not
    change.
    """
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text)


def drop_controls(text: str) -> str:
    """Return text from another source without control characters and direction characters. Line ends and no-break
    spaces remain.
    """
    if text.replace("\n", "").isprintable():  # this is true for nearly all texts
        return text
    return "".join(each for each in text if each.isprintable() or each in "\n\u00a0")


@lru_cache(maxsize=1 << 13)  # in a run that takes a day, most percentiles of single minutes are equal
def format_number(value: float | None, digits: int | None = None) -> str:
    """Return a number as text for people to read.

    Args:
        digits: digits after the decimal point, for an exact number such as a count. None means as many digits as a
            measured figure needs (``find_digit_place``).
    """
    if value is None or isnan(value):
        return NOT_MEASURED
    return format_to_place(value, find_digit_place(value) if digits is None else -digits)


def find_digit_place(value: float) -> int:
    """Return the place of the last digit that is shown for a measured value: 2 for hundreds, -1 for tenths.

    Three digits are shown, or four digits if the first digit is 1. Values with equal texts therefore differ by less
    than 1 %, and by 0.1 % on average. See the section "Digits" in docs/reference/reports.md.
    """
    if not value or not isfinite(value):
        return 0
    exponent = floor(log10(abs(value)))
    first_is_1 = abs(value) < 2 * 10.0**exponent
    return exponent - (3 if first_is_1 else 2)


def format_to_place(value: float, place: int) -> str:
    """Return a number that is rounded to a place: ``88,800`` for 88,821.6 and place 2 (hundreds), ``12.30`` for 12.3
    and place -2 (hundredths).
    """
    if not isfinite(value):
        return str(value)
    rounded = round(value, -place) or 0.0  # 0.0 instead of -0.0
    return f"{rounded:,.{max(-place, 0)}f}"


def format_exact(value: float) -> str:
    """Return a number with all significant digits, such as ``88,821.6``."""
    if not isfinite(value):
        return str(value)
    text = f"{value:,.4f}" if abs(value) >= 1 else f"{value:.6g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def format_quantity(value: float | None, unit: str, digits: int | None = None) -> str:
    """Return a number with its unit. If the number was not measured, return only a dash."""
    number = format_number(value, digits)
    return number if number == NOT_MEASURED else f"{number} {unit}".rstrip()


def format_latency(latency_us: float) -> str:
    """Return a latency with the most suitable unit: ``37.2 µs``, ``1.204 ms``, ``2.10 s``."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if latency_us >= factor:
            return f"{format_number(latency_us / factor)} {unit}"
    return f"{format_number(latency_us)} µs"


def find_latency_unit(latencies_us: Iterable[float | None]) -> tuple[str, float]:
    """Return a unit that suits all latencies of a table or chart, and the length of this unit in µs.

    The greatest latency is not less than one unit, and the least latency is not less than a tenth of the unit. For
    example, ``0.276`` and ``72.9`` are both easy to read in ms.
    """
    known = [value for value in latencies_us if value]
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if known and max(known) >= factor and min(known) >= factor / 10:
            return unit, factor
    return "µs", 1.0


def unit_for_people(unit: str) -> str:
    """Return a unit in the form that people read: ``µs`` instead of ``us``, which data files contain. Any other unit
    stays the same.
    """
    return "µs" if unit == "us" else unit


def format_mix(read_percent: int) -> str:
    """Return a read/write mix as the PTS writes it: ``100/0``, ``65/35``."""
    return f"{read_percent}/{100 - read_percent}"


def on_one_line(text: str) -> str:
    """Return a name from another source on one line, without control characters. A single space replaces each sequence
    of white space.
    """
    return " ".join(drop_controls(text).split())


MOST_NAMED_RUNS = 4
"""The largest number of run names that a sentence lists."""


def format_ranges(numbers: Iterable[int]) -> str:
    """Return numbers as a text with ranges, such as ``0-3,8``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(str(end) for end in run) for run in runs)


def list_names(names: Sequence[str]) -> str:
    """Return names as a list: ``A, B``. A long list is shortened: ``A, B, C, D and 12 more``."""
    left = len(names) - MOST_NAMED_RUNS
    if left < 2:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMED_RUNS])} and {left} more"
