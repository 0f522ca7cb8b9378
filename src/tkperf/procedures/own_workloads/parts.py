"""The parts of a workload file (loads, loops and kinds of phases), and the corresponding workloads and steps on a
device.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, product
from math import prod
from typing import Annotated, Literal, get_args

import msgspec

from tkperf.model.decoding import convert
from tkperf.model.errors import InputFileError
from tkperf.model.units import KIB, MIB, format_capacity
from tkperf.model.workload import Access, ActiveRange, Arrival, Burst, Step, Stream, Workload, combine, is_reserved_name
from tkperf.procedures.mixes_and_sizes import AT_MOST, Share, ZoneShares, block_mix_of, zones_of
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    ARRIVAL,
    MOST_ROUNDS,
    MOST_VALUES,
    SLICE_LENGTH,
    STEP_LENGTH,
    Depth,
    Excursion,
    Jobs,
    Passes,
    Percent,
    Rounds,
    Seconds,
    SteadyStateTable,
    means,
)

MOST_PHASES = 64
MOST_IOPS = 1e9
MOST_MEGABYTES_PER_S = 1e6
# The limits of a combination. fio reports each thread separately. With 256 threads, a status document of fio has a size
# of ten megabytes.
MOST_STREAMS, MOST_THREADS_TOGETHER = 16, 256
# The length of a pause is limited, because fio reports nothing while a thread pauses or waits for its start.
LONGEST_PAUSE_S = 60
LARGEST_TRIM_KIB = 2 << 20
LoadBlockKib = Annotated[float, msgspec.Meta(gt=0, le=LARGEST_TRIM_KIB)]
LoadBlockShares = tuple[tuple[LoadBlockKib, Share], ...]
# A part of the range that is given in bytes begins and ends at a multiple of 4 KiB. Every drive accepts such addresses.
SMALLEST_PART_BYTES = 4 * KIB
_MOST_MIB = 1 << 30
# The characters of a name are limited, because the name becomes part of file names and an argument of --test. A title
# becomes a heading of a report.
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=64)]
LONGEST_TITLE = 120
Title = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TITLE)]
Section = Annotated[Title, means("heading of the results in every report, which must be unique within the file")]
LONGEST_LOAD_NAME = 64
LoadName = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_LOAD_NAME)]
TrackedQuantity = Literal["iops", "megabytes_per_s", "latency_mean_us"]
LoopKey = Literal["read_percent", "block_size_kib", "jobs", "io_depth", "offered_iops", "compressible_percent"]
MOST_LOOPS = len(get_args(LoopKey))


def name_load(job: str, taken: Collection[str], *, is_stream: bool) -> str:
    """Return a name for the load of a job: the name of the job, or this name with a number, such as ``writer (2)``.

    Args:
        job: the name of the job on one line.
        taken: the names of other loads.
        is_stream: whether the load runs at the same time as other loads. The names of streams must not have another
            meaning in results.
    """
    plain = job[:LONGEST_LOAD_NAME].strip() or "job"
    room = LONGEST_LOAD_NAME - len(" (999)")
    names = chain([plain], (f"{plain[:room]} ({number})" for number in count(2)))
    return next(name for name in names if name not in taken and not (is_stream and is_reserved_name(name)))


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table in a workload file."""


class Load(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A load that fio runs. Any number of phases can use the same load. The load needs either ``block_size_kib`` or
    ``block_shares``.
    """

    access: Annotated[Access, means("order of the addresses")]
    read_percent: Annotated[Percent, means("R/W mix (share of reads, in %); 0 for trims")]
    trims: Annotated[bool, means("whether the I/Os are trims (discards) instead of reads and writes")] = False
    block_size_kib: Annotated[LoadBlockKib | None, means("block size, in KiB; default: the sizes of block_shares")] = (
        None
    )
    block_shares: Annotated[
        LoadBlockShares,
        AT_MOST,
        means("pairs of a block size, in KiB, and its share of all I/Os, in %. The shares must add up to 100"),
    ] = ()
    zone_shares: Annotated[
        ZoneShares,
        AT_MOST,
        means(
            "for random access: zones of the range, in the order of addresses. Each zone is a pair: the share of the "
            "accesses, and the share of the range that receives these accesses, both in %. Without zones, the "
            "accesses are evenly spread"
        ),
    ] = ()
    jobs: Annotated[
        Jobs | None, means("thread count (TC); default: the value of -nj or, without -nj, of the profile")
    ] = None
    io_depth: Annotated[
        Depth | None,
        means("queue depth of each thread (QD); default: the value of -iod or, without -iod, of the profile"),
    ] = None
    offered_iops: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=MOST_IOPS)] | None,
        means(
            "offered rate of all threads together, in I/Os per second; default: none, so fio issues I/Os as fast "
            "as the device completes them"
        ),
    ] = None
    arrival: Annotated[Arrival, ARRIVAL] = Arrival.LINEAR
    offered_megabytes_per_s: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=MOST_MEGABYTES_PER_S)] | None,
        means(
            "offered rate of all threads together, in MB/s (10^6 bytes per second), instead of offered_iops; "
            "default: none"
        ),
    ] = None
    random_percent: Annotated[
        Percent | None,
        means("share of random addresses in random access, in %. The other addresses are sequential; default: 100"),
    ] = None
    burst_ios: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None,
        means("number of I/Os after which each thread pauses for burst_pause_s; default: no pauses"),
    ] = None
    burst_pause_s: Annotated[
        Annotated[float, msgspec.Meta(ge=1e-6, le=LONGEST_PAUSE_S)] | None,
        means("length of the pause of a thread after burst_ios I/Os, in s; default: none"),
    ] = None
    flush_every: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None,
        means("number of writes after which each thread flushes the write cache of the device; default: no flushes"),
    ] = None
    delay_s: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=LONGEST_PAUSE_S)],
        means("in a phase with together, the time from the common start to the first I/O of the load, in s"),
    ] = 0
    compressible_percent: Annotated[
        Percent, means("share of the written data that compression in the drive could save, in %")
    ] = 0
    range_begin_percent: Annotated[
        float,
        msgspec.Meta(ge=0, lt=100),
        means("start of the load's range within the active range, in %, rounded down to 1 MiB"),
    ] = 0
    range_end_percent: Annotated[
        float,
        msgspec.Meta(gt=0, le=100),
        means("end of the load's range within the active range, in %, rounded down to 1 MiB unless the value is 100"),
    ] = 100
    range_begin_mib: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=_MOST_MIB)] | None,
        means(
            "start of the load's range within the active range, in MiB, instead of range_begin_percent; default: none"
        ),
    ] = None
    range_end_mib: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=_MOST_MIB)] | None,
        means("end of the load's range within the active range, in MiB, instead of range_end_percent; default: none"),
    ] = None

    @property
    def range_text(self) -> str:
        """Return the part of the active range that the load uses, such as ``10 to 20 %`` or ``0 to 2,048 MiB``. An
        empty text means the whole active range.
        """
        begin, end = self.range_begin_mib, self.range_end_mib
        if begin is end is None:
            percents = (self.range_begin_percent, self.range_end_percent)
            return "" if percents == (0, 100) else "{:g} to {:g} %".format(*percents)
        if begin is not None and end is not None:
            return f"{begin:,.10g} to {end:,.10g} MiB"
        if end is None:
            return f"{begin:,.10g} MiB to {self.range_end_percent:g} %"
        start = f"{self.range_begin_percent:g} % to " if self.range_begin_percent else "0 to "
        return f"{start}{end:,.10g} MiB"

    @property
    def can_fill(self) -> bool:
        """Return whether the load can fill the range. Such a load writes sequentially to the whole range, with one
        block size and without an offered rate.
        """
        return self.block_size_kib is not None and self == Load(
            access=Access.SEQUENTIAL,
            read_percent=0,
            block_size_kib=self.block_size_kib,
            jobs=self.jobs,
            io_depth=self.io_depth,
            compressible_percent=self.compressible_percent,
        )


class Loop(_Part, frozen=True, kw_only=True):
    """A loop over a list of values. The loop assigns the values, one after the other, to a key of the loads of a
    phase.
    """

    key: Annotated[LoopKey, means("key of the loads to which the loop assigns its values")]
    values: Annotated[
        tuple[float, ...],
        msgspec.Meta(min_length=1, max_length=MOST_VALUES),
        means("values of the key, in the order in which the loop assigns them"),
    ]


class OwnTracked(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A tracking variable: the quantity that must become steady, and the step to which it belongs."""

    quantity: Annotated[TrackedQuantity, means("quantity that must be steady")]
    load: Annotated[
        LoadName | None, means("load to which the quantity belongs; default: the only load of the phase")
    ] = None
    at: Annotated[
        dict[str, float],
        msgspec.Meta(max_length=MOST_LOOPS),
        means(
            "for each loop, the value of its key, such as { block_size_kib = 4 }; default: none, for a phase without "
            "loops"
        ),
    ] = {}


class OwnSteadyState(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """The steady-state rule for all phases of the file. The profile contains the value of each omitted key."""

    window_rounds: Annotated[
        Annotated[int, msgspec.Meta(ge=2, le=100)] | None,
        means("number of rounds in a window; default: the value in the profile"),
    ] = None
    max_data_excursion_percent: Annotated[
        Excursion | None,
        means(
            "largest range (maximum minus minimum) of a steady window, in % of the average; default: the value in the "
            "profile"
        ),
    ] = None
    max_slope_excursion_percent: Annotated[
        Excursion | None,
        means(
            "largest rise or fall of the best linear fit over a steady window, in % of the average; default: the "
            "value in the profile"
        ),
    ] = None
    max_rounds: Annotated[
        Rounds | None,
        means(
            "maximum number of rounds, after which the phase ends even without steady state; default: the value in "
            "the profile"
        ),
    ] = None

    def filled_from(self, profile_rule: SteadyStateTable) -> SteadyStateTable:
        """Return the rule of the profile, in which the numbers of this table replace the profile's numbers."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(profile_rule, **given)


class PurgePhase(_Part, frozen=True, kw_only=True, tag_field="kind", tag="purge"):
    """A purge of the device, which puts the device into the state of a new device."""


class FillPhase(_Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="fill"):
    """Workload-independent preconditioning, which writes sequentially to the whole range."""

    load: Annotated[
        LoadName | None,
        means("name of a load with sequential writes of one block size; default: the preconditioning of the profile"),
    ] = None
    passes: Annotated[
        Passes | None, means("number of passes over the whole range; default: the value in the profile")
    ] = None


class IdlePhase(_Part, frozen=True, kw_only=True, tag_field="kind", tag="idle"):
    """A planned pause without I/O."""

    idle_s: Annotated[Seconds, means("length of the pause, in s, from the end of the last I/O")]


class RoundsPhase(_Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="rounds"):
    """Steps that run without pauses between them. Every round has the same steps. The rounds continue until steady
    state, or for a given number of rounds.
    """

    section: Section
    loads: Annotated[
        tuple[LoadName, ...],
        msgspec.Meta(max_length=MOST_VALUES),
        means(
            "loads of a round, in order, with one step for each load. This list is the innermost loop, and a phase "
            "without together requires this list"
        ),
    ] = ()
    together: Annotated[
        tuple[LoadName, ...],
        means("2 to 16 loads that run together as the streams of one combination, instead of loads; default: none"),
    ] = ()
    loops: Annotated[
        tuple[Loop, ...],
        msgspec.Meta(max_length=MOST_LOOPS),
        means(
            "loops over keys of the loads. The first loop is the outermost loop, and every combination of values is "
            "a step"
        ),
    ] = ()
    step_s: Annotated[Seconds, STEP_LENGTH]
    tracked: Annotated[
        tuple[OwnTracked, ...],
        msgspec.Meta(max_length=8),
        means(
            "tracking variables. The phase ends when all variables are steady in one window; default: none, so the "
            "phase ends after the number of rounds"
        ),
    ] = ()
    rounds: Annotated[Rounds | None, means("number of rounds; default: as many rounds as steady state needs")] = None
    warm_up_rounds: Annotated[
        int,
        msgspec.Meta(ge=0, le=MOST_ROUNDS),
        means("number of warm-up rounds before the first round, from which no result is computed"),
    ] = 0
    idle_s: Annotated[Seconds | None, means("idle time before each round, in s; default: none")] = None


class StreamPhase(_Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="stream"):
    """One load without interruption, recorded in slices. The stream ends as soon as one of its end conditions
    is met.
    """

    section: Section
    load: Annotated[
        LoadName | None, means("load of the stream, which a phase without together requires; default: none")
    ] = None
    together: Annotated[
        tuple[LoadName, ...],
        means("2 to 16 loads that run together as the streams of one combination, instead of load; default: none"),
    ] = ()
    slice_s: Annotated[Seconds, SLICE_LENGTH]
    longest_s: Annotated[
        Seconds, means("maximum length of the stream, in s, without the warm-up, rounded to whole slices")
    ]
    tracked: Annotated[
        TrackedQuantity | None, means("tracking variable. The phase ends when this quantity is steady; default: none")
    ] = None
    judged_every_s: Annotated[
        Seconds | None,
        means(
            "time from one judged slice to the next judged slice, in s. The first slice is always judged; default: "
            "every slice is judged"
        ),
    ] = None
    written_multiple: Annotated[
        Annotated[float, msgspec.Meta(ge=1e-6, le=1e6)] | None,
        means("amount of written data at which the stream ends, as a multiple of the active range; default: no limit"),
    ] = None
    warm_up_s: Annotated[
        Seconds | None, means("length of a warm-up from which no result is computed, in s; default: no warm-up")
    ] = None

    @property
    def slices(self) -> int:
        """The largest number of slices of the stream, without the warm-up."""
        return max(1, round(self.longest_s / self.slice_s))

    @property
    def warm_up_slices(self) -> int:
        return max(1, round(self.warm_up_s / self.slice_s)) if self.warm_up_s else 0

    @property
    def judged_every(self) -> int:
        """The number of slices from one judged slice to the next judged slice."""
        return max(1, round((self.judged_every_s or 0) / self.slice_s))


OwnPhase = PurgePhase | FillPhase | IdlePhase | RoundsPhase | StreamPhase
Measuring = RoundsPhase | StreamPhase


def workload_of(load: Load, profile: Profile, active_range_bytes: int) -> Workload:
    """Return the workload of a load on an active range of this length. If the load contains no thread count or queue
    depth, the values of the profile are used.
    """
    sizes_kib = [size_kib for size_kib, _ in load.block_shares] or [load.block_size_kib or 0]
    # The default depth of a load with trims or flushes is 1. fio 3.38 and newer can trim with a deeper queue if the
    # kernel supports this. Otherwise, fio trims one block at a time, and the results do not show how fio trimmed.
    # Flushes with a deeper queue need fio 3.38 or newer.
    default_depth = 1 if load.trims or load.flush_every else profile.demand.io_depth
    workload = Workload(
        access=load.access,
        read_percent=load.read_percent,
        block_size_bytes=round(max(sizes_kib) * KIB),
        jobs=load.jobs or profile.demand.jobs,
        io_depth=load.io_depth or default_depth,
        block_mix=block_mix_of(load.block_shares),
        zones=zones_of(load.zone_shares),
        offered_iops=load.offered_iops,
        arrival=load.arrival,
        # 0 % means new random data, which is the default.
        compressible_percent=load.compressible_percent or None,
        region=region_of(load, active_range_bytes),
        trims=load.trims,
        random_percent=load.random_percent,
        burst=_burst_of(load),
        flush_every=load.flush_every,
    )
    if load.offered_megabytes_per_s is not None:
        offered_iops = load.offered_megabytes_per_s * 1e6 / workload.mean_block_bytes
        workload = replace(workload, offered_iops=offered_iops)
    return workload


def _burst_of(load: Load) -> Burst | None:
    if load.burst_ios is None or load.burst_pause_s is None:
        return None
    return Burst(load.burst_ios, load.burst_pause_s)


def combination_of(
    names: Sequence[str], loads: Mapping[str, Load], profile: Profile, active_range_bytes: int
) -> Workload:
    """Return the combination of loads that run together. The names of the loads become the names of the streams."""
    streams = []
    for name in names:
        workload = workload_of(loads[name], profile, active_range_bytes)
        streams.append(Stream(name=name, workload=workload, delay_s=loads[name].delay_s))
    return combine(streams)


def region_of(load: Load, active_range_bytes: int) -> ActiveRange | None:
    """Return the part of the active range that a load uses. None means the whole range.

    A part that is given in percent begins and ends at whole MiB, which is suitable for all block sizes.
    """
    if not load.range_text:
        return None
    first = _edge_bytes(load.range_begin_percent, load.range_begin_mib, active_range_bytes)
    last = _edge_bytes(load.range_end_percent, load.range_end_mib, active_range_bytes)
    of_range = f"the active range of {format_capacity(active_range_bytes)}"
    if last > active_range_bytes:
        raise InputFileError(
            f"{load.range_text} is beyond the end of {of_range}. Choose a larger range, or a smaller part"
        )
    if last <= first:
        least = "1 MiB" if load.range_end_mib is None else "4 KiB"
        raise InputFileError(
            f"{load.range_text} of {of_range} is less than {least}. Choose a larger part, or a larger range"
        )
    return ActiveRange(offset_bytes=first, length_bytes=last - first)


def _edge_bytes(percent: float, mib: float | None, active_range_bytes: int) -> int:
    if mib is not None:
        return round(mib * MIB)
    return active_range_bytes if percent == 100 else int(active_range_bytes * percent / 100) // MIB * MIB


def count_steps(phase: RoundsPhase) -> int:
    """Return the number of steps in a round, without building the steps."""
    return 1 if phase.together else len(phase.loads) * prod(len(loop.values) for loop in phase.loops)


def loads_of(phase: RoundsPhase, loads: Mapping[str, Load]) -> Iterator[Load]:
    """Yield the load of each step of a round, in order. The first loop is the outermost, and the list of loads is the
    innermost loop.
    """
    for values in product(*(loop.values for loop in phase.loops)):
        at: dict[str, float] = {loop.key: value for loop, value in zip(phase.loops, values, strict=True)}
        for name in phase.loads:
            yield at_values(loads[name], at)


def at_values(load: Load, values: Mapping[str, float]) -> Load:
    """Return a load with the values of the loops."""
    # In a TOML list that contains fractions, whole numbers may also be floats.
    given = {key: int(value) if float(value).is_integer() else value for key, value in values.items()}
    return convert(msgspec.to_builtins(load) | given, Load)


def steps_of(
    phase: RoundsPhase, loads: Mapping[str, Load], profile: Profile, active_range_bytes: int
) -> tuple[Step, ...]:
    """Return the steps of a round."""
    if phase.together:
        combination = combination_of(phase.together, loads, profile, active_range_bytes)
        return (Step(workload=combination, duration_s=phase.step_s),)
    return tuple(
        Step(workload=workload_of(load, profile, active_range_bytes), duration_s=phase.step_s)
        for load in loads_of(phase, loads)
    )


def tracked_load(tracked: OwnTracked, phase: RoundsPhase, loads: Mapping[str, Load]) -> Load:
    """Return the load of the step to which a tracking variable belongs."""
    return at_values(loads[tracked.load or phase.loads[0]], tracked.at)
