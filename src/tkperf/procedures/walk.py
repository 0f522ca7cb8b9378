"""Walk through a test's own phases to find its workloads, rounds and excesses with a profile's numbers.

No test writes its course down a second time: its blocks, regions and streams come from its longest course.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from tkperf.model.errors import UsageError
from tkperf.model.phases import Continuous, Fill, Phase, Round
from tkperf.model.units import format_block_size_kib
from tkperf.model.workload import Step, Workload
from tkperf.procedures.descriptor import Test
from tkperf.procedures.forecast import longest_phases
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import find_fault

MOST_STEPS = 200_000  # of one test, all rounds or areas together
LONGEST_STREAM_S = 366 * 86400
# Profiles are checked before the device is known.
_ANY_DEVICE_BYTES = 1 << 40


def walk(test: Test, profile: Profile, active_range_bytes: int) -> Iterator[Phase]:
    """Yield all phases of a test's longest course."""
    procedure = test.procedure(profile, active_range_bytes)
    return longest_phases(procedure, active_range_bytes=active_range_bytes)


def find_workloads(test: Test, profile: Profile, active_range_bytes: int) -> tuple[Workload, ...]:
    """Return every workload of a test once, including its fills, in the order of their first step."""
    workloads: dict[Workload, None] = {}
    last: object = None
    for phase in walk(test, profile, active_range_bytes):
        match phase:
            case Round() if phase.steps is not last:
                last = phase.steps
                workloads |= dict.fromkeys(step.workload for step in phase.steps)
            case Fill() | Continuous() if phase.workload is not last:
                last = phase.workload
                workloads[phase.workload] = None
            case _:
                pass
    return tuple(workloads)


def first_rounds(test: Test, profile: Profile, active_range_bytes: int) -> dict[str, Round]:
    """Return the first round of each section that has rounds."""
    rounds: dict[str, Round] = {}
    for phase in walk(test, profile, active_range_bytes):
        if isinstance(phase, Round):
            rounds.setdefault(phase.section, phase)
    return rounds


def find_excess(tests: Iterable[Test], profile: Profile) -> str | None:
    """Return the first excess in the tests of a profile, as ``table: reason``: too many steps, or the like."""
    for test in tests:
        if test.is_in(profile):
            try:
                fault = _find_excess(walk(test, profile, _ANY_DEVICE_BYTES))
            except (UsageError, ValueError) as error:
                fault = str(error)
            if fault:
                return f"{test.table.key if test.table else test.name}: {fault}"
    return None


def _find_excess(phases: Iterable[Phase]) -> str | None:
    steps, before = 0, tuple[Step, ...]()
    for phase in phases:
        match phase:
            case Round():
                steps += len(phase.steps)
                if steps > MOST_STEPS:
                    return f"more than {MOST_STEPS:,} steps in all, which is the most that can be run"
                if phase.steps is not before and (twice := _find_twice(phase.steps)):
                    return f"{twice} is measured twice in a round"
                before = phase.steps
            case Continuous() if phase.longest_s > LONGEST_STREAM_S:
                return f"a stream of {phase.longest_s:,.0f} s is longer than a year"
            case _:
                pass
    return None


def _find_twice(steps: Sequence[Step]) -> Workload | None:
    earlier: set[Workload] = set()
    for step in steps:
        if step.workload in earlier:
            return step.workload
        earlier.add(step.workload)
    return None


def fit_to_sector(profile: Profile, logical_block_bytes: int, tests: Sequence[Test]) -> tuple[Profile, dict[str, str]]:
    """Drop block sizes that the device cannot address from the tests to run, with a warning for each.

    A 4Kn device drops 0.5 KiB and goes on tracking 4 KiB, which is found by key.

    Returns:
        The fitted profile, and the warning for each test that lost a block size.

    Raises:
        UsageError: a test to run needs a block that is no multiple of the sector; the message lists the others.
    """
    tables = {table for test in tests for table in test.tables}
    fitted = profile.with_tables(*(profile.table(table).fitted(logical_block_bytes) for table in tables))
    warnings = {}
    for test in tests:
        left = None if find_fault(fitted) else _block_sizes(test, fitted)
        unfit = [size for size in left or () if size % logical_block_bytes]
        if left is None or unfit:
            needed = ", ".join(format_block_size_kib(size) for size in unfit)
            what = f"its blocks of {needed} KiB are" if unfit else "its tracked block size is"
            raise UsageError(
                f"the device's logical sector is {logical_block_bytes} bytes: test {test.name} of "
                f"profile {profile.name} cannot run, {what} no multiple of that"
                f"{_way_out(profile, logical_block_bytes, tests)}"
            )
        dropped = [size for size in _block_sizes(test, profile) if size not in left]
        if dropped:
            sizes = ", ".join(format_block_size_kib(size) for size in dropped)
            warnings[test.name] = (
                f"{test.name}: block size {sizes} KiB left out, the device's logical sector is "
                f"{logical_block_bytes} bytes"
            )
    return fitted, warnings


def _way_out(profile: Profile, logical_block_bytes: int, tests: Sequence[Test]) -> str:
    """Return the option that chooses the tests that fit the sector; empty if none does."""
    fitting = []
    for test in tests if len(tests) > 1 else ():
        with suppress(UsageError):
            fit_to_sector(profile, logical_block_bytes, (test,))
            fitting += [] if test.finds_demand else [test.name]
    return f"; leave it out: --test {','.join(fitting)}" if fitting else ""


def _block_sizes(test: Test, profile: Profile) -> tuple[int, ...]:
    """Return the block sizes in bytes of all I/Os of a test, in the order of their first step."""
    sizes: dict[int, None] = {}
    for workload in find_workloads(test, profile, _ANY_DEVICE_BYTES):
        mixed = (share.block_size_bytes for share in workload.block_mix)
        sizes |= dict.fromkeys(mixed if workload.block_mix else (workload.block_size_bytes,))
    return tuple(sizes)
