"""The tests that tkperf offers, and the suites to which they belong."""

from tkperf.model.choices import ALL_TESTS
from tkperf.procedures import (
    composite_blocks,
    cross_stimulus_recovery,
    demand_intensity,
    demand_search,
    disk_areas,
    host_idle_recovery,
    interference,
    iops,
    latency,
    latency_over_demand,
    quality_of_service,
    reader_with_neighbours,
    throughput,
    workload_sweep,
    write_saturation,
)
from tkperf.procedures.descriptor import Test

# A suite runs the tests in this order, which is the order of TKperf. The search for the demand precedes the tests that
# use its result.
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
    interference.TEST,
    reader_with_neighbours.TEST,
    disk_areas.HDD_IOPS,
    disk_areas.HDD_THROUGHPUT,
)


TABLES = tuple(dict.fromkeys(table for test in TESTS for table in test.tables))


def _suite(name: str) -> dict[str, Test]:
    return {test.name: test for test in TESTS if name in test.suites}


# These words have another meaning in places that accept the name of a test. The first word means all tests, and the
# second word means an imported run of fio.
_NOT_FOR_TESTS = (ALL_TESTS, "fio")


# A test of the user cannot have one of these names.
TAKEN_NAMES = (*(test.name for test in TESTS), *_NOT_FOR_TESTS)


# A RAID set is tested like one large SSD.
SSD_TESTS, HDD_TESTS = _suite("ssd"), _suite("hdd")


SUITES: dict[str, dict[str, Test]] = {"ssd": SSD_TESTS, "hdd": HDD_TESTS, "raid": _suite("raid")}


ORDER_OF_TKPERF = ("iops", "tp", "lat", "writesat")
"""The names of the tests in the order of TKperf's reports (reports/RstReport.py, SsdPerfTest.toRst)."""
