"""tkperf writes the report after a run has ended. The report never changes how the run ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.builders import forget_renderers
from tkperf.cli.ending import OWN_PAGE
from tkperf.cli.main import cli
from tkperf.engine.simulated import SimulatedEngine
from tkperf.model.errors import Interrupted
from tkperf.pipeline.simulation import SimulatedDriveUnderTest

SHORT = Path(__file__).parents[1] / "short.toml"


def run(folder: Path, *options: str) -> Result:
    arguments = ["ssd", "n", "sim:sata-ssd", "--profile", str(SHORT), "-ssdt", "lat", "-q"]
    return CliRunner().invoke(cli, [*arguments, "--output", str(folder), *options])


def resume(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["resume", str(folder / "n.tkperf"), "-q", *options])


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Raise KeyboardInterrupt, as Ctrl-C does, in the second step that the test measures. ``undo`` removes this
    interruption.
    """
    measure, steps = SimulatedEngine.measure, iter(range(100))

    def until_second(self: SimulatedEngine, *args: Any, **options: Any) -> object:
        if next(steps) == 1:
            raise KeyboardInterrupt
        return measure(self, *args, **options)

    with monkeypatch.context() as changed:
        changed.setattr(SimulatedEngine, "measure", until_second)
        yield changed


def test_a_run_leaves_its_report_and_says_where(tmp_path: Path) -> None:
    """A run writes its report into the folder of the run file, and the last line of output names the report."""
    ran = run(tmp_path)
    assert ran.exit_code == 0, ran.output
    page = (tmp_path / "n.html").read_bytes()
    assert OWN_PAGE in page[:4096]
    assert b"<title>n" in page
    assert ran.stderr.splitlines()[-1] == f"report:   {tmp_path}/n.html"


def test_a_tkperf_that_was_replaced_lets_the_new_one_write_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an upgrade replaced the files during the run, another process writes the report, and this process loads no
    module of the new version.
    """
    forget_renderers(monkeypatch)
    monkeypatch.setattr("tkperf.system.own_files._AT_START", (0, 0, 0))
    ran = run(tmp_path)
    assert ran.exit_code == 0, ran.output
    assert OWN_PAGE in (tmp_path / "n.html").read_bytes()[:4096]
    assert "tkperf.render.html" not in sys.modules


def test_a_tkperf_that_was_removed_keeps_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If tkperf was removed during the run, the run is complete, and a warning states why no report exists."""
    monkeypatch.setattr("tkperf.system.own_files._AT_START", (0, 0, 0))
    monkeypatch.setattr("tkperf.system.own_files.sys.executable", "/bin/false")
    ran = run(tmp_path)
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "n.tkperf").exists()
    assert "the files of tkperf were replaced or removed during the run" in ran.stderr


def test_without_report_none_is_written(tmp_path: Path) -> None:
    """With ``--no-report``, no report is written, and the last line of output contains the command that creates the
    report.
    """
    ran = run(tmp_path, "--no-report")
    assert ran.exit_code == 0, ran.output
    assert not (tmp_path / "n.html").exists()
    assert ran.stderr.splitlines()[-1] == f"report:   tkperf report {tmp_path}/n.tkperf"


def test_it_is_written_when_the_device_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is written after the device was released, so that users who wait for the drive do not also wait for
    the charts.
    """
    happened: list[str] = []
    opened = SimulatedDriveUnderTest.open

    @contextmanager
    def noted(self: SimulatedDriveUnderTest, *args: Any) -> Iterator[object]:
        with opened(self, *args) as equipment:
            yield equipment
        happened.append("released")

    def render(*_: object) -> str:
        happened.append("report")
        return "<html>"

    monkeypatch.setattr(SimulatedDriveUnderTest, "open", noted)
    monkeypatch.setattr("tkperf.render.reports.render_html", render)
    assert run(tmp_path).exit_code == 0
    assert happened == ["released", "report"]


def test_a_file_that_is_no_page_of_tkperfs_stays(tmp_path: Path) -> None:
    """If another program wrote the file with the name of the report, tkperf does not replace this file. A warning
    states the reason.
    """
    (tmp_path / "n.html").write_text("<html>mine</html>")
    ran = run(tmp_path)
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "n.html").read_text() == "<html>mine</html>"
    assert (
        f"tkperf: warning: no report was written to {tmp_path}/n.html: another program wrote the file of that name, "
        "so tkperf does not replace it"
    ) in ran.stderr


@pytest.mark.parametrize("kind", ["folder", "link to nothing"])
def test_what_is_no_file_stays_too(tmp_path: Path, kind: str) -> None:
    page = tmp_path / "n.html"
    page.mkdir() if kind == "folder" else page.symlink_to(tmp_path / "elsewhere")
    ran = run(tmp_path)
    assert ran.exit_code == 0, ran.output
    assert "so tkperf does not replace it" in ran.stderr
    assert page.is_dir() or page.is_symlink()
    assert not (tmp_path / "elsewhere").exists()


def test_a_run_that_was_stopped_has_a_report_of_what_was_measured(tmp_path: Path, cut_off: pytest.MonkeyPatch) -> None:
    """A stopped run has a report about its completed steps, and the command still ends with the error of the run. After
    a resumption, the report is written again.
    """
    ran = run(tmp_path)
    assert isinstance(ran.exception, Interrupted)
    page = (tmp_path / "n.html").read_text()
    assert "RUN INTERRUPTED" in page
    assert f"report:   {tmp_path}/n.html" in ran.stderr
    assert "Interrupted: " in ran.stdout
    assert f"results:  tkperf show {tmp_path}/n.tkperf" in ran.stderr
    cut_off.undo()
    assert resume(tmp_path).exit_code == 0
    again = (tmp_path / "n.html").read_text()
    assert "RUN INTERRUPTED" not in again


def test_of_nothing_there_is_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a run ends before its first step, no report is written."""

    def ends(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SimulatedEngine, "fill", ends)
    monkeypatch.setattr(SimulatedEngine, "measure", ends)
    assert isinstance(run(tmp_path).exception, Interrupted)
    assert not (tmp_path / "n.html").exists()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (KeyboardInterrupt(), "stopped by the user"),
        (RuntimeError("internal trouble"), "internal trouble"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_trouble_with_the_report_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, says: str
) -> None:
    """If the report fails, even because of Ctrl-C, tkperf prints a one-line warning. The results are still shown, and
    the exit code is the exit code of the run.
    """

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("tkperf.render.reports.build_run_view", fails)
    ran = run(tmp_path)
    assert ran.exit_code == 0, ran.output
    assert "4 KiB random write, mean" in ran.stdout
    (line,) = [line for line in ran.stderr.splitlines() if "warning" in line]
    assert line == f"tkperf: warning: no report was written to {tmp_path}/n.html: {says}"
    assert not (tmp_path / "n.html").exists()


def test_without_the_packages_a_run_is_as_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run needs only the packages of the base installation. Without jinja2, the run succeeds, and a warning states
    that no report was written.
    """
    monkeypatch.setitem(sys.modules, "jinja2", None)
    forget_renderers(monkeypatch)
    ran = run(tmp_path)
    assert ran.exit_code == 0, ran.output
    (line,) = [line for line in ran.stderr.splitlines() if "warning" in line]
    assert "no report was written" in line
    assert "jinja2 is missing" in line


TWICE = """
import os, signal, sys
from tkperf.cli import main, standard_streams

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

def invoke(*args, **options):
    with standard_streams.ended_by_signals(once=True):
        interrupt()

say = main.complain
main.cli.invoke = invoke
main.complain = lambda text: (interrupt(), say(text))
sys.argv = ["tkperf", "ssd"]
main.main()
"""


def test_a_second_interrupt_does_not_cut_the_last_message() -> None:
    """A second SIGINT neither truncates the last message nor changes the exit code. After one Ctrl-C, the terminal and
    a waiting parent process may both send SIGINT.
    """
    ended = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (130, "\ntkperf: stopped by the user\n")
