"""Purge methods for ATA drives: Sanitize Device and Security Erase Unit with hdparm (ACS-3, sections 4.17 and 4.18).

Security Erase requires a user password, and an interrupted erase leaves the drive locked with this password. tkperf
therefore always uses the same password. tkperf records the password before it sets the password, and clears the
password even after an error. The user can also clear the password later with ``tkperf doctor --unlock``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from tkperf.device.hold import Handle, Hold
from tkperf.device.identity import DeviceIdentity
from tkperf.device.inspection import AtaSecurity, read_security
from tkperf.device.permit import ErasePermit
from tkperf.device.purge.base import (
    SANITIZE_LIMIT_S,
    Offer,
    PurgeMethod,
    PurgeRefusal,
    PurgeWatch,
    run_tool,
    wait_for_end,
)
from tkperf.model.choices import ATA_PURGES
from tkperf.model.errors import DeviceError, EngineError
from tkperf.system.process import RunTool, run_command

# The password is not secret. It is set only for minutes, and the user needs it if the drive remains locked.
PASSWORD = "tkperf"  # noqa: S105
HDPARM_LIMIT_S = 60.0
# The drive's estimate for an erase is only a rough value. Many drives need only seconds, but report 2 min.
LEAST_ERASE_LIMIT_S = 1800.0
# The time limit of an erase is this multiple of the drive's estimate, because a reported time of 508 minutes means
# "more than 508".
ERASE_LIMIT_FACTOR = 4
# In the ATA command, a count of 0 means 16 passes. hdparm 9.63 is the first version with an option for the count.
PASSES_OF_OLD_HDPARM, FIRST_WITH_PASSES = 16, (9, 63)
CONSENT = "--yes-i-know-what-i-am-doing"
ATA_SANITIZES = {
    "ata-sanitize-block": ("BLOCK_ERASE_EXT", "--sanitize-block-erase", "block erase"),
    "ata-sanitize-crypto": ("CRYPTO_SCRAMBLE_EXT", "--sanitize-crypto-scramble", "crypto scramble"),
    "ata-sanitize-overwrite": ("OVERWRITE_EXT", "--sanitize-overwrite", "overwrite"),
}


def _can_overwrite_once() -> bool:
    """Return whether hdparm has an option for the number of passes.

    If hdparm does not have this option, a drive makes 16 passes.
    """
    try:
        printed = run_command(["hdparm", "-V"], timeout_s=HDPARM_LIMIT_S).stdout
    except EngineError:
        return False
    version = re.search(r"v(\d+)\.(\d+)", printed)
    return version is not None and (int(version[1]), int(version[2])) >= FIRST_WITH_PASSES


class SanitizeState(StrEnum):
    """The states of ATA's sanitize state machine, as ``hdparm --sanitize-status`` prints them.

    hdparm prints SD0 also for the state SD4 (succeeded). A drive in state SD3 aborts the status command, and hdparm
    exits with an error.
    """

    IDLE = "SD0"
    FROZEN = "SD1"
    IN_PROCESS = "SD2"
    FAILED = "SD3"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtaSanitize:
    """The sanitize status that a drive reports. ``succeeded`` is true if the last sanitize completed without an
    error.
    """

    state: SanitizeState
    share: float | None = None
    succeeded: bool = False


def read_sanitize(path: str, *, run: RunTool = run_command) -> AtaSanitize:
    """Return the sanitize status of a drive.

    Raises:
        EngineError: hdparm is missing or does not end, or the drive or the adapter does not report the state.
    """
    done = run(["hdparm", "--sanitize-status", path], timeout_s=HDPARM_LIMIT_S)
    if "SD3 Sanitize Operation Failed" in done.stderr:
        return AtaSanitize(state=SanitizeState.FAILED)
    state = re.search(r"^\s*State:\s+(SD[012]) ", done.stdout, re.MULTILINE)
    # Without the drive's registers, hdparm prints only a warning, uses zeros as the state, and exits with 0.
    if done.exit_status != 0 or state is None or "sense data" in done.stderr:
        raise EngineError(
            f"'hdparm --sanitize-status {path}' reports no sanitize state (exit status {done.exit_status}): "
            f"{done.words[:200]}"
        )
    share = re.search(r"Progress:\s+0x[0-9a-f]+ \((\d+)%\)", done.stdout)
    return AtaSanitize(
        state=SanitizeState(state[1]),
        share=int(share[1]) / 100 if share else None,
        succeeded="Last Sanitize Operation Completed Without Error" in done.stdout,
    )


def offer_ata(identity: DeviceIdentity) -> tuple[Offer, ...]:
    """Return the methods that the drive supports according to its identify data, in order of preference."""
    try:
        security = read_security(identity.path)
    except EngineError as error:
        return tuple(PurgeRefusal(name=name, because=str(error)) for name in ATA_PURGES)
    obstacle = _find_sanitize_obstacle(identity.path) if security.sanitize else None
    block, crypto, overwrite = (_offer_sanitize(name, security, obstacle=obstacle) for name in ATA_SANITIZES)
    return (
        block,
        _offer_security_erase(security, enhanced=True),
        _offer_security_erase(security, enhanced=False),
        crypto,
        overwrite,
    )


def _find_sanitize_obstacle(path: str) -> str | None:
    """Return why tkperf cannot start a sanitize or cannot detect the end of a sanitize. None means that there is no
    obstacle.
    """
    try:
        state = read_sanitize(path).state
    except EngineError as error:
        return f"tkperf could not see when a sanitize has ended: {error}"
    if state is SanitizeState.FROZEN:
        return "the sanitize commands of the drive are frozen until its power is switched off and on"
    return None


def in_order(own: Sequence[Offer], generic: Sequence[Offer], disk: Path) -> tuple[Offer, ...]:
    """Return all methods in order of preference. Methods that use the drive's own commands precede the generic methods.
    If the drive is behind an adapter for another bus, discard is first.

    SAS and RAID adapters translate ATA commands, and may abort commands that need a long time.
    """
    direct = any(re.fullmatch(r"ata\d+", component) for component in disk.resolve().parts)
    return (*own, *generic) if direct else (*generic, *own)


def _offer_sanitize(name: str, security: AtaSecurity, *, obstacle: str | None) -> Offer:
    claimed, option, kind = ATA_SANITIZES[name]
    if claimed not in security.sanitize:
        return PurgeRefusal(name=name, because=f"the drive claims no sanitize by {kind}")
    if obstacle is not None:
        return PurgeRefusal(name=name, because=obstacle)

    words = [option]
    if name == "ata-sanitize-overwrite":
        once = _can_overwrite_once()
        words = [*(["--sanitize-overwrite-passes", "1"] if once else []), option, "hex:00000000"]
        kind += ", 1 pass" if once else f", {PASSES_OF_OLD_HDPARM} passes"

    def act(permit: ErasePermit, watch: PurgeWatch) -> None:
        device = permit.handle
        run_tool(device, ["hdparm", CONSENT, *words, device.path], limit_s=HDPARM_LIMIT_S)
        _wait_for_sanitize(device, watch)

    return PurgeMethod(
        name=name, title=f"ATA Sanitize, {kind}", reads_zero=False, automatic=name != "ata-sanitize-overwrite", act=act
    )


def find_ata_sanitize(device: str) -> float | None:
    """Return the progress of a running sanitize as a share (0..1). None means that no sanitize runs, or that the drive
    reports no progress.

    Raises:
        DeviceError: the last sanitize failed.
        EngineError: the drive does not report its state.
    """
    sanitize = read_sanitize(device)
    if sanitize.state is SanitizeState.FAILED:
        raise DeviceError(_describe_failure(device))
    return (sanitize.share or 0.0) if sanitize.state is SanitizeState.IN_PROCESS else None


def _describe_failure(device: str) -> str:
    return (
        f"the last sanitize of {device} failed (state SD3); the drive accepts no reads or writes until a sanitize "
        f"succeeds, for example: hdparm {CONSENT} --sanitize-block-erase {device}"
    )


def _wait_for_sanitize(device: Handle, watch: PurgeWatch) -> None:
    """Wait until the drive reports the end of a sanitize."""

    def is_done() -> bool:
        sanitize = read_sanitize(device.path)
        if sanitize.state is SanitizeState.IN_PROCESS:
            watch.progress(sanitize.share)
            return False
        if sanitize.state is SanitizeState.FAILED:
            raise DeviceError(_describe_failure(device.name))
        if not sanitize.succeeded:
            raise DeviceError(
                f"{device.name} ended its sanitize without reporting success (state {sanitize.state}). Choose another "
                "method with --purge"
            )
        return True

    wait_for_end(device, "the sanitize of", is_done, limit_s=SANITIZE_LIMIT_S)


def _offer_security_erase(security: AtaSecurity, *, enhanced: bool) -> Offer:
    name = "ata-security-erase-enhanced" if enhanced else "ata-security-erase"
    because = _why_not(security, enhanced=enhanced)
    if because:
        return PurgeRefusal(name=name, because=because)
    minutes = security.enhanced_erase_minutes if enhanced else security.erase_minutes
    limit_s = max(LEAST_ERASE_LIMIT_S, 60.0 * ERASE_LIMIT_FACTOR * (minutes or 0))

    kind = "Security Erase Unit, enhanced" if enhanced else "Security Erase Unit"
    return PurgeMethod(
        name=name,
        title=f"ATA {kind} (drive's estimate: {minutes or 'no'} min)",
        reads_zero=not enhanced,
        act=lambda permit, watch: _security_erase(permit.handle, watch, enhanced=enhanced, limit_s=limit_s),
    )


def _why_not(security: AtaSecurity, *, enhanced: bool) -> str | None:
    if not security.supported:
        return "the drive claims no security feature set"
    if enhanced and not security.enhanced_erase:
        return "the drive claims no enhanced erase"
    if security.locked or security.enabled:
        state = "locked by a password" if security.locked else "protected by a password"
        return f"the drive is {state}; if a run of tkperf was interrupted, 'tkperf doctor --unlock' clears it"
    if security.frozen:
        return (
            "the firmware of this machine froze its security state; suspending and waking the "
            "machine, or plugging the drive in again, thaws it"
        )
    return None


def _security_erase(device: Handle, watch: PurgeWatch, *, enhanced: bool, limit_s: float) -> None:
    """Set the password, erase the drive, and make sure that no password remains."""
    watch.note(
        "ata-password-set",
        f"ATA user password '{PASSWORD}' is being set on {device.name} for Security Erase; "
        f"should the drive stay locked: tkperf doctor --unlock {device.name}",
    )
    try:
        _command(device, "--security-set-pass")
        if not _read(device).enabled:
            raise DeviceError(
                f"purging {device.name} failed: the drive accepted the security password but did not set it. "
                "Choose another method with --purge"
            )
        erase = "--security-erase-enhanced" if enhanced else "--security-erase"
        _command(device, erase, limit_s=limit_s, on_tick=lambda: watch.progress(None))
    finally:
        clear_password(device)
        watch.note("ata-password-cleared", f"no ATA password is set on {device.name}")


def clear_password(device: Handle) -> bool:
    """Unlock a drive and clear tkperf's password. Return False if no password is set.

    Raises:
        DeviceError: the drive is locked with another password, or its security state is frozen.
    """
    security = _read(device)
    if not security.enabled:
        return False
    refused = ""
    try:
        if security.locked:
            _command(device, "--security-unlock")
        _command(device, "--security-disable")
    except DeviceError as error:  # the state that the drive reports afterwards shows whether the password remains
        refused = f" ({error})"
    after = _read(device)
    if after.enabled or after.locked:
        raise DeviceError(
            f"{device.name} still has an ATA password ({after.describe()}). Either the password is "
            f"not the password of tkperf ('{PASSWORD}'), or the security state is frozen{refused}. If "
            "you know the password, run: hdparm --user-master u --security-disable PASSWORD "
            f"{device.name}"
        )
    return True


def clear_left_password(identity: DeviceIdentity) -> bool:
    """Clear tkperf's password from a SATA drive if an interrupted purge left the password set. Return whether a
    password was set.

    Raises:
        DeviceError: the drive is locked with another password.
        RefusedError: other programs use the drive.
    """
    if identity.interface != "SATA" or identity.partition is not None:
        return False
    try:
        enabled = read_security(identity.path).enabled
    except EngineError:
        return False  # the state is not known, but a locked drive refuses the following commands anyway
    if not enabled:
        return False
    # The user confirmed this drive when tkperf set the password. tkperf sends these commands to no other drive.
    held = Hold(identity)
    try:
        return clear_password(held.handle)
    finally:
        held.release()


def _command(
    device: Handle, option: str, *, limit_s: float = HDPARM_LIMIT_S, on_tick: Callable[[], None] = lambda: None
) -> None:
    """Execute a command of the security feature set with the password. If the user interrupts tkperf, the interruption
    takes effect after the command has ended.
    """
    argv = ["hdparm", "--user-master", "u", option, PASSWORD, device.path]
    run_tool(device, argv, limit_s=limit_s, on_tick=on_tick, must_finish=True)


def _read(device: Handle) -> AtaSecurity:
    try:
        return read_security(device.path, run=partial(run_command, must_finish=True))
    except EngineError as error:
        raise DeviceError(f"{device.name}: {error}") from error
