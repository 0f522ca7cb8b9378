"""fio's own JSON and json+ results as a run: one file or many, of fio 2.x and 3.x.

Around the documents there may be any text, and a file may hold several: those of one fio that
reported its status in between count once, with the last. The n-th result of a workload is its
n-th round, counted so that every workload's last result is in the last round. fio 2.x counts bytes in KiB and latencies in us, fio 3.x in bytes and ns.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tkperf.errors import UsageError
from tkperf.histogram import Histogram
from tkperf.importers.imported import (
    LARGEST_DEMAND,
    ImportedRun,
    imported_test,
    one_line,
    readable,
    require_room,
)
from tkperf.measurement import NO_IO, IoStats, Measurement
from tkperf.phases import SectionOutcome
from tkperf.profiles import load_profile
from tkperf.record import RunWarning, StepKind, StepRecord, TestRecord, VerdictRecord
from tkperf.steady_state import judge
from tkperf.units import KIB, parse_size_bytes
from tkperf.workload import Access, Cell, Workload

TEST = "fio"
# Between two status reports of one fio its jobs ran, but for at most this.
IDLE_MS = 2000.0
# Where fio gives no time of day: the jobs of two reports ran on by at least this.
SHORTEST_INTERVAL_MS = 100.0
# More is no result of fio's: ten million I/Os a second for 115 days, an exabyte, 11 days in ns,
# 31 years in ms.
LARGEST_IOS, LARGEST_BYTES, LONGEST_NS, LONGEST_MS = 1e14, 1e18, 1e15, 1e12
LARGEST_BLOCK_BYTES = 1 << 40


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
            versions.append(one_line(str(document.get("fio version", "fio"))) or "fio")
            results += _results(document, file, warnings)
    if not results:
        raise UsageError(f"{files[0][0]}: fio ran, but no job of it moved data")
    test = _test(results)
    require_room(test.steps, place=", ".join(dict.fromkeys(file for file, _ in files)))
    return ImportedRun(
        name=name,
        date=None,
        tool=" and ".join(dict.fromkeys(versions)),
        profile_name="fio",
        profile=_profile(results, known="options" not in warnings),
        fio_version=versions[0],
        command_line=None,
        description=None,
        feature_matrix=None,
        host={},
        notices=(),
        tests=(test,),
        warnings=tuple(warnings.values()),
    )


def _profile(results: Sequence[_Result], *, known: bool) -> dict[str, object]:
    """Threads and depth, where all results have the same; else each section says its own."""
    demands = {(result.workload.jobs, result.workload.io_depth) for result in results}
    profile: dict[str, object] = {"title": "fio results"}
    if known and len(demands) == 1:
        ((jobs, io_depth),) = demands
        profile["demand"] = {"jobs": jobs, "io_depth": io_depth}
    return profile


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
        if kept and _continues(kept[-1], document):
            kept.pop()
        kept.append(document)
    return kept


def _continues(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two documents are reports of one fio.

    They have the same jobs, no counter goes down, and what the jobs ran in between, one after the
    other if they wait for each other, is the time between the two. A second run of the same jobs
    takes that time anew and ends with about the runtimes of the first.
    """
    if _identity(before) != _identity(after):
        return False
    earlier, later = _counters(before), _counters(after)
    if any(value < was for was, value in zip(earlier, later, strict=True)):
        return False
    ran_ms = _ran_ms(after, [value - was for was, value in zip(earlier, later, strict=True)])
    first_ms, second_ms = _stamp_ms(before), _stamp_ms(after)
    if first_ms is not None and second_ms is not None:
        idle_ms = min(IDLE_MS, max(later[::3], default=0.0) / 2)
        passed_ms = second_ms - first_ms
        return before["jobs"] == after["jobs"] or -idle_ms <= passed_ms <= ran_ms + idle_ms
    # Runtime, I/Os and bytes of a direction go on together, or stand still.
    moved = [value > was for was, value in zip(earlier, later, strict=True)]
    together = all(len(set(moved[at : at + 3])) == 1 for at in range(0, len(moved), 3))
    return together and ran_ms >= SHORTEST_INTERVAL_MS


def _ran_ms(document: Mapping[str, Any], grown: Sequence[float]) -> float:
    """Time in which jobs ran, of how much their counters have grown.

    Jobs of a group run at the same time, those that wait for others (stonewall) are a new group.
    """
    longest: dict[str, float] = {}
    jobs = [job for job in document["jobs"] if isinstance(job, dict)]
    for number, job in enumerate(jobs):
        group = str(job.get("groupid", f"job {number}"))
        # Three counters of reads, then three of writes, the runtime first.
        runtime_ms = max(grown[6 * number], grown[6 * number + 3])
        longest[group] = max(longest.get(group, 0.0), runtime_ms)
    return sum(longest.values())


def _identity(document: Mapping[str, Any]) -> object:
    """What stays the same in every report of one fio."""
    return (
        document.get("fio version"),
        document.get("global options"),
        [
            (job.get("jobname"), job.get("groupid"), job.get("job options"))
            for job in document["jobs"]
            if isinstance(job, dict)
        ],
    )


def _counters(document: Mapping[str, Any]) -> list[float]:
    """Runtime, I/Os and bytes of each job's reads, then of its writes."""
    counters = []
    for job in document["jobs"]:
        for side in ("read", "write") if isinstance(job, dict) else ():
            direction = job.get(side)
            direction = direction if isinstance(direction, dict) else {}
            counters += [
                _finite(direction.get(name)) or 0.0 for name in ("runtime", "total_ios", "io_bytes")
            ]
    return counters


def _finite(value: object) -> float | None:
    """A number of a size that can be reckoned with; else None."""
    return float(value) if isinstance(value, int | float) and abs(value) < LARGEST_BYTES else None


def _stamp_ms(document: Mapping[str, Any]) -> float | None:
    """When fio wrote the document; older versions give whole seconds."""
    for name, factor in (("timestamp_ms", 1), ("timestamp", 1000)):
        stamp = _finite(document.get(name))
        if stamp is not None:
            return stamp * factor
    return None


def _results(
    document: Mapping[str, Any], file: str, warnings: dict[str, RunWarning]
) -> Iterator[_Result]:
    """The jobs of a document; those of one name and workload ran at once and count together."""
    shared = document.get("global options")
    shared = shared if isinstance(shared, dict) else {}
    grouped: dict[tuple[str, Workload], list[tuple[Mapping[str, Any], dict[str, Any]]]] = {}
    if len(document["jobs"]) > LARGEST_DEMAND:
        raise UsageError(f"{file}: more than {LARGEST_DEMAND:,} jobs in one result")
    for job in document["jobs"]:
        if not isinstance(job, dict):
            raise UsageError(f"{file}: a job of fio's is not an object")
        if job.get("error"):
            raise UsageError(f"{_place(file, job)} failed with error {_shown(job['error'])}")
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
            measurement=_measurement([job for job, _ in jobs], file),
            options=readable(
                f"[{jobname}]\n" + "".join(f"{key}={value}\n" for key, value in jobs[0][1].items())
            ),
        )


def _workload(
    job: Mapping[str, Any], options: Mapping[str, Any], file: str, warnings: dict[str, RunWarning]
) -> Workload | None:
    """What the job was, by its options; None if it moved nothing."""
    reads, writes = _ios(job, "read", file), _ios(job, "write", file)
    if not reads + writes:
        return None
    pattern = str(options.get("rw", options.get("readwrite", "")))
    if not options:
        warnings["options"] = RunWarning(
            code="job-options-missing",
            text=(
                f"{readable(file)}: this fio did not write its job options; access is taken as random, mix "
                "and block size as they came out, threads and depth as 1"
            ),
        )
    sequential = bool(pattern) and not pattern.startswith("rand")
    # A mixed job's nominal mix; without options the one that came out.
    mix = 0 if writes else 100
    if reads > 0 and writes > 0:
        mix = round(100 * reads / (reads + writes))
        if options:
            mix = _option(job, options, "rwmixread", 50, file, most=100, least=0)
    size = str(options.get("bs", options.get("blocksize", ""))).split(",")[0]
    moved = (_bytes(job, "read", file) + _bytes(job, "write", file)) / (reads + writes)
    jobs = _option(job, options, "numjobs", 1, file)
    io_depth = _option(job, options, "iodepth", 1, file)
    try:
        size_bytes = parse_size_bytes(size) if size else max(512, round(moved / 512) * 512)
        if size_bytes > LARGEST_BLOCK_BYTES:
            raise UsageError(f"bs={_shown(size)} is more than any block")
        return Workload(
            access=Access.SEQUENTIAL if sequential else Access.RANDOM,
            read_percent=mix,
            block_size_bytes=size_bytes,
            jobs=jobs,
            io_depth=io_depth,
        )
    except (ValueError, OverflowError, UsageError) as error:
        raise UsageError(f"{_place(file, job)}: {readable(str(error))}") from None


def _option(
    job: Mapping[str, Any],
    options: Mapping[str, Any],
    name: str,
    default: int,
    file: str,
    *,
    least: int = 1,
    most: int = LARGEST_DEMAND,
) -> int:
    """A whole number among a job's options; fio writes them as text."""
    value = options.get(name, default)
    try:
        number = int(value)
    except (ValueError, TypeError, OverflowError):
        number = least - 1
    if not least <= number <= most:
        raise UsageError(
            f"{_place(file, job)}: {name}={_shown(value)} is not a number from {least} to {most:,}"
        )
    return number


def _place(file: str, job: Mapping[str, Any]) -> str:
    return f"{file}, job {_shown(job.get('jobname'))}"


def _shown(value: object) -> str:
    """A value of the file's within an error, however long it is."""
    return readable(str(value)[:40])


def _measurement(jobs: Sequence[Mapping[str, Any]], file: str) -> Measurement:
    """Jobs that ran at the same time, together."""
    read, write, runtime_ms = NO_IO, NO_IO, 0.0
    for job in jobs:
        read, write = read + _stats(job, "read", file), write + _stats(job, "write", file)
        for side in ("read", "write"):
            if isinstance(job.get(side), dict):
                runtime_ms = max(runtime_ms, _number(job, side, "runtime", LONGEST_MS, file))
    if runtime_ms < 1:
        raise UsageError(f"{_place(file, jobs[0])}: a job without a runtime")
    return Measurement(duration_s=runtime_ms / 1000, read=read, write=write)


def _stats(job: Mapping[str, Any], side: str, file: str) -> IoStats:
    ios = _ios(job, side, file)
    direction = job.get(side)
    if not ios or not isinstance(direction, dict):
        return NO_IO
    # fio 3.x: lat_ns; fio 2.x: lat, in us.
    name, scale = ("lat_ns", 1) if "lat_ns" in direction else ("lat", 1000)
    latency = direction.get(name)
    latency = latency if isinstance(latency, dict) else {}

    def known_ns(which: str) -> float:
        place = f"{_place(file, job)}, {side}/{name}/{which}"
        return _bounded(latency.get(which), LONGEST_NS / scale, place) * scale

    mean_ns = known_ns("mean")
    return IoStats(
        ios=ios,
        bytes=_bytes(job, side, file),
        latency_ios=ios if mean_ns else 0,
        latency_sum_ns=round(mean_ns * ios),
        latency_min_ns=round(known_ns("min")) if mean_ns else None,
        latency_max_ns=round(known_ns("max")) if mean_ns else None,
        histogram=_histogram(
            latency.get("bins") if scale == 1 else None, f"{_place(file, job)}, {side}/{name}/bins"
        ),
    )


def _histogram(bins: object, place: str) -> Histogram:
    """Of json+; other results have none, so no percentiles of our own."""
    if not isinstance(bins, dict):
        return NO_IO.histogram
    try:
        counts = {int(key): int(count) for key, count in bins.items()}
        if sum(map(abs, counts.values())) > LARGEST_IOS:
            raise ValueError("more I/Os than fio counts")
        return Histogram.from_bins(counts)
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"{place}: fio's latency bins cannot be read: {_shown(error)}") from None


def _ios(job: Mapping[str, Any], side: str, file: str) -> int:
    direction = job.get(side)
    if not isinstance(direction, dict):
        return 0
    if "total_ios" in direction:
        return int(_number(job, side, "total_ios", LARGEST_IOS, file))
    # Early 2.x versions count no I/Os.
    iops = _number(job, side, "iops", LARGEST_IOS, file)
    ios = iops * _number(job, side, "runtime", LONGEST_MS, file) / 1000
    return round(_bounded(ios, LARGEST_IOS, f"{_place(file, job)}, {side}/iops x runtime"))


def _bytes(job: Mapping[str, Any], side: str, file: str) -> int:
    direction = job.get(side)
    if not isinstance(direction, dict):
        return 0
    unit = 1 if "lat_ns" in direction else KIB
    return int(_number(job, side, "io_bytes", LARGEST_BYTES / unit, file)) * unit


def _number(job: Mapping[str, Any], side: str, name: str, largest: float, file: str) -> float:
    """A number of one direction of a job; 0 where there is none."""
    return _bounded(job[side].get(name), largest, f"{_place(file, job)}, {side}/{name}")


def _bounded(value: object, largest: float, place: str) -> float:
    """A number from 0 to ``largest``, 0 for None.

    Raises:
        UsageError: it is something else, such as Infinity; names ``place``.
    """
    if value is None:
        return 0.0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= largest:  # type: ignore[operator]
        raise UsageError(f"{place}: {_shown(value)} is not a number from 0 to {largest:g}")
    return float(value)  # type: ignore[arg-type]


def _test(results: Sequence[_Result]) -> TestRecord:
    """A section for each access and demand, its rounds counted by workload.

    A workload with fewer results than another one of its section has none in the first rounds: its
    last result is in the last round, so in the window.
    """
    steps: list[StepRecord] = []
    counts = Counter(result.workload for result in results)
    last_rounds: Counter[str] = Counter()
    for workload, count in counts.items():
        name = _section_name(workload)
        last_rounds[name] = max(last_rounds[name], count)
    seen: Counter[Workload] = Counter()
    numbered: list[tuple[int, _Result]] = []
    for result in results:
        seen[result.workload] += 1
        missing = last_rounds[_section_name(result.workload)] - counts[result.workload]
        numbered.append((missing + seen[result.workload], result))
    positions: Counter[tuple[str, int]] = Counter()
    for number, result in sorted(numbered, key=lambda each: each[0]):
        section = _section_name(result.workload)
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
                job_file=(
                    f"; imported from {readable(result.file.rpartition('/')[2])}\n{result.options}"
                ),
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
    """Steady state of the cell that tests track: most writes, and nearest to 4 KiB.

    A cell that fills the window comes before one that was measured less often.
    """
    criteria = load_profile("pts-e-1.1").steady_state.criteria
    measured = Counter(step.workload.cell for step in steps)
    tracked = min(
        measured,
        key=lambda cell: (
            -min(measured[cell], criteria.window_rounds),
            cell.read_percent,
            abs(cell.block_size_bytes - 4 * KIB),
        ),
    )
    rounds = [step for step in steps if step.workload.cell == tracked]
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
