"""Build the pages of docs/ as a site: dist/site/index.html.

    python scripts/docs.py [FOLDER]

The reference of the Python API is made from the docstrings. docs/conf.py adds the menu. A broken link ends the build
with an error.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import main as build

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Pages in the folder above docs/. In the site, these pages are in the same folder as the pages of docs/.
ABOVE = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

# docs/reference/python-api.md explains each of these names with examples.
PYTHON = """# Python API

[From Python](python-api.md) has examples.

```{eval-rst}
.. automodule:: tkperf
   :members: make_plan, run, load, open_run

.. autoclass:: tkperf.pipeline.run_request.RunRequest

.. autoclass:: tkperf.analysis.results.RunResult
   :members:

.. autoclass:: tkperf.analysis.results.TestResult
   :members:

.. autoclass:: tkperf.analysis.results.SectionResult
   :members:

.. autoclass:: tkperf.analysis.results.CellResult
   :members:

.. automodule:: tkperf.model.errors
   :members:
```
"""


def main() -> int:
    """Build the site and print the path of the site."""
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist/site"
    with tempfile.TemporaryDirectory(prefix="tkperf-docs-") as scratch:
        source = Path(scratch) / "docs"
        gather(source)
        options = ["-q", "-W", "--keep-going", "-b", "html", "-d", f"{scratch}/doctrees"]
        status = build([*options, str(source), str(site)])
    if status == 0:
        for page in site.rglob("*.html"):
            if page.name != "sample-report.html":
                page.write_text(_with_names(page.read_text(encoding="utf-8")), encoding="utf-8")
        print(site / "index.html")
    return status


# The HTML theme omits these attributes, which screen readers and keyboard users need.
NAMES = {
    'role="heading"': 'role="heading" aria-level="2"',
    '<aside class="sidebar-drawer"': '<aside aria-label="All pages" class="sidebar-drawer"',
    '<aside class="toc-drawer"': '<aside aria-label="On this page" class="toc-drawer"',
    "<pre>": '<pre tabindex="0">',
    '<div id="search-results"': '<h1>Search</h1><div id="search-results"',
}


def _with_names(page: str) -> str:
    for plain, named in NAMES.items():
        page = page.replace(plain, named)
    return page


def gather(source: Path) -> None:
    """Copy all pages into one folder: the pages in docs/, the pages above docs/, and the reference of the Python
    API.
    """
    shutil.copytree(DOCS, source)
    for above, name in ABOVE.items():
        text = (ROOT / above).read_text(encoding="utf-8")
        (source / name).write_text(_as_beside(text), encoding="utf-8")
    examples = (source / "examples/README.md").read_text(encoding="utf-8")
    examples = re.sub(r"\]\((?!\.\./)", "](examples/", examples).replace("](../", "](")
    (source / "examples.md").write_text(examples, encoding="utf-8")
    (source / "examples/README.md").unlink()
    for page in source.rglob("*.md"):
        page.write_text(_without_ways_out(page, source), encoding="utf-8")
    (source / "reference/python.md").write_text(PYTHON, encoding="utf-8")
    # Without "orphan", the menu of every page would list about 60 decisions. The page adr.md links to every decision.
    for page in (source / "adr").rglob("0*.md"):
        page.write_text(f"---\norphan: true\n---\n\n{page.read_text(encoding='utf-8')}", encoding="utf-8")
    decisions = (source / "adr/README.md").read_text(encoding="utf-8").replace("](", "](adr/")
    (source / "adr.md").write_text(decisions, encoding="utf-8")
    (source / "adr/README.md").unlink()


def _as_beside(text: str) -> str:
    """Return a page from above docs/. Its links are changed, because its copy is in the same folder as the pages of
    docs/.
    """
    text = re.sub(r"\]\(docs/(adr/?|examples/?)\)", lambda to: f"]({to[1].rstrip('/')}.md)", text)
    return text.replace("](docs/examples/README.md)", "](examples.md)").replace("](docs/", "](")


def _without_ways_out(page: Path, source: Path) -> str:
    """Return the page. Links to files that are not part of the site, such as sources, are replaced with plain text."""
    up = "../" * (len(page.relative_to(source).parts) - 1)

    def lead(link: re.Match[str]) -> str:
        words, target = link.groups()
        path, _, heading = target.partition("#")
        if target.startswith(("http", "#")):
            return link[0]
        place = (page.parent / path).resolve()
        if place.name in ABOVE and not place.exists():
            return f"[{words}]({up}{ABOVE[place.name]}{'#' * bool(heading)}{heading})"
        if place in (source / "adr", source / "adr/README.md"):
            return f"[{words}]({up}adr.md)"
        if place == source / "examples/README.md":
            return f"[{words}]({up}examples.md)"
        if place.is_relative_to(source / "examples"):
            return f'<a href="{up}{place.name}">{words}</a>'
        return link[0] if place.exists() or target.endswith("adr.md") else words

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", lead, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
