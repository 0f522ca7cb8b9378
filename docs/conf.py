"""Settings of Sphinx for these pages as a site; scripts/docs.py builds it.

The menu is made here, so that index.md contains no directives and renders on a code host.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

from tkperf import __version__

project = "tkperf"
author = "the tkperf engineers"
copyright = "the tkperf engineers, Apache License 2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# Headings get the anchors that they have on GitHub, so that one link serves both.
myst_heading_anchors = 4
exclude_patterns = ["examples"]

autodoc_typehints = "description"
autodoc_member_order = "bysource"

# Options are typed with two hyphens.
smartquotes = False

html_theme = "furo"
html_title = "tkperf"
html_logo = html_favicon = "mark.svg"
html_extra_path = ["examples"]
html_copy_source = False
html_show_sphinx = False

# Captions of the menu, with the folder of their pages, or with the pages that scripts/docs.py puts beside index.md.
MENU: dict[str, str | tuple[str, ...]] = {
    "Tutorial": "tutorial",
    "How to": "how-to",
    "Reference": "reference",
    "Explanation": "explanation",
    "The project": ("readme", "examples", "adr", "contributing", "changelog"),
}


def build_menu(index: str, folder: Path) -> str:
    """Return the directives of the menu. In each part, the pages that the index names come first, in its order."""
    named = list(dict.fromkeys(re.findall(r"\]\(([\w./-]+)\.md", index)))
    parts = []
    for caption, pages in MENU.items():
        shown = list(pages)
        if isinstance(pages, str):
            found = sorted(f"{pages}/{path.stem}" for path in (folder / pages).glob("*.md"))
            shown = sorted(found, key=lambda page: named.index(page) if page in named else len(named))
        parts.append("\n".join(["```{toctree}", f":caption: {caption}", ":hidden:", "", *shown, "```"]))
    return "\n\n".join(parts)


def add_menu(app: Sphinx, page: str, source: list[str]) -> None:
    """Append the menu to the source of the index."""
    if page == "index":
        source[0] += "\n" + build_menu(source[0], Path(app.srcdir)) + "\n"


def setup(app: Sphinx) -> None:
    """Let Sphinx call ``add_menu`` after it has read a page."""
    app.connect("source-read", add_menu)
