"""tkperf doctor on a scratch file: what a file is, not a drive's facts that it cannot have."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from tkperf.cli.main import cli
from tkperf.host.audit import Audit, AuditFinding, AuditLevel
from tkperf.model.errors import UsageError
from tkperf.render.terminal.doctor import show_audit


def test_a_file_is_not_asked_for_what_only_drives_have(tmp_path: Path) -> None:
    """No row without a value, and no heading that passes the file's only purge for an option's."""
    file = tmp_path / "scratch.img"
    file.write_bytes(bytes(8192))
    done = CliRunner().invoke(cli, ["doctor", str(file)])
    assert done.exit_code == 0, done.output
    of_device, title, _ = done.output.partition("the host, were a run of a day to begin now")
    assert title
    assert "not known" not in of_device
    assert "8,192 bytes" in done.output
    assert "hole-punching" in done.output
    assert "--purge" not in done.output


@pytest.mark.parametrize("command", ["doctor", "tune"])
def test_a_simulated_drive_is_not_called_missing(command: str) -> None:
    done = CliRunner().invoke(cli, [command, "sim:client-tlc"])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("sim:client-tlc is simulated: there is no device")


def test_what_disturbs_stands_first_and_nothing_is_left_out() -> None:
    """A table of what has to be done; what is as it should be has a line of its own each."""
    findings = (
        AuditFinding(
            subject="CPU governor", level=AuditLevel.OK, found="performance", why="clocks"
        ),
        AuditFinding(
            subject="turbo", level=AuditLevel.NOT_KNOWN, found="not known: no file", why="clocks"
        ),
        AuditFinding(
            subject="idle states", level=AuditLevel.ADVICE, found="C6", why="sleep", command="x"
        ),
        AuditFinding(
            subject="link", level=AuditLevel.DISTURBS, found="x1", why="narrow", otherwise="move"
        ),
    )
    console = Console(file=io.StringIO(), width=80)
    show_audit(Audit(findings), console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert 0 < text.index("would disturb") < text.index("idle states") < text.index("why link")
    assert text.endswith("CPU governor: ok, performance\nturbo: not known: no file\n")
    assert text.index("why link") < text.index("why idle states")
    show_audit(Audit(findings[:1]), console)
    assert "nothing is seen that would disturb" in console.file.getvalue()
