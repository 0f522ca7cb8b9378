"""The tests, and the profiles with their numbers. Each test is a generator of phases that follows the order and the
terms of its specification.

A procedure does no I/O, reads no clock and does not depend on fio. It only yields the next phase, depending on the
answers so far. Each test is a module with a descriptor, ``TEST``. The tests of hard disks share a module.
``offered_tests.py`` lists the tests, ``read_profiles.py`` reads their numbers, and ``select_tests.py`` finds the tests
of a run.
"""

from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.forecast import fit_to_sector
from tkperf.procedures.offered_tests import HDD_TESTS, ORDER_OF_TKPERF, SSD_TESTS, SUITES, TAKEN_NAMES, TESTS
from tkperf.procedures.profiles import Profile
from tkperf.procedures.read_profiles import (
    find_shipped_namesake,
    load_profile,
    parse_profile,
    read_profile_text,
    read_stored_profile,
)
from tkperf.procedures.select_tests import (
    choose_tests,
    find_test,
    known_plan,
    own_tests,
    with_numbers,
    with_workload,
    with_workloads,
)

__all__ = [
    "HDD_TESTS",
    "ORDER_OF_TKPERF",
    "SSD_TESTS",
    "SUITES",
    "TAKEN_NAMES",
    "TESTS",
    "Circumstances",
    "Profile",
    "Test",
    "choose_tests",
    "find_shipped_namesake",
    "find_test",
    "fit_to_sector",
    "known_plan",
    "load_profile",
    "own_tests",
    "parse_profile",
    "read_profile_text",
    "read_stored_profile",
    "with_numbers",
    "with_workload",
    "with_workloads",
]
