"""A comparison in the terminal: a line for each use, the matrix in blocks that fit, a line for each curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from tkperf.model.units import NOT_MEASURED, drop_controls, wrap_words
from tkperf.page.chart import Chart, Curve, Scale
from tkperf.page.matrix import DecisionView, MatrixCell, Sign
from tkperf.page.page import ChartView
from tkperf.render.terminal.histories import ASCII, BlockLetters, blocks_for, format_short, mean

_GAP = 2
_LONGEST_NAME, _LEAST_COLUMN, _WIDEST_COLUMN = 20, 13, 24
_WIDEST = 200
# Most lines of a matrix with bars: together with the title and a line for each use it has about 40.
_MOST_LINES = 28
# Characters of an interval after a bar.
_INTERVAL = len(" ≥ ± 0.35 %")
# Signs and letters for terminals without Unicode.
_ASCII_SIGNS = str.maketrans(
    {
        "▲": "^",
        "▽": "v",
        "≈": "=",
        "◌": "o",
        "○": "o",
        "✗": "X",
        "◆": "#",
        "·": ".",
        "•": "*",
        "¦": "!",
        "↓": "<",
        "◂": "<",
        "▸": ">",
        "≤": "<",
        "≥": ">",
        "×": "x",
        "±": "+",
        "\N{MINUS SIGN}": "-",
        "µ": "u",
        "…": "~",
    }
)


def print_decision(view: DecisionView, console: Console) -> None:
    """Print the lines, then the matrix. If there is room, print a bar and the interval below each value."""
    blocks = blocks_for(console.encoding)
    for name, sentence in view.lines:
        text = drop_controls(f"{name}: {sentence}" if name else sentence)
        wrapped = [text] if console.soft_wrap else wrap_words(text, console.width, hanging=2)
        for number, part in enumerate(wrapped):
            styled = Text(part)
            if number == 0 and name:
                styled.stylize("bold", 0, len(drop_controls(name)) + 1)
            print_line(styled, console, blocks)
    draw = draw_list if len(view.columns) == 1 else draw_matrix
    lines = list(draw(view, min(_WIDEST, console.width), blocks))
    has_intervals = any("±" in line.plain for line in lines)
    for line in lines:
        print_line(line, console, blocks)
    if view.rows and view.columns:
        legend = "  ".join(f"{sign} {words}" for sign, words in view.legend if sign != "line")
        for words in _wrap(f"{legend}{'  ± 95 % interval' if has_intervals else ''}", console.width):
            print_line(Text(words, style="dim"), console, blocks)


def print_line(line: Text, console: Console, blocks: BlockLetters) -> None:
    """Print a line of a drawing, with signs that the terminal can show."""
    if blocks is ASCII:
        line.plain = line.plain.translate(_ASCII_SIGNS)
    console.print(line, highlight=False, soft_wrap=True)


def draw_matrix(view: DecisionView, width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield the lines of the matrix; columns that do not fit next to each other are in blocks below each other.

    A matrix that would be too long has no bars. If it is still too long, its ratios have no words.
    """
    if not view.rows or not view.columns:
        return
    layouts = [_lay_out(view, width, short=False, bars=False), _lay_out(view, width, short=True, bars=False)]
    if not view.is_dense:
        layouts.insert(0, _lay_out(view, width, short=False, bars=True))
    shortest = min(layouts, key=lambda layout: layout.lines)
    layout = next((layout for layout in layouts if layout.lines <= _MOST_LINES), shortest)
    names, lengths = layout.names, layout.lengths
    for numbers in layout.blocks:
        yield Text()
        yield _join("", names, [(view.columns[number].title, lengths[number], "bold") for number in numbers])
        for part in range(_count_lines([view.columns[number].detail for number in numbers], lengths, numbers)):
            details = [
                (_wrap(view.columns[number].detail, lengths[number])[part : part + 1] or [""])[0] for number in numbers
            ]
            cells = [(text, lengths[number], "dim") for text, number in zip(details, numbers, strict=True)]
            yield _join("", names, cells)
        for row in view.rows:
            of_row = [row.cells[number] for number in numbers]
            texts = [cell.short_line if layout.short else cell.line for cell in of_row]
            values = zip(texts, (lengths[number] for number in numbers), map(_choose_style, of_row), strict=True)
            yield _join(row.name, names, list(values))
            if layout.bars:
                bars = [(_bar(row.cells[number], lengths[number], blocks), lengths[number], "") for number in numbers]
                yield _join("", names, bars)


class _Layout(NamedTuple):
    """A way to draw a matrix: the widths of its columns, the columns of each block, and the number of lines."""

    names: int
    lengths: list[int]
    blocks: list[list[int]]
    short: bool
    bars: bool
    lines: int


def _lay_out(view: DecisionView, width: int, *, short: bool, bars: bool) -> _Layout:
    names = min(_LONGEST_NAME, max(len(row.name) for row in view.rows))
    lengths = []
    for number, column in enumerate(view.columns):
        texts = [row.cells[number].short_line if short else row.cells[number].line for row in view.rows]
        least = max(_LEAST_COLUMN, min(_WIDEST_COLUMN, len(column.title)))
        lengths.append(max(least, *(min(_WIDEST_COLUMN, len(text)) for text in texts)))
    blocks = list(split_columns(lengths, width - names, _GAP))
    lines = 0
    for numbers in blocks:
        details = [view.columns[number].detail for number in numbers]
        lines += 2 + _count_lines(details, lengths, numbers) + (2 if bars else 1) * len(view.rows)
    return _Layout(names, lengths, blocks, short, bars, lines)


def draw_list(view: DecisionView, width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield the lines of a matrix with one column: each drive with its value and bar, or the reason in full words.

    What does not fit on the line of the drive continues below its bar.
    """
    if not view.rows:
        return
    (column,) = view.columns
    yield from (Text(), Text(f"{column.title}, {column.detail}", style="bold"))
    longest = max(_LEAST_COLUMN, min(_LONGEST_NAME + _LEAST_COLUMN, width // 3))
    names = min(longest, max(len(row.name) for row in view.rows))
    values = max(len(row.cells[0].text) for row in view.rows)
    start = names + values + 3 * _GAP - 1
    room = max(_LEAST_COLUMN, width - start)
    bars = min(_WIDEST_COLUMN, room // 3)
    for row in view.rows:
        (cell,) = row.cells
        line = Text(f"{cut(row.name, names).ljust(names)}{' ' * _GAP}")
        line.append(cell.text.rjust(values), style=_choose_style(cell))
        line.append(f" {cell.sign.value or ' '} ")
        if cell.sign is Sign.UNRANKED or cell.bar is None:
            first, *others = _fit((cell.words, row.detail), room, room)
        else:
            line.append(_fill(cell.bar, bars, blocks).ljust(bars + 1))
            first, *others = _fit(
                (", ".join(filter(None, (cell.words, cell.interval))), row.detail), room - bars - 1, room
            )
        line.append(first, style=_choose_style(cell))
        line.rstrip()
        yield line
        for words in others:
            yield Text(f"{' ' * start}{words}", style="dim")


def _fit(texts: Sequence[str], first: int, others: int) -> list[str]:
    """Return texts on one line if that has room for them, or else in lines, each text with lines of its own."""
    whole = drop_controls("; ".join(filter(None, texts)))
    if len(whole) <= first:
        return [whole]
    lines = [line for text in texts for line in _wrap(text, others)]
    return lines if len(lines[0]) <= first else ["", *lines]


def split_columns(lengths: Sequence[int], room: int | None, gap: int) -> Iterator[list[int]]:
    """Yield the numbers of the columns that fit next to each other, block by block.

    Args:
        room: characters of a line; None: a line may have any length.
        gap: characters before each column.
    """
    block: list[int] = []
    for number, length in enumerate(lengths):
        if block and room is not None and sum(lengths[one] + gap for one in block) + length + gap > room:
            yield block
            block = []
        block.append(number)
    yield block


def _count_lines(details: Sequence[str], lengths: Sequence[int], numbers: Sequence[int]) -> int:
    return max(len(_wrap(text, lengths[number])) for text, number in zip(details, numbers, strict=True))


def _wrap(text: str, width: int) -> list[str]:
    return wrap_words(drop_controls(text), width)


def _choose_style(cell: MatrixCell) -> str:
    if cell.sign is Sign.BEST:
        return "bold"
    return "dim" if cell.sign is Sign.UNRANKED or cell.bar is None else ""


def _join(name: str, names: int, cells: Sequence[tuple[str, int, str]]) -> Text:
    line = Text(cut(name, names).ljust(names), style="")
    for text, width, style in cells:
        line.append(" " * _GAP)
        line.append(cut(text, width).ljust(width), style=style)
    line.rstrip()
    return line


def cut(text: str, width: int) -> str:
    """Return a text of at most this many characters."""
    clean = drop_controls(text)
    return clean if len(clean) <= width else f"{clean[: width - 1]}\N{HORIZONTAL ELLIPSIS}"


def _bar(cell: MatrixCell, width: int, blocks: BlockLetters) -> str:
    """Return a bar as long as the value, and after it the interval."""
    if cell.bar is None or cell.text == NOT_MEASURED:
        return ""
    interval = cell.interval.replace("at least", "≥")
    return f"{_fill(cell.bar, width - _INTERVAL, blocks)} {interval}".rstrip()


def _fill(share: float, width: int, blocks: BlockLetters) -> str:
    """Return a bar that is visible for every value above 0."""
    return blocks.done * max(1, round(share * width)) if share > 0 else ""


_MOST_BARS = 60
_MOST_CURVES = 16
# Room for the first and the last value.
_ENDS = 16


def print_curves(charts: Sequence[ChartView], console: Console) -> None:
    """Print the first view of each chart: a line of bars for each run, all on one scale."""
    blocks = blocks_for(console.encoding)
    for view in charts:
        if isinstance(view.chart, Chart) and view.chart.drawable:
            for line in draw_curves(view.chart, min(_WIDEST, console.width), blocks):
                print_line(line, console, blocks)


def draw_curves(chart: Chart, width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield the title with the scale of the bars, then each curve with its first and last value."""
    curves = [curve for curve in chart.curves if curve.name and not curve.muted][:_MOST_CURVES]
    names = min(_LONGEST_NAME, max((len(curve.name) for curve in curves), default=0))
    bars = max(1, min(_MOST_BARS, width - names - _ENDS))
    spread = {
        curve.name: _fill_gaps(values) for curve, values in zip(curves, _spread(curves, chart, bars), strict=True)
    }
    known = [value for values in spread.values() for value in values if value is not None]
    if not known:
        return
    low, high = min(known), max(known)
    logarithmic = chart.y.scale is Scale.LOG and low > 0
    low = low if logarithmic else min(0.0, low)
    scale = f"{format_short(low)} to {format_short(high)}{', logarithmic' if logarithmic else ''}"
    yield Text()
    yield Text(drop_controls(chart.title), style="bold")
    for words in _wrap(f"{chart.y.title}, bars from {scale}, over {chart.x.title}; first and last value", width):
        yield Text(words, style="dim")
    for curve in curves:
        values = [value for value in curve.values if value is not None]
        drawn = "".join(_height(value, low, high, blocks, logarithmic=logarithmic) for value in spread[curve.name])
        line = Text(cut(curve.name, names).ljust(names + 1))
        line.append(drawn.ljust(bars), style="cyan")
        line.append(f" {format_short(values[0])} {format_short(values[-1])}" if values else "")
        yield line


def _spread(curves: Sequence[Curve], chart: Chart, bars: int) -> Iterator[list[float | None]]:
    """Yield the values of each curve in bars at the same places: those of the axis, or equal parts of its length."""
    if chart.x.scale is Scale.ORDINAL:
        for curve in curves:
            known = {point.x: point.y for point in curve.points}
            yield [known.get(place) for place in chart.x.places[:bars]]
        return
    every = [float(point.x) for curve in curves for point in curve.points]
    first, last = min(every, default=0.0), max(every, default=1.0)
    logarithmic = chart.x.scale is Scale.LOG and first > 0
    start = log(first) if logarithmic else min(0.0, first)
    length = ((log(last) if logarithmic else last) - start) or 1.0
    for curve in curves:
        parts: list[list[float | None]] = [[] for _ in range(bars)]
        for point in curve.points:
            at = log(float(point.x)) if logarithmic else float(point.x)
            parts[max(0, min(bars - 1, int((at - start) / length * bars)))].append(point.y)
        yield [mean(part) for part in parts]


def _fill_gaps(values: Sequence[float | None]) -> list[float | None]:
    """Return the values with those between two known ones filled: a course of few slices has fewer than bars."""
    last = max((place for place, value in enumerate(values) if value is not None), default=-1)
    filled: list[float | None] = []
    for place, value in enumerate(values):
        before = filled[-1] if filled and place < last else None
        filled.append(before if value is None else value)
    return filled


def _height(value: float | None, low: float, high: float, blocks: BlockLetters, *, logarithmic: bool) -> str:
    if value is None:
        return " "
    if high <= low:
        return blocks.heights[-1]
    share = log(value / low) / log(high / low) if logarithmic else (value - low) / (high - low)
    return blocks.heights[min(len(blocks.heights) - 1, max(0, int(share * len(blocks.heights))))]
