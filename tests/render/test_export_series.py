"""Exported series over absolute time. Parsers of other projects can read them, and each point has the time of its
second.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.builders import run_info, simulate
from tkperf.analysis.results import RunResult
from tkperf.cli.commands.report import require_time
from tkperf.model.errors import UsageError
from tkperf.model.measurement import Sample
from tkperf.model.record import StepRecord
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.render.export_series import SECONDS, build_points, render_line_protocol, render_openmetrics
from tkperf.runfile.reader import RunFile

BEGAN_S = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
Step = tuple[str, StepRecord]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunResult, list[Step], dict[int, list[Sample]]]:
    """Return a result, its steps, and the seconds of each step. The seconds are a mapping whose key is id(step)."""
    folder = tmp_path_factory.mktemp("series")
    result = simulate(folder, run_info(name='a "name", with=all\\of\nit'))
    (path,) = folder.glob("*.tkperf")
    with RunFile(path) as opened:
        steps = [(test.name, step) for test in opened.record().tests for step in test.steps]
        seconds = {id(step): list(opened.samples(test, step)) for test, step in steps}
    return result, steps, seconds


READINGS = (
    ("iops", Reading(at_s=2.0, drive="/dev/nvme0n1", source="nvme", temperature_c=41.0, host_written_bytes=10**15 + 1)),
    (None, Reading(at_s=1.0, drive="/dev/nvme0n1", source="hwmon", temperature_c=40.0)),
)


def test_openmetrics_is_read_by_prometheus(run: tuple[RunResult, list[Step], dict[int, list[Sample]]]) -> None:
    """The parser of Prometheus' own client can read the export. The export contains every second exactly once, with its
    values. The time of a second is its end. A value that was not measured is not exported as 0.
    """
    result, steps, seconds = run
    text = "".join(
        render_openmetrics(build_points(result, BEGAN_S, steps, lambda _, step: seconds[id(step)], READINGS))
    )
    families = {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
    assert set(SECONDS) <= set(families)
    for name, (family, value) in SECONDS.items():
        found = {
            (
                point.labels["test"],
                point.labels["section"],
                point.labels["workload"],
                float(point.timestamp),
            ): point.value
            for point in families[name].samples
        }
        expected = {
            (
                test,
                step.section,
                str(step.workload),
                round(BEGAN_S + step.started_s + second.start_s + second.duration_s, 3),
            ): value(second)
            for test, step in steps
            for second in seconds[id(step)]
        }
        assert found == {key: each for key, each in expected.items() if each is not None}
        assert families[name].unit == family.unit
    assert families["tkperf_read_iops"].samples[0].labels["run"] == result.info.name
    told = families["tkperf_drive_host_written_bytes"].samples
    assert [(point.name, point.value) for point in told] == [("tkperf_drive_host_written_bytes_total", 10**15 + 1)]
    assert [point.value for point in families["tkperf_drive_temperature_celsius"].samples] == [40.0, 41.0]
    assert "tkperf_drive_media_errors" not in families


def test_line_protocol(run: tuple[RunResult, list[Step], dict[int, list[Sample]]]) -> None:
    """The line protocol contains one line per second, with a time in nanoseconds. Spaces, commas and equal signs in
    names are escaped.
    """
    result, steps, seconds = run
    lines = list(
        render_line_protocol(build_points(result, BEGAN_S, steps, lambda _, step: seconds[id(step)], READINGS))
    )
    assert len(lines) == sum(map(len, seconds.values())) + 2
    form = re.compile(r"tkperf_(?:second|drive)(?:,\w+=(?:[^,= \\]|\\.)+)+ \w+=[^ ,]+(?:,\w+=[^ ,]+)* \d{19}\n")
    for line in lines:
        assert form.fullmatch(line), line
    assert lines[0].startswith('tkperf_second,run=a\\ "name"\\,\\ with\\=all\\of\\ it,')
    assert lines[-1].endswith(f"host_written_bytes={10**15 + 1} {round((BEGAN_S + 2.0) * 1e9)}\n")


@pytest.mark.parametrize("started_utc", [None, "2020-05-01", "2020-05-01 10:00:00", "soon"])
def test_a_run_of_unknown_time_has_no_series(
    run: tuple[RunResult, list[Step], dict[int, list[Sample]]], started_utc: str | None
) -> None:
    """If the start time of a run is not known, no series is exported. A date without a time is not enough. A time
    without a time zone is not enough either.
    """
    result = replace(run[0], info=replace(run[0].info, started_utc=started_utc))
    with pytest.raises(UsageError, match="the start of the run is not known"):
        require_time(result)


def test_the_beginning_is_a_moment(run: tuple[RunResult, list[Step], dict[int, list[Sample]]]) -> None:
    assert require_time(run[0]) == BEGAN_S
