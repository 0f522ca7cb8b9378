"""A converter that reads the text of a job file and returns the text of a workload file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

import msgspec

from tkperf.interop.fio_jobfile.job_load import JobLoad, Wishes, read_load
from tkperf.interop.fio_jobfile.job_options import JobOptions, Refusal, list_outcomes, list_refusals
from tkperf.interop.fio_jobfile.job_sections import Job, name_variables, read_jobs
from tkperf.model.errors import InputFileError
from tkperf.model.units import format_count, on_one_line
from tkperf.model.workload import Access
from tkperf.procedures import load_profile, with_workload
from tkperf.procedures.own_workloads import parse_workload_file
from tkperf.procedures.own_workloads.parts import (
    LONGEST_PAUSE_S,
    LONGEST_TITLE,
    MOST_STREAMS,
    MOST_THREADS_TOGETHER,
    FillPhase,
    Load,
    StreamPhase,
    name_load,
)
from tkperf.procedures.profiles.profile_tables import MOST_PASSES

ANY_PROFILE, ANY_SUITE = "pts-e-1.1", "ssd"
WIDTH = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# The possible lengths of the slices of a stream in s, the longest first. The second number is the smallest number of
# slices of this length. Below 5 s, one slice is sufficient.
SLICE_LENGTHS = ((60, 5), (30, 5), (10, 5), (5, 5), (2, 5), (1, 1), (0.5, 1), (0.2, 1), (0.1, 1))
# Slice lengths that are possible if loads begin late, the shortest first.
LONG_SLICES = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A phase with its loads and the job of each load. The names of the loads are the keys."""

    phase: StreamPhase | FillPhase
    loads: Mapping[str, Load]
    jobs: Mapping[str, Job]


def build_phases(jobs: Sequence[JobOptions], wishes: Wishes) -> tuple[Phase, ...]:
    """Return the phases of a job file in order, each with its loads. ``jobs`` records the refused options."""
    _check_one_device(jobs)
    groups = _read_groups(jobs, wishes)
    phases: list[Phase] = []
    earlier_s = 0.0
    for number, group in enumerate(groups, start=1):
        taken = [name for phase in phases for name in phase.loads]
        phase = _build_phase(group, taken, wishes, is_last=number == len(groups), earlier_s=earlier_s)
        phases.append(phase)
        earlier_s += max((load.ramp_s + (load.runtime_s or 0) for load in group), default=0)
    return tuple(phases)


def _read_groups(jobs: Sequence[JobOptions], wishes: Wishes) -> list[list[JobLoad]]:
    """Return groups of jobs that run at the same time, in the order of the groups."""
    groups: list[list[JobLoad]] = []
    for options in jobs:
        waits = _waits(options, groups)
        if not groups or waits:
            groups.append([])
        taken_bytes = groups[-1][-1].files_end_bytes if groups[-1] else 0
        groups[-1].append(read_load(options, wishes, taken_bytes))
    return groups


def _waits(options: JobOptions, groups: Sequence[Sequence[JobLoad]]) -> bool:
    """Return whether a job waits for the end of all earlier jobs."""
    awaited = options.text("wait_for")
    if awaited is not None:
        names = [load.options.job.name for load in groups[-1]] if groups else []
        if names == [awaited]:
            return True
        options.refuse("wait_for", "other jobs run on meanwhile: write stonewall if it is to follow all of them")
    return options.flag("stonewall")


def _build_phase(
    group: Sequence[JobLoad], taken: Sequence[str], wishes: Wishes, *, is_last: bool, earlier_s: float
) -> Phase:
    loads, jobs = _name_loads(group, taken, earlier_s)
    first = group[0]
    if len(loads) == 1:
        (name,) = loads
        phase = _build_alone(name, first, loads[name], wishes, is_last=is_last)
        return Phase(phase=phase, loads=loads, jobs=jobs)
    loads = _merged(loads, jobs, group)
    times = [_runtime_s(load, wishes, "loads that run at the same time end by their runtime") for load in group]
    for load, runtime_s in zip(group[1:], times[1:], strict=True):
        for option, own_s, first_s in (("runtime", runtime_s, times[0]), ("ramp_time", load.ramp_s, first.ramp_s)):
            if own_s != first_s:
                load.options.refuse(
                    option,
                    f"{own_s or 0:g} s, and [{first.options.job.name}] has {first_s or 0:g} s: loads that run at the "
                    "same time have one runtime and one ramp_time",
                    default=f"no {option}",
                )
    runtime_s = times[0] or 1.0
    slice_s, warm_up_s = _slice_s(runtime_s, first, max(load.delay_s for load in loads.values()), group)
    if len(loads) == 1:
        (name,) = loads
        single = StreamPhase(section=name, load=name, slice_s=slice_s, longest_s=runtime_s, warm_up_s=warm_up_s)
        return Phase(phase=single, loads=loads, jobs=jobs)
    section = _new_section(tuple(loads), taken)
    phase = StreamPhase(
        section=section, together=tuple(loads), slice_s=slice_s, longest_s=runtime_s, warm_up_s=warm_up_s
    )
    return Phase(phase=phase, loads=loads, jobs=jobs)


def _build_alone(name: str, job_load: JobLoad, load: Load, wishes: Wishes, *, is_last: bool) -> StreamPhase | FillPhase:
    if job_load.runtime_s is None and load.can_fill and not is_last:
        if job_load.passes > MOST_PASSES:
            job_load.options.refuse("loops", f"a fill of tkperf passes over its range {MOST_PASSES:,} times at most")
        return FillPhase(load=name, passes=job_load.passes)
    why = "a load of tkperf runs for a time, unless it writes all of the range in order"
    if load.can_fill:
        why = "it only fills the range, and nothing is measured after it"
    runtime_s = _runtime_s(job_load, wishes, why) or 1.0
    slice_s, warm_up_s = _slice_s(runtime_s, job_load, 0.0, ())
    return StreamPhase(section=name, load=name, slice_s=slice_s, longest_s=runtime_s, warm_up_s=warm_up_s)


def _runtime_s(job_load: JobLoad, wishes: Wishes, why: str) -> float | None:
    """Return the runtime of a job in s, or the value of ``--runtime``. If neither is given, the job is refused."""
    options = job_load.options
    if job_load.runtime_s is not None:
        return job_load.runtime_s
    options.leave_out("loops", why="the runtime ends the load")
    if wishes.runtime_s is None:
        options.refuse("runtime", f"{why}: pass --runtime TIME, such as --runtime 60", default="no runtime")
        return None
    options.assume(f"runtime={wishes.runtime_s:g} (--runtime)")
    return wishes.runtime_s


def _name_loads(
    group: Sequence[JobLoad], taken: Sequence[str], earlier_s: float
) -> tuple[dict[str, Load], dict[str, Job]]:
    """Return the loads of a group with their delays. Each load receives a name that no other load has. Also return the
    job of each load.
    """
    loads: dict[str, Load] = {}
    jobs: dict[str, Job] = {}
    is_together = sum(len(each.loads) for each in group) > 1
    first_s = min(each.delay_s for each in group)
    for each in group:
        delay_s = each.delay_s - first_s
        if earlier_s and each.delay_s <= earlier_s:
            each.options.leave_out("startdelay", why="it counts from the start of fio, long before this job")
            delay_s = 0.0
        elif not is_together or not delay_s:
            each.options.leave_out("startdelay", why="no other load begins before it")
            delay_s = 0.0
        elif earlier_s:
            each.options.refuse("startdelay", "it counts from the start of fio; tkperf's from that of the phase")
        elif delay_s > LONGEST_PAUSE_S:
            each.options.refuse("startdelay", f"a load of tkperf begins {LONGEST_PAUSE_S} s later at most")
            delay_s = 0.0
        for number, load in enumerate(each.loads, start=1):
            job = each.options.job
            own = job.name if len(each.loads) == 1 else f"{job.name} {number}"
            name = name_load(on_one_line(own), (*taken, *loads), is_stream=is_together)
            loads[name] = msgspec.structs.replace(load, delay_s=delay_s) if delay_s else load
            jobs[name] = job
        if len(each.loads) > 1:
            each.options.keep(
                "numjobs", f"{len(each.loads)} loads of one thread, as their addresses differ from tkperf's"
            )
            each.options.keep("offset_increment", "the range of each of these loads")
    return loads, jobs


def _merged(loads: Mapping[str, Load], jobs: dict[str, Job], group: Sequence[JobLoad]) -> dict[str, Load]:
    """Return no more loads than can run at the same time. Equal random loads become the threads of one load."""
    threads = sum(load.jobs or 1 for load in loads.values())
    if threads > MOST_THREADS_TOGETHER:
        group[-1].options.refuse(
            "numjobs",
            f"{threads:,} threads run at the same time, and tkperf runs {MOST_THREADS_TOGETHER} at most",
            default="numjobs=1 (fio's default)",
        )
    if len(loads) <= MOST_STREAMS:
        return dict(loads)
    merged: dict[str, Load] = {}
    for name, load in loads.items():
        same = next((other for other, kept in merged.items() if _is_same(kept, load)), None)
        if same is None:
            merged[name] = load
            continue
        merged[same] = _sum_of(merged[same], load)
        for each in group:
            if each.options.job is jobs[name]:
                each.options.assume(f"its threads are threads of load {same}, which is equal in every option")
    if len(merged) > MOST_STREAMS:
        group[-1].options.refuse(
            "numjobs",
            f"{len(merged)} different loads run at the same time, and tkperf runs {MOST_STREAMS} at most; a sequential "
            "job has one for each thread that has no part of its own",
            default="numjobs=1 (fio's default)",
        )
        return dict(list(merged.items())[:MOST_STREAMS])
    return merged


def _is_same(one: Load, other: Load) -> bool:
    """Return whether two random loads are equal except for the number of threads. The rate of each thread must be the
    same.
    """

    def of_one_thread(load: Load) -> Load:
        jobs = load.jobs or 1
        iops, megabytes_per_s = load.offered_iops, load.offered_megabytes_per_s
        return msgspec.structs.replace(
            load,
            jobs=1,
            offered_iops=None if iops is None else iops / jobs,
            offered_megabytes_per_s=None if megabytes_per_s is None else megabytes_per_s / jobs,
        )

    return one.access is Access.RANDOM and of_one_thread(one) == of_one_thread(other)


def _sum_of(one: Load, other: Load) -> Load:
    iops = None if one.offered_iops is None else one.offered_iops + (other.offered_iops or 0)
    megabytes_per_s = one.offered_megabytes_per_s
    if megabytes_per_s is not None:
        megabytes_per_s = round(megabytes_per_s + (other.offered_megabytes_per_s or 0), 6)
    jobs = (one.jobs or 1) + (other.jobs or 1)
    return msgspec.structs.replace(one, jobs=jobs, offered_iops=iops, offered_megabytes_per_s=megabytes_per_s)


def _slice_s(runtime_s: float, first: JobLoad, delay_s: float, group: Sequence[JobLoad]) -> tuple[float, float | None]:
    """Return the length of a slice and the length of the warm-up, in s.

    The function chooses the longest slice that divides the runtime and the warm-up and still results in a few slices.
    If loads begin late, the first slice is at least twice as long as their delay, and the warm-up consists of whole
    slices.
    """
    ramp_s = first.ramp_s
    slice_s = next(
        slice_s
        for slice_s, fewest in SLICE_LENGTHS
        if runtime_s >= fewest * slice_s
        and not any(round(10 * time_s) % round(10 * slice_s) for time_s in (runtime_s, ramp_s))
    )
    if slice_s >= 2 * delay_s:
        return slice_s, ramp_s or None
    fitting = [
        slice_s
        for slice_s in (*LONG_SLICES, runtime_s)
        if 2 * delay_s <= slice_s <= runtime_s and not round(10 * runtime_s) % round(10 * slice_s)
    ]
    if not fitting:
        late = next(each for each in group if each.delay_s)
        late.options.refuse(
            "startdelay", f"the loads run together for a part of {runtime_s:g} s only: the runtime is twice the delay"
        )
        return slice_s, ramp_s or None
    slice_s = next((each for each in fitting if not round(10 * ramp_s) % round(10 * each)), fitting[0])
    warm_up_s = math.ceil(round(ramp_s / slice_s, 6)) * slice_s
    if warm_up_s != ramp_s:
        for each in group:
            each.options.keep("ramp_time", f"warm_up_s = {warm_up_s:g}: whole slices, in which the last load begins")
    return slice_s, warm_up_s or None


def _new_section(names: Sequence[str], taken: Collection[str]) -> str:
    """Return the heading for loads that run at the same time."""
    whole = " + ".join(names)
    if len(whole) <= LONGEST_TITLE and whole not in taken:
        return whole
    return f"{names[0]} and {len(names) - 1} more"


def _check_one_device(jobs: Sequence[JobOptions]) -> None:
    named: str | None = None
    for options in jobs:
        file = options.text("filename")
        if file is None:
            continue
        if ":" in file.replace("\\:", ""):
            options.refuse("filename", "it names several files; tkperf measures one DEVICE")
        elif named is not None and file != named:
            options.refuse("filename", f"another job has {named}; tkperf measures one DEVICE")
        named = named or file
    for options in jobs:
        if named is not None and options.text("filename") is None:
            options.refuse(
                "filename",
                f"another job uses {named}, and fio gives this job a file of its own: write the same filename in all "
                "jobs, or in none",
                default="no filename",
            )


class OptionsRefusedError(InputFileError):
    """A job file contains options that a workload file cannot express."""

    def __init__(self, file: str, refusals: tuple[Refusal, ...]) -> None:
        count = format_count(len(refusals), "option")
        super().__init__(
            f"{file}: {count} cannot be kept, so tkperf wrote no workload file. Change, add or remove the options in "
            "the job file, or pass the option of from-fio that the line of the refusal names"
        )
        self.refusals = refusals


def convert_job_file(
    text: str, *, file: str, name: str, variables: Mapping[str, str] | None = None, wishes: Wishes | None = None
) -> tuple[str, tuple[str, ...]]:
    """Return the workload file that corresponds to a job file, and a line with the outcome of each option.

    Args:
        text: the job file.
        file: name of the job file.
        name: name of the test.
        variables: values of ``${NAME}`` in the job file.
        wishes: settings from the user that replace or complete settings of the job file.

    Raises:
        OptionsRefusedError: the job file contains options that cannot be kept.
        UsageError: the text is not a job file, or a value is impossible.
    """
    variables = variables or {}
    jobs = [JobOptions(job) for job in read_jobs(file, text, variables)]
    phases = build_phases(jobs, wishes or Wishes())
    if refusals := list_refusals(jobs):
        raise OptionsRefusedError(file, refusals)
    filled_in = (f"assumed: {name}={variables[name]} (--set)" for name in name_variables(text))
    options = (*map(on_one_line, filled_in), *list_outcomes(jobs), _describe_preparation(phases))
    written = _render_toml(name, on_one_line(file), phases, options)
    # The workload file is checked in the same way as before a run. The numbers of a profile replace missing values.
    table = parse_workload_file(written, file=f"of {file}")
    with_workload(load_profile(ANY_PROFILE), ANY_SUITE, table, file=f"of {file}")
    return written, options


def name_of_test(stem: str, taken: Sequence[str]) -> str:
    """Return a name for the test, derived from the name of the job file."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:56] or "job"
    return f"{name}-fio" if name in taken else name


def _render_toml(name: str, file: str, phases: Sequence[Phase], options: Sequence[str]) -> str:
    base = file.rpartition("/")[2]
    source = f"fio's job file {base}, converted by tkperf workload from-fio"
    lines = [
        *_comment(f"From fio's job file {file}, by tkperf workload from-fio. Its options:"),
        "#",
        *(f"# {line}" for line in options),
        "",
        "format = 1",
        f"name = {_string(name)}",
        f"title = {_string(f'fio job file {base}'[:LONGEST_TITLE])}",
        f"source = {_string(source)}",
    ]
    for phase in phases:
        for load in phase.loads:
            lines += ["", *_comment(_origin(phase.jobs[load])), f"[loads.{_key(load)}]", *_pairs(phase.loads[load])]
    if _begins_with_reads(phases):
        lines += ["", *_PREPARATION]
    for phase in phases:
        lines += ["", "[[phases]]", f'kind = "{phase.phase.__struct_config__.tag}"', *_pairs(phase.phase)]
    return "\n".join(lines) + "\n"


# The purge is only proposed, because a job file cannot describe a purge and the user may want to measure the drive as
# it is.
_PREPARATION = (
    "# To purge and fill the drive before the first reads, remove the # from the following lines. tkperf hdd",
    "# cannot purge a disk, so for tkperf hdd, remove only the # from the phase of kind fill.",
    "# [[phases]]",
    '# kind = "purge"',
    "#",
    "# [[phases]]",
    '# kind = "fill"',
)


def _begins_with_reads(phases: Sequence[Phase]) -> bool:
    first = phases[0]
    return isinstance(first.phase, StreamPhase) and any(load.read_percent for load in first.loads.values())


def _describe_preparation(phases: Sequence[Phase]) -> str:
    """Return a text that states which preparation of the drive is missing from the workload, and how the user can add
    this preparation.
    """
    if _begins_with_reads(phases):
        return (
            "missing: the workload has no purge and no fill before its first reads, and a drive answers for addresses "
            "that were never written faster than for data. To prepare the drive, remove the # from the phases of the "
            "kinds purge and fill in the workload file"
        )
    if isinstance(phases[0].phase, FillPhase):
        return (
            "missing: the workload has no purge, so the fill begins in the state in which the drive is. To purge the "
            "drive first, add a phase of kind purge"
        )
    return (
        "missing: the workload has no purge and no fill, so the test begins in the state in which the drive is. To "
        "prepare the drive, add phases of the kinds purge and fill"
    )


def _origin(job: Job) -> str:
    return "From [global]" if job.is_only_global else f"From [{on_one_line(job.name)}] of line {job.line}"


def _comment(text: str) -> Iterator[str]:
    return (f"# {line}" for line in wrap(text, WIDTH))


def _pairs(part: msgspec.Struct) -> Iterator[str]:
    for key, value in msgspec.to_builtins(part).items():
        if key != "kind":
            yield f"{key} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _string(text: str) -> str:
    # For all remaining characters, TOML and JSON use the same notation.
    return json.dumps(on_one_line(text), ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)
