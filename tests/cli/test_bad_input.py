"""Bad input of any kind leads to one clear line and the right exit code. Nothing is lost, and no traceback is
printed.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.fork_server import run_forked

ENV = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}

LONG = "A" * 300
GOLDEN_XML = str(Path(__file__).parents[1] / "golden/tkperf-2.2-tp.xml")


def tkperf(*argv: str | Path, path: str | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command as a user would run it."""
    return run_forked(argv, env=ENV if path is None else {**ENV, "PATH": path}, stdin=stdin)


def assert_clear(done: subprocess.CompletedProcess[str], code: int, *says: str) -> None:
    lines = done.stderr.strip().splitlines()
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    # After an incorrect call, a usage line and a help line follow the error message.
    if lines[-1].startswith("help:  tkperf"):
        assert lines[-2].startswith("usage: tkperf")
        lines = lines[:-2]
    assert lines[-1].startswith("tkperf: ")
    for words in says:
        assert words in lines[-1]


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["ssd", "n", "/dev/nowhere"], 4, "there is no device or file /dev/nowhere"),
        (["ssd", "n", "/tmp"], 4, "is a directory"),
        (["ssd", "n", "/dev/null"], 4, "is a character device"),
        (["ssd", "n", "/proc/cpuinfo"], 4, "empty file"),
        (["ssd", "n", "/dev/new", "--size", "1MiB"], 4, "tkperf does not create a scratch file in /dev"),
        (["ssd", "n", "sim:none"], 2, "choose from client-qlc, client-tlc, cliffs, dying, hdd, nvme-4kn"),
        (["ssd", "a/b", "sim:sata-ssd"], 2, "becomes a file name"),
        (["ssd", LONG, "sim:sata-ssd"], 2, "NAME has 300 characters, but it becomes a file name"),
        (["ssd", LONG[:245], "sim:sata-ssd"], 2, "Use at most 200"),
        (["ssd", "n", "sim:sata-ssd", "--output", LONG], 6, "File name too long"),
        (["ssd", "n", LONG], 2, "File name too long"),
        (["ssd", "n", "sim:sata-ssd", "--profile", f"{LONG}.toml"], 2, "File name too long"),
        (["show", LONG], 6, "File name too long"),
        (["compare", "-f", LONG, LONG], 2, "File name too long"),
        (["import", LONG], 2, "File name too long"),
        (["import", GOLDEN_XML, "--name", LONG], 2, "--name has 300 characters"),
        (["ssd", "n", "x", "-nj", "0"], 2, "'--numjobs': 0 is not in the range 1 to 1,024"),
        (["ssd", "n", "x", "-iod", "0"], 2, "'--iodepth': 0 is not in the range 1 to 65,536"),
        (["ssd", "n", "x", "-rt", "-1"], 2, "'--runtime': -1.0 is not in the range 1 to 86,400"),
        (["ssd", "n", "x", "-rt", "abc"], 2, "'--runtime': 'abc' is not a valid float"),
        (["ssd", "n", "x", "-ssdt", "speed"], 2, "test 'speed': choose from "),
        (["ssd", "n", "x", "--profile", "pts"], 2, "profile 'pts': choose from "),
        (["ssd", "n", "x", "--profile", "no.toml"], 2, "cannot read profile no.toml"),
        (["ssd", "n", "x", "-dsc", "/nowhere"], 2, "does not exist"),
        (["ssd", "n", "sim:sata-ssd", "--active-range", "0%"], 2, "not a share"),
        (["ssd", "n", "sim:sata-ssd", "--active-range", "64k"], 2, "too small for 4 jobs"),
        (["ssd", "n", "x", "--size", "some"], 2, "'some' is not a size"),
        (["ssd", "n", "sim:sata-ssd", "--size", "1GiB"], 2, "Omit --size"),
        (["ssd", "n", "sim:sata-ssd", "--engine", "libaio"], 2, "Omit --engine"),
        (["ssd", "n", "sim:sata-ssd", "--purge", "discard"], 2, "Omit --purge"),
        (["ssd", "n", "sim:sata-ssd", "--purge-command", "x"], 2, "Omit --purge-command"),
        (["ssd", "n"], 2, "Missing argument 'DEVICE'"),
        (["sdd"], 2, "there is no command sdd; did you mean ssd?"),
        (["show", "nowhere.tkperf"], 6, "there is no run file nowhere.tkperf; 'tkperf status' lists the run files"),
        (["report", "nowhere.tkperf"], 6, "there is no run file"),
    ],
)
def test_wrong_use_gets_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], code: int, says: str
) -> None:
    """For an incorrect call, tkperf prints one clear line that describes the mistake. The exit code is the code for
    this kind of mistake. No file is created.
    """
    monkeypatch.chdir(tmp_path)
    assert_clear(tkperf(*argv), code, says)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_an_existing_name_is_not_overwritten(tmp_path: Path) -> None:
    """If a result with the same NAME exists, tkperf neither changes this result nor accesses the device."""
    (tmp_path / "n.tkperf").write_text("precious")
    assert_clear(tkperf("ssd", "n", "/nowhere", "--output", tmp_path), 6, "not overwritten")
    assert (tmp_path / "n.tkperf").read_text() == "precious"


def test_a_new_output_folder_is_named(tmp_path: Path) -> None:
    """tkperf prints the name of an output folder that it created, because the user may have misspelled the name of an
    existing folder.
    """
    words = ("ssd", "n", "sim:sata-ssd", "--profile", "quick", "-ssdt", "lat", "--no-report", "--output")
    new = tkperf(*words, tmp_path / "new")
    assert (tmp_path / "new/n.tkperf").is_file()
    assert f"the folder {tmp_path / 'new'} did not exist and was created" in new.stderr.replace("\n", " ")
    (tmp_path / "old").mkdir()
    assert "did not exist" not in tkperf(*words, tmp_path / "old").stderr


def test_a_run_file_needs_no_import(tmp_path: Path) -> None:
    """``tkperf import`` refuses a run file of tkperf, and the message names the commands that read run files."""
    (tmp_path / "n.tkperf").write_bytes(b"SQLite format 3\0" + bytes(84))
    done = tkperf("import", tmp_path / "n.tkperf", "--output", tmp_path)
    assert_clear(done, 2, "Pass run files to the commands show, report and compare")


def test_an_output_folder_that_cannot_be_written_is_found_at_once(tmp_path: Path) -> None:
    """If an output folder cannot be written, this is reported before the purge, because a purge may take an hour."""
    (tmp_path / "file").write_text("")
    done = tkperf("ssd", "n", "sim:sata-ssd", "--output", tmp_path / "file" / "sub")
    assert_clear(done, 6, "cannot write to the output folder")


def test_a_profile_with_a_typo_is_named_with_file_key_and_reason(tmp_path: Path) -> None:
    """The error about a typo in a profile is one line that names the file, the key and the reason."""
    shipped = Path(__file__).parents[2] / "src/tkperf/procedures/profiles/quick.toml"
    mine = tmp_path / "mine.toml"
    mine.write_text(shipped.read_text().replace("64, 4, 0.5", "64, 4, 2.9296875", 1))
    done = tkperf("ssd", "n", "sim:sata-ssd", "--profile", mine)
    assert_clear(done, 2, str(mine), "iops.block_sizes_kib", "3000 bytes is not a multiple of 512")


def test_a_file_system_without_direct_io_is_named(tmp_path: Path) -> None:
    """tkperf refuses a file whose file system has no direct I/O, because a run would measure the page cache."""
    done = tkperf("ssd", "n", "/proc/kallsyms", "--output", tmp_path)
    assert_clear(done, 4)
    big = Path("/proc/kcore")
    if big.exists():
        assert_clear(tkperf("ssd", "n", big, "--output", tmp_path), 4, "direct I/O")


def test_a_device_smaller_than_a_step_needs_is_refused(tmp_path: Path) -> None:
    """A device too small for a step is refused. For example, four jobs with blocks of 1 MiB do not fit into 2 MiB. The
    scratch file that tkperf created is removed.
    """
    scratch = tmp_path / "s"
    done = tkperf("ssd", "n", scratch, "--size", "2MiB", "--output", tmp_path)
    assert_clear(done, 2, str(scratch), "too small for 4 jobs")
    assert not scratch.exists()


def test_without_anybody_to_ask_nothing_is_destroyed(scratch: Path, tmp_path: Path) -> None:
    """A call without a terminal does not count as consent. The message names the option that gives consent."""
    done = tkperf("ssd", "n", scratch, "--profile", "quick", "--output", tmp_path)
    assert_clear(done, 3, f"--yes-destroy {scratch}")
    assert set(scratch.read_bytes()) == {0xA5}


def test_the_wrong_id_destroys_nothing(scratch: Path, tmp_path: Path) -> None:
    """Consent with ``--yes-destroy`` must name exactly the device that the call measures."""
    done = tkperf("ssd", "n", scratch, "--profile", "quick", "--output", tmp_path, "--yes-destroy", "/dev/sda")
    assert_clear(done, 3, "does not confirm", str(scratch))
    assert set(scratch.read_bytes()) == {0xA5}
    assert not (tmp_path / "n.tkperf").exists()


def test_force_does_not_skip_the_checks(scratch: Path, tmp_path: Path) -> None:
    """``--yes-destroy`` skips the consent question, but tkperf still refuses a file that is in use."""
    with scratch.open("rb") as file, subprocess.Popen(["sleep", "60"], stdin=file) as user:
        done = tkperf("ssd", "n", scratch, "--yes-destroy", scratch, "--profile", "quick", "--output", tmp_path)
        user.kill()
    assert_clear(done, 3, "open in process")
    assert set(scratch.read_bytes()) == {0xA5}


FakeFio = Callable[[str], str]


@pytest.fixture
def fake_fio(tmp_path: Path) -> FakeFio:
    """Return a function that creates a PATH. On this PATH, fio is the given shell script."""

    def make(script: str) -> str:
        folder = tmp_path / "bin"
        folder.mkdir()
        if script:
            fio = folder / "fio"
            fio.write_text(f"#!/bin/sh\n{script}\n")
            fio.chmod(fio.stat().st_mode | stat.S_IXUSR)
        for tool in ("sh", "setpriv", "flock", "test", "sleep", "printf", "cat"):
            for place in ("/usr/bin", "/bin"):
                if Path(place, tool).exists() and not (folder / tool).exists():
                    (folder / tool).symlink_to(Path(place, tool))
        return str(folder)

    return make


PROBE_OK = 'case "$*" in *--version*) echo fio-3.33; exit;; *probe*) echo \'{"jobs": [{"error": 0}]}\'; exit;; esac'


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("", "'fio' is not installed. Install it with: sudo apt-get install fio"),
        ("echo fio-3.16", "fio-3.16 is too old. tkperf needs fio 3.33"),
        ("echo hello", "did not print a version of fio, but 'hello'"),
        ("exit 1", "did not print a version of fio"),
        (f"{PROBE_OK}; exit 3", "fio failed on"),
        (f"{PROBE_OK}; echo rubbish", "ended before its first I/O; it said: rubbish"),
        (f"{PROBE_OK}; printf '{{\\nnonsense\\n}}\\n'", "cannot read the JSON status"),
        (f"{PROBE_OK}; kill -9 $$", "was killed by signal 9"),
    ],
)
def test_a_fio_that_does_not_work_is_named(
    scratch: Path, tmp_path: Path, fake_fio: FakeFio, script: str, says: str
) -> None:
    """If fio is missing or too old, is another program, or ends immediately, the message describes the problem and the
    remedy.
    """
    out = tmp_path / "out"
    done = tkperf(
        "ssd", "n", scratch, "--yes-destroy", scratch, "--profile", "quick", "--output", out, path=fake_fio(script)
    )
    assert_clear(done, 5, says)


def test_an_unknown_ioengine_is_refused_by_fio_itself(scratch: Path, tmp_path: Path, fake_fio: FakeFio) -> None:
    """If fio accepts none of the I/O engines, the message contains fio's error for both engines."""
    script = 'case "$*" in *--version*) echo fio-3.33;; *) echo "no such engine" >&2; exit 1;; esac'
    done = tkperf(
        "ssd", "n", scratch, "--yes-destroy", scratch, "--profile", "quick", "--output", tmp_path, path=fake_fio(script)
    )
    assert_clear(done, 5, "io_uring: no such engine; libaio: no such engine")
