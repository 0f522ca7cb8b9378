"""Documents that nvme-cli and smartctl print, from ``tests/golden/tools``. The serial numbers belong to no real drive.

A test may change values in a document, but must not add fields to it.
"""

from __future__ import annotations

import json
from typing import Any

from tests.printed_forms import find_form

Document = dict[str, Any]
# The values of the fields that differ between the recorded outputs.
_VALUES = {
    "WARNING": 0,
    "THROTTLED": 0,
    "OACS": 2,
    "FNA": 4,
    "SANICAP": 3,
    "VALUE": "00000000",
    "PLATFORM": "x86_64-linux",
    "TIME_T": 1795857588,
    "ASCTIME": "Sat Nov 28 09:19:48 2026 UTC",
}


def text(program: str, situation: str, version: str, **values: object) -> str:
    """Return the text that this version of a program prints in a situation."""
    form = find_form(program, situation, version)
    return form.fill(**{name: {**_VALUES, **values}[name] for name in form.fields}).stdout


def document(program: str, situation: str, version: str, **values: object) -> Document:
    found: Document = json.loads(text(program, situation, version, **values))
    return found


SMART_LOG = document("nvme", "smart-log", "2.13")
OCP_LOG = document("nvme", "ocp-smart-add-log", "2.13")
OCP_LOG_2 = document("nvme", "ocp-smart-add-log", "3.0-rc1", THROTTLED=1)
GUID: str = OCP_LOG["Log page GUID"]
CONTROLLER = document("nvme", "id-ctrl", "2.13")
POWER = text("nvme", "power-state", "2.13")
SAS = document("smartctl", "sas", "7.3")
NVME_BY_SMARTCTL = document("smartctl", "nvme", "7.3")
_ATA = document("smartctl", "ata", "7.3")
_GENERAL = _ATA["ata_device_statistics"]["pages"][0]


def attribute(number: int, name: str, raw: int) -> Document:
    """Return a row of the attribute table with this number, name and raw value."""
    row: Document = _ATA["ata_smart_attributes"]["table"][0]
    return {**row, "id": number, "name": name, "raw": {"value": raw, "string": str(raw)}}


def smartctl(**more: Any) -> Document:
    """Return a document that contains no data of a drive. ``more`` contains further fields or other values."""
    return {**{name: _ATA[name] for name in ("json_format_version", "smartctl", "device")}, **more}


def sata(*attributes: Document, known: bool = True, **more: Any) -> Document:
    """Return the document of a SATA drive. ``known`` states whether smartctl's database contains the model.

    Without ``more``, the document has no device statistics, as if smartctl had been called without the option for the
    statistics.
    """
    plain = {name: _ATA[name] for name in _ATA if name != "ata_device_statistics"}
    table = {**_ATA["ata_smart_attributes"], "table": list(attributes)}
    return {**plain, "in_smartctl_database": known, "ata_smart_attributes": table, **more}


def statistics(**values: int) -> Document:
    """Return the device statistics log with the given entries. Underscores in the names of entries become spaces."""
    row = _GENERAL["table"][0]
    table = [{**row, "name": name.replace("_", " "), "value": value} for name, value in values.items()]
    return {"ata_device_statistics": {"pages": [{**_GENERAL, "table": table}]}}
