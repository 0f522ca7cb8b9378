"""fio's own JSON and json+ results as a run: one file or many, of fio 2.x and 3.x.

Around the documents there may be any text, and a file may hold several: those of one fio that
reported its status in between count once, with the last. The n-th result of a workload is its
n-th round. fio 2.x counts bytes in KiB and latencies in us, fio 3.x in bytes and ns.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tkperf.errors import UsageError
from tkperf.histogram import Histogram
from tkperf.importers.imported import ImportedRun, imported_test
from tkperf.measurement import NO_IO, IoStats, Measurement
from tkperf.phases import SectionOutcome
from tkperf.profiles import load_profile
from tkperf.record import RunWarning, StepKind, StepRecord, TestRecord, VerdictRecord
from tkperf.steady_state import judge
from tkperf.units import KIB, parse_size_bytes
from tkperf.workload import Access, Cell, Workload

TEST = "fio"
# Status reports of one fio name the same start to within this.
SAME_START_MS = 2000.0


@dataclass(frozen=True, slots=True)
class _Result:
    """One workload of one fio run."""

    file: str
    workload: Workload
    measurement: Measurement
    options: str


def parse_fio_json(files: Sequence[tuple[str, str]], *, name: str) -> ImportedRun:
    """Decode results.

    Args:
        files: name and text of each file, in the order of the rounds.

    Raises:
        UsageError: a file holds no result of fio, or one that cannot be understood.
    """
    results: list[_Result] = []
    warnings: dict[str, RunWarning] = {}
    versions: list[str] = []
    for file, text in files:
        documents = _last_of_each_run(list(_documents(text)))
        if not documents:
            raise UsageError(f"{file}: holds no JSON result of fio (--output-format=json or json+)")
        for document in documents:
            versions.append(str(document.get("fio version", "fio")))
            results += _results(document, file, warnings)
    if not results:
        raise UsageError(f"{files[0][0]}: fio ran, but no job of it moved data")
    steps = [result.measurement.duration_s for result in results]
    return ImportedRun(
        name=name,
        date=None,
        tool=" and ".join(dict.fromkeys(versions)),
        profile_name="fio",
        fio_version=versions[0],
        command_line=None,
        description=None,
        feature_matrix=None,
        host={},
        demand={"jobs": results[0].workload.jobs, "io_depth": results[0].workload.io_depth},
        step_s=max(steps),
        tests=(_test(results),),
        warnings=tuple(warnings.values()),
    )


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects with jobs in any text."""
    decoder, position = json.JSONDecoder(), 0
    while (position := text.find("{", position)) >= 0:
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        if isinstance(value, dict) and isinstance(value.get("jobs"), list):
            yield value


def _last_of_each_run(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the cumulative reports of one fio only the last."""
    kept: list[dict[str, Any]] = []
    for document in documents:
        start_ms = _start_ms(document)
        before = _start_ms(kept[-1]) if kept else None
        if start_ms is not None and before is not None and abs(start_ms - before) < SAME_START_MS:
            kept.pop()
        kept.append(document)
    return kept


def _start_ms(document: Mapping[str, Any]) -> float | None:
    stamp = document.get("timestamp_ms")
    runtimes = [
        _number(side.get("runtime"))
        for job in document["jobs"]
        if isinstance(job, dict)
        for side in (job.get("read"), job.get("write"))
        if isinstance(side, dict)
    ]
    return stamp - max(runtimes, default=0.0) if isinstance(stamp, int | float) else None


def _results(
    document: Mapping[str, Any], file: str, warnings: dict[str, RunWarning]
) -> Iterator[_Result]:
    """The jobs of a document; those of one name and workload ran at once and count together."""
    shared = document.get("global options")
    shared = shared if isinstance(shared, dict) else {}
    grouped: dict[tuple[str, Workload], list[tuple[Mapping[str, Any], dict[str, Any]]]] = {}
    for job in document["jobs"]:
        if not isinstance(job, dict):
            raise UsageError(f"{file}: a job of fio's is not an object")
        if _number(job.get("error")):
            raise UsageError(f"{file}: job {job.get('jobname')} failed with error {job['error']}")
        own = job.get("job options")
        options = {**shared, **(own if isinstance(own, dict) else {})}
        workload = _workload(job, options, file, warnings)
        if workload is not None:
            key = (str(job.get("jobname")), workload)
            grouped.setdefault(key, []).append((job, options))
    for (jobname, workload), jobs in grouped.items():
        yield _Result(
            file=file,
            workload=workload,
            measurement=_measurement([job for job, _ in jobs], document),
            options=f"[{jobname}]\n"
            + "".join(f"{key}={value}\n" for key, value in jobs[0][1].items()),
        )


def _workload(
    job: Mapping[str, Any], options: Mapping[str, Any], file: str, warnings: dict[str, RunWarning]
) -> Workload | None:
    """What the job was, by its options; None if it moved nothing."""
    reads, writes = _ios(job, "read"), _ios(job, "write")
    if not reads + writes:
        return None
    pattern = str(options.get("rw", options.get("readwrite", "")))
    if not options:
        warnings["options"] = RunWarning(
            code="job-options-missing",
            text=(
                f"{file}: this fio did not write its job options; access is taken as random, mix "
                "and block size as they came out, threads and depth as 1"
            ),
        )
    sequential = bool(pattern) and not pattern.startswith("rand")
    # A mixed job's nominal mix; without options the one that came out.
    mixed = reads > 0 and writes > 0
    nominal = options.get("rwmixread", 50 if options else None)
    try:
        mix = 0 if writes else 100
        if mixed:
            mix = round(100 * reads / (reads + writes)) if nominal is None else int(nominal)
        size = str(options.get("bs", options.get("blocksize", ""))).split(",")[0]
        moved = (_bytes(job, "read") + _bytes(job, "write")) / (reads + writes)
        size_bytes = parse_size_bytes(size) if size else max(512, round(moved / 512) * 512)
        return Workload(
            access=Access.SEQUENTIAL if sequential else Access.RANDOM,
            read_percent=mix,
            block_size_bytes=size_bytes,
            jobs=int(options.get("numjobs", 1)),
            io_depth=int(options.get("iodepth", 1)),
        )
    except (ValueError, UsageError) as error:
        raise UsageError(f"{file}, job {job.get('jobname')}: {error}") from None


def _measurement(jobs: Sequence[Mapping[str, Any]], document: Mapping[str, Any]) -> Measurement:
    """Jobs that ran at the same time, together."""
    read, write, runtime_ms = NO_IO, NO_IO, 0.0
    for job in jobs:
        read, write = read + _stats(job, "read"), write + _stats(job, "write")
        for side in ("read", "write"):
            direction = job.get(side)
            if isinstance(direction, dict):
                runtime_ms = max(runtime_ms, _number(direction.get("runtime")))
    if not runtime_ms:
        raise UsageError(f"{document.get('fio version')}: a job without a runtime")
    return Measurement(duration_s=runtime_ms / 1000, read=read, write=write)


def _stats(job: Mapping[str, Any], side: str) -> IoStats:
    ios = _ios(job, side)
    direction = job.get(side)
    if not ios or not isinstance(direction, dict):
        return NO_IO
    # fio 3.x: lat_ns; fio 2.x: lat, in us.
    scale = 1 if "lat_ns" in direction else 1000
    latency = direction.get("lat_ns", direction.get("lat"))
    latency = latency if isinstance(latency, dict) else {}
    mean_ns = _number(latency.get("mean")) * scale
    bins = latency.get("bins") if scale == 1 else None
    return IoStats(
        ios=ios,
        bytes=_bytes(job, side),
        latency_ios=ios if mean_ns else 0,
        latency_sum_ns=round(mean_ns * ios),
        latency_min_ns=round(_number(latency.get("min")) * scale) if mean_ns else None,
        latency_max_ns=round(_number(latency.get("max")) * scale) if mean_ns else None,
        histogram=_histogram(bins),
    )


def _histogram(bins: object) -> Histogram:
    """Of json+; other results have none, so no percentiles of our own."""
    if not isinstance(bins, dict):
        return NO_IO.histogram
    try:
        return Histogram.from_bins({int(key): int(count) for key, count in bins.items()})
    except (ValueError, TypeError) as error:
        raise UsageError(f"fio's latency bins cannot be read: {error}") from None


def _ios(job: Mapping[str, Any], side: str) -> int:
    direction = job.get(side)
    if not isinstance(direction, dict):
        return 0
    if "total_ios" in direction:
        return int(_number(direction["total_ios"]))
    # Early 2.x versions count no I/Os.
    return round(_number(direction.get("iops")) * _number(direction.get("runtime")) / 1000)


def _bytes(job: Mapping[str, Any], side: str) -> int:
    direction = job.get(side)
    if not isinstance(direction, dict):
        return 0
    moved = int(_number(direction.get("io_bytes")))
    return moved if "lat_ns" in direction else moved * KIB


def _number(value: object) -> float:
    """A finite number that is not negative; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value < 1e18 else 0.0


def _test(results: Sequence[_Result]) -> TestRecord:
    """A section for each access and demand, its rounds counted by workload."""
    steps: list[StepRecord] = []
    seen: Counter[Workload] = Counter()
    positions: Counter[tuple[str, int]] = Counter()
    for result in results:
        seen[result.workload] += 1
        section, number = _section_name(result.workload), seen[result.workload]
        steps.append(
            StepRecord(
                section=section,
                kind=StepKind.ROUND,
                number=number,
                position=positions[section, number],
                workload=result.workload,
                planned_s=None,
                started_s=0.0,
                gap_s=None,
                measurement=result.measurement,
                job_file=f"; imported from {result.file.rpartition('/')[2]}\n{result.options}",
            )
        )
        positions[section, number] += 1
    verdicts: list[VerdictRecord] = []
    sections: list[SectionOutcome] = []
    for name in dict.fromkeys(step.section for step in steps):
        found, ended = _judge(name, [step for step in steps if step.section == name])
        verdicts += found
        sections.append(ended)
    return imported_test(TEST, steps, verdicts, sections)


def _section_name(workload: Workload) -> str:
    access = "RND" if workload.access is Access.RANDOM else "SEQ"
    return f"fio {access} TC{workload.jobs}/QD{workload.io_depth}"


def _judge(name: str, steps: list[StepRecord]) -> tuple[list[VerdictRecord], SectionOutcome]:
    """Steady state of the cell that tests track: most writes, and nearest to 4 KiB."""
    cells = {step.workload.cell for step in steps}
    tracked = min(cells, key=lambda cell: (cell.read_percent, abs(cell.block_size_bytes - 4 * KIB)))
    rounds = [step for step in steps if step.workload.cell == tracked]
    criteria = load_profile("pts-e-1.1").steady_state.criteria
    verdicts = [
        judge(
            [step.number for step in rounds[:last]],
            [step.measurement.iops for step in rounds[:last]],
            tracking=f"{Cell(*tracked)} IOPS",
            unit="IOPS",
            criteria=criteria,
        )
        for last in range(1, len(rounds) + 1)
    ]
    final = verdicts[-1]
    ended = SectionOutcome(
        section=name,
        window=final.rounds,
        verdict=final,
        ended_because=f"{len(rounds)} rounds in the imported files: {final.reason}",
    )
    records = [
        VerdictRecord(section=name, number=verdict.rounds[-1], verdict=verdict)
        for verdict in verdicts
    ]
    return records, ended
