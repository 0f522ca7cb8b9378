"""Purge methods for SCSI devices: Sanitize and Format Unit with sg3-utils (SBC-4)."""

from __future__ import annotations

from pathlib import Path

from tkperf.device.hold import Handle
from tkperf.device.identity import DeviceIdentity
from tkperf.device.permit import ErasePermit
from tkperf.device.purge.base import QUERY_LIMIT_S, Offer, PurgeMethod, PurgeRefusal, PurgeWatch, run_tool, wait_for_end
from tkperf.device.purge.sense import Sense, read_sense
from tkperf.device.sysfs import find_disk, find_node, number
from tkperf.model.choices import SCSI_PURGES
from tkperf.model.errors import DeviceError, EngineError
from tkperf.system.process import run_command

START_LIMIT_S = 120.0
# A large hard disk needs a day or more for a format.
SCSI_ERASE_LIMIT_S = 48 * 3600.0
# Service actions of Sanitize (operation code 48h): 1 is overwrite, 2 block erase, 3 crypto erase.
SCSI_SANITIZES = {
    "scsi-sanitize-block": (2, "--block", "block erase"),
    "scsi-sanitize-crypto": (3, "--crypto", "cryptographic erase"),
    "scsi-sanitize-overwrite": (1, "--overwrite", "overwrite"),
}
# sg_opcodes prints these words if the device supports a command as the standard defines it. The words "supported [in a
# vendor specific manner]" mean that the command is different.
SUPPORTED = "Command is supported [conforming to SCSI standard]"
# Options with which sg_format keeps the protection information of a device. They set the fields FMTPINFO and PROTECTION
# FIELD USAGE (manual of sg_format 1.49).
PROTECTION_OPTIONS = {1: ("--fmtpinfo=2", "--pfu=0"), 2: ("--fmtpinfo=3", "--pfu=0"), 3: ("--fmtpinfo=3", "--pfu=1")}


def offer_scsi(identity: DeviceIdentity) -> tuple[Offer, ...]:
    """Return the purge methods in order of preference, according to the operation codes that the device reports."""
    if identity.interface == "USB":
        because = "bridges of USB drives do not pass it on reliably"
        return tuple(PurgeRefusal(name=name, because=because) for name in SCSI_PURGES)
    try:
        read_sense(identity.path)
    except EngineError as error:
        because = f"tkperf could not see when an erase has ended: {error}"
        return tuple(PurgeRefusal(name=name, because=because) for name in SCSI_PURGES)
    block, crypto, overwrite = (_offer_sanitize(name, identity.path) for name in SCSI_SANITIZES)
    return (block, _offer_format(identity), crypto, overwrite)


def _offer_sanitize(name: str, device: str) -> Offer:
    action, option, kind = SCSI_SANITIZES[name]
    try:
        done = run_command(["sg_opcodes", "--opcode", f"0x48,0x{action:x}", device], timeout_s=QUERY_LIMIT_S)
    except EngineError as error:
        return PurgeRefusal(name=name, because=str(error))
    if done.exit_status != 0 or SUPPORTED not in done.stdout:
        return PurgeRefusal(name=name, because=f"the device reports no sanitize by {kind}")

    def act(permit: ErasePermit, watch: PurgeWatch) -> None:
        device = permit.handle
        argv = ["sg_sanitize", option, "--quick", "--early", device.path]
        if name == "scsi-sanitize-overwrite":
            argv[2:2] = ["--zero"]
        run_tool(device, argv, limit_s=START_LIMIT_S, must_finish=True)
        _wait_until_ready(device, watch)

    return PurgeMethod(
        name=name,
        title=f"SCSI Sanitize, {kind}",
        reads_zero=False,
        automatic=name != "scsi-sanitize-overwrite",
        act=act,
    )


def _offer_format(identity: DeviceIdentity) -> Offer:
    """Return the method Format Unit, which every SCSI disk must support.

    The verification shows whether the format erased the data. sg_format does not change the block size. Without an
    option, sg_format would remove the protection information of a device.
    """
    keeping = PROTECTION_OPTIONS.get(_read_protection_type(identity), ())

    def act(permit: ErasePermit, watch: PurgeWatch) -> None:
        device = permit.handle
        argv = ["sg_format", "--format", "--quick", "--early", *keeping, device.path]
        run_tool(device, argv, limit_s=START_LIMIT_S, must_finish=True)
        _wait_until_ready(device, watch)

    return PurgeMethod(
        name="scsi-format",
        title="SCSI Format Unit",
        reads_zero=False,
        # A hard disk needs hours for a format. A virtual disk may ignore the command.
        automatic=identity.rotational is False and identity.interface == "SAS",
        act=act,
    )


def _read_protection_type(identity: DeviceIdentity) -> int:
    """Return the protection type with which a disk is formatted. 0 means that the disk has no protection
    information.
    """
    if identity.major_minor is None:
        return 0
    disk = find_disk(find_node(identity.major_minor))
    types = [number(each) for each in Path(disk).glob("device/scsi_disk/*/protection_type")]
    return next((each for each in types if each is not None), 0)


def find_scsi_erase(path: str) -> float | None:
    """Return the progress of a running format or sanitize as a share (0..1). None means that neither operation is
    running.

    Raises:
        DeviceError: the last format or sanitize failed.
        EngineError: the device does not report its state.
    """
    sense = read_sense(path)
    if sense.erase_failed:
        raise DeviceError(_describe_failure(path, sense))
    return None if sense.erase_under_way is None else sense.progress or 0.0


def _describe_failure(device: str, sense: Sense) -> str:
    return (
        f"the last format or sanitize of {device} failed ({sense}); the device accepts no reads or writes until one "
        f"succeeds, for example: sg_format --format {device}"
    )


def _wait_until_ready(device: Handle, watch: PurgeWatch) -> None:
    """Wait until the device reports that it is ready.

    A failed erase or any other error ends the wait.
    """

    def is_done() -> bool:
        sense = read_sense(device.path)
        if sense.erase_failed:
            raise DeviceError(_describe_failure(device.name, sense))
        if sense.erase_under_way or sense.is_passing:
            watch.progress(sense.progress)
            return False
        if not sense.is_ready:
            raise DeviceError(f"purging {device.name}: the device reports {sense}")
        return True

    wait_for_end(device, "purging", is_done, limit_s=SCSI_ERASE_LIMIT_S)
