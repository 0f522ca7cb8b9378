"""Every error tkperf raises on purpose, and the exit code each one ends with.

TkperfError
├── ClaimsNotMetError   1   tkperf check: a claim is not met, not measured or cannot be told
├── UsageError          2   the command line or an input file asks for something impossible
│   └── ProfileError    2   a profile file: names file, key and reason
├── RefusedError        3   safety: the device must not be erased, nothing was touched
├── DeviceError         4   the device is missing, unsuitable, or changed under the run
├── EngineError         5   fio is missing, too old, failed or printed rubbish
│   ├── StepFailedError 5   what a step measured cannot be believed; it is measured again, once
│   └── LostAtGateError 5   fio was killed before its first I/O; it is started again, once
├── RunFileError        6   the run file cannot be read or written
└── Interrupted       130   the user stopped the run; what was measured is kept

Any other exception is a defect of tkperf and ends with 70; an output whose reader has gone, with 141.

A message says what happened, on which device or file, and what to do next. Only the cli prints
errors and exits.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class TkperfError(Exception):
    """Base of all errors meant for the user."""

    exit_code = 1


class ClaimsNotMetError(TkperfError):
    """A claim checked against a run is not met, or what it is about was not measured."""

    exit_code = 1


class UsageError(TkperfError):
    """The command line or an input file asks for something impossible."""

    exit_code = 2


def not_known(what: str, given: str, choices: Iterable[str]) -> UsageError:
    """``test 'lta': known are iops, lat; did you mean lat?``"""
    names = list(choices)
    closest = get_close_matches(given.lower(), names, n=1)
    guess = f"; did you mean {closest[0]}?" if closest else ""
    return UsageError(f"{what} '{given[:40]}': known are {', '.join(names)}{guess}")


class ProfileError(UsageError):
    """A profile has a typo or an impossible value."""


class RefusedError(TkperfError):
    """The safety check refuses the device; nothing was touched."""

    exit_code = 3


class DeviceError(TkperfError):
    """The device is missing, unsuitable, or no longer the one the run began with."""

    exit_code = 4


class EngineError(TkperfError):
    """fio is missing, too old, failed, hung or printed something that is not its output."""

    exit_code = 5


class StepFailedError(EngineError):
    """What was measured cannot be believed, though nothing says that trying again would fail."""


class StepDisturbedError(StepFailedError):
    """Something else than the device had a part in a step, which a strict run does not take."""


class LostAtGateError(EngineError):
    """fio, or what holds one of its threads, was killed before any I/O: it can be started again."""


class RunFileError(TkperfError):
    """The run file cannot be created, read or written."""

    exit_code = 6


class Interrupted(TkperfError):  # noqa: N818 - not an error of anybody
    """The user stopped the run; everything measured before is in the run file."""

    exit_code = 130
