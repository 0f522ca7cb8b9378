"""A chart that would show only a flat line is replaced by a sentence. Rows of comparisons name the fields that
distinguish them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analysis.made_up import made_up_run, made_up_section
from tests.builders import work
from tkperf.analysis.comparing.compared_rows import Change
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.drive_telemetry import DriveSeries, TelemetrySeries, Written
from tkperf.model.telemetry.drive_reading import DriveFacts
from tkperf.page.chart import Chart
from tkperf.page.figures.telemetry import show_drive_reports

SLOW, FAST = work(jobs=1, io_depth=1), work(jobs=4, io_depth=32)


def series_of(*celsius: float, nand: int = 2_000_000_000, throttled: bool = False) -> TelemetrySeries:
    """Return the readings of a drive's log, with one reading for each minute."""
    written = tuple(
        Written(
            began_s=60.0 * n, ended_s=60.0 * n + 60, host_bytes=10**9, nand_bytes=nand * (n + 1), amplification=None
        )
        for n in range(2)
    )
    drive = DriveSeries(
        facts=DriveFacts(drive="sda"),
        temperatures=tuple((60.0 * number, value) for number, value in enumerate(celsius)),
        written=written,
        throttled=((0.0, 60.0),) if throttled else (),
    )
    return TelemetrySeries(drives=(drive,), length_s=120.0)


@pytest.mark.parametrize(
    ("celsius", "throttled", "level"),
    [
        ((40.0, 41.0, 40.5), False, "Temperature (°C): level at 40.5."),
        ((40.0, 44.0, 48.0), False, ""),
        ((40.0, 41.0, 40.5), True, ""),
    ],
)
def test_a_level_temperature_is_a_sentence(celsius: tuple[float, ...], throttled: bool, level: str) -> None:
    """A temperature within 5 % of its median is flat and becomes a sentence, unless the drive was throttled at the time
    of the readings.
    """
    temperature, flash, *_ = show_drive_reports(series_of(*celsius, throttled=throttled), "the test")
    assert temperature.level == level
    # The written amount doubles from the first minute to the second, so it is not flat.
    assert flash.level == ""


def test_own_demands_are_not_better_or_worse() -> None:
    """If each drive was measured at its own demand, the values are different, but neither better nor worse. A test that
    searches for a demand may find a different demand for each drive.
    """

    def run(name: str, demand: object, value: float, ceiling_us: float | None) -> object:
        grid = replace(made_up_section("Grid", {demand: [value] * 5}), latency_ceiling_us=ceiling_us)  # type: ignore[dict-item]
        point = made_up_section("Maximum", {demand: [value, value * 1.001, value, value, value]})  # type: ignore[dict-item]
        return made_up_run(name, {"own": [grid, point]}, seed=int(value))

    def changes(other: object, ceiling_us: float | None) -> set[Change | None]:
        runs = [run("A", SLOW, 100.0, ceiling_us), run("B", other, 200.0, ceiling_us)]
        rows = compare(runs).rows  # type: ignore[arg-type]
        return {row.entries[1].change for row in rows if row.section == "Maximum"}

    judged = {Change.BETTER, Change.WORSE}
    assert changes(SLOW, 5000.0) & judged
    assert changes(FAST, None) & judged
    assert not changes(FAST, 5000.0) & judged


def test_a_chart_of_the_drives_reports_is_one_of_curves() -> None:
    """Every chart of readings from the drives' logs consists of curves, because only curves can be checked for
    flatness.
    """
    assert all(isinstance(each.chart, Chart) for each in show_drive_reports(series_of(40.0, 50.0), "the test"))
