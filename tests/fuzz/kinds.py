"""All kinds of input files. For each kind, the module defines the content of a valid file, and the function with which
tkperf reads the file.
"""

from __future__ import annotations

import io
import json
import lzma
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec
from rich.console import Console

from tests.builders import io_stats
from tests.fuzz.mutations import mutate_database, mutate_text
from tests.interop.fio_files import parse_fio_json
from tests.procedures.test_own_workloads import EVERYTHING
from tests.runfile.runs import a_run, a_step
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import parse_claims
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.details import build_details
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_results import analyse
from tkperf.batch.draft import parse_batch_file
from tkperf.batch.drive_finder import DriveFinder
from tkperf.batch.question import find_faults
from tkperf.device.raid.config import load_raid_config
from tkperf.engine.fio_output import DocumentSplitter, build_sample, parse_document
from tkperf.interop.fio_jobfile.convert import convert_job_file
from tkperf.interop.tkperf_xml import parse_tkperf_xml
from tkperf.model.batch_state import DriveShown
from tkperf.model.measurement import NO_IO, Measurement, Sample
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import PurgeRecord, RunNote, RunStatus, StepKind
from tkperf.model.steady_state import judge
from tkperf.page.view import build_view
from tkperf.procedures import TESTS, Circumstances, load_profile, own_tests, parse_profile, with_workload
from tkperf.procedures.descriptor import Test
from tkperf.procedures.forecast import Case, forecast
from tkperf.procedures.own_workloads import parse_workload_file
from tkperf.procedures.profiles.profile_tables import SHARED_TABLES, Profile, ProfileTable
from tkperf.render.export_check import render_check_json
from tkperf.render.export_json import render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.export_tables import build_tables, render_csv
from tkperf.render.html import render_view
from tkperf.render.terminal.page_text import print_page
from tkperf.runfile.reader import RunFile, read_run
from tkperf.runner.events import Judged, PurgeEnded, RunEnded, SectionEnded, StepEnded, TestEnded, TestStarted, Warned

GOLDEN = Path(__file__).parents[1] / "golden"
# Creating the HTML page of a file takes as long as reading ten files. Printing a file on a terminal takes as long as
# reading two files.
EVERY_PAGE = 8
EVERY_PRINT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of input file. ``try_case`` creates the case with the given number and passes it to tkperf. ``try_case``
    does not catch errors.
    """

    try_case: Callable[[random.Random, int], None]


def _text(seeds: Callable[[], tuple[bytes, ...]], read: Callable[[bytes], None]) -> Kind:
    def try_case(rng: random.Random, _: int) -> None:
        read(mutate_text(rng, rng.choice(seeds())))

    return Kind(try_case=try_case)


@cache
def _good_run() -> bytes:
    """Return a small run file with rounds and a stream. Each of its tables contains rows."""
    with tempfile.TemporaryDirectory() as folder:
        path, writer = a_run(Path(folder))
        stats = io_stats([190_000, 200_000, 220_000])
        samples = tuple(Sample(start_s=second, duration_s=1, read=NO_IO, write=stats) for second in range(3))
        seen = Measurement(duration_s=3.0, read=stats, write=stats, samples=samples)
        verdict = judge([1, 2], [5.0, 6.0], tracking="t", unit="u")
        purge = PurgeRecord(section="IOPS", started_s=0, duration_s=1, method="m")
        writer(PurgeEnded(test="iops", record=purge))
        for number in (1, 2):
            writer(StepEnded(test="iops", record=a_step(number, measurement=seen)))
        writer(Judged(test="iops", section="IOPS", number=2, verdict=verdict))
        writer(Warned(warning=RunNote(code="w", text="text")))
        ended = SectionOutcome(section="IOPS", window=(1, 2), verdict=verdict, ended_because="x")
        writer(SectionEnded(test="iops", outcome=ended))
        writer(TestEnded(test="iops", status=RunStatus.COMPLETE, at_s=9))
        writer(TestStarted(test="writesat", at_s=9))
        for number in (1, 2):
            step = a_step(number, section="WS", kind=StepKind.CONTINUOUS, measurement=seen)
            writer(StepEnded(test="writesat", record=step))
        writer(TestEnded(test="writesat", status=RunStatus.COMPLETE, at_s=19))
        writer(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc=None))
        writer.close()
        return path.read_bytes()


def _run_file(rng: random.Random, number: int) -> None:
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
        path = Path(folder) / "a.tkperf"
        path.write_bytes(_good_run())
        mutate_database(rng, path)
        with RunFile(path) as opened:
            record = opened.record()
            result = analyse(record)
            render_json(result)
            view = build_view(result)
            render_markdown(view)
            if number % EVERY_PRINT == 0:
                print_page(view, Console(file=io.StringIO(), width=160))
            check_claims(_claims(), result, load=lambda _: result, folder=path)
            steps = [(test.name, step) for test in record.tests for step in test.steps]
            for table in build_tables(result, steps, opened.samples):
                list(render_csv(table))
            seconds = {test.name: opened.seconds(test) for test in record.tests}
            if number % EVERY_PAGE == 0:
                view = build_view(result, details=build_details(result, record, seconds))
                render_view(view).encode(errors="backslashreplace")
                compare([result, result])


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


@cache
def _result() -> RunResult:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tkperf"
        path.write_bytes(_good_run())
        return analyse(read_run(path))


CLAIMS = b"""[[claim]]
test = "iops"
metric = "p99_us"
read_percent = 0
block_size = "4k"
at_most = 75000.5
source = "data sheet"
[[claim]]
test = "writesat"
metric = "iops"
read_percent = 0
block_size = 4096
at_least = 1
section = "WS"
[baseline]
run = "last.tkperf"
within_percent = 5
"""


@cache
def _claims():  # type: ignore[no-untyped-def]
    return parse_claims(CLAIMS.decode(), file="claims.toml")


def _read_claims(data: bytes) -> None:
    claims = parse_claims(data.decode(errors="replace"), file="claims.toml")
    checked = check_claims(claims, _result(), load=lambda _: _result(), folder=Path())
    render_check_json(checked)


def _profiles() -> tuple[bytes, ...]:
    folder = resources.files("tkperf.procedures.profiles")
    return tuple((folder / f"{name}.toml").read_bytes() for name in ("pts-e-1.1", "quick"))


def _read_profile(data: bytes) -> None:
    profile = parse_profile(data.decode(errors="replace"), file="mine.toml")
    for test in TESTS:
        if not test.is_in(profile):
            continue
        tables = [profile.table(type_) for type_ in (*SHARED_TABLES, *test.tables)]
        _forecast_all_cases(test, *(msgspec.structs.replace(table, source="") for table in tables))
        test.describe(profile, Circumstances())
    json.dumps(profile.as_plain_data())


@cache
def _forecast_all_cases(test: Test, *tables: ProfileTable) -> None:
    """Compute the forecasts of a test, and cache them by the tables of the profile. A mutation changes only a few
    tables, so most forecasts are already cached.
    """
    length_bytes = 10**11
    profile = Profile(name="mine", title="", notice="", tables={table.key: table for table in tables})
    for case in Case:
        forecast(test.procedure(profile, length_bytes), (), case, active_range_bytes=length_bytes)


def _read_workload(data: bytes) -> None:
    table = parse_workload_file(data.decode(errors="replace"), file="mine.toml")
    profile = with_workload(load_profile("quick"), "ssd", table, file="mine.toml")
    (test,) = own_tests(profile)
    test.describe(profile, Circumstances())
    # The range has the same size as in the forecast, because parts of a smaller range may be empty.
    length_bytes = 1 << 40
    forecast(test.procedure(profile, length_bytes), (), Case.BEST, active_range_bytes=length_bytes)


RAID = b"""{"devices": ["252:0", "252:1", "252:2"], "raidlevel": 5, "type": "hw_lsi",
"readpolicy": "nora", "writepolicy": "wt", "stripsize": "256"}
"""


def _read_raid(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=_fast_folder()) as file:
        file.write(data)
        file.flush()
        config = load_raid_config(Path(file.name))
    assert config.level in (0, 1, 5, 6, 10)
    assert config.strip_kib is None or 4 <= config.strip_kib <= 65536


@cache
def _fio_stream() -> bytes:
    text = lzma.decompress((GOLDEN / "fio-3.33-randrw-2jobs.txt.xz").read_bytes())
    first = list(DocumentSplitter().feed(text))[:3]
    return b"note\n" + b"\n".join(first) + b"\n"


def _shorter_stream() -> tuple[bytes, ...]:
    """Return fio's reports with only a few buckets, because a report consists mostly of buckets."""
    documents = []
    for document in DocumentSplitter().feed(_fio_stream()):
        value = msgspec.json.decode(document)
        for job in value["jobs"]:
            for side in ("read", "write"):
                for latency in ("lat_ns", "clat_ns", "slat_ns"):
                    bins = job.get(side, {}).get(latency, {}).get("bins", {})
                    for key in list(bins)[5:]:
                        del bins[key]
        documents.append(json.dumps(value, indent=1).encode())
    return (b"note\n" + b"\n".join(documents) + b"\n",)


_short = cache(_shorter_stream)


def _read_stream(data: bytes) -> None:
    splitter = DocumentSplitter()
    before = None
    for document in splitter.feed(data):
        reading = parse_document(document)
        if before is not None and reading.elapsed_s > before.elapsed_s:
            build_sample(before, reading)
        before = reading


def _read_fio_json(data: bytes) -> None:
    parse_fio_json([("a.json", data.decode(errors="replace"))], name="n")


def _xml() -> tuple[bytes, ...]:
    return tuple((GOLDEN / f"tkperf-2.2-{name}.xml").read_bytes() for name in ("lat", "tp"))


def _read_xml(data: bytes) -> None:
    parse_tkperf_xml(data, file="a.xml")


def _job_files() -> tuple[bytes, ...]:
    folder = Path(__file__).parents[1] / "interop/fio_jobfile/jobs"
    return tuple(path.read_bytes() for path in sorted(folder.glob("*.fio")))


def _read_job_file(data: bytes) -> None:
    convert_job_file(data.decode(errors="replace"), file="a.fio", name="mine")


def _batch_files() -> tuple[bytes, ...]:
    return ((Path(__file__).parents[2] / "docs/examples/batch.toml").read_bytes(),)


def _read_batch_file(data: bytes) -> None:
    draft = parse_batch_file(data.decode(errors="replace"), Path("/nowhere/batch.toml"))
    nowhere = Path("/nowhere")
    replace(draft, claims_path=None).settle("n", DriveFinder(folder=nowhere, sys_root=nowhere, dev_root=nowhere))


def _consent_files() -> tuple[bytes, ...]:
    return (b"# all\nPHYH850500YA960L\n/dev/loop3  # the last one\n",)


def _read_consent_file(data: bytes) -> None:
    names = ("PHYH850500YA960L", "/dev/loop3")
    shown = [
        DriveShown(number=n, name=f"n-{n}", path="/dev/loop3", capacity_bytes=1, confirm_id=name)
        for n, name in enumerate(names, start=1)
    ]
    list(find_faults(data.decode(errors="replace"), shown))


KINDS = {
    "run-file": Kind(try_case=_run_file),
    "claims": _text(lambda: (CLAIMS,), _read_claims),
    "batch": _text(_batch_files, _read_batch_file),
    "consent-file": _text(_consent_files, _read_consent_file),
    "profile": _text(_profiles, _read_profile),
    "workload": _text(lambda: (EVERYTHING.encode(),), _read_workload),
    "raid.json": _text(lambda: (RAID,), _read_raid),
    "job-file": _text(_job_files, _read_job_file),
    "fio-stream": _text(_short, _read_stream),
    "fio-json": _text(_short, _read_fio_json),
    "tkperf-xml": _text(_xml, _read_xml),
}
