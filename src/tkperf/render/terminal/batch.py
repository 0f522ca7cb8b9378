"""Progress of a batch in the terminal: a line for each drive; more drives than lines are shown page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import ceil

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tkperf.model.units import format_count
from tkperf.page.batch_progress import BatchProgressView
from tkperf.page.status import StatusColumn
from tkperf.page.verdict import NoteLevel
from tkperf.render.terminal.blocks import ASCII, BlockLetters, blocks_for
from tkperf.render.terminal.console import LEVEL_STYLES
from tkperf.render.terminal.progress import format_end
from tkperf.render.terminal.status import GAP, choose_columns, measure_columns

TURN_EVERY_S = 5.0
"""Time that a page is shown."""
# Name and counts, head of the table, a few drives.
_FEWEST_LINES = 6


def render_batch_lines(
    view: BatchProgressView,
    *,
    width: int,
    height: int,
    now: datetime,
    passed_s: float = 0.0,
    encoding: str | None = "utf-8",
    footer: str = "",
) -> list[Text]:
    """Return the view: at most ``height`` lines of at most ``width`` columns.

    Args:
        now: time by the host's clock, for the time of the end.
        passed_s: time since the view was opened, which turns the pages.
    """
    blocks = blocks_for(encoding)
    head = list(_head(view, width, now, blocks))
    count = len(view.levels)
    room = max(_FEWEST_LINES, height) - len(head) - 1 - bool(footer)
    pages = count > room
    turn = int(passed_s / TURN_EVERY_S)
    remarks = list(view.remarks[: max(0, room - count - 1)])
    if pages and view.remarks:  # one after the other, below the page
        remarks = [view.remarks[turn % len(view.remarks)]]
    shown, words = _choose_rows(view, room - 1 - len(remarks) if pages else count, turn)
    columns = choose_columns(view.columns, width)
    lines = [*head, _row([column.title for column in columns], columns, "dim")]
    for number in shown:
        cells = [column.cells[number] for column in columns]
        lines.append(_row(cells, columns, _style(view, number)))
    if words:
        lines.append(Text(words, style="dim"))
    elif remarks:
        lines.append(Text())
    lines += [Text(text, style=LEVEL_STYLES[level]) for text, level in remarks]
    if footer:
        lines.append(Text(footer, style="dim"))
    for line in lines:
        line.plain = blocks.spell(line.plain)
        line.truncate(width, overflow="crop" if blocks is ASCII else "ellipsis")
    return lines[: max(1, height)]


def print_batch(view: BatchProgressView, console: Console, now: datetime) -> None:
    """Print the same once, whole: on a terminal the columns that fit, otherwise all."""
    blocks = blocks_for(console.encoding)
    columns = view.columns
    if console.is_terminal:
        columns = choose_columns(columns, console.width)
    console.width = max(console.width, measure_columns(columns))
    lines = [
        *_head(view, console.width, now, blocks),
        _row([one.title for one in columns], columns, "dim"),
    ]
    lines += [
        _row([column.cells[number] for column in columns], columns, _style(view, number))
        for number in range(len(view.levels))
    ]
    for line in lines:
        line.plain = blocks.spell(line.plain)
        console.print(line, highlight=False, no_wrap=True, overflow="ignore", crop=False)
    if view.remarks:
        console.print()
    for text, level in view.remarks:
        console.print(
            Text(text, style=LEVEL_STYLES[level]),
            highlight=False,
            soft_wrap=not console.is_terminal,
        )


def _head(
    view: BatchProgressView, width: int, now: datetime, blocks: BlockLetters
) -> Iterator[Text]:
    """Yield the name and the counts, then the remaining time and what all drives have in common."""
    title = Text(f"{blocks.line * 2} ", style="dim")
    title.append(view.name, style="bold not dim").append(" ")
    title.append(blocks.line * max(0, width - title.cell_len), style="dim")
    yield title
    yield Text(view.verdict.text, style=f"bold {LEVEL_STYLES[view.verdict.level]}")
    rest = [view.remaining] if view.remaining else []
    if view.ends_s is not None and view.remaining:
        rest.append(f"ends {format_end(now, *view.ends_s)}")
    rest += [f"all {view.alike}"] if view.alike else []
    if rest:
        yield Text(", ".join(rest))


def _choose_rows(view: BatchProgressView, room: int, turn: int) -> tuple[list[int], str]:
    """Return the rows of the page shown now and, if there are several, the words that say which.

    Drives in trouble are on each page, but take no more than half of it; of more of them the rest is paged like all others.
    """
    count = len(view.levels)
    if count <= room:
        return list(range(count)), ""
    pinned = min(view.troubled, room // 2)
    at_once = max(1, room - pinned)
    pages = ceil((count - pinned) / at_once)
    page = turn % pages
    first = pinned + page * at_once
    shown = [*range(pinned), *range(first, min(count, first + at_once))]
    (states,) = (column.cells for column in view.columns if column.title == "state")
    rest = Counter(states[number] for number in range(count) if number not in set(shown))
    counts = ", ".join(f"{many} {state}" for state, many in rest.items())
    return (
        shown,
        f"page {page + 1} of {pages}; {format_count(sum(rest.values()), 'more drive')}: {counts}",
    )


def _style(view: BatchProgressView, number: int) -> str:
    (states,) = (column.cells for column in view.columns if column.title == "state")
    if view.levels[number] is NoteLevel.INFORMATION and states[number] in ("waiting", "done"):
        return "dim"
    return LEVEL_STYLES[view.levels[number]]


def _row(cells: Sequence[str], columns: Sequence[StatusColumn], style: str) -> Text:
    parts = []
    for cell, column in zip(cells, columns, strict=True):
        blanks = " " * (measure_columns((column,)) - cell_len(cell))
        parts.append(blanks + cell if column.numeric else cell + blanks)
    return Text((" " * GAP).join(parts).rstrip(), style=style)
