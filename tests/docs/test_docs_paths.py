"""Paths of files and modules on the pages exist, and links lead to existing pages."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/tkperf"
PAGES = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/*/README.md")))


def find_missing(line: str) -> list[str]:
    """Return the paths in backticks that do not exist. A bare file name is accepted if the same line contains another
    path, and the file is in the folder of this path.
    """
    named = re.findall(r"`([\w.*/-]+(?:/|\.(?:py|js|md|sh|toml)))`", line)
    named = [each.rstrip("/") for each in named if "NAME" not in each]
    found = {each: [*ROOT.glob(each), *SOURCE.glob(each)] for each in named}
    places = [path if path.is_dir() else path.parent for path in chain(*found.values())]
    return [each for each in named if not found[each] and not any(list(place.glob(each)) for place in places)]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page. The anchors are its headings in the form that GitHub uses."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_path_of_the_architecture_exists() -> None:
    """Every path that the architecture page names exists, so that the page does not list a module that was moved."""
    lines = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8").splitlines()
    assert [missing for line in lines for missing in find_missing(line)] == []


def test_a_path_that_is_gone_is_found() -> None:
    """The search for missing paths recognises paths in every form that the page uses."""
    assert find_missing("| `engine/fio.py`, `gate.py`, `cli/` | `procedures/profiles/*.toml` |") == []
    assert find_missing("| `engine/old.py`, `cli/`, `gate.py` |") == ["engine/old.py", "gate.py"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """Every link leads to a file of the repository and, if it names a heading, to a heading in that file."""
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if not link.startswith("http"):
            path, _, heading = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not heading or heading in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_no_line_of_prose_is_longer_than_100_columns(page: Path) -> None:
    """A line of prose has at most 100 columns. Tables, code, headings and lines with a single link or a single piece of
    code may be longer.
    """
    is_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_prose = not is_code and not line.startswith(("|", "#", "<", "    "))
        in_one_piece = re.sub(r"`[^`]*`|\]\([^)]*\)", "x", line.strip())
        assert len(line) <= 100 or not is_prose or " " not in in_one_piece[2:], f"{page}:{number}"
