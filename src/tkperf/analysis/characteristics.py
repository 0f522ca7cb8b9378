"""Characteristics of a section over time, such as recovery time, saturation, levels and spikes. Every characteristic
has a unit.

All outputs take the characteristics from this module. If the analysis searched for a characteristic and did not find
the characteristic, the value is None, and the result often contains a bound of the value. For example, a device that
had not recovered after 8 hours takes longer than 8 hours, and a device without a backlog at any level saturates above
the last level. A characteristic for which the analysis did not search is absent.
"""

from __future__ import annotations

from dataclasses import dataclass

from tkperf.analysis.timeline.timelines import Recorded
from tkperf.analysis.uncertainty.estimate import Uncertainty
from tkperf.model.quantity import QUANTITIES, Better, Measure
from tkperf.model.units import NOT_FOUND, format_number
from tkperf.model.workload import Workload

HIGHER, LOWER, NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER

NO_BACKLOG = Measure(key="no_backlog_iops", label="no backlog up to", unit="IOPS", better=HIGHER, digits=0)
SATURATED = Measure(key="saturated_iops", label="saturates at", unit="IOPS", better=HIGHER)
SHARE_OF_FIRST = Measure(
    key="share_of_first_percent", label="share of the first section's rate", unit="%", better=HIGHER
)
READS_WITHIN_LIMIT = Measure(
    key="reads_within_limit_iops",
    label="reads within the latency limit during writes at the middle rate",
    unit="IOPS",
    better=HIGHER,
)
LATENCY_FACTOR = Measure(
    key="read_p99_factor",
    label="p99 of the reader with this neighbour, against the reader alone",
    unit="×",
    better=NEITHER,
)
"""The factor must not be used to rank drives. If two drives have equal latencies while a neighbour runs, the drive that
is faster without the neighbour has the greater factor.
"""
RECOVERY = Measure(key="recovery_s", label="recovery time", unit="s", better=LOWER, digits=1)
AFTER_RECOVERY = Measure(key="least_after_recovery_percent", label="least after recovery", unit="%", better=HIGHER)
FRESH = Measure(key="fresh_iops", label="fresh-out-of-box level", unit="IOPS", better=HIGHER)
FRESH_UNTIL = {
    Recorded.ROUNDS: Measure(
        key="fresh_until_round", label="last round fresh out of box", unit="", better=NEITHER, digits=0
    ),
    Recorded.SLICES: Measure(key="fresh_until_s", label="fresh out of box until", unit="s", better=NEITHER, digits=1),
}
AFTER_FRESH = Measure(key="after_fresh_iops", label="level after fresh out of box", unit="IOPS", better=HIGHER)
"""The second level of the rate of a purged device, such as the rate after a cache is full.

A section has this characteristic only if tkperf found such a level.
"""
AFTER_FRESH_UNTIL = {
    Recorded.ROUNDS: Measure(
        key="after_fresh_until_round", label="last round after fresh out of box", unit="", better=NEITHER, digits=0
    ),
    Recorded.SLICES: Measure(
        key="after_fresh_until_s", label="after fresh out of box until", unit="s", better=NEITHER, digits=1
    ),
}
STEADY = Measure(key="steady_iops", label="steady level", unit="IOPS", better=HIGHER)
STEADY_FROM = {
    Recorded.ROUNDS: Measure(key="steady_from_round", label="first steady round", unit="", better=NEITHER, digits=0),
    Recorded.SLICES: Measure(key="steady_from_s", label="steady from", unit="s", better=NEITHER, digits=1),
}
DROPS = Measure(key="sudden_drops", label="sudden drops", unit="", better=LOWER, digits=0)
"""Number of sudden drops. The value 0 means that the analysis searched for drops and found none."""
SPIKE_PERIODS = {
    (quantity, recorded): Measure(
        key=f"{quantity.removesuffix('_us')}_spike_period_{suffix}",
        label=f"period of {QUANTITIES[quantity].label} spikes",
        unit=unit,
        better=NEITHER,
        digits=1,
    )
    for quantity in ("latency_max_us", "latency_mean_us")
    for recorded, suffix, unit in ((Recorded.ROUNDS, "rounds", "rounds"), (Recorded.SLICES, "s", "s"))
}


SOUGHT_ALWAYS = (NO_BACKLOG, SATURATED, SHARE_OF_FIRST, RECOVERY, AFTER_RECOVERY, READS_WITHIN_LIMIT, LATENCY_FACTOR)
"""Characteristics that a test is designed to find. All other characteristics exist only for a series that does not stay
at one level.
"""

CHARACTERISTICS: dict[str, Measure] = {
    measure.key: measure
    for measure in (
        NO_BACKLOG,
        SATURATED,
        SHARE_OF_FIRST,
        RECOVERY,
        AFTER_RECOVERY,
        READS_WITHIN_LIMIT,
        LATENCY_FACTOR,
        FRESH,
        *FRESH_UNTIL.values(),
        AFTER_FRESH,
        *AFTER_FRESH_UNTIL.values(),
        STEADY,
        *STEADY_FROM.values(),
        DROPS,
        *SPIKE_PERIODS.values(),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Characteristic:
    """One characteristic of a section over time, identified by the characteristic's key in ``CHARACTERISTICS``.

    Attributes:
        workload: the workload that shows the characteristic; for a load with an offered rate, the workload without this
            rate.
        value: the value, or None if the analysis searched for the characteristic and did not find it.
        at_least, at_most: bounds of a value that was not found, or None if not known.
        uncertainty: uncertainty of the value, or the reason why the value has no uncertainty; None if there is no
            value.
    """

    key: str
    workload: Workload
    value: float | None
    at_least: float | None = None
    at_most: float | None = None
    uncertainty: Uncertainty | None = None

    @property
    def measure(self) -> Measure:
        return CHARACTERISTICS[self.key]

    def text(self) -> str:
        """Return the value as text. If no value was found, return the bound, such as ``at least 28,800.0``. If no bound
        is known either, return ``not found``.
        """
        digits = self.measure.digits
        if self.value is not None:
            return format_number(self.value, digits)
        if self.at_least is not None and self.at_most is not None:
            low, high = (format_number(end, digits) for end in (self.at_least, self.at_most))
            return f"between {low} and {high}"
        if self.at_least is not None:
            return f"at least {format_number(self.at_least, digits)}"
        if self.at_most is not None:
            return f"below {format_number(self.at_most, digits)}"
        return NOT_FOUND
