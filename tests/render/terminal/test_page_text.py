"""Tables and headline figures fit a terminal of any width. No word and no figure is broken."""

from __future__ import annotations

import io
from operator import itemgetter

import pytest
from rich.console import Console

import tkperf
from tkperf.page.page import Column, HeadlineView, TableView, build_table
from tkperf.page.plan import build_plan_page
from tkperf.pipeline.estimate_run import ASSUMED, estimate_run
from tkperf.procedures import SSD_TESTS
from tkperf.render.terminal.one_screen import draw_headlines
from tkperf.render.terminal.page_text import print_table

WIDTHS = (60, 80, 120)


def print_at(table: TableView, width: int) -> str:
    file = io.StringIO()
    print_table(table, Console(file=file, width=width))
    return file.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("test", sorted(name for name, test in SSD_TESTS.items() if not test.finds_demand))
def test_the_table_of_a_plan_breaks_no_word(test: str, width: int) -> None:
    """In a terminal of any usual width, the first column of each test's plan contains the phases, and every word is
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
    """If a table does not fit, either as it is or with rows and columns swapped, each row is printed as a label with
    its cells below. Each cell follows the heading of its column. A cell without a value is omitted.
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


REASON = "disturbed: others on the CPUs that fio waited for"


def neighbour(name: str, remark: str = REASON, test: str = "Reads during other loads") -> HeadlineView:
    return HeadlineView(
        label=f"Read p99 while the {name} runs, against alone",
        text="at least 35.4 ×",
        exact="35.4 ×",
        sure="± 3.9 %",
        verdict=remark,
        alarm=bool(remark),
        test=test,
        section="neighbours",
    )


def print_figures(figures: tuple[HeadlineView, ...], width: int) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width)
    console.print(draw_headlines(figures, console))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_reason_that_several_figures_share_is_printed_once() -> None:
    """If several headline figures have the same long reason, this reason is printed once, below the figures, and each
    figure refers to it. In a terminal of 80 columns, this leaves enough space for labels of two lines.
    """
    figures = (*map(neighbour, ("large-block reader", "writer without flushes")), neighbour("trimmer", ""))
    for width in (80, 200):
        lines = print_figures(figures, width)
        said = " ".join(lines)
        assert max(map(len, lines)) <= width
        assert said.count(REASON) == 1
        assert said.count("note 1") == 3
        assert lines[-1] == f"note 1: {REASON}"
        assert len(lines) <= 2 * len(figures) + 1


def test_a_reason_of_one_figure_is_in_its_line_if_it_fits() -> None:
    """The reason for a single figure is in the line of the figure. If the terminal is too narrow, the reason is below
    the figures.
    """
    figures = (neighbour("trimmer"), neighbour("large-block reader", ""))
    assert "note" not in " ".join(print_figures(figures, 200))
    narrow = print_figures(figures, 80)
    assert narrow[-1] == f"note 1: {REASON}"
    assert len(narrow) <= 5


def test_figures_of_different_tests_keep_the_names_of_the_tests() -> None:
    """If the headline figures belong to different tests, each figure contains the name of its test if the labels have
    enough space. In a narrow terminal, figures of the same test omit the name.
    """
    one, other = neighbour("trimmer", "", "Latency"), neighbour("trimmer", "", "IOPS")
    assert "Latency" in " ".join(print_figures((one, other), 80))
    assert "Latency" not in " ".join(print_figures((one, one), 60))
    assert "Latency" in " ".join(print_figures((one, one), 200))
