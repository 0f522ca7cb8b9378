"""tkperf accepts every call of tkperf in the code blocks of the documentation."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tkperf.cli.main import cli
from tkperf.model.choices import built_in_profiles
from tkperf.model.errors import TkperfError
from tkperf.procedures import load_profile

ROOT = Path(__file__).parents[2]
# The reference of commands is left out, because tests/cli checks the help of each command.
_OTHERS = {"adr", "examples", "commands.md"}
PAGES = (ROOT / "README.md", *sorted(each for each in (ROOT / "docs").rglob("*.md") if not _OTHERS & {*each.parts}))
# The pattern also matches blocks of other languages. Otherwise the end of such a block would be mistaken for the start
# of a block.
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```|^((?: {4,}[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
_SHELL = ("", "sh", "console", None)
_CALL = re.compile(r"(?:^|[\s/(])tkperf ((?:[a-z-]+|--\w+)\b.*)")
_SYNOPSIS = re.compile(r"[\[…]|\.\.\. |\|(?=[A-Z-])")


def find_calls(text: str) -> Iterator[str]:
    """In the code blocks of a page, find the lines that begin with a command. For each of these lines, yield the text
    after the word tkperf.
    """
    for block in _BLOCK.finditer(text):
        if block[1] not in _SHELL:
            continue
        content = (block[2] or block[3]).replace("\\\n", " ")
        for line in content.splitlines():
            if re.match(r"\s*(?:sudo |ssh \S+ |if |! |\$ )*(?:\S*/)?tkperf ", line):
                found = _CALL.search(line)
                if found is not None:
                    yield re.split(r"\s(?:#|\||&&|>|<|;)|;(?=\s)|\s{3,}", found[1])[0].strip()


CALLS = [
    pytest.param(page, call, id=f"{page.stem}: {call}")
    for page in PAGES
    for call in dict.fromkeys(find_calls(page.read_text(encoding="utf-8")))
]


def open_command(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command of a call, and the words after the name of the command."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        if any(isinstance(one, click.Argument) for one in command.params):
            break  # In a call, the name of a batch precedes the subcommand.
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, f"there is no command {words[0]}"
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize(("page", "call"), CALLS)
def test_every_command_of_the_pages_is_accepted(
    page: Path, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command on the pages exists with its options and values. For a synopsis, only the options are checked."""
    monkeypatch.chdir(tmp_path)
    if _SYNOPSIS.search(call):
        command, _ = open_command(re.findall(r"^[a-z-]+(?: batch| ssd| show| check)?", call)[0].split())
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        options = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", call))
        assert options <= known | {"--help", "--version"}, page
        return
    command, words = open_command(shlex.split(call, comments=True))
    try:
        # click uses the help option of the outermost context. This context must therefore be the same as in a real
        # call.
        parent = click.Context(cli, info_name="tkperf", **cli.context_settings)
        command.make_context(command.name, words, parent=parent)
    except click.exceptions.Exit:
        pass  # click raises this exception for options such as --help
    except (click.UsageError, TkperfError) as error:
        message = error.format_message() if isinstance(error, click.UsageError) else str(error)
        # In this test, the files that the examples name do not exist.
        assert "does not exist" in message, f"{page}: {message}"


def find_plans() -> Iterator[tuple[str, list[str]]]:
    """For each run on the pages, yield the name of the page and a call of ``tkperf plan`` with a simulated drive. The
    call has those options of the run that select its tests and its profile.
    """
    for name in ("ssd", "hdd"):
        group, _ = open_command(["plan", name])
        takes = {
            option: isinstance(one, click.Option) and not one.is_flag for one in group.params for option in one.opts
        }
        for page in PAGES:
            for call in find_calls(page.read_text(encoding="utf-8")):
                if _SYNOPSIS.search(call) or not re.match(rf"(plan )?{name} \S", call):
                    continue
                words = shlex.split(call, comments=True)
                words = words[words.index(name) + 1 :]
                kept, place = list[str](), 2
                while place < len(words):
                    option = words[place]
                    width = 2 if takes.get(option) else 1
                    if option in ("--profile", "--test", "-ssdt", "-hddt", "--auto-demand"):
                        kept += words[place : place + width]
                    place += width
                if kept and not any("/" in word or word.endswith(".toml") for word in kept):
                    preset = "sim:hdd" if name == "hdd" else "sim:sata-ssd"
                    yield page.name, ["plan", name, "n", preset, *kept]


PLANS = list({" ".join(words): (page, words) for page, words in find_plans()}.values())


@pytest.mark.parametrize(("page", "words"), PLANS, ids=[" ".join(words) for _, words in PLANS])
def test_every_run_of_the_pages_can_be_planned(
    page: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profile in each command of the pages defines the tests of the command and supports its options."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.exception is None, f"{page}: {done.exception}"


def test_a_wrong_command_in_a_page_is_found() -> None:
    """A wrong command on a page is found, in every form that the pages use for commands."""
    text = "    sudo tkperf ssd A sim:hdd --sise 3   # x\n\n```sh\nif ! .venv/bin/tkperf show A; then\n```\n"
    assert list(find_calls(text)) == ["ssd A sim:hdd --sise 3", "show A"]


def read_page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def read_prose(name: str) -> str:
    """Return a page with each sequence of white space replaced with one space, because lines may break anywhere."""
    return " ".join(read_page(name).split())


def test_the_profiles_with_a_search_for_the_demand_are_named() -> None:
    """The page names all profiles that define a search for the demand, because ``--auto-demand`` with another profile
    is refused.
    """
    defining = [name for name in built_in_profiles() if "demand_search" in load_profile(name).tables]
    named = re.search(r"Of the built-in profiles, (.*) define this search", read_prose("how-to/comparing.md"))
    assert named is not None
    assert sorted(re.findall(r"`([\w.-]+)`", named[1])) == sorted(defining)
    assert "pts-2.0" not in defining
    assert "Profile `pts-2.0` does not define this search" in read_prose("how-to/nvme.md")


def test_the_claims_of_the_ci_gate_are_about_tests_that_its_job_runs() -> None:
    """The claims in the CI example are only about tests that the job of the example runs, because a claim about another
    test is never met.
    """
    page = read_page("how-to/ci-gate.md")
    claimed = set(re.findall(r'^test = "(\w+)"', page, re.MULTILINE))
    job = re.search(r"-ssdt ([a-z ]+) --strict", page)
    assert job is not None
    assert claimed <= set(job[1].split())


def test_a_mistake_in_a_batch_file_is_reported_as_its_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = re.search(r"\(`batch (rack7.toml), drives 4, key (\w+): (.*?)`\)", read_prose("how-to/batches.md"))
    assert said is not None
    drives = '[[drives]]\ndrive = "sim:hdd"\n' * 3 + f'[[drives]]\n{said[2]} = "x"\n'
    Path(said[1]).write_text(f'suite = "hdd"\n{drives}')
    words = ["plan", "batch", "rack7", said[1]]
    error = CliRunner().invoke(cli, words, standalone_mode=False).exception
    assert str(error) == f"batch {said[1]}, drives 4, key {said[2]}: {said[3]}"


@pytest.mark.parametrize("options", [["-ft"], ["--yes-destroy", "no such serial number"]])
def test_a_simulated_drive_ignores_the_answers_to_the_question(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The options that answer the consent question have no effect on a simulated drive, as the pages about safety and
    CI state.
    """
    monkeypatch.chdir(tmp_path)
    words = ["ssd", "n", "sim:sata-ssd", "--profile", str(ROOT / "tests/short.toml"), "-ssdt", "lat"]
    done = CliRunner().invoke(cli, [*words, "--no-report", "--progress", "plain", *options])
    assert done.exit_code == 0, done.output
    assert "tkperf asks no question, and ignores `--yes-destroy` and `-ft`" in read_prose("how-to/ci-gate.md")


def test_the_nightly_script_begins_a_run_each_night_and_resumes_an_interrupted_one(tmp_path: Path) -> None:
    """The nightly script on the page starts a run each night and resumes an interrupted run. A stand-in for tkperf
    stores only the state of each run.
    """
    script = re.search(r"```sh\n(.*?)```", read_page("reference/exit-codes.md"), re.DOTALL)
    assert script is not None
    folder, calls = tmp_path / "runs", tmp_path / "calls"
    folder.mkdir()
    stand_in = tmp_path / "tkperf"
    stand_in.write_text(
        f"""#!/bin/sh
echo "$1 ${{2%.tkperf}}" >> {calls}
case $1 in
    ssd) echo complete > "$2.tkperf" ;;
    resume) echo complete > "$2" ;;
    status) printf '"state": "%s"\\n' "$(cat "$2")" ;;
esac
"""
    )
    stand_in.chmod(0o755)
    date = tmp_path / "date"
    text = script[1].replace("/var/lib/tkperf", str(folder))

    def run_night(day: str) -> list[str]:
        date.write_text(f"#!/bin/sh\necho {day}\n")
        date.chmod(0o755)
        calls.unlink(missing_ok=True)
        path = f"{tmp_path}:/usr/bin:/bin"
        subprocess.run(["sh", "-c", text], check=True, env={"PATH": path}, cwd=folder, timeout=120)
        return calls.read_text().splitlines()

    assert run_night("1") == ["ssd nightly-1", "check nightly-1"]
    assert run_night("2") == ["status nightly-1", "ssd nightly-2", "check nightly-2"]
    (folder / "nightly-2.tkperf").write_text("interrupted")
    assert run_night("3") == ["status nightly-2", "resume nightly-2", "check nightly-2"]
