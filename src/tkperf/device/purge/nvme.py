"""Purge methods for NVMe drives: Format NVM and Sanitize, if the controller supports them (NVM Express 1.4 and 2.0).

The sanitize log is read as JSON. All versions of nvme-cli from 1.8 to 3.0-rc1 print the status as a text. This text
begins with the number, in brackets, that the specification assigns to the status. The option ``-o binary`` would return
the log page itself, but nvme-cli 2.3 of Debian 12 prints other text after the page. nvme-cli 3.0-rc1 opens a device
only by a name in /dev, such as nvme0n1, and not by a descriptor (libnvme, lib-linux.c). docs/explanation/devices.md
lists the checked versions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tkperf.device.content import SAMPLE_BYTES, read_samples
from tkperf.device.hold import Handle
from tkperf.device.identity import DeviceIdentity
from tkperf.device.permit import ErasePermit
from tkperf.device.purge.base import (
    QUERY_LIMIT_S,
    SANITIZE_LIMIT_S,
    Offer,
    PurgeMethod,
    PurgeRefusal,
    PurgeWatch,
    run_tool,
    wait_for_end,
)
from tkperf.device.sysfs import find_nvme_controller
from tkperf.model.choices import NVME_PURGES
from tkperf.model.errors import DeviceError, EngineError
from tkperf.model.input_files import is_there
from tkperf.system.process import read_json_object

# The specifications of drives state that a format ends within minutes. Drives that overwrite their data need hours.
FORMAT_LIMIT_S = 6 * 3600.0

OACS_FORMAT = 1 << 1
FNA_FORMAT_ALL, FNA_ERASE_ALL, FNA_CRYPTO = 1 << 0, 1 << 1, 1 << 2
SANICAP_CRYPTO, SANICAP_BLOCK, SANICAP_OVERWRITE = 1 << 0, 1 << 1, 1 << 2
# If bits 2:0 of DLFEAT are 001, deallocated blocks read as zeros.
DLFEAT_MASK, DLFEAT_ZEROS = 0b111, 0b001
SES_USER_DATA, SES_CRYPTO = 1, 2
# Sanitize actions (SANACT) by method. The values are numbers, because nvme-cli 1.16 does not accept names.
EXIT_FAILURE, BLOCK_ERASE, OVERWRITE, CRYPTO_ERASE = 1, 2, 3, 4
SANITIZE_ACTIONS = {
    "nvme-sanitize-block": (SANICAP_BLOCK, BLOCK_ERASE, "block erase"),
    "nvme-sanitize-crypto": (SANICAP_CRYPTO, CRYPTO_ERASE, "crypto erase"),
    "nvme-sanitize-overwrite": (SANICAP_OVERWRITE, OVERWRITE, "overwrite"),
}
# Values of bits 2:0 of SSTAT in the sanitize log (LID 81h). The specification reserves the values 5 to 7.
NEVER_SANITIZED, SANITIZED, IN_PROGRESS, FAILED, SANITIZED_DEALLOCATED = range(5)
# The pattern for the status as nvme-cli prints it, such as "(2) Sanitize in Progress."
_STATUS = re.compile(r"\((\d+)\) ")
# The sanitize state that an idle drive reports. A drive in this state has left the failure state of its last sanitize.
IDLE_STATE = "(0) "
# These words occur in the message of every nvme-cli version for the NVMe status "Sanitize In Progress" (1Dh).
_ALL_VERSIONS_SAY = "a sanitize operation is in progress"


def offer_nvme(identity: DeviceIdentity, disk: Path) -> tuple[Offer, ...]:
    """Return the purge methods in order of preference.

    The order is: format with user data erase, sanitize with block erase, sanitize with crypto erase, format with crypto
    erase, sanitize with overwrite.
    """
    try:
        controller = _query("id-ctrl", "-o", "json", identity.path)
        namespace = _query("id-ns", "-o", "json", identity.path)
    except EngineError as error:
        return tuple(PurgeRefusal(name=name, because=str(error)) for name in NVME_PURGES)
    drive = (controller, namespace, _other_namespaces(disk))
    block, crypto, overwrite = (_offer_sanitize(name, *drive) for name in SANITIZE_ACTIONS)
    return (
        _offer_format("nvme-format", SES_USER_DATA, *drive),
        block,
        crypto,
        _offer_format("nvme-format-crypto", SES_CRYPTO, *drive),
        overwrite,
    )


def _offer_format(
    name: str,
    erase_setting: int,
    controller: dict[str, object],
    namespace: dict[str, object],
    siblings: tuple[str, ...],
) -> Offer:
    if not _int(controller, "oacs") & OACS_FORMAT:
        return PurgeRefusal(name=name, because="the controller has no Format NVM command")
    attributes = _int(controller, "fna")
    if erase_setting == SES_CRYPTO and not attributes & FNA_CRYPTO:
        return PurgeRefusal(name=name, because="no cryptographic erase (FNA bit 2)")
    if attributes & (FNA_FORMAT_ALL | FNA_ERASE_ALL) and siblings:
        because = f"formatting would erase the other namespaces too: {', '.join(siblings)}"
        return PurgeRefusal(name=name, because=because)
    kind = "cryptographic erase" if erase_setting == SES_CRYPTO else "user data erase"
    size, protection = _int(namespace, "flbas"), _int(namespace, "dps")
    lba_format, extended = size & 0xF | (size & 0x60) >> 1, size >> 4 & 1

    def act(permit: ErasePermit, watch: PurgeWatch) -> None:
        device = permit.named_handle()
        run_tool(
            device,
            [
                "nvme",
                "format",
                device.path,
                f"--lbaf={lba_format}",
                f"--ses={erase_setting}",
                f"--ms={extended}",
                f"--pi={protection & 0b111}",
                f"--pil={protection >> 3 & 1}",
                f"--timeout={int(FORMAT_LIMIT_S * 1000)}",
                "--force",
            ],
            limit_s=FORMAT_LIMIT_S,
            on_tick=lambda: watch.progress(None),
            must_finish=True,
        )

    return PurgeMethod(
        name=name,
        title=f"NVMe Format NVM, {kind} (SES {erase_setting}), LBA format {lba_format} kept",
        reads_zero=erase_setting == SES_USER_DATA and _deallocated_reads_zero(namespace),
        act=act,
    )


def _offer_sanitize(
    name: str, controller: dict[str, object], namespace: dict[str, object], siblings: tuple[str, ...]
) -> Offer:
    bit, action, kind = SANITIZE_ACTIONS[name]
    if not _int(controller, "sanicap") & bit:
        return PurgeRefusal(name=name, because=f"no sanitize by {kind} (SANICAP)")
    if siblings:
        because = f"sanitize would erase other namespaces too: {', '.join(siblings)}"
        return PurgeRefusal(name=name, because=because)

    def act(permit: ErasePermit, watch: PurgeWatch) -> None:
        device = permit.named_handle()
        argv = ["nvme", "sanitize", device.path, f"--sanact={action}"]
        if action == OVERWRITE:
            argv += ["--owpass=1", "--ovrpat=0"]
        run_tool(device, argv, limit_s=QUERY_LIMIT_S)
        _wait_for_sanitize(device, watch)

    return PurgeMethod(
        name=name,
        title=f"NVMe Sanitize, {kind}",
        reads_zero=bit != SANICAP_CRYPTO and _deallocated_reads_zero(namespace),
        # Overwriting wears the flash and does not return it to the state of new flash.
        automatic=bit != SANICAP_OVERWRITE,
        act=act,
    )


def find_nvme_sanitize(device: str) -> float | None:
    """Return the progress of a running sanitize as a share (0..1). None means that no sanitize runs.

    Raises:
        EngineError: the drive has no sanitize log, or the log cannot be read.
        DeviceError: the log contains no known status, or the last sanitize failed and the drive may still be in a
            failure state.
    """
    log = _read_sanitize_log(device)
    if log is None:
        return 0.0
    status = _parse_status(log, device)
    if status == FAILED and not _has_left_failure(log, device):
        raise _failed(device)
    return _share(log) if status == IN_PROGRESS else None


def _read_sanitize_log(path: str) -> Mapping[str, object] | None:
    """Return the sanitize log, which nvme-cli prints under the name of the device. None means that the drive does not
    return the log because a sanitize is in progress.
    """
    try:
        log = _query("sanitize-log", "-o", "json", path)
    except EngineError as error:
        if _ALL_VERSIONS_SAY in str(error):
            return None
        raise
    nested = [value for value in log.values() if isinstance(value, dict) and "sstat" in value]
    return nested[0] if len(nested) == 1 else log


def _parse_status(log: Mapping[str, object], device: str) -> int:
    """Return bits 2:0 of the field SSTAT in the sanitize log.

    In nvme-cli 2.7 and 2.8, the text of the status is the key. In all other versions, the key is ``status``.

    Raises:
        DeviceError: the log contains no status text, or contains a number that the specification reserves. In this
            case, a sanitize may be running or may have failed.
    """
    fields = log.get("sstat")
    texts = []
    if isinstance(fields, dict):
        named = fields.get("status")
        texts = [named] if named is not None else list(fields.values())
    found = [match for text in texts if isinstance(text, str) and (match := _STATUS.match(text))]
    status = int(found[0][1]) if len(found) == 1 else None
    if status is None or not NEVER_SANITIZED <= status <= SANITIZED_DEALLOCATED:
        raise DeviceError(
            f"{device}: tkperf does not know the status in its sanitize log (sstat: {fields!s:.200}), "
            "so a sanitize may be running or may have failed. Show the log with: "
            f"nvme sanitize-log {device}"
        )
    return status


def _has_left_failure(log: Mapping[str, object], device: str) -> bool:
    """Return whether a drive has left the failure state of its last sanitize.

    nvme-cli prints the sanitize state since version 2.12. With older versions, the function reads from the
    drive instead. In a failure state, the controller aborts every read with the status "Sanitize Failed"
    (1Ch). This status means that the sanitize failed, and that no recovery action has succeeded (NVM
    Express 1.4, section 8.15; 2.0, section 8.21).
    """
    state = log.get("sanitize_state_information")
    if state is None:
        return _is_readable(device)
    text = state.get("sanitize_state") if isinstance(state, dict) else None
    return isinstance(text, str) and text.startswith(IDLE_STATE)


def _is_readable(device: str) -> bool:
    """Return whether the first bytes of the drive can be read. The read bypasses the page cache."""
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return all(
            isinstance(data, bytes) and len(data) == SAMPLE_BYTES
            for _, data in read_samples(descriptor, [(0, SAMPLE_BYTES)])
        )
    finally:
        os.close(descriptor)


def _failed(device: str) -> DeviceError:
    return DeviceError(
        f"the last sanitize of {device} failed, so the drive refuses reads and writes until it "
        "has recovered. Repeat the sanitize, for example by block erase: nvme sanitize "
        f"--sanact={BLOCK_ERASE} {device}. If the failed sanitize was started with --ause, you "
        f"can use this command instead: nvme sanitize --sanact={EXIT_FAILURE} {device}"
    )


def _share(log: Mapping[str, object]) -> float:
    return _int(log, "sprog") / 65536


def _wait_for_sanitize(device: Handle, watch: PurgeWatch) -> None:
    """Wait until a sanitize ends. The drive continues the sanitize even if tkperf ends."""

    def is_done() -> bool:
        log = _read_sanitize_log(device.path)
        if log is None:
            watch.progress(None)
            return False
        status = _parse_status(log, device.name)
        if status in (SANITIZED, SANITIZED_DEALLOCATED):
            return True
        if status == FAILED:
            raise _failed(device.name)
        if status == NEVER_SANITIZED:
            raise DeviceError(
                f"{device.name} accepted a sanitize command, but its sanitize log reports that the drive was never "
                "sanitized. Choose another method with --purge"
            )
        watch.progress(_share(log))
        return False

    wait_for_end(device, "the sanitize of", is_done, limit_s=SANITIZE_LIMIT_S)


def _other_namespaces(disk: Path) -> tuple[str, ...]:
    controller = find_nvme_controller(disk)
    if controller is None:
        return ()
    names = {
        entry.name
        for folder in {controller, disk.parent}
        for entry in folder.glob("nvme*n*")
        if is_there(entry / "dev") and is_there(entry / "queue")
    }
    return tuple(sorted(names - {disk.name}))


def _deallocated_reads_zero(namespace: dict[str, object]) -> bool:
    return _int(namespace, "dlfeat") & DLFEAT_MASK == DLFEAT_ZEROS


def _query(*words: str) -> dict[str, object]:
    return read_json_object(["nvme", *words], timeout_s=QUERY_LIMIT_S, must_succeed=True)


def _int(values: Mapping[str, object], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0
