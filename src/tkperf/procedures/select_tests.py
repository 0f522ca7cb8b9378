"""Functions that find a test by its name, choose the tests of a run, and change their numbers."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tkperf.model.choices import ALL_TESTS, built_in_profiles
from tkperf.model.decoding import convert
from tkperf.model.errors import InputFileError, ProfileError, UsageError
from tkperf.model.figures import TestPlan
from tkperf.model.input_files import is_toml_path
from tkperf.model.strict import describe_mistake
from tkperf.model.units import format_count
from tkperf.procedures.demand_search import DemandSearchTable
from tkperf.procedures.descriptor import Test
from tkperf.procedures.forecast import find_excess
from tkperf.procedures.offered_tests import SSD_TESTS, SUITES, TAKEN_NAMES, TESTS
from tkperf.procedures.own_workloads.parts import PurgePhase
from tkperf.procedures.own_workloads.read_workload import read_workload_file, test_of
from tkperf.procedures.own_workloads.workload_file import KEY_PREFIX, OwnWorkloadTable
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import TestTable, find_fault
from tkperf.procedures.read_profiles import load_profile, read_stored_profile


def find_test(suite: str, name: str, stored_profile: Mapping[str, object] | None = None) -> Test | None:
    """Return a test by its name. An unknown suite, such as the suite of an imported run, is treated as the suite
    ``ssd``.

    Args:
        stored_profile: the profile in a run file, which also contains the tests that the user defined.
    """
    test = SUITES.get(suite, SSD_TESTS).get(name)
    if test is not None or stored_profile is None or f"{KEY_PREFIX}{name}" not in stored_profile:
        return test
    profile = read_stored_profile(stored_profile)
    return next((test for test in own_tests(profile) if test.name == name), None)


def own_tests(profile: Profile) -> tuple[Test, ...]:
    """Return each test that a workload file defined and whose table a profile contains. Tests that cannot run are
    omitted.
    """
    try:
        return tuple(
            test_of(table)
            for table in profile.tables.values()
            if isinstance(table, OwnWorkloadTable) and table.fault(profile) is None
        )
    except ProfileError:  # a run file may lack some tables
        return ()


def with_workloads(profile: Profile, suite: str, names: Iterable[str]) -> Profile:
    """Return the profile with a table for each workload file among ``names``. The other names are names of tests.

    Raises:
        UsageError: a file cannot be read, or describes a test that the suite cannot run.
    """
    for file in filter(is_toml_path, dict.fromkeys(names)):
        profile = with_workload(profile, suite, read_workload_file(file), file=file)
    return profile


def with_workload(profile: Profile, suite: str, table: OwnWorkloadTable, *, file: str) -> Profile:
    """Return the profile with an additional test of the user. Error messages contain the name ``file``.

    Raises:
        InputFileError: another test has the same name, or the suite cannot run the test.
    """
    what = f"workload file {file}"
    if table.name in TAKEN_NAMES or table.key in profile.tables:
        raise InputFileError(f"{what}, key name: '{table.name}' is the name of another test. Choose another name")
    if suite == "hdd" and any(isinstance(phase, PurgePhase) for phase in table.phases):
        raise InputFileError(f"{what}, kind purge: tkperf does not purge hard disks. Remove this phase")
    changed = profile.with_tables(table)
    fault = table.fault(profile) or table.unreachable(profile)
    fault = fault or find_excess((test_of(table),), changed)
    if fault:
        raise InputFileError(f"{what}, {fault.removeprefix(f'{table.key}: ')}")
    return changed


def known_plan(suite: str, test: str, sections: Iterable[str]) -> TestPlan | None:
    """Return the display plan of a test for a run file that contains no plan. None means that this version of tkperf
    has no such test.
    """
    definition = find_test(suite, test)
    return None if definition is None else definition.plan(sections)


def with_numbers(profile: Profile, table: type[TestTable], **numbers: object) -> Profile:
    """Return the profile with other numbers in the table of a test.

    Raises:
        UsageError: a number is impossible, numbers contradict each other, the test would have no meaning, or the
            profile does not define the test.
    """
    for test in TESTS:
        if table in test.tables:
            choose_tests(profile, test.suites[0], (test.name,))
    values = msgspec.to_builtins(profile.table(table)) | numbers
    try:
        changed = convert(values, table)
    except msgspec.ValidationError as error:
        raise UsageError(f"table {table.key}{describe_mistake(error, table, values)}") from None
    changed_profile = profile.with_tables(changed)
    fault = find_fault(changed_profile) or find_excess(TESTS, changed_profile)
    if fault:
        raise UsageError(f"table {fault}")
    return changed_profile


def choose_tests(
    profile: Profile, suite: str, names: Sequence[str] = (), *, find_demand: bool = False
) -> tuple[Test, ...]:
    """Return the tests to run, in the order of the suite. If ``names`` is empty, the result contains the default tests.

    If a profile defines no default test, all tests of the profile run by default. Tests of workload files run after the
    tests of the suite. ``all`` among the names means every test that the profile defines.

    Args:
        find_demand: whether the search for the demand runs before the other tests.

    Raises:
        UsageError: the profile does not define a named test, or defines no test of the suite. The same error is raised
            if a workload file is impossible with an option such as -nj, or with a number of threads that a search for
            the demand could find.
    """
    for table in profile.tables.values():
        # with_workload has already checked the workload file with the unchanged profile. A fault can therefore only
        # result from the user's options.
        if isinstance(table, OwnWorkloadTable) and (fault := table.fault(profile)):
            raise UsageError(f"with these options, the test {table.name} of a workload file cannot run: {fault}")
    if find_demand:
        _check_found_demands(profile)
    own = own_tests(profile)
    tests = (*SUITES[suite].values(), *own)
    # A search for the demand changes the other tests, so the search runs only on request.
    defined = tuple(test for test in tests if test.is_in(profile) and not test.finds_demand)
    named = [*(name for name in names if not is_toml_path(name)), *(test.name for test in own)]
    if ALL_TESTS in names:
        wanted = [test.name for test in defined] + named
    elif named:
        wanted = named
    else:
        wanted = [test.name for test in defined if test.by_default] or [test.name for test in defined]
    selected = tuple(test for test in tests if test.name in wanted or (find_demand and test.finds_demand))
    missing = [test for test in selected or tests if not test.is_in(profile)]
    if missing:
        keys = ", ".join(dict.fromkeys(table.key for test in missing for table in test.tables))
        which = f"test {missing[0].name}" if selected else "any test"
        raise UsageError(
            f"profile {profile.name} has no table {keys}. To run {which} with tkperf {suite}, use --profile "
            f"{' or '.join(_with_table(missing[0]))}, or use your own profile with this table"
        )
    return selected


def _check_found_demands(profile: Profile) -> None:
    """Check the workload files with every number of threads that a search for the demand can find. The check precedes
    the search, because the search takes hours.
    """
    if DemandSearchTable.key not in profile.tables:
        return  # the caller reports the missing table
    searched = profile.table(DemandSearchTable)
    tables = [table for table in profile.tables.values() if isinstance(table, OwnWorkloadTable)]
    for table in tables:
        for jobs in sorted(set(searched.jobs)):
            if fault := table.fault(profile.at_demand(jobs, max(searched.io_depths))):
                raise UsageError(
                    f"the test {table.name} of a workload file cannot run if the demand search finds "
                    f"{format_count(jobs, 'thread')}: {fault}. Write the key jobs into each load with an "
                    "offered rate and into each load that runs at the same time as other loads, or omit "
                    "--auto-demand"
                )


def _with_table(test: Test) -> list[str]:
    """Return the names of the shipped profiles that define a test."""
    return [name for name in built_in_profiles() if test.is_in(load_profile(name))]
