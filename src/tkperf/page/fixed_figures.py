"""Names of the fixed figures, which a report, a comparison and a ranking show alike."""

from __future__ import annotations

from tkperf.model.quantity import Better, Measure
from tkperf.model.units import MIB, format_block_size_kib, format_mix
from tkperf.model.workload import Workload
from tkperf.page.matrix import MatrixColumn

# Title of the tile and the column, and the name in a sentence.
FIGURE_NAMES = {
    "random_read": ("Random read", "random reads"),
    "random_write": ("Random write", "random writes"),
    "random_mix": ("Mixed", "mixed I/O"),
    "large_read": ("Sequential read", "sequential reads"),
    "large_write": ("Sequential write", "sequential writes"),
    "single_read": ("Read latency", "mean read latency"),
    "single_write": ("Write latency", "p99.9 write latency"),
    "kept_rate": ("Kept rate", "kept rate"),
}
TILES = ("random_write", "random_read", "single_read", "large_write", "large_read", "single_write")
"""The figures that open the report of a run, in their order."""
# What is measured of single I/Os.
_MEASURED = {"single_read": "mean", "single_write": "p99.9"}


def describe_load(key: str, work: Workload, *, same_demand: bool = True) -> str:
    """Return the load of a fixed figure: ``4 KiB, TC2/QD16``; ``4 KiB, QD1, p99.9`` of single I/Os.

    Args:
        same_demand: all values of the figure have this demand.
    """
    size = f"{work.block_size_bytes // MIB} MiB" if work.block_size_bytes >= MIB else ""
    size = size or f"{format_block_size_kib(work.block_size_bytes)} KiB"
    if key in _MEASURED:
        return f"{size}, QD1, {_MEASURED[key]}"
    return f"{size}, {f'TC{work.jobs}/QD{work.io_depth}' if same_demand else 'own demand'}"


def build_column(key: str, work: Workload, measure: Measure, *, same_demand: bool) -> MatrixColumn:
    """Return the column of a fixed figure: its name, and its load with the unit."""
    unit = ", ".join(filter(None, (_MEASURED.get(key), measure.unit))) + mark_falling(measure)
    if key == "kept_rate":
        return MatrixColumn(title=FIGURE_NAMES[key][0], detail="last quarter / fresh, %", unit=unit)
    mix = f" {format_mix(work.read_percent)}" if work.is_mixed else ""
    load = describe_load(key, work, same_demand=same_demand)
    detail = f"{load}, {measure.unit}{mark_falling(measure)}"
    return MatrixColumn(
        title=f"{FIGURE_NAMES[key][0]}{mix}", detail=detail, unit=unit, direction=describe_direction(measure)
    )


def mark_falling(measure: Measure) -> str:
    """Return the sign of a measure of which a lower value is better."""
    return " ↓" if measure.better is Better.LOWER else ""


def describe_direction(measure: Measure) -> str:
    """Return ``lower is better`` for a measure whose longest bar is the worst; empty for all others."""
    return "lower is better" if measure.better is Better.LOWER else ""
