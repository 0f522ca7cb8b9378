"""Conclusions from the readings of a drive: throttling, write amplification, marks on steps, stored values and
warnings.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import run_info
from tests.runfile.runs import a_step
from tkperf.analysis.drive_telemetry import find_telemetry_series, parse_drives
from tkperf.analysis.run_results import analyse
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.record import RunRecord, RunStatus, TestRecord
from tkperf.model.telemetry.drive_reading import DriveFacts, Reading
from tkperf.model.throttling import (
    Intervals,
    TelemetryLog,
    counter_delta,
    find_amplification,
    find_edges,
    find_throttling,
    with_throttled_steps,
)
from tkperf.page.words.run import find_notices

MB = 10**6


def log(at_s: float, **values: object) -> Reading:
    """Return a reading of a drive's log."""
    told: dict[str, object] = {"media_errors": 0, "drive": "/dev/x", "source": "nvme", **values}
    return Reading(at_s=at_s, **told)  # type: ignore[arg-type]


PAIRS = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (float(min(pair)), float(max(pair))))


@given(st.lists(PAIRS, max_size=6), PAIRS)
def test_intervals_are_found_as_in_a_search_of_all(
    pairs: list[tuple[float, float]], wanted: tuple[float, float]
) -> None:
    """The fast search gives the same answers as a comparison with every interval, even if one interval contains
    another.
    """
    intervals, (begin, end) = Intervals(pairs), wanted
    assert intervals.contain(begin) is any(first <= begin <= last for first, last in pairs)
    if begin < end:
        assert intervals.overlap(begin, end) is any(first < end and last > begin for first, last in pairs)


@pytest.mark.parametrize(
    "name",
    [
        "thermal_1_count",
        "thermal_2_count",
        "thermal_1_s",
        "thermal_2_s",
        "throttle_events",
        "warning_minutes",
        "critical_minutes",
    ],
)
def test_a_counter_of_heat_that_grew_is_throttling(name: str) -> None:
    """If a counter of thermal events increases between two readings, the drive was throttled. If the counter does not
    change, or if a reading lacks it, no conclusion is drawn.
    """
    before, after = log(0, **{name: 3}), log(60, **{name: 4})
    (found,) = find_throttling([before, after])
    assert (found.began_s, found.ended_s, found.drive) == (0, 60, "/dev/x")
    assert not list(find_throttling([before, log(60, **{name: 3})]))
    assert not list(find_throttling([log(0), after]))
    # The counter was reset by a firmware update, or it wrapped around.
    assert counter_delta(after, before, name) is None
    assert not list(find_throttling([log(0, **{name: 4}), log(60, **{name: 3})]))


@pytest.mark.parametrize(("bits", "hot"), [(0b10, True), (0b11, True), (0b01, False), (0b1100, False)])
def test_only_the_temperature_bit_of_the_critical_warning_is_heat(bits: int, *, hot: bool) -> None:
    """Only bit 1 of the critical warning means a temperature beyond the limits (NVM Express 1.4, figure 194)."""
    found = list(find_throttling([log(0, critical_warning=bits), log(60, critical_warning=0)]))
    assert bool(found) is hot


def test_a_pause_of_the_run_is_no_throttling_of_its_steps() -> None:
    """Counters that increased during a pause of the run do not cause any step to be marked as throttled."""
    readings = [log(0, thermal_1_count=0), log(1000, thermal_1_count=1)]
    assert list(find_throttling(readings))
    assert not list(find_throttling(readings, [(10, 990)]))


def test_temperatures_between_logs_do_not_hide_throttling() -> None:
    """If readings that contain only the temperature lie between two readings of the log, they do not hide throttling,
    because each log is compared with the previous log of the same drive.
    """
    readings = [
        log(0, thermal_1_count=0),
        Reading(at_s=30, drive="/dev/x", source="hwmon", temperature_c=70),
        log(31, drive="/dev/y", thermal_1_count=9),
        log(60, thermal_1_count=1),
    ]
    assert [found.drive for found in find_throttling(readings)] == ["/dev/x"]


def test_write_amplification_is_flash_over_host() -> None:
    """Write amplification is the increase of flash writes divided by the increase of host writes between two
    readings.
    """
    before = log(0, host_written_bytes=1000 * MB, nand_written_bytes=5000 * MB)
    after = log(60, host_written_bytes=2000 * MB, nand_written_bytes=7500 * MB)
    assert find_amplification(before, after) == 2.5
    assert find_amplification(before, before) is None
    assert find_amplification(before, replace(after, nand_written_bytes=None)) is None


def test_too_little_for_the_counters_unit_has_no_amplification() -> None:
    """Write amplification is computed only if the coarser counter increased by at least twenty steps, because a counter
    in GiB can be off by one step at both ends of the period.
    """
    facts = DriveFacts(drive="/dev/x", host_unit_bytes=512_000, nand_unit_bytes=1 << 30)
    before = log(0, host_written_bytes=0, nand_written_bytes=0)
    few = log(60, host_written_bytes=10 << 30, nand_written_bytes=19 << 30)
    many = log(60, host_written_bytes=10 << 30, nand_written_bytes=20 << 30)
    assert find_amplification(before, few, facts) is None
    assert find_amplification(before, many, facts) == 2.0


def test_a_span_lies_between_the_readings_nearest_its_ends() -> None:
    """The counters of a period are those of the readings nearest to its ends, because readings arrive shortly after the
    test requested them. Readings that are far from the period belong to other tests.
    """
    readings = [log(0), log(95), log(101), log(160), log(205)]
    edges = find_edges(readings, 100, 200)
    assert edges is not None
    assert [each.at_s for each in edges] == [101, 205]
    at_borders = find_edges([log(95), log(100), log(200), log(210)], 100, 200)
    assert at_borders is not None
    assert [each.at_s for each in at_borders] == [100, 200]
    assert find_edges([log(0)], 100, 200) is None
    assert find_edges([log(101)], 100, 200) is None


def record(*readings: Reading, **device: object) -> RunRecord:
    """Return the record of a run with three steps of one second each, which begin at 10, 20 and 30 s."""
    steps = tuple(a_step(number, started_s=10.0 * number) for number in (1, 2, 3))
    test = TestRecord(
        name="iops",
        status=RunStatus.COMPLETE,
        started_s=5,
        ended_s=40,
        outcomes=(),
        purges=(),
        steps=steps,
        verdicts=(),
    )
    info = run_info(device={"model": "M", "capacity_bytes": 10**9, **device})
    return RunRecord(
        info=info,
        status=RunStatus.COMPLETE,
        ended_utc=None,
        ended_because=None,
        tests=(test,),
        warnings=(),
        telemetry=readings,
    )


def test_steps_in_whose_time_it_was_are_marked() -> None:
    """Only the steps between the two readings that show throttling are marked. The mark states how the throttling was
    detected.
    """
    marked = with_throttled_steps(
        record(log(5), log(15, thermal_1_count=0), log(25, thermal_1_count=1), log(40, thermal_1_count=1))
    )
    found = [step.disturbances or () for step in marked.tests[0].steps]
    assert [len(each) for each in found] == [0, 1, 0]
    (mark,) = found[1]
    assert (mark.code, mark.started_s, mark.duration_s, mark.share) == (DisturbanceCode.THROTTLED, 20, 1, 1)
    assert "slowed down for heat" in mark.text
    assert with_throttled_steps(record(log(5), log(40))) == record(log(5), log(40))


def test_results_say_what_a_test_did_to_the_drive() -> None:
    """The results of a test contain the written amount according to the drive and according to fio. They also contain
    the lowest, the highest and the mean temperature, and the counters that increased.
    """
    run = record(
        log(6, temperature_c=30.0, host_written_bytes=0, nand_written_bytes=0, media_errors=1),
        Reading(at_s=16, drive="/dev/x", source="hwmon", temperature_c=50.0),
        log(
            41,
            temperature_c=40.0,
            host_written_bytes=8192 * 3,
            nand_written_bytes=8192 * 6,
            media_errors=3,
            power_on_hours=5,
        ),
    )
    result = analyse(run)
    (told,) = result.tests[0].telemetry
    assert (told.temperature_least_c, told.temperature_most_c) == (30, 50)
    assert told.temperature_mean_c == pytest.approx(40)
    assert (told.load_written_bytes, told.host_written_bytes) == (8192 * 3, 8192 * 3)
    assert (told.write_amplification, told.media_errors, told.power_on_hours) == (2.0, 2, 5)
    assert told.thermal_1_count is None
    assert [notice for notice in find_notices(result) if notice.startswith("MEDIA ERRORS")]
    assert not [notice for notice in find_notices(result) if notice.startswith("THROTTLED")]


def written(*counts: int | None, wrote_bytes: int = 10**9, unit_bytes: int = 512) -> list[str]:
    """Return the warnings of a run. The steps wrote ``wrote_bytes``. ``counts`` contains the counter of the drive
    before and after the run.
    """
    run = record(
        *(log(at_s, host_written_bytes=count) for at_s, count in zip((6, 41), counts, strict=True)),
        telemetry=[{"drive": "/dev/x", "host_unit_bytes": unit_bytes}],
    )
    (test,) = run.tests
    write = replace(test.steps[0].measurement.write, bytes=wrote_bytes // 3)
    steps = tuple(replace(step, measurement=replace(step.measurement, write=write)) for step in test.steps)
    run = replace(run, tests=(replace(test, steps=steps),))
    return [warning.text for warning in analyse(run).warnings if warning.code == "telemetry"]


@pytest.mark.parametrize("unit", [1 / 65_536, 1 / 8, 1 / 2.1, 2.1, 8, 32, 65_536])
def test_a_counter_far_from_fios_count_is_a_warning(unit: float) -> None:
    """If the counter of the drive differs greatly from fio's count, tkperf prints a warning with both amounts, because
    the unit of the counter may be wrong.
    """
    (text,) = written(5_000, 5_000 + round(10**9 * unit))
    assert text.startswith(f"/dev/x counted {round(10**9 * unit):,} bytes")
    assert "while fio wrote 999,999,999" in text
    assert "unit of the counter may be wrong" in text


@pytest.mark.parametrize(
    ("before", "after", "wrote_bytes", "unit_bytes"),
    [
        (0, 10**9, 10**9, 512),
        # In this case, the counter has coarse steps, or metadata was written.
        (0, 7 * 10**8, 10**9, 512),
        # In these cases, the counter is not known, was reset, or increased by fewer than twenty steps.
        (None, None, 10**9, 512),
        (5, 0, 10**9, 512),
        (0, 0, 10**9, 1 << 30),
        # In this case, fio wrote no data.
        (0, 10**9, 0, 512),
    ],
)
def test_a_counter_near_fios_count_is_none(
    before: int | None, after: int | None, wrote_bytes: int, unit_bytes: int
) -> None:
    """A drive with a plausible counter causes no warning."""
    assert written(before, after, wrote_bytes=wrote_bytes, unit_bytes=unit_bytes) == []


def test_writes_that_fio_did_not_report_yet_are_none_of_a_counters_faults() -> None:
    """A step that fio has not reported yet does not cause a warning about the counter. Such a step is still running or
    was interrupted, and only the counter of the drive includes its writes.
    """
    run = record(
        log(6, host_written_bytes=0),
        log(31.5, host_written_bytes=10**12),
        telemetry=[{"drive": "/dev/x", "host_unit_bytes": 1}],
    )
    (test,) = run.tests
    write = replace(test.steps[0].measurement.write, bytes=10**9)
    steps = tuple(replace(step, measurement=replace(step.measurement, write=write)) for step in test.steps)
    running = replace(run, tests=(replace(test, steps=steps, ended_s=None),))
    assert analyse(running).warnings == ()


def test_a_throttled_drive_is_called_throttled() -> None:
    """If a drive was throttled, the notices, the number of disturbed steps and the telemetry of the test report
    this.
    """
    result = analyse(with_throttled_steps(record(log(5, critical_warning=2), log(41, critical_warning=0))))
    assert [notice for notice in find_notices(result) if notice.startswith("THROTTLED")]
    assert result.tests[0].disturbed_steps == {DisturbanceCode.THROTTLED: 3}
    assert result.tests[0].telemetry[0].throttled_s == 35


def test_without_telemetry_nothing_is_known() -> None:
    """If a run has no telemetry, as in older files, its results contain no telemetry. The results do not contain zeros
    in place of the telemetry.
    """
    assert analyse(record()).tests[0].telemetry == ()
    assert find_telemetry_series([], {}, 0, 100) is None


def test_a_course_counts_from_its_beginning() -> None:
    """The times of the temperature curve begin at the start of the test. The curve includes readings shortly before and
    after the test, so that its lines reach the beginning and the end of the test.
    """
    readings = [log(90, temperature_c=40.0), log(110, temperature_c=45.0), log(500, temperature_c=1.0)]
    course = find_telemetry_series(readings, {}, 100, 200)
    assert course is not None
    (drive,) = course.drives
    assert (course.length_s, drive.temperatures) == (100, ((-10, 40), (10, 45)))
    assert drive.written == ()


def test_a_chart_shades_no_pause_of_the_run() -> None:
    """A chart does not shade a pause of the run as throttling. It therefore agrees with the tables and marks."""
    readings = [log(0, thermal_1_count=0, temperature_c=40.0), log(50, thermal_1_count=1, temperature_c=41.0)]
    for pauses, shaded in (((), ((0, 50),)), (((10, 40),), ())):
        course = find_telemetry_series(readings, {}, 0, 100, pauses)
        assert course is not None
        assert course.drives[0].throttled == shaded


def test_facts_of_drives_are_read_from_the_file() -> None:
    """The facts about drives are read from the run file, and impossible values count as not known."""
    device = {
        "telemetry": [
            {"drive": "/dev/x", "warning_c": 70, "sources": ["nvme-cli 2.3"], "gaps": 3},
            {"drive": 4},
            "nonsense",
        ]
    }
    facts = parse_drives(device)
    assert facts == {"/dev/x": DriveFacts(drive="/dev/x", warning_c=70.0, sources=("nvme-cli 2.3",))}
    assert parse_drives({"telemetry": 5}) == {}


def test_a_temperature_that_stays_is_kept_once_a_minute() -> None:
    """If the temperature is constant, it is stored once a minute. If it changes by a degree, it is stored immediately.
    Every log is also stored immediately.
    """
    kept = TelemetryLog()

    def warm(at_s: float, celsius: float) -> bool:
        return kept.is_news(Reading(at_s=at_s, drive="x", source="hwmon", temperature_c=celsius))

    assert [warm(0, 40), warm(10, 40.9), warm(20, 41), warm(30, 41), warm(81, 41)] == [True, False, True, False, True]
    assert kept.is_news(log(82, drive="x", temperature_c=41.0))


def test_what_is_new_is_warned_of_once_a_test() -> None:
    """New throttling and new media errors cause one warning per test, with the name of the drive."""
    judge = TelemetryLog()
    readings = [
        log(0, thermal_1_count=0),
        log(60, thermal_1_count=1, media_errors=2),
        log(120, thermal_1_count=2, media_errors=5),
    ]
    found = [[code for code, _ in judge.find_warnings(each)] for each in readings]
    assert found == [[], ["throttled", "media-errors"], []]
    judge.test_begins()
    ((code, text),) = judge.find_warnings(log(180, thermal_1_count=3, media_errors=5))
    assert code == "throttled"
    assert text.startswith("/dev/x was throttled between 120 s and 180 s")
