"""Printed report as plain data: its type, and the place of its charts. The process that makes a PDF needs no more.

That process loads only this: the modules behind a view would take it four times as long.
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]


def parts_of(document: Document) -> list[dict[str, Any]]:
    """Return all tests, their courses and their sections: the parts with rows of ``charts``."""
    return [part for test in document["tests"] for part in (test, test["course"], *test["sections"])]


def charts_of(document: Document) -> list[dict[str, Any]]:
    """Return all charts that are drawn, in their order; ``spec`` of each is the specification."""
    rows = (row for part in parts_of(document) for row in part["charts"])
    return [chart for row in (*document["story"], *document["overview_charts"], *rows) for chart in row]
