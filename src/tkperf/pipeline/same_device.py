"""Compare a device with the device of a run, before the run goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.model.errors import DeviceError
from tkperf.model.units import format_capacity

# Facts that distinguish one drive from another. A fact unknown in the run file is not compared.
_OWN = ("serial", "wwn", "model", "firmware")
_WORDS = {"serial": "serial number", "wwn": "world-wide name", "logical_block_bytes": "sector"}


def require_same_device(
    recorded: Mapping[str, object], identity: DeviceIdentity, facts: Mapping[str, object]
) -> None:
    """Compare a device with the device of a run.

    Args:
        recorded: the facts about the run's device.
        identity, facts: the device as it is now.

    Raises:
        DeviceError: it is another device, or it has changed; the message names the differences.
    """
    differences = tuple(_differences(recorded, identity, facts))
    if differences:
        raise DeviceError(
            f"{identity.path} is not the device of the run as it was then: "
            f"{'; '.join(differences)}. If its name has changed: tkperf resume RUN_FILE DEVICE"
        )


def _differences(
    recorded: Mapping[str, object], identity: DeviceIdentity, facts: Mapping[str, object]
) -> Iterator[str]:
    if recorded.get("kind") != identity.kind:
        yield f"a {identity.kind}, not a {recorded.get('kind')}"
        return
    before, now = recorded.get("capacity_bytes"), identity.capacity_bytes
    if isinstance(before, int) and before != now:
        how = "grown" if now > before else "shrunk"
        sizes = [format_capacity(before), format_capacity(now)]
        if sizes[0] == sizes[1]:
            sizes = [f"{before} bytes", f"{now} bytes"]
        yield f"it has {how} from {sizes[0]} to {sizes[1]}"
    for key in (*_OWN, "logical_block_bytes"):
        if recorded.get(key) is not None and recorded[key] != facts.get(key):
            yield f"{_WORDS.get(key, key)} {facts.get(key) or 'not known'}, not {recorded[key]}"
    behind = recorded.get("loop_backing")
    known = behind is not None and behind == identity.loop_backing
    if identity.kind is TargetKind.FILE:
        yield from _other_file(recorded, identity)
    elif not known and not any(recorded.get(key) for key in ("serial", "wwn")):
        # Only its place distinguishes it from another of its kind.
        for key in ("path", "backing"):
            if recorded.get(key) != facts.get(key):
                yield f"{key} {facts.get(key)}, not {recorded.get(key)}"
    # Path and size of a loop device may now belong to another image.
    if behind is not None and not known:
        yield f"behind it is {identity.loop_backing or 'nothing known'}, not {behind}"


def _other_file(recorded: Mapping[str, object], identity: DeviceIdentity) -> Iterator[str]:
    """Yield the difference between two files by inode only: a boot may renumber the file system."""
    before = recorded.get("inode")
    now = identity.inode
    if isinstance(before, list | tuple) and now is not None and before[-1] != now[-1]:
        yield f"it is another file (inode {now[-1]}, not {before[-1]})"
