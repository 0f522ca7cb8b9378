"""Margins of claims in the terminal. They are shown as a matrix in 80 columns, as lines that mark the position of each
drive, and as bars.
"""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tests.batches import checked_answer, claims_of, measured
from tkperf.page.batch.batch_results_page import build_batch_page
from tkperf.page.strip import Dot, Limit, Strip, build_bar_strip, build_dot_strip
from tkperf.render.terminal.histories import ASCII
from tkperf.render.terminal.margins_text import draw_bar, draw_strip, print_margins, print_tiles


def printed(count: int, width: int, encoding: str = "utf-8") -> list[str]:
    drives = [measured(number, 100.0 + number / 10) for number in range(1, count)]
    claims = claims_of(*((0, 90.0 + limit) for limit in range(8)))
    page = build_batch_page(checked_answer([*drives, measured(count, 93.0)], claims))
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    assert page.decision is not None
    print_margins(page.decision, console)
    print_tiles(page.headlines, console)
    file.flush()
    return raw.getvalue().decode(encoding).splitlines()


@pytest.mark.parametrize("width", [50, 80, 200])
@pytest.mark.parametrize("count", [5, 24])
def test_a_matrix_fits_any_terminal(count: int, width: int) -> None:
    lines = printed(count, width)
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if line.startswith(f"slot {count} misses 4 ✗")]
    # In 80 columns, eight claims fit into one block.
    assert len(rows) == 1 or width < 80


def test_a_missed_claim_has_a_sign_without_colours_and_without_unicode() -> None:
    for encoding, sign in (("utf-8", "✗"), ("ascii", "X")):
        (row,) = (line for line in printed(5, 80, encoding) if line.startswith("slot 5 misses"))
        # The sign marks the result of a drive and each claim that is not met.
        assert row.count(sign) == 5
        assert f"-4.1{sign}" in row


def test_a_strip_keeps_its_order() -> None:
    values = [(float(value), Dot(share=0.0)) for value in (1, 2, 2, 2, 10)]
    strip = build_dot_strip(values, "", cohort=None, limit=Limit(value=5.0, is_least=True, text=""))
    drawn = draw_strip(strip, 40)
    assert drawn.strip()[0] == "·"
    assert drawn.index(":") < drawn.index("¦") < drawn.rindex("·")


def test_a_bar_shows_on_which_side_of_the_limit_it_ends() -> None:
    limit = Limit(value=100.0, is_least=True, text="")
    below, above = (build_bar_strip(value, "", limit=limit, level=None) for value in (50.0, 200.0))
    assert draw_bar(below, 20, ASCII).rstrip()[-1] == "|"
    assert draw_bar(above, 20, ASCII).rstrip()[-1] != "|"
    assert draw_bar(Strip(text=""), 20, ASCII) == ""
