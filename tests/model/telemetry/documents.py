"""Documents as nvme-cli and smartctl print them, made up here after their formats.

Formats: nvme-cli's nvme-print-json.c and plugins/ocp/ocp-print-json.c (1.16 to 2.10), smartctl's nvmeprint.cpp,
ataprint.cpp, scsiprint.cpp and drivedb.h (7.0 to 7.4). No drive has these serial numbers.
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

SMART_LOG: Document = {
    "critical_warning": 0,
    "temperature": 318,
    "avail_spare": 100,
    "spare_thresh": 10,
    "percent_used": 3,
    "endurance_grp_critical_warning_summary": 0,
    "data_units_read": 21_604_166,
    "data_units_written": 2_433_328,
    "host_read_commands": 189_205_682,
    "host_write_commands": 137_800_871,
    "controller_busy_time": 1524,
    "power_cycles": 13,
    "power_on_hours": 7146,
    "unsafe_shutdowns": 4,
    "media_errors": 0,
    "num_err_log_entries": 1,
    "warning_temp_time": 2,
    "critical_comp_time": 0,
    "temperature_sensor_1": 318,
    "thm_temp1_trans_count": 5,
    "thm_temp2_trans_count": 1,
    "thm_temp1_total_time": 37,
    "thm_temp2_total_time": 4,
}
GUID = "0xafd514c97c6f4f9ca4f2bfea2810afc5"
OCP_LOG: Document = {
    "Physical media units written": {"hi": 0, "lo": 1_868_795_904_000},
    "Physical media units read": {"hi": 0, "lo": 12_000_000_000_000},
    "Bad user nand blocks - Raw": 7,
    "Number of Thermal throttling events": 3,
    "Current throttling status": 0,
    "Log page version": 2,
    "Log page GUID": GUID,
}
OCP_LOG_2: Document = {
    "physical_media_units_written": {"hi": 0, "lo": 1_868_795_904_000},
    "thermal_throttling_events": 3,
    "current_throttling_status": 1,
    "log_page_guid": GUID,
}
CONTROLLER: Document = {
    "sn": "MADEUP0001          ",
    "mn": "Made Up NVMe 1.92TB                     ",
    "fr": "1.2.3   ",
    "wctemp": 343,
    "cctemp": 353,
}
POWER = "get-feature:0x02 (Power Management), Current value:00000000\n"


def attribute(number: int, name: str, raw: int) -> Document:
    return {
        "id": number,
        "name": name,
        "value": 99,
        "worst": 99,
        "thresh": 0,
        "when_failed": "",
        "raw": {"value": raw, "string": str(raw)},
    }


def smartctl(**more: Any) -> Document:
    return {
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 3], "exit_status": 0},
        "device": {"name": "/dev/sdb", "type": "sat", "protocol": "ATA"},
        **more,
    }


def sata(*attributes: Document, known: bool = True, **more: Any) -> Document:
    """A SATA drive whose model is ``known`` to smartctl's database, or not."""
    return smartctl(
        model_name="Made Up SATA 480GB",
        serial_number="MADEUP0002",
        firmware_version="XC1",
        logical_block_size=512,
        in_smartctl_database=known,
        smart_support={"available": True, "enabled": True},
        temperature={"current": 31, "op_limit_max": 70},
        power_on_time={"hours": 123},
        ata_smart_attributes={"revision": 1, "table": list(attributes)},
        **more,
    )


def statistics(**values: int) -> Document:
    """The device statistics log with these, underscores for spaces."""
    return {
        "ata_device_statistics": {
            "pages": [
                {
                    "number": 1,
                    "name": "General Statistics",
                    "table": [
                        {"name": name.replace("_", " "), "value": value, "flags": {"valid": True}}
                        for name, value in values.items()
                    ],
                }
            ]
        }
    }


SAS = smartctl(
    scsi_model_name="MADE UP SAS",
    serial_number="MADEUP0003",
    scsi_revision="0003",
    temperature={"current": 34, "drive_trip": 65},
    scsi_percentage_used_endurance_indicator=4,
    power_on_time={"hours": 49_144, "minutes": 3},
    scsi_error_counter_log={
        "read": {"gigabytes_processed": "330638.625", "total_uncorrected_errors": 2},
        "write": {"gigabytes_processed": "111254.503", "total_uncorrected_errors": 1},
    },
)
NVME_BY_SMARTCTL = smartctl(
    model_name="Made Up NVMe 1.92TB",
    serial_number="MADEUP0001",
    nvme_smart_health_information_log={
        "critical_warning": 2,
        "temperature": 71,
        "available_spare": 99,
        "available_spare_threshold": 10,
        "percentage_used": 6,
        "data_units_read": 10,
        "data_units_written": 20,
        "power_on_hours": 2200,
        "unsafe_shutdowns": 7,
        "media_errors": 1,
        "warning_temp_time": 11,
        "critical_comp_time": 0,
    },
)
