"""Reading the logs of drives. The tests cover tools that are missing, do not end or print invalid output. The tests
also cover exchanged drives and pauses.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import until
from tests.model.telemetry.documents import CONTROLLER, OCP_LOG, POWER, SAS, SMART_LOG, attribute, sata, statistics
from tkperf.device import drive_log as drive_module
from tkperf.device.drive_log import DriveLog, UnreadError
from tkperf.device.identity import read_identity
from tkperf.device.telemetry_watch import TelemetryWatch, look_at_telemetry, reading_logs
from tkperf.model.errors import EngineError
from tkperf.model.telemetry.drive_reading import DriveFacts, Reading
from tkperf.system.process import Completed

pytestmark = pytest.mark.root
MIB = 1 << 20


class Tools:
    """Stand-ins for nvme and smartctl. tkperf calls this object and does not start the real programs."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.answers: dict[str, Any] = {
            "id-ctrl": CONTROLLER,
            "smart-log": SMART_LOG,
            "ocp": OCP_LOG,
            "get-feature": POWER,
            "version": "nvme version 2.3 (git 2.3)\nlibnvme version 1.3 (git 1.3)\n",
            "--json": sata(attribute(241, "Host_Writes_32MiB", 100)),
        }

    def __call__(self, argv: list[str], *, timeout_s: float) -> Completed:
        self.calls.append(argv)
        answer = self.answers[argv[1]]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer()
        if isinstance(answer, Completed):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return Completed(exit_status=0, stdout=text, stderr="")


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Tools:
    monkeypatch.setattr(drive_module, "find_program", lambda name: f"/usr/sbin/{name}")
    return Tools()


class MadeUp:
    """A loop device with a fake sysfs that describes it as an NVMe drive or a SATA drive."""

    def __init__(self, folder: Path, device: Path, *, nvme: bool) -> None:
        self.identity = replace(
            read_identity(device), serial="MADEUP0001" if nvme else "MADEUP0002", interface="NVMe" if nvme else "SATA"
        )
        self.sys_root = folder
        self.disk = folder / "block" / device.name
        (self.disk / "device").mkdir(parents=True)
        number = os.stat(device).st_rdev
        name = f"{os.major(number)}:{os.minor(number)}"
        self.write("dev", name)
        self.write("diskseq", "7")
        self.write("device/transport" if nvme else "device/scsi_level", "pcie" if nvme else "6")
        (folder / "dev/block").mkdir(parents=True)
        (folder / "dev/block" / name).symlink_to(self.disk)

    def write(self, name: str, text: str) -> None:
        (self.disk / name).parent.mkdir(parents=True, exist_ok=True)
        (self.disk / name).write_text(text + "\n")

    def log(self, tools: Tools) -> DriveLog:
        return DriveLog(self.identity, sys_root=self.sys_root, run=tools)


@pytest.fixture
def nvme(tmp_path: Path, loop_device: Callable[..., Path]) -> MadeUp:
    return MadeUp(tmp_path, loop_device(size=MIB), nvme=True)


@pytest.fixture
def disk(tmp_path: Path, loop_device: Callable[..., Path]) -> MadeUp:
    return MadeUp(tmp_path, loop_device(size=MIB), nvme=False)


@pytest.fixture
def watch_of() -> Iterator[Callable[..., TelemetryWatch]]:
    opened: list[TelemetryWatch] = []

    def make(*drives: DriveLog, **options: Any) -> TelemetryWatch:
        opened.append(TelemetryWatch(drives, **options))
        return opened[-1]

    yield make
    for watch in opened:
        watch.close()


def test_an_nvme_drive_by_nvme_cli(nvme: MadeUp, tools: Tools) -> None:
    """For an NVMe drive, nvme-cli provides the SMART log, the OCP log and the power state. One reading before the run
    determines the facts and their sources.
    """
    log = nvme.log(tools)
    reading = log.look_first(lambda: 5.0)
    assert reading is not None
    assert (reading.at_s, reading.drive) == (5.0, nvme.identity.path)
    assert (reading.temperature_c, reading.power_state) == (45, 0)
    assert reading.nand_written_bytes == 1_868_795_904_000
    assert log.facts.sources == ("nvme-cli 2.3: smart-log, OCP log C0h",)
    assert (log.facts.warning_c, log.facts.nand_unit_bytes, log.facts.gaps) == (70, 1, ())
    assert all(nvme.identity.path in call for call in tools.calls if call[1] != "version")


def test_without_ocps_log_it_is_asked_for_once(nvme: MadeUp, tools: Tools) -> None:
    """If a drive refuses the OCP log, tkperf does not request this log again. The amount written to flash is then not
    known.
    """
    tools.answers["ocp"] = Completed(exit_status=1, stdout="", stderr="NVMe status: Invalid Log Page")
    log = nvme.log(tools)
    log.look_first(lambda: 0.0)
    reading = log.read(lambda: 1.0)
    assert reading.nand_written_bytes is None
    assert sum(call[1] == "ocp" for call in tools.calls) == 1
    assert log.facts.gaps == ("no OCP log: the bytes written to its flash are not known",)


def test_a_sata_drive_by_smartctl(disk: MadeUp, tools: Tools) -> None:
    """For a SATA drive, smartctl provides the log. During a run, tkperf requests only the values that it needs, because
    each SMART command stops the queue of the drive.
    """
    log = disk.log(tools)
    reading = log.look_first(lambda: 0.0)
    assert reading is not None
    assert reading.host_written_bytes == 100 * 32 * MIB
    assert log.facts.sources == ("smartctl 7.3",)
    assert tools.calls[0][2:-1] == ["-i", "-A", "-l", "devstat", "-l", "error", "-l", "ssd"]
    assert tools.calls[-1][2:-1] == ["-i", "-A"]


def test_a_contradicted_attribute_is_a_warning(
    disk: MadeUp, tools: Tools, watch_of: Callable[..., TelemetryWatch]
) -> None:
    """If an attribute contradicts the device statistics, one warning contains both amounts. From then on, tkperf reads
    the device statistics at each reading.
    """
    tools.answers["--json"] = sata(
        attribute(241, "Total_LBAs_Written", 100), **statistics(Logical_Sectors_Written=6_553_600)
    )
    watch = watch_of(disk.log(tools))
    (trouble,) = watch.take_troubles()
    assert "Total_LBAs_Written is 512 bytes, its value means 51,200 bytes" in trouble
    assert "report 3,355,443,200 bytes. tkperf uses the device statistics" in trouble
    (reading,) = watch.take()
    assert reading.host_written_bytes == 3_355_443_200
    assert tools.calls[-1][2:-1] == ["-i", "-A", "-l", "devstat"]


def test_a_sas_drive_by_smartctl(disk: MadeUp, tools: Tools) -> None:
    """For a SAS drive, tkperf passes an additional option to smartctl. Only with this option does smartctl print the
    log that contains the life used.
    """
    disk.identity = replace(disk.identity, serial="MADEUP0003", interface="SAS")
    tools.answers["--json"] = SAS
    reading = disk.log(tools).look_first(lambda: 0.0)
    assert reading is not None
    assert (reading.percentage_used, reading.host_written_bytes) == (4, 111_254_503 * 10**6)
    assert tools.calls[-1][2:-1] == ["-i", "-A", "-l", "error", "-l", "ssd"]


def test_hwmon_is_the_kernels_thermometer(disk: MadeUp, tools: Tools) -> None:
    """hwmon provides the temperature in thousandths of a degree, and the temperature limits of the drive, without a
    tool. An impossible temperature is ignored.
    """
    for name, text in (("name", "drivetemp"), ("temp1_input", "41500"), ("temp1_max", "70000")):
        disk.write(f"device/hwmon/hwmon3/{name}", text)
    log = disk.log(tools)
    log.look_first(lambda: 0.0)
    found = log.read_temperature(lambda: 2.0)
    assert found == Reading(at_s=2.0, drive=log.name, source="hwmon", temperature_c=41.5)
    assert log.facts.sources == ("smartctl 7.3", "hwmon (drivetemp)")
    disk.write("device/hwmon/hwmon3/temp1_input", "-273150")
    assert log.read_temperature(lambda: 3.0) is None


def test_another_drives_log_is_not_taken_for_ours(disk: MadeUp, tools: Tools) -> None:
    """A log is refused if the serial number in the log differs from the serial number that the kernel reports."""
    tools.answers["--json"] = SAS
    log = disk.log(tools)
    with pytest.raises(
        UnreadError, match="the log contains the serial number MADEUP0003, but the kernel reports MADEUP0002"
    ):
        log.look_first(lambda: 0.0)
    assert not log.has_log


def test_a_drive_exchanged_while_its_log_is_read(disk: MadeUp, tools: Tools) -> None:
    """If the drive was exchanged while its log was read, tkperf discards the reading and stops reading the log. The
    kernel's disk sequence number reveals the exchange.
    """
    log = disk.log(tools)
    log.look_first(lambda: 0.0)

    def exchange() -> dict[str, Any]:
        disk.write("diskseq", "8")
        return sata(attribute(241, "Host_Writes_32MiB", 7))

    tools.answers["--json"] = exchange
    with pytest.raises(UnreadError, match="is now another drive") as error:
        log.read(lambda: 1.0)
    assert error.value.for_good


def test_a_node_that_is_not_the_drives_is_not_given_to_a_tool(disk: MadeUp, tools: Tools) -> None:
    """A node in /dev whose device number differs from the drive's number is not passed to a tool."""
    disk.write("dev", "7:4095")
    log = disk.log(tools)
    with pytest.raises(UnreadError, match="no longer leads to the measured drive"):
        log.look_first(lambda: 0.0)
    assert not tools.calls


def test_a_missing_tool_is_told_once_with_its_package(
    disk: MadeUp, watch_of: Callable[..., TelemetryWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing tool is reported once with the name of its package. The run continues without the tool."""
    monkeypatch.setattr(drive_module, "find_program", lambda _: None)
    watch = watch_of(disk.log(Tools()))
    watch.ask()
    watch.finish()
    (trouble,) = watch.take_troubles()
    assert trouble.endswith("'smartctl' is not installed. Install it with: sudo apt-get install smartmontools")
    assert watch.take() == []
    assert watch.facts[0].gaps == ("'smartctl' is not installed. Install it with: sudo apt-get install smartmontools",)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (EngineError("'smartctl' did not end within 10 s"), "did not end within 10 s"),
        ("\x00 nonsense", "printed no JSON object: "),
        ("[1, 2]", "printed no JSON object"),
        ({"smartctl": {"exit_status": 2, "messages": [{"string": "open failed"}]}}, "open failed"),
        ({}, "has an empty log"),
        ({"smartctl": {"exit_status": 2, "messages": [{"string": "\ud800open\x1b[31m failed"}]}}, ": open[31m failed"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
    ],
)
def test_a_tool_that_hangs_or_speaks_rubbish_is_given_up(
    disk: MadeUp, tools: Tools, watch_of: Callable[..., TelemetryWatch], answer: object, said: str
) -> None:
    """If a tool does not end or prints unusable output, tkperf reports the problem once and does not start the tool
    again in this run.
    """
    tools.answers["--json"] = answer
    watch = watch_of(disk.log(tools), log_every_s=0.02)
    time.sleep(0.2)
    watch.finish()
    (trouble,) = watch.take_troubles()
    assert said in trouble
    assert disk.identity.path in trouble
    assert len(tools.calls) <= 2
    assert said in watch.facts[0].gaps[0]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (EngineError("'smartctl' did not end within 10 s"), "did not end within 10 s"),
        ({"smartctl": {"exit_status": 2, "messages": [{"string": "open failed"}]}}, "open failed"),
        ({}, "has an empty log"),
    ],
)
def test_a_tool_that_fails_for_good_during_a_run_is_given_up(
    disk: MadeUp, tools: Tools, watch_of: Callable[..., TelemetryWatch], answer: object, said: str
) -> None:
    """If a tool does not end during the run, or reports that it cannot read the drive, tkperf reports the problem once
    and does not start the tool again.
    """
    watch = watch_of(disk.log(tools), log_every_s=0.02)
    asked = list[object]()

    def fail() -> object:
        asked.append(answer)
        if isinstance(answer, Exception):
            raise answer
        return answer

    tools.answers["--json"] = fail
    (trouble,) = until(watch.take_troubles)
    watch.finish()
    assert said in trouble
    assert trouble.endswith("; it is no longer read")
    assert watch.take_troubles() == []
    assert len(asked) == 1


def test_a_drive_without_smart_is_no_news(disk: MadeUp, tools: Tools, watch_of: Callable[..., TelemetryWatch]) -> None:
    """If a drive has no SMART, the list of gaps contains this fact, but tkperf prints no warning, because many USB
    sticks lack SMART.
    """
    tools.answers["--json"] = {"smart_support": {"available": False}}
    watch = watch_of(disk.log(tools))
    assert watch.take_troubles() == []
    assert watch.facts[0].gaps[0].endswith("it has no SMART")


def test_failures_that_pass_are_tried_again_some_times(
    disk: MadeUp, tools: Tools, watch_of: Callable[..., TelemetryWatch]
) -> None:
    """A failed reading is repeated. After three consecutive failures, tkperf stops reading, and reports the first and
    the last failure.
    """
    watch = watch_of(disk.log(tools), log_every_s=0.02)
    answers = list[str]()

    def answer() -> str:
        answers.append("rubbish")
        return answers[-1]

    tools.answers["--json"] = answer
    until(lambda: len(answers) >= 3)
    watch.finish()
    troubles = watch.take_troubles()
    assert [text.rpartition("; ")[2] for text in troubles] == ["it is tried again", "it is no longer read"]
    assert len(answers) == 3


def test_logs_are_read_now_and_then_and_when_asked(
    nvme: MadeUp, tools: Tools, watch_of: Callable[..., TelemetryWatch]
) -> None:
    """Readings are returned in the order of their times. If several requests arrive before the next reading begins,
    they lead to a single reading.
    """
    watch = watch_of(nvme.log(tools), log_every_s=3600)
    assert len(watch.take()) == 1
    for _ in range(5):
        watch.ask()
    watch.finish()
    readings = watch.take()
    assert 1 <= len(readings) <= 3
    assert all(reading.is_full for reading in readings)
    assert sorted(reading.at_s for reading in readings) == [reading.at_s for reading in readings]


def test_nothing_is_read_while_a_drive_is_purged(
    nvme: MadeUp, tools: Tools, watch_of: Callable[..., TelemetryWatch]
) -> None:
    """No log is read while a drive is purged, because SMART commands must not disturb an erase. A reading that was
    requested before the purge is made first.
    """
    watch = watch_of(nvme.log(tools), log_every_s=0.02, temperature_every_s=0.02)
    with watch.paused():
        before = len(tools.calls)
        watch.ask()
        time.sleep(0.2)
        assert len(tools.calls) == before
    until(lambda: len(tools.calls) > before)


def test_members_that_answer_slowly_are_left_alone_in_a_purge(
    disk: MadeUp, tools: Tools, watch_of: Callable[..., TelemetryWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purge waits for running readings only up to a time limit. No log of another drive is read until the purge has
    ended.
    """
    monkeypatch.setattr("tkperf.device.telemetry_watch.PAUSE_LIMIT_S", 0.1)
    watch = watch_of(*(disk.log(tools) for _ in range(5)), log_every_s=3600)
    document, may_answer = tools.answers["--json"], threading.Event()

    def answer_slowly() -> Any:
        may_answer.wait(600)
        return document

    tools.answers["--json"] = answer_slowly
    before = len(tools.calls)
    watch.ask()
    until(lambda: len(tools.calls) > before)
    with watch.paused():
        may_answer.set()
        # The thread takes the order to pause only when it no longer reads any drive.
        until(watch._orders.empty, "the thread did not take its order")
        assert len(tools.calls) == before + 1
    watch.ask()
    until(lambda: len(tools.calls) >= before + 6)
    watch.close()
    watch._thread.join(60)
    assert len(tools.calls) == before + 6


def test_a_hanging_tool_holds_nobody_up_for_long(
    nvme: MadeUp, tools: Tools, watch_of: Callable[..., TelemetryWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a tool does not end, a purge and the end of a run wait for this tool only up to a time limit. The function
    that collects the readings never waits.
    """
    watch = watch_of(nvme.log(tools), log_every_s=3600)
    watch.take()
    monkeypatch.setattr("tkperf.device.telemetry_watch.FINISH_LIMIT_S", 0.2)
    monkeypatch.setattr("tkperf.device.telemetry_watch.PAUSE_LIMIT_S", 0.2)

    ends, answers = threading.Event(), list[object]()

    def hang() -> dict[str, Any]:
        ends.wait(120)
        answers.append(SMART_LOG)
        return SMART_LOG

    tools.answers["smart-log"] = hang
    watch.ask()
    assert watch.take() == []
    with watch.paused():
        pass
    watch.finish()
    assert answers == []
    ends.set()


def test_files_and_unwanted_telemetry_have_none(tmp_path: Path, disk: MadeUp) -> None:
    """For a file, telemetry provides no facts, no readings and no warnings. This also applies to a drive if the user
    has switched telemetry off.
    """
    file = tmp_path / "file"
    file.write_bytes(bytes(4096))
    for identity, wanted in ((read_identity(file), True), (disk.identity, False)):
        with reading_logs(identity, wanted=wanted) as watch:
            watch.ask()
            watch.finish()
            assert (watch.facts, watch.take(), watch.take_troubles()) == ((), [], [])
    assert look_at_telemetry(read_identity(file)) == (None, None)


def test_a_loop_device_keeps_no_log(loop_device: Callable[..., Path]) -> None:
    """The facts of a loop device state that such devices provide no log. The facts do not contain the log of the disk
    below the loop device.
    """
    facts, reading = look_at_telemetry(read_identity(loop_device(size=MIB)))
    assert reading is None
    assert facts is not None
    assert facts.gaps == ("such devices keep no log that can be read",)


def test_a_defect_in_reading_ends_no_run_and_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect in the code that reads telemetry is reported and does not end the run. No other thread waits for the
    thread that failed.
    """
    for name in ("PAUSE_LIMIT_S", "FINISH_LIMIT_S"):
        monkeypatch.setattr(f"tkperf.device.telemetry_watch.{name}", 100.0)

    class Defect:
        name, missing, is_silent, has_log = "/dev/x", None, False, True
        facts = DriveFacts(drive="/dev/x")

        def look_first(self, _now_s: object) -> None:
            return None

        def read(self, _now_s: object) -> Reading:
            raise ZeroDivisionError

    watch = TelemetryWatch([Defect()], log_every_s=0.01)  # type: ignore[list-item]
    assert until(watch.take_troubles) == ["drives' logs are no longer read: ZeroDivisionError()"]
    watch._thread.join(60)
    assert not watch._thread.is_alive()
    began_s = time.monotonic()
    with watch.paused():
        watch.finish()
    watch.close()
    assert time.monotonic() - began_s < 90
