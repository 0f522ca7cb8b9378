"""Report for print: Vega draws the charts, and typst sets the document.

The same run file gives the same bytes: nothing in it comes from the clock or the machine that
prints. Only texts in scripts that typst has no fonts for use the system's fonts.

Run as a module, this is the process that a ``Printer`` starts: a document comes in, a PDF goes out.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
from importlib import resources

import typst

from tkperf.model.units import drop_controls
from tkperf.render.drawing import draw_all, load_vega
from tkperf.render.fonts import FOLDER
from tkperf.render.paper import Document, charts_of

# Characters that neither Inter nor typst's own fonts have: all but Latin, Greek, Cyrillic, punctuation and a few signs.
_OTHER_SCRIPT = re.compile(
    r"[^\u0000-\u052f\u2000-\u209f\u2190-\u2195\u2212\u2248\u2260\u2264\u2265]"
)


def set_document(document: Document) -> bytes:
    """Return the PDF, fonts embedded. Drawings take the place of specifications in the document."""
    charts = charts_of(document)
    drawings = draw_all([chart.pop("spec") for chart in charts])
    for chart, drawing in zip(charts, drawings, strict=True):
        chart["svg"] = drop_controls(drawing)
    template = resources.files("tkperf.render") / "templates/report.typ"
    data = json.dumps(document, ensure_ascii=False)
    page: bytes = typst.compile(
        template.read_bytes(),
        sys_inputs={"report": data},
        font_paths=typst.Fonts(
            # Other versions of the same fonts would give other bytes.
            include_system_fonts=_OTHER_SCRIPT.search(data) is not None,
            font_paths=[FOLDER],
        ),
    )
    return page


if __name__ == "__main__":
    load_vega()  # while the results are still being read
    given = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this one
    sys.stdout.buffer.write(set_document(given))
