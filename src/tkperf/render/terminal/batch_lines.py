"""Progress of a batch in the terminal: a line for each drive; more drives than lines are shown page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from math import ceil

from rich.cells import cell_len
from rich.text import Text

from tkperf.model.batch_state import DriveStage
from tkperf.model.units import format_count
from tkperf.page.batch_progress import BatchProgressView
from tkperf.page.page import TableView
from tkperf.page.verdict_texts import NoteLevel
from tkperf.render.terminal.console import LEVEL_STYLES
from tkperf.render.terminal.histories import ASCII, BlockLetters, blocks_for
from tkperf.render.terminal.page_text import choose_columns
from tkperf.render.terminal.progress_lines import format_end

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
    table = choose_columns(view.table, width, view.widths)
    first, *rows = _rows(table)
    lines = [*head, Text(first, style="dim")]
    lines += [Text(rows[number], style=_style(view, number)) for number in shown]
    if words:
        lines.append(Text(words, style="dim"))
    elif remarks:
        lines.append(Text())
    lines += [
        Text(" ".join(filter(None, (note.text, note.command))), style=LEVEL_STYLES[note.level]) for note in remarks
    ]
    if footer:
        lines.append(Text(footer, style="dim"))
    for line in lines:
        line.plain = blocks.spell(line.plain)
        line.truncate(width, overflow="crop" if blocks is ASCII else "ellipsis")
    return lines[: max(1, height)]


def _head(view: BatchProgressView, width: int, now: datetime, blocks: BlockLetters) -> Iterator[Text]:
    """Yield the name and the counts, then the remaining time and what all drives have in common."""
    title = Text(f"{blocks.line * 2} ", style="dim")
    title.append(view.name, style="bold not dim").append(" ")
    title.append(blocks.line * max(0, width - title.cell_len), style="dim")
    yield title
    yield Text(view.verdict.text, style=f"bold {LEVEL_STYLES[view.verdict.level]}")
    rest = [view.remaining] if view.remaining else []
    if view.ends_s is not None and view.remaining:
        rest.append(f"ends {format_end(now, *view.ends_s)}")
    rest += [view.alike] if view.alike else []
    if rest:
        yield Text(", ".join(rest))


def _choose_rows(view: BatchProgressView, room: int, turn: int) -> tuple[list[int], str]:
    """Return the rows of the page shown now and, if there are several, the words that say which.

    Drives in trouble are on each page, but take no more than half of it; of more of them the rest is paged like all
    others.
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
    rest = Counter(view.stages[number] for number in range(count) if number not in shown)
    counts = ", ".join(f"{many} {state}" for state, many in rest.items())
    return (shown, f"page {page + 1} of {pages}; {format_count(sum(rest.values()), 'more drive')}: {counts}")


def _style(view: BatchProgressView, number: int) -> str:
    level = view.levels[number]
    quiet = view.stages[number] in (DriveStage.WAITING, DriveStage.DONE)
    return "dim" if quiet and level is NoteLevel.INFORMATION else LEVEL_STYLES[level]


def _rows(table: TableView) -> list[str]:
    """Return the heads and each row as a line."""
    drawn: list[list[str]] = []
    columns = zip(table.columns, *table.rows, strict=True)
    for right, cells in zip(table.numeric, columns, strict=True):
        width = max(map(cell_len, cells))
        blanks = [" " * (width - cell_len(cell)) for cell in cells]
        drawn.append([(blank + cell if right else cell + blank) for cell, blank in zip(cells, blanks, strict=True)])
    return ["  ".join(row).rstrip() for row in zip(*drawn, strict=True)]
