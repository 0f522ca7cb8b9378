"""Traps that other users can prepare. Examples are links and pipes in place of files, names with control sequences, and
hostile mail servers.
"""

from __future__ import annotations

import os
import smtplib
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.builders import run_info, simulate
from tests.cli.test_bad_input import ENV
from tests.fleets import vary_run_file
from tkperf.cli.ending import _log_in
from tkperf.cli.lines import PlainLines
from tkperf.cli.main import cli
from tkperf.cli.output import Outputs, open_log, write_output
from tkperf.model.errors import RunFileError, UsageError
from tkperf.model.record import RunNote
from tkperf.pipeline.run_to_file import Destination
from tkperf.runner.events import Warned
from tkperf.system.output_files import reach
from tkperf.system.process import run_command, start_module

NOBODY = 65534
ESC = "\x1b[2J\x07"
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make what is not root's")


def tkperf(*argv: object, **env: str) -> subprocess.CompletedProcess[bytes]:
    words = [os.fsencode(word) if isinstance(word, str | Path) else word for word in argv]
    return subprocess.run(
        [sys.executable, "-m", "tkperf", *words],  # type: ignore[list-item]
        env={**ENV, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("laid", ["a link", "a dangling link", "a hard link", "a pipe", "a folder"])
def test_a_log_goes_to_no_other_file(tmp_path: Path, laid: str) -> None:
    """If a link, a pipe or a folder has the name of the log, the run does not begin. The target of the link remains
    unchanged, and the command does not block.
    """
    victim, log = tmp_path / "victim", tmp_path / "n.log"
    victim.write_text("precious")
    match laid:
        case "a link":
            log.symlink_to(victim)
        case "a dangling link":
            log.symlink_to(tmp_path / "made-by-root")
        case "a hard link":
            log.hardlink_to(victim)
        case "a pipe":
            os.mkfifo(log)
        case _:
            log.mkdir()
    done = CliRunner().invoke(cli, ["ssd", "n", "sim:sata-ssd", "--profile", "quick", "--output", str(tmp_path)])
    assert isinstance(done.exception, RunFileError)
    assert victim.read_text() == "precious"
    assert not (tmp_path / "made-by-root").exists()
    assert not (tmp_path / "n.tkperf").exists()


def test_an_old_log_is_added_to(tmp_path: Path) -> None:
    """A log that the same user wrote earlier is extended, and its old lines remain."""
    path = tmp_path / "n.log"
    path.write_text("old\n")
    with open(open_log(path), "w") as log:
        log.write("new\n")
    assert path.read_text() == "old\nnew\n"


@root
@pytest.mark.parametrize("place", ["the file", "its folder", "a pipe"])
def test_links_of_others_are_not_followed(tmp_path: Path, place: str) -> None:
    """Root writes no output through a link or a pipe that another user created. The target of the link remains
    unchanged.
    """
    target = tmp_path / "etc"
    target.mkdir()
    (target / "x.html").write_text("precious")
    path = tmp_path / "x.html"
    if place == "the file":
        laid = path
        laid.symlink_to(target / "x.html")
    elif place == "a pipe":
        laid = path
        os.mkfifo(laid)
    else:
        laid = tmp_path / "link"
        laid.symlink_to("etc")
        path = laid / "x.html"
    os.chown(laid, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(UsageError, match=r"that another user created \(uid 65534\)"):
        write_output(path, "REPORT")
    assert (target / "x.html").read_text() == "precious"


@root
def test_root_follows_no_link_where_others_can_write(tmp_path: Path) -> None:
    """In a folder that other users can write to, root follows no link, not even a link that root owns. Another user can
    move such a link into the folder.
    """
    (tmp_path / "precious").write_text("precious")
    everybodys = tmp_path / "everybodys"
    everybodys.mkdir()
    everybodys.chmod(0o1777)
    (everybodys / "x.html").symlink_to(tmp_path / "precious")
    with pytest.raises(UsageError, match="is a link in a folder that others can write to"):
        write_output(everybodys / "x.html", "REPORT")
    (everybodys / "folder").symlink_to(tmp_path)
    with pytest.raises(RunFileError, match="is a link in a folder that others can write to"):
        open_log(everybodys / "folder" / "n.log")
    with pytest.raises(RunFileError, match="is a link in a folder that others can write to"):
        Destination(name="n", folder=everybodys / "folder").require_free("sim:sata-ssd")
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_folder_that_is_exchanged_for_a_link_meanwhile_is_not_followed(tmp_path: Path) -> None:
    """If a folder is replaced by a link between the check and the write, tkperf still writes into the folder that it
    checked.
    """
    for name in ("ours", "others"):
        (tmp_path / name).mkdir()
    with reach(tmp_path / "ours" / "x") as place:
        (tmp_path / "ours").rename(tmp_path / "moved")
        (tmp_path / "ours").symlink_to("others")
        os.close(place.open(os.O_WRONLY | os.O_CREAT))
    assert (tmp_path / "moved/x").exists()
    assert list((tmp_path / "others").iterdir()) == []


def test_a_hard_link_keeps_what_it_had(tmp_path: Path) -> None:
    """If tkperf replaces an output file, another hard link of the old file keeps the old content. Another user may have
    created this hard link.
    """
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "x.html").hardlink_to(tmp_path / "precious")
    write_output(tmp_path / "x.html", "REPORT", say=False)
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "x.html").read_text() == "REPORT"


def test_only_an_outputs_own_folder_is_made(tmp_path: Path) -> None:
    """tkperf creates only the last folder of an output path. A missing parent folder is refused, because it may be a
    typing error or a disk that is not mounted.
    """
    missing = tmp_path / "not-mounted"
    for file in (missing / "x.html", missing / "tables" / "x.csv"):
        with pytest.raises(
            UsageError,
            match=r"the folder .*not-mounted does not exist\. Nothing was written\. Create the folder first \(mkdir -p",
        ):
            Outputs([file], folders=[missing / "tables"])
        with pytest.raises(UsageError, match=r"the folder .* does not exist"):
            write_output(file, "REPORT", makes_folder=file.suffix == ".csv")
    with pytest.raises(RunFileError, match="runs: the folder"):
        Destination(name="n", folder=missing / "runs").require_free("sim:sata-ssd")
    assert list(tmp_path.iterdir()) == []
    outputs = Outputs([tmp_path / "tables/x.csv"], folders=[tmp_path / "tables"])
    assert list(tmp_path.iterdir()) == []  # the constructor only checks the outputs and creates no folder
    outputs.write(tmp_path / "tables/x.csv", "a,b")
    Destination(name="n", folder=tmp_path / "runs").require_free("sim:sata-ssd")
    assert {path.name for path in tmp_path.iterdir()} == {"tables", "runs"}


def test_own_links_are_followed(tmp_path: Path) -> None:
    """If the name of an output is a link of the same user, tkperf writes to the target of the link. The link remains,
    because the user may keep the report in another folder.
    """
    (tmp_path / "www").mkdir()
    link = tmp_path / "x.html"
    link.symlink_to("www/../www/x.html")
    write_output(link, "REPORT", say=False)
    assert link.is_symlink()
    assert (tmp_path / "www/x.html").read_text() == "REPORT"


@pytest.mark.root
def test_a_report_never_goes_to_a_drive(loop_device) -> None:  # type: ignore[no-untyped-def]
    """A report is never written to a drive, even if the user passes the device with ``-o``."""
    device = loop_device()
    with pytest.raises(UsageError, match="is a drive, so tkperf does not overwrite it"):
        write_output(device, "REPORT")
    assert set(device.read_bytes()[:4096]) == {0xA5}


@pytest.mark.parametrize(
    "argv",
    [
        ["show", f"{ESC}.tkperf"],
        ["ssd", f"{ESC}", "sim:sata-ssd"],
        ["ssd", "n", f"/dev/{ESC}"],
        ["ssd", "n", "x", "--profile", f"{ESC}.toml"],
        ["ssd", "n", "x", "-ssdt", ESC],
        ["ssd", "n", "x", f"--{ESC}"],
        [f"{ESC}"],
        ["import", f"{ESC}.json"],
        ["show", "one\ntkperf: all is well"],
    ],
)
def test_no_error_is_obeyed_by_a_terminal(argv: list[str]) -> None:
    """An error message contains no control character that a terminal would execute, even if the library click prints
    the message. Each error is one line, regardless of the names in it.
    """
    done = tkperf(*argv)
    assert done.returncode in (2, 4, 6)
    assert not set(done.stderr) & {0x1B, 0x07}
    assert len([line for line in done.stderr.splitlines() if line.startswith(b"tkperf: ")]) == 1


def test_no_line_of_progress_or_log_is_obeyed_or_forged(tmp_path: Path) -> None:
    """A line break or a control character in the name that a drive reports cannot forge a separate line in the progress
    output or in the log.
    """
    path = tmp_path / "log"
    with path.open("w") as stream:
        text = f"drive {ESC}\n2026-01-01T00:00:00Z run complete"
        PlainLines(stream, every_s=1)(Warned(warning=RunNote(code="c", text=text)), datetime.now(UTC))
    first, second = path.read_text().splitlines()
    assert not set(first) & set(ESC[0] + ESC[-1])
    assert second.startswith("    ")


def test_names_that_are_no_text_are_spelled_out(tmp_path: Path) -> None:
    """In every output, a path with bytes that are not UTF-8 is printed with escapes. Such a path causes neither a
    traceback nor a wrong exit code.
    """
    folder = tmp_path / os.fsdecode(b"od\xffd")
    folder.mkdir()
    simulate(folder, run_info(name="odd", notices=("from od\udcffd",)))
    run_file = folder / "run.tkperf"
    other = vary_run_file(run_file, folder / "other.tkperf", device={})
    outputs = [word for kind in ("json", "markdown") for word in (f"--{kind}", folder / f"o.{kind}")]
    argv = ["report", run_file, "-o", folder / "o.html", *outputs, "--csv", folder / "csv"]
    for words in (argv, ["show", run_file], ["show", run_file, "--json"], ["compare", run_file, other]):
        done = tkperf(*words)
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr
    for name in ("o.html", "o.json", "o.markdown"):
        (folder / name).read_bytes().decode()
    missing = tkperf("show", folder / "none.tkperf")
    assert missing.returncode == 6


def test_a_defect_is_not_taken_for_claims_that_are_not_met() -> None:
    """A defect of tkperf has its own exit code. Python's exit code 1 would mean that claims are not met."""
    script = "import tkperf.cli.main as m; m.cli.main = lambda **_: 1 / 0; import sys; sys.exit(m.main())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 70
    assert b"tkperf: this is a defect of tkperf" in done.stderr


def test_exit_statuses_are_known_whatever_was_handed_down() -> None:
    """tkperf receives the exit statuses of programs even if its parent ignored SIGCHLD. If a process ignores SIGCHLD,
    the kernel discards the exit statuses of its children, and Python reports success for every program.
    """
    handed_down = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    main = (
        "import sys; from tkperf.cli import main; from tkperf.system.process import run_command;"
        "main.cli.main = lambda **_: run_command(['false'], timeout_s=60).exit_status; main.main()"
    )
    argv = [sys.executable, "-c", handed_down, sys.executable, "-c", main]
    done = subprocess.run(argv, env=ENV, timeout=300, check=False)
    assert done.returncode == 1


def test_the_password_reaches_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tool and no other process that tkperf starts has the SMTP password in its environment."""
    monkeypatch.setenv("TKPERF_SMTP_PASSWORD", "secret-of-mine")
    assert "secret-of-mine" not in run_command(["env"], timeout_s=60).stdout
    with start_module("tkperf.render.pdf") as process:  # the process waits for its input
        environment = b""
        while not environment:  # the kernel shows an empty environment until the process has loaded its program
            assert process.poll() is None
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        process.kill()
    assert b"PATH=" in environment
    assert b"secret-of-mine" not in environment


@pytest.mark.parametrize(
    ("options", "refused"), [((), True), (("--smtp-tls", "starttls"), False), (("--smtp-plain-login",), False)]
)
def test_the_password_is_not_sent_in_clear_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], refused: bool
) -> None:
    """A call that would send the SMTP password without encryption is refused before the run, and not after a run of 30
    hours. The option ``--smtp-plain-login`` permits such a call.
    """
    monkeypatch.setenv("TKPERF_SMTP_USER", "me")
    monkeypatch.setenv("TKPERF_SMTP_PASSWORD", "secret-of-mine")
    argv = ["ssd", "n", "sim:none", "--output", str(tmp_path), "-m", "me@example.org", *options]
    done = CliRunner().invoke(cli, argv)
    assert ("would be sent without encryption" in str(done.exception)) is refused
    assert "secret-of-mine" not in str(done.exception)


def test_a_server_that_echoes_the_password_is_not_quoted() -> None:
    """An error about a failed login does not contain the answer of the mail server, because the answer may repeat the
    password. Errors appear on screens and in logs.
    """

    class Server(smtplib.SMTP):
        def __init__(self) -> None:
            """Open no connection."""

        def login(self, user: str, password: str, **_: object) -> tuple[int, bytes]:
            raise smtplib.SMTPAuthenticationError(535, f"bad password {password}".encode())

    with pytest.raises(UsageError, match="it answered 535") as raised:
        _log_in(Server(), "me", "secret-of-mine")
    assert "secret-of-mine" not in str(raised.value)
