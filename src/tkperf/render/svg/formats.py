"""Numbers and times as text, as d3-format and d3-time-format write them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import cache

from msgspec import Struct

from tkperf.render.svg.known import NotDrawnError

MINUS = "\N{MINUS SIGN}"
_PREFIXES = ("y", "z", "a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E", "Z", "Y")
_MOST_DIGITS = 12
# From here on JavaScript writes no number in full.
_LARGE = 1e21
_FORM = re.compile(r"(?P<comma>,)?(?:\.(?P<digits>\d+))?(?P<trim>~)?(?P<kind>[dfgrs])?\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Form(Struct, frozen=True, kw_only=True):
    """A d3 format: thousands apart, digits, without zeros at the end, and the kind of notation."""

    comma: bool
    digits: int | None
    trim: bool
    kind: str

    def write(self, value: float) -> str:
        digits = 6 if self.digits is None else self.digits
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else (MINUS if value < 0 else "") + "Infinity"
        if self.kind in "grs":
            digits = max(1, digits)
        text, after = _WRITERS[self.kind](abs(value), digits)
        if self.trim:
            text = _trim(text)
        if self.comma:
            whole, dot, rest = text.partition(".")
            text = f"{int(whole):,}{dot}{rest}" if whole.isdigit() else text
        negative = value < 0 and any(each in "123456789" for each in text)
        return (MINUS if negative else "") + text + after


@cache
def parse_form(text: str) -> Form:
    found = _FORM.match(text)
    if found is None or not (found["kind"] or text == ","):
        raise NotDrawnError(f"format {text!r}")
    digits = None if found["digits"] is None else int(found["digits"])
    if not found["kind"]:
        return Form(comma=True, digits=digits or _MOST_DIGITS, trim=True, kind="g")
    return Form(
        comma=bool(found["comma"]), digits=digits, trim=bool(found["trim"]), kind=found["kind"]
    )


def format_number(value: float, form: str) -> str:
    """A number in a d3 format."""
    return parse_form(form).write(value)


def format_loosely(value: float, form: str = ",") -> str:
    """As on logarithmic axes: to twelve digits where the format has none, without zeros at the end."""
    parsed = parse_form(form)
    if parsed.digits is None:
        parsed = Form(comma=parsed.comma, digits=_MOST_DIGITS, trim=True, kind=parsed.kind)
    return parsed.write(value)


def form_of_step(step: float, form: str | None) -> Form:
    """The format of ticks so far apart, with as many decimals as tell them apart."""
    parsed = parse_form(",f" if form is None else form)
    if parsed.digits is not None or parsed.kind == "d":
        return parsed
    if parsed.kind != "f":
        raise NotDrawnError(f"format {form!r} of a linear axis")
    digits = max(0, -math.floor(math.log10(abs(step)) + 1e-12)) if step else 0
    return Form(comma=parsed.comma, digits=digits, trim=parsed.trim, kind="f")


def number_text(value: float) -> str:
    """As JavaScript turns a number into text."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("-" if value < 0 else "") + "Infinity"
    if value == int(value) and abs(value) < _LARGE:
        return str(int(value))
    text = repr(float(value))
    mantissa, exponent, power = text.partition("e")
    if exponent and -7 <= int(power) < 0:
        return f"{value:.{len(mantissa.replace('.', '').lstrip('-')) - 1 - int(power)}f}"
    return f"{mantissa}e{int(power):+d}" if exponent else text


def _trim(text: str) -> str:
    number, exponent, power = text.partition("e")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return number + exponent + power


def _split(value: float, digits: int) -> tuple[str, int]:
    """Its first digits, and the power of ten of the first of them."""
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    return mantissa.replace(".", ""), int(power)


def _place(figures: str, whole: int) -> str:
    """The figures with so many of them before the point."""
    if whole >= len(figures):
        return figures + "0" * (whole - len(figures))
    return f"{figures[:whole]}.{figures[whole:]}" if whole > 0 else f"0.{'0' * -whole}{figures}"


def _fixed(value: float, digits: int) -> tuple[str, str]:
    return f"{value:.{digits}f}" if value < _LARGE else number_text(value), ""


def _whole(value: float, _: int) -> tuple[str, str]:
    return str(math.floor(value + 0.5)), ""


def _rounded(value: float, digits: int) -> tuple[str, str]:
    figures, power = _split(value, digits)
    return _place(figures, power + 1), ""


def _general(value: float, digits: int) -> tuple[str, str]:
    figures, power = _split(value, digits)
    if -7 < power < digits:
        return _place(figures, power + 1), ""
    return f"{_place(figures, 1)}e{power:+d}", ""


def _with_prefix(value: float, digits: int) -> tuple[str, str]:
    figures, power = _split(value, digits)
    step = max(-8, min(8, power // 3)) if value else 0
    return _place(figures, power - 3 * step + 1), _PREFIXES[step + 8]


_WRITERS = {"f": _fixed, "d": _whole, "r": _rounded, "g": _general, "s": _with_prefix}


def to_datetime(ms: float) -> datetime:
    """Of milliseconds since 1970.

    Raises:
        NotDrawnError: in years that have no such date.
    """
    try:
        return _EPOCH + timedelta(milliseconds=math.floor(ms))
    except (OverflowError, ValueError) as error:
        raise NotDrawnError(f"time {ms!r}") from error


def to_ms(at: datetime) -> float:
    return (at - _EPOCH) / timedelta(milliseconds=1)


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def format_utc(ms: float, form: str) -> str:
    """A time, in milliseconds since 1970, by d3's directives."""
    at = to_datetime(ms)
    parts = {
        "%": "%",
        "L": f"{at.microsecond // 1000:03}",
        "S": f"{at.second:02}",
        "M": f"{at.minute:02}",
        "H": f"{at.hour:02}",
        "I": f"{(at.hour - 1) % 12 + 1:02}",
        "p": "AM" if at.hour < 12 else "PM",
        "a": _DAYS[at.weekday()],
        "d": f"{at.day:02}",
        "b": _MONTHS[at.month - 1][:3],
        "B": _MONTHS[at.month - 1],
        "Y": str(at.year),
    }

    def write(found: re.Match[str]) -> str:
        if found[1] not in parts:
            raise NotDrawnError(f"format {form!r}")
        return parts[found[1]]

    return re.sub("%(.)", write, form)


def format_tick_time(ms: float) -> str:
    """A tick of a time axis: by the coarsest unit that it is a whole number of."""
    at = to_datetime(ms)
    if at.microsecond:
        return format_utc(ms, ".%L")
    if at.second:
        return format_utc(ms, ":%S")
    if at.minute:
        return format_utc(ms, "%I:%M")
    if at.hour:
        return format_utc(ms, "%I %p")
    if at.day != 1:
        return format_utc(ms, "%b %d" if at.weekday() == 6 else "%a %d")
    return format_utc(ms, "%B" if at.month != 1 else "%Y")
