"""A run's page as Markdown, for wikis, issues and mails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tkperf.model.units import drop_controls
from tkperf.page.page import Block, FactBlocks, ReportView, SectionView, TableView, TestView
from tkperf.page.verdict import NoteLevel
from tkperf.render.markdown_text import inert as _text
from tkperf.render.markdown_text import inert_line, render_rows


def render_markdown(view: ReportView) -> str:
    """Return everything that Markdown can show of a page: the charts are left out."""
    lines = [f"# {_text(view.title)}", ""]
    lines += [f"{_text(line)}\n" for line in (view.subtitle, view.about) if line]
    lines += [f"**{_text(view.verdict.text)}**", ""]
    lines += [f"**{_text(banner)}**\n" for banner in view.banners]
    lines += [
        *(f"{inert_line(sentence)}\n" for sentence in view.answer),
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


def _headlines(view: ReportView) -> Iterator[str]:
    if view.headlines:
        yield from ("| | | | | |", "|---|---:|---|---|---|")
        for one in view.headlines:
            yield (
                f"| {_text(one.label)} | **{_text(one.text)}** | {_text(one.sure)} | {_text(one.verdict)} | {_text(one.test)} |"
            )
        yield ""


def _findings(view: ReportView) -> Iterator[str]:
    for test in view.findings:
        for sentence, alarm in test.sentences:
            text = f"{_text(sentence)}."
            yield f"- {_text(test.title)}: {f'**{text}**' if alarm else text}"
    yield ""


def _warnings(view: ReportView) -> Iterator[str]:
    """Yield each warning once, under its subject."""
    if view.grouped_warnings:
        yield from (f"{view.warnings_line}:", "")
        for group in view.grouped_warnings:
            yield from (f"- {group.title}: {_text(text)}" for text in group.texts)
        yield ""


def _test(test: TestView) -> Iterator[str]:
    yield from (f"## {_text(test.title)}", "")
    yield from (f"- {name}: {_text(fact)}" for name, fact in test.facts)
    yield ""
    yield from _tables(test.tables)
    for section in test.sections:
        yield from _section(test, section)
    yield from _tables(test.course.tables)


def _section(test: TestView, section: SectionView) -> Iterator[str]:
    if section.title != test.title:
        yield from (f"### {_text(section.title)}", "")
    yield from (f"Steady state: **{_text(section.state)}**; {_text(section.summary)}", "")
    if section.over_time:
        yield from (f"- {_text(found)}" for found in section.over_time)
        yield ""
    determination = () if section.determination is None else (section.determination,)
    yield from _tables((*determination, *section.tables))


def _tables(tables: Iterable[TableView]) -> Iterator[str]:
    for table in tables:
        yield from (_text(table.title), "")
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
        yield from (_text(block.title), "")
        for note in block.notes:
            yield f"- {'; '.join(_text(text) for text in (note.text, *note.details) if text)}"
            if note.command:
                yield from ("", f"      {drop_controls(note.command)}", "")
        yield ""


def _facts(blocks: FactBlocks) -> Iterator[str]:
    for title, facts in blocks:
        yield from (f"### {_text(title)}", "")
        named = [(name, fact) for name, fact in facts if name]
        if named:
            yield from ("| | |", "|---|---|")
            yield from (f"| {_text(name)} | {_text(fact)} |" for name, fact in named)
            yield ""
        for fact in (fact for name, fact in facts if not name):
            yield from (_text(fact), "")
