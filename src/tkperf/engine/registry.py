"""The engines for real devices, by name. A new engine is a module, an entry here, and a row in test_conformance.py."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from tkperf.engine import PROBE_S, ChosenEngine, Engine, RunSeeds, fio_setup
from tkperf.model.choices import IO_ENGINES
from tkperf.model.workload import ActiveRange
from tkperf.system.process import find_program

if TYPE_CHECKING:
    from tkperf.device.permit import ErasePermit
    from tkperf.engine.device_jobs import Mapped


class DeviceEngine(Protocol):
    """An engine for real devices before a run: what this host has of the engine, and how a run starts it.

    Attributes:
        programs: the programs without which the engine cannot measure, with their purpose.
        ioengines: the interfaces to the kernel that a request may name.
    """

    programs: Mapping[str, str]
    ioengines: tuple[str, ...]

    def find_version(self) -> str:
        """Return the version of the installed program.

        Raises:
            EngineError: the program is missing, too old, or reports no version.
        """
        ...

    def choose_ioengine(
        self,
        path: str,
        block_bytes: int,
        wanted: str | None,
        *,
        jobs: int,
        io_depth: int,
        io_depths: Collection[int] = (),
        direct: bool = True,
    ) -> ChosenEngine:
        """Return the first interface to the kernel with which the engine can read the device.

        Args:
            jobs, io_depth: the heaviest load of the run.
            io_depths: the queue depths of all loads of the run. The engine must keep each of them.
            direct: bypass the page cache, as runs do.

        Raises:
            UsageError: ``wanted`` is none of the interfaces.
            EngineError: no interface works; the message contains the reasons.
        """
        ...

    def find_readable_file(self) -> str | None:
        """Return a file on which ``choose_ioengine`` can be tried without a device; None: there is no such file."""
        ...

    def find_rounding(self) -> str | None:
        """Return the version if the installed program rounds queue depths up; None if it keeps them.

        Raises:
            EngineError: as for ``find_version``.
        """
        ...

    def read_bytes_per_s(self, path: str, capacity_bytes: int, *, seconds: int = PROBE_S) -> float:
        """Return the rate of sequential reads from the start of the device, in bytes per second.

        Raises:
            EngineError: the engine cannot read the device; the message contains the reason.
        """
        ...

    def start(
        self,
        permit: ErasePermit,
        *,
        version: str,
        ioengine: str,
        active_range: ActiveRange,
        fill_permits: Sequence[ErasePermit] = (),
        mapped: Mapped | None = None,
    ) -> tuple[Engine, RunSeeds | None]:
        """Return the engine on a permitted device, and its seeds. It starts no I/O yet.

        The seeds are None if the engine draws no random numbers.

        Args:
            version: as ``find_version`` returned it.
            ioengine: as ``choose_ioengine`` returned it.
            fill_permits: members of a set, which a fill writes instead of the set.
            mapped: a mapping of the device's segments.
        """
        ...


FIO = "fio"


class _Fio:
    """fio, which runs on this host."""

    programs: Mapping[str, str] = {
        FIO: "all I/O",
        "setpriv": "ending fio with tkperf",
        "flock": "handing over between steps",
    }
    ioengines: tuple[str, ...] = IO_ENGINES

    find_version = staticmethod(fio_setup.find_fio_version)
    choose_ioengine = staticmethod(fio_setup.choose_ioengine)
    find_rounding = staticmethod(fio_setup.find_rounding)
    read_bytes_per_s = staticmethod(fio_setup.read_bytes_per_s)

    def find_readable_file(self) -> str | None:
        return find_program(FIO)

    def start(
        self,
        permit: ErasePermit,
        *,
        version: str,
        ioengine: str,
        active_range: ActiveRange,
        fill_permits: Sequence[ErasePermit] = (),
        mapped: Mapped | None = None,
    ) -> tuple[Engine, RunSeeds | None]:
        from tkperf.engine.device_jobs import RUN_SEED_BITS, DeviceJobs, Seeds  # noqa: PLC0415 - only runs need them
        from tkperf.engine.fio import FioEngine  # noqa: PLC0415

        clock = fio_setup.choose_clock()
        seeds = Seeds(secrets.randbits(RUN_SEED_BITS))
        jobs = DeviceJobs(
            permit,
            ioengine=ioengine,
            active_range=active_range,
            fill_permits=fill_permits,
            mapped=mapped,
            clocksource=clock.clocksource,
        )
        cpus = len(os.sched_getaffinity(0))
        engine = FioEngine(jobs, version=version, cpus=cpus, seeds=seeds, io_clock=clock.words)
        return engine, seeds


ENGINES: Mapping[str, DeviceEngine] = {FIO: _Fio()}


def find_engine(name: str = FIO) -> DeviceEngine:
    """Return an engine for real devices."""
    return ENGINES[name]
