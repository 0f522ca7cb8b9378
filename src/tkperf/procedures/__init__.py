"""The tests, each a generator of phases that reads like its specification.

Nothing in here does I/O, reads a clock or knows fio: a procedure only says what to do next, given
what was seen.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tkperf.phases import Procedure
from tkperf.procedures.hard_disk import hard_disk_iops, hard_disk_throughput
from tkperf.procedures.iops import iops
from tkperf.procedures.latency import latency
from tkperf.procedures.throughput import throughput
from tkperf.procedures.write_saturation import write_saturation
from tkperf.profiles import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test by the name that the command line, the run file and reports use.

    ``procedure`` takes the profile, fitted to the device, and the length of the active range in
    bytes, and returns a fresh generator each time.
    """

    __test__ = False

    name: str
    title: str
    procedure: Callable[[Profile, int], Procedure]


# In the order TKperf runs them.
SSD_TESTS: dict[str, Test] = {
    "iops": Test(name="iops", title="IOPS", procedure=iops),
    "lat": Test(name="lat", title="Latency", procedure=latency),
    "tp": Test(name="tp", title="Throughput", procedure=throughput),
    "writesat": Test(name="writesat", title="Write Saturation", procedure=write_saturation),
}

HDD_TESTS: dict[str, Test] = {
    "iops": Test(name="iops", title="IOPS", procedure=hard_disk_iops),
    "tp": Test(name="tp", title="Throughput", procedure=hard_disk_throughput),
}

# A RAID set is tested like one large SSD.
SUITES: dict[str, dict[str, Test]] = {"ssd": SSD_TESTS, "hdd": HDD_TESTS, "raid": SSD_TESTS}
