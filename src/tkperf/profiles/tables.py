"""The tables of a profile: what their numbers may be, and the tables that tests share.

The table of a test stands in the test's module in ``tkperf.procedures``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import msgspec

from tkperf.steady_state import Criteria
from tkperf.units import KIB

if TYPE_CHECKING:
    from tkperf.profiles import Profile

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
# Loops over demands, each a row or a column in the report.
ThreadCounts = Annotated[tuple[Jobs, ...], msgspec.Meta(min_length=1, max_length=MOST_VALUES)]
Depths = Annotated[tuple[Depth, ...], msgspec.Meta(min_length=1, max_length=MOST_VALUES)]
Passes = Annotated[int, msgspec.Meta(ge=1, le=1000)]
LONGEST_S = 30 * 86400
# fio reports once a second; shorter steps hold nothing that could be told.
Seconds = Annotated[float, msgspec.Meta(ge=0.1, le=LONGEST_S)]
# Infinity switches a rule off.
Excursion = Annotated[float, msgspec.Meta(gt=0)]
BlockSizeKib = Annotated[float, msgspec.Meta(gt=0, le=16 * 1024)]
Percents = Annotated[tuple[Percent, ...], msgspec.Meta(min_length=1, max_length=101)]
BlockSizesKib = Annotated[
    tuple[BlockSizeKib, ...], msgspec.Meta(min_length=1, max_length=MOST_VALUES)
]
Source = Annotated[str, msgspec.Meta(min_length=1)]


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Numbers with their source; ``key`` is the name of the table in the TOML file."""

    key: ClassVar[str]

    source: Source

    def fault(self, profile: Profile) -> str | None:
        """The first number that its type cannot rule out, as ``name: reason``; None if all are right."""
        return None


class SteadyStateTable(Table, frozen=True, kw_only=True):
    """The rule that the rounds of a test end by."""

    key: ClassVar[str] = "steady_state"

    window_rounds: Annotated[int, msgspec.Meta(ge=2, le=100)]
    max_data_excursion_percent: Excursion
    max_slope_excursion_percent: Excursion
    max_rounds: Rounds

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
        )


class DemandTable(Table, frozen=True, kw_only=True):
    """Thread count (TC) and queue depth per thread (QD) of all tests whose table has none."""

    key: ClassVar[str] = "demand"

    jobs: Jobs
    io_depth: Depth


class ActiveRangeTable(Table, frozen=True, kw_only=True):
    """``length`` is a share of the device such as ``100%`` or a size such as ``16GiB``."""

    key: ClassVar[str] = "active_range"

    length: str


class PreconditioningTable(Table, frozen=True, kw_only=True):
    """Workload-independent preconditioning: ``passes`` x the active range, sequentially."""

    key: ClassVar[str] = "preconditioning"

    block_size_kib: BlockSizeKib
    passes: Passes


class WriteCacheTable(Table, frozen=True, kw_only=True):
    """The drive's volatile write cache for the length of a run; ``keep`` leaves it as it is."""

    key: ClassVar[str] = "write_cache"

    setting: Literal["on", "off", "keep"]


SHARED_TABLES: tuple[type[Table], ...] = (
    SteadyStateTable,
    DemandTable,
    ActiveRangeTable,
    PreconditioningTable,
    WriteCacheTable,
)


class TestTable(Table, frozen=True, kw_only=True):
    """The numbers of one test, or of several that belong together."""

    __test__: ClassVar[bool] = False  # not a test case, whatever pytest thinks of the name

    def scaled(self, step_s: float) -> Self:
        """The table with steps of another length (``-rt``)."""
        return self

    def fitted(self, logical_block_bytes: int) -> Self:
        """The table without the block sizes of its loops that a device cannot address.

        A list of which none would be left stays as it is: then the test cannot be run.
        """
        return self


class SteppedTable(TestTable, frozen=True, kw_only=True):
    """A test of steps that are all equally long."""

    step_s: Seconds

    def scaled(self, step_s: float) -> Self:
        return msgspec.structs.replace(self, step_s=step_s)


def addressable(sizes_kib: tuple[float, ...], logical_block_bytes: int) -> tuple[float, ...]:
    """The block sizes that are whole sectors; all of them if none is."""
    return tuple(size for size in sizes_kib if size * KIB % logical_block_bytes == 0) or sizes_kib
