"""What every test says of itself: all that other modules know of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tkperf.model.figures import WHOLE_TEST, Figure, SectionPlan, TestPlan
from tkperf.model.phases import Procedure
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.tables import (
    PreconditioningTable,
    SteadyStateTable,
    Table,
    TestTable,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a procedure's text depends on beside the profile: the kind of target and the options.

    Attributes:
        purge: the line of a purge; None: nothing is purged.
        filled: in words how much preconditioning writes and where, given the words for its load and
            the passes where they are not the profile's; None: as the profile says.
    """

    purge: str | None = "Purge"
    filled: Callable[[str, int | None], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test by the name that the command line, the run file and reports use.

    One made in Python needs a name, a title, a procedure and a plan of its sections alone.

    Attributes:
        source: the chapter of the specification, or the tool, that defines it.
        suites: the commands that offer it.
        by_default: run when the user names no tests.
        table: its table in profiles; a profile without it does not offer the test. None: its
            numbers are its own.
        not_used: keys of that table that belong to another test.
        shared: the shared tables that its course depends on, demand apart.
        tracked: keys of the quantities that decide when it is steady; empty: no such rule.
        procedure: takes the profile, fitted to the device, and the length of the active range in
            bytes, and returns a fresh generator each time.
        describe: the course in words, line by line, with the numbers of a profile. Raises
            ProfileError where a table that it needs is missing.
        section_plan: how a section, given its name, is shown.
        own: described by the user in a workload file, so told in full before the question, and marked
            in every result.
        finds_demand: its outcome has the demand of the tests after it.
        whole_test: the figures of the whole test, given the names of its sections.
    """

    __test__ = False  # not a test case, whatever pytest thinks of the name

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
    shared: tuple[type[Table], ...] = (SteadyStateTable, PreconditioningTable)
    tracked: tuple[str, ...] = ()
    whole_test: Callable[[Sequence[str]], tuple[Figure, ...]] = lambda _: WHOLE_TEST

    def plan(self, sections: Iterable[str]) -> TestPlan:
        """How the test is shown, with sections of these names."""
        names = tuple(sections)
        return TestPlan(
            title=self.title,
            sections=tuple(self.section_plan(name) for name in names),
            figures=self.whole_test(names),
        )

    @property
    def tables(self) -> tuple[type[TestTable], ...]:
        """Its table, if it has one."""
        return () if self.table is None else (self.table,)

    def is_in(self, profile: Profile) -> bool:
        """Whether a profile defines the test."""
        return all(profile.has(table) for table in self.tables)
