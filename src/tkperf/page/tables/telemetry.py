"""Telemetry of drives during a test, as a table: the same in every output."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.analysis.telemetry import DriveTelemetry
from tkperf.page.tables.results import ResultTable, TableNumber

# Attribute, label, divisor, digits.
_ROWS = (
    ("temperature_least_c", "Temperature, lowest (°C)", 1, 1),
    ("temperature_mean_c", "Temperature, mean (°C)", 1, 1),
    ("temperature_most_c", "Temperature, highest (°C)", 1, 1),
    ("throttled_s", "Throttled, between readings (s)", 1, 0),
    ("load_written_bytes", "Written by the test, as fio counts (GB)", 1e9, 3),
    ("host_written_bytes", "Written by the host, as the drive counts (GB)", 1e9, 3),
    ("nand_written_bytes", "Written to the flash (GB)", 1e9, 3),
    ("write_amplification", "Write amplification (flash / host)", 1, 2),
    ("media_errors", "Media errors, new", 1, 0),
    ("unsafe_shutdowns", "Unsafe shutdowns, new", 1, 0),
    ("warning_minutes", "Above its warning temperature, new (min)", 1, 0),
    ("critical_minutes", "Above its critical temperature, new (min)", 1, 0),
    ("thermal_1_count", "Slowed down lightly for heat, times", 1, 0),
    ("thermal_1_s", "Slowed down lightly for heat (s)", 1, 0),
    ("thermal_2_count", "Slowed down heavily for heat, times", 1, 0),
    ("thermal_2_s", "Slowed down heavily for heat (s)", 1, 0),
    ("throttle_events", "Thermal throttling events, new", 1, 0),
    ("percentage_used", "Life used, at the end (%)", 1, 0),
    ("percentage_used_growth", "Life used, new (percentage points)", 1, 0),
    ("spare_percent", "Spare blocks, at the end (%)", 1, 0),
    ("power_on_hours", "Power-on hours, at the end", 1, 0),
    ("power_state", "Power state, at the end (0: fastest)", 1, 0),
)  # fmt: skip


def build_telemetry_table(telemetry: Sequence[DriveTelemetry]) -> ResultTable | None:
    """Build a table with a line for each value that any drive reports, and a column for each drive."""
    if not telemetry:
        return None
    lines: tuple[tuple[str | TableNumber, ...], ...] = tuple(
        (label, *(_figure(getattr(drive, name), divisor, digits) for drive in telemetry))
        for name, label, divisor, digits in _ROWS
        if any(getattr(drive, name) is not None for drive in telemetry)
    )
    return ResultTable(
        title="The drive's own log" if len(telemetry) == 1 else "Each drive's own log",
        head=("", *(drive.drive for drive in telemetry)),
        rows=lines,
    )


def _figure(value: float | None, divisor: float, digits: int) -> TableNumber:
    return TableNumber(value=None if value is None else value / divisor, digits=digits)
