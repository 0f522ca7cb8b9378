"""All quantities that are measured for a workload. Each quantity is defined once, with its name, its unit, and the rule
that combines rounds.

Tables, charts, comparisons, claims and exports use these definitions. docs/explanation/method.md contains the formulas.
A reported rate is the mean of the rounds of a window. A mean latency is the mean of the rounds' means. A minimum or
maximum is the extreme of the window. Percentiles are computed from the merged histograms of the window. At an offered
rate, the backlog is the number of I/Os that were due and not completed at the end of a round. The time behind is the
backlog divided by the offered rate. For the backlog and for the time behind, the greatest value of the window is
reported. The latency with wait counts from the time at which an I/O was due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from tkperf.model.measurement import IoStats, Measurement, add_all
from tkperf.model.reported_percentiles import REPORTED_PERCENTILES
from tkperf.model.units import format_quantity
from tkperf.model.workload import Workload


class Direction(StrEnum):
    """The direction of the I/Os of a workload: reads, writes or all."""

    ALL = "all"
    READ = "read"
    WRITE = "write"


class Better(StrEnum):
    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The name, the unit and the digits with which every output shows a number.

    Attributes:
        key: the name in JSON, CSV and claims. If the number has a unit, the name ends with the unit.
        label: the name in tables and on axes, without the unit.
        unit: the unit. An empty value means that the number is a count.
        digits: digits after the decimal point, for exact numbers. None means that a number has as many digits as a
            measured figure needs (``units.find_digit_place``).
    """

    key: str
    label: str
    unit: str
    better: Better
    digits: int | None = None

    @property
    def title(self) -> str:
        """Return the label with the unit, such as ``mean latency (µs)``. If the label of a rate is also its unit, the
        result has no parentheses.
        """
        return f"{self.label} ({self.unit})" if self.unit and self.unit != self.label else self.label

    @property
    def unit_in_data(self) -> str:
        """Return the unit in ASCII, as files for programs write it."""
        return self.unit.replace("µ", "u")

    def text(self, value: float | None) -> str:
        """Return a value with its unit, as text for people to read. If the value was not measured, return a dash."""
        return format_quantity(value, self.unit, self.digits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity(Measure):
    """A quantity that is measured for a workload.

    Attributes:
        short: the name in tables whose head contains the unit.
        over: the rule that combines the rounds of a window, in words, such as the mean of the rounds or the greatest
            value.
        combine: the function that computes the value from the rounds of a window. The function returns None if the
            value was not measured.
        of_rounds: for a mean over rounds, the function that computes the value of each round. None means that the
            quantity is not a mean.
    """

    short: str
    over: str
    combine: Callable[[Window], float | None]
    of_rounds: Callable[[Window], list[float]] | None = None


def stats_of(measurement: Measurement, direction: Direction) -> IoStats:
    """Return the statistics of the I/Os of one direction, or of all I/Os."""
    match direction:
        case Direction.READ:
            return measurement.read
        case Direction.WRITE:
            return measurement.write
        case Direction.ALL:
            return measurement.both


@dataclass(frozen=True, kw_only=True)
class Window:
    """The rounds of a workload whose values are combined, for one direction or for all I/Os."""

    rounds: Sequence[Measurement]
    workload: Workload
    direction: Direction = Direction.ALL

    @cached_property
    def stats(self) -> tuple[IoStats, ...]:
        """Return the statistics of each round."""
        return tuple(stats_of(measurement, self.direction) for measurement in self.rounds)

    @cached_property
    def merged(self) -> IoStats:
        """Return the sum of the statistics of all rounds."""
        return add_all(self.stats)

    @cached_property
    def sides(self) -> tuple[IoStats, ...]:
        """Return the statistics of each round and each direction that was measured.

        A caller can check with this result whether extremes and percentiles are known for all directions. The extreme
        or percentile of only one direction must not be shown as a value of all I/Os.
        """
        if self.direction is Direction.ALL:
            kinds = ((measurement.read, measurement.write, measurement.trim) for measurement in self.rounds)
            both = (side for of_kind in kinds for side in of_kind)
            return tuple(side for side in both if side.latency_ios)
        return tuple(side for side in self.stats if side.latency_ios)

    @cached_property
    def has_histograms(self) -> bool:
        """Return whether all measured directions have histograms. Percentiles cannot be computed without histograms."""
        return all(side.histogram.total for side in self.sides)

    @cached_property
    def offered_iops(self) -> float | None:
        """Return the offered rate of this direction in IOPS. None means that no rate is offered, and fio issues I/Os as
        fast as the device completes them.
        """
        offered, reads = self.workload.offered_iops, self.workload.read_percent / 100
        if offered is None:
            return None
        share = {Direction.ALL: 1.0, Direction.READ: reads, Direction.WRITE: 1 - reads}
        return offered * share[self.direction]

    @cached_property
    def is_counted(self) -> bool:
        return all(measurement.rates_known for measurement in self.rounds)


Combine = Callable[[Window], float | None]
OfRounds = Callable[[Window], list[float]]


def _mean_of(of_rounds: OfRounds) -> Combine:
    def combine(window: Window) -> float | None:
        values = of_rounds(window)
        return sum(values) / len(values) if values else None

    return combine


def _rates(value: Callable[[IoStats], int], scale: float, *, of_bytes: bool = False) -> OfRounds:
    def of_rounds(window: Window) -> list[float]:
        if not window.is_counted or (of_bytes and window.workload.flushes):
            return []
        return [
            value(stats) / scale / measurement.duration_s
            for measurement, stats in zip(window.rounds, window.stats, strict=True)
        ]

    return of_rounds


def _means_us(window: Window) -> list[float]:
    means = (to_us(stats.latency_mean_ns) for stats in window.stats)
    return [mean for mean in means if mean is not None]


def _min_us(window: Window) -> float | None:
    complete = all(side.latency_min_ns is not None for side in window.sides)
    return to_us(window.merged.latency_min_ns) if complete else None


def _max_us(window: Window) -> float | None:
    complete = all(side.latency_max_ns is not None for side in window.sides)
    return to_us(window.merged.latency_max_ns) if complete else None


def _percentile_us(percent: float) -> Combine:
    def combine(window: Window) -> float | None:
        return to_us(window.merged.percentile_ns(percent)) if window.has_histograms else None

    return combine


def _cpu_percents(window: Window) -> list[float]:
    """Return the CPU use of all fio threads in each round, in percent of one CPU. The CPU use is known only for reads
    and writes together, because the same threads issue reads and writes.
    """
    used = [measurement.cpu.all_threads_percent for measurement in window.rounds if measurement.cpu is not None]
    complete = window.direction is Direction.ALL and len(used) == len(window.rounds)
    return used if complete else []


def _ios(window: Window) -> float | None:
    return window.merged.ios if window.is_counted else None


def _backlog_ios(window: Window) -> float | None:
    if window.offered_iops is None or not window.is_counted:
        return None
    return max(
        max(0.0, window.offered_iops * measurement.duration_s - stats.ios)
        for measurement, stats in zip(window.rounds, window.stats, strict=True)
    )


def _behind_us(window: Window) -> float | None:
    backlog = _backlog_ios(window)
    return 1e6 * backlog / window.offered_iops if backlog and window.offered_iops else backlog


def _not_by_rounds(_window: Window) -> None:
    """Return None, because the value cannot be computed from the totals of the rounds. ``analysis/over_seconds.py``
    computes the value from the seconds of the rounds.
    """
    return


def to_us(value_ns: float | None) -> float | None:
    """Return nanoseconds as microseconds."""
    return None if value_ns is None else value_ns / 1000


def _build_mean(key: str, label: str, short: str, unit: str, better: Better, of_rounds: OfRounds) -> Quantity:
    return Quantity(
        key=key,
        label=label,
        short=short,
        unit=unit,
        better=better,
        over="mean",
        combine=_mean_of(of_rounds),
        of_rounds=of_rounds,
    )


IOPS = _build_mean("iops", "IOPS", "IOPS", "IOPS", Better.HIGHER, _rates(lambda side: side.ios, 1))
THROUGHPUT = _build_mean(
    "megabytes_per_s", "throughput", "MB/s", "MB/s", Better.HIGHER, _rates(lambda side: side.bytes, 1e6, of_bytes=True)
)
LATENCY_MEAN = _build_mean("latency_mean_us", "mean latency", "mean", "µs", Better.LOWER, _means_us)
LATENCY_MIN = Quantity(
    key="latency_min_us",
    label="minimum latency",
    short="min",
    unit="µs",
    better=Better.LOWER,
    over="least",
    combine=_min_us,
)
LATENCY_MAX = Quantity(
    key="latency_max_us",
    label="maximum latency",
    short="max",
    unit="µs",
    better=Better.LOWER,
    over="greatest",
    combine=_max_us,
)
PERCENTILES = tuple(
    Quantity(
        key=f"p{percent:g}_us",
        label=f"p{percent:g} latency",
        short=f"p{percent:g}",
        unit="µs",
        better=Better.LOWER,
        over="all I/Os",
        combine=_percentile_us(percent),
    )
    for percent in REPORTED_PERCENTILES
)
BACKLOG = Quantity(
    key="backlog_ios",
    label="backlog",
    short="backlog",
    unit="I/Os",
    better=Better.LOWER,
    over="greatest",
    digits=0,
    combine=_backlog_ios,
)
BEHIND = Quantity(
    key="behind_us",
    label="time behind",
    short="behind",
    unit="µs",
    better=Better.LOWER,
    over="greatest",
    combine=_behind_us,
)
LATENCY_WITH_WAIT = Quantity(
    key="latency_with_wait_us",
    label="mean latency with wait",
    short="mean with wait",
    unit="µs",
    better=Better.LOWER,
    over="mean",
    combine=_not_by_rounds,
)
IOS = Quantity(
    key="ios", label="I/Os", short="I/Os", unit="", better=Better.NEITHER, over="all", digits=0, combine=_ios
)
CPU = _build_mean("cpu_percent", "CPU use of fio", "CPU", "% of one CPU", Better.NEITHER, _cpu_percents)

# Tables and exports show the quantities in this order.
QUANTITIES: dict[str, Quantity] = {
    quantity.key: quantity
    for quantity in (
        IOPS,
        THROUGHPUT,
        LATENCY_MEAN,
        LATENCY_MIN,
        LATENCY_MAX,
        *PERCENTILES,
        IOS,
        CPU,
        BACKLOG,
        BEHIND,
        LATENCY_WITH_WAIT,
    )
}


def find_quantities(keys: Iterable[str]) -> tuple[Quantity, ...]:
    """Return the quantities with the given keys. Keys that this version of tkperf does not know are omitted."""
    return tuple(QUANTITIES[key] for key in keys if key in QUANTITIES)


def percentile(percent: float) -> Quantity:
    """Return the quantity of a reported percentile."""
    return QUANTITIES[f"p{percent:g}_us"]


Figures = dict[str, float | int | None]
"""The values of quantities, keyed by the keys of the quantities. Counts are integers. None means "not measured"."""


def combine(rounds: Sequence[Measurement], workload: Workload, direction: Direction = Direction.ALL) -> Figures:
    """Combine the rounds of a window, and return the value of every quantity. The keys are those of the quantities.
    None means that the value was not measured.
    """
    window = Window(rounds=rounds, workload=workload, direction=direction)
    return {key: quantity.combine(window) for key, quantity in QUANTITIES.items()}
