"""Every link of the documentation site leads to an existing page, and tkperf accepts the command lines on the pages."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click
import pytest
from playwright.sync_api import Browser

from tests.render.visits import LONGEST_WAIT_MS, find_violations
from tkperf.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The examples on this page are taken from the help of the commands. tests/cli checks this help.
PAGES.remove(ROOT / "docs/reference/commands.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-B", ROOT / "scripts/docs.py", folder], capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")
    return folder


def test_every_page_is_in_the_site_and_the_menu(site: Path) -> None:
    """Every page in docs/, except examples and decisions, is in the site and in its menu. The page of decisions links
    to every decision. Sphinx itself reports broken links.
    """
    menu = (site / "index.html").read_text(encoding="utf-8")
    for page in sorted((ROOT / "docs").glob("**/*.md")):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        if name.parts[0] not in ("examples", "adr"):
            assert (site / name).exists()
            assert name.parts[0] in ("index.html", "tutorial", "how-to", "reference", "explanation")
            assert name.name == "index.html" or f'href="{name.as_posix()}"' in menu
    decisions = (site / "adr.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs/adr").rglob("0*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / name).exists()
        assert f'href="{name.as_posix()}"' in decisions


def test_the_reference_has_what_the_code_has(site: Path) -> None:
    """The reference contains every command, every option, every test and every function of the API."""
    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    context = click.Context(cli, **cli.context_settings)
    for name in cli.list_commands(context):
        assert f'id="tkperf-{name}"' in commands
    assert "--accept-disturbed" in commands
    tests = (site / "reference/tests.html").read_text(encoding="utf-8")
    assert "Cross Stimulus Recovery" in tests
    api = (site / "reference/python.html").read_text(encoding="utf-8")
    for name in ("make_plan", "run", "load", "open_run"):
        assert f'id="tkperf.{name}"' in api


def test_the_generated_pages_of_the_reference_are_those_of_the_code(tmp_path: Path) -> None:
    """The generated pages of the reference agree with the code. If this test fails, run scripts/docs_reference.py."""
    script = ROOT / "scripts/docs_reference.py"
    subprocess.run([sys.executable, "-B", script, tmp_path], check=True)
    made = {page.name: page.read_text(encoding="utf-8") for page in tmp_path.iterdir()}
    kept = {name: (ROOT / "docs/reference" / name).read_text("utf-8") for name in made}
    assert {"commands.md", "tests.md", "charts.md"} <= made.keys()
    assert kept == made


def test_examples_can_be_fetched(site: Path) -> None:
    """The site contains the examples of the repository unchanged."""
    for example in (ROOT / "docs/examples").iterdir():
        assert example.name == "README.md" or (site / example.name).exists()


# Of the checked properties, only the contrasts depend on the colour scheme. Each long page is therefore opened with
# only one scheme.
@pytest.mark.parametrize(
    ("scheme", "names"),
    [("light", ("index", "explanation/method", "search")), ("dark", ("index", "how-to/nvme", "reference/commands"))],
)
def test_axe_finds_nothing_on_the_pages(
    browser: Browser, site: Path, scheme: Literal["light", "dark"], names: tuple[str, ...]
) -> None:
    """axe-core finds no violation on the first page, a long page, the generated pages and the search page."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1440, "height": 900})
    page.set_default_timeout(LONGEST_WAIT_MS)
    for name in names:
        page.goto((site / f"{name}.html").as_uri())
        assert find_violations(page) == [], name
    page.close()


def test_words_that_people_look_for_are_found(site: Path) -> None:
    """The search index of the site contains words that users search for."""
    index = json.loads((site / "searchindex.js").read_text("utf-8").removeprefix("Search.setIndex(").removesuffix(")"))
    names = index["docnames"]

    def pages_with(*stems: str) -> set[str]:
        found = ([index[part].get(stem, []) for part in ("terms", "titleterms")] for stem in stems)
        places = [[of_part] if isinstance(of_part, int) else of_part for of_stem in found for of_part in of_stem]
        both = [set(places[at]) | set(places[at + 1]) for at in range(0, len(places), 2)]
        return {names[place] for place in set.intersection(*both)}

    assert "how-to/background" in pages_with("email")
    assert "explanation/method" in pages_with("steadi", "state")


def code_blocks(page: str) -> Iterator[str]:
    """Yield the lines in the code blocks of a page. A code block is enclosed in fences, or is indented after an empty
    line.
    """
    fenced = indented = False
    empty = True
    for line in page.splitlines():
        text = line.strip()
        if text.startswith("```"):
            fenced = not fenced
        elif fenced:
            yield text
        elif text:
            indented = line.startswith(("    ", "\t")) and (empty or indented)
            if indented:
                yield text
        empty = not text


def command_lines() -> Iterator[tuple[str, str]]:
    """Yield the page and the text of each line that calls tkperf, without a comment or a pipe at the end of the
    line.
    """
    for page in PAGES:
        for text in code_blocks(page.read_text(encoding="utf-8")):
            ends = r"\s{2,}|\s#|\s[|>]\s?|\s\\\\?$|; "
            line = re.split(ends, text.removeprefix("sudo "))[0].strip()
            # A synopsis, a line that is continued, or a key in a TOML file is not a command that could be typed. In a
            # call of ``tkperf batch``, the words after the name of the batch select the command. test_docs_commands.py
            # checks these calls.
            if line.startswith("tkperf ") and not re.search(r"^tkperf =|^tkperf (plan )?batch |\.\.\.|\[|\\$", line):
                yield page.relative_to(ROOT).as_posix(), line


@pytest.mark.parametrize(("page", "line"), sorted(set(command_lines())))
def test_every_command_line_on_a_page_is_one(page: str, line: str) -> None:
    """Every command line on a page has commands, options and a number of arguments that tkperf accepts. The named files
    do not need to exist.
    """
    command: click.Command = cli
    # TKperf names several tests as separate words. The command converts these words into a list with commas.
    words = shlex.split(re.sub(r"(-(?:ssd|hdd)t \w+) (?=\w)", r"\1,", line))[1:]
    context = click.Context(cli, info_name="tkperf", **cli.context_settings)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        below = command.get_command(context, words[0])
        if below is None:
            break
        command, words = below, words[1:]
        context = click.Context(command, parent=context, **command.context_settings)
    assert not isinstance(command, click.Group) or not words or words[0].startswith("-"), line
    parsed, left, _ = command.make_parser(context).parse_args(words)
    if not isinstance(command, click.Group):
        assert left == [], line
        missing = [
            argument.name
            for argument in command.params
            if isinstance(argument, click.Argument) and argument.required and not parsed.get(str(argument.name))
        ]
        assert missing == [], line
