"""fio's own JSON and json+ results as a run: one file or many, of fio 2.x and 3.x.

Around the documents there may be any text, and a file may hold several: those of one fio that
reported its status in between count once, with the last. The n-th result of a workload is its
n-th round, counted so that every workload's last result is in the last round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tkperf.errors import UsageError
from tkperf.importers.fio_documents import (
    documents,
    find_first_written_s,
    find_jobs_at_once,
    group_jobs,
    last_of_each_run,
    options_of,
)
from tkperf.importers.fio_job_result import (
    build_measurement,
    build_workload,
    name_job,
    shown,
    why_left_out,
    why_not_of,
)
from tkperf.importers.imported import (
    LARGEST_DEMAND,
    ImportedRun,
    describe_rounds,
    imported_test,
    one_line,
    readable,
    require_room,
)
from tkperf.measurement import Measurement
from tkperf.phases import SectionOutcome
from tkperf.profiles import load_profile
from tkperf.record import RunWarning, StepKind, StepRecord, TestRecord, VerdictRecord
from tkperf.steady_state import judge
from tkperf.units import KIB
from tkperf.workload import Access, Cell, Workload

TEST = "fio"
# Of a long list only the first are said.
MOST_SAID = 5


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
    written: list[dict[str, Any]] = []
    at_once: dict[str, str] = {}
    for file, text in files:
        found = last_of_each_run(list(documents(text, file)))
        if not found:
            raise UsageError(f"{file}: holds no JSON result of fio (--output-format=json or json+)")
        for document in found:
            results += _results(document, file, warnings)
            for jobname in find_jobs_at_once(document):
                at_once.setdefault(jobname, file)
        written += found
    if not results:
        said = [each.text for each in warnings.values()] or ["no job of it moved data"]
        raise UsageError(f"{files[0][0]}: fio ran, but {'; '.join(said[:MOST_SAID])}")
    versions = [one_line(str(each.get("fio version", ""))) or "fio" for each in written]
    test = _test(results)
    require_room(test.steps, place=", ".join(dict.fromkeys(file for file, _ in files)))
    return ImportedRun(
        name=name,
        date=None,
        written_s=find_first_written_s(written),
        tool=" and ".join(dict.fromkeys(each.replace("fio-", "fio ", 1) for each in versions)),
        profile_name="fio",
        profile=_profile(results, known="options" not in warnings),
        fio_version=versions[0],
        command_line=None,
        description=None,
        feature_matrix=None,
        host={},
        notices=(_shared_load(at_once),) if at_once else (),
        tests=(test,),
        warnings=tuple(warnings.values()),
    )


def _shared_load(at_once: Mapping[str, str]) -> str:
    """What a reader must know of jobs that did not wait for each other."""
    names = [one_line(name) for name in at_once]
    said = ", ".join(names[:MOST_SAID]) + ", ..." * (len(names) > MOST_SAID)
    first = one_line(next(iter(at_once.values())))
    return (
        f"SHARED LOAD: jobs of one fio ran at the same time ({said}; first in {first}): the drive "
        "served them together, none of their numbers is what it does alone"
    )


def _profile(results: Sequence[_Result], *, known: bool) -> dict[str, object]:
    """Threads and depth, where all results have the same; else each section says its own."""
    demands = {(result.workload.jobs, result.workload.io_depth) for result in results}
    profile: dict[str, object] = {"title": "fio results"}
    if known and len(demands) == 1:
        ((jobs, io_depth),) = demands
        profile["demand"] = {"jobs": jobs, "io_depth": io_depth}
    return profile


def _results(
    document: Mapping[str, Any], file: str, warnings: dict[str, RunWarning]
) -> Iterator[_Result]:
    """The jobs of a document.

    Clones (numjobs) ran at once and count together; jobs that waited for each other do not. Jobs of
    other names that ran at once with the same workload are neither its rounds nor one known load.
    """
    if len(document["jobs"]) > LARGEST_DEMAND:
        raise UsageError(f"{file}: more than {LARGEST_DEMAND:,} jobs in one result")
    for job in document["jobs"]:
        if not isinstance(job, dict):
            raise UsageError(f"{file}: a job of fio's is not an object")
        if job.get("error"):
            raise UsageError(f"{name_job(file, job)} failed with error {shown(job['error'])}")
    for group in group_jobs(document):
        clones: dict[tuple[str, Workload], list[Mapping[str, Any]]] = {}
        for job in group:
            workload = _workload(job, options_of(document, job), file, warnings)
            if workload is not None:
                clones.setdefault((str(job.get("jobname")), workload), []).append(job)
        named = Counter(workload for _, workload in clones)
        for (jobname, workload), jobs in clones.items():
            if named[workload] > 1:
                _leave_out(jobs[0], f"it ran at once with others as {workload}", file, warnings)
                continue
            options = options_of(document, jobs[0])
            yield _Result(
                file=file,
                # Two jobs of one name are clones, too, whatever their numjobs says.
                workload=replace(workload, jobs=max(workload.jobs, len(jobs))),
                measurement=build_measurement(jobs, file),
                options=readable(
                    f"[{jobname}]\n" + "".join(f"{key}={value}\n" for key, value in options.items())
                ),
            )


def _workload(
    job: Mapping[str, Any], options: Mapping[str, Any], file: str, warnings: dict[str, RunWarning]
) -> Workload | None:
    """What the job was; None, with a warning, if that is no one workload, and if it moved nothing."""
    workload, reason = None, why_left_out(job, options, file)
    if reason is None:
        workload = build_workload(job, options, file, warnings)
    if workload is not None:
        reason = why_not_of(job, workload, file)
    if reason is None:
        return workload
    _leave_out(job, reason, file, warnings)
    return None


def _leave_out(
    job: Mapping[str, Any], reason: str, file: str, warnings: dict[str, RunWarning]
) -> None:
    jobname = shown(job.get("jobname"))
    text = f"job {jobname} is left out (first in {readable(file)}): {reason}"
    warnings.setdefault(f"{jobname}: {reason}", RunWarning(code="job-left-out", text=text))


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
        ended_because=describe_rounds(len(rounds), "files", final),
    )
    records = [
        VerdictRecord(section=name, number=verdict.rounds[-1], verdict=verdict)
        for verdict in verdicts
    ]
    return records, ended
