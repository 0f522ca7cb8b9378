"""The tests, each a generator of phases that reads like its specification.

Nothing in here does I/O, reads a clock or knows fio: a procedure only says what to do next, given
what was seen.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tkperf.figures import SectionPlan, TestPlan
from tkperf.phases import Procedure
from tkperf.procedures import hard_disk, iops, latency, throughput, write_saturation
from tkperf.profiles import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test by the name that the command line, the run file and reports use.

    Attributes:
        procedure: takes the profile, fitted to the device, and the length of the active range in
            bytes, and returns a fresh generator each time.
        section_plan: how a section, given its name, is shown.
        over_sections: quantities that are drawn over all sections, by their keys.
    """

    __test__ = False

    name: str
    title: str
    procedure: Callable[[Profile, int], Procedure]
    section_plan: Callable[[str], SectionPlan]
    over_sections: tuple[str, ...] = ()

    def plan(self, sections: Iterable[str]) -> TestPlan:
        """How the test is shown, with sections of these names."""
        return TestPlan(
            title=self.title,
            sections=tuple(self.section_plan(name) for name in sections),
            over_sections=self.over_sections,
        )


# In the order TKperf runs them.
SSD_TESTS: dict[str, Test] = {
    test.name: test
    for test in (
        Test(
            name="iops",
            title="IOPS",
            procedure=iops.iops,
            section_plan=iops.section_plan,
        ),
        Test(
            name="lat",
            title="Latency",
            procedure=latency.latency,
            section_plan=latency.section_plan,
        ),
        Test(
            name="tp",
            title="Throughput",
            procedure=throughput.throughput,
            section_plan=throughput.section_plan,
            over_sections=("megabytes_per_s",),
        ),
        Test(
            name="writesat",
            title="Write Saturation",
            procedure=write_saturation.write_saturation,
            section_plan=write_saturation.section_plan,
        ),
    )
}

HDD_TESTS: dict[str, Test] = {
    test.name: test
    for test in (
        Test(
            name="iops",
            title="IOPS",
            procedure=hard_disk.hard_disk_iops,
            section_plan=hard_disk.iops_section_plan,
        ),
        Test(
            name="tp",
            title="Throughput",
            procedure=hard_disk.hard_disk_throughput,
            section_plan=hard_disk.throughput_section_plan,
        ),
    )
}

# A RAID set is tested like one large SSD.
SUITES: dict[str, dict[str, Test]] = {"ssd": SSD_TESTS, "hdd": HDD_TESTS, "raid": SSD_TESTS}


def known_plan(suite: str, test: str, sections: Iterable[str]) -> TestPlan | None:
    """How a test is shown whose run file does not say; None if this version does not know it."""
    known = SUITES.get(suite, SSD_TESTS).get(test)
    return None if known is None else known.plan(sections)
