"""Charts that are drawn with text characters."""

from __future__ import annotations

import pytest

from tkperf.render.terminal.histories import ASCII, UNICODE, blocks_for, columns, share_bar, sparkline, squeeze


def test_bars_reach_from_nothing_to_the_greatest() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7, 8]) == "▁▁▂▃▄▅▆▇█"
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7, 8], ASCII) == "..:-=+*%#"


def test_what_was_not_measured_is_a_gap_not_a_low_bar() -> None:
    """A value that was not measured is shown as a gap and not as a low bar. A low bar would look like a drive without
    I/O.
    """
    assert sparkline([2.0, None, 2.0]) == "█ █"
    assert sparkline([0.0, 0.0]) == "▁▁"
    assert sparkline([None]) == " "
    assert sparkline([]) == ""


@pytest.mark.parametrize(
    ("encoding", "blocks"),
    [
        ("utf-8", UNICODE),
        ("UTF-8", UNICODE),
        ("ascii", ASCII),
        ("latin-1", ASCII),
        (None, ASCII),
        ("no such encoding", ASCII),
    ],
)
def test_only_what_the_encoding_has_is_drawn(encoding: str | None, blocks: object) -> None:
    assert blocks_for(encoding) is blocks


def test_more_values_than_fit_are_put_together_by_their_mean() -> None:
    """If the chart is too narrow for all values, each bar shows the mean of several values. Each value contributes to
    exactly one bar.
    """
    assert squeeze([1, 3, 5, 7], 2) == [2, 6]
    assert squeeze([1, None, None, None], 2) == [1, None]
    assert squeeze([1, 2], 5) == [1, 2]
    ones = squeeze([1.0] * 1000, 7)
    assert ones == [1.0] * 7


def test_a_share_is_a_part_of_the_bar() -> None:
    assert share_bar(0.25, 8) == "██░░░░░░"
    assert share_bar(0.25, 8, perhaps=0.5) == "██▒▒░░░░"
    assert share_bar(1.5, 4) == "████"
    assert share_bar(0.0, 4, ASCII) == "...."


def test_upright_bars_keep_the_smallest_visible() -> None:
    """Vertical bars keep even the smallest value visible, because readers use a histogram to find one slow I/O in a
    million.
    """
    assert list(columns([1, 1_000_000, 0, 500_000], 2)) == [" █", "▁█ █"]
