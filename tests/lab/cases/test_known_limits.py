"""What one load does to another on devices with known limits.

Arithmetic gives the expected results. A throttled drive admits a known number of I/Os per second, so reads and writes
together cannot exceed this number. A null_blk device handles all I/Os at the same time, so no load slows another load.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.cases.conftest import Drive, Monitor, add_figures, run_without_purge
from tests.lab.cases.test_numbers import null_device
from tkperf import open_run
from tkperf.analysis import results
from tkperf.analysis.loads_together import build_grid, find_neighbours
from tkperf.analysis.run_results import analyse

PROFILE = Path(__file__).parent / "known_limits.toml"
FIGURES = Path("/lab/known_limits.json")
RUN_LIMIT_S = 1500
THROTTLED_IOPS = 240
# The device handles many more I/Os at the same time than all loads together issue. The emulated CPU adds a few
# milliseconds to each I/O, so the response time must be much longer.
ANSWER_US, PLACES = 200_000, 256
MOST_FACTOR_ERROR = 0.05


def run_test(folder: Path, device: Path, consent: object, test: str) -> results.TestResult:
    """Run one test of the profile, and return its results."""
    with open_run(run_without_purge(folder, device, consent, test, profile=PROFILE, limit_s=RUN_LIMIT_S)) as run_file:
        (result,) = analyse(run_file.record()).tests
    return result


@pytest.mark.limit_s(RUN_LIMIT_S + 300)
def test_the_limit_of_reads_during_writes(nvme: Drive, monitor: Monitor, tmp_path: Path) -> None:
    """QEMU admits 240 IOPS. At each rate of writes, the highest rate of reads within the limit is the rest of the 240
    IOPS, with an error of at most one cell.
    """
    with monitor.throttled(f"{nvme.serial}-1", iops=THROTTLED_IOPS):
        result = run_test(tmp_path, nvme.path, nvme.serial, "interference")
    (grid,) = (grid for section in result.sections if (grid := build_grid(section)) is not None)
    add_figures(
        FIGURES,
        "interference",
        {
            "throttled_iops": THROTTLED_IOPS,
            "read_rates": grid.read_rates,
            "limit": [[point.write_iops, point.read_iops, point.next_read_iops] for point in grid.limit],
        },
    )
    assert grid.read_rates[-1] == pytest.approx(THROTTLED_IOPS, rel=0.05)
    assert grid.write_rates[-1] == pytest.approx(THROTTLED_IOPS, rel=0.05)
    assert len(grid.limit) == 4
    cell_iops = 1.05 * THROTTLED_IOPS / 3
    for point in grid.limit:
        rest_iops = THROTTLED_IOPS - point.write_iops
        assert abs((point.read_iops or 0.0) - rest_iops) <= cell_iops
        assert point.next_read_iops is None or point.next_read_iops >= rest_iops - 0.05 * THROTTLED_IOPS


@pytest.mark.limit_s(RUN_LIMIT_S + 300)
def test_neighbours_that_share_nothing(tmp_path: Path) -> None:
    """If the device handles all I/Os at the same time, no neighbour changes the 99th percentile of the reader."""
    with null_device(ANSWER_US, places=PLACES) as device:
        result = run_test(tmp_path, device, device, "neighbours")
    effects = find_neighbours(result.sections)
    add_figures(
        FIGURES,
        "neighbours",
        {
            effect.name: [effect.factor, effect.uncertainty and [effect.uncertainty.low, effect.uncertainty.high]]
            for effect in effects
        },
    )
    assert len(effects) == 6
    for effect in effects:
        assert effect.kept_share is None, effect.name
        assert effect.factor == pytest.approx(1, abs=MOST_FACTOR_ERROR), effect.name
