"""Write the printed report. Vega draws the charts, and typst sets the document.

The same run file always results in the same bytes, because the content of the PDF does not depend on the clock or on
the machine. There is one exception: if the fonts of typst do not contain the characters of a text, the fonts of the
system are used.

A ``Printer`` starts a process that executes this module. The process reads a document and writes a PDF.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources
from types import ModuleType
from typing import Any

import typst

from tkperf.model.errors import UsageError
from tkperf.model.units import drop_controls
from tkperf.render.paper import FOLDER, Document, charts_of
from tkperf.system.host import require_descriptors

Spec = dict[str, object]
_TWO_IN_VEGA = re.compile("[\U00010000-\U0010ffff]")


# The number of file descriptors that a drawing needs. V8 starts threads, and reads its snapshot and the fonts.
DESCRIPTORS = 16


@cache
def load_vega() -> ModuleType:
    """Load V8 and draw a chart once, because the first drawing is slow. Loading V8 takes half a second and 100 MB."""
    # If no file descriptors are free, V8 fails without stating a reason.
    require_descriptors(DESCRIPTORS, purpose="drawing charts", fault=UsageError)
    fonts = resources.files("tkperf.render") / "templates/no-system-fonts.conf"
    # The variable FONTCONFIG_FILE is set only while vl_convert is loaded. Typst runs in the same process and may need
    # the fonts of the system.
    with _environment("FONTCONFIG_FILE", str(fonts)):
        import vl_convert  # noqa: PLC0415 - most reports are not printed

        vl_convert.register_font_directory(str(FOLDER))
        vl_convert.vegalite_to_svg({"mark": "point", "data": {"values": [{}]}})
    return vl_convert


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def draw_all(specs: Sequence[Spec]) -> list[str]:
    """Return the drawing of each chart as SVG."""
    return [load_vega().vegalite_to_svg(_for_vega(spec)) for spec in specs]


def draw_png(spec: Spec) -> bytes:
    """Return a chart as a PNG picture that can be used on slides and web pages."""
    wide: Any = _for_vega(spec | {"width": 700})
    picture: bytes = load_vega().vegalite_to_png(wide, scale=2.0)
    return picture


def _for_vega(value: object) -> Any:
    """Return texts in a form that vl-convert can draw.

    A NUL in a text would abort the process. JavaScript stores some characters as two code units, and Vega may cut such
    a character in half. vl-convert refuses such a half. The fonts have no glyphs for these characters, so the function
    writes the characters as codes.
    """
    if isinstance(value, str):
        return _TWO_IN_VEGA.sub(lambda found: f"U+{ord(found[0]):X}", drop_controls(value))
    if isinstance(value, dict):
        return {key: _for_vega(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_for_vega(item) for item in value]
    return value


# A pattern that matches characters that exist neither in Inter nor in typst's own fonts. Both contain Latin, Greek,
# Cyrillic, punctuation and a few signs.
_OTHER_SCRIPT = re.compile(r"[^\u0000-\u052f\u2000-\u209f\u2190-\u2195\u2212\u2248\u2260\u2264\u2265]")


def set_document(document: Document) -> bytes:
    """Return the PDF with embedded fonts. In the document, the specifications of the charts are replaced by
    drawings.
    """
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
            # The fonts of the system are used only if they are necessary, because other versions of these fonts would
            # result in other bytes.
            include_system_fonts=_OTHER_SCRIPT.search(data) is not None,
            font_paths=[FOLDER],
        ),
    )
    return page


if __name__ == "__main__":
    load_vega()  # V8 is loaded at this point, while the main process is still reading the results.
    given = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this process
    sys.stdout.buffer.write(set_document(given))
