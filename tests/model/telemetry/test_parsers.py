"""Readings from the logs of drives always use bytes and degrees Celsius. The tool, the bus and the manufacturer do not
matter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.telemetry.documents import (
    CONTROLLER,
    GUID,
    NVME_BY_SMARTCTL,
    OCP_LOG,
    OCP_LOG_2,
    POWER,
    SAS,
    SMART_LOG,
    attribute,
    document,
    sata,
    smartctl,
    statistics,
    text,
)
from tkperf.model.telemetry import drive_reading
from tkperf.model.telemetry import smartctl as tool
from tkperf.model.telemetry.drive_reading import Reading

AT = {"at_s": 1.5, "drive": "/dev/x"}
GIB, MIB = 1 << 30, 1 << 20


def read(document: dict[str, Any]) -> Reading:
    return tool.parse(document, **AT)  # type: ignore[arg-type]


NVME_CLI = ("1.16", "2.0", "2.3", "2.5", "2.8", "2.10.2", "2.11", "2.13", "2.16", "3.0-rc1")
SMARTCTL = ("7.2", "7.3", "7.4", "7.5")


@pytest.mark.parametrize("version", NVME_CLI)
def test_nvme_counts_thousands_of_sectors_and_kelvin(version: str) -> None:
    """NVMe data units are 512,000 bytes, NVMe temperatures are in Kelvin, and NVMe times are in minutes or seconds (NVM
    Express 1.4, 5.14.1.2).
    """
    log = document("nvme", "smart-log", version, WARNING=2)
    assert drive_reading.parse_smart_log(log, at_s=1.5, drive="/dev/x") == Reading(
        at_s=1.5,
        drive="/dev/x",
        source="nvme",
        temperature_c=45,
        host_read_bytes=21_604_166 * 512_000,
        host_written_bytes=2_433_328 * 512_000,
        media_errors=0,
        percentage_used=3,
        spare_percent=100,
        unsafe_shutdowns=4,
        power_on_hours=7146,
        critical_warning=2,
        warning_minutes=2,
        critical_minutes=0,
        thermal_1_count=5,
        thermal_2_count=1,
        thermal_1_s=37,
        thermal_2_s=4,
    )


def test_counters_with_the_separators_of_a_locale_are_not_guessed() -> None:
    """If counters contain the separators of a locale, tkperf does not interpret these counters, because nvme-cli 2.3
    loses digits in some locales. In practice, tkperf never receives such counters, because it runs all programs in one
    locale.
    """
    log = document("nvme", "smart-log-de", "2.3")
    assert log["data_units_written"] == "2.433.328"
    assert drive_reading.parse_smart_log(log, at_s=0, drive="x").host_written_bytes is None


@pytest.mark.parametrize("written", ["2433328", "2,433,328", 2_433_328])
def test_numbers_of_128_bits_may_be_texts(written: object) -> None:
    """Numbers of 128 bits are also accepted as texts, because some versions of nvme-cli print them in this form."""
    log = {**SMART_LOG, "data_units_written": written}
    assert drive_reading.parse_smart_log(log, at_s=0, drive="x").host_written_bytes == 2_433_328 * 512_000


def test_a_temperature_of_0_kelvin_is_not_known() -> None:
    """A temperature of 0 Kelvin counts as not known. A negative count, a text and an impossibly large number also count
    as not known.
    """
    log = {"temperature": 0, "media_errors": -1, "power_on_hours": "many", "data_units_written": 2**70}
    assert drive_reading.parse_smart_log(log, at_s=0, drive="x").is_empty


@pytest.mark.parametrize(("log", "throttling"), [(OCP_LOG, False), (OCP_LOG_2, True)])
def test_ocp_counts_bytes_of_the_flash(log: dict[str, Any], *, throttling: bool) -> None:
    """The SMART-1 log of the OCP specification counts flash writes in bytes. tkperf reads both spellings that nvme-cli
    prints.
    """
    assert drive_reading.is_ocp_log(log)
    reading = drive_reading.with_ocp_log(Reading(at_s=0, drive="x", source="nvme"), log)
    assert (reading.nand_written_bytes, reading.throttle_events) == (1_868_795_904_000, 3)
    assert reading.throttling is throttling


@pytest.mark.parametrize("version", [each for each in NVME_CLI if each != "1.16"])
def test_every_version_prints_ocps_log(version: str) -> None:
    """Every version of nvme-cli prints the OCP log in a form that tkperf reads. The only exception is 1.16, which lacks
    the command.
    """
    log = document("nvme", "ocp-smart-add-log", version, THROTTLED=1)
    assert drive_reading.is_ocp_log(log)
    reading = drive_reading.with_ocp_log(Reading(at_s=0, drive="x", source="nvme"), log)
    assert (reading.nand_written_bytes, reading.throttle_events) == (1_868_795_904_000, 3)
    assert reading.throttling is True


def test_another_makers_page_of_that_number_is_not_ocps() -> None:
    """Log page C0h is vendor specific, so tkperf reads it as an OCP log only if it contains the GUID of OCP."""
    assert not drive_reading.is_ocp_log({**OCP_LOG, "Log page GUID": GUID.replace("a", "b")})
    assert not drive_reading.is_ocp_log({})


@pytest.mark.parametrize(
    ("printed", "state"),
    [
        (POWER, 0),
        (text("nvme", "power-state", "1.16", VALUE="0x00000004"), 4),
        (text("nvme", "power-state", "3.0-rc1", VALUE="0x00000043"), 3),
        (text("nvme", "feature-refused", "2.13"), None),
    ],
)
def test_the_power_state_is_five_bits(printed: str, state: int | None) -> None:
    """The power state consists of the lowest five bits of the printed value. nvme-cli prints zero without 0x."""
    assert drive_reading.parse_power_state(printed) == state


@pytest.mark.parametrize("version", ["1.16", "2.3", "2.8", "2.11", "2.13", "2.16", "3.0-rc1"])
def test_a_controller_tells_its_limits(version: str) -> None:
    """The controller reports its temperature limits WCTEMP and CCTEMP in Kelvin. A value of 0 means that the controller
    has no limit.
    """
    facts = drive_reading.parse_controller(document("nvme", "id-ctrl", version), drive="x")
    assert (facts.serial, facts.model) == ("MADEUP0001", "Made Up NVMe 1.92TB")
    assert (facts.warning_c, facts.critical_c, facts.host_unit_bytes) == (70, 80, 512_000)
    assert drive_reading.parse_controller({"wctemp": 0}, drive="x").warning_c is None


@pytest.mark.parametrize(
    ("name", "host", "unit"),
    [
        ("Host_Writes_32MiB", 1000 * 32 * MIB, 32 * MIB),
        ("Host_Writes_GiB", 1000 * GIB, GIB),
        ("Lifetime_Writes_GiB", 1000 * GIB, GIB),
        ("Total_Writes_GB", 1000 * 10**9, 10**9),
        ("Total_LBAs_Written", 1000 * 512, 512),
    ],
)
def test_units_of_ata_attributes_are_in_their_names(name: str, host: int, unit: int) -> None:
    """The name of an ATA attribute contains its unit. smartctl takes the name from its database, from the entry for the
    model of the drive.
    """
    document = sata(attribute(241, name, 1000))
    assert read(document).host_written_bytes == host
    assert tool.parse_drive_facts(document, drive="x").host_unit_bytes == unit


@pytest.mark.parametrize("name", ["Host_Writes", "Lifetime_Writes", "Unknown_Attribute", "NAND_Writes"])
def test_a_name_without_a_unit_says_nothing(name: str) -> None:
    """An attribute name without a unit does not lead to an amount. If smartctl's database does not contain the model,
    no attribute leads to an amount, because the names are then only defaults.
    """
    assert read(sata(attribute(241, name, 1000))).host_written_bytes is None
    default = sata(attribute(241, "Total_LBAs_Written", 1000), known=False)
    assert read(default).host_written_bytes is None
    assert read(default).nand_written_bytes is None


@pytest.mark.parametrize(
    ("attributes", "nand"),
    [
        ([("NAND_Writes_32MiB", 10)], 10 * 32 * MIB),
        ([("NAND_Writes_1GiB", 10)], 10 * GIB),
        ([("Total_NAND_Writes_GiB", 10)], 10 * GIB),
        ([("Flash_Writes_GiB", 10)], 10 * GIB),
        ([("NAND_GB_Written_TLC", 10), ("NAND_GB_Written_SLC", 3)], 13 * 10**9),
        ([("TLC_Writes_32MiB", 10), ("SLC_Writes_32MiB", 3)], 13 * 32 * MIB),
        # If one of the two parts is missing, the amount is not known.
        ([("NAND_GB_Written_TLC", 10)], None),
        ([("TLC_NAND_GB_Writes", 10)], None),
    ],
)
def test_what_goes_to_the_flash(attributes: list[tuple[str, int]], nand: int | None) -> None:
    """The attribute names in smartctl's database lead to the amount that was written to the flash. Writes to SLC and to
    TLC flash are added.
    """
    table = [attribute(240 + number, *each) for number, each in enumerate(attributes)]
    assert read(sata(*table)).nand_written_bytes == nand
    assert read(sata(*table)).host_written_bytes is None


def test_the_statistics_log_is_asked_for_only_where_it_is_needed() -> None:
    """tkperf requests the statistics log only if it is needed. For one drive, tkperf always uses the same source for
    the counters, because the difference between two sources would be meaningless.
    """
    log = statistics(Logical_Sectors_Written=5 * GIB // 512, Number_of_Reported_Uncorrectable_Errors=2)
    log["ata_device_statistics"]["pages"][0]["table"].append(
        {"name": "Percentage Used Endurance Indicator", "value": 8, "flags": {"valid": False}}
    )
    alone, beside = sata(**log), sata(attribute(241, "Host_Writes_GiB", 5), **log)
    assert tool.needs_statistics(alone)
    assert not tool.needs_statistics(beside)
    assert read(alone).host_written_bytes == 5 * GIB
    assert (read(alone).media_errors, read(alone).percentage_used) == (2, None)
    assert tool.parse_drive_facts(alone, drive="x").host_unit_bytes == 512
    assert tool.parse_drive_facts(beside, drive="x").host_unit_bytes == GIB
    assert not tool.needs_statistics(sata(attribute(241, "Host_Writes_GiB", 5)))


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        # In these cases, the attribute does not count in the unit that its name states. It counts 65,536 sectors
        # instead of one, 32 MiB instead of 1 GiB, GB instead of GiB, or sectors instead of 32 MiB.
        ("Total_LBAs_Written", 5_000 * GIB // 512 // 65_536),
        ("Host_Writes_GiB", 5_000 * 32),
        ("Lifetime_Writes_GiB", 5_369),
        ("Host_Writes_32MiB", 5_000 * GIB // 512),
    ],
)
@pytest.mark.parametrize("what", ["Written", "Read"])
def test_device_statistics_win_over_a_unit_that_contradicts_them(name: str, raw: int, what: str) -> None:
    """If an attribute contradicts the device statistics, each reading uses the statistics, which count sectors as the
    standard defines. The reason contains both amounts.
    """
    sectors = 5_000 * GIB // 512
    if what == "Read":
        name = name.replace("Written", "Read").replace("Writes", "Reads")
    log = statistics(Logical_Sectors_Written=sectors, Logical_Sectors_Read=sectors)
    odd = sata(attribute(241, name, raw), **log)
    facts = tool.parse_drive_facts(odd, drive="x")
    (reason,) = facts.contradictions
    assert name in reason
    assert f"(Logical Sectors {what}) report {sectors * 512:,} bytes" in reason
    assert tool.needs_statistics(odd)
    reading = read(odd)
    assert (reading.host_written_bytes, reading.host_read_bytes) == (sectors * 512, sectors * 512)
    assert facts.host_unit_bytes == 512


def test_device_statistics_win_over_hours_in_another_unit() -> None:
    """If attribute 9 contradicts the power-on hours in the device statistics, the statistics are used. In this
    attribute, some drives count minutes or half minutes.
    """
    host = {"Logical_Sectors_Written": 5 * GIB // 512}
    attribute_241 = attribute(241, "Host_Writes_GiB", 5)
    for hours, contradicted in ((2, True), (7_146 * 60, True), (7_000, False), (7_146, False)):
        log = statistics(**{"Power-on_Hours": 7_146}, **host)
        found = sata(attribute_241, **log, power_on_time={"hours": hours})
        reasons = tool.parse_drive_facts(found, drive="x").contradictions
        assert bool(reasons) is contradicted
        assert tool.needs_statistics(found) is contradicted
        assert read(found).power_on_hours == 7_146
    assert read(sata(attribute_241, power_on_time={"hours": 2})).power_on_hours == 2


def test_counters_some_steps_apart_do_not_contradict() -> None:
    """Two counters that differ by only a few steps do not contradict each other. A new drive has written little data,
    and an attribute with large steps is rounded.
    """
    for raw, sectors in ((0, 100_000), (1, 0), (1_000, 1_002 * 65_536), (1_000, 960 * 65_536)):
        near = sata(attribute(241, "Host_Writes_32MiB", raw), **statistics(Logical_Sectors_Written=sectors))
        assert tool.parse_drive_facts(near, drive="x").contradictions == ()
        assert not tool.needs_statistics(near)


@pytest.mark.parametrize("version", SMARTCTL)
def test_a_sata_drive_with_every_version(version: str) -> None:
    """For a SATA drive, tkperf uses three parts of the document: the attributes that smartctl's database describes, the
    device statistics, and the values that smartctl determines itself.
    """
    found = document("smartctl", "ata", version)
    assert tool.find_failure(found) is None
    assert tool.parse_version(found) == f"smartctl {version}"
    facts = tool.parse_drive_facts(found, drive="x")
    assert (facts.model, facts.serial, facts.firmware) == ("INTEL SSDSC2KB480G8", "MADEUP0002", "XC1")
    assert (facts.host_unit_bytes, facts.nand_unit_bytes, facts.contradictions) == (32 * MIB, 32 * MIB, ())
    reading = read(found)
    assert reading.host_written_bytes == 2_048 * 2_433_328 * 512
    assert reading.nand_written_bytes == 138_541 * 32 * MIB
    assert (reading.media_errors, reading.percentage_used, reading.unsafe_shutdowns) == (2, 3, 4)
    assert (reading.power_on_hours, reading.temperature_c) == (7146, 31)


@pytest.mark.parametrize("version", SMARTCTL)
def test_sas_counts_billions_of_bytes(version: str) -> None:
    """The counters of a SAS drive are taken from the error counter logs of the SPC standard, and are rounded to whole
    megabytes. The drive in this test has no mode page for informational exceptions.
    """
    sas = document("smartctl", "sas", version)
    assert tool.find_failure(sas) is None
    reading = read(sas)
    assert reading.host_written_bytes == 111_254_503 * 10**6
    assert reading.host_read_bytes == 330_638_625 * 10**6
    assert (reading.media_errors, reading.percentage_used, reading.temperature_c) == (3, 4, 34)
    facts = tool.parse_drive_facts(sas, drive="x")
    assert (facts.critical_c, facts.serial, facts.host_unit_bytes) == (65, "MADEUP0003", 10**6)
    assert (facts.model, facts.firmware) == ("MADEUP MADE UP SAS", "0003")


@pytest.mark.parametrize("version", SMARTCTL)
def test_nvme_by_smartctl_is_the_same_log_in_celsius(version: str) -> None:
    """On a host without nvme-cli, smartctl provides the same values from the NVMe log. smartctl prints the temperature
    in degrees Celsius.
    """
    reading = read(document("smartctl", "nvme", version))
    assert (reading.temperature_c, reading.critical_warning, reading.spare_percent) == (45, 0, 100)
    assert (reading.host_written_bytes, reading.source) == (2_433_328 * 512_000, "smartctl")
    assert (reading.percentage_used, reading.unsafe_shutdowns, reading.warning_minutes) == (3, 4, 2)


def test_why_smartctl_tells_nothing() -> None:
    """A failure of smartctl is reported with the text of smartctl. Errors that a drive has recorded earlier (bits 3 to
    7 of the exit status) are not a failure.
    """
    for version in SMARTCTL:
        failed = document("smartctl", "no-device", version)
        assert "No such device" in str(tool.find_failure(failed))
    assert tool.find_failure(smartctl(smart_support={"available": False})) == tool.NO_SMART
    assert tool.find_failure(smartctl(smartctl={"exit_status": 0b1100_0000})) is None
    assert tool.parse_version(smartctl()) == "smartctl 7.3"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_a_parser_returns_a_value_whatever_it_gets(data: st.DataObject) -> None:
    """A parser returns a result for any document. Impossible values in one part count as not known, and no other value
    is lost.
    """
    for whole in (SMART_LOG, OCP_LOG, CONTROLLER, NVME_BY_SMARTCTL, SAS, sata(attribute(1, "a", 1))):
        key = data.draw(st.sampled_from(sorted(whole)))
        odd = {**whole, key: data.draw(anything)}
        reading = drive_reading.with_ocp_log(drive_reading.parse_smart_log(odd, at_s=0, drive="x"), odd)
        for found in (reading, read(odd)):
            for name in ("host_written_bytes", "nand_written_bytes", "media_errors"):
                value = getattr(found, name)
                assert value is None or 0 <= value < 2**63
        drive_reading.parse_controller(odd, drive="x")
        drive_reading.is_ocp_log(odd)
        tool.parse_drive_facts(odd, drive="x")
        tool.parse_version(odd)
        tool.find_failure(odd)


def test_a_reading_of_the_temperature_alone_is_no_log() -> None:
    """A reading that contains only the temperature is not a complete log, so tkperf cannot detect throttling
    from it.
    """
    reading = Reading(at_s=0, drive="x", source="hwmon", temperature_c=40)
    assert not reading.is_full
    assert replace(reading, media_errors=0).is_full
    assert Reading(at_s=0, drive="x", source="hwmon").is_empty
