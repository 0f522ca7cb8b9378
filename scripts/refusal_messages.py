"""The messages of all refusals, read from the source code, and advice on each of them.

``docs_reference.py`` writes docs/reference/refusals.md from the messages and the advice. The script ends with an error
if a message in the code has no advice here, or if the advice here belongs to a message that no longer exists. The page
therefore always agrees with the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.safety import Reason

SOURCE = Path(__file__).parents[1] / "src/tkperf"
BLANK = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonAdvice:
    """The advice on an objection to a device.

    Attributes:
        composed: the messages that the code composes from parts. A test in tests/docs compares these messages with the
            code.
    """

    advice: str
    composed: tuple[str, ...] = ()


REASONS = {
    Reason.ZONED: ReasonAdvice(
        advice="Choose another drive. Or create a dm-zoned device, which accepts random writes, on top of this drive, "
        "and measure the dm-zoned device. tkperf accepts a host-aware drive with a warning."
    ),
    Reason.MOUNTED: ReasonAdvice(
        advice="Unmount the file system with `umount`, in the mount namespace that the message names. If the message "
        "names a container, stop this container.",
        composed=("… is mounted at …",),
    ),
    Reason.SWAP: ReasonAdvice(advice="Run `swapoff` on the device or file."),
    Reason.HOLDER: ReasonAdvice(
        advice="An MD set, an LVM volume, dm-crypt, multipath, bcache or the segments of another tkperf run use the "
        "device. `lsblk` shows which of these layers uses the device. To release the device, stop this layer with "
        "`mdadm --stop`, `vgchange -an`, `cryptsetup close` or `multipath -f`.",
        composed=("… is used by … (…)",),
    ),
    Reason.MEMBER: ReasonAdvice(
        advice="The device belongs to an inactive set (MD, LVM, ZFS, btrfs, bcache, Ceph, DRBD, Stratis, VMFS, "
        "multipath or firmware RAID). Make sure that you do not need this set. Then run `wipefs --all` on the device."
    ),
    Reason.SYSTEM_DISK: ReasonAdvice(
        advice="Choose another drive. `/`, `/usr`, `/var` or `/boot` is on this drive, perhaps through several layers.",
        composed=("the running system has … on it", "the system was booted from it (UEFI)"),
    ),
    Reason.READ_ONLY: ReasonAdvice(
        advice="Run tkperf as root. If the device itself is read-only, run `blockdev --setrw`, or set the "
        "write-protect switch of the drive."
    ),
    Reason.BUSY: ReasonAdvice(
        advice="End the program that the message names. If the message names no program, the device may be mounted "
        "in a mount namespace without a process."
    ),
    Reason.OPEN: ReasonAdvice(
        advice="End the process that the message names. The process can also use the device through `/dev/sg*`, "
        "`/dev/ng*` or an NVMe controller. To see all processes, run tkperf as root and outside of a container.",
        composed=("… is open for writing in …", "… is open in …"),
    ),
    Reason.MAPPED: ReasonAdvice(
        advice="End the process that the message names.",
        composed=("… is mapped into memory by …", "… is registered with io_uring in …"),
    ),
    Reason.RUNNING: ReasonAdvice(
        advice="End the program. The file is the executable of this program.", composed=("… is running as …",)
    ),
    Reason.LOCKED: ReasonAdvice(advice="End the program that holds the lock or the lease."),
    Reason.LOOP_BACKING: ReasonAdvice(
        advice="Detach the loop device with `losetup -d`. tkperf does not measure a file or loop device if another "
        "loop device uses the same file."
    ),
    Reason.EXPORTED: ReasonAdvice(
        advice="Remove the device or file from the NVMe target (nvmet), SCSI target (LIO, SCST), USB gadget, rnbd "
        "server, zram, MD bitmap or erofs mount that the message names. This is also necessary if the target or "
        "server is switched off. If a file was renamed after the mount, an erofs mount still reports the old name."
    ),
    Reason.OVERLAY: ReasonAdvice(
        advice="Unmount the overlay or eCryptfs file system.", composed=("… is part of the … mounted at …",)
    ),
    Reason.HARD_LINKS: ReasonAdvice(
        advice="Copy the file, or remove its other names. The file may be the file behind the loop device."
    ),
    Reason.BACKING_FILE: ReasonAdvice(
        advice="The file behind the loop device was removed or renamed, or a mount or another mount namespace hides "
        "its name. Detach the device with `losetup -d`. Then attach the file with a path at which the file exists."
    ),
    Reason.UNREADABLE: ReasonAdvice(
        advice="The message contains the read error. tkperf does not know the content of the device. Repair or unlock "
        "the drive.",
        composed=("the read error",),
    ),
    Reason.NARROW_VIEW: ReasonAdvice(
        advice="Run tkperf on the host and not in a container, or measure a file. In a container, tkperf also sees the "
        "processes that use the device if the container shares the PID namespace of the host, and if tkperf runs as "
        "root in the container and may trace processes. See [Installing tkperf](../how-to/install.md#container)."
    ),
    Reason.ERASING: ReasonAdvice(
        advice="Wait until the sanitize or format has ended. If a sanitize has failed, repeat the sanitize, or end "
        "the failure state of the drive. The message names the command. `tkperf doctor` shows these messages, "
        "and tkperf refuses to run on such a drive.",
        composed=(
            "… is erasing itself (… done) …",
            "… the last sanitize of … failed …",
            "… the last format or sanitize of … failed …",
            "… does not know the status in its sanitize log …",
        ),
    ),
}

_TO_WAIT = "Wait until the erase has finished. A sanitize or format continues even after a kill or a power cut."
_SAME_VERSION = "Install the same version of tkperf on all hosts."

# Messages with exit code 3, grouped by the situation in which they appear, with advice.
REFUSALS: dict[str, Mapping[str, str]] = {
    "Confirmation": {
        "tkperf would destroy all data on …. tkperf cannot ask for consent, because there is no terminal.… "
        "Confirm with …": "Run the command on a terminal, or pass `--yes-destroy` with the answer.",
        "'…' does not confirm …. The expected answer is …. Nothing was touched": (
            "The answer names another device or contains a typing error. Compare the serial number with the label of "
            "the drive."
        ),
        "the answer '…' does not confirm the batch. The expected answer is '…'. Nothing was touched": (
            "The argument `confirm=` in Python names another device. Compare the serial number with the label of "
            "the drive."
        ),
        "'…' does not confirm the drives. The expected answer is '…'. Nothing was touched": (
            "Your answer does not name the drives behind the controller. Compare their serial numbers."
        ),
        "… is no longer the drive that was confirmed. Start the batch again. Nothing was touched": (
            "Somebody exchanged a drive of the batch while the question was open. Start the batch again."
        ),
        "a program has written to … since tkperf showed it: …. …": "Another program [wrote to the device or "
        "file](../explanation/safety.md#changes-while-the-question-is-open) while tkperf waited for the answer. Find "
        "this program before you start again.",
    },
    "The device": {
        "… must not be erased: …. …": "The message lists objections to the device. The table of objections at the "
        "beginning of this page contains advice for each objection.",
        "… must not be erased, because it contains …. Nothing was touched": (
            "After tkperf had opened the device exclusively, it found that the device is a member of a set. The "
            "objection with the code `member` contains advice."
        ),
        "… cannot be opened exclusively: …. Nothing was touched": "Another program opened the device after tkperf's "
        "check, or the name of the device is now a link. Find out which program uses the device.",
        "… is locked by …. A tkperf that was killed may have started this program. Wait until the program ends. "
        "Nothing was touched": (
            "A killed tkperf had started fio or a purge tool, and this program is still running. Wait, or end the "
            "process that the message names."
        ),
        "… is erasing itself (… done). An interrupted run of tkperf may have started the erase. Wait until the "
        "erase has finished. Nothing was touched": _TO_WAIT,
        "… is not touched: …": "`tkperf doctor --unlock` found an objection to the device. Follow the advice in the "
        "table of objections at the beginning of this page.",
        "… does not consist of the confirmed devices, so tkperf writes nothing to it": (
            "The RAID set or mapping contains members that you did not confirm. Stop the set or mapping."
        ),
    },
    "Resuming a run": {
        "… can be shown, but not resumed, because another user may have written the file: …. Nothing was touched": (
            "[The run file](../explanation/safety.md#resuming-a-run) belongs to another user, or other users can "
            "write to the file, to a journal next to the file or to a folder above the file. Run `chmod go-w`, or "
            "move the file. Run `chown` only if you know who wrote the file."
        ),
        "…: the run was begun with --purge-command …. tkperf executes no command from a run file. Pass the same "
        "option again if the command is yours. Nothing was touched": (
            "Pass the same `--purge-command` to `tkperf resume` if the command is yours."
        ),
        "…: the run was begun without --purge-command. Omit this option. Nothing was touched": "Resume the run without "
        "`--purge-command`.",
    },
    "The host": {
        "with --strict, a run does not begin while something on this host would disturb it: …": (
            "Change the settings that the message names. `tkperf tune` shows how to change them. Or run without "
            "`--strict`. No data was at risk."
        ),
        "tkperf serve reads files that other users may have written, so it must not run as root. Start it as an "
        "ordinary user with access to these files, or pass --allow-root": "Start `tkperf serve` as an ordinary user. "
        "tkperf has not read any file.",
    },
    "Batches": {
        "'…' does not confirm …. The expected answer is '…'.… Nothing was touched": (
            "The answer was for another batch or for another number of drives. Type the answer that the message names."
        ),
        "tkperf would destroy all data on …. tkperf cannot ask for consent, because there is no terminal. Confirm with "
        "… FILE. The file must contain one line for each drive: the serial number of the drive, or the path if the "
        "drive has no serial number. Nothing was touched": (
            "Run the batch on a terminal, or pass [`--yes-destroy-file`](../how-to/batches.md#consent)."
        ),
        "the file … does not confirm the erasure: …. Nothing was touched": "In the file that you passed to "
        "`--yes-destroy-file`, a line is missing, is superfluous or appears twice. The message contains the number of "
        "the line.",
        "… is not a regular file, so tkperf does not use it. Nothing was touched": (
            "Pass a regular file to `--yes-destroy-file`. tkperf cannot know who writes to a pipe."
        ),
        "… is not used, because another user may have written the file: …. Nothing was touched": (
            "The batch file, or the file of `--yes-destroy-file`, belongs to another user, or other users can write "
            "to the file or to a folder above the file. Run `chmod go-w` or `chown`, or move the file."
        ),
        "… need one process each, but process number … cannot be started: …. Check the limits ulimit -n and ulimit "
        "-u. Nothing was touched": (
            "Raise the limits of the shell, or measure fewer drives at the same time. No data was at risk."
        ),
        "…: the batch ended before the run of this drive began, so your consent is no longer valid. Nothing was "
        "touched": "Run `tkperf resume NAME.batch`. tkperf then asks for your consent again.",
        "the drives that would be measured at the same time could transfer more data than these links: …. Measure "
        "fewer drives at the same time, or omit strict. Nothing was touched": (
            "Pass `--parallel` with fewer drives, or run without `strict`. No data was at risk."
        ),
    },
    "Batches over hosts": {
        "no drive was touched: …": "Two hosts of the batch reach the same drive. Name the drive once.",
        "no consent to erase the drives arrived within … s, so tkperf released the drives. Start the batch again. "
        "Nothing was touched": (
            "The connection to the host was lost before your answer arrived at the host. Start the batch again."
        ),
        "the drives of this host are not the drives that were confirmed. Start the batch again. Nothing was "
        "touched": "The drives of a host changed while the question was open. Start the batch again.",
        "… belongs to another batch with other drives. Give your batch another name. Nothing was touched": (
            "Another machine started a batch with this name on the host. Give your batch another name."
        ),
        "a batch with a purge command needs root@HOST as the host, because tkperf runs the command as root. "
        "Nothing was touched": "Name the host as `root@HOST`, or purge without a command.",
        "the other machine sent a message that is not a request": (
            "The program on the other machine is not tkperf, or it is a different version of tkperf. " + _SAME_VERSION
        ),
        "the request to this host contains a file with the name '…'. tkperf accepts only profiles and workload files, "
        "and the name of such a file must be computed from its content. Install the same version of tkperf on both "
        "machines. Nothing was touched": (
            "The program on the other machine is not tkperf, or it is a different version of tkperf. " + _SAME_VERSION
        ),
        "'…' is a path on the host, and tkperf does not read profiles or workload files from the host. Store the file "
        "on the machine from which you start the batch, or use a built-in profile or workload. Nothing was touched": (
            "`tkperf batch` sends the content of your files to the hosts, so the other program is not a `tkperf "
            "batch` of this version. " + _SAME_VERSION
        ),
        "you did not begin the batch …, and only root and the user who began it may use this batch. Give your "
        "batch another name. Nothing was touched": "Root or another user started a batch with this name on the host. "
        "Give your batch "
        "another name.",
    },
    "RAID": {
        "… is already a RAID set, so tkperf does not touch it. Choose another node. If you do not need the set, you "
        "can also stop it with 'mdadm --stop …'": (
            "Choose another node for DEVICE. If you do not need the existing set, you can also stop it."
        ),
        "drive … behind the controller reports no serial number, so tkperf cannot confirm it. Use another drive. "
        "Nothing was touched": ("Use another drive."),
        "a drive behind the controller reports no serial number, so tkperf cannot confirm it. Use another drive. "
        "Nothing was touched": ("Use another drive. This message appears only if you call tkperf from Python."),
        "… is in use, because its state is '…'. tkperf uses only unconfigured good (UGood) drives. Nothing was "
        "touched": "If you do not need the content of the drive, use storcli to make the drive unconfigured.",
        "… belongs to drive group …, where F means a set of another controller. If you do not need this group, delete "
        "it with storcli first. Nothing was touched": (
            "If you do not need the set, delete its configuration with storcli."
        ),
        "… is being erased (… done). An interrupted run of tkperf may have started the erase. Wait until the "
        "erase has finished. Nothing was touched": _TO_WAIT,
        "…. Nothing was touched": "tkperf runs in a container. Run tkperf on the host.",
        "… exists already, so the virtual drive would receive another name. Pass the next free name as DEVICE. "
        "Nothing was created": "Pass the next free device name as DEVICE.",
        "… (world-wide name …) is not the virtual drive that tkperf created (…), so tkperf writes nothing to it": (
            "DEVICE is another drive. Pass the name of the new virtual drive as DEVICE."
        ),
    },
    "Defects of tkperf": dict.fromkeys(
        (
            "only the function grant_permit, which checks the device first, may create a permit to erase",
            "only the function grant_controller_permit may create a permit to erase",
            "a permit to erase is valid for one run only, and this permit was used or released before",
            "tkperf must not write to …, because the permit to erase this device is not in use",
            "… is not held exclusively by tkperf at the moment",
            "another program is using … at the moment, so tkperf must not write to it",
        ),
        "Report this message, because it shows a defect of tkperf.",
    ),
}


def merge_blanks(text: str) -> str:
    """Return a message in which consecutive blanks are replaced with one blank."""
    return re.sub(rf"{BLANK}( ?{BLANK})+", BLANK, text)


def build_page() -> Iterator[str]:
    """Yield the lines of the page.

    Raises:
        LookupError: a message has no advice, or advice has no message.
    """
    yield "# Refusals: messages and what to do\n"
    yield (
        "tkperf ends with [exit code 3](exit-codes.md) if it refuses to erase a device or to use a file. This page "
        "lists every message with this exit code. A script generates the page from the source code. The sign … "
        "replaces a name, a number or another variable part of a message. "
        "[Safety](../explanation/safety.md#refusals) explains how tkperf looks for objections.\n"
    )
    yield "## Objections to a device\n"
    yield (
        "The message `DEVICE must not be erased:` lists all objections to the device in one line. "
        "`tkperf doctor DEVICE` shows the objections before a run, and `tkperf doctor DEVICE --json` shows their "
        "codes. No option skips an objection.\n"
    )
    yield "| code | message | what to do |"
    yield "|---|---|---|"
    found = {Reason[name]: {merge_blanks(text) for text in texts} for name, texts in objections().items()}
    _require_same("objections of the code", set(found) | {Reason.ERASING}, set(REASONS))
    for reason, entry in REASONS.items():
        literal = sorted(text for text in found.get(reason, ()) if text != BLANK)
        texts = dict.fromkeys((*literal, *entry.composed))
        quoted = [f"`{text}`" if text != "the read error" else text for text in texts]
        yield f"| `{reason}` | {'<br>'.join(quoted)} | {entry.advice} |"
    yield ""
    known = {text for messages in REFUSALS.values() for text in messages}
    _require_same("refusals of the code", {merge_blanks(text) for text in refusals()}, known)
    for heading, messages in REFUSALS.items():
        yield f"## {heading}\n"
        yield "| message | what to do |"
        yield "|---|---|"
        yield from (f"| `{message}` | {advice} |" for message, advice in messages.items())
        yield ""


def _require_same(what: str, found: Iterable[str], known: Iterable[str]) -> None:
    missing, gone = sorted({*found} - {*known}), sorted({*known} - {*found})
    if missing or gone:
        raise LookupError(f"{what}: without advice in refusal_messages.py: {missing}; advice without message: {gone}")


def template(node: ast.expr) -> str:
    """Return a text in which the variable parts are replaced with "…". For example, ``f"{path} is locked by {who}"``
    becomes ``… is locked by …``.
    """
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(template(part) if isinstance(part, ast.Constant) else BLANK for part in parts)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return template(left) + template(right)
        case _:
            return BLANK


def refusals() -> set[str]:
    """Return the messages of all refusals (exit code 3)."""
    sources = (path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    return {
        template(call.args[0])
        for source in sources
        if "RefusedError" in source
        for call in calls(ast.parse(source), "RefusedError")
    }


def objections() -> dict[str, set[str]]:
    """Return the reasons against erasing a device, with the messages for each reason."""
    found: dict[str, set[str]] = {}
    tree = ast.parse((SOURCE / "device/safety.py").read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            said, told_until = sentences(function), 0
            for call in calls(function, "Objection"):
                reason, text = call.args
                texts = [template(text)]
                if isinstance(text, ast.Name):
                    # If the code chooses one of two texts, return both texts.
                    texts = [each for line, each in said if told_until < line < call.lineno]
                told_until = call.lineno
                for name in reasons(reason):
                    found.setdefault(name, set()).update(texts)
    return found


def sentences(function: ast.FunctionDef) -> list[tuple[int, str]]:
    return sorted(
        (node.lineno, template(node.value))
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "sentence"
    )


def reasons(node: ast.expr) -> Iterator[str]:
    """Yield the names of ``Reason`` in an expression. A table of reasons represents all its entries."""
    if isinstance(node, ast.Attribute):
        yield node.attr
    else:
        yield from ("OPEN", "RUNNING", "MAPPED")


def calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a function, sorted by their lines."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == name]
    yield from sorted(found, key=lambda call: call.lineno)
