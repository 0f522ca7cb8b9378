"""Subject of a run, as the pipeline sees it: looked at first, opened under consent."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tkperf.device.blind_spots import find_blind_spots
from tkperf.device.file_target import find_shortage
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.inspection import DeviceFacts
from tkperf.model.record import RunWarning
from tkperf.model.units import format_capacity
from tkperf.pipeline.consent import Consent
from tkperf.pipeline.equipment import Equipment
from tkperf.pipeline.fitting import Fitted

# Codes of the warnings shown before consent even if no others are.
USERS_NOT_VISIBLE = "users-not-visible"
NO_ROOM = "no-room"
SAID_ALWAYS = (USERS_NOT_VISIBLE, NO_ROOM)


class RunSubject(Protocol):
    """A device, file or set. Making one looks at everything and changes nothing."""

    @property
    def identity(self) -> DeviceIdentity:
        """Identity; for a device that is not made yet: its name, its sector and its least capacity."""
        ...

    @property
    def facts(self) -> DeviceFacts:
        """Facts found before it is opened."""
        ...

    @property
    def drives(self) -> tuple[DeviceIdentity, ...]:
        """Drives under load, as far as the kernel shows them: the device, or the members of a set."""
        ...

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Description and purge method, for people: pairs of a label and a text."""
        ...

    @property
    def confirm_id(self) -> str | None:
        """Text that confirms the erasure; None if nothing is lost."""
        ...

    @property
    def overwritten_by(self) -> str | None:
        """Name of the purge if it leaves the device written and not as new; else None."""
        ...

    @property
    def filled_bytes(self) -> int | None:
        """Bytes that one pass of preconditioning writes; None: the active range."""
        ...

    @property
    def warnings(self) -> tuple[RunWarning, ...]: ...

    def open(self, fitted: Fitted, consent: Consent) -> AbstractContextManager[Equipment]:
        """Ask, set up, and put everything back in the end, however the run ends.

        Raises:
            RefusedError: no consent, or the subject is in use by now; nothing was touched.
            DeviceError, EngineError: the run cannot begin, or the device could not be put back.
        """
        ...


def find_unseen(identities: Sequence[DeviceIdentity]) -> tuple[RunWarning, ...]:
    """Return the places with possible users of the devices that tkperf cannot see, each place once."""
    spots = {spot.text: None for identity in identities for spot in find_blind_spots(identity)}
    return tuple(RunWarning(code=USERS_NOT_VISIBLE, text=text) for text in spots)


def warn_of_room(identity: DeviceIdentity) -> tuple[RunWarning, ...]:
    """Warn if a sparse file, the target or one behind a loop device, cannot be written in full."""
    is_file = identity.kind is TargetKind.FILE
    path = identity.path if is_file else identity.backing
    shortage = find_shortage(Path(path)) if path else None
    if shortage is None:
        return ()
    what = path if is_file else f"{path}, behind {identity.path},"
    needed, free = map(format_capacity, shortage)
    text = (
        f"{what} is sparse: writing all of it takes {needed} more, but its file system has only {free} "
        "free. A run that writes so much fills it up and fails: make room, or take a smaller "
        "--active-range"
    )
    return (RunWarning(code=NO_ROOM, text=text),)


def warn_of_link(facts: DeviceFacts) -> tuple[RunWarning, ...]:
    """Warn if a device's link runs below the speed that both ends could reach."""
    if not facts.values.get("link_downgraded"):
        return ()
    text = (
        f"the device's link runs at {facts.values['link']}, it could do "
        f"{facts.values['link_fastest']}: its speed may be limited by that"
    )
    return (RunWarning(code="preparation", text=text),)
