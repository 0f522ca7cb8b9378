"""Mappings through the kernel's device-mapper interface (``linux/dm-ioctl.h``). No mapping remains after tkperf has
ended.

As soon as a mapping is open, tkperf marks the mapping for removal. The kernel then removes the mapping when its last
descriptor is closed. If tkperf is killed, the mapping therefore disappears as soon as the fio process that writes
through the mapping has also ended. tkperf also prevents udev from reading the mapping. Otherwise udev would read the
mapping each time that a program closes it after writing. ``dmsetup`` has no option that prevents udev from reading a
mapping.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from typing import NamedTuple

from tkperf.model.errors import DeviceError, reason_of

CONTROL, NODES = Path("/dev/mapper/control"), Path("/dev")
# The names and UUIDs of tkperf's mappings begin with these texts.
NAME_PREFIX, UUID_PREFIX = "tkperf-", "TKPERF-"

# struct dm_ioctl: version (3 numbers), data_size, data_start, target_count, open_count, flags, event_nr, padding, dev,
# name, uuid.
_HEADER = struct.Struct("=3I3IiIIIQ128s129s7x")
# struct dm_target_spec: sector_start, length, status, next, target_type. The parameters of the target follow.
_TARGET = struct.Struct("=QQiI16s")
_VERSION = (4, 0, 0)
_GET_VERSION, _DEV_CREATE, _DEV_REMOVE, _DEV_SUSPEND, _DEV_STATUS, _TABLE_LOAD, _TABLE_STATUS = (0, 3, 4, 6, 7, 9, 12)
_STATUS_TABLE, _BUFFER_FULL, _DEFERRED_REMOVE = 1 << 4, 1 << 8, 1 << 17
# The upper half of an event number is for udev's rules (libdevmapper.h). These bits switch off the subsystem, disk
# and other rules, and mark tkperf as the source. The lower half is 0, because nothing waits for udev.
_LEFT_ALONE = (0x02 | 0x04 | 0x08 | 0x40) << 16
# The kind of target that fails every I/O and uses no device.
_NOTHING = "error"


class Target(NamedTuple):
    """A part of a mapping: ``length`` sectors that begin at sector ``start``. ``kind`` is the target type, and its
    parameters follow.
    """

    start: int
    length: int
    kind: str
    parameters: str


@dataclass(slots=True)
class Mapping:
    """A mapping that tkperf created. ``descriptor`` keeps the mapping open. When this descriptor is closed, the kernel
    removes the mapping.
    """

    name: str
    number: str
    node: Path
    descriptor: int

    def let_go(self) -> None:
        """Close the mapping. The method may be called more than once."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class _Answer(NamedTuple):
    """The fields of struct dm_ioctl that the kernel returns. ``device`` is a device number in the kernel's encoding."""

    target_count: int
    flags: int
    device: int
    uuid: bytes


def require_device_mapper() -> None:
    """Check that this user can use the device-mapper.

    Raises:
        DeviceError: the device-mapper is missing, or this user has no permission to use it. The message contains only
            the reason.
    """
    _call(_GET_VERSION)


def create_mapping(name: str, targets: Sequence[Target]) -> Mapping:
    """Create a mapping, which then claims every device that it uses. Nothing is written.

    The mapping is marked for removal before it uses any device, so a killed tkperf never leaves a claim on a device.
    """
    _remove_leftover(name)
    _call(_DEV_CREATE, name, uuid=f"{UUID_PREFIX}{name}")
    try:
        length = sum(target.length for target in targets)
        _load(name, [Target(0, length, _NOTHING, "")])
        mapping = _open(name)
    except BaseException:
        with suppress(DeviceError):
            _call(_DEV_REMOVE, name)
        raise
    try:
        _call(_DEV_REMOVE, name, flags=_DEFERRED_REMOVE, event=_LEFT_ALONE)
        _load(name, targets)
        _call(_DEV_SUSPEND, name, event=_LEFT_ALONE)  # without the suspend flag, this call resumes the mapping
        if tuple(read_table(name)) != tuple(targets):
            raise DeviceError(f"device-mapper: the kernel did not create the mapping {name} as requested")
    except BaseException:
        mapping.let_go()
        raise
    return mapping


def _remove_leftover(name: str) -> None:
    """Remove the mapping of an earlier tkperf process that was killed before the process marked the mapping for
    removal. Such a mapping uses no device. Raise DeviceError if the kernel refuses.
    """
    try:
        answer, _ = _call(_DEV_STATUS, name)
    except DeviceError:
        return
    uuid = answer.uuid.rstrip(b"\0").decode(errors="replace")
    if uuid != f"{UUID_PREFIX}{name}" or any(target.kind != _NOTHING for target in read_table(name)):
        raise DeviceError(f"a mapping {name} exists already. Show this mapping with 'dmsetup table {name}'")
    _call(_DEV_REMOVE, name, event=_LEFT_ALONE)


def read_table(name: str) -> Iterator[Target]:
    """Yield the targets that the kernel's table of a mapping contains."""
    room = 1 << 16
    while True:
        answer, data = _call(_TABLE_STATUS, name, flags=_STATUS_TABLE, room=room)
        if not answer.flags & _BUFFER_FULL:
            break
        room *= 4
    place = 0
    for _ in range(answer.target_count):
        start, length, _, following, kind = _TARGET.unpack_from(data, place)
        parameters = data[place + _TARGET.size : following].split(b"\0")[0]
        yield Target(start, length, kind.rstrip(b"\0").decode(), parameters.decode())
        place = following


def _load(name: str, targets: Sequence[Target]) -> None:
    data = bytearray()
    for target in targets:
        parameters = target.parameters.encode() + b"\0"
        parameters += bytes(-len(parameters) % 8)
        following = _TARGET.size + len(parameters)
        data += _TARGET.pack(target.start, target.length, 0, following, target.kind.encode())
        data += parameters
    _call(_TABLE_LOAD, name, count=len(targets), data=bytes(data))


def _open(name: str) -> Mapping:
    """Open a mapping through the node that the kernel creates. First check that the node belongs to the mapping."""
    number = _call(_DEV_STATUS, name)[0].device
    # The kernel's own encoding of a device number. The C library's encoding differs only for very large numbers.
    major, minor = number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00
    node = NODES / f"dm-{minor}"
    try:
        descriptor = os.open(node, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise DeviceError(f"{node} cannot be opened: {reason_of(error)}") from error
    if os.fstat(descriptor).st_rdev != os.makedev(major, minor):
        os.close(descriptor)
        raise DeviceError(f"{node} is not the node that the kernel created for the mapping {name}")
    return Mapping(name=name, number=f"{major}:{minor}", node=node, descriptor=descriptor)


def _call(
    command: int,
    name: str = "",
    *,
    uuid: str = "",
    flags: int = 0,
    event: int = 0,
    count: int = 0,
    data: bytes = b"",
    room: int = 0,
) -> tuple[_Answer, bytes]:
    """Call the device-mapper interface once. Return the header and the data of the kernel's answer. Raise DeviceError
    if the call fails.
    """
    size = _HEADER.size + max(len(data), room)
    header = _HEADER.pack(*_VERSION, size, _HEADER.size, count, 0, flags, event, 0, 0, name.encode(), uuid.encode())
    buffer = bytearray(header + data.ljust(max(len(data), room), b"\0"))
    request = 3 << 30 | _HEADER.size << 16 | 0xFD << 8 | command
    try:
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        hint = "; try 'modprobe dm-mod'" if error.errno in {errno.ENOENT, errno.ENXIO} else ""
        raise DeviceError(f"{CONTROL}: {reason_of(error)}{hint}") from error
    try:
        ioctl(control, request, buffer, True)
    except OSError as error:
        raise DeviceError(f"device-mapper: {os.strerror(error.errno or 0)}") from error
    finally:
        os.close(control)
    fields = _HEADER.unpack_from(buffer)
    answer = _Answer(target_count=fields[5], flags=fields[7], device=fields[10], uuid=fields[12])
    return answer, bytes(buffer[fields[4] :])
