"""Data on a device or in a file that is not in use.

Finds file systems, partition tables, members of sets, and content of any other kind.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tkperf.model.errors import DeviceError, EngineError, reason_of
from tkperf.model.units import drop_controls
from tkperf.system.process import Completed, find_program, run_command

CONTENT_LIMIT_S = 60.0
FIRST_BYTES, SAMPLES, SAMPLE_BYTES = 1 << 20, 1024, 4096
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
                reason = done.stderr.strip().replace(path, name)
                raise DeviceError(f"cannot look for data on {name}: {reason[:200]}")
            listed = json.loads(done.stdout or '{"signatures": []}')["signatures"]
        except EngineError as error:
            raise DeviceError(f"cannot look for data on {name}: {error}") from error
        except (ValueError, KeyError, TypeError):
            raise DeviceError(f"cannot look for data on {name}: wipefs printed no list") from None
        # A partition table has several signatures with one meaning.
        kinds = {str(entry["type"]): entry.get("label") for entry in listed}
        signatures += [
            Signature(device=name, kind=kind, label=label, member=_member(kind, path))
            for kind, label in kinds.items()
        ]
    return tuple(signatures)


def describe_content(name: str, path: str) -> tuple[Signature, ...]:
    """Describe a file in which libblkid recognises nothing; empty if no byte of it was written.

    A loop device does not show which bytes were written: the result is empty if samples read as zeros.

    Args:
        name: the file's name for people.
        path: the path to read.

    Raises:
        DeviceError: it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if stat.S_ISBLK(os.fstat(descriptor).st_mode):
                if _reads_zero(descriptor):
                    return ()
            else:
                # Bytes that were only read are in the page cache, which some file systems take for data.
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.lseek(descriptor, 0, os.SEEK_DATA)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return ()
        raise DeviceError(f"cannot look for data on {name}: {reason_of(error)}") from error
    kind = "data of no known kind"
    if find_program("file") is not None:
        try:
            answer = run_command(
                ["file", "--brief", "--dereference", "--special-files", path],
                timeout_s=CONTENT_LIMIT_S,
            )
        except EngineError:
            answer = Completed(exit_status=1, stdout="", stderr="")
        recognised = drop_controls(answer.stdout.strip())[:200]
        if answer.exit_status == 0 and recognised not in ("", "data"):
            kind = f"data that looks like {recognised}"
    return (Signature(device=name, kind=kind, label=None, member=None),)


def _reads_zero(descriptor: int) -> bool:
    """Return whether the beginning and samples all over the device read as zeros."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if any(os.pread(descriptor, FIRST_BYTES, 0)):
        return False
    places = (size * index // SAMPLES for index in range(SAMPLES))
    return not any(any(os.pread(descriptor, SAMPLE_BYTES, place)) for place in places)


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
