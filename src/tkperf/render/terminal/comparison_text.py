"""Print a comparison in the terminal.

The output contains the title, a line for each use, the matrix in blocks that fit into the width, a line for each curve,
and the doubtful values of the runs. A comparison of several runs fits on one screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from math import log
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from tkperf.model.units import NOT_MEASURED, drop_controls, format_count, wrap_words
from tkperf.page.chart import Chart, Curve, Scale
from tkperf.page.matrix import CUT, MOST_ON_SCREEN, DecisionView, MatrixCell, MatrixRow, Sign
from tkperf.page.page import ChartView, ReportView
from tkperf.render.terminal.console import LEVEL_STYLES
from tkperf.render.terminal.histories import ASCII, BlockLetters, blocks_for, format_short, mean

_GAP = 2
_LONGEST_NAME, _LEAST_COLUMN, _WIDEST_COLUMN = 20, 13, 24
_WIDEST = 200
# The greatest number of lines of a matrix with bars. Together with the title and a line for each use, the output then
# has about 40 lines.
_MOST_LINES = 28
# If there is little space, a number with this many digits or more is shown in thousands.
_LONGEST_WHOLE = 5
# The number of characters for an interval after a bar.
_INTERVAL = len(" no interval")
# Replacements for signs and letters, for terminals that cannot show Unicode.
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
    """Print the lines, followed by the matrix. If there is enough space, print a bar and the interval below each
    value.
    """
    blocks = blocks_for(console.encoding)
    width = min(_WIDEST, console.width)
    lines = draw_list(view, width, blocks) if len(view.columns) == 1 else draw_matrix(view, width, blocks)
    drawn = [*draw_sentences(view.lines, None if console.soft_wrap else console.width), *lines]
    for line in (*drawn, *draw_legend(view, console.width, drawn)):
        print_line(line, console, blocks)


def draw_sentences(sentences: Sequence[tuple[str, str]], width: int | None) -> Iterator[Text]:
    """Yield sentences in lines of this width. Each sentence begins with its name.

    Args:
        width: the width in characters. None means that each sentence is written on one line.
    """
    for name, sentence in sentences:
        text = drop_controls(f"{name}: {sentence}" if name else sentence)
        for number, part in enumerate([text] if width is None else wrap_words(text, width, hanging=2)):
            styled = Text(part)
            if number == 0 and name:
                styled.stylize("bold", 0, len(drop_controls(name)) + 1)
            yield styled


def draw_legend(
    view: DecisionView, width: int, drawn: Sequence[Text], words_of: Mapping[str, str] | None = None
) -> Iterator[Text]:
    """Yield the meaning of the signs below a matrix.

    Args:
        drawn: the lines of the matrix, which contain the signs that need an explanation.
        words_of: shorter words for some signs.
    """
    if not view.rows or not view.columns:
        return
    shown = [(sign, words) for sign, words in view.legend if sign != "line"]
    if not any(CUT in line.plain for line in drawn):
        shown = [(sign, words) for sign, words in shown if sign != CUT]
    signs = [f"{sign} {(words_of or {}).get(sign, words)}" for sign, words in shown]
    if any("±" in line.plain for line in drawn):
        signs.append("± 95 % interval")
    for words in _wrap("  ".join(signs), width):
        yield Text(words, style="dim")


def print_line(line: Text, console: Console, blocks: BlockLetters) -> None:
    """Print a line of a drawing. Signs that the terminal cannot show are replaced."""
    if blocks is ASCII:
        line.plain = line.plain.translate(_ASCII_SIGNS)
    console.print(line, highlight=False, soft_wrap=True)


class _Content(Enum):
    """The possible contents of the cells of a matrix, from the most detailed to the least detailed."""

    BARS = auto()
    WORDS = auto()
    RATIOS = auto()
    VALUES = auto()


def draw_matrix(view: DecisionView, width: int, blocks: BlockLetters, most_lines: int | None = None) -> Iterator[Text]:
    """Yield the lines of the matrix. If the columns do not fit beside each other, they form blocks below each other.

    If the matrix would be too long with bars, it is drawn without bars. If the matrix is still too long, the ratios are
    written without words.

    Args:
        most_lines: the number of available lines. If the matrix would be longer, its cells contain values without
            ratios. None means that cells always contain ratios.
    """
    if not view.rows or not view.columns:
        return
    contents = [_Content.WORDS, _Content.RATIOS]
    if not view.is_dense:
        contents.insert(0, _Content.BARS)
    if most_lines is not None:
        contents.append(_Content.VALUES)
    layouts = [_lay_out(view, width, content) for content in contents]
    shortest = min(layouts, key=lambda layout: layout.lines)
    room = _MOST_LINES if most_lines is None else most_lines
    layout = next((layout for layout in layouts if layout.lines <= room), shortest)
    names, lengths, gap = layout.names, layout.lengths, layout.gap
    for numbers in layout.blocks:
        if layout.content is not _Content.VALUES:
            yield Text()
        for heads, style in ((layout.titles, "bold"), (layout.details, "dim")):
            for part in range(max(len(heads[number]) for number in numbers)):
                texts = [(heads[number][part : part + 1] or [""])[0] for number in numbers]
                cells = [(text, lengths[number], style) for text, number in zip(texts, numbers, strict=True)]
                yield _join("", names, cells, gap)
        for row in view.rows:
            of_row = [row.cells[number] for number in numbers]
            texts = [_describe_cell(cell, layout.content) for cell in of_row]
            values = zip(texts, (lengths[number] for number in numbers), map(_choose_style, of_row), strict=True)
            yield _join(row.name, names, list(values), gap)
            if layout.content is _Content.BARS:
                bars = [(_bar(row.cells[number], lengths[number], blocks), lengths[number], "") for number in numbers]
                yield _join("", names, bars, gap)


class _Layout(NamedTuple):
    """The layout of a matrix. The layout consists of the widths of the columns, the lines of their headings, the
    columns of each block, and the number of lines.
    """

    content: _Content
    names: int
    gap: int
    lengths: list[int]
    titles: list[list[str]]
    details: list[list[str]]
    blocks: list[list[int]]
    lines: int


def _lay_out(view: DecisionView, width: int, content: _Content) -> _Layout:
    is_narrow = content is _Content.VALUES
    gap = 1 if is_narrow else _GAP
    names = min(_LONGEST_NAME, max(len(row.name) for row in view.rows))
    lengths, titles, details = [], [], []
    for number, column in enumerate(view.columns):
        longest = max(len(_describe_cell(row.cells[number], content)) for row in view.rows)
        if is_narrow:
            words = f"{column.title} {column.unit}".split()
            length = max(longest, min(_LEAST_COLUMN, max(map(len, words))))
        else:
            length = max(_LEAST_COLUMN, min(_WIDEST_COLUMN, max(longest, len(column.title))))
        lengths.append(length)
        titles.append(_wrap(column.title, length) if is_narrow else [column.title])
        details.append(_wrap((is_narrow and column.unit) or column.detail, length))
    blocks = list(split_columns(lengths, width - names, gap))
    rows = len(view.rows) * (2 if content is _Content.BARS else 1)
    before = 0 if is_narrow else 1
    lines = sum(
        before + max(len(titles[number]) for number in numbers) + max(len(details[number]) for number in numbers) + rows
        for numbers in blocks
    )
    return _Layout(content, names, gap, lengths, titles, details, blocks, lines)


def _describe_cell(cell: MatrixCell, content: _Content) -> str:
    """Return the text of a cell. If ratios are omitted, the text is the value in few characters: ``322k▲``."""
    match content:
        case _Content.VALUES:
            return f"{_shorten(cell.text)}{cell.sign.value}"
        case _Content.RATIOS:
            return cell.short_line
        case _:
            return cell.line


def _shorten(text: str) -> str:
    """Return the value of a cell in few characters: ``322k`` for ``322,000``."""
    whole = text.replace(",", "")
    if not (whole.isdecimal() and len(whole) >= _LONGEST_WHOLE):
        return text
    # The value in thousands is rounded to four significant digits. The second format writes a rounded value such as
    # 12500 thousands without an exponent.
    return f"{float(f'{int(whole) / 1000:.4g}'):.15g}k"


def draw_list(view: DecisionView, width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield the lines of a matrix with one column. Each drive has its value and a bar, or the reason why it has no
    rank.

    Text that does not fit on the line of the drive continues below the bar.
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
            line.append(_fill(cell, bars, blocks).ljust(bars + 1))
            first, *others = _fit(
                (", ".join(filter(None, (cell.words, cell.interval))), row.detail), room - bars - 1, room
            )
        line.append(first, style=_choose_style(cell))
        line.rstrip()
        yield line
        for words in others:
            yield Text(f"{' ' * start}{words}", style="dim")


def _fit(texts: Sequence[str], first: int, others: int) -> list[str]:
    """Return the texts on one line if they fit. Otherwise return each text on separate lines."""
    whole = drop_controls("; ".join(filter(None, texts)))
    if len(whole) <= first:
        return [whole]
    lines = [line for text in texts for line in _wrap(text, others)]
    return lines if len(lines[0]) <= first else ["", *lines]


def split_columns(lengths: Sequence[int], room: int | None, gap: int) -> Iterator[list[int]]:
    """Yield the numbers of the columns that fit beside each other, block by block.

    Args:
        room: number of characters of a line; None if a line may have any length.
        gap: number of characters before each column.
    """
    block: list[int] = []
    for number, length in enumerate(lengths):
        if block and room is not None and sum(lengths[one] + gap for one in block) + length + gap > room:
            yield block
            block = []
        block.append(number)
    yield block


def _wrap(text: str, width: int) -> list[str]:
    return wrap_words(drop_controls(text), width)


def _choose_style(cell: MatrixCell) -> str:
    if cell.sign is Sign.BEST:
        return "bold"
    return "dim" if cell.sign is Sign.UNRANKED or cell.bar is None else ""


def _join(name: str, names: int, cells: Sequence[tuple[str, int, str]], gap: int) -> Text:
    line = Text(cut(name, names).ljust(names), style="")
    for text, width, style in cells:
        line.append(" " * gap)
        line.append(cut(text, width).ljust(width), style=style)
    line.rstrip()
    return line


def cut(text: str, width: int) -> str:
    """Return a text, shortened to ``width`` characters."""
    clean = drop_controls(text)
    return clean if len(clean) <= width else f"{clean[: width - 1]}\N{HORIZONTAL ELLIPSIS}"


def _bar(cell: MatrixCell, width: int, blocks: BlockLetters) -> str:
    """Return a bar whose length shows the value. The bar is followed by the interval."""
    if cell.bar is None or cell.text == NOT_MEASURED:
        return ""
    interval = cell.interval.replace("at least", "≥")
    return f"{_fill(cell, width - _INTERVAL, blocks)} {interval}".rstrip()


def _fill(cell: MatrixCell, width: int, blocks: BlockLetters) -> str:
    """Return a bar that is visible for every value above 0. If a bar is cut, it ends with a sign."""
    if not cell.bar:
        return ""
    length = max(1, round(cell.bar * width))
    return f"{blocks.done * (length - len(CUT) - 1)}{CUT}{blocks.done}" if cell.is_cut else blocks.done * length


_MOST_BARS = 60
_MOST_CURVES = 16
# The number of characters for the first and the last value.
_ENDS = 16


def print_curves(charts: Sequence[ChartView], console: Console) -> None:
    """Print the first view of each chart. Each run has a line of bars, and all lines have the same scale."""
    blocks = blocks_for(console.encoding)
    for view in charts:
        if isinstance(view.chart, Chart) and view.chart.drawable:
            for line in draw_curves(view.chart, min(_WIDEST, console.width), blocks):
                print_line(line, console, blocks)


def draw_curves(chart: Chart, width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield the title with the scale of the bars. The title is followed by each curve with its first and last value."""
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
    for words in _wrap(chart.title, width):
        yield Text(words, style="bold")
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
    """Yield the values of each curve as bars. All curves have bars at the same places, which are the places of the axis
    or equal parts of its length.
    """
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
    """Return the values, with interpolated values in the gaps between known values. There are gaps if a curve has fewer
    slices than bars.
    """
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


MOST_LINES, MOST_LINES_BESIDE_FILES = 40, 20
# The number of lines that the matrix of twelve runs needs, and the greatest number of lines for the flaws.
_LINES_OF_MATRIX, _LINES_OF_FLAWS = 17, 4
_LINES_OF_LEGEND, _FEWEST_ROWS = 1, 2
# Short meanings of signs, for the output on one screen. The complete page explains these signs with more words.
_SHORT_WORDS: dict[str, str] = {Sign.EQUAL: "equal", Sign.UNDECIDED: "not decided"}
# If a part of a sentence begins with one of these texts, the matrix also contains this part.
_ALSO_IN_MATRIX = ("; not ranked: ", "; not measured: ")


def print_comparison(
    view: ReportView, flaws: Sequence[tuple[str, str]], console: Console, *, beside_files: bool
) -> None:
    """Print the beginning of a comparison on one screen.

    Args:
        flaws: the reasons why values of the runs are doubtful, each with the names of the runs.
        beside_files: whether the comparison is also written to files. In this case, the terminal shows only the
            decision.
    """
    assert view.decision is not None
    blocks = blocks_for(console.encoding)
    width = None if console.soft_wrap else console.width
    opening = list(_draw_opening(view, width))
    if beside_files:
        ending = _in_lines("--full prints the matrix and every result here.", width)
        room = MOST_LINES_BESIDE_FILES - len(opening) - len(ending)
        lines = [*opening, *_fit_sentences(view.decision.lines, width, room), *ending]
    else:
        ending = _in_lines("--full prints every result; --html FILE writes a page with charts.", width)
        doubts = _fit_sentences(flaws, width, _LINES_OF_FLAWS)
        room = MOST_LINES - len(opening) - len(doubts) - len(ending)
        sentences = _fit_sentences(view.decision.lines, width, room - _LINES_OF_MATRIX)
        matrix = _fit_matrix(view.decision, console.width, blocks, room - len(sentences))
        if matrix and matrix[0].plain and len(sentences) + len(matrix) < room:
            matrix.insert(0, Text())
        lines = [*opening, *sentences, *matrix, *doubts, *ending]
    for line in lines:
        print_line(line, console, blocks)


def _draw_opening(view: ReportView, width: int | None) -> Iterator[Text]:
    verdict = view.verdict
    yield from _in_lines(view.title, width, style="bold")
    yield from _in_lines(view.subtitle, width, style="dim")
    yield from _in_lines(verdict.text, width, style=f"bold {LEVEL_STYLES[verdict.level]}".strip())
    for banner in view.banners:
        yield from _in_lines(banner, width, style="yellow")


def _in_lines(text: str, width: int | None, style: str = "") -> list[Text]:
    whole = drop_controls(text)
    lines = [whole] if width is None else wrap_words(whole, width)
    return [Text(line, style=style) for line in lines if line]


def _fit_sentences(sentences: Sequence[tuple[str, str]], width: int | None, room: int) -> list[Text]:
    """Return sentences that fit into ``room`` lines. If they need more lines, the parts that the matrix also shows are
    omitted first, and then the last sentences.
    """
    lines = list(draw_sentences(sentences, width))
    if len(lines) <= room:
        return lines
    kept = [(name, _leave_out_what_follows(sentence)) for name, sentence in sentences]
    lines = list(draw_sentences(kept, width))
    while kept and len(lines) > room:
        kept.pop()
        left = format_count(len(sentences) - len(kept), "more sentence")
        lines = [*draw_sentences(kept, width), *_in_lines(f"{left}: --full", width)]
    return lines


def _leave_out_what_follows(sentence: str) -> str:
    for words in _ALSO_IN_MATRIX:
        sentence = sentence.split(words, maxsplit=1)[0]
    return sentence


def _fit_matrix(view: DecisionView, width: int, blocks: BlockLetters, room: int) -> list[Text]:
    """Return the matrix with its legend, limited to ``room`` lines. If there are too many runs, only the best and the
    worst runs are included.
    """
    most = min(len(view.rows), MOST_ON_SCREEN)
    lines = _draw_rows(view, most, width, blocks, room)
    while len(lines) > room and most > _FEWEST_ROWS:
        most -= 1
        lines = _draw_rows(view, most, width, blocks, room)
    return lines


def _draw_rows(view: DecisionView, most: int, width: int, blocks: BlockLetters, room: int) -> list[Text]:
    """Return the lines of a matrix with no more than ``most`` rows, a line with the number of omitted rows, and the
    legend.
    """
    shown = replace(view, rows=choose_rows(view.rows, most))
    left = len(view.rows) - len(shown.rows)
    notes = (
        _in_lines(f"{format_count(left, 'more run')}, less often best or worst: --full", width, "dim") if left else []
    )
    if len(view.columns) == 1:
        lines = list(draw_list(shown, width, blocks))
    else:
        lines = list(draw_matrix(shown, width, blocks, room - len(notes) - _LINES_OF_LEGEND))
    return [*lines, *notes, *draw_legend(shown, width, lines, _SHORT_WORDS)]


def choose_rows(rows: Sequence[MatrixRow], most: int) -> tuple[MatrixRow, ...]:
    """Return the rows in their order. If there are too many rows, return the rows that most often contain the best or
    the worst value.
    """
    if len(rows) <= most:
        return tuple(rows)

    def count(row: MatrixRow, *signs: Sign) -> int:
        return sum(cell.sign in signs for cell in row.cells)

    worst_first = sorted(rows, key=lambda row: (-count(row, Sign.WORST), -count(row, Sign.UNRANKED)))
    worst = worst_first[: most // 2]
    others = [row for row in rows if row not in worst]
    best_first = sorted(others, key=lambda row: (-count(row, Sign.BEST), -count(row, Sign.EQUAL)))
    kept = [*worst, *best_first[: most - len(worst)]]
    return tuple(row for row in rows if row in kept)
