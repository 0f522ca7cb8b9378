"""SCSI: Sanitize and Format Unit by sg3-utils (SBC-4)."""

from __future__ import annotations

import re

from tkperf.device.hold import Handle
from tkperf.device.identity import DeviceIdentity
from tkperf.device.permit import ErasePermit
from tkperf.device.purge.method import (
    QUERY_LIMIT_S,
    Offer,
    PurgeMethod,
    PurgeRefusal,
    PurgeWatch,
    run_tool,
    wait_for_end,
)
from tkperf.model.choices import SCSI_PURGES
from tkperf.model.errors import EngineError
from tkperf.system.process import run_command

START_LIMIT_S = 120.0
# Formatting a large hard disk takes a day or more.
SCSI_ERASE_LIMIT_S = 48 * 3600.0
# Sanitize (operation code 48h): service actions 1 overwrite, 2 block erase, 3 crypto erase.
SCSI_SANITIZES = {
    "scsi-sanitize-block": (2, "--block", "block erase"),
    "scsi-sanitize-crypto": (3, "--crypto", "cryptographic erase"),
    "scsi-sanitize-overwrite": (1, "--overwrite", "overwrite"),
}


def offer_scsi(identity: DeviceIdentity) -> tuple[Offer, ...]:
    """Return the methods in the order of preference, by the operation codes that the device reports."""
    if identity.interface == "USB":
        because = "bridges of USB drives do not pass it on reliably"
        return tuple(PurgeRefusal(name=name, because=because) for name in SCSI_PURGES)
    block, crypto, overwrite = (_offer_sanitize(name, identity.path) for name in SCSI_SANITIZES)
    return (block, _offer_format(identity), crypto, overwrite)


def _offer_sanitize(name: str, device: str) -> Offer:
    action, option, kind = SCSI_SANITIZES[name]
    try:
        done = run_command(
            ["sg_opcodes", "--opcode", f"0x48,0x{action:x}", device], timeout_s=QUERY_LIMIT_S
        )
    except EngineError as error:
        return PurgeRefusal(name=name, because=str(error))
    if done.exit_status != 0 or not re.search(r"supported\s*\[?conforming|conforming", done.stdout):
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
    """Return Format Unit, which is mandatory for SCSI disks; the verification shows if it erased.

    sg_format keeps block size and protection without options for them.
    """

    def act(permit: ErasePermit, watch: PurgeWatch) -> None:
        device = permit.handle
        argv = ["sg_format", "--format", "--quick", "--early", device.path]
        run_tool(device, argv, limit_s=START_LIMIT_S, must_finish=True)
        _wait_until_ready(device, watch)

    return PurgeMethod(
        name="scsi-format",
        title="SCSI Format Unit",
        reads_zero=False,
        # A hard disk takes hours for it, and a virtual one may do nothing at all.
        automatic=identity.rotational is False and identity.interface == "SAS",
        act=act,
    )


def find_scsi_erase(path: str) -> float | None:
    """Return the share done of a format or sanitize under way; None if the drive reports none."""
    done = run_command(["sg_requests", "--progress", path], timeout_s=QUERY_LIMIT_S)
    progress = re.search(r"Progress indication:\s*([\d.]+)%", done.stdout)
    return None if progress is None else float(progress[1]) / 100


def _wait_until_ready(device: Handle, watch: PurgeWatch) -> None:
    """Poll the progress indication until the device reports none."""

    def is_done() -> bool:
        share = find_scsi_erase(device.path)
        if share is not None:
            watch.progress(share)
        return share is None

    wait_for_end(device, "purging", is_done, limit_s=SCSI_ERASE_LIMIT_S)
