"""Output that cannot be written never ends a run, and is never mistaken for a result."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.builders import run_info, simulate
from tests.cli.test_bad_input import ENV, assert_clear
from tests.fleets import vary_run_file
from tkperf.cli.main import cli
from tkperf.cli.run_views import until_lost
from tkperf.model.errors import RunFileError
from tkperf.model.record import RunStatus
from tkperf.runfile.reader import read_run
from tkperf.runner.events import Event, Noted, TestStarted

TKPERF = [sys.executable, "-m", "tkperf"]
RUN = ["ssd", "n", "sim:sata-ssd", "--profile", "quick", "-ssdt", "iops", "--no-report"]
FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run file. The file ``other.tkperf`` in the same folder contains the same values."""
    folder = tmp_path_factory.mktemp("run")
    simulate(folder, run_info())
    vary_run_file(folder / "run.tkperf", folder / "other.tkperf", device={})
    return folder / "run.tkperf"


def assert_measured_to_its_end(folder: Path) -> None:
    record = read_run(folder / "n.tkperf")
    assert record.status is RunStatus.COMPLETE
    assert record.tests[0].outcomes


def start(folder: Path, *options: str, stdout: int, stderr: int, nohup: bool = False) -> subprocess.Popen[bytes]:
    # The tests themselves may have been started with nohup, so the default action of SIGHUP is restored.
    before = ["nohup"] if nohup else ["env", "--default-signal=HUP"]
    argv = [*before, *TKPERF, *RUN, "--output", str(folder), *options]
    return subprocess.Popen(argv, env={**ENV, "TERM": "xterm"}, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)


@pytest.mark.parametrize(
    ("options", "stream"), [(("--progress", "json"), "stdout"), (("--progress", "plain"), "stderr")]
)
@pytest.mark.parametrize("trouble", ["reader gone", "disk full", "closed"])
def test_a_run_goes_on_without_anybody_to_watch_it(
    tmp_path: Path, options: tuple[str, ...], stream: str, trouble: str
) -> None:
    """A run continues to its end with exit code 0 even if its progress output fails. The log reports once that progress
    is no longer shown, unless the output was closed from the beginning.
    """
    if trouble == "disk full":
        lost = os.open(FULL, os.O_WRONLY)
    else:
        reader, lost = os.pipe()
        os.close(reader)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | {stream: lost}
    if trouble == "closed":
        shell = f'exec "$@" {1 if stream == "stdout" else 2}>&-'
        argv = ["sh", "-c", shell, "sh", *TKPERF, *RUN, *options, "--output", str(tmp_path)]
        done = subprocess.run(argv, env=ENV, check=False, **streams)  # type: ignore[call-overload]
    else:
        done = start(tmp_path, *options, stdout=streams["stdout"], stderr=streams["stderr"])
        done.wait(120)
    os.close(lost)
    assert done.returncode == 0
    assert_measured_to_its_end(tmp_path)
    given_up = (tmp_path / "n.log").read_text().count("progress is no longer shown")
    assert given_up == (trouble != "closed")


@pytest.mark.parametrize(("progress", "shown"), [("live", b" gone, "), ("plain", b"round 1")])
def test_a_run_goes_on_without_its_terminal(tmp_path: Path, progress: str, shown: bytes) -> None:
    """A run with a live view or plain lines continues to its end after its terminal window was closed."""
    terminal, ours = pty.openpty()
    running = start(tmp_path, "--progress", progress, stdout=subprocess.DEVNULL, stderr=ours)
    os.close(ours)
    seen = b""
    while shown not in seen:
        seen += os.read(terminal, 4096)
    os.close(terminal)
    assert running.wait(120) == 0
    assert_measured_to_its_end(tmp_path)


def test_a_run_goes_on_without_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run continues to its end even if writing its log fails, and the run file contains each step."""
    monkeypatch.setattr("tkperf.cli.run_views.open_log", lambda _: os.open(FULL, os.O_WRONLY))
    ran = CliRunner().invoke(cli, [*RUN, "--output", str(tmp_path), "-q"])
    assert ran.exit_code == 0, ran.output
    assert_measured_to_its_end(tmp_path)


def test_a_log_in_place_of_which_somebody_laid_a_link_is_refused(tmp_path: Path) -> None:
    """If the name of the log is a link, tkperf refuses the run and does not write to the target of the link."""
    (tmp_path / "n.log").symlink_to(tmp_path / "precious")
    ran = CliRunner().invoke(cli, [*RUN, "--output", str(tmp_path), "-q"])
    assert isinstance(ran.exception, RunFileError), ran.output
    assert not (tmp_path / "precious").exists()


@pytest.mark.parametrize("nohup", [True, False])
def test_nohup_is_obeyed(tmp_path: Path, nohup: bool) -> None:
    """A lost terminal (SIGHUP) ends a run in an orderly way. A run that was started with nohup continues."""
    running = start(tmp_path, "--progress", "json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, nohup=nohup)
    assert running.stdout is not None
    running.stdout.readline()
    running.send_signal(signal.SIGHUP)
    running.communicate(timeout=120)
    assert running.returncode == (0 if nohup else 130)


def test_a_view_that_failed_is_left_alone() -> None:
    """If a view fails, the failure is reported once, and the view is not called again. The other views still receive
    each event.
    """
    seen: list[Event] = []
    notes: list[Event] = []

    def fails(event: Event, at: datetime) -> None:
        seen.append(event)
        raise OSError(28, "No space left on device")

    event = TestStarted(test="iops", at_s=0.0)
    with until_lost(lambda: nullcontext(fails), notes.append)() as view:
        view(event, datetime.now(UTC))
        view(event, datetime.now(UTC))
    assert seen == [event]
    (note,) = notes
    assert isinstance(note, Noted)
    assert "No space left" in note.note.text


SHORT = Path(__file__).parents[1] / "short.toml"


def start_on_a_file(
    folder: Path, *options: str, stdout: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Start a run with some seconds of real I/O on a file. A simulated run is not suitable, because it waits for the
    reader of its output.
    """
    argv = [
        *TKPERF,
        "ssd",
        "n",
        str(folder / "scratch"),
        "--size",
        "64MiB",
        "--profile",
        str(SHORT),
        "-ssdt",
        "lat",
        "--output",
        str(folder),
        *options,
    ]
    return subprocess.Popen(argv, env={**ENV, "TERM": "xterm"}, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)


@pytest.mark.fio
def test_a_pipe_that_nobody_reads_holds_up_nothing(tmp_path: Path) -> None:
    """A run continues to its end although no process reads its output pipe, for example after an ssh connection has
    stalled. tkperf exits although its output thread is blocked.
    """
    reader, full = os.pipe()
    fcntl.fcntl(full, fcntl.F_SETPIPE_SZ, 4096)
    running = start_on_a_file(tmp_path, "--progress", "json", stdout=full)
    os.close(full)
    try:
        assert running.wait(120) == 0
    finally:
        running.kill()
        os.close(reader)
    assert_measured_to_its_end(tmp_path)
    assert "run complete" in (tmp_path / "n.log").read_text()


@pytest.mark.fio
@pytest.mark.parametrize("progress", ["live", "plain"])
def test_a_stopped_terminal_holds_up_nothing(tmp_path: Path, progress: str) -> None:
    """A stopped terminal (Ctrl-S) does not delay the run. The output appears after Ctrl-Q."""
    terminal, ours = pty.openpty()
    running = start_on_a_file(tmp_path, "--progress", progress, "-d", stderr=ours)
    try:
        until_s = time.monotonic() + 120
        while not (tmp_path / "n.log").exists():
            assert running.poll() is None
            time.sleep(0.05)
        termios.tcflow(ours, termios.TCOOFF)
        while not is_complete(tmp_path / "n.tkperf"):
            assert running.poll() is None
            assert time.monotonic() < until_s, "the run waits for its terminal"
            time.sleep(0.2)
        termios.tcflow(ours, termios.TCOON)
        shown = b""
        os.set_blocking(terminal, False)
        while b"results:" not in shown and time.monotonic() < until_s:
            with suppress(BlockingIOError):
                shown += os.read(terminal, 65536)
            time.sleep(0.05)
        assert running.wait(60) == 0
    finally:
        running.kill()
        os.close(ours)
        os.close(terminal)
    assert b"results:" in shown


def is_complete(path: Path) -> bool:
    try:
        return read_run(path).status is RunStatus.COMPLETE
    except RunFileError:
        return False


def on_a_full_disk(*argv: str | Path) -> subprocess.CompletedProcess[str]:
    with FULL.open("w") as stdout:
        done = subprocess.run(
            [*TKPERF, *map(str, argv)],
            env=ENV,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
    done.stdout = ""
    return done


@pytest.mark.parametrize(
    "argv",
    [
        ("show", "RUN"),
        ("show", "--json", "RUN"),
        ("compare", "RUN", "OTHER"),
        ("check", "--json", "RUN", "CLAIMS"),
        ("check", "RUN", "CLAIMS"),
        ("report", "RUN", "--markdown", "FOLDER/run.md"),
        ("doctor",),
        ("--help",),
        ("ssd", "--help"),
        ("--version",),
        ("completion", "bash"),
    ],
)
def test_a_full_stdout_is_one_clear_line(run_file: Path, argv: tuple[str, ...]) -> None:
    """If the disk to which standard output is redirected is full, the command prints one clear error with exit code 2
    and no traceback. Exit code 1 would mean "claims not met".
    """
    claims = run_file.with_name("claims.toml")
    claims.write_text("[[claim]]\ntest='iops'\nmetric='iops'\nread_percent=0\nblock_size='4k'\nat_least=1")
    names = {"RUN": str(run_file), "OTHER": str(run_file.with_name("other.tkperf")), "CLAIMS": str(claims)}
    folder = str(run_file.parent)
    words = [names.get(word, word).replace("FOLDER", folder) for word in argv]
    done = on_a_full_disk(*words)
    assert_clear(done, 2, "cannot write the output: No space left on device")
    assert len(done.stderr.splitlines()) == 1


def test_results_that_cannot_be_printed_are_kept(tmp_path: Path) -> None:
    """If the results of a run cannot be printed, the run file still contains the results, and the error names the
    command that shows them.
    """
    done = on_a_full_disk(*RUN, "-q", "--output", tmp_path)
    assert_clear(done, 2, "No space left on device", f"tkperf show {tmp_path}/n.tkperf")
    assert_measured_to_its_end(tmp_path)


@pytest.mark.parametrize("command", ["show", "compare", "doctor"])
def test_a_reader_that_left_is_told_from_claims_not_met(run_file: Path, command: str) -> None:
    """If the reader of standard output has closed the pipe, the exit code is 141 and no error is printed. A shell
    reports the same exit code for other programs that SIGPIPE ends. Exit code 1 would mean "claims not met".
    """
    reader, lost = os.pipe()
    os.close(reader)
    files = [] if command == "doctor" else [str(run_file), str(run_file.with_name("other.tkperf"))]
    files = files[:1] if command == "show" else files
    done = subprocess.run([*TKPERF, command, *files], env=ENV, stdout=lost, stderr=subprocess.PIPE, check=False)
    os.close(lost)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_reader_that_left_takes_no_file_with_it(run_file: Path, tmp_path: Path) -> None:
    """If the reader of standard output has closed the pipe, as in ``tkperf compare ... --csv FILE | head``, the command
    still writes its files.
    """
    reader, lost = os.pipe()
    os.close(reader)
    wanted = tmp_path / "compared.csv"
    argv = [*TKPERF, "compare", str(run_file), str(run_file.with_name("other.tkperf")), "--csv", str(wanted)]
    done = subprocess.run(argv, env=ENV, stdout=lost, stderr=subprocess.PIPE, check=False)
    os.close(lost)
    assert (done.returncode, done.stderr) == (141, b"")
    assert wanted.stat().st_size


def test_nobody_to_read_the_error_changes_no_exit_code(tmp_path: Path) -> None:
    with FULL.open("w") as full:
        done = subprocess.run([*TKPERF, "show", tmp_path / "no"], stdout=full, stderr=full, check=False)
    assert done.returncode == 6
