"""Print the summary of a page on one screen of the terminal. The summary contains the verdict, the headline figures,
findings, and commands that show more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import rich.table
from rich.console import Console, Group, RenderableType
from rich.text import Text

from tkperf.model.units import drop_controls, format_count, wrap_words
from tkperf.page.facts import typeset
from tkperf.page.page import FindingsView, HeadlineView, ReportView
from tkperf.page.verdict_texts import NoteLevel
from tkperf.render.terminal.console import LEVEL_STYLES

MOST_LINES = 40
# If the output does not go to a terminal, it contains as many findings as the output on a terminal of this width.
_USUAL_WIDTH = 80
_GAP = 2
_HANGING = 2
# The greatest length, in characters, of a verdict that is printed beside each figure. A longer verdict, such as a list
# of disturbances, is printed once for all figures that have this verdict.
_LONGEST_VERDICT = 24
# The smallest width of the labels, in characters, if the table has a column for the tests.
_LEAST_LABEL = 30

# The name of a note, its text, and its style.
_Note = tuple[str, str, str]

RUN_FILE = "RUN_FILE"
Pointers = Sequence[tuple[str, str]]
"""Commands that show more output, each with a description of this output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paragraph:
    """A paragraph that begins on a new line. ``title`` is the beginning of ``text`` and is highlighted."""

    text: str
    style: str = ""
    title: str = ""

    def count_lines(self, width: int) -> int:
        return len(self.wrap(width))

    def wrap(self, width: int) -> list[str]:
        return wrap_words(self.text, width, hanging=_HANGING if self.title else 0)

    def draw(self, width: int | None) -> Iterator[Text]:
        """Yield the lines of the paragraph.

        Args:
            width: greatest length of a line; None if a line may have any length.
        """
        for number, line in enumerate([self.text] if width is None else self.wrap(width)):
            drawn = Text(line, style=self.style)
            if number == 0:
                drawn.stylize("bold", 0, len(self.title))
            yield drawn


_EMPTY = _Paragraph(text="")


def print_one_screen(
    view: ReportView, console: Console, *, going_on: str | None = None, run_file: str = "", pointers: Pointers = ()
) -> None:
    """Print the summary of the page of a run on ``MOST_LINES`` lines or fewer, with as many findings as fit.

    Args:
        going_on: the position of a run that has not ended.
        run_file: the file name that replaces ``RUN_FILE`` in the commands of ``pointers``. If a line would then be too
            long, ``RUN_FILE`` is not replaced.
    """
    width = None if console.soft_wrap else console.width
    wrapped_at = width or _USUAL_WIDTH
    top = list(_build_top(view, going_on))
    figures = draw_headlines(view.headlines, console)
    figure_lines = console.render_lines(figures, pad=False) if view.headlines else []
    below = [_Paragraph(text=view.warnings_line, style="yellow")] if view.warnings_line else []
    pointed = list(_draw_pointers(pointers, run_file, width))
    taken = sum(one.count_lines(wrapped_at) for one in (*top, *below)) + len(figure_lines) + len(pointed)
    blank = bool(figure_lines) + bool(view.findings) + bool(below) + bool(pointed)
    findings = choose_findings(view.findings, MOST_LINES - taken - blank, wrapped_at)

    _print(top, console)
    if view.headlines:
        console.print()
        console.print(figures)
    for block in (findings, below):
        if block:
            console.print()
            _print(block, console)
    if pointed:
        console.print()
    for line in pointed:
        _print_line(line, console)


def _print(paragraphs: Sequence[_Paragraph], console: Console) -> None:
    for paragraph in paragraphs:
        for line in paragraph.draw(None if console.soft_wrap else console.width):
            _print_line(line, console)


def _print_line(line: Text, console: Console) -> None:
    console.print(line, highlight=False, soft_wrap=True)


def _build_top(view: ReportView, going_on: str | None) -> Iterator[_Paragraph]:
    title = drop_controls(view.title)
    yield _Paragraph(text=f"{title}  {drop_controls(view.subtitle)}".rstrip(), title=title)
    if view.about:
        yield _Paragraph(text=drop_controls(view.about), style="dim")
    yield _Paragraph(text=drop_controls(view.verdict.text), style=f"bold {LEVEL_STYLES[view.verdict.level]}")
    if view.set_up_line:
        yield _Paragraph(text=drop_controls(view.set_up_line), style="dim")
    for banner in view.banners:
        yield _Paragraph(text=drop_controls(banner), style="yellow")
    if going_on is not None:
        yield _Paragraph(text=f"going on: {drop_controls(going_on)}", style="bold")


def draw_headlines(headlines: Sequence[HeadlineView], console: Console) -> RenderableType:
    """Return a line for each figure. If several figures have the same long verdict, this verdict is shown once below
    these lines.

    If the lines are too wide for the terminal, the long verdicts of single figures are also shown below. If the lines
    are still too wide, the column of the tests is omitted in two cases: all figures have the same test, or the column
    would leave too little space for the labels.
    """
    notes: list[_Note] = []
    rows = list(_build_rows(headlines, notes, _find_shared(headlines)))
    if _count_columns(rows) > console.width:
        notes = []
        rows = list(_build_rows(headlines, notes, {each.verdict for each in headlines if _is_long(each.verdict)}))
    if _count_columns(rows) > console.width:
        others = _count_columns([["", *texts] for _, *texts in rows])
        same = len({each.test for each in headlines}) == 1
        if same or others + min(_LEAST_LABEL, max(len(label) for label, *_ in rows)) > console.width:
            rows = [texts[:-1] for texts in rows]
    drawn = rich.table.Table(box=None, show_header=False, pad_edge=False, padding=(0, _GAP, 0, 0))
    drawn.add_column()
    drawn.add_column(justify="right", style="bold", no_wrap=True)
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column()
    drawn.add_column(style="dim")
    for each, texts in zip(headlines, rows, strict=True):
        cells = [Text(text) for text in texts]
        cells[3].stylize(_style_of(each))
        drawn.add_row(*cells)
    if not notes:
        return drawn
    lines = (Text(f"{name}: {text}", style=style) for name, text, style in notes)
    return Group(drawn, *lines)


def _build_rows(
    headlines: Sequence[HeadlineView], notes: list[_Note], set_apart: AbstractSet[str]
) -> Iterator[list[str]]:
    """Yield the label, the value, the interval, the remark and the test of each figure.

    A verdict in ``set_apart`` is added to ``notes``. The row of the figure then contains only the name of the note.
    """
    names: dict[str, str] = {}
    for each in headlines:
        remark = each.remark
        if each.verdict in set_apart:
            if each.verdict not in names:
                names[each.verdict] = f"note {len(names) + 1}"
                notes.append((names[each.verdict], typeset(drop_controls(each.verdict)), _style_of(each)))
            remark = replace(each, verdict=names[each.verdict]).remark
        texts = (each.name, each.text, each.sure, typeset(remark), each.test)
        yield [drop_controls(text) for text in texts]


def _find_shared(headlines: Sequence[HeadlineView]) -> set[str]:
    """Return the long verdicts that apply to several figures."""
    counts = Counter(each.verdict for each in headlines)
    return {verdict for verdict, count in counts.items() if count > 1 and _is_long(verdict)}


def _is_long(verdict: str) -> bool:
    return len(verdict) > _LONGEST_VERDICT


def _style_of(headline: HeadlineView) -> str:
    return f"bold {LEVEL_STYLES[NoteLevel.FAILURE]}" if headline.alarm else ""


def _count_columns(rows: Sequence[Sequence[str]]) -> int:
    """Return the width of the rows of a table."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return sum(widths) + _GAP * (len(widths) - 1)


def choose_findings(tests: Sequence[FindingsView], most_lines: int, width: int) -> list[_Paragraph]:
    """Return the findings that fit, in the order of the page. Alarms have priority, followed by the first finding of
    each test.

    If there is not enough space for all of these findings, their texts are cut after the first clause.
    """
    places = [(test, number) for test in tests for number in range(len(test.sentences))]
    ranked = sorted(places, key=lambda place: (not place[0].sentences[place[1]][1], place[1] > 0))
    urgent = [place for place in ranked if place[1] == 0 or place[0].sentences[place[1]][1]]
    whole = {(test.key, number): _describe_finding(test, number) for test, number in places}
    lines = sum(whole[test.key, number].count_lines(width) for test, number in urgent)
    if lines > most_lines - (len(urgent) < len(places)):
        whole |= {(test.key, number): _describe_finding(test, number, cut=True) for test, number in urgent}
    chosen: set[tuple[str, int]] = set()
    left = most_lines
    for place, (test, number) in enumerate(ranked, start=1):
        needed = whole[test.key, number].count_lines(width)
        # One line is needed for the number of findings that are not shown. The line is not needed if this is the last
        # finding and all other findings are shown.
        counted = place < len(ranked) or len(chosen) < place - 1
        if needed <= left - counted:
            chosen.add((test.key, number))
            left -= needed
    shown = [whole[test.key, number] for test, number in places if (test.key, number) in chosen]
    if others := len(places) - len(shown):
        shown.append(_Paragraph(text=f"... and {format_count(others, 'more finding')}", style="dim"))
    return shown


def _describe_finding(test: FindingsView, number: int, *, cut: bool = False) -> _Paragraph:
    text, alarm = test.sentences[number]
    said = drop_controls(text.partition("; ")[0] if cut else text)
    title = drop_controls(test.title)
    style = f"bold {LEVEL_STYLES[NoteLevel.FAILURE]}" if alarm else ""
    named = said if said.startswith(title) else f"{title}: {said}"
    return _Paragraph(text=typeset(f"{named}."), title=title, style=style)


def _draw_pointers(pointers: Pointers, run_file: str, width: int | None) -> Iterator[Text]:
    """Yield the commands with their descriptions. If the terminal is too narrow, a description is printed below its
    command instead of beside it.
    """
    named = [command.replace(RUN_FILE, drop_controls(run_file)) for command, _ in pointers]
    if width is not None and any(len(command) > width for command in named):
        named = [command for command, _ in pointers]
    longest = max(map(len, named), default=0)
    beside = width is None or all(longest + _GAP + len(shows) <= width for _, shows in pointers)
    for command, (_, shows) in zip(named, pointers, strict=True):
        if beside:
            yield Text.assemble((command.ljust(longest + _GAP), "bold"), shows)
            continue
        yield Text(command, style="bold")
        for line in wrap_words(shows, width or longest, indent=_HANGING, hanging=_HANGING):
            yield Text(line)
