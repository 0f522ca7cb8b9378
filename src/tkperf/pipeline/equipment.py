"""Equipment of a run: the engine and the target, under their permits."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tkperf.device.inspection import DeviceFacts
from tkperf.device.permit import ErasePermit
from tkperf.engine import Engine
from tkperf.engine.device_jobs import RUN_SEED_BITS, DeviceJobs, Mapped, Seeds
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_setup import ChosenEngine, choose_clock, choose_ioengine
from tkperf.model.disturbance.io import Counters
from tkperf.model.record import RunWarning
from tkperf.model.telemetry.reading import DriveFacts, Telemetry
from tkperf.pipeline.fitting import Fitted
from tkperf.runner.runner import RunTarget


@dataclass(slots=True, kw_only=True)
class Equipment:
    """Everything needed to execute a run, while it is open.

    Attributes:
        fitted, facts: describe the measured device; for a RAID set they are complete only after it is made.
        write_cache: setting of the drive's cache during the run, in words.
        instead_of: the I/O engine that does not work here, and why.
        counters: look at the device; ``fill_counters`` look at the members of a set during a fill.
        telemetry: reads the drives' own logs; ``drives``: facts about these logs from before the run.
        began: whether a run file was begun: a device made for the run then stays.
    """

    engine: Engine
    target: RunTarget
    ioengine: str
    clock: Callable[[], float]
    write_cache: str
    fitted: Fitted
    facts: DeviceFacts
    instead_of: str | None = None
    counters: Counters | None = None
    fill_counters: Counters | None = None
    began: bool = False
    telemetry: Telemetry | None = None
    drives: tuple[DriveFacts, ...] = ()

    @property
    def seed(self) -> int | None:
        """Seed of fio's random numbers in this run; None for a simulated drive."""
        return self.engine.seeds.run_seed if isinstance(self.engine, FioEngine) else None

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        if self.instead_of is None:
            return ()
        text = f"{self.ioengine} issues the I/O, because {self.instead_of}"
        return (RunWarning(code="ioengine", text=text),)


def find_ioengine(wanted: str | None, fitted: Fitted, permit: ErasePermit) -> ChosenEngine:
    """Return an I/O engine that reads the permitted device at the heaviest load of the chosen tests.

    Raises:
        EngineError: no engine does.
    """
    heaviest = fitted.heaviest
    return choose_ioengine(
        permit.path,
        permit.identity.logical_block_bytes,
        wanted,
        jobs=heaviest.jobs,
        io_depth=heaviest.io_depth,
    )


def fio_equipment(
    permit: ErasePermit,
    target: RunTarget,
    fitted: Fitted,
    facts: DeviceFacts,
    chosen: ChosenEngine,
    *,
    version: str,
    write_cache: str,
    fill_permits: Sequence[ErasePermit] = (),
    mapped: Mapped | None = None,
) -> Equipment:
    """Return the equipment with fio as the engine on a permitted device, with the best clock of this host.

    Args:
        chosen: fio's I/O engine, as ``find_ioengine`` found it.
        version: fio's.
    """
    clock = choose_clock()
    jobs = DeviceJobs(
        permit,
        ioengine=chosen.name,
        active_range=fitted.active_range,
        fill_permits=fill_permits,
        mapped=mapped,
        clocksource=clock.clocksource,
    )
    engine = FioEngine(
        jobs,
        version=version,
        cpus=len(os.sched_getaffinity(0)),
        seeds=Seeds(secrets.randbits(RUN_SEED_BITS)),
        io_clock=clock.words,
    )
    return Equipment(
        engine=engine,
        target=target,
        ioengine=chosen.name,
        instead_of=chosen.instead_of,
        clock=time.monotonic,
        write_cache=write_cache,
        fitted=fitted,
        facts=facts,
    )


def go_on_with_seed(engine: Engine, run_seed: int | None, *, resumptions: int) -> None:
    """Draw addresses from the seed of the resumed run; if it has none, from a fresh seed."""
    if isinstance(engine, FioEngine) and run_seed is not None:
        engine.seeds.go_on(run_seed, resumptions=resumptions)
