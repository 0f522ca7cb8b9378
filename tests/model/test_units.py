"""Sizes and numbers are parsed and printed correctly, and no text causes a traceback."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.model.errors import UsageError
from tkperf.model.units import (
    format_count,
    format_durations,
    format_exact,
    format_latency,
    format_number,
    format_quantity,
    format_window,
    parse_size_bytes,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("4096", 4096), ("4k", 4096), ("0.5KiB", 512), ("960GB", 960_000_000_000), ("9007199254740993", 9007199254740993)],
)
def test_sizes_are_exact(text: str, size_bytes: int) -> None:
    assert parse_size_bytes(text) == size_bytes


def test_durations_that_read_alike_are_said_once() -> None:
    """If two durations are printed with the same text, the text is printed only once, and not as ``3 s to 3 s``."""
    assert format_durations(3.1, 3.4) == "3 s"
    assert format_durations(3.1, 3.6) == "3 s to 4 s"


@given(st.one_of(st.text(), st.from_regex(r"\d+(\.\d+)?[kmgtKMGTiB]*", fullmatch=True)))
def test_any_text_is_a_size_or_a_clear_error(text: str) -> None:
    """Any text is either a size below 2^63 bytes or causes a clear error."""
    with suppress(UsageError):
        assert 0 < parse_size_bytes(text) < 1 << 63


def test_absurd_sizes_are_refused() -> None:
    with pytest.raises(UsageError, match="no drive is that large"):
        parse_size_bytes("9" * 400)


@pytest.mark.parametrize("text", ["9" * 1_000_002, "0." + "0" * 1_000_002 + "1", "x" * 5000])
def test_long_texts_are_refused_in_short_words(text: str) -> None:
    """The error about a long text has fewer than 200 characters, even if the text contains a number that Decimal cannot
    compute.
    """
    with pytest.raises(UsageError, match="is not a size") as raised:
        parse_size_bytes(text)
    assert len(str(raised.value)) < 200


def test_one_is_singular() -> None:
    """A count of one is followed by a singular noun, and a window is written with the numbers of its rounds."""
    assert [format_count(count, "slice") for count in (0, 1, 1440)] == ["0 slices", "1 slice", "1,440 slices"]
    assert [format_window(window) for window in ((3,), (3, 4, 5))] == ["round 3", "rounds 3–5"]


def test_what_was_not_measured_is_a_dash_in_every_view() -> None:
    """A value that was not measured (None or NaN) is shown as a dash without a unit in every view, never as 0."""
    for nothing in (None, math.nan):
        assert format_number(nothing, 1) == "-"
        assert format_quantity(nothing, "µs") == "-"
    assert format_quantity(0.0, "µs", 1) == "0.0 µs"
    assert format_quantity(0.0, "µs") == "0 µs"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (88_821.6, "88,800"),
        (27.349, "27.3"),
        (1_036.2, "1,036"),
        (1.2041, "1.204"),
        (999.96, "1,000"),
        (19.996, "20.00"),
        (2.0, "2.00"),
        (0.00123, "0.001230"),
        (-5.126, "-5.13"),
        (-0.0, "0"),
        (1_234_567.0, "1,235,000"),
        (math.inf, "inf"),
    ],
)
def test_a_measured_figure_has_three_digits_or_four(value: float, text: str) -> None:
    """A measured figure is shown with three digits, or with four digits if the first digit is 1."""
    assert format_number(value) == text


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_no_figure_is_rounded_by_more_than_a_quarter_of_a_percent(value: float) -> None:
    assert float(format_number(value).replace(",", "")) == pytest.approx(value, rel=0.0025001)


def test_a_latency_of_a_sentence_has_the_unit_that_suits_it() -> None:
    """A latency in a sentence is shown in a suitable unit. The exact value is shown with all measured digits."""
    told = [format_latency(value) for value in (37.21, 999.0, 1204.3, 2_100_000.0)]
    assert told == ["37.2 µs", "999 µs", "1.204 ms", "2.10 s"]
    assert [format_exact(value) for value in (88_821.6, 12.0, 0.12345678, 1e-9)] == [
        "88,821.6",
        "12",
        "0.123457",
        "1e-09",
    ]
