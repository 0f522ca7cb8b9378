"""Draw the progress of a run as lines in a terminal. The module also computes when the run will end according to the
clock of the host.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from rich.cells import cell_len
from rich.text import Text

from tkperf.model.batch_state import DriveStage
from tkperf.model.units import NOT_MEASURED, format_count, format_latency, format_number, on_one_line
from tkperf.page.batch.batch_progress import BatchProgressView
from tkperf.page.page import TableView
from tkperf.page.progress import LiveGrid, LiveSquare, ProgressView, Share, WindowSoFar
from tkperf.page.verdict_texts import NoteLevel
from tkperf.render.terminal.console import LEVEL_STYLES
from tkperf.render.terminal.histories import (
    ASCII,
    BlockLetters,
    Grid,
    blocks_for,
    choose_around,
    columns,
    draw_grid,
    draw_histories,
    format_short,
    share_bar,
    sparkline,
)
from tkperf.render.terminal.page_text import choose_columns

_MOST_LINES_OF_A_REMARK = 3
_LABEL = 8
_WIDEST_BAR = 40
_GAP = 2
# The width of a square in the grid of reads and writes. With this width, a grid of eleven columns fits into a terminal
# with 80 columns.
_SQUARE = 5
_STREAM_COLUMNS = ("stream", "IOPS", "offered", "MB/s", "mean", "p99")
# The smallest widths of the columns in the table of streams. With these widths, the columns do not move from second to
# second.
_STREAM_WIDTHS = (_LABEL, 9, 9, 9, 9, 9)
# The smallest and the greatest number of lines for the chart of every second. If fewer lines are available, a sparkline
# shows every second.
_LEAST_CHART, _TALLEST_CHART = 3, 20


@dataclass(frozen=True, slots=True)
class _Part:
    """A group of lines that belong together. If there is not enough space, the groups with the highest ``rank`` are
    omitted first.
    """

    rank: int
    lines: Sequence[Text]


def render_lines(
    progress: ProgressView, *, width: int, height: int, now: datetime, encoding: str | None = "utf-8", footer: str = ""
) -> list[Text]:
    """Return the view of a run. The view has no more than ``height`` lines, and a line has no more than ``width``
    columns.

    Lines that cells and remarks do not need are used for a chart of every second and for the sections that the run has
    finished.

    Args:
        now: time of the host's clock, from which the time of the end is computed.
    """
    drawing = _Drawing(progress, max(20, width), blocks_for(encoding), now)
    above, below = drawing.above(), drawing.below(footer)
    taken, left = set[int](), max(1, height)
    for part in sorted((*above, *below), key=lambda part: part.rank):
        if len(part.lines) <= left:
            taken.add(id(part))
            left -= len(part.lines)
    # The newest warning always has one line or more. For all other lines, the cells have priority.
    cells = drawing.cells(left - progress.warned)
    remarks = drawing.remarks(left - len(cells))
    free = left - len(cells) - len(remarks)
    sections = drawing.left_sections(max(free // 2, free + 1 - _TALLEST_CHART))
    *facts, seconds = above
    chart = drawing.chart(free - len(sections)) or seconds.lines
    lines = [
        *(line for part in facts if id(part) in taken for line in part.lines),
        *(chart if id(seconds) in taken else ()),
        *cells,
        *(line for part in below[:-1] if id(part) in taken for line in part.lines),
        *sections,
        *remarks,
        *(line for part in below[-1:] if id(part) in taken for line in part.lines),
    ]
    for line in lines:
        line.plain = drawing.blocks.spell(line.plain)
        line.truncate(width, overflow="crop" if drawing.blocks is ASCII else "ellipsis")
    return lines


class _Drawing:
    def __init__(self, progress: ProgressView, width: int, blocks: BlockLetters, now: datetime) -> None:
        self._progress, self._width, self.blocks, self._now = progress, width, blocks, now

    def above(self) -> list[_Part]:
        """Return the parts of the view that are shown above the cells."""
        progress = self._progress
        return [
            _Part(1, [self._title()]),
            _Part(0, [self._place()]),
            _Part(4, [] if progress.run is None else [self._whole_run(progress.run)]),
            _Part(3, [] if progress.step is None else [self._share(progress.step)]),
            _Part(0, [self._now_line()]),
            *(_Part(1, [line]) for line in self._streams()),
            _Part(2, [self._seconds()]),
        ]

    def below(self, footer: str) -> list[_Part]:
        """Return the parts of the view that are shown below the cells. The footer is last."""
        progress = self._progress
        disturbed = [Text(progress.disturbed, style="yellow")] if progress.disturbed else []
        return [
            _Part(7, [] if progress.window is None else self._window(progress.window)),
            _Part(5, [Text(", ".join(progress.totals))]),
            _Part(6, disturbed),
            _Part(5, [Text(footer, style="dim")] if footer else []),
        ]

    def _title(self) -> Text:
        progress, line = self._progress, self.blocks.line
        text = Text(f"{line * 2} ", style="dim")
        text.append(progress.name, style="bold not dim")
        if progress.number and len(progress.tests) > 1:
            text.append(f" {line * 2} test {progress.number} of {len(progress.tests)}:", style="dim")
        for test in progress.tests:
            text.append(" ")
            text.append(test, "bold reverse not dim" if test == progress.test else "")
        text.append(" ")
        text.append(line * max(0, self._width - text.cell_len), style="dim")
        return text

    def _place(self) -> Text:
        progress = self._progress
        text = Text(progress.place, style="bold" if progress.known else "dim")
        if progress.load:
            text.append(f"  {progress.load}", style="not bold")
        return text

    def _labelled(self, label: str, *pieces: Text | str | tuple[str, str]) -> Text:
        return Text.assemble((label.ljust(_LABEL), "dim"), *pieces)

    def _whole_run(self, share: Share) -> Text:
        text = self._share(share)
        if self._progress.ends_s is not None:
            text.append(f"   ends {format_end(self._now, *self._progress.ends_s)}")
        return text

    def _share(self, share: Share) -> Text:
        width = min(_WIDEST_BAR, max(5, self._width // 4))
        bar = Text(share_bar(share.done, width, self.blocks, perhaps=share.most), style="green")
        return self._labelled(share.label, bar, f" {share.words}")

    def _now_line(self) -> Text:
        now = self._progress.now
        if now.iops is None or now.megabytes_per_s is None:
            return self._labelled("now", ("- IOPS   - MB/s   mean -   p99 -"))
        text = self._labelled("now", Text(f"{format_number(now.iops):>11}", style="bold"), " IOPS")
        text.append(f" {format_number(now.megabytes_per_s):>9}", style="bold").append(" MB/s")
        for name, us in (("mean", now.latency_mean_us), ("p99", now.latency_p99_us)):
            text.append(f"   {name} ")
            text.append(f"{NOT_MEASURED if us is None else format_latency(us):>9}", style="bold")
        return text

    def _streams(self) -> Iterator[Text]:
        """Yield a line for each stream of a combination and for its flushes. These lines are below a line with the
        headings of the columns.
        """
        streams = self._progress.streams
        if not streams:
            return
        rows = [
            (
                each.name,
                format_number(each.iops),
                NOT_MEASURED if each.offered_iops is None else format_number(each.offered_iops),
                format_number(each.megabytes_per_s),
                *(
                    NOT_MEASURED if us is None else format_latency(us)
                    for us in (each.latency_mean_us, each.latency_p99_us)
                ),
            )
            for each in streams
        ]
        table = (_STREAM_COLUMNS, *rows)
        widths = [max(least, *(cell_len(row[column]) for row in table)) for column, least in enumerate(_STREAM_WIDTHS)]
        widths[0] = min(widths[0], max(_LABEL, self._width - sum(widths[1:]) - _GAP * len(widths[1:])))
        for number, (name, *figures) in enumerate(table):
            line = Text(name)
            line.truncate(widths[0], overflow="crop" if self.blocks is ASCII else "ellipsis", pad=True)
            for figure, width in zip(figures, widths[1:], strict=True):
                line.append(" " * (_GAP + width - cell_len(figure)))
                line.append(figure, style="bold" if number else "")
            line.style = "" if number else "dim"
            yield line

    def _seconds(self) -> Text:
        """Return a sparkline of the IOPS of each second. The newest second is on the right, and each new second moves
        all others to the left.
        """
        room = self._width - _LABEL
        shown = self._progress.seconds_iops[-room:]
        label = f"{len(shown)} s" if shown else "seconds"
        return self._labelled(label, Text(sparkline(shown, self.blocks), style="cyan"))

    def chart(self, more_lines: int) -> list[Text]:
        """Return the additional lines of a chart of the IOPS of each second. The chart uses as many lines as are
        available. If there is only space for a sparkline, return no lines.
        """
        room = self._width - _LABEL
        shown = self._progress.seconds_iops[-room:]
        height = min(_TALLEST_CHART, 1 + more_lines)
        if height < _LEAST_CHART or not shown:
            return []
        bars = list(columns(shown, height, self.blocks))
        labels = [format_short(max(shown)), *[""] * (height - 2), f"{len(shown)} s"]
        return [self._labelled(label, Text(bar, style="cyan")) for label, bar in zip(labels, bars, strict=True)]

    def left_sections(self, most_lines: int) -> list[Text]:
        """Return a line for each section that the run has finished. If there are too many sections, return only the
        newest sections.
        """
        count = len(self._progress.left)
        shown = self._progress.left[count - min(count, max(0, most_lines)) :]
        names = max((cell_len(name) for name, _ in shown), default=0)
        lines = []
        for number, (name, words) in enumerate(shown):
            blanks = " " * (names - cell_len(name) + 2)
            lines.append(self._labelled("before" if number == 0 else "", (name, "bold"), blanks, words))
        return lines

    def cells(self, most_lines: int) -> list[Text]:
        """Return lines that show the history of each cell, with as many rows as fit. If the section has a grid of reads
        and writes, the lines show the grid instead.
        """
        if self._progress.grid is not None:
            return self._grid(self._progress.grid, most_lines)
        cells = self._progress.cells
        if cells is None:
            return []
        if cells.names:
            loads = list(cells.values)
            rows = Grid(rows=cells.names, columns=("",), values=tuple((cells.values[load],) for load in loads))
            return draw_grid(
                cells.title,
                rows,
                self._width,
                most_lines=most_lines,
                current=(loads.index(cells.current), 0) if cells.current in loads else None,
                blocks=self.blocks,
                newest=True,
            )
        return draw_histories(
            cells.title, cells.values, self._width, most_lines=most_lines, current=cells.current, blocks=self.blocks
        )

    def _grid(self, grid: LiveGrid, most_lines: int) -> list[Text]:
        """Return lines that show the grid of reads and writes. If there is not enough space, they show the part around
        the current cell.
        """
        most_rows = most_lines - 2 - bool(grid.words)
        if most_rows < 1:
            return []
        labels = [format_number(megabytes) for megabytes in grid.rows]
        label = max(map(len, labels), default=0)
        most_columns = max(1, (self._width - label) // (1 + _SQUARE))
        at_row, at_column = grid.current or (0, 0)
        columns_ = choose_around(len(grid.columns), at_column, most_columns)
        across = "".join(f" {_name_rate(grid.columns[column]):>{_SQUARE}}" for column in columns_)
        lines = [Text(f"{grid.title}; MB/s of writes down, read IOPS across", style="dim")]
        lines.append(Text(" " * label + across, style="dim"))
        for row in choose_around(len(grid.rows), at_row, most_rows):
            line = Text(labels[row].rjust(label))
            for column in columns_:
                line.append(" ")
                line.append_text(_draw_square(grid.squares[row][column], is_current=(row, column) == grid.current))
            lines.append(line)
        if grid.words:
            lines.append(Text(grid.words, style="dim"))
        return lines

    def _window(self, window: WindowSoFar) -> list[Text]:
        style = "bold green" if window.reached else "bold"
        text = self._labelled("window", f"{window.title}: ", (window.state, style), window.missing)
        indent = " " * _LABEL
        lines = textwrap.wrap(window.figures, self._width, initial_indent=indent, subsequent_indent=indent)
        return [text, *map(Text, lines)]

    def remarks(self, most_lines: int) -> list[Text]:
        """Return notices and the newest warnings. An indent marks the beginning of each text. If there is not enough
        space, each text is cut to one line.
        """
        texts = self._progress.remarks
        whole = [line for text in texts for line in self._wrapped(text)]
        lines = whole if len(whole) <= most_lines else [*map(on_one_line, texts)]
        return [Text(line, style="yellow") for line in lines[max(0, len(lines) - most_lines) :]]

    def _wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(
            text, self._width, max_lines=_MOST_LINES_OF_A_REMARK, placeholder=" ...", subsequent_indent="  "
        )


def _name_rate(iops: float) -> str:
    return format_short(iops) if iops else "0"


def _draw_square(square: LiveSquare | None, *, is_current: bool) -> Text:
    style, text = "dim", ""
    if square is not None:
        text = square.word or format_short(square.latency_us)
        if not square.word:
            style = "cyan" if square.is_within else "red"
    return Text(text.rjust(_SQUARE), style="reverse" if is_current else style)


def format_end(now: datetime, shortest_s: float, longest_s: float) -> str:
    """Return the earliest and the latest end of a run as times of the host's clock: ``18:05 to Tue 02:10``."""
    local = now.astimezone()
    ends = (_clock(local, local + timedelta(seconds=left_s)) for left_s in (shortest_s, longest_s))
    return " to ".join(dict.fromkeys(ends))


def _clock(now: datetime, then: datetime) -> str:
    """Return a time of day. If the time is on another day, the weekday is added. If the time is a week away or more,
    the date is added.
    """
    days = (then.date() - now.date()).days
    if days == 0:
        return f"{then:%H:%M}"
    return f"{then:%a %H:%M}" if days < 7 else f"{then:%a %d %b %H:%M}"


TURN_EVERY_S = 5.0
"""The time in seconds for which one page of the view is shown."""
# The smallest number of lines: the name and the counts, the heading of the table, and a few drives.
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
    """Return the view of a batch. The view has no more than ``height`` lines, and a line has no more than ``width``
    columns.

    Args:
        now: time of the host's clock, from which the time of the end is computed.
        passed_s: time since the view was opened. This time determines which page is shown.
    """
    blocks = blocks_for(encoding)
    head = list(_head(view, width, now, blocks))
    count = len(view.levels)
    room = max(_FEWEST_LINES, height) - len(head) - 1 - bool(footer)
    pages = count > room
    turn = int(passed_s / TURN_EVERY_S)
    remarks = list(view.remarks[: max(0, room - count - 1)])
    if pages and view.remarks:  # The remarks are shown below the page, one after the other.
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
    """Yield the lines at the top of the view. These lines contain the name, the counts, the remaining time, and the
    facts that all drives have in common.
    """
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
    """Return the rows of the current page. If there are several pages, also return a text with the number of the page.

    Each page begins with the drives with problems, but these drives never use more than half of the page. If there are
    more drives with problems, the remaining ones are distributed over the pages like all other drives.
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
    """Return the headings and each row as one line."""
    drawn: list[list[str]] = []
    columns = zip(table.columns, *table.rows, strict=True)
    for right, cells in zip(table.numeric, columns, strict=True):
        width = max(map(cell_len, cells))
        blanks = [" " * (width - cell_len(cell)) for cell in cells]
        drawn.append([(blank + cell if right else cell + blank) for cell, blank in zip(cells, blanks, strict=True)])
    return ["  ".join(row).rstrip() for row in zip(*drawn, strict=True)]
