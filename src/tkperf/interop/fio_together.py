"""Jobs of one fio process that ran at the same time. The module finds groups of such jobs, and for each job the loads
that ran at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tkperf.interop.fio_documents import host_of
from tkperf.interop.fio_options import (
    Options,
    block_sizes_of,
    is_rate_set,
    kb_base_of,
    options_of,
    parse_number,
    parse_time_s,
    pattern_of,
)
from tkperf.interop.imported import readable, without_round
from tkperf.model.units import format_block_size, format_mix

Job = Mapping[str, Any]
# Options that do not describe the load.
_NEUTRAL = ("name", "description", "randseed", "per_job_logs", "write_", "log_")
# Two groups count as consecutive if they overlap by less than this share of the shorter group.
_LEAST_OVERLAP = 0.1
# Shorter overlaps, and smaller differences between the starts of jobs, are ignored.
_SHORTEST_OVERLAP_MS = 100.0
# Runtimes count as equal if they differ by no more than this share of the longest runtime.
_SAME_RUNTIME = 0.01
# fio counts elapsed time in whole seconds.
_ELAPSED_STEP_MS = 1000.0
_MOST_NAMED = 3
_SIDES = ("read", "write", "trim")
# Two names of the option that makes a job begin later than its group.
_DELAYS = ("startdelay", "start_delay")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadsBeside:
    """The loads that ran at the same time as another load.

    Attributes:
        own: a text about the load itself, which includes its file if the loads used different files. An empty text
            means that the load ran alone.
        words: a text about the other loads on the same host, such as ``at once with SEQ 8k writes TC1/QD4``. An empty
            text means that no other load ran.
        key: all properties in which these loads can differ. The key is equal for all loads that ran together.
        words_of_hosts, key_of_hosts: the text and the key of the loads of other hosts.
        on_several_files: whether the loads of the host used different files.
    """

    own: str = ""
    words: str = ""
    key: str = ""
    words_of_hosts: str = ""
    key_of_hosts: str = ""
    on_several_files: bool = False


ALONE = LoadsBeside()


@dataclass(frozen=True, slots=True)
class _Load:
    clones: list[dict[str, Any]]
    words: str
    key: str
    file: str | None


def group_jobs(document: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """Return the jobs of a document in groups. Jobs that did not wait for each other are in the same group.

    A job with ``stonewall`` waits, and begins a new group. fio does not list the option if it has no value. Jobs of a
    group that wait for the same job (wait_for) begin together. Results of several hosts may arrive in any order.
    """
    groups: list[list[dict[str, Any]]] = []
    latest: dict[tuple[str | None, str, str, int], list[dict[str, Any]]] = {}
    stonewalls: Counter[str | None] = Counter()
    for job in document["jobs"]:
        if not isinstance(job, dict):
            continue
        options, group = options_of(document, job), job.get("groupid")
        if group is None and "stonewall" in options:
            stonewalls[host_of(job)] += 1
        # Only the job with the option wait_for begins later. The next jobs of its group do not wait.
        waits_for = str(options.get("wait_for", "")).strip()
        place = host_of(job), str(group), waits_for, stonewalls[host_of(job)]
        if place not in latest:
            latest[place] = []
            groups.append(latest[place])
        latest[place].append(job)
    parts = [part for group in groups for part in _split_delayed(document, group)]
    return _join_overlapping(document, parts)


def _split_delayed(document: Mapping[str, Any], group: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the parts of a group. A group has several parts if some of its jobs began later (``startdelay``), so that
    not all of its jobs overlapped.
    """
    options = [options_of(document, job) for job in group]
    if not any(name in of_job for of_job in options for name in _DELAYS):
        return [group]
    spans = [_span_ms(document, [job]) for job in group]
    if any(span is None for span in spans):  # versions of fio before 3.36 write only the options, not the start times
        spans = [_span_of_options(job, of_job) for job, of_job in zip(group, options, strict=True)]
    known = [span for span in spans if span is not None]
    if len(known) < len(group):
        return [group]
    return _join_by_spans(known, [[job] for job in group])


def _span_of_options(job: Job, options: Options) -> tuple[float, float] | None:
    """Return when a job began and ended, in ms since fio began the group. None means that the delay is a range, so the
    start is not known.
    """
    begins_ms = 0.0
    for name in _DELAYS:
        if name in options:
            delay_s = parse_time_s(options[name])
            if delay_s is None and str(options[name]).strip() != "0":
                return None
            begins_ms = 1000 * (delay_s or 0.0)
    return begins_ms, begins_ms + _ramp_ms(options) + _runtime_ms(job)


def _ramp_ms(options: Options) -> float:
    """Return the time, in ms, for which a job issued I/O before its measurement began."""
    return 1000 * (parse_time_s(options.get("ramp_time", "0")) or 0.0)


def _join_overlapping(
    document: Mapping[str, Any], groups: Sequence[list[dict[str, Any]]]
) -> list[list[dict[str, Any]]]:
    """Join the groups of one host that ran at the same time, and return the resulting groups.

    Both ``new_group`` and ``stonewall`` begin a group with a new number, but a job with ``new_group`` does not wait
    until the earlier jobs have ended. If these options are given without a value, fio 3.33 does not list them in its
    results. Therefore only the times show whether groups overlapped. These times are the start of each job (fio 3.36
    and newer), or the total time, which shows an overlap if it is too short for groups that ran one after the other.
    """
    by_host: dict[str | None, list[list[dict[str, Any]]]] = {}
    for group in groups:
        by_host.setdefault(host_of(group[0]), []).append(group)
    joined: list[list[dict[str, Any]]] = []
    for of_host in by_host.values():
        joined += _join_of_host(document, of_host)
    places = {id(job): place for place, job in enumerate(job for group in groups for job in group)}
    return sorted(joined, key=lambda group: places[id(group[0])])


def _join_of_host(document: Mapping[str, Any], groups: Sequence[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    spans = [_span_ms(document, group) for group in groups]
    known = [span for span in spans if span is not None]
    if len(known) < len(groups):
        return [[job for group in groups for job in group]] if _is_too_short(groups) else list(groups)
    return _join_by_spans(known, groups)


def _join_by_spans(
    spans: Sequence[tuple[float, float]], groups: Sequence[list[dict[str, Any]]]
) -> list[list[dict[str, Any]]]:
    """Join the groups whose times overlap, and return the resulting groups."""
    joined: list[list[dict[str, Any]]] = []
    latest = (0.0, 0.0)
    for (begins, ends), group in sorted(zip(spans, groups, strict=True), key=lambda one: one[0]):
        overlap_ms = min(ends, latest[1]) - begins
        shorter_ms = min(ends - begins, latest[1] - latest[0])
        if joined and overlap_ms > max(_SHORTEST_OVERLAP_MS, _LEAST_OVERLAP * shorter_ms):
            joined[-1] = [*joined[-1], *group]
            latest = latest[0], max(ends, latest[1])
        else:
            joined.append(group)
            latest = begins, ends
    return joined


def _is_too_short(groups: Sequence[Sequence[Job]]) -> bool:
    """Return whether fio's total time is too short for these groups to run one after the other."""
    elapsed_s = [job.get("elapsed") for group in groups for job in group]
    known_s = [value for value in elapsed_s if isinstance(value, int | float) and value > 0]
    needed_ms = sum(max(map(_runtime_ms, group)) for group in groups)
    return bool(known_s) and needed_ms > 1000 * max(known_s) + _ELAPSED_STEP_MS


def _span_ms(document: Mapping[str, Any], group: Sequence[Job]) -> tuple[float, float] | None:
    """Return when a group began and ended, in ms since 1970. None means that fio did not report these times."""
    starts_ms = [start for job in group if isinstance(start := job.get("job_start"), int) and 0 < start < 1e15]
    if len(starts_ms) < len(group):
        return None
    ends_ms = [
        start + _ramp_ms(options_of(document, job)) + _runtime_ms(job)
        for start, job in zip(starts_ms, group, strict=True)
    ]
    return min(starts_ms), max(ends_ms)


def _runtime_ms(job: Job) -> float:
    runtimes = [side.get("runtime") for name in _SIDES if isinstance(side := job.get(name), dict)]
    return max((float(value) for value in runtimes if isinstance(value, int | float) and value < 1e12), default=0.0)


def have_one_duration(document: Mapping[str, Any], loads: Sequence[Sequence[Job]]) -> bool:
    """Return whether the loads of a group began and ended their measurements together, according to fio.

    In this case, the rate of each load over the longest runtime is correct to within ``_SAME_RUNTIME``.

    Args:
        loads: the clones of each load. The runtime of a load is the runtime of the clone that ran the longest.
    """
    jobs = [max(clones, key=_runtime_ms) for clones in loads]
    spans = [_span_ms(document, [job]) for job in jobs]
    if any(span is None for span in spans):
        # If start times are missing, jobs certainly began together only if they are in one group and wait for the same
        # job.
        options = [options_of(document, job) for job in jobs]
        places = {
            (str(job.get("groupid")), str(of_job.get("wait_for", "")).strip())
            for job, of_job in zip(jobs, options, strict=True)
        }
        if len(places) > 1 or any(job.get("groupid") is None for job in jobs):
            return False
        spans = [_span_of_options(job, of_job) for job, of_job in zip(jobs, options, strict=True)]
    ends_ms = [span[1] for span in spans if span is not None]
    if len(ends_ms) < len(jobs):
        return False
    runtimes_ms = [_runtime_ms(job) for job in jobs]
    longest_ms = max(runtimes_ms)
    begins_ms = [end_ms - runtime_ms for end_ms, runtime_ms in zip(ends_ms, runtimes_ms, strict=True)]
    if longest_ms - min(runtimes_ms) > _SAME_RUNTIME * longest_ms:
        return False
    return max(begins_ms) - min(begins_ms) <= max(_SHORTEST_OVERLAP_MS, _SAME_RUNTIME * longest_ms)


def find_jobs_at_once(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of jobs that shared the device. Clones of one job (numjobs) count as one load."""
    names_at_once = (dict.fromkeys(str(job.get("jobname")) for job in group) for group in group_jobs(document))
    return tuple(name for names in names_at_once if len(names) > 1 for name in names)


def divide_clones(group: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return groups of jobs with the same name and options that ran at the same time."""
    clones: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for job in group:
        clones.setdefault((str(job.get("jobname")), str(job.get("job options"))), []).append(job)
    return list(clones.values())


def find_loads_beside(
    document: Mapping[str, Any], groups: Sequence[Sequence[dict[str, Any]]]
) -> list[list[tuple[list[dict[str, Any]], LoadsBeside]]]:
    """Return the clones of each job of each group, with the other loads that ran at the same time.

    Groups with the same number began together on all hosts.
    """
    loads = [[_describe(document, clones) for clones in divide_clones(group)] for group in groups]
    counted: Counter[str | None] = Counter()
    together: dict[int, list[int]] = {}
    numbers = []
    for at, group in enumerate(groups):
        number = counted[host_of(group[0])]
        counted[host_of(group[0])] += 1
        numbers.append(number)
        together.setdefault(number, []).append(at)
    keys = [str(sorted(load.key for load in of_group)) for of_group in loads]
    keys_of_hosts = {
        number: str(sorted(f"{host_of(groups[at][0])} {keys[at]}" for at in places)) if len(places) > 1 else ""
        for number, places in together.items()
    }
    found = []
    for at, of_group in enumerate(loads):
        hosts = [other for other in together[numbers[at]][: _MOST_NAMED + 1] if other != at]
        words_of_hosts = " + ".join(
            f"{load.words} on {readable(str(host_of(groups[other][0]))[:40])}"
            for other in hosts[:_MOST_NAMED]
            for load in loads[other][:_MOST_NAMED]
        )
        files = {load.file for load in of_group if load.file is not None}
        owns = _name_loads(of_group, with_files=len(files) > 1)
        found.append(
            [
                (
                    load.clones,
                    LoadsBeside(
                        own=own if len(of_group) > 1 else "",
                        words=words,
                        key=keys[at] if len(of_group) > 1 else "",
                        words_of_hosts=f"at once with {words_of_hosts}" if words_of_hosts else "",
                        key_of_hosts=keys_of_hosts[numbers[at]],
                        on_several_files=len(files) > 1,
                    ),
                )
                for load, own, words in zip(of_group, owns, name_others(owns), strict=True)
            ]
        )
    return found


def _name_loads(loads: Sequence[_Load], *, with_files: bool) -> list[str]:
    return [f"{load.words} on {readable(load.file[:40])}" if with_files and load.file else load.words for load in loads]


def name_others(words: Sequence[str]) -> list[str]:
    """Return for each load a text that names the other loads, such as ``at once with SEQ 8k writes TC1/QD4``. An empty
    text means that no other load ran.

    Args:
        words: the description of each load.
    """
    counted = Counter(words)
    # The text of a load names only other loads. One load more than the text can name is therefore sufficient.
    first = sorted(counted)[: _MOST_NAMED + 1]
    texts = []
    for own in words:
        names = [each for each in first if counted[each] > (each == own)][:_MOST_NAMED]
        more = len(counted) - (counted[own] == 1) - len(names)
        named = [each if (count := counted[each] - (each == own)) == 1 else f"{count} x {each}" for each in names]
        others = f" and {more} more" if more > 0 else ""
        texts.append(f"at once with {' + '.join(named)}{others}" if named else "")
    return texts


def _describe(document: Mapping[str, Any], clones: list[dict[str, Any]]) -> _Load:
    """Return a description of a load that ran at the same time as other loads, even if tkperf cannot import its
    result.
    """
    options = options_of(document, clones[0])
    name = without_round(str(clones[0].get("jobname")))
    plain = {
        key: str(value).strip()
        for key, value in options.items()
        if not key.startswith(_NEUTRAL) and not (key == "offset" and is_place_counted(options))
    }
    words = _name_load(options, len(clones)) if options else f"job {readable(name[:40])}"
    file = options.get("filename")
    key = f"{name} {len(clones)} {sorted(plain.items())}"
    return _Load(clones, words, key, None if file is None else str(file))


def is_place_counted(options: Options) -> bool:
    """Return whether ``offset`` is the start address of a sequential load. This address may advance from round to
    round.
    """
    text = str(options.get("offset", "0")).strip()
    pattern = pattern_of(options)
    is_address = parse_number(text, kb_base_of(options)) is not None and "%" not in text
    return bool(pattern) and "rand" not in pattern and is_address


def _name_load(options: Options, listed: int) -> str:
    """Return a text such as ``SEQ 8k writes TC1/QD4``, with the limits of the load's rate."""
    pattern = pattern_of(options) or "read"
    order = "RND" if pattern.startswith("rand") else "SEQ"
    share = parse_number(options.get("rwmixread", "")) or 100 - (parse_number(options.get("rwmixwrite", "50")) or 50)
    mix = f"R/W {format_mix(min(100, max(0, share)))}"
    what = {
        "read": "reads",
        "write": "writes",
        "trim": "trims",
        "rw": mix,
        "readwrite": mix,
        "trimwrite": "trims and writes",
    }.get(pattern.removeprefix("rand"), readable(pattern[:20]))
    side = "write" if pattern.endswith("write") and "read" not in pattern else "read"
    sizes = dict.fromkeys(block_sizes_of(options, side, kb_base_of(options)) or (None,))
    size = "/".join(format_block_size(one) if one and not one % 512 else "?" for one in list(sizes)[:_MOST_NAMED])
    threads = max(parse_number(options.get("numjobs", "1")) or 1, listed)
    depth = parse_number(options.get("iodepth", "1")) or 1
    limits = [
        f", {name}={readable(str(options[name])[:20])}"
        for name in ("rate", "rate_iops", "thinktime")
        if is_rate_set(options.get(name, ""))
    ]
    return f"{order} {size} {what} TC{threads}/QD{depth}{''.join(limits)}"
