"""Print the matrix of drives and claims in the terminal. The module also prints, for each claim, a line with a dot for
each drive, and bars of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from rich.console import Console
from rich.text import Text

from tkperf.model.units import drop_controls, wrap_words
from tkperf.page.facts import typeset
from tkperf.page.matrix import DecisionView, MatrixCell, MatrixRow
from tkperf.page.page import HeadlineView, TableView
from tkperf.page.strip import Strip, TickKind
from tkperf.page.verdict_texts import NoteLevel
from tkperf.render.terminal.comparison_text import cut, print_line, split_columns
from tkperf.render.terminal.console import LEVEL_STYLES
from tkperf.render.terminal.histories import ASCII, BlockLetters, blocks_for

_GAP = 1
_LONGEST_NAME, _LONGEST_RESULT = 18, 22
_WIDEST_STRIP, _NARROWEST_STRIP = 60, 20
_LONGEST_BAR_NAME, _BAR = 36, 20
# The characters for one dot, for two or three dots, and for more dots at the same place.
_DOTS = ("·", ":", "•")
_TICKS = {TickKind.MEDIAN: "|", TickKind.CLAIM: "¦", TickKind.OUTLIER: "'"}
_NOTABLE = "◆"


def print_margins(view: DecisionView, console: Console) -> None:
    """Print the lines, followed by the matrix. A letter identifies each column, and a sign follows each margin. The
    meaning of the letters and signs is printed below the matrix.
    """
    blocks = blocks_for(console.encoding)
    for name, sentence in view.lines:
        for line in _wrap(f"{name}: {sentence}", console):
            print_line(Text(line), console, blocks)
    print_line(Text(), console, blocks)
    first, *columns = view.columns
    for letter, column in zip(_list_letters(len(columns)), columns, strict=True):
        print_line(Text(drop_controls(f"{letter}  {column.title} {column.detail}")), console, blocks)
    width = None if console.soft_wrap else console.width
    for drawn in _draw_matrix(view.rows, first.title, len(columns), width):
        print_line(drawn, console, blocks)
    legend = "; ".join(f"{sign} {words}" for sign, words in view.legend)
    for words in _wrap(legend, console):
        print_line(Text(words, style="dim"), console, blocks)


def _wrap(text: str, console: Console) -> list[str]:
    clean = drop_controls(text)
    return [clean] if console.soft_wrap else wrap_words(clean, console.width, hanging=2)


def _list_letters(count: int) -> list[str]:
    """Return the letters A, B, C and so on. After Z, the result continues with AA and AB."""
    letters = list(ascii_uppercase)
    return (letters + [first + second for first in letters for second in letters])[:count]


def _draw_matrix(rows: Sequence[MatrixRow], title: str, count: int, width: int | None) -> Iterator[Text]:
    """Yield the rows of the matrix. If a line has enough space, the values are included. Columns that do not fit follow
    below the other columns.

    Args:
        width: greatest length of a line; None if a line may have any length.
    """
    names = min(_LONGEST_NAME, max((len(row.name) for row in rows), default=0))
    results = min(_LONGEST_RESULT, max((len(_join(row.cells[0])) for row in rows), default=0))
    cells = [[_join(cell) for cell in row.cells[1:]] for row in rows]
    room = None if width is None else width - names - results - _GAP
    if room is not None and _measure(cells, count) > room:
        cells = [[_shorten(cell) for cell in row.cells[1:]] for row in rows]
    widths = [max((len(row[number]) for row in cells), default=0) for number in range(count)]
    letters = _list_letters(count)
    for numbers in split_columns(widths, room, _GAP):
        yield Text()
        head = Text(f"{'':{names}} {title:{results}}")
        for number in numbers:
            head.append(f" {letters[number].rjust(widths[number])}", style="bold")
        yield head
        for row, texts in zip(rows, cells, strict=True):
            line = Text().append(cut(row.name, names).ljust(names), style="bold").append(" ")
            line.append(cut(_join(row.cells[0]), results).ljust(results), style=_choose_style(row.cells[0]))
            for number in numbers:
                line.append(" ")
                line.append(texts[number].rjust(widths[number]), style=_choose_style(row.cells[number + 1]))
            line.rstrip()
            yield line


def _join(cell: MatrixCell) -> str:
    return drop_controls(cell.line)


def _shorten(cell: MatrixCell) -> str:
    return drop_controls(f"{cell.text.removesuffix(' %')}{cell.sign.value or ' '}")


def _measure(cells: Sequence[Sequence[str]], count: int) -> int:
    return sum(_GAP + max((len(row[number]) for row in cells), default=0) for number in range(count))


def _choose_style(cell: MatrixCell) -> str:
    return "" if cell.level is None else f"bold {LEVEL_STYLES[cell.level]}"


# ---- strips


def print_tiles(tiles: Sequence[HeadlineView], console: Console) -> None:
    """Print the figures of many drives. For each figure, print the name of the figure, the worst drive, and a line with
    a dot for each drive.
    """
    blocks = blocks_for(console.encoding)
    width = max(_NARROWEST_STRIP, min(_WIDEST_STRIP, console.width - 2 * _GAP))
    for tile in tiles:
        if tile.strip is None:
            continue
        print_line(Text(), console, blocks)
        for line in _wrap(tile.label, console):
            print_line(Text(line, style="bold"), console, blocks)
        facts = "; ".join(filter(None, (typeset(tile.verdict), tile.text, tile.sure)))
        for number, line in enumerate(_wrap(facts, console)):
            words = Text(line)
            if tile.alarm and number == 0:
                words.stylize(f"bold {LEVEL_STYLES[NoteLevel.FAILURE]}", 0, len(drop_controls(tile.verdict)))
            print_line(words, console, blocks)
        print_line(Text(draw_strip(tile.strip, width), style="cyan"), console, blocks)
    if tiles:
        meaning = f"{_DOTS[0]} {_DOTS[1]} {_DOTS[2]} drives  {_NOTABLE} a drive that needs attention  | median"
        for line in _wrap(f"{meaning}  ¦ claim  ' limit of outliers", console):
            print_line(Text(line, style="dim"), console, blocks)


def draw_strip(strip: Strip, width: int) -> str:
    """Return a line that shows the dots of drives as characters. If several dots are at the same place, a denser
    character is used. Ticks are drawn between the dots.
    """
    letters = [" "] * width
    for tick in sorted(strip.ticks, key=lambda one: one.kind is not TickKind.OUTLIER):
        letters[_place(tick.share, width)] = _TICKS[tick.kind]
    counts: dict[int, int] = {}
    for dot in strip.dots:
        at = _place(dot.share, width)
        counts[at] = counts.get(at, 0) + 1
    for at, count in counts.items():
        # The median lies among the dots, so a dot must not cover the mark of the median.
        if letters[at] != _TICKS[TickKind.MEDIAN]:
            letters[at] = _DOTS[min(2, count // 2)]
    for dot in strip.named:
        letters[_place(dot.share, width)] = _NOTABLE
    return "".join(letters).rstrip()


def print_bars(table: TableView, console: Console) -> None:
    """Print the bar of each claim that has a bar. The name of the claim is before the bar, and its margin and state are
    after the bar.
    """
    blocks = blocks_for(console.encoding)
    bars = min(_BAR, console.width // 4)
    names = min(_LONGEST_BAR_NAME, max((len(row[0]) for row in table.rows), default=0))
    if not console.soft_wrap:
        names = max(1, min(names, console.width - bars - _LONGEST_RESULT - 4))
    print_line(Text(), console, blocks)
    for row, levels, strip in zip(table.rows, table.levels, table.strips, strict=True):
        if strip is None:
            continue
        line = Text(f"{cut(row[0], names).ljust(names)}  ")
        line.append(draw_bar(strip, bars, blocks).ljust(bars), style="cyan")
        state, margin, *_ = row[1:]
        words = cut(f"{typeset(margin.split(', ')[0])} {state}", _LONGEST_RESULT)
        line.append(f"  {words}", style="" if levels[0] is None else f"bold {LEVEL_STYLES[levels[0]]}")
        print_line(line, console, blocks)
    limit = _TICKS[TickKind.MEDIAN] if blocks is ASCII else "┃"
    print_line(Text(f"{limit} limit", style="dim"), console, blocks)


def draw_bar(strip: Strip, width: int, blocks: BlockLetters) -> str:
    """Return the bar of a value. A tick on the bar, or after the bar, shows the limit."""
    if strip.bar is None:
        return ""
    filled = max(1, round(strip.bar * width))
    letters = list((blocks.done * filled).ljust(width))
    for tick in strip.ticks:
        letters[_place(tick.share, width)] = _TICKS[TickKind.MEDIAN] if blocks is ASCII else "┃"
    return "".join(letters).rstrip()


def _place(share: float, width: int) -> int:
    return min(width - 1, max(0, int(share * width)))
