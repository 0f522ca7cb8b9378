"""A RAID set as the target of a run. For the purge and the preconditioning, tkperf stops the set. For the measurement,
tkperf creates the set again.

tkperf purges and preconditions the members in parallel, as single drives. It then creates the set from the members, and
measures the set only after the resync of the set has ended (docs/adr/0010).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from tkperf.device.permit import ControllerPermit, ErasePermit, SetPermit
from tkperf.device.purge import PurgeMethod, PurgeWatch, run_purge
from tkperf.device.raid.mdadm import MdadmSet
from tkperf.device.raid.storcli import ERASE_NOTE, StorcliSet
from tkperf.device.targets import NOT_PURGED
from tkperf.device.write_cache import WriteCache
from tkperf.model.errors import DeviceError
from tkperf.model.record import OnNote, OnProgress, PurgeResult

# The interval in seconds at which tkperf checks the threads that purge the members.
POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a set with its permit and its write cache. ``method`` is None if the user wants no purge."""

    permit: ErasePermit
    method: PurgeMethod | None
    cache: WriteCache


class MdadmTarget:
    """A software RAID set and its member drives as the target of one run."""

    def __init__(self, raid: MdadmSet, permit: SetPermit, members: Sequence[Member]) -> None:
        self._raid = raid
        self._permit = permit
        self._members = tuple(members)
        # A new set starts a resync. If the set is stopped before it is measured, tkperf does not wait for the resync.
        self._in_sync = False

    @property
    def permits(self) -> tuple[ErasePermit, ...]:
        """The permits of the members, which are needed to precondition the members."""
        return tuple(member.permit for member in self._members)

    def recheck(self) -> None:
        for permit in (self._permit,) if self._permit.is_made else self.permits:
            permit.recheck()

    def make_ready_to_fill(self) -> None:
        """Stop the set if it exists, and hold the members exclusively again. tkperf preconditions the members and not
        the set.
        """
        if not self._permit.is_made:
            return
        self._permit.recheck()
        self._permit.release()
        self._raid.remove([permit.handle for permit in self.permits])
        for permit in self.permits:
            permit.take_back()

    def make_ready(self, *, on_progress: OnProgress) -> None:
        """Create the set if it does not exist, and wait until the set is in sync.

        Raises:
            RefusedError: other programs use a member now.
            DeviceError: the set could not be created.
        """
        if not self._permit.is_made:
            create_of(self._raid, self.permits)
            self._permit.made()
            self._in_sync = False
        if not self._in_sync:
            self._raid.wait_until_ready(on_progress)
            self._in_sync = True

    def purge(self, *, on_progress: OnProgress, on_note: OnNote) -> PurgeResult:
        methods = {member.method.title for member in self._members if member.method}
        if len(methods) == 0:
            return NOT_PURGED
        self.make_ready_to_fill()
        verified = _purge_in_parallel(self._members, on_progress, on_note)
        for member in self._members:
            member.cache.apply()
        return PurgeResult(
            method=f"{len(self._members)} members in parallel: {', '.join(sorted(methods))}",
            note="; ".join(sorted(set(verified))),
        )


def create_of(raid: MdadmSet, permits: Sequence[ErasePermit]) -> None:
    """Create a set from permitted members. The exclusive hold on the members passes to the set.

    Raises:
        RefusedError, DeviceError: a member is in use or has changed, or the set could not be created.
    """
    for permit in permits:
        permit.lend()
    raid.create([permit.handle for permit in permits])
    for permit in permits:
        permit.lent_to = raid.name


@dataclass(slots=True)
class _Note:
    """A note from a purging thread. ``kept`` is None until the thread of the run has recorded the note."""

    code: str
    text: str
    kept: bool | None = None


def _find_unanswered(notes: Sequence[_Note]) -> list[_Note]:
    return [note for note in notes if note.kept is None]


def _find_slowest(shares: Sequence[float | None]) -> float | None:
    """Return the progress of the slowest purge, or None while the progress of any purge is unknown."""
    known = [share for share in shares if share is not None]
    return min(known) if len(known) == len(shares) else None


def _purge_in_parallel(members: Sequence[Member], on_progress: OnProgress, on_note: OnNote) -> list[str]:
    """Purge all members at the same time. Report the progress of the slowest member, and return the verifications.

    A purge cannot be cancelled, so an interruption by the user takes effect when all purges have ended. The
    interruption may occur at any point of this function. Each note therefore stays in the list ``notes``, and the
    purging thread checks repeatedly whether its note was recorded.

    This function contains no condition directly before a jump back (in a comprehension, in ``while CONDITION``, or in
    an ``if`` at the end of a loop). From Python 3.12 on, no handler of the function covers such a jump. If a signal
    raises an exception there, the exception leaves the function at once.
    """
    notes: list[_Note] = []
    shares: list[float | None] = [None] * len(members)
    left = threading.Event()

    def purge(index: int, member: Member) -> str:
        def note(code: str, text: str) -> None:
            asked = _Note(code, text)
            notes.append(asked)
            while asked.kept is None and not left.wait(POLL_S):
                pass
            if not asked.kept:
                raise DeviceError(f"{member.permit.identity.path}: not erased: {text}: not kept")

        def progress(share: float | None) -> None:
            shares[index] = share

        assert member.method is not None
        return run_purge(member.permit, member.method, watch=PurgeWatch(progress=progress, note=note))

    def answer(note: _Note) -> None:
        kept = False
        try:
            on_note(note.code, note.text)
            kept = True
        finally:
            note.kept = kept

    stopped_by: BaseException | None = None
    with ThreadPoolExecutor(max_workers=len(members)) as pool:
        try:
            futures = [pool.submit(purge, index, member) for index, member in enumerate(members)]
            while True:
                try:
                    if not wait(futures, timeout=POLL_S).not_done:
                        break
                    for note in _find_unanswered(notes):
                        answer(note)
                    on_progress(_find_slowest(shares))
                except BaseException as error:
                    stopped_by = stopped_by or error  # a later error must not replace the interruption by Ctrl-C
        finally:
            left.set()
    if stopped_by is not None:
        raise stopped_by
    return [future.result() for future in futures]


class StorcliTarget:
    """A RAID set of a MegaRAID controller as the target of one run. The controller itself purges the drives."""

    def __init__(self, raid: StorcliSet, permit: SetPermit, drives: ControllerPermit, *, no_purge: bool) -> None:
        self._raid = raid
        self._permit = permit
        self._drives = drives
        self._no_purge = no_purge
        self._in_sync = False

    def recheck(self) -> None:
        if self._permit.is_made:
            self._permit.recheck()

    def make_ready_to_fill(self) -> None:
        """Create the set for preconditioning, because tkperf cannot write to the single drives of the controller."""
        self.make_ready(on_progress=lambda _: None)

    def make_ready(self, *, on_progress: OnProgress) -> None:
        """Create and initialise the set, unless this was already done."""
        if not self._permit.is_made:
            self._raid.create(self._drives)
            self._permit.made()
            self._in_sync = False
        if not self._in_sync:
            self._permit.recheck()
            self._raid.initialise(on_progress)
            self._in_sync = True

    def purge(self, *, on_progress: OnProgress, on_note: OnNote) -> PurgeResult:
        if self._no_purge:
            return NOT_PURGED
        if self._permit.is_made:
            self._permit.recheck()
            self._permit.release()
            self._raid.remove()
        method = self._raid.purge_drives(self._drives, on_progress)
        return PurgeResult(method=method, note=ERASE_NOTE)
