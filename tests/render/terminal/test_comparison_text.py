"""The terminal shows a comparison on one screen. The option ``--full`` shows the whole comparison."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.analysis.test_decision import run_of
from tests.render.terminal.test_matrix_text import WORKLOADS
from tkperf.analysis.comparing.comparison import Arrangement, compare
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.record import RunStatus
from tkperf.model.units import MIB
from tkperf.model.workload import Access
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.matrix import MOST_ON_SCREEN, Sign
from tkperf.page.page import ReportView
from tkperf.page.words.conditions import find_flaws
from tkperf.render.terminal.comparison_text import choose_rows, print_comparison

LOADS = {
    **{WORKLOADS[mix]: 123_456.0 for mix in (0, 65, 100)},
    **{replace(WORKLOADS[mix], access=Access.SEQUENTIAL, block_size_bytes=MIB): 3456.0 for mix in (0, 100)},
    **{replace(WORKLOADS[mix], jobs=1, io_depth=1): 78.9 for mix in (0, 100)},
}


def view_of(count: int) -> ReportView:
    """Return a comparison of runs whose names have a usual length. The last run is not steady."""
    runs = [
        run_of(f"D7-P5520-{n:02}", {load: value * (1 + n / 3) for load, value in LOADS.items()}, steady=n < count - 1)
        for n in range(count)
    ]
    return build_comparison_page(compare(runs, Arrangement.RUNS))


def printed(view: ReportView, *, beside_files: bool = False, width: int = 80) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None, highlight=False)
    print_comparison(view, [("Not steady", "the last")], console, beside_files=beside_files)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("count", [2, 5, 12, 24])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_comparison_is_one_screen(count: int, width: int) -> None:
    """In a terminal of at least 80 columns, 40 lines are enough for the title, the line about each kind of load, the
    matrix, and the reasons why values are doubtful. No line is wider than the terminal.
    """
    view = view_of(count)
    lines = printed(view, width=width)
    assert max(map(len, lines)) <= width
    assert view.decision is not None
    text = "\n".join(lines)
    assert " ".join(text.split()).startswith(view.title)
    if width < 80:
        return
    assert len(lines) <= 40
    assert all(f"{name}:" in text for name, _ in view.decision.lines)
    assert [line for line in lines if line == "Not steady: the last"]
    named = [row.name for row in view.decision.rows if any(line.startswith(f"{row.name} ") for line in lines)]
    # The line with the number of omitted runs takes the place of one run.
    assert len(named) == (count if count <= MOST_ON_SCREEN else MOST_ON_SCREEN - (width == 80))
    left = [line for line in lines if "more runs" in line]
    assert left == ([f"{count - len(named)} more runs, less often best or worst: --full"] if count == 24 else [])


@pytest.mark.parametrize("count", [2, 5, 12, 24])
def test_beside_files_the_terminal_has_the_answer_alone(count: int) -> None:
    """If the comparison is also written to a file, the terminal shows only the title and the lines about kinds of load,
    in at most 20 lines.
    """
    view = view_of(count)
    lines = printed(view, beside_files=True)
    assert len(lines) <= 20
    assert " ".join(" ".join(lines).split()).startswith(view.title)
    assert any(line.startswith("Random reads:") for line in lines)
    assert "--full" in lines[-1]


def test_of_many_runs_the_best_and_the_worst_are_shown_in_their_order() -> None:
    decision = view_of(24).decision
    assert decision is not None
    shown = choose_rows(decision.rows, 6)
    assert list(shown) == sorted(shown, key=decision.rows.index)
    # One run has the greatest rates, another run has the least latencies, and the last run is not steady.
    signs = {cell.sign for row in shown for cell in row.cells}
    assert signs >= {Sign.BEST, Sign.WORST, Sign.UNRANKED}


def test_a_flaw_names_the_runs_that_have_it() -> None:
    """The terminal names the runs that are unsteady, disturbed or unfinished. It does not list runs without such a
    flaw.
    """
    good = run_of("good", {WORKLOADS[100]: 1.0})
    (test,) = good.tests
    (section,) = test.sections
    (cell,) = section.cells
    disturbed = replace(section, cells=(replace(cell, disturbances=(DisturbanceCode.FOREIGN_IO,)),))
    runs = {
        "good": good,
        "restless": run_of("restless", {WORKLOADS[100]: 1.0}, steady=False),
        "shaken": replace(good, tests=(replace(test, sections=(disturbed,)),)),
        "short": replace(good, status=RunStatus.INTERRUPTED),
    }
    assert dict(find_flaws(tuple(runs), tuple(runs.values()))) == {
        "Not measured to the end": "short (interrupted)",
        "Not steady": "restless (IOPS)",
        "Disturbed": "shaken (1 of 1 result)",
    }
