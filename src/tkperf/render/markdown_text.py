"""Texts and tables of Markdown; text from outside stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tkperf.model.units import drop_controls


def inert(value: object) -> str:
    """Return text from outside, on one line and inert: no markup, HTML, link, mention, control character."""
    if value is None:
        return "not known"
    line = " ".join(str(value).split())
    visible = drop_controls(line)
    # An invisible word joiner keeps wikis from making links and mentions.
    unlinked = re.sub(r"(://|www\.|@)", "\\1\u2060", visible)
    no_html = unlinked.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]|#!~])", r"\\\1", no_html)


def inert_line(text: str) -> str:
    """Return a line of its own; a line that begins with a dash would be an item of a list."""
    return f"\\{inert(text)}" if text.startswith("-") else inert(text)


def render_rows(
    head: Sequence[str], rows: Sequence[Sequence[str]], bold: Sequence[Sequence[bool]] = ()
) -> Iterator[str]:
    """Yield the lines of a table, figures to the right; ``bold``: whether each cell is."""
    yield f"| {' | '.join(map(inert, head))} |"
    yield "|" + "---:|" * len(head)
    for row, marks in zip(rows, bold or [(False,) * len(head)] * len(rows), strict=True):
        cells = (
            f"**{inert(cell)}**" if mark else inert(cell)
            for cell, mark in zip(row, marks, strict=True)
        )
        yield f"| {' | '.join(cells)} |"
