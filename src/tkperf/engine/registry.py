"""The engines for real devices, by name. A new engine requires a module, an entry in this registry, and a row in
test_conformance.py.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping

from tkperf.engine import Engine, RunSeeds, fio_setup
from tkperf.engine.device_engine import DeviceEngine, PermittedDevice
from tkperf.model.choices import FIO_IO_ENGINES
from tkperf.model.errors import not_known
from tkperf.system.process import FIO_VARIABLE, find_named_fio, find_program

FIO = "fio"


class _Fio:
    """The engine that runs fio on this host."""

    name = FIO
    programs: Mapping[str, str] = {
        FIO: "all I/O",
        "setpriv": "ending fio with tkperf",
        "flock": "handing over between steps",
    }
    ioengines: tuple[str, ...] = FIO_IO_ENGINES
    variable = FIO_VARIABLE

    find_version = staticmethod(fio_setup.find_fio_version)
    find_limits = staticmethod(fio_setup.find_limits)
    choose_ioengine = staticmethod(fio_setup.choose_ioengine)
    refuse_io = staticmethod(fio_setup.refuse_io)
    find_rounding = staticmethod(fio_setup.find_rounding)
    read_bytes_per_s = staticmethod(fio_setup.read_bytes_per_s)

    find_named_program = staticmethod(find_named_fio)

    def find_readable_file(self) -> str | None:
        return find_program(FIO)

    def start(self, device: PermittedDevice, *, version: str) -> tuple[Engine, RunSeeds | None]:
        from tkperf.engine.device_jobs import RUN_SEED_BITS, DeviceJobs, Seeds  # noqa: PLC0415 - only runs need them
        from tkperf.engine.fio import FioEngine  # noqa: PLC0415

        clock = fio_setup.choose_clock()
        seeds = Seeds(secrets.randbits(RUN_SEED_BITS))
        jobs = DeviceJobs(device, clocksource=clock.clocksource)
        cpus = len(os.sched_getaffinity(0))
        engine = FioEngine(jobs, version=version, cpus=cpus, seeds=seeds, io_clock=clock.words)
        return engine, seeds


ENGINES: Mapping[str, DeviceEngine] = {FIO: _Fio()}


def find_engine(ioengine: str | None = None) -> DeviceEngine:
    """Return the engine that has the kernel interface ``ioengine``. If ``ioengine`` is None, return the default engine
    of runs.

    Raises:
        UsageError: no engine has the interface.
    """
    if ioengine is None:
        return next(iter(ENGINES.values()))
    for engine in ENGINES.values():
        if ioengine in engine.ioengines:
            return engine
    raise not_known("I/O engine", ioengine, [each for engine in ENGINES.values() for each in engine.ioengines])
