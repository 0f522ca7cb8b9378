"""A simulated drive to rehearse with: nothing to lose, so nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.inspection import DeviceFacts, inspect_device
from tkperf.device.target import NOT_PURGED
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import DiskModel
from tkperf.engine.simulation.presets import find_preset
from tkperf.errors import UsageError
from tkperf.pipeline.consent import Consent
from tkperf.pipeline.equipment import Equipment
from tkperf.pipeline.fitting import Fitted, refuse_segments
from tkperf.pipeline.request import RunRequest
from tkperf.profiles import Profile
from tkperf.record import PurgeResult, RunWarning

PREFIX = "sim:"


class SimulatedSubject:
    """``sim:PRESET``."""

    confirm_id: str | None = None
    overwritten_by: str | None = None
    filled_bytes: int | None = None
    warnings: tuple[RunWarning, ...] = ()

    def __init__(self, request: RunRequest, in_segments: Profile | None = None) -> None:
        """``in_segments``: the profile, if its tests touch segments only.

        Raises:
            UsageError: there is no such preset, an option is for real devices alone, or the model
                of a hard disk would need to know where segments lie.
        """
        _refuse_what_is_for_devices(request)
        preset = request.device.removeprefix(PREFIX)
        self._model = find_preset(preset)
        self._no_purge = request.no_purge
        if in_segments is not None:
            if isinstance(self._model, DiskModel):
                raise refuse_segments(
                    in_segments, f"{request.device} has no places to seek between"
                )
            self.warnings = (
                RunWarning(
                    code="preparation",
                    text=f"{in_segments.active_range}: a simulated flash drive knows no addresses, so "
                    "that segments and one piece are the same to it",
                ),
            )
        self.identity = DeviceIdentity(
            path=request.device,
            kind=TargetKind.SIMULATED,
            capacity_bytes=self._model.capacity_bytes,
            logical_block_bytes=self._model.logical_block_bytes,
            model=f"simulated {preset}",
            rotational=isinstance(self._model, DiskModel),
        )
        self.facts: DeviceFacts = inspect_device(self.identity)
        self.lines: tuple[tuple[str, str], ...] = (
            (("purge", "none (--no-purge)"),) if request.no_purge else ()
        )

    @contextmanager
    def open(self, fitted: Fitted, consent: Consent) -> Iterator[Equipment]:
        engine = SimulatedEngine(self._model, fitted.active_range.length_bytes)
        yield Equipment(
            engine=engine,
            target=_SimulatedTarget(engine, no_purge=self._no_purge),
            ioengine="simulated",
            clock=engine.clock,
            write_cache="simulated",
            fitted=fitted,
            facts=self.facts,
        )


def _refuse_what_is_for_devices(request: RunRequest) -> None:
    for option, value in (
        ("--size", request.size),
        ("--engine", request.ioengine),
        ("--purge", request.purge_method),
        ("--purge-command", request.purge_command),
    ):
        if value is not None:
            raise UsageError(f"{request.device} is a simulated drive: leave {option} out")


class _SimulatedTarget:
    def __init__(self, engine: SimulatedEngine, *, no_purge: bool) -> None:
        self._engine = engine
        self._no_purge = no_purge

    def recheck(self) -> None:
        """Nothing can change."""

    def make_ready_to_fill(self) -> None:
        """Always is."""

    def make_ready(self, **_: object) -> None:
        """Always is."""

    def purge(self, **_: object) -> PurgeResult:
        if self._no_purge:
            return NOT_PURGED
        self._engine.purge()
        return PurgeResult(method="simulated")
