"""Type family of all reports: the package brings it, so a page, a chart and a print look the same anywhere.

Inter, by the Inter Project Authors, under the SIL Open Font License 1.1 (``templates/fonts/OFL.txt``), cut to Latin,
Greek, Cyrillic and the signs that reports need.
"""

from __future__ import annotations

import base64
from functools import cache
from importlib import resources
from pathlib import Path

FAMILY = "Inter"
STACK = f'{FAMILY}, "Liberation Sans", Arial, Helvetica, sans-serif'
"""Font stack of a page; the fallbacks are families of about the same width."""

FOLDER = Path(str(resources.files("tkperf.render") / "templates/fonts"))
FILES = {400: FOLDER / "Inter-Regular.ttf", 700: FOLDER / "Inter-Bold.ttf"}
"""Font files by weight."""


@cache
def build_font_faces() -> str:
    """Return the family as CSS, within the page."""
    return "\n".join(
        f"@font-face {{ font-family: {FAMILY}; font-weight: {weight}; "
        f"src: url(data:font/ttf;base64,{base64.b64encode(path.read_bytes()).decode()}); }}"
        for weight, path in FILES.items()
    )
