"""Run files of older versions, written by those versions, read by this one."""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.builders import at
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_results import analyse
from tkperf.cli.main import cli
from tkperf.figures import Figure, FigureKind
from tkperf.quantity import IOPS, LATENCY_MEAN, THROUGHPUT, Direction
from tkperf.runfile.reader import RunFile, read_run
from tkperf.runfile.schema import VERSION
from tkperf.units import KIB

GOLDEN = Path(__file__).parents[1] / "golden"
SCHEMAS = (1, 5)
# Of all that the version that wrote rows of seconds read in them, before they were packed.
SECONDS = {
    1: "ef032e52f21817ab745ec83055899549e603fb6af315ed8bb9a2301329453eaf",
    5: "5189cc40ec17a84af4a820a5bda9be3b317b66ed1117ce66aaa6d9a0d2a3e4b9",
}


@pytest.fixture(params=SCHEMAS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run of the SSD suite, as its version left it."""
    name = f"schema{request.param}.tkperf"
    file = tmp_path / name
    file.write_bytes(lzma.decompress((GOLDEN / f"{name}.xz").read_bytes()))
    return file


def results(path: Path) -> RunResult:
    return analyse(read_run(path))


def test_they_are_older() -> None:
    """Else this module shows nothing."""
    assert max(SCHEMAS) < VERSION


def test_every_step_is_there_with_its_workload(path: Path) -> None:
    """What a newer workload may have besides, these do not have."""
    record = read_run(path)
    assert not record.left_out
    assert [test.name for test in record.tests] == ["iops", "lat", "tp", "writesat"]
    steps = [step for test in record.tests for step in test.steps]
    assert len(steps) > 100
    for step in steps:
        work = step.workload
        assert (work.block_mix, work.zones, work.offered_iops, work.region) == ((), (), None, None)
        assert step.measurement.ios > 0


def test_tests_have_their_titles_and_figures(path: Path) -> None:
    """Their files do not say how they are shown: this version does, where it knows the test."""
    run = results(path)
    assert [test.title for test in run.tests] == [
        "IOPS", "Latency", "Throughput", "Write Saturation",
    ]  # fmt: skip
    for test in run.tests:
        for section in test.sections:
            assert section.plan.figures or test.name == "tp"
    tp = run.tests[2]
    assert tp.figures[0] == Figure(kind=FigureKind.MATRIX, quantities=("megabytes_per_s",))
    assert tp.sections[0].plan.quantities == ("megabytes_per_s",)


def test_figures_are_those_of_the_steps(path: Path) -> None:
    """The mean over the window, and reads and writes of a mix add up."""
    record, run = read_run(path), results(path)
    section = run.tests[0].sections[0]
    rates = [
        step.measurement.iops
        for step in record.tests[0].steps
        if step.number in section.window
        and (step.workload.read_percent, step.workload.block_size_bytes) == (0, 4 * KIB)
    ]
    assert at(section, 0, 4 * KIB).value(IOPS) == pytest.approx(sum(rates) / len(rates))
    mixed = at(section, 65, 4 * KIB)
    parts = [mixed.value(IOPS, each) for each in (Direction.READ, Direction.WRITE)]
    assert sum(part or 0 for part in parts) == pytest.approx(mixed.value(IOPS))
    latency = run.tests[1].sections[0]
    assert (at(latency, 0, 4 * KIB).value(LATENCY_MEAN) or 0) > 0
    assert (run.tests[2].sections[0].cells[0].value(THROUGHPUT) or 0) > 0


def test_seconds_and_bytes_of_the_file_stay(path: Path) -> None:
    """Reading never changes an old file."""
    before = path.read_bytes()
    with RunFile(path) as file:
        seconds = file.seconds(file.record().tests[0])
    assert sum(len(each) for each in seconds) > 50
    assert path.read_bytes() == before


def test_every_second_is_what_it_was(path: Path) -> None:
    """Kept as rows then: their numbers and histograms are read as the versions of that time read them."""
    said = hashlib.sha256()
    with RunFile(path) as file:
        for test in file.record().tests:
            for step in test.steps:
                for sample in file.samples(test.name, step):
                    for side in (sample.read, sample.write):
                        facts = (
                            sample.start_s, sample.duration_s, side.ios, side.bytes, side.latency_ios,
                            side.latency_sum_ns, side.latency_min_ns, side.latency_max_ns,
                            side.histogram.indices.tolist(), side.histogram.counts.tolist(),
                        )  # fmt: skip
                        said.update(repr(facts).encode())
    schema = int(path.stem.removeprefix("schema"))
    assert said.hexdigest() == SECONDS[schema]


def test_every_command_takes_them(path: Path, tmp_path: Path) -> None:
    """Shown, reported, exported and compared with themselves."""
    for argv in (
        ["show", str(path)],
        ["show", "--json", str(path)],
        ["report", str(path), "--output", str(tmp_path / "r.html"), "--markdown", str(tmp_path / "r.md"),
         "--csv", str(tmp_path / "csv"), "--xml", str(tmp_path / "r.xml")],
        ["compare", str(path), str(path)],
    ):  # fmt: skip
        done = CliRunner().invoke(cli, argv)
        assert done.exit_code == 0, (argv, done.output)
    page = (tmp_path / "r.html").read_text()
    # The procedure of every test, from the profile of its time.
    assert page.count("Until ") >= 4
