"""Export the page of a run as Markdown, for wikis, issues and mails."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tkperf.model.units import drop_controls
from tkperf.page.page import Block, FactBlocks, HeadlineView, ReportView, SectionView, TableView, TestView
from tkperf.page.verdict_texts import NoteLevel


def inert(value: object) -> str:
    """Return text from other sources on one line, without markup, HTML, links, mentions and control characters."""
    if value is None:
        return "not known"
    line = " ".join(str(value).split())
    visible = drop_controls(line)
    # An invisible word joiner prevents wikis from creating links and mentions.
    unlinked = re.sub(r"(://|www\.|@)", "\\1\u2060", visible)
    no_html = unlinked.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]|#!~])", r"\\\1", no_html)


def inert_line(text: str) -> str:
    """Return a text for a separate line. A dash at the beginning of the text is escaped, because such a dash would
    start an item of a list.
    """
    return f"\\{inert(text)}" if text.startswith("-") else inert(text)


def render_rows(
    head: Sequence[str], rows: Sequence[Sequence[str]], bold: Sequence[Sequence[bool]] = ()
) -> Iterator[str]:
    """Yield the lines of a table in which figures are aligned to the right.

    Args:
        bold: whether each cell is bold.
    """
    yield f"| {' | '.join(map(inert, head))} |"
    yield "|" + "---:|" * len(head)
    for row, marks in zip(rows, bold or [(False,) * len(head)] * len(rows), strict=True):
        cells = (f"**{inert(cell)}**" if mark else inert(cell) for cell, mark in zip(row, marks, strict=True))
        yield f"| {' | '.join(cells)} |"


def render_markdown(view: ReportView) -> str:
    """Return all content of a page that Markdown can show. Charts are omitted."""
    lines = [f"# {inert(view.title)}", ""]
    lines += [f"{inert(line)}\n" for line in (view.subtitle, view.about) if line]
    lines += [f"**{inert(view.verdict.text)}**", ""]
    lines += [f"{inert(view.set_up_line)}\n"] if view.set_up_line else []
    lines += [f"**{inert(banner)}**\n" for banner in view.banners]
    lines += [
        *(f"{inert_line(sentence)}\n" for sentence in view.answer),
        *_decision(view),
        *_headlines(view),
        *_findings(view),
        *_blocks(view.overview),
        *_warnings(view),
        *(() if view.claims is None else _tables((view.claims,))),
    ]
    for test in view.tests:
        lines += _test(test)
    if view.disclosure:
        lines += ["## Set-up and disclosure", "", *_facts(view.disclosure)]
    lines += ["## How to read this", ""] if view.words else []
    lines += [f"{inert_line(words)}\n" for words in view.words]
    return "\n".join(lines).rstrip() + "\n"


def _decision(view: ReportView) -> Iterator[str]:
    """Yield a line for each use. The lines are followed by the matrix, which contains the interval of each value."""
    if view.decision is None:
        return
    for name, sentence in view.decision.lines:
        yield f"{f'**{inert(name)}**: ' if name else ''}{inert_line(sentence)}\n"
    head = ("", *(f"{column.title} ({column.detail})" for column in view.decision.columns))
    rows = [
        (
            f"{row.whole_name} ({row.detail})" if row.detail and row.detail not in row.whole_name else row.whole_name,
            *(", ".join(filter(None, (f"{cell.text} {cell.interval} {cell.sign}", cell.words))) for cell in row.cells),
        )
        for row in view.decision.rows
    ]
    yield from render_rows(head, rows)
    yield from ("", inert_line("; ".join(f"{sign}: {words}" for sign, words in view.decision.legend)), "")


def _headlines(view: ReportView) -> Iterator[str]:
    if view.headlines and view.headlines[0].strip is not None:
        yield from _tiles(view.headlines)
    elif view.headlines:
        yield from ("| | | | | |", "|---|---:|---|---|---|")
        for one in view.headlines:
            yield (
                f"| {inert(one.name)} | **{inert(one.text)}** | {inert(one.sure)} | {inert(one.remark)} | "
                f"{inert(one.test)} |"
            )
        yield ""


def _tiles(tiles: Sequence[HeadlineView]) -> Iterator[str]:
    """Yield a table with a row for each figure of many drives. A row contains the median, the lowest and the highest
    value, and the drive that needs attention.
    """
    if not tiles:
        return
    rows = [(tile.label, tile.text, tile.sure, tile.verdict) for tile in tiles]
    yield from render_rows(("Figure", "Median", "From, to", "Worst"), rows)
    yield ""


def _findings(view: ReportView) -> Iterator[str]:
    for test in view.findings:
        for sentence, alarm in test.sentences:
            text = f"{inert(sentence)}."
            yield f"- {inert(test.title)}: {f'**{text}**' if alarm else text}"
    yield ""


def _warnings(view: ReportView) -> Iterator[str]:
    """Yield each warning once. The line of a warning begins with the subject of the warning."""
    if view.grouped_warnings:
        yield from (f"{view.warnings_line}:", "")
        for group in view.grouped_warnings:
            yield from (f"- {group.title}: {inert(text)}" for text in group.texts)
        yield ""


def _test(test: TestView) -> Iterator[str]:
    yield from (f"## {inert(test.title)}", "")
    yield from (f"- {name}: {inert(fact)}" for name, fact in test.facts)
    yield ""
    yield from _tiles(test.headlines)
    yield from _tables(test.tables)
    for section in test.sections:
        yield from _section(test, section)
    yield from _tables(test.events.tables)


def _section(test: TestView, section: SectionView) -> Iterator[str]:
    if section.title != test.title:
        yield from (f"### {inert(section.title)}", "")
    yield from (f"Steady state: **{inert(section.state)}**; {inert(section.summary)}", "")
    if section.over_time:
        yield from (f"- {inert(found)}" for found in section.over_time)
        yield ""
    determination = () if section.determination is None else (section.determination,)
    yield from _tables((*determination, *section.tables))


def _tables(tables: Iterable[TableView]) -> Iterator[str]:
    for table in tables:
        yield from (inert(table.title), "")
        yield from render_rows(table.columns, table.rows, _find_failures(table))
        yield ""
        for note in table.notes:
            yield from (inert_line(note), "")


def _find_failures(table: TableView) -> list[tuple[bool, ...]]:
    labels = (False,) * table.labels
    return [(*labels, *(level is NoteLevel.FAILURE for level in row)) for row in table.levels]


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, TableView):
            yield from _tables((block,))
            continue
        yield from (inert(block.title), "")
        for note in block.notes:
            yield f"- {'; '.join(inert(text) for text in (note.text, *note.details) if text)}"
            if note.command:
                yield from ("", f"      {drop_controls(note.command)}", "")
        yield ""


def _facts(blocks: FactBlocks) -> Iterator[str]:
    for title, facts in blocks:
        yield from (f"### {inert(title)}", "")
        named = [(name, fact) for name, fact in facts if name]
        if named:
            yield from ("| | |", "|---|---|")
            yield from (f"| {inert(name)} | {inert(fact)} |" for name, fact in named)
            yield ""
        for fact in (fact for name, fact in facts if not name):
            yield from (inert(fact), "")
