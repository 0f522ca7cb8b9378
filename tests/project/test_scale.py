"""Runs of several days. The memory that tkperf needs for such a run grows only slightly with time, and the run files
are small enough to be sent by mail. The tests count bytes and do not measure time.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import tkperf
from tkperf.runner.events import Event, StepEnded


def script(name: str) -> ModuleType:
    """Import a script of bench/, which is not a package."""
    spec = spec_from_file_location(name, Path(__file__).parents[2] / f"bench/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


BENCH = script("three_days")
DAY_S = 86_400
# For each slice, tkperf keeps only the result: the totals, and a few buckets for percentiles.
MOST_KEPT_BYTES_A_SLICE = 2200


def at_slices(act: Callable[[int], None], *numbers: int) -> Callable[[Event], None]:
    """Return an observer that calls ``act`` when the slices with the given numbers are stored."""

    def observe(event: Event) -> None:
        if isinstance(event, StepEnded) and event.record.number in numbers:
            act(event.record.number)

    return observe


@pytest.mark.parametrize("read_percent", [0, 65])
def test_memory_grows_by_little_for_each_slice(read_percent: int, tmp_path: Path) -> None:
    """Each slice of a stream needs little memory. The 4,320 one-minute slices of three days must not need more than a
    few MB.
    """
    profile = BENCH.write_profile(tmp_path, 120 * 2 / 3600, read_percent, slice_s=2)
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile=str(profile), tests=["writesat"])
    kept: dict[int, int] = {}
    counted = range(30, 111, 16)

    def count(number: int) -> None:
        gc.collect()
        kept[number] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start(1)
    try:
        tkperf.run(plan, "n", folder=tmp_path, observers=(at_slices(count, *counted),))
    finally:
        tracemalloc.stop()
    # A cache of the process grows only once, in one of the five parts. The memory for slices grows in all parts.
    growths = sorted(kept[after] - kept[before] for before, after in pairwise(counted))
    assert sum(growths[:-1]) / (4 * 16) < MOST_KEPT_BYTES_A_SLICE, growths


@pytest.mark.parametrize("read_percent", [0, 65])
def test_a_day_of_seconds_is_small(read_percent: int, tmp_path: Path) -> None:
    """Each second of a day, with a histogram for each direction, needs only a few bytes. The fixed size of a run file
    is not counted.
    """
    profile = BENCH.write_profile(tmp_path, 13 / 60, read_percent)
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile=str(profile), tests=["writesat"])
    sizes: dict[int, int] = {}

    def look(number: int) -> None:
        sizes[number] = (tmp_path / "n.tkperf").stat().st_size

    tkperf.run(plan, "n", folder=tmp_path, observers=(at_slices(look, 4, 12),))
    a_second_bytes = (sizes[12] - sizes[4]) / (8 * 60)
    assert a_second_bytes * DAY_S < BENCH.LIMITS_MB[str(read_percent)] * 1e6
    assert a_second_bytes > 40, "seconds are kept at all"
