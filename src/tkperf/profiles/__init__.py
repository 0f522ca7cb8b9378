"""Profiles: the numbers of a specification as named data, each table with its source beside it.

A profile is a TOML file. Those shipped with tkperf live in this folder; a user may give an own
file. Reading is strict: an unknown key, a missing one or an impossible value is an error that
names file, key and reason.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from tkperf.errors import ProfileError, UsageError
from tkperf.input_files import SETTINGS_BYTES, read_text_input
from tkperf.profiles.faults import find_fault
from tkperf.steady_state import Criteria
from tkperf.strict import decode_strictly
from tkperf.units import KIB, parse_size_bytes
from tkperf.workload import Access, ActiveRange, Cell, Workload

Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
# Beyond these a number is a slip. How long a run may take is found by going through all of it,
# so a count that nobody means would take the time, too.
MOST_ROUNDS = 10_000  # of one-minute steps in 56 cells more than a year
MOST_SLICES = 20_000  # two weeks of minutes
MOST_AREAS = 4096
MOST_VALUES = 64  # block sizes or mixes of a test, each a table or row in the report
Rounds = Annotated[int, msgspec.Meta(ge=1, le=MOST_ROUNDS)]
# As the options -nj and -iod, and as the command line's step length.
Jobs = Annotated[int, msgspec.Meta(ge=1, le=1024)]
Depth = Annotated[int, msgspec.Meta(ge=1, le=65536)]
Passes = Annotated[int, msgspec.Meta(ge=1, le=1000)]
# fio reports once a second; shorter steps hold nothing that could be told.
_LONGEST_S = 30 * 86400
Seconds = Annotated[float, msgspec.Meta(ge=0.1, le=_LONGEST_S)]
# Infinity switches a rule off.
Excursion = Annotated[float, msgspec.Meta(gt=0)]
BlockSizeKib = Annotated[float, msgspec.Meta(gt=0, le=16 * 1024)]
Percents = Annotated[tuple[Percent, ...], msgspec.Meta(min_length=1, max_length=101)]
BlockSizesKib = Annotated[
    tuple[BlockSizeKib, ...], msgspec.Meta(min_length=1, max_length=MOST_VALUES)
]
Source = Annotated[str, msgspec.Meta(min_length=1)]


# The table that holds the numbers of each test of the SSD suite.
TABLES = {"iops": "iops", "lat": "latency", "tp": "throughput", "writesat": "write_saturation"}


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    source: Source


class SteadyStateTable(_Table, frozen=True, kw_only=True):
    window_rounds: Annotated[int, msgspec.Meta(ge=2, le=100)]
    max_data_excursion_percent: Excursion
    max_slope_excursion_percent: Excursion
    max_rounds: Rounds

    @property
    def criteria(self) -> Criteria:
        return Criteria(
            window_rounds=self.window_rounds,
            max_data_excursion=self.max_data_excursion_percent / 100,
            max_slope_excursion=self.max_slope_excursion_percent / 100,
        )


class DemandTable(_Table, frozen=True, kw_only=True):
    """Thread count (TC) and queue depth per thread (QD) of all tests but latency."""

    jobs: Jobs
    io_depth: Depth


class ActiveRangeTable(_Table, frozen=True, kw_only=True):
    """``length`` is a share of the device such as ``100%`` or a size such as ``16GiB``."""

    length: str


class PreconditioningTable(_Table, frozen=True, kw_only=True):
    """Workload-independent preconditioning: ``passes`` x the active range, sequentially."""

    block_size_kib: BlockSizeKib
    passes: Passes


class IopsTable(_Table, frozen=True, kw_only=True):
    """``read_percents`` is the outer loop, ``block_sizes_kib`` the inner one."""

    read_percents: Percents
    block_sizes_kib: BlockSizesKib
    step_s: Seconds
    tracking_read_percent: Percent
    tracking_block_size_kib: BlockSizeKib


class ThroughputTable(_Table, frozen=True, kw_only=True):
    """``steady_state``: judged for each block size, or for the first, the others copying it."""

    block_sizes_kib: BlockSizesKib
    step_s: Seconds
    precondition: bool
    steady_state: Literal["each", "first"]


class LatencyTable(_Table, frozen=True, kw_only=True):
    """``histogram_s`` 0: no histogram run after steady state."""

    read_percents: Percents
    block_sizes_kib: BlockSizesKib
    step_s: Seconds
    jobs: Jobs
    io_depth: Depth
    tracking_read_percent: Percent
    tracking_block_size_kib: BlockSizeKib
    histogram_s: Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_S)]


class WriteSaturationTable(_Table, frozen=True, kw_only=True):
    """``round_every_slices`` 0: no steady-state rule, runs to amount or time."""

    block_size_kib: BlockSizeKib
    read_percent: Percent
    slice_s: Seconds
    max_slices: Annotated[int, msgspec.Meta(ge=1, le=MOST_SLICES)]
    capacity_multiple: Annotated[float, msgspec.Meta(ge=1e-6, le=1e6)]
    round_every_slices: Annotated[int, msgspec.Meta(ge=0, le=MOST_SLICES)]


class WriteCacheTable(_Table, frozen=True, kw_only=True):
    """The drive's volatile write cache for the length of a run; ``keep`` leaves it as it is."""

    setting: Literal["on", "off", "keep"]


class HardDiskTable(_Table, frozen=True, kw_only=True):
    """The suite of ``tkperf hdd``: the disk cut into ``areas`` of equal size."""

    areas: Annotated[int, msgspec.Meta(ge=1, le=MOST_AREAS)]
    area_alignment_kib: BlockSizeKib
    iops_read_percents: Percents
    iops_block_sizes_kib: BlockSizesKib
    throughput_block_sizes_kib: BlockSizesKib
    step_s: Seconds


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All numbers of one specification. ``notice`` is shown in every result if not empty.

    ``hard_disk`` is None where the specification knows no hard disks.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    title: str
    notice: str
    steady_state: SteadyStateTable
    demand: DemandTable
    active_range: ActiveRangeTable
    preconditioning: PreconditioningTable
    iops: IopsTable
    throughput: ThroughputTable
    latency: LatencyTable
    write_saturation: WriteSaturationTable
    write_cache: WriteCacheTable
    hard_disk: HardDiskTable | None = None

    def workload(self, access: Access, read_percent: int, block_size_kib: float) -> Workload:
        """A workload at the profile's demand intensity."""
        return Workload(
            access=access,
            read_percent=read_percent,
            block_size_bytes=round(block_size_kib * KIB),
            jobs=self.demand.jobs,
            io_depth=self.demand.io_depth,
        )

    def as_plain_data(self) -> dict[str, object]:
        data = msgspec.to_builtins(self)
        assert isinstance(data, dict)
        return data


def built_in_profiles() -> tuple[str, ...]:
    """Names of the profiles shipped with tkperf."""
    folder = resources.files(__name__)
    return tuple(
        sorted(
            entry.name.removesuffix(".toml")
            for entry in folder.iterdir()
            if entry.name.endswith(".toml")
        )
    )


def load_profile(name_or_path: str) -> Profile:
    """A shipped profile by name, or a user's own by path (anything with a ``/`` or ``.toml``).

    Raises:
        UsageError: no such profile.
        ProfileError: the file is not a valid profile; the message names file, key and reason.
    """
    if "/" in name_or_path or name_or_path.endswith(".toml"):
        path = Path(name_or_path)
        text = read_text_input(path, what="profile", limit_bytes=SETTINGS_BYTES, error=ProfileError)
        return parse_profile(text, file=str(path))
    if name_or_path not in built_in_profiles():
        raise UsageError(
            f"there is no profile '{name_or_path}'; shipped are {', '.join(built_in_profiles())}; "
            "an own profile is given as a path to its .toml file"
        )
    file = resources.files(__name__) / f"{name_or_path}.toml"
    return parse_profile(file.read_text(encoding="utf-8"), file=str(file))


def parse_profile(text: str, *, file: str) -> Profile:
    """Decode a profile; ``file`` is named in errors.

    Raises:
        ProfileError: not TOML, a typo, or an impossible value.
    """
    profile = decode_strictly(
        lambda: msgspec.toml.decode(text, type=Profile),
        what=f"profile {file}",
        language="TOML",
        error=ProfileError,
    )
    fault = find_fault(profile)
    try:
        resolve_active_range(profile.active_range.length, 2**40, 4096)
    except UsageError as error:
        fault = fault or f"active_range.length: {error}"
    if fault:
        raise ProfileError(f"profile {file}, key {fault}")
    return profile


def resolve_active_range(text: str, capacity_bytes: int, alignment_bytes: int) -> ActiveRange:
    """The active range meant by ``100%``, ``75%`` or ``16GiB`` on a device, from its start.

    A size larger than the device means the whole device; the end is rounded down to whole
    logical blocks.

    Raises:
        UsageError: not a share within 0..100 % and not a size, or less than one block.
    """
    if text.strip().endswith("%"):
        try:
            percent = float(text.strip()[:-1])
        except ValueError:
            percent = 0.0
        if not 0 < percent <= 100:
            raise UsageError(
                f"'{text[:40]}' is not a share of the device: give 1% to 100%, or a size"
            )
        length_bytes = int(capacity_bytes * percent / 100)
    else:
        length_bytes = min(parse_size_bytes(text), capacity_bytes)
    length_bytes -= length_bytes % alignment_bytes
    if length_bytes <= 0:
        raise UsageError(f"active range '{text[:40]}' is less than one logical block of the device")
    return ActiveRange(offset_bytes=0, length_bytes=length_bytes)


def apply_options(
    profile: Profile,
    *,
    jobs: int | None = None,
    io_depth: int | None = None,
    step_s: float | None = None,
    write_cache: str | None = None,
) -> Profile:
    """The profile with what the user set (-nj, -iod, -rt ...) in place.

    ``step_s`` is the length of each step and of each slice of write saturation, whose times stay
    as they are: see ``_resliced``.
    """
    demand = msgspec.structs.replace(
        profile.demand,
        jobs=jobs or profile.demand.jobs,
        io_depth=io_depth or profile.demand.io_depth,
    )
    cache = msgspec.structs.replace(
        profile.write_cache, setting=write_cache or profile.write_cache.setting
    )
    profile = msgspec.structs.replace(profile, demand=demand, write_cache=cache)
    if step_s is None:
        return profile
    replace = msgspec.structs.replace
    hard_disk = profile.hard_disk
    return replace(
        profile,
        hard_disk=None if hard_disk is None else replace(hard_disk, step_s=step_s),
        iops=replace(profile.iops, step_s=step_s),
        throughput=replace(profile.throughput, step_s=step_s),
        latency=replace(profile.latency, step_s=step_s),
        write_saturation=_resliced(profile.write_saturation, step_s),
    )


def _resliced(table: WriteSaturationTable, slice_s: float) -> WriteSaturationTable:
    """The same longest time, and the same time between two judged slices, in slices of another length.

    More than ``MOST_SLICES`` are not made, so that very short slices also end sooner.
    """

    def count(slices: int) -> int:
        return min(MOST_SLICES, max(1, round(slices * table.slice_s / slice_s))) if slices else 0

    return msgspec.structs.replace(
        table,
        slice_s=slice_s,
        max_slices=count(table.max_slices),
        round_every_slices=count(table.round_every_slices),
    )


def fit_to_sector(profile: Profile, logical_block_bytes: int) -> Profile:
    """Leave out the block sizes of each list that the device cannot address.

    A 4Kn device goes on tracking 4 KiB, which is found by key. A tracked size, and a list of which
    nothing would be left, stay as they are: whether a test can run then shows in its phases.
    """

    def fitting(
        sizes_kib: tuple[float, ...], tracked_kib: float | None = None
    ) -> tuple[float, ...]:
        kept = tuple(
            size
            for size in sizes_kib
            if size * KIB % logical_block_bytes == 0 or size == tracked_kib
        )
        return kept or sizes_kib

    replace = msgspec.structs.replace
    iops, throughput, latency = profile.iops, profile.throughput, profile.latency
    hard_disk = profile.hard_disk
    if hard_disk is not None:
        hard_disk = replace(
            hard_disk,
            iops_block_sizes_kib=fitting(hard_disk.iops_block_sizes_kib),
            throughput_block_sizes_kib=fitting(hard_disk.throughput_block_sizes_kib),
        )
    return replace(
        profile,
        hard_disk=hard_disk,
        iops=replace(
            iops, block_sizes_kib=fitting(iops.block_sizes_kib, iops.tracking_block_size_kib)
        ),
        latency=replace(
            latency,
            block_sizes_kib=fitting(latency.block_sizes_kib, latency.tracking_block_size_kib),
        ),
        throughput=replace(throughput, block_sizes_kib=fitting(throughput.block_sizes_kib)),
    )


def tracked_cell(table: IopsTable | LatencyTable) -> Cell:
    """The cell whose value decides steady state."""
    return Cell(table.tracking_read_percent, round(table.tracking_block_size_kib * KIB))
