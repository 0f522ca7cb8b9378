"""Mail and notify command: sent with the run's end and status; their failure changes nothing."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tkperf.cli.main import cli
from tkperf.errors import UsageError


class Mailbox(socketserver.ThreadingTCPServer):
    """A mail server that keeps one mail."""

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
    """To the address, with the status in the subject, tables in the text, the run file attached."""
    server = f"127.0.0.1:{mailbox.server_address[1]}"
    ran = run(tmp_path, "-m", "me@example.org", "-s", server, "--mail-from", "lab@example.org")
    assert ran.exit_code == 0, ran.output
    assert "rcpt TO:<me@example.org>" in mailbox.commands
    message = email.message_from_bytes(mailbox.mail, policy=email.policy.default)
    assert message["Subject"] == "tkperf: mailed complete"
    body = message.get_body(("plain",))
    assert body is not None
    assert "SIMULATED" in body.get_content()
    (attached,) = list(message.iter_attachments())
    assert attached.get_content() == (tmp_path / "mailed.tkperf").read_bytes()


def test_a_mail_server_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    """The run has succeeded; the user reads who was not told."""
    ran = run(tmp_path, "-m", "me@example.org", "-s", "127.0.0.1:9")
    assert ran.exit_code == 0
    assert "warning: the mail to me@example.org could not be sent" in ran.stderr
    assert (tmp_path / "mailed.tkperf").exists()


def test_the_command_gets_name_status_and_file(tmp_path: Path) -> None:
    """Placeholders are filled in, each as one argument."""
    told = tmp_path / "told"
    command = f"sh -c 'printf %s \"$0 $1 $2\" >{told}' {{name}} {{status}} {{run_file}}"
    assert run(tmp_path, "--notify-command", command).exit_code == 0
    assert told.read_text() == f"mailed complete {tmp_path}/mailed.tkperf"


def test_a_failing_command_is_a_warning(tmp_path: Path) -> None:
    """Its status and words are passed on."""
    ran = run(tmp_path, "--notify-command", "sh -c 'echo no >&2; exit 3'")
    assert ran.exit_code == 0
    assert "ended with status 3: no" in ran.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-m", "nobody"), "is not a mail address"),
        (("-s", "host:port"), "is not HOST or HOST:PORT"),
        (("--notify-command", "nosuchprogram {name}"), "no such program"),
        (("--notify-command", "echo 'x"), "No closing quotation"),
    ],
)
def test_mistakes_show_before_the_run(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    """Not after 30 hours."""
    ran = run(tmp_path, *options)
    assert isinstance(ran.exception, UsageError)
    assert says in str(ran.exception)
    assert not (tmp_path / "mailed.tkperf").exists()
