"""Mappings of tkperf in a fake kernel that accepts the real ioctl structures and stores its tables in memory."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tkperf.device import device_mapper
from tkperf.device.device_mapper import Target, create_mapping, read_table, require_device_mapper
from tkperf.device.identity import read_identity
from tkperf.device.permit import ErasePermit, grant_permit, hold_target
from tkperf.device.targets import SegmentMapping, build_table
from tkperf.model.errors import DeviceError, RefusedError
from tkperf.model.segments import Segments

COMMANDS = {0: "version", 3: "create", 4: "remove", 6: "suspend", 7: "status", 9: "load", 12: "table"}
TABLE = (Target(0, 16, "linear", "259:0 2048"), Target(16, 16, "linear", "259:0 4096"))


class FakeKernel:
    """A fake kernel. ``changes`` contains each command that changes a mapping. The kernel refuses the commands in
    ``fails``.
    """

    def __init__(self) -> None:
        self.changes: list[str] = []
        self.fails: dict[str, int] = {}
        self.uuid: str | None = None
        self.inactive: bytes = b""
        self.active: bytes = b""
        self.counts = [0, 0]
        self.event = 0

    def __call__(self, _descriptor: int, request: int, buffer: bytearray, _mutate: bool) -> int:
        fields = list(struct.unpack_from("=3I3IiIIIQ128s129s7x", buffer))
        assert request & ~0xFF == 0xC138FD00
        assert fields[3] == len(buffer)
        assert fields[4] == 312
        name = COMMANDS[request & 0xFF]
        flags, self.event = fields[7], fields[8] or self.event
        if name not in {"version", "status", "table"}:
            kind = {"load": bytes(buffer[336:352]).rstrip(b"\0").decode()}.get(name, "")
            deferred = "deferred" if flags & 1 << 17 else ""
            self.changes.append(" ".join(filter(None, (name, kind, deferred))))
        if (failure := self.fails.get(name)) is not None:
            raise OSError(failure, "refused")
        if name == "create":
            self.uuid = fields[12].rstrip(b"\0").decode()
        elif self.uuid is None and name != "version":
            raise OSError(errno.ENXIO, "no such device")
        self._do(name, flags, fields, buffer)
        return 0

    def _do(self, name: str, flags: int, fields: list[int], buffer: bytearray) -> None:
        data = b""
        match name:
            case "version":
                fields[0:3] = [4, 47, 0]
            case "remove" if not flags & 1 << 17:
                self.uuid, self.active, self.inactive = None, b"", b""
            case "load":
                self.inactive, self.counts[0] = bytes(buffer[312:]), fields[5]
            case "suspend":
                self.active, self.counts[1] = self.inactive, self.counts[0]
            case "table":
                assert flags & 1 << 4
                data, fields[5] = self._answer(), self.counts[1]
        fields[12] = (self.uuid or "").encode()  # type: ignore[call-overload]
        if len(data) > len(buffer) - 312:
            fields[7] |= 1 << 8
            data = b""
        struct.pack_into("=3I3IiIIIQ128s129s7x", buffer, 0, *fields)
        buffer[312 : 312 + len(data)] = data

    def _answer(self) -> bytes:
        """Return the table. In the kernel's answer, the position of the next target counts from the start of the whole
        table. In tkperf's request, the position counts from the current target.
        """
        answer, place = bytearray(self.active), 0
        for _ in range(self.counts[1]):
            (following,) = struct.unpack_from("=I", answer, place + 20)
            struct.pack_into("=I", answer, place + 20, place + following)
            place += following
        return bytes(answer)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    """Return a fake kernel with a node in a separate folder. The node is a file, so it has the device number 0:0."""
    fake = FakeKernel()
    (tmp_path / "control").touch()
    (tmp_path / "dm-0").touch()
    monkeypatch.setattr(device_mapper, "CONTROL", tmp_path / "control")
    monkeypatch.setattr(device_mapper, "NODES", tmp_path)
    monkeypatch.setattr(device_mapper, "ioctl", fake)
    return fake


def test_a_mapping_lies_on_nothing_until_it_is_marked_for_removal(kernel: FakeKernel) -> None:
    """Before tkperf loads a table that uses the drive, it tells the kernel to remove the mapping when the mapping is
    closed. The drive is therefore free again if tkperf is killed. The event cookie tells udev's rules to ignore the
    mapping.
    """
    mapping = create_mapping("tkperf-segments-sdx", TABLE)
    assert kernel.changes == ["create", "load error", "remove deferred", "load linear", "suspend"]
    assert kernel.uuid == "TKPERF-tkperf-segments-sdx"
    assert kernel.event == 0x4E0000
    assert tuple(read_table("tkperf-segments-sdx")) == TABLE
    mapping.let_go()
    mapping.let_go()


def test_a_long_table_is_read_in_full(kernel: FakeKernel) -> None:
    """A long table is read completely. If the kernel reports that the buffer is too small, tkperf reads the table again
    with a larger buffer.
    """
    table = tuple(Target(16 * n, 16, "linear", f"259:0 {64 * n}") for n in range(5000))
    create_mapping("tkperf-segments-sdx", table).let_go()
    assert tuple(read_table("tkperf-segments-sdx")) == table


@pytest.mark.parametrize(
    ("fails", "changes"),
    [("create", ["create"]), ("suspend", ["create", "load error", "remove deferred", "load linear", "suspend"])],
)
def test_what_the_kernel_refuses_is_said_in_its_words(kernel: FakeKernel, fails: str, changes: list[str]) -> None:
    """An error of the kernel is reported with the kernel's own text. A mapping that is marked for removal disappears
    when tkperf closes it.
    """
    kernel.fails[fails] = errno.EBUSY
    with pytest.raises(DeviceError, match="device-mapper: Device or resource busy"):
        create_mapping("tkperf-segments-sdx", TABLE)
    assert kernel.changes == changes


def test_without_a_node_nothing_is_left(kernel: FakeKernel, tmp_path: Path) -> None:
    """If a mapping has no node, as in a container, tkperf reports an error and removes the mapping immediately, because
    no process has it open.
    """
    (tmp_path / "dm-0").unlink()
    with pytest.raises(DeviceError, match=r"dm-0 cannot be opened: No such file"):
        create_mapping("tkperf-segments-sdx", TABLE)
    assert kernel.changes == ["create", "load error", "remove"]
    assert kernel.uuid is None


def test_what_a_killed_tkperf_left_is_cleared_away(kernel: FakeKernel) -> None:
    """A mapping that a killed tkperf left behind is removed before a new mapping is created. Such a mapping uses no
    device, because tkperf was killed before it marked the mapping for removal.
    """
    kernel.uuid = "TKPERF-tkperf-segments-sdx"
    create_mapping("tkperf-segments-sdx", TABLE).let_go()
    assert kernel.changes[:2] == ["remove", "create"]


@pytest.mark.parametrize("theirs", ["LVM-abc", "TKPERF-tkperf-segments-sdx"])
def test_what_lies_on_something_or_is_not_ours_is_left_alone(kernel: FakeKernel, theirs: str) -> None:
    """If a mapping with the same name uses a device, or if another program created it, tkperf reports an error and does
    not change the mapping.
    """
    create_mapping("tkperf-segments-sdx", TABLE).let_go()
    kernel.uuid = theirs
    kernel.changes.clear()
    with pytest.raises(DeviceError, match="a mapping tkperf-segments-sdx exists already"):
        create_mapping("tkperf-segments-sdx", TABLE)
    assert kernel.changes == []


def test_where_there_is_no_device_mapper_the_reason_is_told(kernel: FakeKernel, tmp_path: Path) -> None:
    """If the control node of the device mapper is missing, the error contains the name of the node and the modprobe
    command. If the node exists, no error occurs.
    """
    require_device_mapper()
    (tmp_path / "control").unlink()
    with pytest.raises(DeviceError, match=r"control: No such file or directory; try 'modprobe dm-mod'"):
        require_device_mapper()


@pytest.fixture
def permit(scratch: Path) -> Iterator[ErasePermit]:
    granted = grant_permit(hold_target(read_identity(scratch)), confirmed_id=str(scratch)).redeem()
    yield granted
    granted.release()


def test_a_drive_under_a_mapping_is_reached_but_not_held(permit: ErasePermit) -> None:
    """A lent drive can be accessed only through a mapping of tkperf. Through the mapping, the drive can be filled, but
    no action that needs the exclusive hold is possible.
    """
    permit.lend(shared=True)
    with pytest.raises(RefusedError, match="another program is using"):
        _ = permit.path
    permit.lent_to = "dm-0"
    assert permit.path.startswith("/proc/")
    with pytest.raises(RefusedError, match="not held exclusively"):
        _ = permit.descriptor
    permit.take_back()
    assert permit.descriptor >= 0
    permit.lend()
    permit.lent_to = "md0"
    with pytest.raises(RefusedError, match="another program is using"):
        _ = permit.path


def test_a_lent_drive_is_checked_again_before_it_is_taken_back(permit: ErasePermit, scratch: Path) -> None:
    """If a program began to use the drive while the drive was lent, the run ends, and tkperf does not take the drive
    back.
    """
    permit.lend()
    scratch.with_name("another name").hardlink_to(scratch)
    with pytest.raises(RefusedError, match="hard links"):
        permit.take_back()
    with pytest.raises(RefusedError, match="another program is using"):
        _ = permit.descriptor
    scratch.with_name("another name").unlink()
    permit.take_back()
    assert permit.descriptor >= 0


SEGMENTS = Segments(seed=1, length_bytes=8192, within_bytes=1 << 20, starts_bytes=(4096, 65536))


def test_segments_are_mapped_one_behind_the_other_and_gone_afterwards(kernel: FakeKernel, permit: ErasePermit) -> None:
    """Segments are mapped in sectors, in the order of their positions. While the mapping exists, it holds the drive."""
    assert build_table(SEGMENTS, "8:16") == (Target(0, 16, "linear", "8:16 8"), Target(16, 16, "linear", "8:16 128"))
    mapping = SegmentMapping(permit, SEGMENTS)
    with pytest.raises(DeviceError, match="not mapped at the moment"):
        mapping.find_path()
    mapping.create()
    assert permit.lent_to == "dm-0"
    assert mapping.find_path().endswith("/dm-0")
    mapping.remove()
    mapping.remove()
    permit.take_back()
    assert permit.descriptor >= 0


def test_who_takes_the_drive_between_the_holds_keeps_it(
    kernel: FakeKernel, permit: ErasePermit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another program claims the drive after tkperf has released it and before the mapping holds it, the program
    keeps the drive, because the kernel does not map a claimed drive. The run then ends without any further write.
    """
    real: Callable[..., int] = kernel.__call__

    def claimed(descriptor: int, request: int, buffer: bytearray, mutate: bool) -> int:
        if request & 0xFF == 9 and b"linear" in buffer:
            raise OSError(errno.EBUSY, "busy")
        return real(descriptor, request, buffer, mutate)

    monkeypatch.setattr(device_mapper, "ioctl", claimed)
    with pytest.raises(
        DeviceError, match=r"cannot create the device-mapper mapping of the segments: .*busy\. Nothing more is written"
    ):
        SegmentMapping(permit, SEGMENTS).create()
    with pytest.raises(RefusedError):
        _ = permit.path
