"""NVMe: Format NVM and Sanitize, if the controller claims them (NVM Express 1.4 and 2.0)."""

from __future__ import annotations

from pathlib import Path

from tkperf.device.hold import Handle
from tkperf.device.identity import DeviceIdentity
from tkperf.device.permit import ErasePermit
from tkperf.device.purge.method import (
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
from tkperf.system.process import read_json_object

# By their specification drives format within minutes; drives that overwrite take hours.
FORMAT_LIMIT_S = 6 * 3600.0

OACS_FORMAT = 1 << 1
FNA_FORMAT_ALL, FNA_ERASE_ALL, FNA_CRYPTO = 1 << 0, 1 << 1, 1 << 2
SANICAP_CRYPTO, SANICAP_BLOCK, SANICAP_OVERWRITE = 1 << 0, 1 << 1, 1 << 2
# Deallocated blocks read as zeros: bits 2:0 of DLFEAT are 001.
DLFEAT_MASK, DLFEAT_ZEROS = 0b111, 0b001
SES_USER_DATA, SES_CRYPTO = 1, 2
# Sanitize actions by method (SANACT).
SANITIZE_ACTIONS = {
    "nvme-sanitize-block": (SANICAP_BLOCK, "start-block-erase", "block erase"),
    "nvme-sanitize-crypto": (SANICAP_CRYPTO, "start-crypto-erase", "crypto erase"),
    "nvme-sanitize-overwrite": (SANICAP_OVERWRITE, "start-overwrite", "overwrite"),
}
# Sanitize log (LID 81h), SSTAT bits 2:0.
SANITIZED, IN_PROGRESS, FAILED, SANITIZED_DEALLOCATED = 1, 2, 3, 4


def offer_nvme(identity: DeviceIdentity, disk: Path) -> tuple[Offer, ...]:
    """Return the methods in the order of preference.

    User data erase, sanitize by block erase and crypto erase, format by crypto erase, sanitize by overwrite.
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
        device = permit.handle
        run_tool(
            device,
            [
                "nvme", "format", device.path, f"--lbaf={lba_format}", f"--ses={erase_setting}",
                f"--ms={extended}", f"--pi={protection & 0b111}", f"--pil={protection >> 3 & 1}",
                f"--timeout={int(FORMAT_LIMIT_S * 1000)}", "--force",
            ],
            limit_s=FORMAT_LIMIT_S,
            on_tick=lambda: watch.progress(None),
            must_finish=True,
        )  # fmt: skip

    return PurgeMethod(
        name=name,
        title=f"NVMe Format NVM, {kind} (SES {erase_setting}), LBA format {lba_format} kept",
        reads_zero=erase_setting == SES_USER_DATA and _deallocated_reads_zero(namespace),
        act=act,
    )


def _offer_sanitize(
    name: str,
    controller: dict[str, object],
    namespace: dict[str, object],
    siblings: tuple[str, ...],
) -> Offer:
    bit, action, kind = SANITIZE_ACTIONS[name]
    if not _int(controller, "sanicap") & bit:
        return PurgeRefusal(name=name, because=f"no sanitize by {kind} (SANICAP)")
    if siblings:
        because = f"sanitize would erase other namespaces too: {', '.join(siblings)}"
        return PurgeRefusal(name=name, because=because)

    def act(permit: ErasePermit, watch: PurgeWatch) -> None:
        device = permit.handle
        argv = ["nvme", "sanitize", device.path, f"--sanact={action}"]
        if action == "start-overwrite":
            argv += ["--owpass=1", "--ovrpat=0"]
        run_tool(device, argv, limit_s=QUERY_LIMIT_S)
        _wait_for_sanitize(device, watch)

    return PurgeMethod(
        name=name,
        title=f"NVMe Sanitize, {kind}",
        reads_zero=bit != SANICAP_CRYPTO and _deallocated_reads_zero(namespace),
        # Overwriting wears flash and does not leave it new.
        automatic=bit != SANICAP_OVERWRITE,
        act=act,
    )


def find_nvme_sanitize(device: str) -> float | None:
    """Return the share done of a sanitize under way; None if there is none, or the drive reports none."""
    log = _read_sanitize_log(device)
    return _int(log, "sprog") / 65536 if _status(log) == IN_PROGRESS else None


def _read_sanitize_log(path: str) -> dict[str, object]:
    log = _query("sanitize-log", "-o", "json", path)
    # Some versions put the log under the device's name.
    nested = next((value for value in log.values() if isinstance(value, dict)), None)
    return log if "sprog" in log or nested is None else nested


def _wait_for_sanitize(device: Handle, watch: PurgeWatch) -> None:
    """Wait for the end of a sanitize, which the drive continues even if tkperf ends."""

    def is_done() -> bool:
        log = _read_sanitize_log(device.path)
        status = _status(log)
        if status in (SANITIZED, SANITIZED_DEALLOCATED):
            return True
        if status == FAILED:
            raise DeviceError(
                f"the sanitize of {device.name} failed; the drive takes no other command until it is "
                f"repeated or left: nvme sanitize --sanact=exit-failure {device.name}"
            )
        watch.progress(_int(log, "sprog") / 65536)
        return False

    wait_for_end(device, "the sanitize of", is_done, limit_s=SANITIZE_LIMIT_S)


def _status(log: dict[str, object]) -> int:
    """Return SSTAT, bits 2:0: a number or, in newer versions of nvme-cli, an object with the number."""
    value = log.get("sstat")
    if isinstance(value, dict):
        value = next((entry for entry in value.values() if isinstance(entry, int)), 0)
    return value & 0b111 if isinstance(value, int) else 0


def _other_namespaces(disk: Path) -> tuple[str, ...]:
    controller = find_nvme_controller(disk)
    if controller is None:
        return ()
    names = {
        entry.name
        for folder in {controller, disk.parent}
        for entry in folder.glob("nvme*n*")
        if (entry / "dev").exists() and (entry / "queue").exists()
    }
    return tuple(sorted(names - {disk.name}))


def _deallocated_reads_zero(namespace: dict[str, object]) -> bool:
    return _int(namespace, "dlfeat") & DLFEAT_MASK == DLFEAT_ZEROS


def _query(*words: str) -> dict[str, object]:
    return read_json_object(["nvme", *words], timeout_s=QUERY_LIMIT_S)


def _int(values: dict[str, object], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0
