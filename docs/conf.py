"""Settings of Sphinx for these pages as a site; scripts/docs.py builds it."""

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
