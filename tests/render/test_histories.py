"""Histories of cells in the terminal, shortened to the available space."""

from __future__ import annotations

import pytest

from tests.builders import work
from tkperf.model.workload import Workload
from tkperf.render.terminal.histories import draw_histories, format_short

SIZES = (1 << 20, 1 << 17, 1 << 16, 1 << 15, 1 << 14, 1 << 13, 1 << 12, 512)
MIXES = (100, 95, 65, 50, 35, 5, 0)


def matrix(rounds: int = 3) -> dict[Workload, list[float | None]]:
    """Return the cells of the IOPS test, with the value of each round."""
    return {work(mix, size): [float(number + 1) * 1000 for number in range(rounds)] for mix in MIXES for size in SIZES}


def drawn(width: int, most_lines: int | None = None, current: Workload | None = None) -> list[str]:
    lines = draw_histories("IOPS", matrix(), width, most_lines=most_lines, current=current)
    return [line.plain for line in lines]


def test_all_cells_fit_80_columns_and_ten_lines() -> None:
    """The bars of all cells fit into 80 columns and ten lines. The tables contain the numbers."""
    lines = drawn(79, 10)
    assert lines[0] == "IOPS; Block size (KiB) down, R/W % across"
    assert lines[1].split() == ["100/0", "95/5", "65/35", "50/50", "35/65", "5/95", "0/100"]
    assert [line.split()[0] for line in lines[2:]] == ["0.5", "4", "8", "16", "32", "64", "128", "1024"]
    assert all(line.split()[1:] == ["▃▆█"] * 7 for line in lines[2:])
    assert max(map(len, lines)) <= 79


def test_a_wide_terminal_has_the_last_values_too() -> None:
    lines = drawn(199)
    assert lines[2].split() == ["0.5", *["▃▆█", "3.0k"] * 7]


def test_too_many_rows_are_those_around_the_one_under_way() -> None:
    lines = drawn(79, 5, current=work(0, 1 << 16))
    assert [line.split()[0] for line in lines[2:]] == ["32", "64", "128"]
    assert drawn(79, 2) == []


def test_columns_that_do_not_fit_are_counted() -> None:
    lines = drawn(30)
    assert lines[1].split()[-1] == "+5"
    assert max(map(len, lines[1:])) <= 30


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0.0"),
        (14.27, "14.3"),
        (99.94, "99.9"),
        (99.96, "100"),
        (350.4, "350"),
        (999.4, "999"),
        (999.6, "1.0k"),
        (88_800, "88.8k"),
        (99_960, "100k"),
        (999_600, "1.0M"),
        (1_234_000, "1.2M"),
        (2.5e9, "2.5G"),
    ],
)
def test_numbers_keep_within_five_characters(value: float | None, text: str) -> None:
    assert format_short(value) == text
