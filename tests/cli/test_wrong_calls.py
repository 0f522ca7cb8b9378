"""For an incorrect call, tkperf prints one line that begins with ``tkperf:``, then prints the usage, and ends with exit
code 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.builders import run_info, simulate
from tests.cli.test_bad_input import tkperf
from tkperf.cli.calling import HeadedOption, Heading
from tkperf.cli.main import COMMANDS, cli
from tkperf.model.choices import HDD_PROFILES, built_in_profiles
from tkperf.model.errors import InputFileError, UsageError

SSD = "usage: tkperf ssd [OPTIONS] NAME DEVICE\nhelp:  tkperf ssd --help\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sdd"], "there is no command sdd; did you mean ssd?"),
        (["shwo", "x"], "there is no command shwo; did you mean show?"),
        (["frobnicate"], "there is no command frobnicate"),
        (["--verson"], "there is no option --verson; did you mean --version?"),
        (["plan", "sdd"], "there is no command sdd; did you mean ssd?"),
        (["ssd"], "'NAME'"),
        (["ssd", "n"], "'DEVICE'"),
        (
            ["ssd", "sim:sata-ssd"],
            "NAME is missing before sim:sata-ssd. Choose a name for the run, for example: tkperf ssd my-drive",
        ),
        (
            ["hdd", "./x.img"],
            "NAME is missing before ./x.img. Choose a name for the run, for example: tkperf hdd my-drive ./x.img",
        ),
        (["raid", "n", "/dev/md0"], "'-c'"),
        (["ssd", "n", "x", "--sise", "3"], "there is no option --sise; did you mean --size?"),
        (["ssd", "n", "x", "-ssd", "lat"], "there is no option -ssd; did you mean -ssdt?"),
        (["ssd", "n", "x", "-iodd=3"], "there is no option -iodd; did you mean -iod?"),
        (["ssd", "n", "x", "-z"], "there is no option -z"),
        (["ssd", "n", "x", "-nk", "4"], "there is no option -nk; did you mean -nj?"),
        (["resume", "x.tkperf", "-nj", "4"], "there is no option -nj"),
        (["ssd", "n", "x", "--engine"], "'--engine' requires an argument"),
        (["ssd", "n", "x", "--strict=3"], "'--strict' does not take a value"),
        (["ssd", "n", "x", "-nj", "0"], "'-nj' / '--numjobs': 0 is not in the range 1 to 1,024"),
        (["ssd", "n", "x", "--numjobs=a"], "'-nj' / '--numjobs': 'a' is not a valid integer"),
        (["ssd", "n", "x", "-rt", "-1"], "'-rt' / '--runtime': -1.0 is not in the range 1 to 86,400"),
        (["ssd", "n", "x", "-rt", "nan"], "'-rt' / '--runtime': NaN is no number"),
        (["ssd", "n", "x", "--engine", "uring"], "'--engine': 'uring' is not one of 'io_uring', 'libaio'"),
        (["ssd", "n", "x", "-ssdt", "iops", "lta"], "'lta': more than this command takes; did you mean lat?"),
        (
            ["ssd", "n", "x", "-ssdt", "iops,lta"],
            "test 'lta': choose from auto-demand, iops, lat, tp, writesat, cbw, dirth, hir, xsr, sweep, demand, "
            "qos, interference, neighbours, all; did you mean lat?",
        ),
        (
            ["ssd", "n", "x", "--profile", "qick"],
            "profile 'qick': choose from myce, pts-2.0, pts-2.0-client, pts-c-1.2, pts-e-1.1, quick, tkperf-2.2; "
            "did you mean quick? An own profile is given as a path to its .toml file",
        ),
        (
            ["ssd", "n", "sim:sata"],
            "simulated drive 'sata': choose from client-qlc, client-tlc, cliffs, dying, hdd, nvme-4kn, sata-ssd, "
            "spikes-13min, unsteady; did you mean sata-ssd?",
        ),
        (
            ["ssd", "n", "sim:sata-ssd", "--size", "1GiB"],
            "sim:sata-ssd is a simulated drive: its model determines the capacity, and no file is created. Omit --size",
        ),
        (
            ["ssd", "n", "x", "--rate", "5MB/s", "--like", "y"],
            "--rate and --like exclude each other. Pass only one of them",
        ),
    ],
)
def test_a_wrong_call_is_told_in_a_line_and_the_usage(words: list[str], says: str) -> None:
    """For an incorrect call, tkperf prints one line that describes the mistake, then the usage of the closest command,
    and then the command that prints the help.
    """
    done = tkperf(*words)
    assert (done.returncode, done.stdout) == (2, "")
    message, usage, help_ = done.stderr.splitlines()
    assert message.startswith("tkperf: ")
    assert says in message
    command = "tkperf"
    if words[0] in COMMANDS:
        command += f" {words[0]}"
    assert usage.startswith(f"usage: {command} ")
    assert help_ == f"help:  {command} --help"


def test_the_usage_names_what_a_command_takes() -> None:
    """The usage of a command contains all arguments of the command."""
    assert tkperf("ssd", "n").stderr == f"tkperf: Missing argument 'DEVICE'.\n{SSD}"


def test_a_file_with_a_mistake_is_no_wrong_call(tmp_path: object) -> None:
    """A mistake in an input file leads to an error without a usage line, because the call is correct and the user must
    change the file.
    """
    done = tkperf("ssd", "n", "sim:sata-ssd", "--profile", __file__)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"tkperf: profile {__file__}: ")
    assert issubclass(InputFileError, UsageError)


def commands(
    command: click.Command = cli, parent: click.Context | None = None, name: str = "tkperf"
) -> Iterator[tuple[click.Context, click.Command]]:
    """Yield the context and the command of every command, including subcommands."""
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    yield context, command
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands(found, context, below)


def test_options_of_runs_stand_under_headings() -> None:
    """The help of ssd, hdd, raid and sweep groups the options of a run under headings. The common options are listed
    first, and TKperf's options are listed last.
    """
    for name in ("ssd", "hdd", "raid", "sweep"):
        (command,) = (each for context, each in commands() if context.command_path == f"tkperf {name}")
        options = [each for each in command.params if isinstance(each, click.Option)]
        assert options
        assert all(isinstance(each, HeadedOption) for each in options), name
    lines = tkperf("ssd", "--help").stdout.splitlines()
    headings = [line.rstrip(":") for line in lines if re.fullmatch(r"\S.*:", line) and "Usage" not in line]
    of_report = (Heading.CONTENT, Heading.FORMATS)
    assert headings == [heading for heading in Heading if heading not in of_report]
    accepted = lines[lines.index(f"{Heading.TKPERF}:") :]
    assert [line.split()[0] for line in accepted if line.startswith("  -")] == ["-rfb,", "-i,"]


def test_the_common_case_of_each_command_fits_on_a_screen() -> None:
    """The help shows the purpose, the examples and the common options in 42 lines of 80 columns. The top-level help
    lists all commands in the same number of lines.
    """
    for context, command in commands():
        context.terminal_width, context.max_content_width = 80, 80
        lines = command.get_help(context).splitlines()
        first = "Results" if command is cli else Heading.COMMON.value
        begin = lines.index(f"{first}:")
        end = next((at for at in range(begin, len(lines)) if not lines[at]), len(lines))
        assert end <= 42, context.command_path


def test_the_headings_share_one_column() -> None:
    """Under each heading, the descriptions of all options begin in the same column."""
    lines = tkperf("ssd", "--help").stdout.splitlines()
    begins = {match.start(1) for line in lines if (match := re.match(r"  -\S+(?:[^ ]| [^ ])*  +(\S)", line))}
    assert len(begins) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("-ssdt", "iops,lat"),
        ("-ssdt", "iops", "lat"),
        ("-ssdt", "iops,", "lat"),
        ("--test", "iops,lat"),
        ("--test", "iops", "--test", "lat"),
        ("--ssd-type=iops,lat",),
    ],
)
def test_several_tests_are_named_in_any_of_these_ways(words: tuple[str, ...]) -> None:
    """The user can specify several tests as ``-ssdt iops,lat`` or as ``-ssdt iops lat``, with the same result."""
    (command,) = (each for context, each in commands() if context.command_path == "tkperf ssd")
    for given in (["n", "x", *words], [*words, "n", "x"]):
        with command.make_context("ssd", list(given), click.Context(cli, **cli.context_settings)) as context:
            assert context.params["tests"] == ("iops", "lat")
            assert (context.params["name"], context.params["device"]) == ("n", "x")


@pytest.mark.parametrize(
    "words",
    [
        ("check", "RUN", "none.toml"),
        ("raid", "n", "/dev/md99", "-c", "none.json"),
        ("ssd", "n", "sim:sata-ssd", "--test", "none.toml"),
        ("workload", "show", "none.toml"),
        ("import", "none.json"),
    ],
)
def test_an_input_file_that_does_not_exist_is_no_wrong_call(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing input file leads to a one-line error that names the file. The error does not contain the usage of the
    command, because the usage is printed only for an incorrect call.
    """
    monkeypatch.chdir(tmp_path)
    simulate(tmp_path, run_info())
    done = CliRunner().invoke(cli, [{"RUN": "run.tkperf"}.get(word, word) for word in words])
    assert isinstance(done.exception, InputFileError)
    assert words[-1] in str(done.exception)
    assert not getattr(done.exception, "__notes__", ())


def test_a_size_too_small_for_a_sector_is_blamed_on_the_size() -> None:
    """A size smaller than a sector is refused with the name of the option --size. The error does not mention the active
    range, because the user gave none.
    """
    done = CliRunner().invoke(cli, ["ssd", "n", "./x.img", "--size", "10"])
    assert "--size: '10'" in str(done.exception)
    assert "512 bytes" in str(done.exception)
    assert "active range" not in str(done.exception)


@pytest.mark.parametrize("name", ["quick", "./mine.toml", "pts-2"])
def test_a_profile_where_a_command_is_expected_leads_to_show(name: str) -> None:
    """If a profile follows ``tkperf profiles``, as in ``tkperf profiles quick``, the error proposes ``tkperf profiles
    show``.
    """
    error = CliRunner().invoke(cli, ["profiles", name], standalone_mode=False).exception
    assert "profiles show" in str(error)
    assert "no command" not in str(error)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_points_to_nothing_that_only_a_checkout_has(command: str) -> None:
    """The help of a command mentions no file of the docs folder, because an installed tkperf has no docs folder."""
    assert "docs/" not in CliRunner().invoke(cli, [command, "--help"]).output


def test_help_of_hdd_offers_the_profiles_that_it_takes() -> None:
    """The help of hdd lists exactly the profiles that hdd accepts."""
    text = CliRunner().invoke(cli, ["hdd", "--help"]).output
    assert [name for name in built_in_profiles() if name in text] == list(HDD_PROFILES)


@pytest.fixture
def two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a run file, a batch file and a claims file in the current folder."""
    monkeypatch.chdir(tmp_path)
    simulate(tmp_path, run_info())
    Path("run.tkperf").rename("A.tkperf")
    Path("B.batch").touch()
    Path("claims.toml").write_text('[[claim]]\ntest = "iops"\n')


@pytest.mark.usefixtures("two_files")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "a run file and a claims file (TOML) are missing"),
        (["A"], "a claims file (TOML) is missing after A.tkperf: tkperf check A.tkperf data-sheet.toml"),
        (["A.tkperf", "--json"], "a claims file (TOML) is missing after A.tkperf"),
        (["gone.tkperf"], "a claims file (TOML) is missing after gone.tkperf"),
        (["B"], "a claims file (TOML) is missing after B.batch"),
        (["claims.toml"], "a run file is missing before the claims file claims.toml"),
        (["A", "A"], "A.tkperf is a run file. The last argument of 'tkperf check' must be a claims file (TOML); see"),
        (["claims.toml", "A.tkperf"], "A.tkperf is a run file. The last argument"),
        (["A", "gone.tkperf"], "gone.tkperf is a run file. The last argument"),
        (["A", "B"], "B.batch is a batch. The last argument"),
    ],
)
def test_check_names_what_it_lacks(words: list[str], says: str) -> None:
    """If a call of ``tkperf check`` lacks a file, the error names the missing file. Without this rule, click would
    treat a single word as the claims file and report that RUN_FILES is missing.
    """
    error = CliRunner().invoke(cli, ["check", *words], standalone_mode=False).exception
    assert isinstance(error, UsageError | click.UsageError)
    assert says in (error.message if isinstance(error, click.UsageError) else str(error))


@pytest.mark.usefixtures("two_files")
def test_a_claims_file_that_shares_the_name_of_a_run_is_read() -> None:
    """If a claims file has the same name as a run, ``tkperf check`` reads the claims file."""
    Path("claims.toml").rename("A")
    error = CliRunner().invoke(cli, ["check", "A.tkperf", "A"], standalone_mode=False).exception
    assert error is not None
    assert "is a run file" not in str(error)


@pytest.mark.usefixtures("two_files")
@pytest.mark.parametrize(
    "words",
    [
        ["ssd", "n", "sim:sata-ssd", "--profile", "./A.tkperf"],
        ["plan", "batch", "n", "./A.tkperf"],
        ["plan", "ssd", "n", "sim:sata-ssd", "--profile", "./A.tkperf"],
    ],
)
def test_a_run_file_in_place_of_an_input_file_is_called_one(words: list[str]) -> None:
    """If a run file is given in place of an input file, the error states that the file is a run file. The error does
    not mention a wrong byte or a file that is too large.
    """
    error = CliRunner().invoke(cli, words, standalone_mode=False).exception
    assert "this file is a run file or another database of SQLite" in str(error)
