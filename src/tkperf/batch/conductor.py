"""The conductor of a confirmed batch. The conductor decides when the run of each drive begins, and records the progress
of the drives in the ledger.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from tkperf.batch.draft import DriveSelection
from tkperf.batch.drive_processes import DriveProcess, DriveProcesses, Go
from tkperf.batch.ledger import DriveBegan, DriveEnded, DrivesConfirmed, Ledger, LedgerNote, Line, find_start
from tkperf.batch.neighbours import Neighbours
from tkperf.model.batch_state import BatchPlace, DriveStage
from tkperf.model.errors import RunFileError
from tkperf.model.sharing import SharingState
from tkperf.system.host import now_utc

# The least time in s between the starts of two drives. Between two steps, the end of fio and the processing of results
# need tens of milliseconds of CPU time. Drives that begin together, with steps of equal length, would wait for each
# other between all steps. With this time between the starts, the steps of up to 24 drives do not coincide if a step
# takes a minute.
APART_S = 1.3


@dataclass(slots=True, kw_only=True)
class Turns:
    """The rule that decides when each drive begins.

    Attributes:
        groups: numbers of the drives that are measured at the same time, in their order. A group begins when no drive
            of another group is running any more, so that each drive has the same neighbours all the time.
        parts: names of the links that each drive shares with other drives. None means that the links are not known.
        stagger_s: least time, in seconds, between the starts of two drives that share a link or may share a link.
        simulated: drives whose steps use no CPU. They begin without waiting for other drives.
    """

    groups: Sequence[Sequence[int]]
    parts: Mapping[int, frozenset[str]] = field(default_factory=dict)
    stagger_s: float = 0.0
    simulated: frozenset[int] = frozenset()
    _begun_s: dict[str, float] = field(default_factory=dict)
    _last_s: float = -APART_S

    def choose(
        self, waiting: Collection[int], running: AbstractSet[int], now_s: float, *, repeatable: Collection[int] = ()
    ) -> int | None:
        """Return the drive that may begin now. None means that no drive may begin.

        Args:
            running: the drives that are being measured now, including those of other processes.
            repeatable: the drives that were measured once, and that will be measured once more and alone after all
                other drives.
        """
        if not waiting and not running:
            return next(iter(repeatable), None)
        group = next((one for one in self.groups if not set(one).isdisjoint(waiting)), ())
        if running - set(group):
            return None
        for number in group:
            if number in waiting and self._is_apart(number, now_s):
                return number
        return None

    def begin(self, number: int, now_s: float) -> None:
        """Record that a drive begins."""
        if number not in self.simulated:
            self._last_s = now_s
        self._begun_s |= dict.fromkeys(self._parts(number), now_s)

    def _is_apart(self, number: int, now_s: float) -> bool:
        if number not in self.simulated and now_s - self._last_s < APART_S:
            return False
        began_s = (self._begun_s[part] for part in self._parts(number) if part in self._begun_s)
        return all(now_s - at_s >= self.stagger_s for at_s in began_s)

    def _parts(self, number: int) -> frozenset[str]:
        return self.parts.get(number) or frozenset({""})


# Effects of the neighbours on a drive. With --alone-again, tkperf measures a drive with such an effect once more.
_DOUBTFUL = (SharingState.SLOWED, SharingState.OVER_BUDGET)
STRANGERS_EVERY_S = 5.0
# tkperf reads each drive for this time in s, first alone and then together with the other drives, to compare the rates.
READS_S = 10


class Conductor:
    """A batch whose drives are held and confirmed. Call ``read_together`` before the first ``go_on``."""

    def __init__(
        self,
        selection: DriveSelection,
        processes: DriveProcesses,
        neighbours: Neighbours,
        ledger: Ledger,
        *,
        warn: Callable[[str], None],
    ) -> None:
        """Write the confirmed drives to the ledger. After this call, a fault of one drive does not affect the other
        drives.

        Args:
            warn: a function that is called with texts that the user must see. The function does not wait.

        Raises:
            RunFileError: the ledger cannot be written.
        """
        ledger.write(DrivesConfirmed(utc=now_utc(), drives=tuple(one.shown for one in processes.members)))
        self._selection, self._processes, self._neighbours = selection, processes, neighbours
        self._ledger, self._warn = ledger, warn
        self._members = {one.number: one for one in processes.members}
        self._waiting = list(self._members)
        self._places: dict[int, BatchPlace] = {}
        self._turns = Turns(
            groups=neighbours.numbers,
            parts=neighbours.parts,
            stagger_s=selection.request.stagger_s,
            simulated=selection.request.simulated,
        )
        self._strangers = selection.running
        self._is_ledger_lost = False
        self._began_s = self._looked_s = time.monotonic()

    def find_ledger(self) -> Path:
        """Return the path of the ledger. The path has changed if another file has received the name of the ledger."""
        return self._ledger.path

    def read_together(self, on_read: Callable[[int, float], None]) -> None:
        """Read the drives of each group alone and together, if all drives of the group contain data. Reads of unwritten
        blocks are not suitable for the comparison, because an SSD answers such reads without reading its flash.

        Args:
            on_read: a function that is called before a group is read, with the number of its drives and the time in s
                that the reads take.
        """
        selection = self._selection
        if not selection.request.compare_reads or selection.resumed or selection.running:
            return
        by_name = {one.shown.name: one for one in self._processes.members if one.waits}
        for group in self._neighbours.groups:
            members = [by_name[name] for name in group.drives if name in by_name]
            if len(members) < 2 or not all(one.shown.data for one in members):
                continue
            on_read(len(members), READS_S * (len(members) + 1))
            alone: dict[str, tuple[float, ...]] = {}
            for member in members:
                self._processes.read([member], READS_S)
                alone |= _rates([member])
            self._processes.read(members, READS_S)
            self._neighbours.add_reads(alone, _rates(members))
        for one in self._neighbours.slowed:
            slower = 1 - (one.ratio or 0)
            text = f"{one.drive} reads {slower:.0%} slower together with the others than alone"
            self._note(LedgerNote(text=text))

    def go_on(self, timeout_s: float) -> bool:
        """Start the next drive, or wait for messages from the processes for up to ``timeout_s``. Return False after all
        processes have ended.
        """
        self._keep_ledger()
        for number in [one for one in self._waiting if self._members[one].has_gone]:
            self._waiting.remove(number)
            self._note_end(self._members[number])
        held = {number for number, one in self._members.items() if not one.has_gone}
        if not held:
            return False
        repeatable = {number for number in held if self._members[number].repeats}
        running = held - set(self._waiting) - repeatable
        now_s = time.monotonic()
        if self._strangers and now_s - self._looked_s >= STRANGERS_EVERY_S:
            self._looked_s = now_s
            self._strangers = self._find_strangers()
        others = running | self._strangers
        now_s -= self._began_s
        chosen = self._turns.choose(self._waiting, others, now_s, repeatable=sorted(repeatable))
        if chosen is None or not self._begin(self._members[chosen]):
            self._processes.listen(timeout_s)
        elif chosen in self._waiting:
            self._waiting.remove(chosen)
            self._turns.begin(chosen, now_s)
        return True

    def note_ends(self) -> None:
        """Record the ends of killed processes, which could not record their ends themselves."""
        log = self._ledger.read()
        begun = log.began.keys() - log.ended.keys()
        for member in self._processes.members:
            if member.has_gone and member.number in begun:
                self._note_end(member)

    def _find_strangers(self) -> frozenset[int]:
        """Return the drives that are still running because an earlier process of the batch started them."""
        return self._selection.running & {
            drive.shown.number for drive in self._ledger.read_state().drives if drive.stage is DriveStage.RUNNING
        }

    def _begin(self, member: DriveProcess) -> bool:
        """Tell the process of a drive to begin, or to measure the drive once more and alone. Return whether this order
        was written to the ledger. If the order could not be written, the run does not begin.
        """
        self._places = self._places or self._neighbours.places()
        place = self._places[member.number]
        if member.repeats:
            place = replace(place, others=0, sharing=SharingState.ALONE, cpus=())
        began = DriveBegan(
            number=member.number,
            utc=now_utc(),
            pid=member.pid,
            pid_started=find_start(member.pid),
            place=place,
            again=member.repeats,
        )
        if not self._note(began):
            return False
        request = self._selection.request
        go = Go(
            digest=member.shown.digest,
            answer=member.shown.confirm_id,
            place=place,
            siblings=(os.getpid(), *(one.pid for one in self._processes.members if one is not member)),
            repeatable=request.alone_again and place.sharing in _DOUBTFUL and not self._selection.resumed,
        )
        self._processes.begin(member, go)
        return True

    def _keep_ledger(self) -> None:
        """Restore the ledger if the file with its name was removed or replaced. The open file still contains the valid
        ledger.
        """
        before = self._ledger.path
        try:
            if self._ledger.keep_name():
                self._warn(
                    f"{before} was removed or replaced: the batch goes on in {self._ledger.path}, with all of it"
                )
            self._is_ledger_lost = False
        except RunFileError as error:
            if not self._is_ledger_lost:
                self._warn(f"{before} was removed or replaced: {error}; the drives are measured nevertheless")
            self._is_ledger_lost = True

    def _note_end(self, member: DriveProcess) -> None:
        if (ended := member.ended) is not None:
            self._note(
                DriveEnded(
                    number=member.number, utc=now_utc(), pid=member.pid, exit_code=ended.exit_code, text=ended.text
                )
            )

    def _note(self, line: Line) -> bool:
        """Write a line, and return whether it was written. A full disk does not end a batch. Actions that require the
        line wait until it can be written.
        """
        did = self._ledger.keeps_up
        try:
            self._ledger.write(line)
        except RunFileError as error:
            if did:
                self._warn(f"{error}; no drive begins before that is possible")
        return self._ledger.keeps_up


def _rates(members: Sequence[DriveProcess]) -> dict[str, tuple[float, ...]]:
    """Return the rates of the drives that could be read. The name of the run is the key."""
    return {one.shown.name: one.reads.bytes_per_s for one in members if one.reads is not None and one.reads.bytes_per_s}
