"""Define the parts of a printed report as plain data: its fonts, and the places of its charts.

The process that writes a PDF imports only this module, because the import of the modules that build a page takes four
times as long as the import of this module.
"""

from __future__ import annotations

import base64
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

Document = dict[str, Any]


def parts_of(document: Document) -> list[dict[str, Any]]:
    """Return the parts that contain rows of ``charts``. These are all tests, their events, and their sections."""
    return [part for test in document["tests"] for part in (test, test["events"], *test["sections"])]


def charts_of(document: Document) -> list[dict[str, Any]]:
    """Return all charts that are drawn, in their order. The key ``spec`` of a chart contains its specification."""
    rows = (row for part in parts_of(document) for row in part["charts"])
    return [
        chart
        for row in (*document["opening_chart"], *document["lead_charts"], *document["overview_charts"], *rows)
        for chart in row
    ]


FAMILY = "Inter"
STACK = f'{FAMILY}, "Liberation Sans", Arial, Helvetica, sans-serif'
"""The font families of a page. The letters of all these families have about the same width."""

FOLDER = Path(str(resources.files("tkperf.render") / "templates/fonts"))
FILES = {400: FOLDER / "Inter-Regular.ttf", 700: FOLDER / "Inter-Bold.ttf"}
"""Font files. The weight of the font is the key."""


@cache
def build_font_faces() -> str:
    """Return CSS that embeds the fonts in the page."""
    return "\n".join(
        f"@font-face {{ font-family: {FAMILY}; font-weight: {weight}; "
        f"src: url(data:font/ttf;base64,{base64.b64encode(path.read_bytes()).decode()}); }}"
        for weight, path in FILES.items()
    )
