"""A comparison on one screen of a terminal: the title, a line for each use, the matrix, and doubtful values of the
runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from tkperf.model.units import drop_controls, format_count, wrap_words
from tkperf.page.matrix import MOST_ON_SCREEN, DecisionView, MatrixRow, Sign
from tkperf.page.page import ReportView
from tkperf.render.terminal.console import LEVEL_STYLES
from tkperf.render.terminal.histories import BlockLetters, blocks_for
from tkperf.render.terminal.matrix_text import draw_legend, draw_list, draw_matrix, draw_sentences, print_line

MOST_LINES, MOST_LINES_BESIDE_FILES = 40, 20
# Number of lines that a matrix of twelve runs needs, and greatest number of lines for the flaws.
_LINES_OF_MATRIX, _LINES_OF_FLAWS = 17, 4
_LINES_OF_LEGEND, _FEWEST_ROWS = 1, 2
# The whole page explains these signs in more words.
_SHORT_WORDS: dict[str, str] = {Sign.EQUAL: "equal", Sign.UNDECIDED: "not decided"}
# From here on, a sentence repeats what the matrix shows.
_ALSO_IN_MATRIX = ("; not ranked: ", "; not measured: ")


def print_comparison(
    view: ReportView, flaws: Sequence[tuple[str, str]], console: Console, *, beside_files: bool
) -> None:
    """Print the beginning of a comparison on one screen.

    Args:
        flaws: the reasons why values of the runs are doubtful, each with the runs.
        beside_files: whether the comparison is also written to files, so that the terminal shows only the decision.
    """
    assert view.decision is not None
    blocks = blocks_for(console.encoding)
    width = None if console.soft_wrap else console.width
    opening = list(_draw_opening(view, width))
    if beside_files:
        ending = _fill("--full prints the matrix and every result here.", width)
        room = MOST_LINES_BESIDE_FILES - len(opening) - len(ending)
        lines = [*opening, *_fit_sentences(view.decision.lines, width, room), *ending]
    else:
        ending = _fill("--full prints every result; --html FILE writes a page with charts.", width)
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
    yield from _fill(view.title, width, style="bold")
    yield from _fill(view.subtitle, width, style="dim")
    yield from _fill(verdict.text, width, style=f"bold {LEVEL_STYLES[verdict.level]}".strip())
    for banner in view.banners:
        yield from _fill(banner, width, style="yellow")


def _fill(text: str, width: int | None, style: str = "") -> list[Text]:
    whole = drop_controls(text)
    lines = [whole] if width is None else wrap_words(whole, width)
    return [Text(line, style=style) for line in lines if line]


def _fit_sentences(sentences: Sequence[tuple[str, str]], width: int | None, room: int) -> list[Text]:
    """Return sentences in lines. If there are too many lines, first leave out what the matrix also shows, then the last
    sentences.
    """
    lines = list(draw_sentences(sentences, width))
    if len(lines) <= room:
        return lines
    kept = [(name, _leave_out_what_follows(sentence)) for name, sentence in sentences]
    lines = list(draw_sentences(kept, width))
    while kept and len(lines) > room:
        kept.pop()
        left = format_count(len(sentences) - len(kept), "more sentence")
        lines = [*draw_sentences(kept, width), *_fill(f"{left}: --full", width)]
    return lines


def _leave_out_what_follows(sentence: str) -> str:
    for words in _ALSO_IN_MATRIX:
        sentence = sentence.split(words, maxsplit=1)[0]
    return sentence


def _fit_matrix(view: DecisionView, width: int, blocks: BlockLetters, room: int) -> list[Text]:
    """Return the matrix with its legend in this number of lines. If there are too many runs, show only the best and the
    worst.
    """
    most = min(len(view.rows), MOST_ON_SCREEN)
    lines = _draw_rows(view, most, width, blocks, room)
    while len(lines) > room and most > _FEWEST_ROWS:
        most -= 1
        lines = _draw_rows(view, most, width, blocks, room)
    return lines


def _draw_rows(view: DecisionView, most: int, width: int, blocks: BlockLetters, room: int) -> list[Text]:
    """Return the lines of a matrix with this number of rows, the number of the other rows, and the legend."""
    shown = replace(view, rows=choose_rows(view.rows, most))
    left = len(view.rows) - len(shown.rows)
    notes = _fill(f"{format_count(left, 'more run')}, less often best or worst: --full", width, "dim") if left else []
    if len(view.columns) == 1:
        lines = list(draw_list(shown, width, blocks))
    else:
        lines = list(draw_matrix(shown, width, blocks, room - len(notes) - _LINES_OF_LEGEND))
    return [*lines, *notes, *draw_legend(shown, width, lines, _SHORT_WORDS)]


def choose_rows(rows: Sequence[MatrixRow], most: int) -> tuple[MatrixRow, ...]:
    """Return the rows in their order. If there are too many, return those that are most often the best, and most often
    the worst.
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
