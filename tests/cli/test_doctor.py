"""tkperf doctor on a scratch file: what a file is, not a drive's facts that it cannot have."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tkperf.cli.main import cli


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
