"""Functions that build values for many tests."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from tkperf import procedures
from tkperf.analysis.details import ON_PAGE, build_details, loads_by_test, with_latency_bands
from tkperf.analysis.over_seconds import with_seconds
from tkperf.analysis.results import CellResult, RoundResult, RunResult, SectionResult
from tkperf.analysis.run_results import analyse
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import PRESET_MODELS
from tkperf.model.histogram import BUCKETS, Histogram, bucket_of_ns
from tkperf.model.measurement import IoStats
from tkperf.model.record import PurgeResult
from tkperf.model.run_info import NO_USER_FACTS, RunInfo, UserFacts
from tkperf.model.workload import Access, Workload
from tkperf.page.page import ReportView
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.procedures.profiles import Profile
from tkperf.runfile.reader import RunFile, read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import Observer
from tkperf.runner.runner import RunParts, execute_run

latency_lists = st.lists(st.integers(min_value=1, max_value=10**9), min_size=1, max_size=60)


def io_stats(latencies_ns: list[int], block_size_bytes: int = 4096) -> IoStats:
    """Return statistics of I/Os with exactly these latencies."""
    dense = np.zeros(BUCKETS, dtype=np.int64)
    for value in latencies_ns:
        dense[bucket_of_ns(value)] += 1
    return IoStats(
        ios=len(latencies_ns),
        bytes=len(latencies_ns) * block_size_bytes,
        latency_ios=len(latencies_ns),
        latency_sum_ns=sum(latencies_ns),
        latency_min_ns=min(latencies_ns, default=None),
        latency_max_ns=max(latencies_ns, default=None),
        histogram=Histogram.from_dense(dense),
    )


def run_info(**changes: object) -> RunInfo:
    """Return the facts of a run, with the given changes."""
    facts: dict[str, object] = {
        "name": "test",
        "suite": "ssd",
        "tkperf_version": "0",
        "fio_version": None,
        "ioengine": "simulated",
        "command_line": ("tkperf", "ssd"),
        "started_utc": "2026-01-01T00:00:00+00:00",
        "profile_name": "quick",
        "profile": {"title": "t"},
        "options": {},
        "device": {"model": "M", "capacity_bytes": 10**9},
        "hosts": ({},),
        "active_range_offset_bytes": 0,
        "active_range_length_bytes": 1 << 30,
    }
    return RunInfo(**(facts | changes))  # type: ignore[arg-type]


def work(read_percent: int = 0, block_size_bytes: int = 4096, *, jobs: int = 1, io_depth: int = 1) -> Workload:
    """Return a workload with random access."""
    return Workload(
        access=Access.RANDOM, read_percent=read_percent, block_size_bytes=block_size_bytes, jobs=jobs, io_depth=io_depth
    )


def at(section: SectionResult | RoundResult, read_percent: int, block_size_bytes: int) -> CellResult:
    """Return the cell with this mix and block size. The section must contain exactly one such cell."""
    (found,) = [
        cell
        for cell in section.cells
        if (cell.workload.read_percent, cell.workload.block_size_bytes) == (read_percent, block_size_bytes)
    ]
    return found


@dataclass
class FreeTarget:
    """A target that records what tkperf does to the device."""

    acts: list[str] = field(default_factory=list)

    def recheck(self) -> None:
        self.acts.append("recheck")

    def make_ready_to_fill(self) -> None:
        """Do no work, because this target is always ready."""

    def make_ready(self, **_: object) -> None:
        """Do no work, because this target is always ready."""

    def purge(self, **_: object) -> PurgeResult:
        self.acts.append("purge")
        return PurgeResult(method="test")


def simulate(
    folder: Path,
    info: RunInfo,
    preset: str = "sata-ssd",
    profile: str | Profile = "quick",
    suite: Mapping[str, procedures.Test] | None = None,
    observer: Observer = lambda _: None,
) -> RunResult:
    """Measure a simulated drive and store the run in ``run.tkperf``. Without a suite, the default tests for
    SSDs run.
    """
    by_default = (test for test in SSD_TESTS.values() if test.by_default)
    engine = SimulatedEngine(PRESET_MODELS[preset], info.active_range_length_bytes or 0)
    writer = RunFileWriter(folder / "run.tkperf")
    execute_run(
        RunParts(
            info=info,
            tests=tuple(by_default if suite is None else suite.values()),
            profile=load_profile(profile) if isinstance(profile, str) else profile,
            engine=engine,
            target=FreeTarget(),
            observers=(writer, observer),
            clock=engine.clock,
        )
    )
    writer.close()
    return analyse(read_run(folder / "run.tkperf"))


def view_of(path: Path, user_facts: UserFacts = NO_USER_FACTS) -> ReportView:
    """Return the report of a run file as data, including the details of its cells."""
    from tkperf.page.view import build_view  # this module is imported here because only tests of reports need it

    with RunFile(path) as run_file:
        record = run_file.record()
        result = with_seconds(analyse(record), record, run_file.seconds)
        seconds = {test.name: run_file.seconds(test) for test in record.tests}
        details = build_details(result, record, seconds)
        details = with_latency_bands(details, result, run_file.samples, ON_PAGE)
    loads = loads_by_test(record, seconds)
    return build_view(result, details=details, loads_of_tests=loads, telemetry=record.telemetry, user_facts=user_facts)


def number_of(fact: str) -> float:
    """Return the number at the beginning of a fact. The report rounds this number. The number of digits depends on the
    width of the number's interval.
    """
    return float(fact.split(" ", maxsplit=1)[0].replace(",", ""))


def forget_renderers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the loaded renderers from Python's list of modules. The next import then loads the renderers again,
    without a package that a test has hidden.

    The module ``reports`` is kept, because tests patch this module by its name. ``reports`` loads the other renderers
    when it is called.
    """
    for name in list(sys.modules):
        if name.startswith("tkperf.render.") and name != "tkperf.render.reports":
            monkeypatch.delitem(sys.modules, name)
