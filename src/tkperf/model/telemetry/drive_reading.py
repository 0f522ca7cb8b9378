"""A parser for the log of a drive. The parser converts the values into units that do not depend on the bus or the
maker. The log may be incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Protocol

from tkperf.model.units import drop_controls

KELVIN_OF_0_C = 273
# According to NVM Express 1.4, section 5.14.1.2, a data unit consists of a thousand units of 512 bytes.
DATA_UNIT_BYTES = 512_000
# Bit 1 of the critical warning means that the temperature is at or above an upper threshold, or at or below a lower
# threshold.
TEMPERATURE_WARNING = 1 << 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The log of a drive at one moment. A value is None if the drive does not report the value, or if tkperf did not
    read the value.

    Counters cover the whole life of the drive. Minutes, seconds and counts only increase.

    Attributes:
        at_s: time of the reading on the run's clock.
        drive: the node of the drive, such as ``/dev/nvme0n1``. Each member of a set has its own readings.
        source: ``nvme``, ``smartctl``, ``hwmon`` (only the temperature) or ``simulated``.
        host_read_bytes, host_written_bytes: bytes of the host's requests, as the drive counts them.
        nand_written_bytes: bytes written to the flash, including data that the drive itself copies.
        media_errors: number of times that the drive could not read data or could not keep data undamaged.
        percentage_used: used share of the rated life, in %. The value may exceed 100.
        spare_percent: remaining share of the spare blocks that the new drive had, in %.
        critical_warning: the bits defined by NVM Express. 0 means that there is no warning.
        warning_minutes, critical_minutes: time above the drive's own temperature limits.
        thermal_1_count, thermal_2_count: number of times that the drive throttled itself lightly, and heavily, to keep
            the temperatures that the host set (NVM Express: host controlled thermal management).
        thermal_1_s, thermal_2_s: duration of light, and of heavy, throttling.
        throttle_events: number of times that the drive throttled itself because of heat (OCP's log).
        throttling: whether the drive throttles itself at the time of the reading.
        power_state: number of the power state. 0 is the fastest state.
    """

    at_s: float
    drive: str
    source: str
    temperature_c: float | None = None
    host_read_bytes: int | None = None
    host_written_bytes: int | None = None
    nand_written_bytes: int | None = None
    media_errors: int | None = None
    percentage_used: int | None = None
    spare_percent: int | None = None
    unsafe_shutdowns: int | None = None
    power_on_hours: int | None = None
    critical_warning: int | None = None
    warning_minutes: int | None = None
    critical_minutes: int | None = None
    thermal_1_count: int | None = None
    thermal_2_count: int | None = None
    thermal_1_s: int | None = None
    thermal_2_s: int | None = None
    throttle_events: int | None = None
    throttling: bool | None = None
    power_state: int | None = None

    @property
    def is_full(self) -> bool:
        """Return whether this reading contains values of the drive's log, and not only the temperature."""
        # All names are listed in one attrgetter, because a loop over the names takes five times as long.
        return _values_of_log(self) != _NONE_OF_LOG

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, name) is None for name in _VALUES)


_VALUES = tuple(attribute.name for attribute in fields(Reading) if attribute.default is None)
_OF_LOG = tuple(name for name in _VALUES if name != "temperature_c")
_values_of_log = attrgetter(*_OF_LOG)
_NONE_OF_LOG = (None,) * len(_OF_LOG)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveFacts:
    """Facts about the telemetry of a drive that do not change during a run.

    Attributes:
        model, serial, firmware: the values in the log of the drive.
        sources: the programs and logs that give the values, with versions, such as
            ``nvme-cli 2.3: smart-log, OCP log``.
        warning_c, critical_c: the temperature limits of the drive.
        host_unit_bytes, nand_unit_bytes: the units in which the drive counts writes of the host and writes to the
            flash.
        gaps: values that are not known, with the reasons.
        contradictions: sentences about counters that contradict each other. Each sentence states which counter tkperf
            uses.
    """

    drive: str
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    sources: tuple[str, ...] = ()
    warning_c: float | None = None
    critical_c: float | None = None
    host_unit_bytes: int | None = None
    nand_unit_bytes: int | None = None
    gaps: tuple[str, ...] = field(default_factory=tuple)
    contradictions: tuple[str, ...] = ()


class Telemetry(Protocol):
    """A reader of the drives' logs. The logs are read during a run, and the run does not wait for the readings. All
    times are those of the run's clock.
    """

    def take(self) -> Sequence[Reading]:
        """Return the readings since the last call, oldest first."""
        ...

    def take_troubles(self) -> Sequence[str]:
        """Return the read failures since the last call. Each failure is reported once."""
        ...

    def ask(self) -> None:
        """Request that all logs are read as soon as possible, in the background."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Pause the reading during the ``with`` block, for example during a purge. Earlier requests are completed
        first.
        """
        ...

    def finish(self) -> None:
        """Read all logs once more, wait a few seconds for the result, and then stop reading."""
        ...


LogDocument = Mapping[str, Any]
# The largest number that a column of a run file can store. No counter of a drive reaches this number.
_MOST = 2**63 - 1
# Temperatures outside these limits are not real. A drive reports 0 K if the temperature is not known.
LEAST_C, MOST_C = -60.0, 250.0
# The maximum length of a useful name, number or error.
_LONGEST = 200


def count(value: object) -> int | None:
    """Return a counter as an integer. None means that the value is not a counter. Some versions of the tools write
    numbers of 128 bits as text, with or without separators.
    """
    if isinstance(value, str):
        digits = value.replace(",", "").replace(" ", "")
        value = int(digits) if digits.isdecimal() and len(digits) < 40 else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MOST else None


def scaled(value: object, unit_bytes: int) -> int | None:
    """Return a counter in bytes. None means that the value is not a counter, or that no drive could have written so
    many bytes.
    """
    number = count(value)
    return None if number is None else count(number * unit_bytes)


def read_temperature(value: object) -> float | None:
    """Return a temperature in degrees Celsius. None means that no drive can have this temperature."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if LEAST_C <= value <= MOST_C else None


def table(value: object) -> LogDocument:
    """Return the value if it is a JSON object. Otherwise, return an empty object."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[LogDocument]:
    """Return the objects in a JSON list. If the value is not a list, the result is empty."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def read_word(value: object) -> str | None:
    """Return a text without the characters that a run file or a terminal cannot store or show. JSON may contain such
    characters.
    """
    if not isinstance(value, str):
        return None
    return drop_controls(value[:_LONGEST]).replace("\n", " ").strip() or None


SOURCE = "nvme"
# Older versions of nvme-cli print "get-feature:0x02 (Power Management), Current value:0x00000000". Newer versions print
# the value in JSON.
_POWER = re.compile(r"(?:Current value|\"?Result\"?)\s*:\s*\"?(?:0x)?([0-9a-fA-F]+)")
_POWER_STATE_BITS = 0x1F


def parse_smart_log(document: LogDocument, *, at_s: float, drive: str) -> Reading:
    """Return the reading of a SMART / health log (02h). If the document is not such a log, the reading contains no
    values.
    """
    warning = document.get("critical_warning")
    # The value is a dictionary if nvme-cli runs with --verbose, and always in some versions.
    if isinstance(warning, dict):
        warning = warning.get("value")
    return Reading(
        at_s=at_s,
        drive=drive,
        source=SOURCE,
        temperature_c=_celsius(document.get("temperature")),
        host_read_bytes=scaled(document.get("data_units_read"), DATA_UNIT_BYTES),
        host_written_bytes=scaled(document.get("data_units_written"), DATA_UNIT_BYTES),
        media_errors=count(document.get("media_errors")),
        percentage_used=count(document.get("percent_used", document.get("percentage_used"))),
        spare_percent=count(document.get("avail_spare", document.get("available_spare"))),
        unsafe_shutdowns=count(document.get("unsafe_shutdowns")),
        power_on_hours=count(document.get("power_on_hours")),
        critical_warning=count(warning),
        warning_minutes=count(document.get("warning_temp_time")),
        critical_minutes=count(document.get("critical_comp_time")),
        thermal_1_count=count(document.get("thm_temp1_trans_count")),
        thermal_2_count=count(document.get("thm_temp2_trans_count")),
        thermal_1_s=count(document.get("thm_temp1_total_time")),
        thermal_2_s=count(document.get("thm_temp2_total_time")),
    )


def with_ocp_log(reading: Reading, document: LogDocument) -> Reading:
    """Return the reading with the values of OCP's extended log (C0h). The physical media units of this log are bytes
    (SMART-1).
    """
    status = _of(document, "Current throttling status", "current_throttling_status")
    return replace(
        reading,
        nand_written_bytes=_wide(_of(document, "Physical media units written", "physical_media_units_written")),
        throttle_events=count(_of(document, "Number of Thermal throttling events", "thermal_throttling_events")),
        throttling=None if count(status) is None else count(status) != 0,
    )


def is_ocp_log(document: LogDocument) -> bool:
    """Return whether a document is OCP's log. Other makers use the same log page number for other data."""
    guid = _of(document, "Log page GUID", "log_page_guid")
    return isinstance(guid, str) and guid.lower().removeprefix("0x").endswith(_OCP_GUID)


# The GUID of OCP's log is AFD514C97C6F4F9CA4F2BFEA2810AFC5h. nvme-cli prints the GUID in two halves, and no version
# prints the leading zeros of the halves.
_OCP_GUID = "afd514c97c6f4f9ca4f2bfea2810afc5"


def parse_power_state(text: str) -> int | None:
    """Return the number of the power state from the output of ``nvme get-feature --feature-id=2``. None means that the
    output contains no such number.
    """
    found = _POWER.search(text)
    return None if found is None else int(found[1], 16) & _POWER_STATE_BITS


def parse_controller(document: LogDocument, *, drive: str) -> DriveFacts:
    """Return the identity and the temperature limits of a controller. The fields WCTEMP and CCTEMP contain 0 if no
    limit exists.
    """
    return DriveFacts(
        drive=drive,
        model=read_word(document.get("mn")),
        serial=read_word(document.get("sn")),
        firmware=read_word(document.get("fr")),
        warning_c=_celsius(document.get("wctemp")),
        critical_c=_celsius(document.get("cctemp")),
        host_unit_bytes=DATA_UNIT_BYTES,
    )


def _celsius(kelvin: object) -> float | None:
    """Return a temperature in degrees Celsius. None means that the temperature is not known. A drive reports 0 K in
    this case.
    """
    if isinstance(kelvin, bool) or not isinstance(kelvin, int | float):
        return None
    return read_temperature(kelvin - KELVIN_OF_0_C)


def _of(document: LogDocument, *names: str) -> object:
    return next((document[name] for name in names if name in document), None)


def _wide(value: object) -> int | None:
    """Return a number of 128 bits. The document contains the number either as two halves or as a single number."""
    halves = table(value)
    if not halves:
        return count(value)
    low, high = count_of_64_bits(halves.get("lo")), count_of_64_bits(halves.get("hi"))
    return None if low is None or high is None else count((high << 64) + low)


def count_of_64_bits(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**64 else None
