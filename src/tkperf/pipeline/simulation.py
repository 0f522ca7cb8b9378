"""A simulated drive for a rehearsal. No data can be lost, so tkperf asks no question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.inspection import inspect_device
from tkperf.device.targets import NOT_PURGED
from tkperf.engine import Engine
from tkperf.engine.registry import find_engine
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import DiskModel, DriveModel, find_preset
from tkperf.model.choices import SIMULATED
from tkperf.model.errors import RunFileError, UsageError
from tkperf.model.phases import Fill
from tkperf.model.record import NO_PURGE, LogEntry, PurgeRecord, PurgeResult, RunNote, StepKind, StepRecord
from tkperf.model.workload import Step
from tkperf.pipeline.consent import Consent
from tkperf.pipeline.device_under_test import NO_PURGE_LINE, DeviceUnderTest, Equipment
from tkperf.pipeline.fitted_profile import FittedProfile, refuse_segments
from tkperf.pipeline.run_request import RunRequest
from tkperf.procedures.profiles import Profile


def refuse_simulated(device: str) -> None:
    """Refuse a simulated drive for commands that examine devices.

    Raises:
        UsageError: the device is a simulated drive.
    """
    if device.startswith(SIMULATED):
        raise UsageError(
            f"{device} is a simulated drive, which has no device and no host settings to show. Rehearse a run on it "
            f"with 'tkperf ssd NAME {device}'"
        )


def identify_simulated(device: str) -> DeviceIdentity:
    """Return the identity of a simulated drive."""
    preset = device.removeprefix(SIMULATED)
    model = find_preset(preset)
    return DeviceIdentity(
        path=device,
        kind=TargetKind.SIMULATED,
        capacity_bytes=model.capacity_bytes,
        logical_block_bytes=model.logical_block_bytes,
        model=f"simulated {preset}",
        rotational=isinstance(model, DiskModel),
    )


class SimulatedDriveUnderTest(DeviceUnderTest):
    """A simulated drive (``sim:PRESET``) as the device under test."""

    def __init__(self, request: RunRequest, in_segments: Profile | None = None) -> None:
        """Find the model of the preset. ``in_segments`` is the profile of the run if the tests of this profile use only
        segments of the drive. Otherwise ``in_segments`` is None.
        """
        _refuse_what_is_for_devices(request)
        self._model = find_preset(request.device.removeprefix(SIMULATED))
        self._no_purge = request.no_purge
        self._wanted = request.telemetry
        self.warnings = tuple(_find_mismatch(request, self._model))
        if in_segments is not None:
            if isinstance(self._model, DiskModel):
                raise refuse_segments(in_segments, f"the model of {request.device} contains no seeks between segments")
            self.warnings += (
                RunNote(
                    code="preparation",
                    text=f"{in_segments.active_range}: a simulated flash drive does not model addresses, so "
                    "segments have no effect",
                ),
            )
        self.identity = identify_simulated(request.device)
        self.drives = (self.identity,)
        self.facts = inspect_device(self.identity)
        self.lines = (NO_PURGE_LINE,) if request.no_purge else ()

    @contextmanager
    def open(self, fitted: FittedProfile, consent: Consent) -> Iterator[Equipment]:
        engine = SimulatedEngine(self._model, fitted.active_range.length_bytes)
        yield Equipment(
            engine=engine,
            target=_SimulatedTarget(engine, no_purge=self._no_purge),
            ioengine="simulated",
            clock=engine.clock,
            write_cache="simulated",
            fitted=fitted,
            facts=self.facts,
            telemetry=engine.telemetry if self._wanted else None,
            drives=engine.telemetry.facts if self._wanted else (),
        )


def _find_mismatch(request: RunRequest, model: DriveModel) -> Iterator[RunNote]:
    """Yield a warning if the suite is intended for another kind of drive, such as the hard disk suite on a simulated
    SSD.
    """
    text = ""
    if isinstance(model, DiskModel) and request.suite == "ssd":
        text = f"{request.device} models a hard disk, which 'tkperf hdd' measures area by area"
    elif not isinstance(model, DiskModel) and request.suite == "hdd":
        text = f"{request.device} models an SSD, which has no areas to compare: 'tkperf ssd' measures its steady state"
    if text:
        yield RunNote(code="preparation", text=text)


def relive(engine: Engine, log: Sequence[LogEntry], fitted: FittedProfile) -> None:
    """Bring a simulated drive into its state at the end of a run's log. For this, the whole run is simulated again.

    The model is deterministic, so the results are the same. Steps that are missing from the log did not happen.
    """
    if not isinstance(engine, SimulatedEngine):
        return
    for entry in log:
        done = entry.record
        if isinstance(done, PurgeRecord) and done.method != NO_PURGE:
            engine.wait_until(done.started_s)
            engine.purge()
        if isinstance(done, StepRecord):
            engine.wait_until(done.started_s)
            _relive_step(engine, entry.sequence, done, fitted)
    engine.telemetry.take()  # the readings are discarded, because the log already contains them


def _relive_step(engine: SimulatedEngine, sequence: int, step: StepRecord, fitted: FittedProfile) -> None:
    recorded = step.measurement
    if step.kind is StepKind.FILL:
        named_bytes = fitted.profile.preconditioning.length_bytes
        passes = recorded.write.bytes // (named_bytes or fitted.active_range.length_bytes)
        fill = Fill(section=step.section, workload=step.workload, passes=passes, length_bytes=named_bytes)
        execution = engine.fill(fill, then=None, on_sample=lambda *_: None)
    else:
        assert step.planned_s is not None, "only fills end by amount"
        again = Step(workload=step.workload, duration_s=step.planned_s)
        execution = engine.measure(again, then=None, on_sample=lambda *_: None)
    found = execution.measurement
    for before, now in ((recorded.read, found.read), (recorded.write, found.write)):
        if (before.ios, before.bytes, before.latency_sum_ns) != (now.ios, now.bytes, now.latency_sum_ns):
            raise RunFileError(
                f"row {sequence} of the log cannot be reproduced, because this simulated drive differs "
                "from the drive of the run. Start a new run"
            )


def _refuse_what_is_for_devices(request: RunRequest) -> None:
    for option, value, why in (
        ("--size", request.size, "its model determines the capacity, and no file is created"),
        ("--engine", request.ioengine, f"no {find_engine().name} runs on it"),
        ("--purge", request.purge_method, "its model determines the purge"),
        ("--purge-command", request.purge_command, "no program can purge it"),
        ("--tune", request.tune or None, "it depends on no setting of the host"),
    ):
        if value is not None:
            raise UsageError(f"{request.device} is a simulated drive: {why}. Omit {option}")


class _SimulatedTarget:
    def __init__(self, engine: SimulatedEngine, *, no_purge: bool) -> None:
        self._engine = engine
        self._no_purge = no_purge

    def recheck(self) -> None:
        """Do nothing, because the state of a simulated drive cannot change between two checks."""

    def make_ready_to_fill(self) -> None:
        """Do nothing, because the drive is always ready."""

    def make_ready(self, **_: object) -> None:
        """Do nothing, because the drive is always ready."""

    def purge(self, **_: object) -> PurgeResult:
        if self._no_purge:
            return NOT_PURGED
        self._engine.purge()
        return PurgeResult(method="simulated")
