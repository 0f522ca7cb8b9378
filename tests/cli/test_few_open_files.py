"""With a small ``ulimit -n``, each command ends immediately with one clear error, and leaves no files behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_bad_input import ENV
from tests.cli.test_detach import SHORT

SSD = ("ssd", "few", "few.img", "--size", "16MiB", "--profile", str(SHORT), "--test", "iops", "--no-report", "-q")
BATCH = (
    "batch",
    "few",
    "ssd",
    "a.img",
    "b.img",
    "--size",
    "16MiB",
    "--profile",
    str(SHORT),
    "--test",
    "iops",
    "--no-report",
    "-q",
)
SERVE = ("serve", ".", "--port", "0", "--allow-root")


@pytest.mark.fio
@pytest.mark.parametrize(
    ("limit", "words", "code"),
    [(8, SSD, 5), (16, SSD, 5), (30, SSD, 5), (16, BATCH, 5), (30, SERVE, 2)],
    ids=["ssd-8", "ssd-16", "ssd-30", "batch-16", "serve-30"],
)
def test_it_ends_with_one_clear_error(limit: int, words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    """If the limit of open files is too small, the command ends before it writes a file. It creates no run file, no
    scratch file and no temporary folder.
    """
    folder, temporary = tmp_path / "here", tmp_path / "tmp"
    folder.mkdir()
    temporary.mkdir()
    # The limit applies only to the child process.
    done = subprocess.run(
        ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", sys.executable, "-P", "-m", "tkperf", *words],
        cwd=folder,
        env={**ENV, "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("tkperf: ")]
    assert len(errors) == 1
    assert "Too many open files (raise the limit of this shell: ulimit -n)" in errors[0]
    assert "Traceback" not in done.stderr
    assert not [*folder.iterdir(), *temporary.iterdir()]
