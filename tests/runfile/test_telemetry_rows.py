"""Readings from the logs of drives in the run file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.runfile.runs import a_run, a_step
from tkperf.model.record import RunStatus
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.runfile.reader import read_run
from tkperf.runner.events import RunEnded, StepEnded, TelemetrySeen, TestEnded, Warned

READING = Reading(
    at_s=1.25,
    drive="/dev/nvme0n1",
    source="nvme",
    temperature_c=41.5,
    host_read_bytes=1,
    host_written_bytes=2**62,
    nand_written_bytes=3,
    media_errors=0,
    percentage_used=101,
    spare_percent=99,
    unsafe_shutdowns=4,
    power_on_hours=5,
    critical_warning=2,
    warning_minutes=6,
    critical_minutes=7,
    thermal_1_count=8,
    thermal_2_count=9,
    thermal_1_s=10,
    thermal_2_s=11,
    throttle_events=12,
    throttling=False,
    power_state=0,
)


def test_a_reading_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A reading is read back with all fields, including those that are not known. Readings are in the order of their
    times.
    """
    path, writer = a_run(tmp_path)
    alone = Reading(at_s=0.5, drive="/dev/sda", source="hwmon", temperature_c=-3.0)
    writer(TelemetrySeen(reading=READING))
    writer(TelemetrySeen(reading=alone))
    writer(StepEnded(test="iops", record=a_step()))
    writer.close()
    assert read_run(path).telemetry == (alone, READING)


def test_readings_are_kept_with_what_follows_them(tmp_path: Path) -> None:
    """Readings are stored in the same transaction as the next row of another kind. Separate transactions would sync a
    disk every ten seconds. No reading is lost at the end of the run.
    """
    path, writer = a_run(tmp_path)
    writer(TelemetrySeen(reading=READING))
    assert read_run(path).telemetry == ()
    writer(TestEnded(test="iops", status=RunStatus.COMPLETE, at_s=2.0))
    assert read_run(path).telemetry == (READING,)
    writer(TelemetrySeen(reading=replace(READING, at_s=3.0)))
    writer(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc=None))
    writer.close()
    assert [each.at_s for each in read_run(path).telemetry] == [1.25, 3.0]


def test_an_impossible_reading_is_not_kept(tmp_path: Path) -> None:
    """An impossible reading is not stored, and a warning reports this. The same rule applies to any row that a reader
    would refuse.
    """
    warned: list[object] = []
    path, writer = a_run(tmp_path, observer=warned.append)
    writer(TelemetrySeen(reading=replace(READING, media_errors=-1)))
    writer(StepEnded(test="iops", record=a_step()))
    writer.close()
    record = read_run(path)
    assert record.telemetry == ()
    assert [warning.code for warning in record.warnings] == ["not-kept"]
    assert isinstance(warned[0], Warned)
