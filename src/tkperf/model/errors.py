"""Every error that tkperf raises on purpose, with the exit code of the error.

TkperfError
├── ClaimsNotMetError   1   tkperf check: a claim is not met or not judged
├── UsageError          2   the command line or an input file requests something impossible
│   └── InputFileError  2   an input file contains a mistake: the message contains the file, the key and the reason
│       └── ProfileError 2  a profile contains a mistake
├── RefusedError        3   the device must not be erased, or with --strict the host is not suitable
├── DeviceError         4   the device is missing, is unsuitable, or changed during the run
├── EngineError         5   fio is missing, is too old, failed, or printed invalid output
│   ├── StepFailedError 5   the measurement of a step is not plausible, and the step is measured once more
│   │   └── StepDisturbedError 5   with --strict, something disturbed the step, which is measured twice more if possible
│   └── LostAtGateError 5   fio was killed before its first I/O, and fio is started once more
├── RunFileError        6   the run file cannot be read or written
└── Interrupted       130   the user stopped the run, and the run file contains all measurements until then

Any other exception is a defect of tkperf, and the exit code is 70. If the program that reads the output has ended, the
exit code is 141. docs/reference/exit-codes.md explains how a script can use each code.

A message states what happened, on which device or file, and what the user does next. Only the package ``cli`` prints
errors and exits.
"""

import errno
from collections.abc import Iterable
from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """All exit codes of tkperf. ``meaning`` is the text in the help."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    DONE = 0, "done"
    CLAIMS_NOT_MET = 1, "claims not met"
    WRONG_USE = 2, "wrong use"
    REFUSED = 3, "refused for safety"
    DEVICE = 4, "device"
    FIO = 5, "fio"
    RUN_FILE = 6, "run file"
    DEFECT = 70, "a defect of tkperf"  # EX_SOFTWARE of sysexits.h
    STOPPED = 130, "stopped by the user"  # The exit code is 128 + SIGINT, as in shells.
    READER_GONE = 141, "the program that reads the output has ended"  # 128 + SIGPIPE


BY_SIGNAL = 128
"""The exit code of a process that signal n killed is 128 + n, as in shells."""


class TkperfError(Exception):
    """The base class of all errors meant for the user. Only its subclasses are raised."""

    exit_code = ExitCode.DEFECT


class ClaimsNotMetError(TkperfError):
    """At least one claim that was checked against a run is not met or not judged."""

    exit_code = ExitCode.CLAIMS_NOT_MET


class UsageError(TkperfError):
    """The command line or an input file requests an impossible action."""

    exit_code = ExitCode.WRONG_USE


def closest(given: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is most similar to the given word. None means that no choice is similar."""
    from difflib import get_close_matches  # noqa: PLC0415  # only a mistake needs this module

    by_lower_case = {name.lower(): name for name in choices}
    alike = get_close_matches(given.lower(), by_lower_case, n=1)
    return by_lower_case[alike[0]] if alike else None


def guess(given: str, choices: Iterable[str]) -> str:
    """Return a suggestion such as ``; did you mean lat?``, or an empty string if no choice is similar."""
    meant = closest(given, choices)
    return f"; did you mean {meant}?" if meant else ""


def choose_from(given: str, choices: Iterable[str]) -> str:
    """Return the list of choices and a suggestion, such as ``choose from iops, lat; did you mean lat?``."""
    names = list(choices)
    return f"choose from {', '.join(names)}{guess(given, names)}"


def not_known(what: str, given: str, choices: Iterable[str]) -> UsageError:
    """Return the error for an unknown name, such as ``test 'lta': choose from iops, lat; did you mean lat?``."""
    return UsageError(f"{what} '{given[:40]}': {choose_from(given, choices)}")


# Remedies for failures that need more advice than the description of the failure.
_ADVICE = {
    errno.EMFILE: "raise the limit of this shell: ulimit -n",
    errno.ENFILE: "the whole host has reached its limit: sysctl fs.file-max",
    errno.ENOMEM: "free memory",
    errno.EROFS: "mount it for writing, or choose another folder",
    errno.EMLINK: "the file system allows no more links or folders there",
    errno.EDQUOT: "remove files of this user, or raise the quota",
    errno.EIO: "the disk or its file system fails: see the kernel log",
}
# The causes of these failures are in this process or host. The same failures would occur in another folder.
_LACK_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def is_full(error: BaseException) -> bool:
    """Return whether the error means that a disk or a quota is full. Only this kind of write failure can disappear
    after some time.
    """
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_lack_of_resources(error: BaseException) -> bool:
    """Return whether this process or host lacks descriptors or memory. Another folder does not help in this case."""
    return isinstance(error, OSError) and error.errno in _LACK_OF_RESOURCES


def reason_of(error: BaseException) -> str:
    """Return the reason for a failure in words, without the error number, the codec and the path."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not text in UTF-8, from byte {error.start:,} on"
    if isinstance(error, UnicodeError):
        return "it has characters that cannot be sent or written there"
    if isinstance(error, OSError) and error.strerror:
        advice = _ADVICE.get(error.errno or 0)
        return f"{error.strerror} ({advice})" if advice else error.strerror
    return str(error) or type(error).__name__


class InputFileError(UsageError):
    """An input file contains a mistake, although the command line is correct."""


class ProfileError(InputFileError):
    """A profile has a typo or an impossible value."""


class RefusedError(TkperfError):
    """The safety check refuses the device, or a strict run refuses the host. The device was not changed."""

    exit_code = ExitCode.REFUSED


class DeviceError(TkperfError):
    """The device is missing, unsuitable, or no longer the device with which the run began."""

    exit_code = ExitCode.DEVICE


class EngineError(TkperfError):
    """fio is missing, is too old, failed, does not answer, or printed text that is not output of fio."""

    exit_code = ExitCode.FIO


class StepFailedError(EngineError):
    """A measurement is not plausible. A second attempt may succeed."""


class StepDisturbedError(StepFailedError):
    """Something other than the device influenced a step. A run with ``--strict`` does not accept such a step."""


class LostAtGateError(EngineError):
    """fio, or a process that holds a thread of fio, was killed before any I/O. fio can be started again."""


class RunFileError(TkperfError):
    """The run file cannot be created, read or written."""

    exit_code = ExitCode.RUN_FILE


class LockedRunFileError(RunFileError):
    """Another program has locked the run file. The file can be read after the lock is released."""


class Interrupted(TkperfError):  # noqa: N818 - not an error, because nothing failed
    """The user stopped the run. The run file contains all data that was measured before."""

    exit_code = ExitCode.STOPPED
