"""The rights of an order that ``tkperf on-host`` executes on a host, if sudo lets a user run only this command as root.

The line in sudoers lets the user erase and measure drives and files. It does not let the user read root's files or run
another program. An order therefore contains the content of its input files, and never the path of a file on the host.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tkperf.batch.request import BatchRequest
from tkperf.model.errors import RefusedError, RunFileError, reason_of
from tkperf.model.input_files import is_toml_path

# A file in the folder of a batch on a host. It contains the number of the user who began the batch with sudo.
BEGUN_BY = "begun-by-uid"
_INPUT = re.compile(r"input-[0-9a-f]{16}\.toml")
# The environment variables that a program needs. Other variables, such as TMPDIR, TKPERF_..., PYTHON..., LD_... and
# XDG_..., could misdirect root's programs.
_KEPT_VARIABLES = re.compile(r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|LANG|LANGUAGE|LC_[A-Z]+|SUDO_[A-Z]+")
# The value for a user whose number is not known. No user has this number, not even root.
_UNKNOWN_UID = -1
_PATH_OF_ROOT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def name_input(text: str) -> str:
    """Return the name of an input file in the batch's folder on a host. The name depends only on the content."""
    return f"input-{hashlib.sha256(text.encode()).hexdigest()[:16]}.toml"


def find_caller_uid() -> int:
    """Return the number of the user for whom tkperf runs. This user called sudo, doas or pkexec, or is otherwise the
    user of this process.

    Each of these programs sets its own variable, but may also pass on a variable of another of these programs, which
    the user may have set. Therefore, if any of these variables names a user other than root, the function returns the
    number of this user.
    """
    named = [os.environ[name] for name in ("SUDO_UID", "PKEXEC_UID") if name in os.environ]
    uids = [int(text) if text.isdecimal() else _UNKNOWN_UID for text in named]
    if user := os.environ.get("DOAS_USER"):
        try:
            uids.append(pwd.getpwnam(user).pw_uid)
        except KeyError:
            uids.append(_UNKNOWN_UID)
    return next((uid for uid in uids if uid), os.geteuid())


def drop_caller_environment() -> int:
    """Remove the environment variables that no program needs, and leave the current folder. Return the number of the
    calling user.

    The user who calls sudo chooses the current folder, and some sudoers files let the user pass variables.
    """
    caller_uid = find_caller_uid()
    for name in list(os.environ):
        if not _KEPT_VARIABLES.fullmatch(name):
            del os.environ[name]
    if caller_uid != os.geteuid():
        os.environ["PATH"] = _PATH_OF_ROOT
        with suppress(KeyError):
            os.environ["HOME"] = pwd.getpwuid(os.geteuid()).pw_dir
    os.chdir("/")
    return caller_uid


def require_no_commands(request: BatchRequest, caller_uid: int) -> None:
    """Refuse a purge command from a user who may not run programs as root.

    Raises:
        RefusedError: the batch has such a command, and the user is not root.
    """
    if caller_uid != 0 and any(one.request.purge_command for one in request.drives):
        raise RefusedError(
            "a batch with a purge command needs root@HOST as the host, because tkperf runs the command as root. "
            "Nothing was touched"
        )


def require_sent_inputs(request: BatchRequest, files: Mapping[str, str]) -> None:
    """Check that each profile or workload is shipped with tkperf, or is a file whose content is in the order.

    A path of the host would be read with root's rights, and an error about the file quotes the content of the file.

    Raises:
        RefusedError: a profile or workload is a path, or the name of a file does not correspond to its content.
    """
    for name, text in files.items():
        if _INPUT.fullmatch(name) is None or name != name_input(text):
            raise RefusedError(
                f"the request to this host contains a file with the name '{name[:40]}'. tkperf accepts "
                "only profiles and workload files, and the name of such a file must be computed from its "
                "content. Install the same version of tkperf on both machines. Nothing was touched"
            )
    for drive in request.drives:
        run = drive.request
        named = (*run.tests, *([run.profile] if isinstance(run.profile, str) else ()))
        for one in named:
            if is_toml_path(one) and one not in files:
                raise RefusedError(
                    f"'{one[:80]}' is a path on the host, and tkperf does not read profiles or workload files from the "
                    "host. Store the file on the machine from which you start the batch, or use a built-in profile or "
                    "workload. Nothing was touched"
                )


def claim_folder(folder: Path, caller_uid: int) -> None:
    """Create the folder of a batch for the calling user, or check that the folder belongs to this user.

    Raises:
        RefusedError: the folder contains a batch that another user began.
        RunFileError: the folder cannot be created.
    """
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            require_own_batch(folder, caller_uid)
            return
        try:
            (folder / BEGUN_BY).write_text(f"{caller_uid}\n", encoding="ascii")
        except OSError:
            # Without this file, even the user who created the folder could not use the folder.
            (folder / BEGUN_BY).unlink(missing_ok=True)
            folder.rmdir()
            raise
    except OSError as error:
        raise RunFileError(f"cannot write to {folder}: {reason_of(error)}") from error


def require_own_batch(folder: Path, caller_uid: int) -> None:
    """Check that the calling user began the batch on this host, or is root.

    Raises:
        RefusedError: another user or root began the batch.
    """
    if caller_uid == 0:
        return
    text = ""
    with suppress(OSError, UnicodeDecodeError):
        text = (folder / BEGUN_BY).read_text(encoding="ascii").strip()
    if text != str(caller_uid):
        raise RefusedError(
            f"you did not begin the batch {folder}, and only root and the user who began it may use this batch. Give "
            "your batch another name. Nothing was touched"
        )
