"""Blind spots: places that the search for users of a target cannot reach, reported before consent.

A use that the kernel does not show is no reason to refuse. But the user must know that tkperf could
not look there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.survey import Survey, make_survey
from tkperf.device.sysfs import PROC_ROOT, SYS_ROOT, text
from tkperf.device.usage.kernel import find_silent_modules
from tkperf.device.usage.mounts import read_mounts
from tkperf.device.usage.processes import is_kernel_thread
from tkperf.model.units import on_one_line

# The number that the first PID namespace always has (PROC_PID_INIT_INO of linux/proc_ns.h).
FIRST_PID_NAMESPACE = "pid:[4026531836]"
# Bit of CapEff in /proc/PID/status: permits looking into any process.
CAP_SYS_PTRACE = 19
_HIDING = ("hidepid=1", "hidepid=2", "hidepid=noaccess", "hidepid=invisible", "subset=pid")
# File systems that other machines may use, too: this kernel's count does not include their uses.
_SHARED = ("nfs", "nfs4", "cifs", "smb3", "fuse", "9p", "virtiofs", "ceph", "gfs2", "ocfs2")
_CONTAINER_FILES = {".dockerenv": "Docker", "run/.containerenv": "Podman"}


class BlindSpotCode(StrEnum):
    """Stable codes of blind spots."""

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
    """A place that tkperf cannot see into; ``text`` is one sentence."""

    code: BlindSpotCode
    text: str


def find_blind_spots(
    identity: DeviceIdentity, *, sys_root: Path = SYS_ROOT, proc_root: Path = PROC_ROOT, root: Path = Path("/")
) -> tuple[BlindSpot, ...]:
    """Return the places where users of a target may be that tkperf cannot see; empty if there are none.

    Call it before the target is held. If the kernel says that no other process has a file open, only uses
    that could begin later or need no open file remain.

    Args:
        root: folder in which container managers leave their marks.
    """
    if identity.kind is TargetKind.SIMULATED:
        return ()
    survey = make_survey(identity, sys_root=sys_root, proc_root=proc_root)
    # ``fuse.sshfs`` counts as ``fuse``.
    file_system = survey.mounted.mount.kind.partition(".")[0] if survey.mounted else "not known"
    alone = survey.ask_file_state(count=True).open_elsewhere is False
    # The kernel counts elsewhere the uses of an overlay's file that do not go through the overlay.
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
    """Yield at most one blind spot about processes: the one that hides most of them."""
    target = on_one_line(survey.identity.path)
    now = "; nothing else has it open now" if alone else ""
    if not _sees_all_processes(survey.proc_root):
        where = _container(survey.proc_root, root)
        sentence = (
            f"tkperf runs in {where} and sees only the processes in it: a use of {target} by "
            f"anything outside would not be noticed{now}"
        )
        yield BlindSpot(BlindSpotCode.PID_NAMESPACE, sentence)
    elif _is_hidden(survey.proc_root):
        sentence = (
            f"/proc hides the processes of other users (hidepid): a use of {target} by one of them "
            f"would not be noticed{now}"
        )
        yield BlindSpot(BlindSpotCode.HIDDEN_PROCESSES, sentence)
    elif survey.processes.closed:
        sentence = (
            f"processes of other users ({survey.processes.closed:,}) cannot be inspected: a use of "
            f"{target} by one of them would not be noticed{now}"
        )
        yield BlindSpot(BlindSpotCode.OTHER_USERS, sentence)


def _unseen_machines(survey: Survey) -> Iterator[BlindSpot]:
    """Yield files, the target or behind a loop device, on file systems that other machines share."""
    for file, place in survey.places.items():
        kind = place.mount.kind.partition(".")[0]
        if kind in _SHARED:
            what = survey.identity.path if survey.mounted else survey.numbers.files[file]
            sentence = f"{on_one_line(what)} is on {kind}: tkperf cannot see whether another machine uses the file"
            yield BlindSpot(BlindSpotCode.OTHER_MACHINES, sentence)


def _unseen_kernel_users(survey: Survey) -> Iterator[BlindSpot]:
    silent = [loop.name for loop in survey.loops if not loop.asked]
    if silent:
        sentence = (
            f"what is behind {', '.join(silent)} could be looked up by name only, because asking "
            "the loop driver takes root and its node in /dev"
        )
        yield BlindSpot(BlindSpotCode.LOOP_DEVICES, sentence)
    lost = [on_one_line(str(export)) for export in survey.exports if export.path and export.find_path() is None]
    modules = find_silent_modules(survey.sys_root)
    if modules:
        sentence = (
            f"what the kernel's {', '.join(modules)} exports cannot be seen, because configfs is "
            "not mounted here (mount -t configfs none /sys/kernel/config)"
        )
        yield BlindSpot(BlindSpotCode.EXPORTS, sentence)
    if lost:
        sentence = f"what is used by {', '.join(dict.fromkeys(lost))} cannot be found by that name"
        yield BlindSpot(BlindSpotCode.EXPORTS, sentence)
    # The kernel claims a block device that is swap space, so the claim shows the use anyway.
    files = [on_one_line(name) for name in survey.lost_swaps]
    if files and survey.numbers.files and survey.ask_file_state(count=False).swap is None:
        sentence = f"the swap file {', '.join(files)} cannot be found by that name"
        yield BlindSpot(BlindSpotCode.SWAP, sentence)
    if not all(folder.exists() for folder in survey.numbers.nodes.values()):
        sentence = (
            f"the kernel does not describe {on_one_line(survey.identity.path)} here (/sys is "
            "missing or incomplete), so its partitions and the devices made of them could not "
            "be checked"
        )
        yield BlindSpot(BlindSpotCode.SYSFS, sentence)


def _unseen_overlays(survey: Survey) -> Iterator[BlindSpot]:
    points: dict[str, list[str]] = {}
    for what, overlay, certain in survey.find_overlays():
        if not certain:
            points.setdefault(what, []).append(on_one_line(overlay.point))
    for what, overlays in points.items():
        sentence = (
            f"whether {what} is part of the overlay mounted at {', '.join(overlays)} is not "
            "known, because its folders cannot be reached from here"
        )
        yield BlindSpot(BlindSpotCode.OVERLAYS, sentence)


def _sees_all_processes(proc_root: Path) -> bool:
    """Return whether /proc belongs to the first PID namespace: only that has kernel threads.

    If they are hidden, tkperf must be in that namespace, and /proc must number processes as it does.
    """
    if is_kernel_thread(proc_root / "2"):
        return True
    try:
        namespace = os.readlink(proc_root / "self/ns/pid")  # noqa: PTH115 - text is compared
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


def _container(proc_root: Path, root: Path) -> str:
    """Return words for the container or namespace that tkperf runs in."""
    name = text(root / "run/systemd/container")
    for file, manager in _CONTAINER_FILES.items():
        if name is None and (root / file).exists():
            name = manager
    for variable in (text(proc_root / "1/environ") or "").split("\0"):
        if name is None and variable.startswith("container="):
            name = variable.partition("=")[2]
    return f"a container ({on_one_line(name)})" if name else "a PID namespace of its own"
