"""The log and the thermometer of a drive. The log is read with the tool for the drive's bus (nvme-cli, smartctl). No
other drive is read.

The tool receives the kernel's node of the disk. tkperf checks the node and the drive before and after the call. tkperf
also compares the serial number in the log with the serial number from the kernel.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tkperf.device.identity import DeviceIdentity
from tkperf.device.sysfs import (
    SYS_ROOT,
    device_number,
    find_disk,
    find_node,
    find_nvme_controller,
    is_scsi,
    number,
    text,
)
from tkperf.model.errors import EngineError, reason_of
from tkperf.model.input_files import is_there
from tkperf.model.telemetry import drive_reading, smartctl
from tkperf.model.telemetry.drive_reading import DriveFacts, LogDocument, Reading, read_temperature
from tkperf.system.process import PACKAGES, Completed, RunTool, find_program, run_command

# A healthy drive answers within milliseconds, and a busy drive within one or two seconds.
DRIVE_LOG_LIMIT_S = 10.0
Clock = Callable[[], float]


def _find_sensors(disk: Path) -> Iterator[Path]:
    """Yield the hwmon folders of a disk. The first folder contains the composite temperature.

    For NVMe, the folders are below the PCI function in older kernels, and below the controller in newer kernels.
    """
    places = [disk / "device"]
    controller = find_nvme_controller(disk)
    if controller is not None:
        places = [controller, controller / "device"]
    for place in places:
        for pattern in ("hwmon[0-9]*", "hwmon/hwmon[0-9]*"):
            for folder in sorted(place.glob(pattern)):
                if is_there(folder / "temp1_input"):
                    yield folder


class UnreadError(Exception):
    """The log of a drive cannot be read at the moment. The message contains the reason.

    ``for_good`` means that later attempts will fail as well. ``usual`` means that drives of this kind have no log.
    """

    def __init__(self, text: str, *, for_good: bool = False, usual: bool = False) -> None:
        super().__init__(text)
        self.for_good = for_good or usual
        self.usual = usual


class DriveLog:
    """The log and the thermometer of one drive."""

    def __init__(self, identity: DeviceIdentity, *, sys_root: Path = SYS_ROOT, run: RunTool = run_command) -> None:
        """Find the tool and the thermometer of a disk, or of the disk that contains a partition. No command is sent to
        the drive yet.
        """
        assert identity.major_minor is not None, "files have no log"
        self._disk = find_disk(find_node(identity.major_minor, sys_root))
        self.name = f"/dev/{self._disk.name}"
        self._device = device_number(self._disk)
        self._marks = self._read_marks()
        self._sensor = next(_find_sensors(self._disk), None)
        # The name of the kernel driver for the thermometer: drivetemp or nvme.
        self._sensor_name = self._sensor and text(self._sensor / "name")
        self._tool, self.missing = _choose_tool(self._disk, self.name, run)
        # Behind a USB bridge, the serial number may belong to the bridge.
        self._serial = None if identity.interface == "USB" else identity.serial
        gap = "" if self._tool else self.missing or "such devices keep no log that can be read"
        self.facts = DriveFacts(drive=self.name, gaps=(gap,) if gap else ())

    @property
    def has_log(self) -> bool:
        return self._tool is not None

    @property
    def is_silent(self) -> bool:
        """Return whether neither a tool nor a thermometer can be used to read the drive."""
        return self._tool is None and self._sensor_name is None

    def look_first(self, now_s: Clock) -> Reading | None:
        """Read the drive's facts, and return the first reading before the run. None means that there is no tool.

        After an error, the tool is not used again, and ``facts`` contains the reason.

        Raises:
            UnreadError: the tool does not end or prints no log, or the log belongs to another drive.
        """
        self.facts = self._with_thermometer(self.facts)
        if self._tool is None:
            return None
        try:
            found = self._tool.find_facts(self._checked_node())
            self._require_same(found)
            reading = self.read(now_s)
        except UnreadError as error:
            self._tool = None
            self.facts = replace(self.facts, gaps=(str(error),))
            raise
        self.facts = self._with_thermometer(found)
        return reading

    def _with_thermometer(self, facts: DriveFacts) -> DriveFacts:
        """Return the facts with the thermometer as an additional source. The thermometer provides temperature limits
        that the log does not contain.
        """
        source = (f"hwmon ({self._sensor_name})",) if self._sensor_name else ()
        warning_c, critical_c = facts.warning_c, facts.critical_c
        return replace(
            facts,
            sources=(*facts.sources, *source),
            warning_c=self._read_celsius("temp1_max") if warning_c is None else warning_c,
            critical_c=self._read_celsius("temp1_crit") if critical_c is None else critical_c,
        )

    def _read_celsius(self, name: str) -> float | None:
        thousandths = number(self._sensor / name) if self._sensor else None
        return None if thousandths is None else read_temperature(thousandths / 1000)

    def read(self, now_s: Clock) -> Reading:
        """Read the log once.

        Raises:
            UnreadError: the log cannot be read, is empty, or belongs to another drive.
        """
        assert self._tool is not None
        reading = self._tool.read(self._checked_node(), now_s)
        self._require_same(None)
        if reading.is_empty:
            raise UnreadError(f"{self.name} has an empty log", for_good=True)
        return reading

    def read_temperature(self, now_s: Clock) -> Reading | None:
        """Return a reading of the kernel's thermometer. None means that no thermometer answers."""
        at_s, celsius = now_s(), self._read_celsius("temp1_input")
        if celsius is None:
            return None
        return Reading(at_s=at_s, drive=self.name, source="hwmon", temperature_c=celsius)

    def give_up(self) -> None:
        """Stop using the drive's tool."""
        self._tool = None

    def _checked_node(self) -> str:
        """Return the kernel's node of the disk, after a check that the node belongs to the disk."""
        try:
            status = Path(self.name).lstat()
        except OSError as error:
            raise UnreadError(f"{self.name}: {reason_of(error)}") from error
        if not stat.S_ISBLK(status.st_mode) or status.st_rdev != self._device:
            raise UnreadError(
                f"{self.name} no longer leads to the measured drive, so tkperf does not read its log", for_good=True
            )
        self._require_same(None)
        return self.name

    def _require_same(self, found: DriveFacts | None) -> None:
        """Raise UnreadError if the drive is now a different drive, or if its log contains another serial number."""
        if self._read_marks() != self._marks:
            raise UnreadError(f"{self.name} is now another drive", for_good=True)
        if found is None or not found.serial or not self._serial:
            return
        ours, its = self._serial.replace(" ", ""), found.serial.replace(" ", "")
        if ours not in its and its not in ours:
            raise UnreadError(
                f"{self.name}: the log contains the serial number {found.serial}, but the kernel reports "
                f"{self._serial}. tkperf does not read this log",
                for_good=True,
            )

    def _read_marks(self) -> tuple[object, ...]:
        """Return values that identify the drive. The values would differ if the name led to another drive."""
        device = self._disk / "device"
        return (
            device_number(self._disk),
            number(self._disk / "diskseq"),
            text(device / "serial"),
            text(self._disk / "wwid") or text(device / "wwid"),
        )


class NvmeTool:
    """The reader of an NVMe drive's log with nvme-cli. nvme-cli sends three short commands to the admin queue, which do
    not interrupt I/O. All methods that read can raise UnreadError.
    """

    def __init__(self, drive: str, run: RunTool) -> None:
        self._drive, self._run = drive, run
        self._has_ocp = False

    def find_facts(self, node: str) -> DriveFacts:
        facts = drive_reading.parse_controller(
            _read_json(self._run, ["nvme", "id-ctrl", "-o", "json", node]), drive=self._drive
        )
        ocp = self._ask_ocp(node)
        self._has_ocp = drive_reading.is_ocp_log(ocp)
        logs = "smart-log, OCP log C0h" if self._has_ocp else "smart-log"
        return replace(
            facts,
            sources=(f"{self._version()}: {logs}",),
            nand_unit_bytes=1 if self._has_ocp else None,
            gaps=() if self._has_ocp else ("no OCP log: the bytes written to its flash are not known",),
        )

    def read(self, node: str, now_s: Clock) -> Reading:
        at_s = now_s()
        log = _read_json(self._run, ["nvme", "smart-log", "-o", "json", node])
        reading = drive_reading.parse_smart_log(log, at_s=at_s, drive=self._drive)
        if self._has_ocp:
            reading = drive_reading.with_ocp_log(reading, self._ask_ocp(node))
        power = _call(self._run, ["nvme", "get-feature", "--feature-id=2", node])
        if reading.is_empty or power.exit_status != 0:
            return reading
        return replace(reading, power_state=drive_reading.parse_power_state(power.stdout))

    def _ask_ocp(self, node: str) -> LogDocument:
        """Return the OCP log. An empty result means that the drive or this version of nvme-cli does not support this
        log.
        """
        try:
            return _read_json(self._run, ["nvme", "ocp", "smart-add-log", "-o", "json", node])
        except UnreadError as error:
            if error.for_good:
                raise
            return {}

    def _version(self) -> str:
        words = _call(self._run, ["nvme", "version"]).stdout.split()
        return f"nvme-cli {words[2]}" if len(words) > 2 else "nvme-cli"


class SmartctlTool:
    """The reader of a drive's log with smartctl. On an ATA drive, each command of smartctl waits until no other command
    is running.
    """

    def __init__(self, drive: str, run: RunTool) -> None:
        self._drive, self._run = drive, run
        self._logs: tuple[str, ...] = ("-l", "devstat", "-l", "error", "-l", "ssd")

    def find_facts(self, node: str) -> DriveFacts:
        """Return the drive's facts, and choose the logs to read during the run.

        For an ATA drive, the statistics log is read only if no attribute counts the writes of the host, or if the
        statistics contradict the attribute. In its log for solid state drives, a SCSI drive reports how much of its
        life is used.
        """
        document = self._ask(node)
        facts = smartctl.parse_drive_facts(document, drive=self._drive)
        if "ata_smart_attributes" in document:
            self._logs = ("-l", "devstat") if smartctl.needs_statistics(document) else ()
        elif "nvme_smart_health_information_log" in document:
            self._logs = ()
        else:
            self._logs = ("-l", "error", "-l", "ssd")
        unknown = [] if facts.host_unit_bytes else ["host writes in a known unit"]
        unknown += [] if facts.nand_unit_bytes else ["writes to its flash"]
        return replace(
            facts,
            sources=(smartctl.parse_version(document),),
            gaps=tuple(f"{what} are not reported" for what in unknown),
        )

    def read(self, node: str, now_s: Clock) -> Reading:
        at_s = now_s()
        return smartctl.parse(self._ask(node), at_s=at_s, drive=self._drive)

    def _ask(self, node: str) -> LogDocument:
        # Some bits of smartctl's exit status only mean that the drive has recorded errors.
        document = _read_json(self._run, ["smartctl", "--json", "-i", "-A", *self._logs, node], any_status=True)
        if failure := smartctl.find_failure(document):
            usual = failure == smartctl.NO_SMART or smartctl.UNKNOWN_BRIDGE in failure
            raise UnreadError(f"smartctl cannot read {self._drive}: {failure}", for_good=True, usual=usual)
        return document


def _choose_tool(disk: Path, name: str, run: RunTool) -> tuple[NvmeTool | SmartctlTool | None, str | None]:
    """Return the tool for the bus of the drive. If this tool is not installed, return a text that explains how to
    install it.
    """
    is_nvme = find_nvme_controller(disk) is not None
    if is_nvme and find_program("nvme") is not None:
        return NvmeTool(name, run), None
    if not is_nvme and not is_scsi(disk):
        return None, None
    if find_program("smartctl") is not None:
        return SmartctlTool(name, run), None
    program = "nvme" if is_nvme else "smartctl"
    return None, f"'{program}' is not installed. Install it with: sudo apt-get install {PACKAGES[program]}"


def _call(run: RunTool, argv: list[str]) -> Completed:
    try:
        return run(argv, timeout_s=DRIVE_LOG_LIMIT_S)
    except EngineError as error:
        raise UnreadError(str(error), for_good=True) from error
    # no new thread can be started: this is a limit of the machine, not a fault of the tool
    except RuntimeError as error:
        raise UnreadError(f"'{argv[0]}' cannot be read: {error}") from error


def _read_json(run: RunTool, argv: list[str], *, any_status: bool = False) -> LogDocument:
    """Return the JSON object that a tool prints."""
    done = _call(run, argv)
    try:
        document = json.loads(done.stdout)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and (any_status or done.exit_status == 0):
        return document
    # If a command fails, nvme-cli 3.0 prints a warning on stderr and the reason on stdout.
    said = " ".join((done.stdout or done.stderr).split())[:120]
    wrong = f"ended with status {done.exit_status}" if done.exit_status else "printed no JSON object"
    raise UnreadError(f"'{' '.join(argv)}' {wrong}" + (f": {said}" if said else ""))
