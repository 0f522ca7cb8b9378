"""Linux software RAID. This module creates, watches and removes sets with mdadm and with the folder md in sysfs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from tkperf.device.hold import Handle
from tkperf.device.raid.config import RaidConfig
from tkperf.device.sysfs import number, text, wait_until
from tkperf.model.errors import DeviceError, EngineError, RefusedError
from tkperf.model.input_files import is_there
from tkperf.model.record import OnProgress
from tkperf.model.units import KIB, MIB, format_capacity
from tkperf.system.process import Completed, find_program, run_command

MDADM_LIMIT_S = 120.0
NODE_LIMIT_S = 30.0
# If a resync makes no progress during this time, tkperf assumes that it will not end.
RESYNC_STALLED_S = 1800.0
# The space that is subtracted from each member: 1/512 of the member, but at least 8 MiB. mdadm reserves less. Before
# the data, it reserves up to a thousandth of the member, rounded up to whole MiB, and the data ends with a whole chunk.
LEAST_KEPT_BYTES = 8 * MIB
KEPT_SHARE = 512
# tkperf sets the lower and the upper limit of the resync speed to this value, in KiB/s. While tkperf creates a set for
# a measurement, the resync need not leave time for other I/O.
SYNC_SPEED = "2000000"
IDLE = ("idle", None)


class MdadmSet:
    """A RAID set, identified by its device node.

    This class creates the set and checks no permits. It stops only a set that it created.
    """

    def __init__(self, path: Path, config: RaidConfig) -> None:
        self.path = path
        self._config = config
        self._made = False

    @property
    def title(self) -> str:
        strip = f", chunk {self._config.strip_kib} KiB" if self._config.strip_kib else ""
        return f"MD RAID {self._config.level} over {len(self._config.devices)} devices{strip}"

    def require_program(self) -> None:
        """Check that mdadm is installed. Otherwise raise DeviceError."""
        if find_program("mdadm") is None:
            raise DeviceError(
                f"{self.path}: mdadm is not installed, and software RAID needs this program. Install the package "
                "mdadm. Nothing was touched"
            )

    def least_capacity_bytes(self, members_bytes: Sequence[int]) -> int:
        """Return a lower limit of the capacity of a set whose members have these sizes. Only mdadm can calculate the
        exact capacity.

        Raises:
            DeviceError: a member is too small for a set.
        """
        chunk_bytes = (self._config.strip_kib or 512) * KIB
        offered = (size - max(LEAST_KEPT_BYTES, size // KEPT_SHARE) for size in members_bytes)
        usable = [size - size % chunk_bytes for size in offered]
        if min(usable) <= 0:
            raise DeviceError(
                f"{self.path}: a member of {format_capacity(min(members_bytes))} is too small for a RAID set. Use a "
                "larger device. Nothing was touched"
            )
        if self._config.level == 0:
            return sum(usable)
        return int(min(usable) * self._config.data_members)

    def exists(self) -> bool:
        return is_there(self._sysfs / "md")

    def refuse_taken_node(self) -> None:
        """Raise RefusedError if the device node already belongs to a set. tkperf did not create such a set."""
        if self.exists():
            raise RefusedError(
                f"{self.path} is already a RAID set, so tkperf does not touch it. Choose another node. If "
                f"you do not need the set, you can also stop it with 'mdadm --stop {self.path}'"
            )

    def create(self, members: Sequence[Handle]) -> None:
        """Create the set from its members, in their order, and start the resync of the set.

        Raises:
            DeviceError: mdadm refused, or the device node does not appear.
            RefusedError: a set with this name already exists.
        """
        self.refuse_taken_node()
        self._made = True
        config = self._config
        # A RAID 1 has no chunks. A RAID 0 has no resync that a bitmap could shorten.
        chunk = [f"--chunk={config.strip_kib}"] if config.strip_kib and config.level != 1 else []
        bitmap = ["--bitmap=none"] if config.level != 0 else []
        self._mdadm(
            "--create",
            str(self.path),
            "--run",
            "--force",
            "--metadata=1.2",
            *bitmap,
            "--homehost=any",
            f"--level={config.level}",
            f"--raid-devices={len(members)}",
            *chunk,
            *(member.path for member in members),
            members=members,
        )
        if not wait_until(self.exists, limit_s=NODE_LIMIT_S, every_s=0.1):
            raise DeviceError(
                f"mdadm created the RAID set {self.path}, but this node did not appear within {NODE_LIMIT_S:.0f} s. "
                "See the kernel log (dmesg)"
            )
        for limit in ("sync_speed_max", "sync_speed_min"):
            try:
                (self._sysfs / "md" / limit).write_text(SYNC_SPEED)
            except OSError:
                return  # RAID 0 has no resync

    def wait_until_ready(self, on_progress: OnProgress) -> None:
        """Wait until the set is synchronised and idle."""
        folder = self._sysfs / "md"

        def read_done() -> str:
            return text(folder / "sync_completed") or ""

        def is_done() -> bool:
            idle = text(folder / "sync_action") in IDLE
            if not idle:
                on_progress(_share(read_done()))
            return idle

        if not wait_until(is_done, limit_s=RESYNC_STALLED_S, every_s=1.0, progress=read_done):
            action = text(folder / "sync_action")
            raise DeviceError(
                f"{self.path}: the {action} of the set makes no progress (at {read_done()}). See /proc/mdstat and the "
                "kernel log"
            )
        if number(self._sysfs / "md/degraded"):
            raise DeviceError(
                f"{self.path} is degraded, because a member failed while the set was created. See 'mdadm --detail "
                f"{self.path}' and the kernel log"
            )

    def remove(self, members: Sequence[Handle]) -> None:
        """Stop the set and erase its metadata on the members, if tkperf created the set.

        Raises:
            DeviceError: another program uses the set, or mdadm failed.
        """
        if not self._made:
            return
        tries = 10
        while self.exists():
            tries -= 1
            # udev may keep the set open for a moment.
            self._mdadm("--stop", str(self.path), tolerated=(0, 1) if tries else (0,))
            time.sleep(0.3)
        for member in members:
            self._mdadm("--zero-superblock", member.path, members=[member], tolerated=(0, 1, 2))
        self._made = False

    @property
    def name(self) -> str:
        """The kernel's name of the device node, such as ``md0``."""
        return Path(os.path.realpath(self.path)).name

    @property
    def _sysfs(self) -> Path:
        return Path("/sys/block") / self.name

    def _mdadm(self, *arguments: str, members: Sequence[Handle] = (), tolerated: tuple[int, ...] = (0,)) -> Completed:
        try:
            done = run_command(
                ["mdadm", *arguments],
                timeout_s=MDADM_LIMIT_S,
                must_finish=True,
                inherit=[descriptor for member in members for descriptor in member.descriptors],
            )
        except EngineError as error:
            raise DeviceError(f"{self.path}: {error}") from error
        if done.exit_status not in tolerated:
            output = done.words
            for member in members:
                output = output.replace(member.path, member.name)
            raise DeviceError(f"{self.path}: 'mdadm {arguments[0]}' failed: {output[:300]}")
        return done


def _share(completed: str) -> float | None:
    """Return the share in md/sync_completed, such as 0.25 for ``1000 / 4000``. None means that the text has another
    form.
    """
    done, slash, whole = completed.partition("/")
    try:
        return int(done) / int(whole) if slash and int(whole) else None
    except ValueError:
        return None
