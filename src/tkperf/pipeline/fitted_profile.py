"""A profile and an active range that are fitted to a device, and the check that the chosen tests can run on this
device.

The phases of a test show its requirements. tkperf keeps no separate list of requirements, so a refusal always names a
requirement that results from the phases of the test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.sysfs import find_node, takes_discards
from tkperf.engine import RequiredIo
from tkperf.model.choices import DEFAULT_PROFILES
from tkperf.model.errors import UsageError
from tkperf.model.phases import Continuous, Fill, Idle, Phase, Purge, Round
from tkperf.model.record import RunNote
from tkperf.model.units import KIB, format_block_size, format_capacity, format_count, parse_size_bytes
from tkperf.model.workload import Access, ActiveRange, Workload, split_regions
from tkperf.pipeline.run_request import RunRequest
from tkperf.procedures import Test, choose_tests, fit_to_sector, load_profile, with_workloads
from tkperf.procedures.forecast import Case, load_of, phases_ahead
from tkperf.procedures.profiles import Profile, apply_options, resolve_active_range, with_range_to_fill

_USUAL_BYTES = 1_000_204_886_016


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPhases:
    """The phases of a test if the test ends as early as possible, and the limits of its length in seconds.

    Purges count as 0 s, because their length is not known.
    """

    __test__ = False  # otherwise pytest would treat the class as a test case

    test: Test
    phases: tuple[Phase, ...]
    shortest_s: float
    longest_s: float

    @property
    def fills(self) -> tuple[Fill, ...]:
        return tuple(phase for phase in self.phases if isinstance(phase, Fill))

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Each workload once, in the order of its first use."""
        return tuple(dict.fromkeys(load for load, _ in _loads(self.phases)))

    @property
    def reads_first(self) -> bool:
        """Return whether the first load reads before the test has written any data."""
        load, is_fill = next(_loads(self.phases))
        return not is_fill and load.read_percent > 0

    @property
    def most_streams(self) -> int:
        """Return the largest number of loads that run at the same time."""
        loads = (load for phase in self.phases for load in _loads_of(phase))
        return max((len(load.streams) for load in loads), default=1)

    @property
    def reads_trimmed(self) -> bool:
        """Return whether a load reads addresses that an earlier load trimmed, without a fill between these loads. Loads
        that run at the same time do not count as earlier.
        """
        # The trimmed parts, and the load that trimmed each part. None means that several loads trimmed the part.
        trimmed: dict[ActiveRange | None, Workload | None] = {}
        # A stream has thousands of equal slices, and a test has many equal rounds. After the second one, nothing new
        # follows.
        last: tuple[object, int] = (None, 0)
        for phase in self.phases:
            if isinstance(phase, Fill):
                trimmed.clear()
                last = (None, 0)
                continue
            key = load_of(phase)
            last = (key, last[1] + 1 if last[0] is key else 1)
            if last[1] > 2:
                continue
            for load in _loads_of(phase):
                if any(owner != load and _reads_from(load, part) for part, owner in trimmed.items()):
                    return True
                for each in (stream.workload for stream in load.streams):
                    if each.trims:
                        trimmed[each.region] = load if trimmed.get(each.region, load) == load else None
        return False

    @property
    def starts_as_purged(self) -> bool:
        """Return whether the test measures directly after the purge, without writes between the purge and the
        measurement.
        """
        busy = [phase for phase in self.phases if not isinstance(phase, Idle)]
        return any(isinstance(purge, Purge) and isinstance(then, Round | Continuous) for purge, then in pairwise(busy))


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedProfile:
    """A profile that was fitted to a device. ``unaltered`` is the profile as its file defines it. ``profile`` also
    contains the changes that the options and the device require.
    """

    identity: DeviceIdentity
    unaltered: Profile
    profile: Profile
    active_range: ActiveRange
    tests: tuple[TestPhases, ...]
    warnings: tuple[RunNote, ...]

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Each workload of all tests once."""
        return tuple(dict.fromkeys(load for test in self.tests for load in test.workloads))


def find_heaviest(workloads: Iterable[Workload]) -> Workload:
    """Return the workload with the most outstanding I/Os. This workload reaches the limits of the host first."""
    return max(workloads, key=lambda load: load.total_outstanding_ios)


def find_required_io(workloads: Collection[Workload], paced: Collection[Workload] = ()) -> RequiredIo:
    """Return the properties of these workloads that an interface to the kernel must support.

    Args:
        paced: the workloads whose offered rates and numbers of threads are known before the run.
    """
    heaviest = find_heaviest(workloads)
    return RequiredIo(
        jobs=heaviest.jobs,
        io_depth=heaviest.io_depth,
        io_depths=frozenset(load.io_depth for load in workloads),
        flushes_from_queue=any(load.flushes_from_queue for load in workloads),
        flushes_between_reads=any(load.flushes_between_reads for load in workloads),
        random_arrivals_iops=frozenset().union(*(load.random_arrivals_iops for load in paced)),
    )


@lru_cache(maxsize=1)
def find_default_workloads() -> tuple[Workload, ...]:
    """Return the workloads of a run without options on an SSD of a usual size."""
    profile = load_profile(DEFAULT_PROFILES["ssd"])
    tests = choose_tests(profile, "ssd")
    ahead = [look_ahead(test, profile, _USUAL_BYTES) for test in tests]
    return tuple(dict.fromkeys(load for test in ahead for load in test.workloads))


def choose_profile(request: RunRequest) -> Profile:
    """Return the profile of the request, or the default profile of the suite, without the user's options.

    Raises:
        UsageError: no profile has this name, the file is not a profile, the profile does not define the suite, or a
            workload file contains a mistake.
    """
    wanted = request.profile or DEFAULT_PROFILES[request.suite]
    if isinstance(wanted, Path):
        wanted = str(wanted.absolute())  # a Path object is always a path, even if its text looks like a name
    profile = wanted if isinstance(wanted, Profile) else load_profile(wanted)
    profile = with_workloads(profile, request.suite, request.tests)
    choose_tests(profile, request.suite, request.tests, find_demand=_searches(request, profile))
    return profile


def find_needs(profile: Profile) -> str | None:
    """Return the requirements of a profile that not every device or file meets, and the remedy if a requirement is not
    met. None means that the profile has no such requirements.
    """
    used = profile.active_range
    if used.segments == 1:
        return None
    return (
        f"profile {profile.name} tests {used}, which requires a whole block device, root privileges and "
        f"device-mapper. On other targets, pass --active-range {used.amount} to test this amount in one piece. The "
        "results then state this change"
    )


def refuse_segments(profile: Profile, reason: str) -> UsageError:
    """Return the error that refuses to measure the segments of a profile on this device, with the remedy."""
    return UsageError(f"{find_needs(profile)}. The reason for this refusal: {reason}")


def _require_capacity(wanted: str | None, identity: DeviceIdentity) -> None:
    """Check an active range that the user gave as a size.

    A size in a profile means the whole device if the device is smaller. A size in an option must not exceed the
    capacity of the device.
    """
    if wanted is None or wanted.strip().endswith("%"):
        return
    if parse_size_bytes(wanted) > identity.capacity_bytes:
        raise UsageError(
            f"--active-range {wanted} is larger than {identity.path}, whose capacity is "
            f"{format_capacity(identity.capacity_bytes)}. Choose a smaller range, or 100%"
        )


def fit_profile(request: RunRequest, unaltered: Profile, identity: DeviceIdentity) -> FittedProfile:
    """Return the profile and the active range, fitted to a device, with the simulated phases of the chosen tests.

    A run that this device accepts is also possible on a larger device.
    """
    profile = apply_options(unaltered, **(request.profile_options | {"auto_demand": request.searches_demand}))
    sector_bytes = identity.logical_block_bytes
    selected = choose_tests(profile, request.suite, request.tests, find_demand=_searches(request, profile))
    _require_capacity(request.active_range, identity)
    try:
        active_range = resolve_active_range(profile, identity.capacity_bytes, sector_bytes)
        profile = with_range_to_fill(profile, identity.capacity_bytes, sector_bytes)
        fitted_profile, left_out = fit_to_sector(profile, sector_bytes, selected)
        fitted_profile, without_trims = _leave_out_trims(fitted_profile, selected, identity)
        tests = [look_ahead(test, fitted_profile, active_range.length_bytes) for test in selected]
        for test in tests:
            _require_whole_sectors(test, profile.name, sector_bytes)
        _require_discard(tests, identity)
        _require_room(tests, active_range)
        _require_whole_segments(tests, profile, active_range)
        if request.auto_demand:
            _require_use_of_demand(tests, fitted_profile, active_range.length_bytes)
    except (UsageError, ValueError) as error:
        raise UsageError(f"{identity.path}: {error}") from None
    return FittedProfile(
        identity=identity,
        unaltered=unaltered,
        profile=fitted_profile,
        active_range=active_range,
        tests=tuple(tests),
        warnings=tuple(RunNote(code="preparation", text=text) for text in (*left_out.values(), *without_trims)),
    )


def _searches(request: RunRequest, profile: Profile) -> bool:
    """Return whether the run first searches for the demand (thread count and queue depth). The option or the profile
    can request this search.
    """
    return request.auto_demand or profile.demand.searched


def look_ahead(test: Test, profile: Profile, active_range_bytes: int) -> TestPhases:
    """Return the phases and the length of a test, computed by simulations of the best and of the worst case."""

    def walk(case: Case) -> tuple[tuple[Phase, float], ...]:
        procedure = test.procedure(profile, active_range_bytes)
        return tuple(phases_ahead(procedure, case, active_range_bytes=active_range_bytes))

    shortest, longest = walk(Case.BEST), walk(Case.WORST)
    return TestPhases(
        test=test,
        phases=tuple(phase for phase, _ in shortest),
        shortest_s=sum(duration_s for _, duration_s in shortest),
        longest_s=sum(duration_s for _, duration_s in longest),
    )


def _loads(phases: Sequence[Phase]) -> Iterator[tuple[Workload, bool]]:
    """Yield every workload, with a flag that states whether the workload is a fill."""
    last: object = None
    for phase in phases:
        if isinstance(phase, Fill):
            yield phase.workload, True
        elif (load := load_of(phase)) is not last and load is not None:
            # Equal phases are yielded only once, because a stream has thousands of slices, and all rounds of a section
            # are the same.
            last = load
            yield from ((stream.workload, False) for each in _loads_of(phase) for stream in each.streams)


def _loads_of(phase: Phase) -> tuple[Workload, ...]:
    match phase:
        case Fill() | Continuous():
            return (phase.workload,)
        case Round():
            return tuple(step.workload for step in phase.steps)
        case Purge() | Idle():
            return ()


def _reads_from(load: Workload, part: ActiveRange | None) -> bool:
    """Return whether a load reads in a part of the range. None means the whole range."""
    return any(each.workload.reads and _overlap(each.workload.region, part) for each in load.streams)


def _overlap(one: ActiveRange | None, other: ActiveRange | None) -> bool:
    if one is None or other is None:
        return True
    return (
        one.offset_bytes < other.offset_bytes + other.length_bytes
        and other.offset_bytes < one.offset_bytes + one.length_bytes
    )


def _require_whole_sectors(test: TestPhases, profile: str, sector_bytes: int) -> None:
    for load, is_fill in _loads(test.phases):
        if load.block_size_bytes % sector_bytes:
            raise UsageError(
                f"test {test.test.name} of profile {profile} cannot run, because its blocks of "
                f"{format_block_size(load.block_size_bytes)} are not a multiple of the device's logical sector of "
                f"{sector_bytes} bytes. Use another test or profile"
            )
        if not is_fill and load.region and load.region.offset_bytes % sector_bytes:
            raise UsageError(
                f"test {test.test.name} of profile {profile} cannot run, because its areas do not begin at a "
                f"boundary of the device's logical sectors of {sector_bytes} bytes. Use another test or profile"
            )


def _leave_out_trims(
    profile: Profile, tests: Sequence[Test], identity: DeviceIdentity
) -> tuple[Profile, tuple[str, ...]]:
    """Return the profile without the trims that its tests can omit, with a warning for each such test."""
    reason = _why_no_trims(identity)
    if reason is None:
        return profile, ()
    changed = {
        test.name: replaced
        for test in tests
        for table in test.tables
        if (replaced := profile.table(table).without_trims()) != profile.table(table)
    }
    warnings = tuple(f"{name}: trims left out, because {reason}" for name in changed)
    return profile.with_tables(*changed.values()), warnings


def _require_discard(tests: Sequence[TestPhases], identity: DeviceIdentity) -> None:
    """Raise UsageError if a test trims but the device accepts no trims from fio."""
    trimming = [test.test.name for test in tests if any(load.trims for load, _ in _loads(test.phases))]
    reason = _why_no_trims(identity)
    if not trimming or reason is None:
        return
    remedy = (
        "measure a device, or a loop device over the file"
        if identity.kind is TargetKind.FILE
        else "remove the load that trims"
    )
    raise UsageError(f"test {trimming[0]} trims, and {reason}: {remedy}")


def _why_no_trims(identity: DeviceIdentity) -> str | None:
    """Return the reason why the device accepts no trims from fio. None means that the device accepts trims."""
    if identity.kind is TargetKind.FILE:
        return "fio trims block devices only"
    if identity.kind is TargetKind.SIMULATED or identity.major_minor is None:
        return None
    if not takes_discards(find_node(identity.major_minor)):
        return "the device supports no discard (TRIM/UNMAP)"
    return None


def _require_whole_segments(tests: Sequence[TestPhases], profile: Profile, active_range: ActiveRange) -> None:
    """Raise UsageError if an I/O could cross the end of a segment. The drive would receive such an I/O as two I/Os."""
    count = profile.active_range.segments
    if count == 1:
        return
    length_bytes = active_range.length_bytes // count
    segments = f"{format_count(count, 'segment')} of {length_bytes // KIB:,} KiB"
    for test in tests:
        for load, is_fill in _loads(test.phases):
            if is_fill:
                continue
            if load.block_mix or length_bytes % load.block_size_bytes:
                raise UsageError(
                    f"test {test.test.name} of profile {profile.name} cannot run in {segments}: an I/O of "
                    f"{load.blocks_name} could cross the end of a segment, because the length of a segment is not a "
                    "multiple of this block size. Change the block size or the active range"
                )
            if load.region is not None:
                raise UsageError(
                    f"test {test.test.name} measures a part of the range, but a range in segments cannot be divided "
                    "in this way. Use a range without segments"
                )


def _require_use_of_demand(tests: Sequence[TestPhases], profile: Profile, active_range_bytes: int) -> None:
    """Raise UsageError if no test uses the demand that a search finds. A search takes hours, mostly for its fill."""
    demand = profile.demand
    other = profile.at_demand(demand.jobs % 1024 + 1, demand.io_depth)
    for test in tests:
        if not test.test.finds_demand:
            phases = look_ahead(test.test, other, active_range_bytes).phases
            measured, changed = (
                tuple(load for load, is_fill in _loads(walked) if not is_fill) for walked in (test.phases, phases)
            )
            if measured != changed:
                return
    names = ", ".join(test.test.name for test in tests if not test.test.finds_demand)
    raise UsageError(
        f"--auto-demand: {names} would not use the demand that the search finds, because the test chooses every TC "
        "and QD itself. Omit --auto-demand"
    )


def _require_room(tests: Sequence[TestPhases], active_range: ActiveRange) -> None:
    """Check that the active range is large enough. A sequential step needs one block for each thread, and a random step
    needs one block.

    Fills need no check, because a fill uses fewer threads if the range is too small for all threads. If several steps
    do not fit, the error names the largest step.
    """
    loads = {load for test in tests for load, is_fill in _loads(test.phases) if not is_fill}

    def needed_bytes(load: Workload) -> int:
        threads = load.jobs if load.access is Access.SEQUENTIAL else 1
        return threads * load.block_size_bytes

    for load in sorted(loads, key=needed_bytes, reverse=True):
        room = load.region or active_range
        try:
            if load.access is Access.SEQUENTIAL:
                split_regions(room, load.jobs, load.block_size_bytes)
            elif room.length_bytes < load.block_size_bytes:
                raise UsageError(
                    f"the active range of {format_capacity(room.length_bytes)} is smaller than one block of "
                    f"{format_block_size(load.block_size_bytes)}. Choose a larger range"
                )
        except UsageError as error:
            raise UsageError(f"{_describe_place(load, tests)}{error}") from None


def _describe_place(load: Workload, tests: Sequence[TestPhases]) -> str:
    """Return the test and the name of a load that runs together with other loads, as the beginning of an error
    message.
    """
    for test in tests:
        steps = (step.workload for phase in test.phases if isinstance(phase, Round) for step in phase.steps)
        slices = (phase.workload for phase in test.phases if isinstance(phase, Continuous))
        for combination in (*steps, *slices):
            for stream in combination.together:
                if stream.workload == load:
                    return f"test {test.test.name}, load {stream.name}: "
    return ""
