"""The printed report as plain data: its fonts, and the places of its charts. The process that makes a PDF needs no
more.

That process loads only this module, because the modules that build a page take four times as long to load.
"""

from __future__ import annotations

import base64
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

Document = dict[str, Any]


def parts_of(document: Document) -> list[dict[str, Any]]:
    """Return all tests, their courses and their sections: the parts with rows of ``charts``."""
    return [part for test in document["tests"] for part in (test, test["events"], *test["sections"])]


def charts_of(document: Document) -> list[dict[str, Any]]:
    """Return all charts that are drawn, in their order. ``spec`` of each chart is its specification."""
    rows = (row for part in parts_of(document) for row in part["charts"])
    return [
        chart
        for row in (*document["opening_chart"], *document["lead_charts"], *document["overview_charts"], *rows)
        for chart in row
    ]


FAMILY = "Inter"
STACK = f'{FAMILY}, "Liberation Sans", Arial, Helvetica, sans-serif'
"""The fonts of a page. The alternatives are families of about the same width."""

FOLDER = Path(str(resources.files("tkperf.render") / "templates/fonts"))
FILES = {400: FOLDER / "Inter-Regular.ttf", 700: FOLDER / "Inter-Bold.ttf"}
"""Font files by weight."""


@cache
def build_font_faces() -> str:
    """Return the fonts as CSS that is embedded in the page."""
    return "\n".join(
        f"@font-face {{ font-family: {FAMILY}; font-weight: {weight}; "
        f"src: url(data:font/ttf;base64,{base64.b64encode(path.read_bytes()).decode()}); }}"
        for weight, path in FILES.items()
    )
