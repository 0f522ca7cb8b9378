"""Documents that nvme-cli prints: the SMART / health log, OCP's extended log, the power state, and
limits.

The formats are those of nvme-cli 1.16 to 3.0-rc1. The fields follow NVM Express 1.4 (5.14.1.2) and
OCP's Datacenter NVMe SSD Specification 2.0 (4.8.6).
"""

from __future__ import annotations

import re
from dataclasses import replace

from tkperf.model.telemetry.drive_reading import (
    DATA_UNIT_BYTES,
    KELVIN_OF_0_C,
    DriveFacts,
    LogDocument,
    Reading,
    count,
    read_temperature,
    read_word,
    scaled,
    table,
)

SOURCE = "nvme"
# "get-feature:0x02 (Power Management), Current value:0x00000000"; newer versions write it in JSON.
_POWER = re.compile(r"(?:Current value|\"?Result\"?)\s*:\s*\"?(?:0x)?([0-9a-fA-F]+)")
_POWER_STATE_BITS = 0x1F


def parse_smart_log(document: LogDocument, *, at_s: float, drive: str) -> Reading:
    """Return the reading of a SMART / health log (02h); it is empty if the document is no such log."""
    warning = document.get("critical_warning")
    if isinstance(warning, dict):  # with --verbose, and in some versions always
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
    """Return the reading with the values of OCP's extended log (C0h); its physical media units are bytes (SMART-1)."""
    status = _of(document, "Current throttling status", "current_throttling_status")
    return replace(
        reading,
        nand_written_bytes=_wide(_of(document, "Physical media units written", "physical_media_units_written")),
        throttle_events=count(_of(document, "Number of Thermal throttling events", "thermal_throttling_events")),
        throttling=None if count(status) is None else count(status) != 0,
    )


def is_ocp_log(document: LogDocument) -> bool:
    """Return whether a drive answered with OCP's log, and not with another maker's page of that number."""
    guid = _of(document, "Log page GUID", "log_page_guid")
    return isinstance(guid, str) and guid.lower().removeprefix("0x").endswith(_OCP_GUID)


# AFD514C97C6F4F9CA4F2BFEA2810AFC5h; no version prints leading zeros of its halves.
_OCP_GUID = "afd514c97c6f4f9ca4f2bfea2810afc5"


def parse_power_state(text: str) -> int | None:
    """Return the number of the power state, from ``nvme get-feature --feature-id=2``."""
    found = _POWER.search(text)
    return None if found is None else int(found[1], 16) & _POWER_STATE_BITS


def parse_controller(document: LogDocument, *, drive: str) -> DriveFacts:
    """Return the controller's identity and its temperature limits (WCTEMP, CCTEMP; 0: none)."""
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
    """Return degrees Celsius; a drive reports 0 K if it does not know its temperature."""
    if isinstance(kelvin, bool) or not isinstance(kelvin, int | float):
        return None
    return read_temperature(kelvin - KELVIN_OF_0_C)


def _of(document: LogDocument, *names: str) -> object:
    return next((document[name] for name in names if name in document), None)


def _wide(value: object) -> int | None:
    """Return a number of 128 bits, from two halves or from one number."""
    halves = table(value)
    if not halves:
        return count(value)
    low, high = count_of_64_bits(halves.get("lo")), count_of_64_bits(halves.get("hi"))
    return None if low is None or high is None else count((high << 64) + low)


def count_of_64_bits(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**64 else None
