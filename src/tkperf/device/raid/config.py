"""raid.json: what a RAID set is made of. The format is TKperf's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

import msgspec

from tkperf.errors import UsageError
from tkperf.strict import decode_strictly

# Fewest members by level. mdadm would make smaller ones of some, but not sets of that level.
FEWEST_MEMBERS = {0: 2, 1: 2, 5: 3, 6: 4, 10: 4}
EXAMPLE = '{"devices": ["/dev/sdb", "/dev/sdc"], "raidlevel": 1, "type": "sw_mdadm"}'


class RaidConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One RAID set.

    ``devices`` are block devices for ``sw_mdadm``, ``enclosure:slot`` for ``hw_lsi``. The policies
    (``ra``/``nora``, ``wt``/``wb``/``awb``) are the controller's; ``stripsize`` is in KiB.
    """

    devices: tuple[str, ...]
    raidlevel: int | str
    type: Literal["sw_mdadm", "hw_lsi"]
    readpolicy: Literal["ra", "nora"] | None = None
    writepolicy: Literal["wt", "wb", "awb"] | None = None
    stripsize: int | str | None = None

    @property
    def level(self) -> int:
        return int(self.raidlevel)

    @property
    def strip_kib(self) -> int | None:
        return None if self.stripsize is None else int(self.stripsize)


def load_raid_config(path: Path) -> RaidConfig:
    """Read and check a raid.json.

    Raises:
        UsageError: the message names the file, the key and what is wrong.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no RAID configuration {path}; an example: {EXAMPLE}") from None
    except OSError as error:
        raise UsageError(f"cannot read the RAID configuration {path}: {error.strerror}") from error
    config = decode_strictly(
        lambda: msgspec.json.decode(text, type=RaidConfig),
        what=f"RAID configuration {path}",
        language="JSON",
    )
    fault = _find_fault(config)
    if fault:
        raise UsageError(f"RAID configuration {path}, key {fault}")
    return config


def _find_fault(config: RaidConfig) -> str | None:
    """The first value that no schema can rule out, as ``key: reason``."""
    if str(config.raidlevel) not in map(str, FEWEST_MEMBERS):
        known = ", ".join(map(str, FEWEST_MEMBERS))
        return f"raidlevel: {json.dumps(config.raidlevel)} is not one of {known}"
    fewest = FEWEST_MEMBERS[config.level]
    if len(config.devices) < fewest:
        return f"devices: {len(config.devices)} for RAID {config.level}, it takes {fewest} or more"
    if config.level == 10 and len(config.devices) % 2:
        return "devices: RAID 10 takes an even number"
    if not str(config.stripsize or 64).isdigit() or not 4 <= int(config.stripsize or 64) <= 65536:
        return f"stripsize: {json.dumps(config.stripsize)} is not a size of 4 to 65536 KiB"
    seen: dict[str, str] = {}
    for device in config.devices:
        real = os.path.realpath(device) if config.type == "sw_mdadm" else device
        if real in seen:
            return f"devices: {device} and {seen[real]} are the same device"
        seen[real] = device
    return None
