"""The tables of a profile: the limits of the numbers, the tables that several tests use, and the explanations
of keys.

The table of a test is defined in the module of the test in ``tkperf.procedures``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self, TypeVar

import msgspec

from tkperf.model.choices import DEEPEST_QUEUE, MOST_JOBS
from tkperf.model.errors import ProfileError, UsageError
from tkperf.model.steady_state import Criteria
from tkperf.model.strict import describe_values
from tkperf.model.units import KIB, format_capacity, format_count, parse_size_bytes, spaced
from tkperf.model.workload import Access, Workload

Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
# A number beyond these limits is a mistake. The limits are also necessary because a check simulates the whole run to
# find its length. With absurdly large numbers, this check would take very long.
MOST_ROUNDS = 10_000  # this is more than a year with one-minute steps in 56 cells
MOST_SLICES = 20_000  # this is two weeks of one-minute slices
Slices = Annotated[int, msgspec.Meta(ge=1, le=MOST_SLICES)]
MOST_AREAS = 4096
# the limit for the block sizes or mixes of a test, because each of them becomes a table or a row in the report
MOST_VALUES = 64
Rounds = Annotated[int, msgspec.Meta(ge=1, le=MOST_ROUNDS)]
Jobs = Annotated[int, msgspec.Meta(ge=1, le=MOST_JOBS)]
Depth = Annotated[int, msgspec.Meta(ge=1, le=DEEPEST_QUEUE)]
# Loops over demands are limited, because each demand becomes a row or a column in the report.
ThreadCounts = Annotated[tuple[Jobs, ...], msgspec.Meta(min_length=1, max_length=MOST_VALUES)]
Depths = Annotated[tuple[Depth, ...], msgspec.Meta(min_length=1, max_length=MOST_VALUES)]
MOST_PASSES = 1000
Passes = Annotated[int, msgspec.Meta(ge=1, le=MOST_PASSES)]
LONGEST_S = 30 * 86400
# fio reports once a second, so much shorter steps produce no data.
Seconds = Annotated[float, msgspec.Meta(ge=0.1, le=LONGEST_S)]
# The limit is in percent of the average. The largest limit, which no value exceeds, replaces infinity, because the rule
# is stored as JSON and JSON has no infinity.
Excursion = Annotated[float, msgspec.Meta(gt=0, le=1e6)]
LARGEST_BLOCK_KIB = 16 * 1024
BlockSizeKib = Annotated[float, msgspec.Meta(gt=0, le=LARGEST_BLOCK_KIB)]
Percents = Annotated[tuple[Percent, ...], msgspec.Meta(min_length=1, max_length=101)]
BlockSizesKib = Annotated[tuple[BlockSizeKib, ...], msgspec.Meta(min_length=1, max_length=MOST_VALUES)]
MOST_SEGMENTS = 1 << 20


def means(text: str) -> msgspec.Meta:
    """Return the metadata with the explanation of a key. ``tkperf profiles show`` and docs/reference/profile-keys.md
    show this text.
    """
    return msgspec.Meta(description=text)


# The explanations of keys that several tables contain.
THREAD_COUNT = means("thread count (TC)")
QUEUE_DEPTH = means("queue depth of each thread (QD)")
OUTER_LOOP = means("thread counts (TC), as the outer loop")
INNER_LOOP = means("queue depths of each thread (QD), as the inner loop")
STEP_LENGTH = means("length of each step, in s")
SLICE_LENGTH = means("length of each slice of the stream, in s")
ARRIVAL = means("arrival of the offered I/Os: linear (evenly spaced) or poisson (at random times)")

Source = Annotated[str, msgspec.Meta(min_length=1), means("source of the numbers in this table")]


class ProfileTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The numbers of a specification with their source. ``key`` is the name of the table in the TOML file."""

    key: ClassVar[str]

    source: Source

    def fault(self, profile: Profile) -> str | None:
        """Return, as ``name: reason``, the first fault that the types cannot exclude. None means that there is no
        fault.
        """
        return None


class SteadyStateTable(ProfileTable, frozen=True, kw_only=True):
    """The steady-state rule, which ends the rounds of a test."""

    key: ClassVar[str] = "steady_state"

    window_rounds: Annotated[int, msgspec.Meta(ge=2, le=100), means("number of rounds in a window")]
    max_data_excursion_percent: Annotated[
        Excursion, means("largest range (maximum minus minimum) of a steady window, in % of the average")
    ]
    max_slope_excursion_percent: Annotated[
        Excursion, means("largest rise or fall of the best linear fit over a steady window, in % of the average")
    ]
    max_rounds: Annotated[
        Rounds, means("maximum number of rounds, after which the test ends even without steady state")
    ]
    accept_disturbed: Annotated[
        bool,
        means(
            "whether tkperf accepts windows with tracked values that were influenced by something other than the device"
        ),
    ] = False

    def fault(self, profile: Profile) -> str | None:
        if self.max_rounds < self.window_rounds:
            return "max_rounds: fewer than window_rounds, steady state cannot be reached"
        return None

    @property
    def criteria(self) -> Criteria:
        return Criteria(
            window_rounds=self.window_rounds,
            max_data_excursion=self.max_data_excursion_percent / 100,
            max_slope_excursion=self.max_slope_excursion_percent / 100,
            accept_disturbed=self.accept_disturbed,
        )


class DemandTable(ProfileTable, frozen=True, kw_only=True):
    """The thread count (TC), and the queue depth of each thread (QD), for all tests that have no demand in their own
    table.

    ``searched`` means that a search determines the demand first. In this case, these numbers are only the demand of the
    preconditioning before the search.
    """

    key: ClassVar[str] = "demand"

    jobs: Annotated[Jobs, THREAD_COUNT]
    io_depth: Annotated[Depth, QUEUE_DEPTH]
    searched: Annotated[
        bool,
        means(
            "whether tkperf first searches for jobs and io_depth. The values of the keys jobs and io_depth then "
            "apply only to the preconditioning of the search"
        ),
    ] = False


class ActiveRangeTable(ProfileTable, frozen=True, kw_only=True):
    """The range of the device that the tests use: one piece from the start of the device, or several pieces
    (segments).
    """

    key: ClassVar[str] = "active_range"

    length: Annotated[
        str, means("part of the device that tests may use, from the start of the device, for example 75% or 16GiB")
    ]
    amount: Annotated[
        str | None, means("amount of the active range that tests use, such as 16GiB; default: the whole active range")
    ] = None
    segments: Annotated[
        int,
        msgspec.Meta(ge=1, le=MOST_SEGMENTS),
        means(
            "number of equal segments into which the amount is divided. The segments lie at random places and do "
            "not touch each other"
        ),
    ] = 1

    def fault(self, profile: Profile) -> str | None:
        if self.segments == 1:
            return None
        if self.amount is None:
            return "segments: more than one need an amount that they share"
        try:
            amount_bytes = parse_size_bytes(self.amount)
        except UsageError as error:
            return f"amount: {error}"
        if amount_bytes % (self.segments * 512):
            return f"segments: {self.amount} cannot be cut into {self.segments:,} equal pieces of whole sectors"
        return None

    def __str__(self) -> str:
        """Return the range in words, such as ``100 %`` or ``16 GiB in 2,048 segments of 80 %``."""
        if self.amount is None or self.segments == 1:
            return spaced(self.amount or self.length)
        segments = format_count(self.segments, "segment")
        return f"{spaced(self.amount)} in {segments} of {spaced(self.length)}"


class PreconditioningTable(ProfileTable, frozen=True, kw_only=True):
    """Workload-independent preconditioning, which writes sequentially to a range ``passes`` times."""

    key: ClassVar[str] = "preconditioning"

    block_size_kib: Annotated[BlockSizeKib, means("block size of the preconditioning writes, in KiB")]
    passes: Annotated[Passes, means("number of passes over the whole range")]
    length: Annotated[
        str | None,
        means(
            "range to precondition, from the start of the device, such as 80% or 16GiB; default: the active range. "
            "If the active range has segments, the default is the whole range in which the segments can lie"
        ),
    ] = None

    @property
    def length_bytes(self) -> int | None:
        """The length of the range on a device, in bytes. None means that the range is the active range, or is a share
        of a device that is not known yet.
        """
        if self.length is None or self.length.endswith("%"):
            return None
        return parse_size_bytes(self.length)

    @property
    def range_text(self) -> str:
        """The range in words, such as ``the active range`` or ``the first 80% of the device``."""
        if self.length is None:
            return "the active range"
        length_bytes = self.length_bytes
        length = spaced(self.length) if length_bytes is None else format_capacity(length_bytes)
        return f"the first {length} of the device"


class WriteCacheTable(ProfileTable, frozen=True, kw_only=True):
    """The setting of the volatile write cache of the drive during a run."""

    key: ClassVar[str] = "write_cache"

    setting: Annotated[
        Literal["on", "off", "keep"],
        means('setting of the volatile write cache during the run. With "keep", tkperf does not change the setting'),
    ]


SHARED_TABLES: tuple[type[ProfileTable], ...] = (
    SteadyStateTable,
    DemandTable,
    ActiveRangeTable,
    PreconditioningTable,
    WriteCacheTable,
)


class TestTable(ProfileTable, frozen=True, kw_only=True):
    """The numbers of one test, or of several tests that belong together."""

    __test__: ClassVar[bool] = False  # pytest must not collect this class as a test case

    def scaled(self, step_s: float) -> Self:
        """Return the table with a different duration of the steps (option ``-rt``)."""
        return self

    def fitted(self, logical_block_bytes: int) -> Self:
        """Return the table without the block sizes of its loops that the device cannot address.

        A list that would become empty stays unchanged. The test then cannot run.
        """
        kept = {
            name: addressable(getattr(self, name), logical_block_bytes)
            for name in self.__struct_fields__
            if name.endswith("block_sizes_kib")
        }
        return msgspec.structs.replace(self, **kept)

    def without_trims(self) -> Self:
        """Return the table for a device that does not support trims. The table of a test that cannot omit trims stays
        unchanged.
        """
        return self


class SteppedTable(TestTable, frozen=True, kw_only=True):
    """The numbers of a test with steps of equal duration."""

    step_s: Annotated[Seconds, STEP_LENGTH]

    def scaled(self, step_s: float) -> Self:
        return msgspec.structs.replace(self, step_s=step_s)


def find_size_fault(size_kib: float) -> str | None:
    """Return the reason why a block size is impossible. None means that the size is possible."""
    size_bytes = size_kib * KIB
    return f"{size_bytes:g} bytes is not a multiple of 512 bytes" if size_bytes % 512 else None


def addressable(sizes_kib: tuple[float, ...], logical_block_bytes: int) -> tuple[float, ...]:
    """Return the block sizes that are multiples of the sector. If there is no such size, return all sizes."""
    return tuple(size for size in sizes_kib if size * KIB % logical_block_bytes == 0) or sizes_kib


AnyTable = TypeVar("AnyTable", bound=ProfileTable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """All numbers of a specification, in tables.

    Every result shows ``notice``, unless it is empty. A test that the specification does not define has no table. A
    shared table is missing only if the profile was read from a run file without this table.
    """

    name: str
    title: str
    notice: str
    tables: Mapping[str, ProfileTable]

    def table(self, type_: type[AnyTable]) -> AnyTable:
        """Return the table of this type.

        Raises:
            ProfileError: the profile does not contain the table.
        """
        table = self.tables.get(type_.key)
        if not isinstance(table, type_):
            raise ProfileError(f"profile {self.name} has no table {type_.key}")
        return table

    def has(self, type_: type[ProfileTable]) -> bool:
        return isinstance(self.tables.get(type_.key), type_)

    def with_tables(self, *changed: ProfileTable) -> Profile:
        """Return the profile in which these tables replace its own tables."""
        return replace(self, tables={**self.tables, **{table.key: table for table in changed}})

    @property
    def steady_state(self) -> SteadyStateTable:
        return self.table(SteadyStateTable)

    @property
    def demand(self) -> DemandTable:
        return self.table(DemandTable)

    @property
    def active_range(self) -> ActiveRangeTable:
        return self.table(ActiveRangeTable)

    @property
    def preconditioning(self) -> PreconditioningTable:
        return self.table(PreconditioningTable)

    @property
    def write_cache(self) -> WriteCacheTable:
        return self.table(WriteCacheTable)

    def workload(
        self,
        access: Access,
        read_percent: int,
        block_size_kib: float,
        jobs: int | None = None,
        io_depth: int | None = None,
    ) -> Workload:
        """Return a workload at the given demand. By default, the demand is that of the profile."""
        return Workload(
            access=access,
            read_percent=read_percent,
            block_size_bytes=round(block_size_kib * KIB),
            jobs=jobs or self.demand.jobs,
            io_depth=io_depth or self.demand.io_depth,
        )

    def at_demand(self, jobs: int, io_depth: int) -> Profile:
        """Return the profile with the thread count and the queue depth that a search found."""
        changed = {"jobs": jobs, "io_depth": io_depth, "searched": False}
        return self.with_tables(msgspec.structs.replace(self.demand, **changed))

    def as_plain_data(self) -> dict[str, object]:
        """Return the profile in the form of its TOML file."""
        data: dict[str, object] = {"name": self.name, "title": self.title, "notice": self.notice}
        return data | {
            key: {name: value for name, value in msgspec.to_builtins(table).items() if value is not None}
            for key, table in self.tables.items()
        }


def find_fault(profile: Profile) -> str | None:
    """Return, as ``key: reason``, the first fault of a profile. None means that there is no fault."""
    for key, table in profile.tables.items():
        fault = _in_any_table(table) or table.fault(profile)
        if fault:
            return f"{key}.{fault}"
    return None


def _in_any_table(table: ProfileTable) -> str | None:
    """Return the first fault of a kind that can occur in any table: a repeated value or an impossible block size. None
    means that there is no fault.
    """
    for name in table.__struct_fields__:
        value = getattr(table, name)
        values = value if isinstance(value, tuple) else (value,)
        if name.endswith("_kib"):
            for size_kib in values:
                if fault := find_size_fault(size_kib):
                    return f"{name}: {fault}"
        # Lists of loads are not checked, because a load may occur more than once in a sequence.
        plain = not any(isinstance(entry, msgspec.Struct | dict) for entry in values)
        if plain and len(set(values)) < len(values):
            return f"{name}: a value occurs twice"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExplained:
    """A key of a table, with its possible values and its meaning in words."""

    name: str
    values: str
    meaning: str


def explain_keys(table: type[msgspec.Struct]) -> tuple[KeyExplained, ...]:
    """Return all keys of a table in order."""
    info = msgspec.inspect.type_info(table)
    assert isinstance(info, msgspec.inspect.StructType)
    return tuple(
        KeyExplained(name=field.name, values=describe_values(field.type), meaning=_meaning(field))
        for field in info.fields
    )


def show_value(value: object) -> str:
    """Return a value as readable text, such as ``5``, ``yes`` or ``100, 65, 0``. A cell of mix and block size becomes
    ``65/64``.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(f"{name} {show_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        joint = "; " if any(isinstance(item, dict | list | tuple) for item in value) else ", "
        return joint.join(map(show_value, value)) or "none"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _meaning(field: msgspec.inspect.Field) -> str:
    """Return the meaning of a key. For an optional key, the result also contains the default."""
    if not isinstance(field.type, msgspec.inspect.Metadata):
        return ""
    meaning = str((field.type.extra_json_schema or {}).get("description", ""))
    if field.required or "default: " in meaning:
        return meaning
    return f"{meaning}; default: {show_value(field.default)}"
