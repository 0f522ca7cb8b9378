"""Detached runs. The tests start a run, leave the terminal, watch the run, ask for its status, and stop it."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import tkperf as tkperf_package
from tests.cli.test_bad_input import ENV, assert_clear, tkperf
from tests.conftest import children_of
from tkperf.model.record import RunStatus
from tkperf.pipeline.running_runs import describe_wait, look
from tkperf.runfile.reader import read_run
from tkperf.runfile.writers import find_writer, is_being_written

SHORT = Path(__file__).parents[1] / "short.toml"
TKPERF = [sys.executable, "-m", "tkperf"]
MIB = 1 << 20

fio = pytest.mark.fio


def wait_for(true: Callable[[], object], *, limit_s: float = 180.0) -> None:
    until_s = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.05)


class Terminal:
    """A terminal in which tkperf leads the session, as a shell would do. ``call`` contains the words that precede the
    arguments.
    """

    def __init__(self, *argv: str | Path, call: Sequence[str] = TKPERF) -> None:
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            for each in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # nohup leaves these signals ignored
                signal.signal(each, signal.SIG_DFL)
            os.execvpe(call[0], [*call, *map(str, argv)], {**ENV, "TERM": "xterm"})
        self.text = ""

    def read_until(self, words: str, limit_s: float = 180.0) -> None:
        until_s = time.monotonic() + limit_s
        while words not in self.text:
            assert time.monotonic() < until_s, self.text
            self._read(until_s)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def close(self) -> None:
        os.close(self._master)

    def wait(self, limit_s: float = 300.0) -> int:
        """Read all remaining output of the process, and then return its exit code."""
        until_s = time.monotonic() + limit_s
        with suppress(OSError):  # the read fails as soon as no process holds the other end open
            while True:
                self._read(until_s)
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _read(self, until_s: float) -> None:
        """Read the next output of the process. Fail if the process has printed nothing by the time ``until_s``
        (monotonic clock, in s).
        """
        ready, _, _ = select.select([self._master], [], [], max(0.0, until_s - time.monotonic()))
        assert ready, f"nothing more was printed: {self.text}"
        piece = os.read(self._master, 4096)
        if not piece:
            raise OSError("closed")
        self.text += piece.decode(errors="replace").replace("\r\n", "\n")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Return a file with data. tkperf asks for consent before it erases this file."""
    path = tmp_path / "scratch.img"
    path.write_bytes(b"\xa5" * (64 * MIB))
    return path


@pytest.fixture
def run_path(tmp_path: Path) -> Iterator[Path]:
    """Yield the path of the run file that a test uses. When the test ends, stop the run if it still writes to this
    file.
    """
    path = tmp_path / "n.tkperf"
    yield path
    if path.exists() and is_being_written(path):
        writer = find_writer(path)
        assert writer is not None
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGINT)
        wait_for(lambda: not is_being_written(path))


def options(image: Path, *others: str | Path) -> list[str | Path]:
    return [
        "ssd",
        "n",
        image,
        "--profile",
        SHORT,
        "-ssdt",
        "lat",
        "--output",
        image.parent,
        "--detach",
        "--no-report",
        *others,
    ]


@fio
def test_a_run_outlives_the_terminal_that_it_was_confirmed_on(image: Path, run_path: Path) -> None:
    """A detached run prints the plan and the consent question on the terminal and reads the answer there. The run then
    continues in its own session, with a log and without a terminal.
    """
    with_report = [each for each in options(image, "-rt", "3") if each != "--no-report"]
    terminal = Terminal(*with_report)
    terminal.read_until("Type its")
    (pid,) = children_of(terminal.pid)
    terminal.type(f"{image}\n")
    assert terminal.wait() == 0
    assert "hole punched in the scratch file" in terminal.text
    assert f"n runs without this terminal now, as process {pid}\n" in terminal.text
    assert f"watch:    tkperf attach {run_path}\n" in terminal.text
    # The run was stored in its file before the command printed the line about the process.
    assert look(run_path).record.planned == ("lat",)
    assert os.getsid(pid) == pid
    # A tty_nr of 0 means that the process has no terminal.
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[4] == "0"
    assert [os.readlink(f"/proc/{pid}/fd/{each}") for each in range(3)] == [
        "/dev/null",
        str(run_path.with_suffix(".log")),
        str(run_path.with_suffix(".log")),
    ]
    terminal.close()
    os.kill(pid, signal.SIGHUP)
    wait_for(lambda: not is_being_written(run_path))
    record = read_run(run_path)
    assert record.status is RunStatus.COMPLETE
    assert [warning.code for warning in record.warnings if "lost" in warning.code] == []
    # The report is written after the run has ended, when no process writes to the run file any more. On a busy disk,
    # the line "run complete" may follow the line about the report.
    said = f"report:   {run_path.with_suffix('.html')}\n"
    read_log = run_path.with_suffix(".log").read_text
    wait_for(lambda: said in read_log() and "run complete\n" in read_log())
    log = read_log()
    assert run_path.with_suffix(".html").is_file()
    assert "IOPS" in log


@fio
def test_ctrl_c_at_the_question_ends_all_of_it(image: Path, run_path: Path) -> None:
    """After Ctrl-C at the consent question, no process continues in the background."""
    terminal = Terminal(*options(image))
    terminal.read_until("Type its")
    (pid,) = children_of(terminal.pid)
    terminal.type("\x03")
    assert terminal.wait() == 130
    assert terminal.text.count("nothing was touched") == 1
    assert "Traceback" not in terminal.text
    assert not run_path.exists()
    assert not Path(f"/proc/{pid}").exists()
    assert image.read_bytes() == b"\xa5" * (64 * MIB)


@fio
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_command_alone_ends_both(image: Path, run_path: Path, number: signal.Signals) -> None:
    """``kill PID`` sends a signal only to the command. If the user has not confirmed the run yet, this signal ends the
    command and its detached process.
    """
    terminal = Terminal(*options(image))
    terminal.read_until("Type its")
    (pid,) = children_of(terminal.pid)
    os.kill(terminal.pid, number)
    assert terminal.wait() == 130
    assert not Path(f"/proc/{pid}").exists()
    assert not run_path.exists()


@fio
def test_a_terminal_closed_at_the_question_ends_all_of_it(image: Path, run_path: Path) -> None:
    """If the user closes the terminal while tkperf asks for consent, the command and its detached process end, because
    the run was not confirmed.
    """
    terminal = Terminal(*options(image))
    terminal.read_until("Type its")
    (pid,) = children_of(terminal.pid)
    terminal.close()
    _, status = os.waitpid(terminal.pid, 0)
    # The command passes SIGHUP on, and this second SIGHUP may kill the command itself. The exit code is then 128 + 1.
    assert os.waitstatus_to_exitcode(status) in (129, 130)
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    assert not run_path.exists()


@fio
def test_what_waits_killed_leaves_nothing_behind(image: Path, run_path: Path) -> None:
    """If the command is killed while it asks for consent, the process that waits for the answer also ends, because the
    kernel closes the terminal of this process. No run file remains.
    """
    terminal = Terminal(*options(image))
    terminal.read_until("Type its")
    (pid,) = children_of(terminal.pid)
    os.kill(terminal.pid, signal.SIGKILL)
    os.waitpid(terminal.pid, 0)
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    assert not run_path.exists()


@fio
def test_a_run_killed_before_it_began_is_an_error(image: Path, run_path: Path) -> None:
    """If a run is killed before it has begun, the command reports the kill as an error. The command then ends with the
    exit code that a shell uses for the signal.
    """
    terminal = Terminal(*options(image))
    terminal.read_until("Type its")
    (pid,) = children_of(terminal.pid)
    os.kill(pid, signal.SIGKILL)
    assert terminal.wait() == 128 + 9
    assert terminal.text.endswith("\ntkperf: the run was killed by signal 9 before it began\n")


def test_errors_before_the_beginning_are_on_the_terminal(image: Path, run_path: Path) -> None:
    """With --detach, errors before the start are printed on the terminal. Their exit codes are the same as without
    --detach.
    """
    assert_clear(tkperf(*options(image)), 3, "tkperf cannot ask for consent, because there is no terminal")
    assert_clear(tkperf(*options(image, "-ft")), 3, "tkperf cannot ask for consent, because there is no terminal")
    assert_clear(tkperf(*options(image, "--yes-destroy", "x")), 3, "'x' does not confirm")
    assert_clear(tkperf(*options(image), "--active-range", "0%"), 2, "not a share")
    assert_clear(tkperf("ssd", "n", "/dev/nowhere", "--detach"), 4, "there is no device")
    for progress in ("plain", "live", "json"):
        done = tkperf(*options(image, "--progress", progress))
        assert_clear(done, 2, f"tkperf attach {run_path} --progress {progress}")
    assert not run_path.exists()
    run_path.write_text("mine")
    assert_clear(tkperf(*options(image, "--yes-destroy", image)), 6, "exists already")
    assert run_path.read_text() == "mine"
    run_path.unlink()


def test_a_simulated_run_leaves_its_terminal(tmp_path: Path) -> None:
    """A simulated run can be detached. With -q, the command prints only errors."""
    argv: list[str | Path] = ["ssd", "n", "sim:sata-ssd", "--profile", SHORT, "-ssdt", "iops", "--output", tmp_path]
    done = tkperf(*argv, "--detach", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    wait_for(lambda: not is_being_written(tmp_path / "n.tkperf"))
    assert read_run(tmp_path / "n.tkperf").status is RunStatus.COMPLETE


@fio
def test_a_run_is_watched_asked_about_stopped_and_goes_on(tmp_path: Path, run_path: Path) -> None:
    """A detached run can be watched from other terminals through its run file. Only ``stop`` affects the run."""
    image = tmp_path / "scratch.img"
    # tkperf does not ask, because there is no terminal and the file holds no data.
    done = tkperf(*options(image, "--size", "64MiB", "-ft", "-ssdt", "iops", "-rt", "6"))
    assert done.returncode == 0, done.stderr
    writer = find_writer(run_path)
    assert writer is not None
    assert (writer.is_tkperf, writer.path) == (True, run_path)

    # Two processes watch the run. One of them is killed, and the other ends with the run.
    printed = tmp_path / "printed"
    with printed.open("wb") as output:
        attached = [
            subprocess.Popen(
                [*TKPERF, "attach", run_path, "--progress", progress],
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                env=ENV,
            )
            for progress in ("plain", "json")
        ]
    assert attached[0].stderr is not None
    assert any("IOPS, round 1" in line for line in attached[0].stderr)
    wait_for(lambda: "RunStarted" in printed.read_text())
    attached[0].kill()
    attached[0].communicate()
    assert find_writer(run_path) == writer

    third = Terminal("attach", run_path)
    third.read_until("attached, read-only")
    third.type("\x03")
    assert third.wait() == 0
    words = " ".join(third.text.split())
    assert f"no longer watched: n continues; 'tkperf stop {run_path}' ends it" in words
    assert find_writer(run_path) == writer

    (state,) = json.loads(tkperf("status", run_path, "--json").stdout)["runs"]
    assert (state["state"], state["pid"], state["test"]) == ("running", writer.pid, "iops")
    assert state["place"].startswith("IOPS, round ")
    assert 0 < state["remaining_shortest_s"] <= state["remaining_longest_s"] < 400
    found = json.loads(tkperf("status", "--json").stdout)["runs"]
    assert [each["pid"] for each in found if each["run_file"] == str(run_path)] == [writer.pid]

    done = tkperf("stop", run_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "n has ended: interrupted: stopped by the user",
        f"results: tkperf show {run_path}; as a page: tkperf report {run_path}",
        f"resume:  tkperf resume {run_path}",
    ]
    assert not is_being_written(run_path)
    _, words = attached[1].communicate(timeout=120)
    assert attached[1].returncode == 0
    assert "n has ended: interrupted: stopped by the user" in words
    events = [json.loads(line) for line in printed.read_text().splitlines()]
    assert events[0]["event"] == "RunStarted"
    assert events[-1] == {
        "event": "RunEnded",
        "status": "interrupted",
        "because": "stopped by the user",
        "ended_utc": read_run(run_path).ended_utc,
    }
    again = tkperf("stop", run_path)
    assert (again.returncode, again.stderr) == (0, done.stderr), "nothing is left to be stopped"
    done = tkperf("attach", run_path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, "n has ended: interrupted: stopped by the user")

    done = tkperf("resume", run_path, "--detach", "--no-report", "--yes-destroy", image)
    assert done.returncode == 0, done.stderr
    assert "n runs without this terminal now" in done.stderr
    assert look(run_path).record.status is RunStatus.RUNNING
    assert len(look(run_path).record.resumptions) == 1
    assert_clear(tkperf("resume", run_path, "--detach"), 6, "its run has not ended")

    # After kill -9, the run file still contains the status "running".
    running = find_writer(run_path)
    assert running is not None
    os.kill(running.pid or 0, signal.SIGKILL)
    wait_for(lambda: not is_being_written(run_path))
    (state,) = json.loads(tkperf("status", run_path, "--json").stdout)["runs"]
    assert (state["state"], state["pid"]) == ("killed", None)
    words = tkperf("status", run_path).stdout
    assert "killed" in words
    assert state["because"] in words
    done = tkperf("stop", run_path)
    assert done.returncode == 0
    assert f"resume:  tkperf resume {run_path}" in done.stderr


@pytest.mark.parametrize("command", ["attach", "status", "stop"])
def test_what_is_no_run_gets_one_clear_line(command: str, tmp_path: Path) -> None:
    """For a file that is not a run file, the commands attach, status and stop each print one clear error."""
    missing, text, empty, pipe = (tmp_path / f"{name}.tkperf" for name in ("missing", "text", "empty", "pipe"))
    text.write_text("notes")
    empty.touch()
    os.mkfifo(pipe)
    assert_clear(tkperf(command, missing), 6, "there is no run file")
    assert_clear(tkperf(command, tmp_path), 2, "text.tkperf. Name one of them")
    (tmp_path / "folder").mkdir()
    assert_clear(tkperf(command, tmp_path / "folder"), 6, "is a folder")
    assert_clear(tkperf(command, text), 6, "is not a run file of tkperf")
    assert_clear(tkperf(command, empty), 6, "is not a run file of tkperf: it is empty", f"{empty}-journal")
    assert_clear(tkperf(command, "/dev/null"), 6, "not a regular file")
    assert_clear(tkperf(command, pipe), 6, "not a regular file")
    assert text.read_text() == "notes"


def test_an_import_runs_nowhere(tmp_path: Path) -> None:
    """The commands attach, stop and status describe an imported result as imported, and not as a run that has ended."""
    golden = Path(__file__).parents[1] / "golden/tkperf-2.2-tp.xml"
    assert tkperf("import", golden, "--output", tmp_path, "--name", "old").returncode == 0
    path = tmp_path / "old.tkperf"
    done = tkperf("attach", path)
    assert done.returncode == 0
    assert done.stderr.startswith("old is an imported result: another tool measured it\n")
    again = tkperf("stop", path)
    assert (again.returncode, again.stderr) == (0, done.stderr)
    (state,) = json.loads(tkperf("status", path, "--json").stdout)["runs"]
    assert state["state"] == "imported"


def a_run(folder: Path) -> Path:
    """Return the file of a run that has ended."""
    done = tkperf(
        "ssd", "n", "sim:sata-ssd", "--profile", SHORT, "-ssdt", "iops", "--output", folder, "-q", "--no-report"
    )
    assert done.returncode == 0
    return folder / "n.tkperf"


def test_a_file_of_a_newer_tkperf_is_refused(tmp_path: Path) -> None:
    """The commands attach, status and stop refuse the file of a newer version of tkperf. Their error names the file and
    its format version.
    """
    import sqlite3
    from contextlib import closing

    path = a_run(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    for command in ("attach", "status", "stop"):
        assert_clear(tkperf(command, path), 6, "which is newer (format 99")


def test_what_merely_locks_a_run_file_is_not_stopped(tmp_path: Path) -> None:
    """``tkperf stop`` signals the process that holds the lock only if this process is tkperf. Another program, such as
    flock(1), can also hold the lock on a run file.
    """
    path = a_run(tmp_path)
    with subprocess.Popen(["flock", path, "sleep", "60"]) as other:
        try:
            wait_for(lambda: is_being_written(path))
            assert_clear(tkperf("stop", path), 2, f"process {other.pid}", "it is flock, no tkperf")
            assert other.poll() is None
        finally:
            other.terminate()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that every user may read. Only root can read the folders of pytest."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.root
def test_a_run_of_somebody_else_is_named_and_left_alone(open_folder: Path) -> None:
    """``tkperf stop`` does not stop the run of another user, because the caller has no permission to send a signal to
    the process of this run. The error names the process.
    """
    path = a_run(open_folder)
    stranger = ["setpriv", "--reuid", "65534", "--clear-groups"]
    source = str(Path(tkperf_package.__file__).parents[1])
    environment = ENV | {"PYTHONPATH": source}
    may_import = [*stranger, sys.executable, "-c", "import tkperf.cli.main"]
    if subprocess.run(may_import, check=False, env=environment, cwd="/", capture_output=True).returncode:
        pytest.skip("this checkout is root's alone")
    with subprocess.Popen(["flock", path, "sleep", "60"]) as other:
        try:
            wait_for(lambda: is_being_written(path))
            done = subprocess.run(
                [*stranger, *TKPERF, "stop", str(path)],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                cwd="/",
            )
            assert_clear(done, 2, f"process {other.pid} of user root", f"'sudo tkperf stop {path}'")
            assert other.poll() is None
        finally:
            other.terminate()


def test_stop_says_that_a_run_is_paused() -> None:
    """If a run is paused by SIGSTOP, ``tkperf stop`` reports the pause and the command that continues the process.
    Otherwise the wait would look like a purge in progress.
    """
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            assert describe_wait(process.pid).startswith(
                f"waiting for process {process.pid}: a purge under way is finished first"
            )
            process.send_signal(signal.SIGSTOP)
            wait_for(lambda: "SIGSTOP" in describe_wait(process.pid))
            assert f"kill -CONT {process.pid}; Ctrl-C" in describe_wait(process.pid)
        finally:
            process.kill()
    assert "a purge under way" in describe_wait(process.pid)


def test_status_of_an_empty_folder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder, ``tkperf status`` lists no run of this folder. The list may contain runs that are in progress
    elsewhere on the machine.
    """
    monkeypatch.chdir(tmp_path)
    document = json.loads(tkperf("status", "--json").stdout)
    assert [each for each in document["runs"] if "/" not in each["run_file"]] == []
