"""The descriptor of a test. Other modules use a test only through its descriptor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tkperf.model.figures import WHOLE_TEST, Figure, SectionPlan, TestPlan
from tkperf.model.phases import Procedure
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import PreconditioningTable, ProfileTable, SteadyStateTable, TestTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Facts that the description of a test contains in addition to the profile. These facts depend on the kind of
    target and on the options.

    Attributes:
        purge: the text about a purge. None means that there is no purge.
        describe_fill: the function that returns the amount and the place of preconditioning in words. Its arguments are
            a text about the load, and the number of passes (None: as in the profile). If ``describe_fill`` is None, the
            profile alone determines the description.
    """

    purge: str | None = "Purge"
    describe_fill: Callable[[str, int | None], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test, with the name that the command line, the run file and reports use.

    A test that is defined in Python needs only a name, a title, a procedure and a plan of its sections.

    Attributes:
        source: the chapter of the specification, or the tool, that defines the test.
        suites: the commands that offer the test.
        by_default: whether the test runs if the user names no tests.
        table: the table of the test in profiles. A profile without the table does not offer the test. None means that
            the procedure of the test contains the numbers.
        not_used: keys of the table that belong to another test.
        shared: the shared tables of the profile that the test uses, except the demand.
        tracked: keys of the quantities that decide steady state. An empty value means that the test has no steady-state
            rule.
        procedure: the function that returns a new generator of phases. The arguments are the profile, fitted to the
            device, and the length of the active range in bytes.
        describe: the function that returns a description of the test, line by line, with the numbers of a profile. The
            function raises ProfileError if a necessary table is missing.
        section_plan: the function that returns the display plan of a section. The argument is the name of the section.
        own: whether a workload file of the user describes the test. tkperf shows such a test completely before it asks
            for consent, and marks the test in every result.
        finds_demand: whether the outcome contains the demand that the following tests use.
        whole_test: the function that returns the figures of the whole test. The argument contains the names of the
            sections.
    """

    __test__ = False  # pytest must not collect this class as a test case

    name: str
    title: str
    procedure: Callable[[Profile, int], Procedure]
    section_plan: Callable[[str], SectionPlan]
    source: str = ""
    suites: tuple[str, ...] = ()
    table: type[TestTable] | None = None
    describe: Callable[[Profile, Circumstances], tuple[str, ...]] = lambda *_: ()
    by_default: bool = True
    own: bool = False
    finds_demand: bool = False
    not_used: tuple[str, ...] = ()
    shared: tuple[type[ProfileTable], ...] = (SteadyStateTable, PreconditioningTable)
    tracked: tuple[str, ...] = ()
    whole_test: Callable[[Sequence[str]], tuple[Figure, ...]] = lambda _: WHOLE_TEST

    def plan(self, sections: Iterable[str]) -> TestPlan:
        """Return the display plan of the test for sections with these names."""
        names = tuple(sections)
        return TestPlan(
            title=self.title, sections=tuple(self.section_plan(name) for name in names), figures=self.whole_test(names)
        )

    @property
    def tables(self) -> tuple[type[TestTable], ...]:
        """The table of the test, if the test has a table."""
        return () if self.table is None else (self.table,)

    def is_in(self, profile: Profile) -> bool:
        """Return whether a profile defines the test."""
        return all(profile.has(table) for table in self.tables)
