"""The tests that tkperf offers, and the suites that they belong to."""

from tkperf.model.choices import ALL_TESTS
from tkperf.procedures import (
    composite_blocks,
    cross_stimulus_recovery,
    demand_intensity,
    demand_search,
    disk_areas,
    host_idle_recovery,
    iops,
    latency,
    latency_over_demand,
    quality_of_service,
    throughput,
    workload_sweep,
    write_saturation,
)
from tkperf.procedures.descriptor import Test

# The order in which a suite runs them, as in TKperf. A search for the demand precedes its users.
TESTS: tuple[Test, ...] = (
    demand_search.TEST,
    iops.TEST,
    latency.TEST,
    throughput.TEST,
    write_saturation.TEST,
    composite_blocks.TEST,
    demand_intensity.TEST,
    host_idle_recovery.TEST,
    cross_stimulus_recovery.TEST,
    workload_sweep.TEST,
    latency_over_demand.TEST,
    quality_of_service.TEST,
    disk_areas.HDD_IOPS,
    disk_areas.HDD_THROUGHPUT,
)


TABLES = tuple(dict.fromkeys(table for test in TESTS for table in test.tables))


def _suite(name: str) -> dict[str, Test]:
    return {test.name: test for test in TESTS if name in test.suites}


# Words with another meaning in place of a test's name: all tests, and imported runs of fio.
_NOT_FOR_TESTS = (ALL_TESTS, "fio")


# No own test of the user can have one of these names.
TAKEN_NAMES = (*(test.name for test in TESTS), *_NOT_FOR_TESTS)


# A RAID set is tested like one large SSD.
SSD_TESTS, HDD_TESTS = _suite("ssd"), _suite("hdd")


SUITES: dict[str, dict[str, Test]] = {"ssd": SSD_TESTS, "hdd": HDD_TESTS, "raid": _suite("raid")}


ORDER_OF_TKPERF = ("iops", "tp", "lat", "writesat")
"""Tests in the order of TKperf's reports (its reports/RstReport.py, SsdPerfTest.toRst)."""
