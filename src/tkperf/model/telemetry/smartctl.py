"""A parser for the JSON output of smartctl (7.2 and newer) for ATA, SCSI and NVMe drives.

Each maker chooses the units of the ATA attributes of its drives. tkperf uses a counter only if the name in smartctl's
database contains the unit. Otherwise, the value is not known. The ATA standard defines the units of device statistics.
If the statistics contradict an attribute, tkperf uses the statistics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tkperf.model.telemetry import drive_reading
from tkperf.model.telemetry.drive_reading import (
    DATA_UNIT_BYTES,
    DriveFacts,
    LogDocument,
    Reading,
    count,
    read_temperature,
    read_word,
    rows,
    scaled,
    table,
)

SOURCE = "smartctl"
_UNITS = {"MiB": 1 << 20, "GiB": 1 << 30, "GB": 10**9}
# These patterns match names such as Host_Writes_32MiB, Lifetime_Writes_GiB, NAND_Writes_1GiB, Total_NAND_Writes_GiB and
# NAND_GB_Written_TLC.
_AMOUNT = re.compile(
    r"(?P<whose>Host|Lifetime|Total|NAND|Flash|Total_NAND|TLC|SLC)_(?P<what>Writes|Reads)_"
    r"(?P<number>\d*)(?P<unit>MiB|GiB|GB)"
)
_NAND_GB = re.compile(r"(?:NAND_GB_Written_(?P<cells>TLC|SLC)|(?P<before>TLC|SLC)_NAND_GB_Writes)")
_OF_HOST = ("Host", "Lifetime", "Total")
_BY_LBA = {"Total_LBAs_Written": "Writes", "Total_LBAs_Read": "Reads"}
# Names of device statistics (ACS-4, section 9.5) as smartctl prints them, with the names of the values in a reading.
_STATISTICS = {
    "Logical Sectors Written": "host_written",
    "Logical Sectors Read": "host_read",
    "Power-on Hours": "power_on_hours",
    "Number of Reported Uncorrectable Errors": "media_errors",
    "Percentage Used Endurance Indicator": "percentage_used",
}
NO_SMART = "it has no SMART"
# The beginning of smartctl's message for a drive behind an unknown USB bridge.
UNKNOWN_BRIDGE = "Unknown USB bridge"
# Bits 0 and 1 of the exit status of smartctl mean that the call was wrong, or that the drive could not be opened.
_NOT_READ = 0b11
_MOST_MESSAGES = 3
# An attribute whose name contains GB but that counts GiB is wrong by 7 %, which is more than the first limit. The
# second limit, in units, allows for writes between the readings of two counters.
_MOST_DIFFERENCE = 0.05
_MOST_STEPS = 2
# The greatest accepted difference between the power-on hours in an attribute and in the device statistics is this
# number of hours plus a share of the hours (``_MOST_DIFFERENCE``). A drive may include its standby hours in only one of
# these counters.
_MOST_HOURS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A counter converted to bytes, with the size of its unit and the name of the counter."""

    bytes: int
    unit_bytes: int
    name: str


def _bytes(amount: Amount | None) -> int | None:
    return None if amount is None else amount.bytes


def _unit(amount: Amount | None) -> int | None:
    return None if amount is None else amount.unit_bytes


def find_failure(document: LogDocument) -> str | None:
    """Return the reason why a document contains no data. None means that the document contains data."""
    run = table(document.get("smartctl"))
    messages = [text for message in rows(run.get("messages")) if (text := read_word(message.get("string")))]
    status = count(run.get("exit_status"))
    if status is not None and status & _NOT_READ:
        return "; ".join(messages[:_MOST_MESSAGES]) or f"exit status {status}"
    # smartctl reports no SMART support for a SCSI drive without the mode page of informational exceptions, although
    # such a drive has log pages.
    has_log = bool(table(document.get("scsi_error_counter_log")))
    if table(document.get("smart_support")).get("available") is False and not has_log:
        return NO_SMART
    return None


def parse_version(document: LogDocument) -> str:
    """Return the name and version of the program, such as ``smartctl 7.3``."""
    version = table(document.get("smartctl")).get("version")
    numbers = version if isinstance(version, list) else []
    return f"smartctl {'.'.join(str(count(part)) for part in numbers)}".strip()


def parse_drive_facts(document: LogDocument, *, drive: str) -> DriveFacts:
    """Return the identity and the counting units of the drive."""
    written = _amount(document, "Writes", statistics_first=needs_statistics(document))
    nand = _nand(document)
    is_nvme = bool(table(document.get("nvme_smart_health_information_log")))
    limits = table(document.get("temperature"))
    return DriveFacts(
        drive=drive,
        model=read_word(document.get("model_name")) or read_word(document.get("scsi_model_name")),
        serial=read_word(document.get("serial_number")),
        # smartctl 7.2 prints the revision of SCSI drives without the prefix "scsi_".
        firmware=read_word(document.get("firmware_version"))
        or read_word(document.get("scsi_revision"))
        or read_word(document.get("revision")),
        # smartctl reports the highest recommended temperature as op_limit_max. For SCSI drives, the critical limit is
        # the temperature at which the drive reports a failure.
        warning_c=read_temperature(limits.get("op_limit_max")),
        critical_c=read_temperature(limits.get("limit_max", limits.get("drive_trip"))),
        host_unit_bytes=DATA_UNIT_BYTES if is_nvme else _unit(written),
        nand_unit_bytes=_unit(nand),
        contradictions=tuple(_find_contradictions(document)),
    )


def needs_statistics(document: LogDocument) -> bool:
    """Return whether tkperf must read the device statistics log during the run.

    Reading is necessary if no attribute counts the writes of the host in a known unit, or if an attribute contradicts
    the statistics.
    """
    has_statistics = _statistics_amount(document, "Writes") is not None
    has_attribute = _attribute_amount(document, "Writes") is not None
    return (has_statistics and not has_attribute) or any(_find_contradictions(document))


def _find_contradictions(document: LogDocument) -> Iterator[str]:
    """Yield a sentence for each attribute that the device statistics contradict."""
    for what in ("Writes", "Reads"):
        attribute = _attribute_amount(document, what)
        statistics = _statistics_amount(document, what)
        if attribute is None or statistics is None:
            continue
        apart = abs(attribute.bytes - statistics.bytes)
        steps_bytes = _MOST_STEPS * (attribute.unit_bytes + statistics.unit_bytes)
        largest = max(attribute.bytes, statistics.bytes)
        if apart > _MOST_DIFFERENCE * largest + steps_bytes:
            yield (
                f"if the unit of the SMART attribute {attribute.name} is {attribute.unit_bytes:,} bytes, its value "
                f"means {attribute.bytes:,} bytes, but the device statistics ({statistics.name}) report "
                f"{statistics.bytes:,} bytes. tkperf uses the device statistics"
            )
    hours, counted = _hours(document), dict(_statistics(document)).get("power_on_hours")
    if hours is None or counted is None:
        return
    if abs(hours - counted) > _MOST_DIFFERENCE * max(hours, counted) + _MOST_HOURS:
        yield (
            f"smartctl computes {hours:,} power-on hours from a SMART attribute, but the device statistics "
            f"(Power-on Hours) report {counted:,} hours. tkperf uses the device statistics"
        )


def _hours(document: LogDocument) -> int | None:
    return count(table(document.get("power_on_time")).get("hours"))


def parse(document: LogDocument, *, at_s: float, drive: str) -> Reading:
    """Return the reading in a document of smartctl. If the document contains no data, the reading contains no values.

    The document contains device statistics only if ``needs_statistics`` requires the device statistics log. In this
    case, the statistics have priority over attributes, so that all readings of a drive use the same source for a
    counter.
    """
    health = table(document.get("nvme_smart_health_information_log"))
    if health:
        # The NVMe log of smartctl has the same fields as the log of nvme-cli, but the temperature is in degrees
        # Celsius.
        of_log = drive_reading.parse_smart_log(health, at_s=at_s, drive=drive)
        return replace(of_log, source=SOURCE, temperature_c=read_temperature(health.get("temperature")))
    written = _amount(document, "Writes", statistics_first=True)
    read = _amount(document, "Reads", statistics_first=True)
    nand = _nand(document)
    statistics = dict(_statistics(document))
    endurance = table(document.get("endurance_used")).get("current_percent")
    spare = table(document.get("spare_available")).get("current_percent")
    errors = statistics.get("media_errors", _attribute(document, "Reported_Uncorrect"))
    return Reading(
        at_s=at_s,
        drive=drive,
        source=SOURCE,
        temperature_c=read_temperature(table(document.get("temperature")).get("current")),
        host_read_bytes=_bytes(read),
        host_written_bytes=_bytes(written),
        nand_written_bytes=_bytes(nand),
        media_errors=_scsi_errors(document) if errors is None else errors,
        percentage_used=_first(
            statistics.get("percentage_used"),
            count(endurance),
            count(document.get("scsi_percentage_used_endurance_indicator")),
        ),
        spare_percent=count(spare),
        unsafe_shutdowns=_first(
            _attribute(document, "Unsafe_Shutdown_Count"), _attribute(document, "Unexpect_Power_Loss_Ct")
        ),
        power_on_hours=_first(statistics.get("power_on_hours"), _hours(document)),
    )


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _amount(document: LogDocument, what: str, *, statistics_first: bool) -> Amount | None:
    """Return the number of bytes that the host wrote or read, depending on ``what``."""
    attribute, statistics = (_attribute_amount(document, what), _statistics_amount(document, what))
    first, second = (statistics, attribute) if statistics_first else (attribute, statistics)
    return first or second or _scsi_amount(document, what)


def _sector_bytes(document: LogDocument) -> int | None:
    return count(document.get("logical_block_size"))


def _attributes(document: LogDocument) -> Iterator[tuple[str, int]]:
    """Yield the names and raw values of the SMART attributes. Only attributes with a name in smartctl's database for
    this drive are included.
    """
    if document.get("in_smartctl_database") is not True:
        return
    for row in rows(table(document.get("ata_smart_attributes")).get("table")):
        name, raw = read_word(row.get("name")), count(table(row.get("raw")).get("value"))
        if name is not None and raw is not None:
            yield name, raw


def _attribute(document: LogDocument, wanted: str) -> int | None:
    return next((raw for name, raw in _attributes(document) if name == wanted), None)


def _attribute_amount(document: LogDocument, what: str) -> Amount | None:
    for name, raw in _attributes(document):
        found = _AMOUNT.fullmatch(name)
        if found and found["whose"] in _OF_HOST and found["what"] == what:
            return _amount_of(raw, int(found["number"] or 1) * _UNITS[found["unit"]], name)
        if _BY_LBA.get(name) == what and (sector_bytes := _sector_bytes(document)):
            return _amount_of(raw, sector_bytes, name)
    return None


def _statistics_amount(document: LogDocument, what: str) -> Amount | None:
    name = "Logical Sectors Written" if what == "Writes" else "Logical Sectors Read"
    sectors, sector_bytes = (dict(_statistics(document)).get(_STATISTICS[name]), _sector_bytes(document))
    return _amount_of(sectors, sector_bytes, name) if sectors is not None and sector_bytes else None


def _scsi_amount(document: LogDocument, what: str) -> Amount | None:
    """Return the number of bytes from the error counter log (SCSI standard SPC). smartctl prints the number in units of
    10^9 bytes, with three digits after the decimal point.
    """
    log = table(document.get("scsi_error_counter_log"))
    text = table(log.get("write" if what == "Writes" else "read")).get("gigabytes_processed")
    if not isinstance(text, str) or not re.fullmatch(r"\d{1,12}\.\d{3}", text):
        return None
    return _amount_of(int(text.replace(".", "")), 10**6, "gigabytes_processed")


def _amount_of(steps: int, unit_bytes: int, name: str) -> Amount | None:
    amount = scaled(steps, unit_bytes)
    return None if amount is None else Amount(bytes=amount, unit_bytes=unit_bytes, name=name)


def _nand(document: LogDocument) -> Amount | None:
    """Return the number of bytes written to the flash. If the drive counts writes to SLC and TLC cells separately,
    return the sum.
    """
    parts: dict[str, Amount] = {}
    for name, raw in _attributes(document):
        amount, cells = None, None
        if (found := _AMOUNT.fullmatch(name)) and found["what"] == "Writes":
            cells = found["whose"]
            amount = _amount_of(raw, int(found["number"] or 1) * _UNITS[found["unit"]], name)
        elif found := _NAND_GB.fullmatch(name):
            cells = found["cells"] or found["before"]
            amount = _amount_of(raw, _UNITS["GB"], name)
        if cells is not None and cells not in _OF_HOST and amount is not None:
            parts["all" if cells not in ("TLC", "SLC") else cells] = amount
    if "all" in parts:
        return parts["all"]
    if {"TLC", "SLC"} <= set(parts):
        both = parts["TLC"], parts["SLC"]
        return Amount(
            bytes=sum(amount.bytes for amount in both),
            unit_bytes=max(amount.unit_bytes for amount in both),
            name=" + ".join(amount.name for amount in both),
        )
    return None


def _statistics(document: LogDocument) -> Iterator[tuple[str, int]]:
    """Yield the valid entries of the device statistics log."""
    pages = rows(table(document.get("ata_device_statistics")).get("pages"))
    for row in (row for page in pages for row in rows(page.get("table"))):
        name, value = _STATISTICS.get(str(row.get("name"))), count(row.get("value"))
        if name is not None and value is not None and table(row.get("flags")).get("valid", True):
            yield name, value


def _scsi_errors(document: LogDocument) -> int | None:
    log = table(document.get("scsi_error_counter_log"))
    errors = [
        total
        for part in ("read", "write")
        if (total := count(table(log.get(part)).get("total_uncorrected_errors"))) is not None
    ]
    return sum(errors) if errors else None
