"""The decision of a comparison in the terminal: a line for each use, and the matrix in blocks of columns that fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from tkperf.model.units import NOT_MEASURED, drop_controls, wrap_words
from tkperf.page.matrix import DecisionView, MatrixCell, MatrixRow, Sign
from tkperf.render.terminal.histories import ASCII, BlockLetters, blocks_for

_GAP = 2
_LONGEST_NAME, _LEAST_COLUMN, _WIDEST_COLUMN = 20, 13, 24
_WIDEST = 160
# Characters of an interval after a bar.
_INTERVAL = len(" ≥ ± 0.35 %")
# Without the signs of Unicode.
_ASCII_SIGNS = str.maketrans(
    {"▲": "^", "▽": "v", "≈": "=", "◌": "o", "↓": "v", "×": "x", "±": "+", "µ": "u", "…": "~", "≥": ">"}
)


def print_decision(view: DecisionView, console: Console) -> None:
    """Print the lines, then the matrix. If there are few drives, print a bar and the interval below each value."""
    blocks = blocks_for(console.encoding)
    for name, sentence in view.lines:
        text = drop_controls(f"{name}: {sentence}" if name else sentence)
        lines = [text] if console.soft_wrap else wrap_words(text, console.width, hanging=2)
        for number, line in enumerate(lines):
            styled = Text(line)
            if number == 0 and name:
                styled.stylize("bold", 0, len(drop_controls(name)) + 1)
            _print(styled, console, blocks)
    for drawn in draw_matrix(view, min(_WIDEST, console.width), blocks):
        _print(drawn, console, blocks)
    if view.rows and view.columns:
        legend = "  ".join(f"{sign} {words}" for sign, words in view.legend if sign != "line")
        _print(Text(f"{legend}  ± 95 % interval", style="dim"), console, blocks)


def _print(line: Text, console: Console, blocks: BlockLetters) -> None:
    if blocks is ASCII:
        line.plain = line.plain.translate(_ASCII_SIGNS)
    console.print(line, highlight=False, soft_wrap=True)


def draw_matrix(view: DecisionView, width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield the lines of the matrix; columns that do not fit next to each other are in blocks below each other."""
    if not view.rows or not view.columns:
        return
    names = min(_LONGEST_NAME, max(len(row.name) for row in view.rows))
    lengths = [
        max(_LEAST_COLUMN, *(min(_WIDEST_COLUMN, len(row.cells[number].line)) for row in view.rows))
        for number in range(len(view.columns))
    ]
    for numbers in _split(lengths, width - names):
        yield Text()
        yield _join("", names, [(view.columns[number].title, lengths[number], "bold") for number in numbers])
        for part in range(_count_lines([view.columns[number].detail for number in numbers], lengths, numbers)):
            details = [
                (_wrap(view.columns[number].detail, lengths[number])[part : part + 1] or [""])[0] for number in numbers
            ]
            cells = [(text, lengths[number], "dim") for text, number in zip(details, numbers, strict=True)]
            yield _join("", names, cells)
        for row in view.rows:
            yield _draw_values(row, names, lengths, numbers)
            if not view.is_dense:
                bars = [(_bar(row.cells[number], lengths[number], blocks), lengths[number], "") for number in numbers]
                yield _join("", names, bars)


def _split(lengths: Sequence[int], width: int) -> Iterator[list[int]]:
    block: list[int] = []
    for number, length in enumerate(lengths):
        if block and sum(lengths[one] + _GAP for one in block) + length + _GAP > width:
            yield block
            block = []
        block.append(number)
    yield block


def _count_lines(details: Sequence[str], lengths: Sequence[int], numbers: Sequence[int]) -> int:
    return max(len(_wrap(text, lengths[number])) for text, number in zip(details, numbers, strict=True))


def _wrap(text: str, width: int) -> list[str]:
    return wrap_words(drop_controls(text), width)


def _draw_values(row: MatrixRow, names: int, lengths: Sequence[int], numbers: Sequence[int]) -> Text:
    cells = []
    for number in numbers:
        cell = row.cells[number]
        style = "bold" if cell.sign is Sign.BEST else "dim" if cell.sign is Sign.UNRANKED or cell.bar is None else ""
        cells.append((cell.line, lengths[number], style))
    return _join(row.name, names, cells)


def _join(name: str, names: int, cells: Sequence[tuple[str, int, str]]) -> Text:
    line = Text(_cut(name, names).ljust(names), style="")
    for text, width, style in cells:
        line.append(" " * _GAP)
        line.append(_cut(text, width).ljust(width), style=style)
    line.rstrip()
    return line


def _cut(text: str, width: int) -> str:
    clean = drop_controls(text)
    return clean if len(clean) <= width else f"{clean[: width - 1]}\N{HORIZONTAL ELLIPSIS}"


def _bar(cell: MatrixCell, width: int, blocks: BlockLetters) -> str:
    """Return a bar as long as the value, and after it the interval."""
    if cell.bar is None or cell.text == NOT_MEASURED:
        return ""
    interval = cell.interval.replace("at least", "≥")
    filled = blocks.done * max(1, round(cell.bar * (width - _INTERVAL))) if cell.bar > 0 else ""
    return f"{filled} {interval}".rstrip()
