"""The device under test (DUT). tkperf first examines the DUT. After consent, tkperf opens the DUT as equipment, which
consists of an engine and a target.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from tkperf.analysis.estimates import REFUSAL
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.inspection import DeviceFacts
from tkperf.device.kernel_watch import watching
from tkperf.device.permit import ErasePermit
from tkperf.device.survey import find_blind_spots
from tkperf.device.sysfs import HOST_AWARE, find_node, find_zone_model
from tkperf.device.targets import find_shortage
from tkperf.device.telemetry_watch import reading_logs
from tkperf.engine import ChosenEngine, Engine, RunSeeds
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.registry import find_engine
from tkperf.model.disturbance.io import Counters
from tkperf.model.errors import TkperfError
from tkperf.model.record import RunNote
from tkperf.model.telemetry.drive_reading import DriveFacts, Telemetry
from tkperf.model.units import format_capacity
from tkperf.pipeline.consent import Consent
from tkperf.pipeline.fitted_profile import FittedProfile, find_required_io
from tkperf.pipeline.run_request import RunRequest
from tkperf.runner.runner import RunTarget

# Codes of warnings that are always shown before consent, even if other warnings are not shown.
USERS_NOT_VISIBLE = "users-not-visible"
NO_ROOM = "no-room"
SAID_ALWAYS = (USERS_NOT_VISIBLE, NO_ROOM)
NO_PURGE_LINE = ("purge", "none (--no-purge)")


@dataclass(slots=True, kw_only=True)
class Equipment:
    """The objects that are necessary to execute a run. They exist as long as the device is open.

    Attributes:
        fitted, facts: the fitted profile and the facts of the measured device. For a RAID set, they are complete only
            after the set was created.
        write_cache: setting of the write cache during the run, in words.
        instead_of: the I/O engine that does not work here, and the reason.
        counters: the I/O counters of the device. ``fill_counters`` are the counters of the members of a RAID set, which
            are read during a fill.
        telemetry: the reader of the drives' logs. ``drives`` are facts about these logs from before the run.
        began: whether the run file contains the beginning of the run. In this case, a device that was created for the
            run is kept.
        siblings: processes that measure other drives of the same batch.
        seeds: the seeds of the engine's random numbers. None means that the engine uses no random numbers.
    """

    engine: Engine
    target: RunTarget
    ioengine: str
    clock: Callable[[], float]
    write_cache: str
    fitted: FittedProfile
    facts: DeviceFacts
    instead_of: str | None = None
    counters: Counters | None = None
    fill_counters: Counters | None = None
    began: bool = False
    telemetry: Telemetry | None = None
    drives: tuple[DriveFacts, ...] = ()
    siblings: tuple[int, ...] = ()
    seeds: RunSeeds | None = None

    @property
    def seed(self) -> int | None:
        """The seed of the engine's random numbers in this run. None means that the drive is simulated."""
        return None if self.seeds is None else self.seeds.run_seed

    def go_on_with_seed(self, run_seed: int | None, *, resumptions: int) -> None:
        """Draw random addresses from the seed of the resumed run. If the run has no seed, use a new seed."""
        if self.seeds is not None and run_seed is not None:
            self.seeds.go_on(run_seed, resumptions=resumptions)

    @property
    def warnings(self) -> tuple[RunNote, ...]:
        if self.instead_of is None:
            return ()
        text = f"{self.ioengine} issues the I/O, because {self.instead_of}"
        return (RunNote(code="ioengine", text=text),)


def find_ioengine(
    wanted: str | None, fitted: FittedProfile, permit: ErasePermit, *, shown_path: str | None = None
) -> ChosenEngine:
    """Return an I/O engine that can read the permitted device at the heaviest load of the chosen tests.

    ``shown_path`` is the name of the device in messages, because the path of the permit is valid only in this process.
    None means the path of the device's identity.
    """
    return find_engine(wanted).choose_ioengine(
        permit.path,
        permit.identity.logical_block_bytes,
        wanted,
        find_required_io(fitted.workloads),
        shown_path=shown_path or permit.identity.path,
    )


@contextmanager
def equipment_on(
    request: RunRequest,
    device: PermittedDevice,
    target: RunTarget,
    fitted: FittedProfile,
    facts: DeviceFacts,
    *,
    version: str,
    write_cache: str,
    drives: Sequence[DeviceIdentity] = (),
) -> Iterator[Equipment]:
    """Yield the equipment of a permitted device: an engine on the device, and the sources that tkperf reads in addition
    to the engine.

    Args:
        fitted: the fitted profile.
        version: the version of the engine.
        drives: the drives whose logs are read.
    """
    engine, seeds = find_engine(device.ioengine.name).start(device, version=version)
    members = [each.identity for each in device.member_permits]
    members_watched: AbstractContextManager[Counters | None] = watching(*members) if members else nullcontext()
    with (
        watching(fitted.identity) as counters,
        members_watched as fill_counters,
        reading_logs(*drives, wanted=request.telemetry) as telemetry,
    ):
        yield Equipment(
            engine=engine,
            seeds=seeds,
            target=target,
            ioengine=device.ioengine.name,
            instead_of=device.ioengine.instead_of,
            clock=time.monotonic,
            write_cache=write_cache,
            fitted=fitted,
            facts=facts,
            counters=counters,
            fill_counters=fill_counters,
            telemetry=telemetry if drives else None,
            drives=telemetry.facts,
        )


class DeviceUnderTest(ABC):
    """A device, file or RAID set to measure. The constructor examines the device and the host, and changes nothing.

    Attributes:
        identity: identity of the device. For a device that is not created yet, the identity contains the name, the
            sector size and the least capacity.
        facts: facts that are known before the device is opened.
        drives: the drives under load that the kernel shows: the device, or the members of a set.
        lines: description and purge method to show to the user, as pairs of a label and a text.
        confirm_id: text that confirms the erasure. None means that no data is lost.
        overwritten_by: name of the purge method if the method leaves the device fully written, instead of in the state
            of a new device.
        filled_bytes: bytes that one pass of preconditioning writes. None means the active range.
    """

    identity: DeviceIdentity
    facts: DeviceFacts
    drives: tuple[DeviceIdentity, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    confirm_id: str | None = None
    overwritten_by: str | None = None
    filled_bytes: int | None = None
    warnings: tuple[RunNote, ...] = ()

    @abstractmethod
    def open(self, fitted: FittedProfile, consent: Consent) -> AbstractContextManager[Equipment]:
        """Ask for consent and prepare the device. When the ``with`` block ends, restore the settings of the device,
        even after an error.

        Raises:
            RefusedError: the consent is missing, or the device is now in use. The device was not changed.
            DeviceError, EngineError: the run cannot begin, or the device could not be restored.
        """


def would_be_refused(reason: TkperfError) -> RunNote:
    """Return a refusal as a warning, for a plan that is not followed by a run."""
    return RunNote(code=REFUSAL, text=str(reason))


def find_unseen(identities: Sequence[DeviceIdentity]) -> tuple[RunNote, ...]:
    """Return a warning for each place where tkperf cannot see possible users of the devices. Each place occurs once."""
    spots = {spot.text: None for identity in identities for spot in find_blind_spots(identity)}
    return tuple(RunNote(code=USERS_NOT_VISIBLE, text=text) for text in spots)


def warn_of_room(identity: DeviceIdentity) -> tuple[RunNote, ...]:
    """Return a warning if a sparse file (the target, or the file of a loop device) cannot be written completely."""
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
    return (RunNote(code=NO_ROOM, text=text),)


def warn_of_zones(identity: DeviceIdentity) -> tuple[RunNote, ...]:
    """Return a warning if a disk is zoned and host-aware. Such a disk accepts random writes, but may have to move other
    data for them.
    """
    if identity.major_minor is None:
        return ()
    if find_zone_model(find_node(identity.major_minor)) != HOST_AWARE:
        return ()
    text = (
        f"{identity.path} is zoned and host-aware: random writes may be slower than on a disk "
        "without zones, and the disk may stay slow for minutes after the writes have ended"
    )
    return (RunNote(code="preparation", text=text),)


def warn_of_link(facts: DeviceFacts) -> tuple[RunNote, ...]:
    """Return a warning if the link of a device is slower than the device and its port permit."""
    if not facts.values.get("link_downgraded"):
        return ()
    text = (
        f"the device's link runs at {facts.values['link']}, it could do "
        f"{facts.values['link_fastest']}: this may limit the result"
    )
    return (RunNote(code="preparation", text=text),)
