"""Tables and headline figures fit a terminal of any width: no word and no figure is broken."""

from __future__ import annotations

import io
from operator import itemgetter

import pytest
from rich.console import Console

import tkperf
from tkperf.page.page import Column, TableView, build_table
from tkperf.page.plan import build_plan_page
from tkperf.pipeline.estimate_run import ASSUMED, estimate_run
from tkperf.procedures import SSD_TESTS
from tkperf.render.terminal.page_text import print_table

WIDTHS = (60, 80, 120)


def print_at(table: TableView, width: int) -> str:
    file = io.StringIO()
    print_table(table, Console(file=file, width=width))
    return file.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("test", sorted(name for name, test in SSD_TESTS.items() if not test.finds_demand))
def test_the_table_of_a_plan_breaks_no_word(test: str, width: int) -> None:
    """In a terminal of any usual width, the plan of each test has its phases in its first column, with every word
    whole.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", tests=(test,), profile="quick")
    (table,) = (
        block for block in build_plan_page(estimate_run(plan, ASSUMED)).overview if isinstance(block, TableView)
    )
    printed = print_at(table, width)
    assert max(map(len, printed.splitlines())) <= width
    words = printed.split()
    assert {word for row in table.rows for cell in row for word in cell.split() if cell != "-"} <= {
        word.strip(";") for word in words
    }
    assert all(printed.count(row[0].split()[0]) for row in table.rows)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_of_many_columns_is_listed_row_by_row(width: int) -> None:
    """If neither the table nor the table with rows and columns swapped fits, each row is a label with its cells below.
    Each cell follows the head of its column. A cell without a value is omitted.
    """
    heads = [f"measure{number} (µs)" for number in range(16)]
    rows = [(f"reader and a writer {row}", *(f"{row},{column:03},567" for column in range(16))) for row in range(12)]
    rows.append(("trimmer", *("-" for _ in heads)))
    table = build_table(
        "Streams", rows, [Column("Load", itemgetter(0)), *(Column(h, itemgetter(n + 1)) for n, h in enumerate(heads))]
    )
    printed = print_at(table, width)
    assert max(map(len, printed.splitlines())) <= width
    said = " ".join(printed.split())
    for label, *cells in rows[:3]:
        listed = "; ".join(f"{head} {cell}" for head, cell in zip(heads, cells, strict=True))
        assert f"{label} {listed}" in said
    assert said.endswith("trimmer")
