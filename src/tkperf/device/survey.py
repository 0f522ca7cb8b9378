"""The survey of all uses of a target. Objections and blind spots are derived from the survey."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.sysfs import PROC_ROOT, SYS_ROOT, find_disk, text
from tkperf.device.usage.kernel import (
    Export,
    FileId,
    FileUse,
    LoopDevice,
    Swap,
    ask_file_state,
    find_exports,
    find_loops,
    find_nfs_opens,
    find_silent_modules,
    find_swaps,
    holds_erofs,
    is_open_elsewhere,
    open_named,
    stat_named,
)
from tkperf.device.usage.mounts import (
    Mount,
    MountedPath,
    find_layers,
    find_mounted_path,
    holds,
    read_mounts,
    shows,
    unescape,
)
from tkperf.device.usage.processes import ProcessSurvey, describe_process, is_kernel_thread, look_at_processes
from tkperf.device.usage.target_nodes import TargetNodes, find_target_nodes
from tkperf.model.input_files import is_there
from tkperf.model.units import on_one_line
from tkperf.system.host import FileLock, read_locks, require_descriptors
from tkperf.system.installation import CONTAINER_FILES, NAMED_CONTAINER_FILE

# The numbers of files that this process must be able to open. The first number is sufficient for the checks. The second
# number is required before an erase, and includes the files that fio and the run file need.
FREE_DESCRIPTORS_TO_LOOK, FREE_DESCRIPTORS_TO_START = 12, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The results of one survey.

    Attributes:
        mounted: the file system, the mount and the path of a file target. None means that the target is a device, or
            that these facts are not known.
        places: the same facts about each file of the target, if the name of the file still leads to the file.
    """

    identity: DeviceIdentity
    sys_root: Path
    proc_root: Path
    target_nodes: TargetNodes
    mounted: MountedPath | None
    places: Mapping[FileId, MountedPath]
    loops: tuple[LoopDevice, ...]
    swaps: tuple[Swap, ...]
    exports: tuple[Export, ...]
    mounts: tuple[Mount, ...]
    processes: ProcessSurvey

    def name_of_export(self, export: Export) -> str | None:
        """Return the name of the exported part of the target. None means that no part of the target is exported, or
        that the path of the export does not exist.

        The path of a mounted file may be relative to an unknown folder. To be safe, a file with the same name then
        counts as exported.
        """
        if export.device is not None:
            return self.target_nodes.name_of_device(export.device)
        if export.scsi_address is not None:
            for node in self.target_nodes.devices:
                if (find_disk(node) / "device").resolve().name == export.scsi_address:
                    return node.name
            return None
        if (path := export.find_path()) is not None:
            return self.target_nodes.name_of_path(path)
        if export.root is not None and export.path:
            return self.target_nodes.name_of_base(Path(export.path).name)
        return None

    def find_possible_mounts(self) -> Iterator[tuple[str, Export]]:
        """Yield files behind loop devices that contain an erofs file system, each with a mount that may use the file.

        A mount keeps the name that its file had when the file was mounted, even if the file has another name
        now. The kernel does not report the file itself. For a file target, the lease shows such a user.
        """
        mounts = [export for export in self.exports if export.superblock is not None]
        if self.identity.kind is TargetKind.FILE or not mounts:
            return
        for file, path in self.target_nodes.paths.items():
            descriptor = open_named(path, file)
            if descriptor is None:
                continue
            try:
                for export in mounts:
                    if holds_erofs(descriptor, export.offset_bytes) and self._may_have_moved(export):
                        yield self.target_nodes.files[file], export
            finally:
                os.close(descriptor)

    def _may_have_moved(self, export: Export) -> bool:
        """Return whether the name of a mounted file may lead to a file other than the mounted file.

        This is the case if the mounted file contains an erofs file system, the kernel has the file open, and no
        other mount has the same name.
        """
        others = {
            other.superblock for other in self.exports if other.path == export.path and other.superblock is not None
        }
        path = export.find_path()
        if path is None or len(others) > 1:
            return True
        try:
            status = os.stat(path)
        except OSError:
            return True
        named = (status.st_dev, status.st_ino)
        if named in self.target_nodes.files:
            # another objection already reports this use
            return False
        descriptor = open_named(Path(path), named)
        if descriptor is None:
            return True
        try:
            is_mounted = holds_erofs(descriptor, export.offset_bytes)
            return not (is_mounted and is_open_elsewhere(descriptor))
        finally:
            os.close(descriptor)

    @property
    def lost_swaps(self) -> tuple[str, ...]:
        """The swap files whose names lead to no file."""
        return tuple(swap.name for swap in self.swaps if swap.stat is None and swap.is_file)

    def ask_file_state(self, *, count: bool) -> FileUse:
        """Return the kernel's answers about a file target as a whole. For a device, no value is known."""
        if self.identity.inode is None:
            return FileUse()
        return ask_file_state(
            self.identity.path,
            self.identity.inode,
            # The kernel grants no lease on a file that tkperf itself has opened.
            count=count and not self.processes.own,
            swap=bool(self.lost_swaps),
            file_system=self.mounted.mount.kind if self.mounted else None,
        )

    def find_locks(self) -> tuple[tuple[str, FileLock], ...]:
        """Return the locks on the files of the target. Each lock is paired with the name of the file.

        Locks on btrfs are not found, because the kernel's numbers for these files differ from the numbers that stat
        returns.
        """
        files = self._files_by_kernel_number()
        return tuple((files[lock.file], lock) for lock in read_locks(self.proc_root) if lock.file in files)

    def find_files_open_over_nfs(self) -> list[str]:
        """Return the names of the target's files that clients of this machine's NFS server have open."""
        opened = find_nfs_opens(self.proc_root)
        return [name for file, name in self._files_by_kernel_number().items() if file in opened]

    def _files_by_kernel_number(self) -> dict[FileId, str]:
        """Return the names of the files for which the kernel's lists contain the same numbers as stat returns."""
        return {
            file: name
            for file, name in self.target_nodes.files.items()
            if file not in self.places or self.places[file].file_system == file[0]
        }

    def find_overlays(self) -> Iterator[tuple[str, Mount, bool]]:
        """Yield each file of the target that may be part of an overlay, with the overlay and whether the file is
        certainly part of the overlay.

        False means that the folders of the overlay cannot be reached, so the file may be part of the overlay.
        """
        for file, path in self.target_nodes.paths.items():
            overlays: dict[int, tuple[Mount, bool]] = {}
            for overlay, layer in find_layers(self.mounts):
                holding = holds(overlay, layer, path, self.mounts, self.proc_root)
                if holding or (holding is None and overlay.mount_id not in overlays):
                    overlays[overlay.mount_id] = (overlay, holding is True)
            for mount in self.mounts:
                sure = mount.mount_id in overlays and overlays[mount.mount_id][1]
                if mount.kind == "overlay" and not sure and shows(mount, path):
                    overlays[mount.mount_id] = (mount, True)
            for overlay, certain in overlays.values():
                yield self.target_nodes.files[file], overlay, certain


def make_survey(
    identity: DeviceIdentity,
    *,
    sys_root: Path = SYS_ROOT,
    proc_root: Path = PROC_ROOT,
    held: int | None = None,
    files_only: bool = False,
) -> Survey:
    """Return the uses of a target.

    Args:
        held: a descriptor of a file target, so that the survey examines the held file and not the file that now has
            this name.
        files_only: whether to search only for processes that use files, and not for uses of devices.
    """
    # If no descriptor were free, the survey would find no use, as if the device were not in use.
    few = FREE_DESCRIPTORS_TO_START if held is None else FREE_DESCRIPTORS_TO_LOOK
    require_descriptors(few, purpose=f"measuring {identity.path}")
    path = Path(identity.path) if held is None else Path(f"/proc/self/fd/{held}")
    loops = find_loops(sys_root)
    own_mounts = tuple(read_mounts(proc_root / "self", None))
    if identity.kind is TargetKind.FILE:
        assert identity.inode is not None
        nodes = TargetNodes(
            files={identity.inode: "the file"},
            bases={Path(identity.path).name: "the file"},
            paths={identity.inode: path},
        )
    else:
        assert identity.major_minor is not None
        nodes = find_target_nodes(identity.major_minor, loops, sys_root)
    places = {
        file: place
        for file, named in nodes.paths.items()
        if stat_named(named, file) and (place := find_mounted_path(named, own_mounts, proc_root))
    }
    nodes = replace(nodes, files={**nodes.files, **_files_in_upper_layers(nodes, places)})
    processes = look_at_processes(
        proc_root,
        replace(nodes, nodes={}, underlying={}, characters={}) if files_only else nodes,
        file_systems={place.file_system for place in places.values()},
    )
    mounts = (*own_mounts, *_mounts_of_others(processes, own_mounts, proc_root))
    return Survey(
        identity=identity,
        sys_root=sys_root,
        proc_root=proc_root,
        target_nodes=nodes,
        mounted=None if identity.inode is None else places.get(identity.inode),
        places=places,
        loops=loops,
        swaps=find_swaps(proc_root),
        exports=tuple(find_exports(sys_root, proc_root, mounts)),
        mounts=mounts,
        processes=processes,
    )


def _files_in_upper_layers(nodes: TargetNodes, places: Mapping[FileId, MountedPath]) -> dict[FileId, str]:
    """Return the files in the upper layers of overlays that correspond to target files with a path through an
    overlay.
    """
    upper_files = {}
    for file, place in places.items():
        if place.mount.kind != "overlay":
            continue
        for option in place.mount.options.split(","):
            if option.startswith("upperdir="):
                try:
                    upper = os.stat(unescape(option[9:]) + str(place.inside))
                except OSError:
                    continue
                upper_files[(upper.st_dev, upper.st_ino)] = nodes.files[file]
    return upper_files


def _mounts_of_others(processes: ProcessSurvey, own_mounts: tuple[Mount, ...], proc_root: Path) -> Iterator[Mount]:
    """Yield the mounts of each mount namespace other than tkperf's own, and mounts that only process 1 can see.

    If tkperf runs in a chroot, the kernel shows tkperf only the mounts below tkperf's own root, although process 1 has
    the same mount namespace.
    """
    try:
        own = os.readlink(proc_root / "self/ns/mnt")
    except OSError:
        own = None
    others = [process for namespace, process in processes.namespaces.items() if namespace != own]
    for process in others:
        yield from read_mounts(process, describe_process(process))
    first = proc_root / "1"
    if first not in others:
        shown = {mount.mount_id for mount in own_mounts}
        for mount in read_mounts(first, describe_process(first)):
            if mount.mount_id not in shown:
                yield mount


# The number of the first PID namespace, which is the same on every machine (PROC_PID_INIT_INO in linux/proc_ns.h).
FIRST_PID_NAMESPACE = "pid:[4026531836]"
# The number of a bit of CapEff in /proc/PID/status. A process with this capability may inspect any process.
CAP_SYS_PTRACE = 19
_HIDING = ("hidepid=1", "hidepid=2", "hidepid=noaccess", "hidepid=invisible", "subset=pid")
# File systems that other machines may use as well. This kernel does not count uses by other machines.
_SHARED = ("nfs", "nfs4", "cifs", "smb3", "fuse", "9p", "virtiofs", "ceph", "gfs2", "ocfs2")


class BlindSpotCode(StrEnum):
    """Codes of blind spots. The codes do not change between versions of tkperf."""

    PID_NAMESPACE = "pid-namespace"
    HIDDEN_PROCESSES = "hidden-processes"
    OTHER_USERS = "other-users"
    LOOP_DEVICES = "loop-devices"
    EXPORTS = "exports"
    SWAP = "swap"
    OVERLAYS = "overlays"
    SYSFS = "sysfs"
    OTHER_MACHINES = "other-machines"


@dataclass(frozen=True, slots=True)
class BlindSpot:
    """A kind of use that tkperf cannot see. ``text`` is one sentence for the user."""

    code: BlindSpotCode
    text: str


def find_blind_spots(
    identity: DeviceIdentity, *, sys_root: Path = SYS_ROOT, proc_root: Path = PROC_ROOT, root: Path = Path("/")
) -> tuple[BlindSpot, ...]:
    """Return the blind spots: the kinds of use of a target that tkperf cannot see. The result is empty if there are
    none.

    Call the function before the target is held. If the kernel reports that no other process has a file open, the result
    contains only blind spots for uses that begin later or that do not need an open file.

    Args:
        root: the folder in which container managers create their marks.
    """
    if identity.kind is TargetKind.SIMULATED:
        return ()
    survey = make_survey(identity, sys_root=sys_root, proc_root=proc_root)
    # The type ``fuse.sshfs`` is treated as ``fuse``.
    file_system = survey.mounted.mount.kind.partition(".")[0] if survey.mounted else "not known"
    alone = survey.ask_file_state(count=True).open_elsewhere is False
    # If a program uses a file of an overlay directly and not through the overlay, the kernel counts this use for
    # another file.
    alone = alone and file_system not in (*_SHARED, "overlay", "not known")
    spots = [*_unseen_processes(survey, root, alone=alone)]
    spots += _unseen_machines(survey)
    private = any(spot.code is BlindSpotCode.PID_NAMESPACE for spot in spots)
    if not alone:
        spots += _unseen_kernel_users(survey)
    if not private:
        spots += _unseen_overlays(survey)
    return tuple(spots)


def _unseen_processes(survey: Survey, root: Path, *, alone: bool) -> Iterator[BlindSpot]:
    """If tkperf cannot inspect all processes, yield one blind spot for the reason that hides the most processes."""
    target = on_one_line(survey.identity.path)
    now = f". At the moment, nothing else has {target} open" if alone else ""
    if not sees_all_processes(survey.proc_root):
        where = describe_container(survey.proc_root, root)
        sentence = (
            f"tkperf runs in {where} and sees only the processes in it, so it would not notice if a process outside "
            f"of it used {target}{now}"
        )
        yield BlindSpot(BlindSpotCode.PID_NAMESPACE, sentence)
    elif _is_hidden(survey.proc_root):
        sentence = (
            "/proc hides the processes of other users (hidepid), so tkperf would not notice if one of these "
            f"processes used {target}{now}"
        )
        yield BlindSpot(BlindSpotCode.HIDDEN_PROCESSES, sentence)
    elif survey.processes.closed:
        sentence = (
            f"tkperf cannot inspect {survey.processes.closed:,} processes of other users, so it would not notice if "
            f"one of these processes used {target}{now}"
        )
        yield BlindSpot(BlindSpotCode.OTHER_USERS, sentence)


def _unseen_machines(survey: Survey) -> Iterator[BlindSpot]:
    """Yield blind spots for files on file systems that other machines can use as well. The files are a file target and
    files behind a loop device.
    """
    for file, place in survey.places.items():
        kind = place.mount.kind.partition(".")[0]
        if kind in _SHARED:
            what = survey.identity.path if survey.mounted else survey.target_nodes.files[file]
            sentence = f"{on_one_line(what)} is on {kind}: tkperf cannot see whether another machine uses the file"
            yield BlindSpot(BlindSpotCode.OTHER_MACHINES, sentence)


def _unseen_kernel_users(survey: Survey) -> Iterator[BlindSpot]:
    silent = [loop.name for loop in survey.loops if not loop.asked]
    if silent:
        sentence = (
            f"tkperf could find the files behind {', '.join(silent)} only by their names, because a query to the "
            "loop driver requires root privileges and the node of the loop device in /dev"
        )
        yield BlindSpot(BlindSpotCode.LOOP_DEVICES, sentence)
    lost = [on_one_line(str(export)) for export in survey.exports if export.path and export.find_path() is None]
    modules = find_silent_modules(survey.sys_root)
    if modules:
        sentence = (
            f"tkperf cannot see which devices and files the kernel exports through {', '.join(modules)}, because "
            "configfs is not mounted here (mount -t configfs none /sys/kernel/config)"
        )
        yield BlindSpot(BlindSpotCode.EXPORTS, sentence)
    if lost:
        sentence = (
            f"tkperf cannot find the file or device that is used by {', '.join(dict.fromkeys(lost))}, because the "
            "name does not exist here"
        )
        yield BlindSpot(BlindSpotCode.EXPORTS, sentence)
    # The kernel claims a block device that is used as swap space, so the claim already shows this use.
    files = [on_one_line(name) for name in survey.lost_swaps]
    if files and survey.target_nodes.files and survey.ask_file_state(count=False).swap is None:
        sentence = f"tkperf cannot find the swap file {', '.join(files)}, because the name does not exist here"
        yield BlindSpot(BlindSpotCode.SWAP, sentence)
    if not all(is_there(folder) for folder in survey.target_nodes.nodes.values()):
        sentence = (
            f"the kernel does not describe {on_one_line(survey.identity.path)} here (/sys is missing or "
            "incomplete), so tkperf could not check its partitions and the devices that use the partitions"
        )
        yield BlindSpot(BlindSpotCode.SYSFS, sentence)


def _unseen_overlays(survey: Survey) -> Iterator[BlindSpot]:
    points: dict[str, list[str]] = {}
    for what, overlay, certain in survey.find_overlays():
        if not certain:
            points.setdefault(what, []).append(on_one_line(overlay.point))
    for what, overlays in points.items():
        sentence = (
            f"it is not known whether {what} is part of the overlay mounted at {', '.join(overlays)}, because "
            "tkperf cannot reach the folders of this overlay"
        )
        yield BlindSpot(BlindSpotCode.OVERLAYS, sentence)


def sees_all_processes(proc_root: Path) -> bool:
    """Return whether /proc belongs to the first PID namespace. Only this namespace contains kernel threads.

    If kernel threads are hidden, the result is true only if tkperf itself is in this namespace and /proc contains the
    same process numbers as the namespace.
    """
    if is_kernel_thread(proc_root / "2"):
        return True
    try:
        namespace = os.readlink(proc_root / "self/ns/pid")
    except OSError:
        return False
    numbers = _status(proc_root, "NSpid").split()
    return namespace == FIRST_PID_NAMESPACE and len(numbers) <= 1


def _is_hidden(proc_root: Path) -> bool:
    if int(_status(proc_root, "CapEff") or "0", 16) >> CAP_SYS_PTRACE & 1:
        return False
    return any(
        option in _HIDING
        for mount in read_mounts(proc_root / "self", None)
        if mount.kind == "proc" and mount.point == str(proc_root)
        for option in mount.options.split(",")
    )


def _status(proc_root: Path, key: str) -> str:
    for row in (text(proc_root / "self/status") or "").splitlines():
        if row.startswith(f"{key}:"):
            return row.partition(":")[2].strip()
    return ""


def describe_container(proc_root: Path, root: Path = Path("/")) -> str:
    """Return a description of the container or namespace in which tkperf runs."""
    name = text(root / NAMED_CONTAINER_FILE)
    for file, manager in CONTAINER_FILES.items():
        if name is None and is_there(root / file):
            name = manager
    for variable in (text(proc_root / "1/environ") or "").split("\0"):
        if name is None and variable.startswith("container="):
            name = variable.partition("=")[2]
    return f"a container ({on_one_line(name)})" if name else "a PID namespace of its own"
