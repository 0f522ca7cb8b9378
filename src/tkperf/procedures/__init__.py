"""The tests, each a generator of phases that reads like its specification, and the profiles with their numbers.

A procedure does no I/O, reads no clock and does not know fio. It only yields the next phase, given the
answers so far. A test is one module with its descriptor, ``TEST`` (those of hard disks share a module); this module
collects the tests.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tkperf.model.choices import ALL_TESTS, built_in_profiles, profiles_folder
from tkperf.model.decoding import convert
from tkperf.model.errors import InputFileError, ProfileError, UsageError, not_known
from tkperf.model.figures import TestPlan
from tkperf.model.input_files import SETTINGS_BYTES, is_toml_path, read_text_input
from tkperf.model.strict import decode_strictly, describe_mistake, shallow
from tkperf.procedures import (
    cross_stimulus_recovery,
    demand_intensity,
    demand_search,
    disk_areas,
    host_idle_recovery,
    iops,
    latency,
    latency_over_demand,
    mixes_and_sizes,
    quality_of_service,
    throughput,
    workload_sweep,
    write_saturation,
)
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.forecast import find_excess, fit_to_sector
from tkperf.procedures.own_workloads import read_workload_file, test_of
from tkperf.procedures.own_workloads.parts import PurgePhase
from tkperf.procedures.own_workloads.workload_file import KEY_PREFIX, OwnWorkloadTable, table_types
from tkperf.procedures.profiles import Profile, resolve_range
from tkperf.procedures.profiles.profile_tables import SHARED_TABLES, TestTable, find_fault

__all__ = ["Circumstances", "Profile", "Test", "fit_to_sector"]

# The order in which a suite runs them, as in TKperf. A search for the demand precedes its users.
TESTS: tuple[Test, ...] = (
    demand_search.TEST,
    iops.TEST,
    latency.TEST,
    throughput.TEST,
    write_saturation.TEST,
    mixes_and_sizes.TEST,
    demand_intensity.TEST,
    host_idle_recovery.TEST,
    cross_stimulus_recovery.TEST,
    workload_sweep.TEST,
    latency_over_demand.TEST,
    quality_of_service.TEST,
    disk_areas.HDD_IOPS,
    disk_areas.HDD_THROUGHPUT,
)
_TABLES = tuple(dict.fromkeys(table for test in TESTS for table in test.tables))


def _suite(name: str) -> dict[str, Test]:
    return {test.name: test for test in TESTS if name in test.suites}


_ProfileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
# Words with another meaning in place of a test's name: all tests, and imported runs of fio.
_NOT_FOR_TESTS = (ALL_TESTS, "fio")
# No own test of the user can have one of these names.
TAKEN_NAMES = (*(test.name for test in TESTS), *_NOT_FOR_TESTS)
# A RAID set is tested like one large SSD.
SSD_TESTS, HDD_TESTS = _suite("ssd"), _suite("hdd")
SUITES: dict[str, dict[str, Test]] = {"ssd": SSD_TESTS, "hdd": HDD_TESTS, "raid": _suite("raid")}

ORDER_OF_TKPERF = ("iops", "tp", "lat", "writesat")
"""Tests in the order of TKperf's reports (its reports/RstReport.py, SsdPerfTest.toRst)."""


def find_test(suite: str, name: str, stored_profile: Mapping[str, object] | None = None) -> Test | None:
    """Return a test by its name. An unknown suite, such as that of an imported run, counts as SSD.

    Args:
        stored_profile: the profile in a run file, which also describes the user's own tests.
    """
    test = SUITES.get(suite, SSD_TESTS).get(name)
    if test is not None or stored_profile is None or f"{KEY_PREFIX}{name}" not in stored_profile:
        return test
    profile = read_stored_profile(stored_profile)
    return next((test for test in own_tests(profile) if test.name == name), None)


def own_tests(profile: Profile) -> tuple[Test, ...]:
    """Return the tests of workload files among the tables of a profile, as far as they can run."""
    try:
        return tuple(
            test_of(table)
            for table in profile.tables.values()
            if isinstance(table, OwnWorkloadTable) and table.fault(profile) is None
        )
    except ProfileError:  # a run file that lacks some tables
        return ()


def with_workloads(profile: Profile, suite: str, names: Iterable[str]) -> Profile:
    """Return the profile with the tests of all workload files among the names of tests.

    Raises:
        UsageError: a file cannot be read, or describes a test that no run of the suite could do.
    """
    for file in filter(is_toml_path, dict.fromkeys(names)):
        profile = with_workload(profile, suite, read_workload_file(file), file=file)
    return profile


def with_workload(profile: Profile, suite: str, table: OwnWorkloadTable, *, file: str) -> Profile:
    """Return the profile with one more test; ``file`` is named in errors.

    Raises:
        InputFileError: the test's name is taken, or no run of the suite could do the test.
    """
    what = f"workload file {file}"
    if table.name in TAKEN_NAMES or table.key in profile.tables:
        raise InputFileError(f"{what}, key name: '{table.name}' is the name of another test: give it one of its own")
    if suite == "hdd" and any(isinstance(phase, PurgePhase) for phase in table.phases):
        raise InputFileError(f"{what}, kind purge: hard disks are not purged")
    changed = profile.with_tables(table)
    fault = table.fault(profile) or table.unreachable(profile)
    fault = fault or find_excess((test_of(table),), changed)
    if fault:
        raise InputFileError(f"{what}, {fault.removeprefix(f'{table.key}: ')}")
    return changed


def known_plan(suite: str, test: str, sections: Iterable[str]) -> TestPlan | None:
    """Return the display plan of a test if its run file has none; None if this version has no such test."""
    definition = find_test(suite, test)
    return None if definition is None else definition.plan(sections)


def load_profile(name_or_path: str) -> Profile:
    """Return a shipped profile by name, or a user's own by path.

    Raises:
        UsageError: no such profile.
        ProfileError: the file is not a valid profile; the message names file, key and reason.
    """
    if is_toml_path(name_or_path):
        path = Path(name_or_path)
        text = read_text_input(path, what="profile", limit_bytes=SETTINGS_BYTES, error=ProfileError)
        profile = parse_profile(text, file=str(path))
        _require_own_name(profile, file=str(path))
        return profile
    shipped = built_in_profiles()
    if name_or_path not in shipped:
        error = str(not_known("profile", name_or_path, shipped))
        own = "own profile is given as a path to its .toml file"
        raise UsageError(f"{error} An {own}" if error.endswith("?") else f"{error}; an {own}")
    # A walk through all tests takes time; the shipped profiles are already checked.
    file = profiles_folder() / f"{name_or_path}.toml"
    return _decode_profile(file.read_text(encoding="utf-8"), file=str(file))


def _require_own_name(own: Profile, *, file: str) -> None:
    """Refuse other numbers under a specification's name: they would pass for its own in every result."""
    shipped = find_shipped_namesake(own)
    if shipped is not None:
        key = "name" if own.name == shipped.name else "title"
        raise ProfileError(
            f"profile {file}, key {key}: '{getattr(own, key)}' is the shipped profile's, whose "
            f"numbers are others: give it a {key} of its own"
        )


def find_shipped_namesake(own: Profile) -> Profile | None:
    """Return the shipped profile of the same name or title, if its numbers differ.

    The sources of tables do not count. A profile may lack tables, such as those of tests added to the shipped profile
    later.
    """
    for shipped in map(load_profile, built_in_profiles()):
        if own.name == shipped.name or own.title == shipped.title:
            numbers, others = (
                {key: msgspec.structs.replace(table, source="") for key, table in profile.tables.items()}
                for profile in (own, shipped)
            )
            if any(table != others.get(key) for key, table in numbers.items()):
                return shipped
    return None


def parse_profile(text: str, *, file: str) -> Profile:
    """Decode a profile with the tables of all tests; ``file`` is named in errors.

    Reading is strict: an unknown key, a missing key or an impossible value is an error that names file, key and reason.
    """
    profile = _decode_profile(text, file=file)
    if excess := find_excess(TESTS, profile):
        raise ProfileError(f"profile {file}, key {excess}")
    return profile


def _decode_profile(text: str, *, file: str) -> Profile:
    document: Any = decode_strictly(
        lambda: tomllib.loads(shallow(text)),
        _document_type(),
        what=f"profile {file}",
        language="TOML",
        error=ProfileError,
    )
    tables = {type_.key: getattr(document, type_.key) for type_ in (*SHARED_TABLES, *_TABLES)}
    profile = Profile(
        name=document.name,
        title=document.title,
        notice=document.notice,
        tables={key: table for key, table in tables.items() if table is not None},
    )
    fault = find_fault(profile)
    for key, length in (
        ("active_range.length", profile.active_range.length),
        ("active_range.amount", profile.active_range.amount),
        ("preconditioning.length", profile.preconditioning.length),
    ):
        try:
            resolve_range("100%" if length is None else length, 2**40, 4096)
        except UsageError as error:
            fault = fault or f"{key}: {error}"
    if fault:
        raise ProfileError(f"profile {file}, key {fault}")
    return profile


@cache
def _document_type() -> type[msgspec.Struct]:
    """Return the type of a TOML file: every shared table is required, every table of a test is optional."""
    return msgspec.defstruct(
        "Profile",
        [
            ("name", _ProfileName),
            ("title", str),
            ("notice", str),
            *((type_.key, type_) for type_ in SHARED_TABLES),
            *((type_.key, type_ | None, None) for type_ in _TABLES),
        ],
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def with_numbers(profile: Profile, table: type[TestTable], **numbers: object) -> Profile:
    """Return the profile with other numbers in a test's table.

    Raises:
        UsageError: a number is impossible, the numbers conflict, the test makes no sense, or the profile
            does not define it.
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


def read_stored_profile(data: Mapping[str, object]) -> Profile:
    """Return the profile in a run file, as far as this version understands it.

    Each table is decoded on its own. Unknown keys are skipped. An incomplete table, such as that of an imported
    run, is left out and does not affect the others.
    """
    tables = {}
    for type_ in dict.fromkeys((*SHARED_TABLES, *_TABLES, *table_types(data))):
        stored = data.get(type_.key)
        if isinstance(stored, dict):
            values = {key: stored[key] for key in type_.__struct_fields__ if key in stored}
            try:
                tables[type_.key] = convert(values, type_)
            except msgspec.ValidationError:
                continue
    name, title, notice = (str(data.get(key) or "") for key in ("name", "title", "notice"))
    return Profile(name=name, title=title, notice=notice, tables=tables)


def choose_tests(
    profile: Profile, suite: str, names: Sequence[str] = (), *, find_demand: bool = False
) -> tuple[Test, ...]:
    """Return the tests to run, in the suite's order: the named tests, else the default tests.

    A profile without any default test runs all tests that it defines. Tests of workload files run after the
    suite's. ``all`` among the names means every test that the profile defines.

    Args:
        find_demand: run the search for the demand before the other tests.

    Raises:
        UsageError: the profile does not define a named test, or defines no test of the suite.
    """
    own = own_tests(profile)
    tests = (*SUITES[suite].values(), *own)
    # A search for the demand changes other tests, so it runs only on explicit request.
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
            f"profile {profile.name} has no table {keys}: tkperf {suite} measures {which} with "
            f"--profile {' or '.join(_with_table(missing[0]))}, or an own profile that has it"
        )
    return selected


def _with_table(test: Test) -> list[str]:
    """Return the names of the shipped profiles that define a test."""
    return [name for name in built_in_profiles() if test.is_in(load_profile(name))]
