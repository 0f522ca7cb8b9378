"""Print the page of a run in the terminal, and the short summary at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto
from textwrap import wrap

import rich.table
from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.rule import Rule

from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.units import NOT_MEASURED, drop_controls, format_count, wrap_words
from tkperf.page.facts import typeset
from tkperf.page.page import Block, FactBlocks, NotesView, ReportView, SectionView, TableView, TestView
from tkperf.page.verdict_texts import NoteLevel
from tkperf.render.terminal.comparison_text import print_curves, print_decision
from tkperf.render.terminal.console import LEVEL_STYLES, plain, print_verdict
from tkperf.render.terminal.drawings import print_charts
from tkperf.render.terminal.margins_text import print_bars, print_margins, print_tiles
from tkperf.render.terminal.one_screen import draw_headlines

_HEADING_WIDTH = 80
# The greatest number of alarms in a summary. More alarms would not make the summary clearer. The command tkperf show
# prints all alarms.
_MOST_ALARMS = 5
# The indent of the items of remarks, and the indent of further lines of an item.
_INDENT, _HANGING = 2, 4
# The number of blanks between two columns, in a list and in other tables.
_GAP, _PADDED_GAP = 2, 3
_LABEL = 28
# The smallest width of a column of words. A narrower column would be hard to read, because most lines would contain a
# single word.
_LEAST_WORDS = 16


def print_page(view: ReportView, console: Console, *, going_on: str | None = None, titled: bool = True) -> None:
    """Print all content of a page that a terminal can show.

    Args:
        going_on: the position of a run that has not ended.
        titled: whether to begin with the title. Otherwise the output begins with the verdict.
    """
    if titled:
        _print_title(view, console)
    if view.about:
        console.print(plain(view.about), style="dim", highlight=False)
    print_verdict(view.verdict, console)
    if view.set_up_line:
        console.print(plain(view.set_up_line), style="dim", highlight=False)
    for banner in view.banners:
        console.print(plain(banner), style="yellow", highlight=False)
    if going_on is not None:
        console.print(f"going on: {plain(going_on)}", style="bold", highlight=False)
    for sentence in view.answer:
        console.print(plain(sentence), highlight=False)
    if view.decision is not None and view.decision.is_heat_map:
        print_margins(view.decision, console)
    elif view.decision is not None:
        print_decision(view.decision, console)
        print_curves(view.lead_charts, console)
    _print_headlines(view, console)
    _print_findings(view, console)
    for block in view.overview:
        print_block(block, console)
    _print_warnings(view, console)
    for test in view.tests:
        _print_test(test, console, curves=view.decision is not None and not view.decision.is_heat_map)
    if view.tests and view.disclosure:
        _print_heading("Set-up and disclosure", console)
    _print_facts(view.disclosure, console)
    if view.words:
        console.print()
    for words in view.words:
        console.print(plain(typeset(words)), style="dim", highlight=False)


def _print_title(view: ReportView, console: Console) -> None:
    """Print the title. If the title is a sentence, it has a separate line, because the sentence may end with a
    number.
    """
    title, subtitle = f"[bold]{plain(view.title)}[/bold]", plain(view.subtitle)
    console.print(title if not subtitle or view.decision is not None else f"{title}  {subtitle}", highlight=False)
    if subtitle and view.decision is not None:
        console.print(subtitle, style="dim", highlight=False)


def print_end(view: ReportView, console: Console) -> None:
    """Print the facts that a user must know when a run has ended: the verdict, the headline figures, and commands that
    show more.
    """
    console.print(f"[bold]{plain(view.title)}[/bold]", highlight=False)
    print_verdict(view.verdict, console)
    _print_headlines(view, console)
    alarms = [
        text if each.title.lower() in text.lower() else f"{each.title}: {text}"
        for each in view.findings
        for text, alarm in each.sentences
        if alarm
    ]
    lines = [f"{text}." for text in alarms[:_MOST_ALARMS]]
    if len(alarms) > _MOST_ALARMS:
        lines.append(f"... and {format_count(len(alarms) - _MOST_ALARMS, 'more finding')}")
    lines += [view.warnings_line] if view.warnings_line else []
    if lines:
        console.print()
    for line in lines:
        console.print(plain(line), style="yellow", highlight=False)


def print_batch_end(view: ReportView, console: Console) -> None:
    """Print the facts that a user must know when a batch has ended: the verdict, the smallest margins, and the drives
    that were not measured.
    """
    _print_title(view, console)
    print_verdict(view.verdict, console)
    for name, sentence in () if view.decision is None else view.decision.lines:
        console.print(plain(f"{name}: {sentence}"), highlight=False)
    for block in view.overview:
        if isinstance(block, NotesView):
            print_block(block, console)


def _print_headlines(view: ReportView, console: Console) -> None:
    if not view.headlines:
        return
    if view.headlines[0].strip is not None:
        print_tiles(view.headlines, console)
        return
    console.print()
    console.print(draw_headlines(view.headlines, console))


def _print_findings(view: ReportView, console: Console) -> None:
    for test in view.findings:
        console.print()
        console.print(f"[bold]{plain(test.title)}[/bold]", highlight=False)
        for text, alarm in test.sentences:
            _print_indented(typeset(f"{plain(text)}."), console, style="bold red" if alarm else "")


def _print_warnings(view: ReportView, console: Console) -> None:
    if not view.grouped_warnings:
        return
    console.print()
    console.print(plain(view.warnings_line), style="yellow", highlight=False)
    for group in view.grouped_warnings:
        for text in group.texts:
            _print_indented(typeset(f"{group.title}: {plain(text)}"), console, style="yellow")


def _print_indented(text: str, console: Console, style: str = "", *, indent: int = 2) -> None:
    """Print a text with markup and an indent.

    On a terminal, each line of the text is indented.
    """
    if console.soft_wrap:
        console.print(f"{'':{indent}}{text}", style=style, highlight=False)
        return
    console.print(Padding(text, (0, 0, 0, indent), expand=False), style=style, highlight=False)


def _print_test(test: TestView, console: Console, *, curves: bool) -> None:
    """Print a test.

    Args:
        curves: whether to print a line for each curve in the charts of the test. A comparison prints such a line for
            each run.
    """
    _print_heading(test.title, console)
    for name, fact in test.facts:
        console.print(f"[dim]{name}:[/dim] {plain(fact)}", highlight=False)
    print_tiles(test.headlines, console)
    _print_tables(test.tables, console)
    if curves:
        print_curves(test.charts, console)
    for section in test.sections:
        _print_section(test, section, console)
    _print_tables(test.events.tables, console)


def _print_heading(title: str, console: Console) -> None:
    console.print()
    # If the output goes to a pipe, the console is wide enough for every table. A heading does not need this width.
    heading = Rule(f"[bold]{plain(title)}[/bold]", align="left")
    console.print(heading, width=min(console.width, _HEADING_WIDTH))


def _print_section(test: TestView, section: SectionView, console: Console) -> None:
    if section.title != test.title:
        console.print()
        console.print(f"[bold]{plain(section.title)}[/bold]", highlight=False)
    console.print(f"steady state: [bold]{plain(section.state)}[/bold]; {plain(section.summary)}", highlight=False)
    for found in section.over_time:
        _print_indented(typeset(f"over time: {plain(found)}"), console)
    print_charts(section.charts, console)
    determination = () if section.determination is None else (section.determination,)
    _print_tables((*determination, *section.tables), console)


def _print_tables(tables: Sequence[TableView], console: Console) -> None:
    for table in tables:
        print_table(table, console)


def print_block(block: Block, console: Console) -> None:
    """Print a table or a list of remarks below its title."""
    if isinstance(block, TableView):
        print_table(block, console, title_style="bold")
        return
    console.print(f"\n[bold]{plain(block.title)}[/bold]", highlight=False)
    for note in block.notes:
        lines = _wrap(note.text, console, _INDENT)
        for detail in note.details:
            lines += _wrap(detail, console, _INDENT + _HANGING)
        for line in lines:
            console.print(plain(line), style=LEVEL_STYLES[note.level], highlight=False)
        indent = _INDENT + _HANGING * bool(note.text)
        for line in _in_lines(note.command, console.width - indent):
            indented = f"{'':{indent}}{drop_controls(line)}"
            console.print(indented, markup=False, highlight=False, soft_wrap=True)


def _wrap(text: str, console: Console, indent: int) -> list[str]:
    """Return a text as lines without breaking words. The first line is highlighted."""
    return wrap_words(drop_controls(text), console.width, indent=indent, hanging=indent + _HANGING)


def _in_lines(command: str, width: int) -> list[str]:
    """Return a command as lines without breaking words. A shell reads these lines as one command."""
    if len(command) <= width:
        return [command] if command else []
    lines = wrap(command, width - 2, break_long_words=False, break_on_hyphens=False)
    return [*(f"{line} \\" for line in lines[:-1]), *lines[-1:]]


def print_table(table: TableView, console: Console, *, title_style: str = "") -> None:
    """Print a table.

    If a table is too wide, the first layout that fits is used:

    1. Rows and columns are swapped.
    2. Labels are broken into lines between words.
    3. Labels and other cells with words are broken into lines between words.
    4. The cells of each row are listed below the label of the row.

    If a list (a table with ``priorities``) is too wide, columns are omitted instead. If the output does not go to a
    terminal, its lines are as wide as the table.
    """
    width = console.width
    if console.soft_wrap:
        width = max(width, measure_width(table))
    elif table.priorities:
        table = choose_columns(table, width)
        width = max(width, measure_width(table))
    elif table.labels == 1 and measure_width(table) > width >= measure_width(turned := _turn(table)):
        table = turned
    console.print()
    if table.title:
        console.print(plain(table.title), style=title_style, highlight=False)
    headed, is_list = any(table.columns), bool(table.priorities)
    if headed and measure_width(table, breaks=_Breaks.WORDS) > width:
        _list_cells(table, console)
        _print_end_of_table(table, console)
        return
    drawn = rich.table.Table(
        box=SIMPLE_HEAD if headed else None,
        show_edge=False,
        show_header=headed,
        pad_edge=not is_list,
        padding=(0, 1, 0, 0 if is_list else 1),
    )
    whole = measure_width(table, breaks=_Breaks.LABELS) <= width
    numeric = table.numeric
    for number, (name, *cells) in enumerate(zip(table.columns, *table.rows, strict=True)):
        is_label = number < table.labels
        head, kept = plain(name), not is_label and (whole or (headed and numeric[number]))
        if kept and not is_list:  # The column is as wide as its heading, so that no cell must be broken.
            head = "\n".join(wrap(head, max(map(len, (*cells, *head.split())))))
        named = is_label and (not headed or any(map(str.isalpha, "".join(cells))))
        words = named or not numeric[number]
        justify: JustifyMethod = "left" if words else "right"
        drawn.add_column(head, justify=justify, overflow="fold", no_wrap=kept)
    for number in table.lead:
        row = table.rows[number]
        levels = table.levels[number] if table.levels else (None,) * (len(row) - table.labels)
        drawn.add_row(
            *(_indent(plain(typeset(label))) for label in row[: table.labels]),
            *map(colour, row[table.labels :], levels),
        )
    before, console.width = console.width, width
    console.print(drawn)
    console.width = before
    _print_end_of_table(table, console)


def _list_cells(table: TableView, console: Console) -> None:
    """Print the label of each row on a separate line. Below this line, print the other cells of the row.

    Each cell begins with the heading of its column.
    """
    for number in table.lead:
        label, *cells = table.rows[number]
        levels = table.levels[number] if table.levels else (None,) * (len(table.columns) - table.labels)
        levels = (*(None,) * (table.labels - 1), *levels)
        indent = len(label) - len(label.lstrip("\N{NO-BREAK SPACE}"))
        _print_indented(f"[bold]{plain(typeset(label.strip()))}[/bold]", console, indent=indent)
        line = "; ".join(
            f"{plain(head)} {colour(cell, level)}"
            for head, cell, level in zip(table.columns[1:], cells, levels, strict=True)
            if cell not in ("", NOT_MEASURED)
        )
        if line:
            _print_indented(line, console, indent=indent + _INDENT)


def _print_end_of_table(table: TableView, console: Console) -> None:
    """Print the number of rows that were omitted, and the notes."""
    if more := len(table.rows) - len(table.lead):
        where = "between them" if table.stepwise else "after them"
        console.print(f"{format_count(more, 'row')} {where}: in the report", style="dim")
    print_notes(table, console)


def _indent(label: str) -> Padding | str:
    """Return a label whose lines all have the same indent, even if the label is broken into several lines."""
    words = label.lstrip("\N{NO-BREAK SPACE}")
    return Padding(words, (0, 0, 0, len(label) - len(words))) if words != label else label


def choose_columns(table: TableView, width: int, changing: Sequence[int | None] = ()) -> TableView:
    """Return a table with only the columns that fit. The priorities of the columns decide which columns are omitted. A
    column without any value is always omitted first.

    Args:
        changing: fixed width of each column whose cells change from second to second. None means that the cells of a
            column determine its width.
    """
    columns = range(len(table.columns))
    fixed = changing or [None] * len(columns)
    empty = [fixed[number] is None and all(row[number] == NOT_MEASURED for row in table.rows) for number in columns]
    widths = [
        measure_width(table.take([number])) if (given := fixed[number]) is None else given + _GAP for number in columns
    ]
    kept: list[int] = []
    for number in sorted(columns, key=lambda one: (empty[one], table.priorities[one])):
        if not table.priorities[number] or sum(widths[one] for one in (*kept, number)) <= width:
            kept.append(number)
    return table.take(sorted(kept))


def print_notes(table: TableView, console: Console) -> None:
    for note in table.notes:
        console.print(plain(typeset(note)), style="dim", highlight=False)


def colour(cell: str, level: NoteLevel | None) -> str:
    """Return the text of a cell as markup. The colour shows the severity of the content of the cell."""
    text = plain(typeset(cell))
    return text if level is None else f"[bold {LEVEL_STYLES[level]}]{text}[/]"


class _Breaks(Enum):
    """The cells of a table that can be broken into several lines. Headings can always be broken."""

    NONE = auto()
    LABELS = auto()
    WORDS = auto()


def measure_width(table: TableView, *, breaks: _Breaks = _Breaks.NONE) -> int:
    """Return the smallest possible width of a table.

    If the cells of a column can be broken, the column is as wide as its longest word. If a cell has ``_LEAST_WORDS``
    characters or more, the column is also at least this wide.
    """
    numeric = table.numeric
    width = 0
    for number, (head, *cells) in enumerate(zip(table.columns, *table.rows, strict=True)):
        widest = max(map(len, ("", *cells)))
        if breaks is not _Breaks.NONE and (number < table.labels or (breaks is _Breaks.WORDS and not numeric[number])):
            longest_word = max((len(word) for cell in cells for word in cell.split()), default=0)
            widest = max(longest_word, min(widest, _LEAST_WORDS))
        heads = [head] if table.priorities else head.split()
        width += max(widest, *map(len, heads), 0)
        width += _GAP if table.priorities else _PADDED_GAP
    return width


def _turn(table: TableView) -> TableView:
    names = tuple(row[0] for row in table.rows)
    columns = tuple(zip(table.columns[1:], *(row[1:] for row in table.rows), strict=True))
    levels = tuple(zip(*table.levels, strict=True))
    return replace(table, columns=(table.columns[0], *names), rows=columns, levels=levels)


def _print_facts(blocks: FactBlocks, console: Console) -> None:
    for title, facts in blocks:
        console.print()
        console.print(f"[bold]{plain(title)}[/bold]", highlight=False)
        named = max(len(name) for name, _ in facts)
        if console.soft_wrap:
            for name, fact in facts:
                console.print(f"{plain(name).ljust(named)}  {plain(fact)}".lstrip(), highlight=False)
            continue
        drawn = rich.table.Table.grid(padding=(0, 2, 0, 0))
        drawn.add_column(style="dim", max_width=_LABEL)
        drawn.add_column(overflow="fold")
        width = console.width - min(named, _LABEL) - 2
        for name, fact in facts:
            if named:
                lines = wrap_words(fact, width) if console.is_terminal else [fact]
                drawn.add_row(plain(name), plain("\n".join(lines)))
            else:
                console.print(plain(fact), highlight=False)
        if named:
            console.print(drawn)


# The greatest number of claims that are listed below a run. Failed claims are listed first.
_MOST_LINES = 10


def print_check(view: ReportView, console: Console, *, brief: bool = False) -> None:
    """Print the page of a check. The page contains the verdict, a table, and the facts that a reader must know.

    Args:
        brief: whether to show only the cautions and failures of each row if the table is too wide for the terminal.
    """
    print_verdict(view.verdict, console)
    for banner in view.banners:
        console.print(plain(banner), style="yellow", highlight=False)
    for table in view.tables:
        if table.strips:
            print_bars(table, console)
        if measure_width(table) <= console.width:
            print_table(table, console)
            continue
        _print_blocks(table, console, brief=brief)
        print_notes(table, console)


def _print_blocks(table: TableView, console: Console, *, brief: bool) -> None:
    """Print the name and the first cell of each row on one line. Print the other cells below this line.

    Rows with the same text form one block. On a brief page, all rows without cautions and failures form the last block.
    """
    blocks: dict[tuple[str, ...], list[str]] = {}
    passed = []
    for (name, first, *others), levels in zip(table.rows, table.levels, strict=True):
        if brief and not any(levels):
            passed.append(f"{plain(name)} {plain(first)}")
            continue
        lines = _describe_cells(table.columns[2:], others, levels[1:], brief=brief)
        blocks.setdefault((colour(first, levels[0]), *lines), []).append(plain(name))
    for (first, *lines), names in blocks.items():
        console.print(f"{', '.join(names)}: {first}", highlight=False)
        for line in lines:
            _print_indented(line, console, indent=4)
    if passed:
        console.print("; ".join(passed), highlight=False)


def _describe_cells(
    columns: Sequence[str], cells: Sequence[str], levels: Sequence[NoteLevel | None], *, brief: bool
) -> list[str]:
    """Return a line for each cell. Failures are first. If the page is not brief, all cells are on one line."""
    named = [
        (level, f"{plain(column)}: {colour(cell, level)}")
        for column, cell, level in zip(columns, cells, levels, strict=True)
        if cell not in ("", NOT_MEASURED) and (level is not None or not brief)
    ]
    named.sort(key=lambda cell: cell[0] is not NoteLevel.FAILURE)
    lines = [line for _, line in named]
    if not brief:
        return ["; ".join(lines)]
    if len(lines) > _MOST_LINES:
        more = f"... and {len(lines) - _MOST_LINES} more, which --html and --json have"
        lines[_MOST_LINES:] = [more]
    return lines


# The greatest length of a path on the narrowest terminal.
_LEAST_PATH = 20


def print_status(view: ReportView, console: Console) -> None:
    """Print the runs. On a terminal, paths are shortened and only the columns that fit are shown. Other output contains
    all columns, and its lines can have any length.
    """
    if console.is_terminal:
        most = max(_LEAST_PATH, console.width // 4)
        view = replace(view, overview=tuple(_shorten(block, most) for block in view.overview))
    print_page(view, console, titled=False)


def _shorten(block: Block, most: int) -> Block:
    """Return the table with shorter paths. A path is shortened at its beginning, because its end distinguishes runs.
    The suffix of the file is omitted, because commands find a run without it.
    """
    if not isinstance(block, TableView):
        return block
    rows = ((row[0].removesuffix(RUN_FILE_SUFFIX), *row[1:]) for row in block.rows)
    return replace(
        block,
        rows=tuple(
            row if len(row[0]) <= most else (f"\N{HORIZONTAL ELLIPSIS}{row[0][-most + 1 :]}", *row[1:]) for row in rows
        ),
    )
