"""No output overwrites a run file, and the terminal executes no control character of an external text."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.builders import run_info, simulate
from tkperf.cli.main import cli
from tkperf.cli.output import write_output
from tkperf.model.errors import UsageError
from tkperf.procedures import SSD_TESTS
from tkperf.render.terminal.console import plain


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    simulate(tmp_path, run_info())
    return tmp_path / "run.tkperf"


@pytest.mark.parametrize("option", ["-o", "--pdf", "--json", "--xml", "--markdown"])
@pytest.mark.parametrize("through", ["itself", "a link", "another run"])
def test_a_run_file_is_never_overwritten(run_file: Path, tmp_path: Path, option: str, through: str) -> None:
    """An output never overwrites a run file. This rule covers the run file that the report describes, a link to this
    file, and any other run file.
    """
    victim = run_file
    if through == "a link":
        victim = tmp_path / "link.html"
        victim.symlink_to(run_file)
    elif through == "another run":
        victim = tmp_path / "other.tkperf"
        victim.write_bytes(run_file.read_bytes())
    before = victim.read_bytes()
    done = CliRunner().invoke(cli, ["report", str(run_file), option, str(victim)])
    assert isinstance(done.exception, UsageError)
    assert "so tkperf does not overwrite it" in str(done.exception)
    assert victim.read_bytes() == before


def test_a_pipe_gets_each_text_as_one_line(tmp_path: Path) -> None:
    """If standard output is a pipe, tkperf prints each text as one line without breaks. A search then also finds
    phrases that a terminal would break into two lines.
    """
    described = " ".join(f"word{number}" for number in range(100))
    simulate(tmp_path, run_info(device_description=described))
    shown = CliRunner().invoke(cli, ["show", "--full", str(tmp_path / "run.tkperf")]).stdout
    assert described in shown


def test_a_grid_of_rates_points_to_all_rates_of_writes(tmp_path: Path) -> None:
    """The headline figure of the test ``interference`` applies to one write rate. The first screen therefore states
    which command shows the figures at the other write rates. The first screen of other tests does not mention write
    rates.
    """
    for name in ("interference", "lat"):
        folder = tmp_path / name
        folder.mkdir()
        simulate(folder, run_info(), suite={name: SSD_TESTS[name]})
        shown = CliRunner().invoke(cli, ["show", str(folder / "run.tkperf")]).stdout
        assert "--full  all tables and charts, here" in shown
        assert ("with all rates of writes" in shown) == (name == "interference")


def test_what_was_written_before_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    """If an error occurs while an output is written, the old file remains unchanged, and no part of the new file
    remains.
    """
    path = tmp_path / "report.csv"
    write_output(path, "old", say=False)

    def breaks() -> object:
        yield "new"
        raise UsageError("the run file is damaged")

    with pytest.raises(UsageError, match="damaged"):
        write_output(path, breaks(), say=False)  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_can_be_read_by_those_who_may(tmp_path: Path) -> None:
    """A new output file receives the permissions that the user's umask allows, even if the output replaces another
    file.
    """
    before = os.umask(0o022)
    try:
        for _ in range(2):
            write_output(tmp_path / "report.html", "text", say=False)
    finally:
        os.umask(before)
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("text", ["see [/b]", "[bold]", "a\x1b[2Jb", "a\x1b]0;title\x07b", "a\u202eb"])
def test_text_from_outside_is_shown_and_not_obeyed(tmp_path: Path, text: str) -> None:
    """Brackets in a text from outside tkperf are printed, and control characters are dropped. This rule applies to the
    tables of a run and to single lines.
    """
    device = {"model": text, "serial": text, "kind": "simulated drive"}
    info = run_info(name=text, device=device, notices=(text,), fio_version=text)
    simulate(tmp_path, info)
    shown = CliRunner().invoke(cli, ["show", str(tmp_path / "run.tkperf")])
    assert shown.exit_code == 0
    assert not set(shown.output) & {"\x1b", "\x07", "\u202e"}
    if "[" in text and "\x1b" not in text:
        assert text in shown.output


def test_a_name_of_two_lines_forges_none(tmp_path: Path) -> None:
    """A line break in a name or a notice is printed as a space. Otherwise the second line would look like a message of
    tkperf.
    """
    info = run_info(name="a\nb: passes", notices=("n\nValid",))
    simulate(tmp_path, info)
    shown = CliRunner().invoke(cli, ["show", str(tmp_path / "run.tkperf")])
    assert shown.output.startswith("a b: passes  ")
    assert "n Valid" in shown.output


@given(st.one_of(st.text(), st.text(alphabet="[]/\\ab:=#@\n")))
def test_text_from_outside_is_printed_as_it_is(text: str) -> None:
    """In a text from outside tkperf, printable characters, line ends and no-break spaces are printed unchanged. All
    other characters are dropped. Such a text is never interpreted as markup.
    """
    printable = "".join(each for each in text if each.isprintable() or each in "\n\u00a0")
    file = io.StringIO()
    Console(file=file, width=100_000).print(plain(text), emoji=False, end="", soft_wrap=True)
    # rich doubles a backslash at the end of the text, and removes a backslash before a bracket that opens no tag.
    assert file.getvalue().replace("\\", "") == printable.replace("\\", "")


def test_control_and_direction_characters_are_dropped() -> None:
    """Escape sequences, bells, carriage returns and direction overrides are dropped from a text. Line ends remain."""
    assert plain("a\x1b[31mb\x07\r\u202e\u2066\x9bc\nd") == "a[31mbc\nd"
    assert plain("[red]") == "\\[red]"
    assert plain(7) == "7"


def test_a_link_laid_in_wait_is_not_followed(tmp_path: Path) -> None:
    """An output never follows a link that another user prepared under the temporary name of the output, because the
    temporary name is random. Root may be writing into a folder of another user.
    """
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / f".tkperf-{os.getpid()}.part").symlink_to(precious)
    write_output(tmp_path / "report.html", "REPORT")
    assert precious.read_text() == "mine"
    assert (tmp_path / "report.html").read_text() == "REPORT"
    assert not (tmp_path / "report.html").is_symlink()


def test_a_device_as_output_says_no_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For an output to a device or a pipe, such as /dev/stdout, tkperf prints no line with the name of the output. The
    reader of the device or pipe receives only the document.
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_output(pipe, "{}")
    assert os.read(reader, 9) == b"{}"
    assert capsys.readouterr().out == ""
