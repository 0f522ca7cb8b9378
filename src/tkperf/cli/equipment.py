"""What a run is made with: the engine and the target, under their permits, and their clearing up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tkperf.cli.consent import ask_permits
from tkperf.cli.options import RunOptions
from tkperf.cli.preparation import Preparation
from tkperf.device.counters import watching
from tkperf.device.identity import TargetKind
from tkperf.device.permit import ErasePermit
from tkperf.device.target import NOT_PURGED, DriveTarget
from tkperf.device.write_cache import WriteCache, restoring
from tkperf.disturbance import Counters
from tkperf.engine import Engine
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_setup import ChosenEngine, choose_ioengine, find_fio_version
from tkperf.engine.simulated import SimulatedEngine, find_preset
from tkperf.record import PurgeResult, RunWarning
from tkperf.runner import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """``write_cache`` says in words how the drive's cache is set during the run.

    ``instead_of``: which I/O engine does not work here, and why. ``counters`` look at the device,
    ``fill_counters`` at the members of a set while they are filled.
    """

    engine: Engine
    target: Target
    ioengine: str
    clock: Callable[[], float]
    write_cache: str
    instead_of: str | None = None
    counters: Counters | None = None
    fill_counters: Counters | None = None

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        if self.instead_of is None:
            return ()
        text = f"{self.ioengine} issues the I/O, because {self.instead_of}"
        return (RunWarning(code="ioengine", text=text),)


@contextmanager
def open_equipment(options: RunOptions, preparation: Preparation) -> Iterator[Equipment]:
    """Ask, set up, and put everything back in the end, however the run ends.

    Raises:
        RefusedError, DeviceError, EngineError: the run cannot begin, or the device could not be
            put back.
    """
    if preparation.identity.kind is TargetKind.SIMULATED:
        yield _simulation(options, preparation)
        return
    version = find_fio_version()
    (permit,) = ask_permits(options, [preparation.identity], created=preparation.created)
    try:
        cache = WriteCache(permit.redeem(), preparation.write_cache)
        with restoring(cache), watching(preparation.identity) as counters:
            disclosed = cache.apply()
            ioengine = find_ioengine(options, preparation, permit)
            yield Equipment(
                engine=fio_engine(permit, preparation, ioengine.name, version),
                target=DriveTarget(permit, preparation.purge, cache),
                ioengine=ioengine.name,
                clock=time.monotonic,
                write_cache=disclosed,
                instead_of=ioengine.instead_of,
                counters=counters,
            )
    finally:
        permit.release()


def find_ioengine(
    options: RunOptions, preparation: Preparation, permit: ErasePermit
) -> ChosenEngine:
    return choose_ioengine(
        permit.path,
        preparation.identity.logical_block_bytes,
        options.ioengine,
        jobs=preparation.profile.demand.jobs,
        io_depth=preparation.profile.demand.io_depth,
    )


def fio_engine(
    permit: ErasePermit,
    preparation: Preparation,
    ioengine: str,
    version: str,
    *,
    fill_permits: Sequence[ErasePermit] = (),
) -> FioEngine:
    return FioEngine(
        permit,
        ioengine=ioengine,
        active_range=preparation.active_range,
        version=version,
        cpus=len(os.sched_getaffinity(0)),
        fill_permits=fill_permits,
    )


def _simulation(options: RunOptions, preparation: Preparation) -> Equipment:
    model = find_preset(preparation.identity.path.removeprefix("sim:"))
    engine = SimulatedEngine(model, preparation.active_range.length_bytes)
    return Equipment(
        engine=engine,
        target=_SimulatedTarget(engine, options.no_purge),
        ioengine="simulated",
        clock=engine.clock,
        write_cache="simulated",
    )


class _SimulatedTarget:
    def __init__(self, engine: SimulatedEngine, no_purge: bool) -> None:
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
