"""Telemetry of whole runs on simulated drives. tkperf requests the telemetry before and after tests, stores it and
shows it. In a resumed run, tkperf continues to record the telemetry.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.builders import FreeTarget, run_info, view_of
from tests.charts import curves_of
from tkperf.cli.main import cli
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import PRESET_MODELS
from tkperf.model.record import RunStatus
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.units import GIB
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.render.charts.draw import draw
from tkperf.runfile.reader import read_run
from tkperf.runner.events import Event, RunEnded, TelemetrySeen, TestStarted, Warned
from tkperf.runner.runner import RunParts, execute_run


def run_cli(*argv: object) -> str:
    done = CliRunner().invoke(cli, [str(word) for word in argv])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run in which a client drive reads so fast that it is throttled."""
    folder = tmp_path_factory.mktemp("hot")
    run_cli(
        "ssd",
        "hot",
        "--no-report",
        "sim:client-tlc",
        "--profile",
        "pts-2.0",
        "--active-range",
        "200GiB",
        "-ssdt",
        "tp",
        "--output",
        folder,
        "-q",
    )
    return folder / "hot.tkperf"


def test_a_throttled_drive_is_shown_as_such_everywhere(hot: Path, tmp_path: Path) -> None:
    """The terminal, JSON, Markdown and CSV show whether a drive was throttled, how much was written to the drive, and
    the temperature of the drive.
    """
    shown = " ".join(run_cli("show", "--full", hot).split())
    assert "the drive was throttled for heat in Throughput; altered from SNIA PTS 2.0" in shown
    assert "Write amplification (flash / host)" in shown
    assert "disturbed: the drive was throttled for heat" in shown
    document = json.loads(run_cli("show", "--json", hot))
    (test,) = document["tests"]
    (drive,) = test["telemetry"]
    assert drive["drive"] == "simulated drive"
    assert drive["host_written_bytes"] == pytest.approx(drive["load_written_bytes"], rel=0.01)
    assert drive["nand_written_bytes"] > drive["host_written_bytes"]
    assert drive["temperature_most_c"] > drive["temperature_mean_c"] > drive["temperature_least_c"]
    assert drive["throttled_s"] > 0
    assert drive["thermal_1_count"] > 0
    assert drive["media_errors"] is None
    assert test["disturbed_steps"]["throttled"] > 0
    assert [each["sources"] for each in document["info"]["device"]["telemetry"]] == [["model"]]
    run_cli("report", hot, "--csv", tmp_path, "--markdown", tmp_path / "m.md")
    assert "Temperature, highest (°C)" in (tmp_path / "m.md").read_text()
    with (tmp_path / "telemetry.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(read_run(hot).telemetry)
    assert {row["test"] for row in rows} <= {"tp", ""}
    assert {row["throttling"] for row in rows} == {"", "0", "1"}


def test_charts_below_performance_have_its_time_axis(hot: Path) -> None:
    """The telemetry charts are below the performance chart. They have the same time axis and labels of the same width,
    so that points above each other belong to the same time.
    """
    view = view_of(hot)
    (test,) = view.tests
    charts = {chart.key: chart for chart in (*test.charts, *test.events.charts)}
    keys = list(charts)
    first = keys.index("tptimeline")
    assert charts["tptimeline"].aligned
    assert keys[first + 1 :] == ["tptemperature", "tpflash"]
    charts |= {view.key: view for view in charts["tpflash"].others}
    keys = [*keys, "tpamplification"]
    drawn = [curves_of(charts[key]) for key in keys[first : first + 4]]
    assert len({chart.x.domain for chart in drawn}) == 1
    assert {chart.x.title for chart in drawn} == {"Time (min)"}
    specs: list[Any] = [draw(chart) for chart in drawn]
    assert {spec["config"]["axisYQuantitative"]["minExtent"] for spec in specs} == {64}
    assert [charts[key].below for key in keys[first : first + 4]] == [False, True, True, True]
    assert not any(charts[key].below for key in keys[:first])
    marks = [layer["mark"]["type"] for layer in specs[1]["layer"]]
    assert marks == ["rect", "rule", "text", "line", "point"]
    y = specs[3]["layer"][0]["encoding"]["y"]
    assert y["scale"]["domain"][0] == 0
    assert len(y["axis"]["values"]) > 2, "also of a level line"
    (table,) = test.events.tables
    assert table.title == "The drive's own log"
    assert table.folded
    assert table.columns == ("", "simulated drive")
    assert any(banner.startswith("THROTTLED") for banner in view.stamp)


def test_each_test_has_what_it_wrote_itself(tmp_path: Path) -> None:
    """Two consecutive tests share only the reading between them, so each test has its own written amount."""
    run_cli(
        "ssd",
        "two",
        "--no-report",
        "sim:client-tlc",
        "--profile",
        "quick",
        "-ssdt",
        "tp,writesat",
        "--output",
        tmp_path,
        "-q",
    )
    tests = json.loads(run_cli("show", "--json", tmp_path / "two.tkperf"))["tests"]
    drives = [test["telemetry"][0] for test in tests]
    assert sum(drive["host_written_bytes"] for drive in drives) == pytest.approx(
        max(each.host_written_bytes or 0 for each in read_run(tmp_path / "two.tkperf").telemetry)
    )
    assert drives[1]["host_written_bytes"] == pytest.approx(drives[1]["load_written_bytes"])


def test_old_runs_and_hard_disks_show_none(tmp_path: Path) -> None:
    """Runs without telemetry, such as older runs and those of hard disks, show no chart, no table and no zeros for
    telemetry.
    """
    run_cli("hdd", "d", "sim:hdd", "--profile", "quick", "--output", tmp_path, "-q")
    run_cli(
        "ssd",
        "off",
        "sim:sata-ssd",
        "--profile",
        "quick",
        "-ssdt",
        "iops",
        "--no-telemetry",
        "--output",
        tmp_path,
        "-q",
    )
    for name in ("d", "off"):
        record = read_run(tmp_path / f"{name}.tkperf")
        assert record.telemetry == ()
        view = view_of(tmp_path / f"{name}.tkperf")
        assert not [c.key for test in view.tests for c in test.events.charts if "temperature" in c.key]
        assert "own log" not in run_cli("show", "--full", tmp_path / f"{name}.tkperf")


def test_a_run_that_goes_on_has_each_reading_once(tmp_path: Path) -> None:
    """A resumed run contains each reading once. When the simulated drive repeats the steps from before the
    interruption, its readings are discarded, because the log already contains them.
    """
    run_cli("ssd", "r", "sim:client-tlc", "--profile", "quick", "-ssdt", "iops", "--output", tmp_path, "-q")
    path = tmp_path / "r.tkperf"
    before = read_run(path).telemetry
    run_cli("resume", path, "--repeat", "iops", "-q")
    after = read_run(path).telemetry
    assert after[: len(before)] == before
    later = after[len(before) :]
    assert later
    assert min(reading.at_s for reading in later) >= max(reading.at_s for reading in before)
    assert (later[-1].host_written_bytes or 0) > (before[-1].host_written_bytes or 0)


@dataclass
class Recorded:
    """A stand-in for telemetry that records the calls of the runner and returns one reading for each request."""

    acts: list[str] = field(default_factory=list)
    waiting: list[Reading] = field(default_factory=list)
    troubles: list[str] = field(default_factory=lambda: ["no log of /dev/x is read: rubbish"])
    clock: object = None

    def take(self) -> Sequence[Reading]:
        taken, self.waiting = self.waiting, []
        return taken

    def take_troubles(self) -> Sequence[str]:
        taken, self.troubles = self.troubles, []
        return taken

    def ask(self) -> None:
        self.acts.append("ask")
        at_s = self.clock() if callable(self.clock) else 0.0
        errors = len(self.acts)
        self.waiting.append(Reading(at_s=at_s, drive="/dev/x", source="nvme", media_errors=errors))

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.acts.append("pause")
        yield
        self.acts.append("go on")

    def finish(self) -> None:
        self.acts.append("finish")
        self.ask()


def run_latency(engine: SimulatedEngine, target: FreeTarget, telemetry: Recorded) -> list[Event]:
    """Return the events of a latency test that uses this telemetry."""
    events: list[Event] = []
    execute_run(
        RunParts(
            info=run_info(),
            tests=(SSD_TESTS["lat"],),
            profile=load_profile("quick"),
            engine=engine,
            target=target,
            observers=(events.append,),
            clock=engine.clock,
            telemetry=telemetry,
        )
    )
    return events


def test_the_runner_asks_around_tests_and_leaves_purges_alone() -> None:
    """The runner requests readings before and after each test and at the end of the run. The runner requests no reading
    during a purge. If readings fail, the failure is reported once.
    """
    engine = SimulatedEngine(PRESET_MODELS["sata-ssd"], GIB)
    recorded = Recorded(clock=engine.clock)

    class RunTarget(FreeTarget):
        def purge(self, **how: object):  # type: ignore[no-untyped-def]
            recorded.acts.append("purge")
            return super().purge(**how)

    events = run_latency(engine, RunTarget(), recorded)
    assert recorded.acts == ["ask", "pause", "purge", "go on", "ask", "finish", "ask"]
    seen = [event.reading for event in events if isinstance(event, TelemetrySeen)]
    # On the simulated clock, the last reading has the same time as the second reading, so the runner does not report
    # it.
    assert [reading.media_errors for reading in seen] == [1, 5]
    warnings = [event.warning for event in events if isinstance(event, Warned)]
    codes = [warning.code for warning in warnings if warning.code in ("telemetry", "media-errors")]
    assert codes == ["telemetry", "media-errors"]
    assert seen[0].at_s == next(event.at_s for event in events if isinstance(event, TestStarted))


def test_ctrl_c_at_the_last_reading_costs_that_reading_alone() -> None:
    """If the user presses Ctrl-C during the last reading, only this reading is lost. The run still counts as complete,
    because all steps were measured.
    """

    class Hanging(Recorded):
        def finish(self) -> None:
            self.acts.append("finish")
            raise KeyboardInterrupt

    engine = SimulatedEngine(PRESET_MODELS["sata-ssd"], GIB)
    recorded = Hanging(clock=engine.clock)
    events = run_latency(engine, FreeTarget(), recorded)
    assert recorded.acts[-1] == "finish"
    (end,) = [event for event in events if isinstance(event, RunEnded)]
    assert end.status is RunStatus.COMPLETE
