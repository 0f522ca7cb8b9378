"""raid.json: the configuration of a RAID set, in TKperf's format."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Literal

import msgspec

from tkperf.model.errors import InputFileError, UsageError
from tkperf.model.input_files import SETTINGS_BYTES, is_there, read_input
from tkperf.model.strict import decode_strictly, quote_value

# The smallest number of members for each level. mdadm accepts fewer members for some levels, but such a set does not
# have the properties of the level.
FEWEST_MEMBERS = {0: 2, 1: 2, 5: 3, 6: 4, 10: 4}
# The greatest number of members in a set that mdadm creates. A controller can combine 240 members.
MOST_MEMBERS = 384
# TKperf's values for those keys of a controller's set that are missing from raid.json.
CONTROLLER_DEFAULTS = {"readpolicy": "nora", "writepolicy": "wt", "stripsize": 256}
_LEADING_0 = re.compile(r"\b0+(?=[0-9])")
EXAMPLE = '{"devices": ["/dev/sdb", "/dev/sdc"], "raidlevel": 1, "type": "sw_mdadm"}'


class RaidConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The configuration of one RAID set.

    ``devices`` are block devices for ``sw_mdadm``, and ``enclosure:slot`` for ``hw_lsi``. The policies
    (``ra``/``nora``, ``wt``/``wb``/``awb``) are the names that the controller uses. ``stripsize`` is in
    KiB. For a controller's set, missing keys have TKperf's values: ``nora``, ``wt``, 256. For an mdadm
    set, mdadm uses its own default.
    """

    devices: tuple[str, ...]
    raidlevel: int | str
    type: Literal["sw_mdadm", "hw_lsi"]
    readpolicy: Literal["ra", "nora"] | None = None
    writepolicy: Literal["wt", "wb", "awb"] | None = None
    stripsize: int | str | None = None

    def require_possible(self) -> None:
        """Check that a set with this configuration can be created. Otherwise raise InputFileError with the key."""
        fault = _find_fault(self)
        if fault:
            raise InputFileError(f"key {fault}")

    def completed(self) -> RaidConfig:
        """Return the configuration. For a controller's set, TKperf's defaults replace the missing keys."""
        if self.type != "hw_lsi":
            return self
        left_out = {key: value for key, value in CONTROLLER_DEFAULTS.items() if getattr(self, key) is None}
        return msgspec.structs.replace(self, **left_out)

    @property
    def level(self) -> int:
        return int(self.raidlevel)

    @property
    def data_members(self) -> float:
        """The number of members whose capacity the set offers for data."""
        count = float(len(self.devices))
        return {0: count, 1: 1.0, 5: count - 1, 6: count - 2, 10: count / 2}[self.level]

    @property
    def strip_kib(self) -> int | None:
        return None if self.stripsize is None else int(self.stripsize)


def load_raid_config(path: Path) -> RaidConfig:
    """Read a raid.json and check its content.

    Raises:
        InputFileError: the file is faulty. The message names the file, the key and the fault.
    """
    if not is_there(path):
        raise InputFileError(f"there is no RAID configuration file {path}. An example of such a file: {EXAMPLE}")
    text = read_input(path, what="the RAID configuration", limit_bytes=SETTINGS_BYTES)
    what = f"RAID configuration {path}"
    config = decode_strictly(lambda: json.loads(text), RaidConfig, what=what, language="JSON")
    try:
        config.require_possible()
    except UsageError as error:
        raise InputFileError(f"{what}, {error}") from None
    return config


def _find_fault(config: RaidConfig) -> str | None:
    """Return the first fault that a schema cannot exclude, as ``key: reason``. None means that there is no fault."""
    if config.raidlevel not in (*FEWEST_MEMBERS, *map(str, FEWEST_MEMBERS)):
        levels = ", ".join(map(str, FEWEST_MEMBERS))
        return f"raidlevel: {quote_value(config.raidlevel)} is not one of {levels}"
    fewest = FEWEST_MEMBERS[config.level]
    if len(config.devices) < fewest:
        return f"devices: {len(config.devices)} for RAID {config.level}, it takes {fewest} or more"
    if config.level == 10 and len(config.devices) % 2:
        return "devices: RAID 10 takes an even number"
    if len(config.devices) > MOST_MEMBERS:
        return f"devices: {len(config.devices)}, no set has more than {MOST_MEMBERS}"
    if config.stripsize is not None and not _is_strip_size(config.stripsize):
        return f"stripsize: {quote_value(config.stripsize)} is not a size of 4 to 65536 KiB"
    return _find_device_fault(config)


def _is_strip_size(value: int | str) -> bool:
    if isinstance(value, str):
        # The function int() also accepts digits of other writing systems, but the RAID tools do not.
        return re.fullmatch("[1-9][0-9]{0,4}", value) is not None and _is_strip_size(int(value))
    return 4 <= value <= 65536


def _find_device_fault(config: RaidConfig) -> str | None:
    device_at: dict[str, str] = {}
    for device in config.devices:
        if not device.isprintable() or not device.strip() or device.startswith("-"):
            return f"devices: {quote_value(device)} is no name of a device"
    for device in config.devices:
        real = os.path.realpath(device) if config.type == "sw_mdadm" else _LEADING_0.sub("", device)
        if real in device_at:
            return f"devices: {device} and {device_at[real]} are the same device"
        device_at[real] = device
    return None
