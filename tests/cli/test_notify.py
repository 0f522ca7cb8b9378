"""A mail and a notify command report the end and the status of a run. A failed notification affects neither the run nor
its other outputs.
"""

from __future__ import annotations

import email
import email.policy
import re
import smtplib
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.builders import forget_renderers
from tkperf.cli.main import cli
from tkperf.model.errors import UsageError


class Mailbox(socketserver.ThreadingTCPServer):
    """A mail server that accepts and stores one mail."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Session)
        self.commands: list[str] = []
        self.mail = b""


class Session(socketserver.StreamRequestHandler):
    server: Mailbox

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            command = line.decode().strip()
            self.server.commands.append(command)
            if command.upper() == "DATA":
                self.wfile.write(b"354 go\r\n")
                lines = []
                while (part := self.rfile.readline()) != b".\r\n":
                    lines.append(part)
                self.server.mail = b"".join(lines)
            if command.upper() == "QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            self.wfile.write(b"250 ok\r\n")


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with Mailbox() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run(folder: Path, *options: str) -> Result:
    arguments = ["ssd", "mailed", "sim:sata-ssd", "--profile", "quick", "-q", "-ssdt", "iops"]
    return CliRunner().invoke(cli, [*arguments, "--output", str(folder), *options])


def test_the_results_are_mailed(tmp_path: Path, mailbox: Mailbox) -> None:
    """The results are mailed to the address of ``-m``. The subject contains the status, and the text contains the
    tables. The report and the run file are attached.
    """
    server = f"127.0.0.1:{mailbox.server_address[1]}"
    ran = run(tmp_path, "-m", "me@example.org", "-s", server, "--mail-from", "lab@example.org")
    assert ran.exit_code == 0, ran.output
    assert "rcpt to:<me@example.org>" in [command.lower() for command in mailbox.commands]
    message = email.message_from_bytes(mailbox.mail, policy=email.policy.default)
    assert message["Subject"] == "tkperf: mailed complete"
    body = message.get_body(("plain",))
    assert body is not None
    assert "SIMULATED" in body.get_content()
    assert "not attached" not in body.get_content()
    report, attached = message.iter_attachments()
    assert attached.get_content() == (tmp_path / "mailed.tkperf").read_bytes()
    assert report.get_filename() == "mailed.html"
    assert report.get_content_type() == "text/html"
    assert "<!DOCTYPE html>" in report.get_content()
    # Mail filters treat a mail without Date and Message-ID headers as spam.
    assert abs((datetime.now(UTC) - message["Date"].datetime).total_seconds()) < 600
    assert re.fullmatch(r"<[^@\s]+@[^@\s]+>", message["Message-ID"])


@pytest.mark.parametrize(("module", "says"), [("jinja2", "jinja2 is missing"), (None, "internal trouble")])
def test_a_report_that_cannot_be_made_holds_up_no_mail(
    tmp_path: Path, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch, module: str | None, says: str
) -> None:
    """If the report cannot be created, the mail is still sent. Its text contains the results and the reason why the
    report is missing.
    """
    if module is None:

        def fails(*_: object) -> str:
            raise RuntimeError(says)

        monkeypatch.setattr("tkperf.render.reports.build_run_view", fails)
    else:
        monkeypatch.setitem(sys.modules, module, None)
        forget_renderers(monkeypatch)
    server = f"127.0.0.1:{mailbox.server_address[1]}"
    ran = run(tmp_path, "-m", "me@example.org", "-s", server)
    assert ran.exit_code == 0, ran.output
    message = email.message_from_bytes(mailbox.mail, policy=email.policy.default)
    body = message.get_body(("plain",))
    assert body is not None
    text = body.get_content()
    assert "IOPS" in text
    assert "mailed.html is not attached: " in text
    assert says in text
    assert [part.get_filename() for part in message.iter_attachments()] == ["mailed.tkperf"]


def test_what_is_too_large_for_a_mail_stays_out(
    tmp_path: Path, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the attachments are together too large for a mail, some of them are left out, and the text of the mail names
    them.
    """
    monkeypatch.setattr("tkperf.cli.ending.MOST_ATTACHED_BYTES", 10)
    server = f"127.0.0.1:{mailbox.server_address[1]}"
    assert run(tmp_path, "-m", "me@example.org", "-s", server).exit_code == 0
    message = email.message_from_bytes(mailbox.mail, policy=email.policy.default)
    body = message.get_body(("plain",))
    assert body is not None
    assert "mailed.tkperf is not attached: " in body.get_content()
    assert list(message.iter_attachments()) == []


def test_a_mail_server_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    """If the mail server cannot be reached, tkperf prints a warning with the recipient. The exit code of the run
    remains 0.
    """
    ran = run(tmp_path, "-m", "me@example.org", "-s", "127.0.0.1:9")
    assert ran.exit_code == 0
    assert "warning: the mail to me@example.org was not sent" in ran.stderr
    assert (tmp_path / "mailed.tkperf").exists()


def test_a_mail_without_a_named_server_names_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a mail is refused, the warning names the mail server, even if no option named a server."""

    def refuse(host: str, port: int, **options: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(smtplib, "SMTP", refuse)
    assert "was not sent through localhost" in run(tmp_path, "-m", "me@example.org").stderr


def test_the_command_gets_name_status_and_file(tmp_path: Path) -> None:
    """tkperf replaces the placeholders of the notify command with the name, the status and the run file, each as one
    argument.
    """
    told = tmp_path / "told"
    command = f"sh -c 'printf %s \"$0 $1 $2\" >{told}' {{name}} {{status}} {{run_file}}"
    assert run(tmp_path, "--notify-command", command).exit_code == 0
    assert told.read_text() == f"mailed complete {tmp_path}/mailed.tkperf"


def test_a_failing_command_is_a_warning(tmp_path: Path) -> None:
    """If the notify command fails, tkperf prints a warning with the exit status and error output of the command. The
    exit code of the run remains 0.
    """
    ran = run(tmp_path, "--notify-command", "sh -c 'echo no >&2; exit 3'")
    assert ran.exit_code == 0
    assert "ended with status 3: no" in ran.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-m", "nobody"), "is not a mail address"),
        (("-s", "host:port"), "does not have the form HOST or HOST:PORT"),
        (("--notify-command", "nosuchprogram {name}"), "this program is not installed"),
        (("--notify-command", "echo 'x"), "No closing quotation"),
    ],
)
def test_mistakes_show_before_the_run(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    """Mistakes in notification options are refused before the run, and not after a run of 30 hours."""
    ran = run(tmp_path, *options)
    assert isinstance(ran.exception, UsageError)
    assert says in str(ran.exception)
    assert not (tmp_path / "mailed.tkperf").exists()


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--mail", "me@[example"),
        ("--mail", "nobody"),
        ("--mail", "<a@example.org>"),
        ("--mail", "a@example..org"),
        ("--mail-from", "x@y\nBcc: z@z"),
        ("--smtp", "example..org"),
        ("--smtp", "example.org:0"),
        ("--smtp", "example.org:70000"),
    ],
)
def test_what_no_mail_can_be_sent_with_is_refused_before_the_run(tmp_path: Path, option: str, text: str) -> None:
    options = [option, text] if option == "--mail" else ["-m", "me@example.org", option, text]
    ran = run(tmp_path, *options)
    assert isinstance(ran.exception, UsageError)
    assert option in str(ran.exception)
    assert not (tmp_path / "mailed.tkperf").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UnicodeError("odd"), ValueError("odd")])
def test_trouble_with_a_mail_changes_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """If a mail fails for any reason, including Ctrl-C and unexpected errors, tkperf prints a warning. The report is
    still written, and the notify command still runs.
    """

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("tkperf.cli.ending.send_mail", fails)
    told = tmp_path / "told"
    ran = run(tmp_path, "-m", "me@example.org", "--notify-command", f"touch {told}")
    assert ran.exit_code == 0, ran.output
    assert "the mail to me@example.org was not sent" in ran.stderr
    assert f"report:   {tmp_path}/mailed.html" in ran.stderr
    assert told.exists()


def run_a_batch(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    drives = ["sim:sata-ssd", "sim:client-tlc"]
    words = ["batch", "mailed", "ssd", *drives, "--profile", "quick", "-q", "-ssdt", "iops"]
    return subprocess.run(
        [sys.executable, "-m", "tkperf", *words, "--output", folder, *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_outcome_of_a_batch_is_mailed(tmp_path: Path, mailbox: Mailbox) -> None:
    """For a batch, one mail of at most 12 lines reports the outcome of all drives. The notify command receives the name
    of the ledger.
    """
    server = f"127.0.0.1:{mailbox.server_address[1]}"
    command = f"sh -c 'echo {{name}} {{status}} {{run_file}} > {tmp_path}/said'"
    ran = run_a_batch(tmp_path, "-m", "me@example.org", "-s", server, "--notify-command", command)
    assert ran.returncode == 0, ran.stderr
    message = email.message_from_bytes(mailbox.mail, policy=email.policy.default)
    assert message["Subject"] == "tkperf: mailed complete"
    assert message["To"] == "me@example.org"
    body = message.get_body(("plain",))
    assert body is not None
    lines = body.get_content().splitlines()
    assert lines[0].startswith("mailed: ")
    assert len(lines) <= 12
    (page,) = message.iter_attachments()
    assert page.get_filename() == "mailed.html"
    assert "mailed-02" in page.get_content()
    assert (tmp_path / "said").read_text() == f"mailed complete {tmp_path}/mailed.batch\n"


def test_a_batch_without_its_mail_server(tmp_path: Path) -> None:
    """If the notification about a batch fails, tkperf prints a warning, and the exit code remains 0."""
    ran = run_a_batch(tmp_path, "-m", "me@example.org", "-s", "127.0.0.1:1")
    assert ran.returncode == 0
    assert "warning: the mail to me@example.org was not sent through 127.0.0.1:1" in ran.stderr
