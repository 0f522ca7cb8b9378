"""What is printed, as plain data: the type, and where its charts are. All that the process which makes a PDF has to know of it.

That process loads no more than it needs: what a view is made from would take it four times as long.
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]


def parts_of(document: Document) -> list[dict[str, Any]]:
    """All of its tests, their courses and their sections: what has rows of ``charts``."""
    return [
        part for test in document["tests"] for part in (test, test["course"], *test["sections"])
    ]


def charts_of(document: Document) -> list[dict[str, Any]]:
    """All that are drawn, in their order; ``spec`` of each is the specification."""
    rows = (row for part in parts_of(document) for row in part["charts"])
    return [chart for row in (*document["overview_charts"], *rows) for chart in row]
