"""Data on a device or in a file that is not in use.

Finds file systems, partition tables, members of sets, and content of any other kind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tkperf.model.errors import DeviceError, EngineError
from tkperf.model.units import on_one_line
from tkperf.system.process import Completed, find_program, run_command

CONTENT_LIMIT_S = 60.0
# Characters of a text from a device or file that a question shows.
_MOST_CHARACTERS = 200
# Names of libblkid for parts of larger wholes; erasing one may cost the whole.
MEMBER_TYPES = {
    "LVM2_member": "LVM physical volume",
    "LVM1_member": "LVM physical volume",
    "zfs_member": "ZFS pool member",
    "bcache": "bcache device",
    "ceph_bluestore": "Ceph OSD",
    "drbd": "DRBD device",
    "mpath_member": "multipath member",
    "stratis": "Stratis pool member",
    "VMFS_volume_member": "VMFS member",
}
RAID_SUFFIX = "_raid_member"
# Superblock of btrfs: 64 KiB from the start, number of devices at byte 0x88 of it.
BTRFS_DEVICES_OFFSET = 0x10000 + 0x88


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Data found on a device; ``member`` names it, if it is part of a set (RAID, volume group, pool)."""

    device: str
    kind: str
    label: str | None
    member: str | None

    def __str__(self) -> str:
        named = f" '{self.label}'" if self.label else ""
        return f"{self.member or self.kind}{named} on {self.device}"


def find_signatures(places: Mapping[str, str]) -> tuple[Signature, ...]:
    """Find all signatures that libblkid knows, on a disk and its partitions, or in a file.

    Args:
        places: for each, its name for people and the path to read.

    Raises:
        DeviceError: they cannot be read, so the data to lose is not known.
    """
    signatures: list[Signature] = []
    for name, path in places.items():
        try:
            done = run_command(["wipefs", "--json", "--no-act", path], timeout_s=CONTENT_LIMIT_S)
            if done.exit_status != 0:
                reason = _quote(done.stderr.replace(path, name))
                raise DeviceError(f"cannot look for data on {name}: {reason}")
            listed = json.loads(done.stdout or '{"signatures": []}')["signatures"]
        except EngineError as error:
            raise DeviceError(f"cannot look for data on {name}: {error}") from error
        except (ValueError, KeyError, TypeError):
            raise DeviceError(f"cannot look for data on {name}: wipefs printed no list") from None
        # A partition table has several signatures with one meaning.
        kinds = {str(entry["type"]): entry.get("label") for entry in listed}
        signatures += [
            Signature(
                device=name,
                kind=_quote(kind),
                label=None if label is None else _quote(str(label)),
                member=_member(kind, path),
            )
            for kind, label in kinds.items()
        ]
    return tuple(signatures)


def describe_unknown_data(name: str, path: str) -> tuple[Signature, ...]:
    """Describe data that libblkid does not recognise; the program ``file`` may recognise it.

    Args:
        name: the name of the device or file for people.
        path: the path to read.
    """
    kind = "data of no known kind"
    if find_program("file") is not None:
        try:
            answer = run_command(
                ["file", "--brief", "--dereference", "--special-files", path], timeout_s=CONTENT_LIMIT_S
            )
        except EngineError:
            answer = Completed(exit_status=1, stdout="", stderr="")
        recognised = _quote(answer.stdout)
        if answer.exit_status == 0 and recognised not in ("", "data"):
            kind = f"data that looks like {recognised}"
    return (Signature(device=name, kind=kind, label=None, member=None),)


def _quote(text: str) -> str:
    """Return a text from a device or file as one short line that can be printed.

    Strangers may have written the labels and titles, and the user of ``on-host`` may have no right
    to read the file.
    """
    return on_one_line(text)[:_MOST_CHARACTERS]


def _member(kind: str, path: str) -> str | None:
    if kind.endswith(RAID_SUFFIX):
        name = "MD" if kind == "linux_raid_member" else kind.removesuffix(RAID_SUFFIX)
        return f"{name} RAID member"
    if kind == "btrfs" and _btrfs_devices(path) > 1:
        return "member of a btrfs over several devices"
    return MEMBER_TYPES.get(kind)


def _btrfs_devices(path: str) -> int:
    try:
        with Path(path).open("rb") as device:
            device.seek(BTRFS_DEVICES_OFFSET)
            return int.from_bytes(device.read(8), "little")
    except OSError:
        return 1
