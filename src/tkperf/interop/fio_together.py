"""Jobs of one fio process that ran at the same time: their groups, and the simultaneous loads of
each job.
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
    kb_base_of,
    options_of,
    parse_number,
    pattern_of,
)
from tkperf.interop.imported import readable
from tkperf.interop.result_names import without_round
from tkperf.model.units import format_block_size, format_mix

Job = Mapping[str, Any]
# Options that say nothing about the load.
_NEUTRAL = ("name", "description", "randseed", "per_job_logs", "write_", "log_")
# Two groups count as consecutive if they overlap by less than this share of the shorter group.
_LEAST_OVERLAP = 0.1
_SHORTEST_OVERLAP_MS = 100.0
# fio counts elapsed time in whole seconds.
_ELAPSED_STEP_MS = 1000.0
_MOST_NAMED = 3
_SIDES = ("read", "write", "trim")


@dataclass(frozen=True, slots=True)
class LoadBeside:
    """A load that ran at the same time as another one.

    Attributes:
        words: for people: ``SEQ 8k writes TC1/QD4``.
        key: everything in which two such loads can differ, after the words and a line feed.
        file: its ``filename``; None: not known.
        on_other_host: the load shared no device with the other load, as far as fio's output shows.
    """

    words: str
    key: str
    file: object = None
    on_other_host: bool = False


def group_jobs(document: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """Group the jobs of a document: jobs that did not wait for each other are in the same group.

    Jobs that wait (stonewall) begin a new group; fio does not list a stonewall without a value.
    Results of several hosts may come in any order.
    """
    groups: list[list[dict[str, Any]]] = []
    latest: dict[tuple[str | None, str], list[dict[str, Any]]] = {}
    for job in document["jobs"]:
        if not isinstance(job, dict):
            continue
        options, group = options_of(document, job), job.get("groupid")
        waits = "wait_for" in options or (group is None and "stonewall" in options)
        place = host_of(job), str(group)
        if waits or place not in latest:
            latest[place] = []
            groups.append(latest[place])
        latest[place].append(job)
    return _join_overlapping(groups)


def _join_overlapping(groups: Sequence[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Join groups of one host that ran at the same time.

    Like ``stonewall``, ``new_group`` begins a new group number, but its jobs wait for nothing. fio
    (3.33) lists neither option if the option has no value. Therefore only times distinguish the two
    options: the start of each job (3.36 and newer), or a total time that is too short for groups
    one after the other.
    """
    joined: list[list[dict[str, Any]]] = []
    by_host: dict[str | None, list[list[dict[str, Any]]]] = {}
    for group in groups:
        by_host.setdefault(host_of(group[0]), []).append(group)
    for group in groups:
        of_host = by_host[host_of(group[0])]
        together = next(
            (
                other
                for other in joined
                if host_of(other[0]) == host_of(group[0]) and _ran_together(other, group, of_host)
            ),
            None,
        )
        if together is None:
            joined.append(list(group))
        else:
            together += group
    return joined


def _ran_together(
    one: Sequence[Job], other: Sequence[Job], of_host: Sequence[Sequence[Job]]
) -> bool:
    span, span_other = _span_ms(one), _span_ms(other)
    if span is not None and span_other is not None:
        overlap_ms = min(span[1], span_other[1]) - max(span[0], span_other[0])
        shorter_ms = min(span[1] - span[0], span_other[1] - span_other[0])
        return overlap_ms > max(_SHORTEST_OVERLAP_MS, _LEAST_OVERLAP * shorter_ms)
    elapsed_s = [job.get("elapsed") for group in of_host for job in group]
    known_s = [value for value in elapsed_s if isinstance(value, int | float) and value > 0]
    if not known_s:
        return False
    needed_ms = sum(max(map(_runtime_ms, group)) for group in of_host)
    return needed_ms > 1.05 * 1000 * max(known_s) + _ELAPSED_STEP_MS


def _span_ms(group: Sequence[Job]) -> tuple[float, float] | None:
    """Return when a group began and ended, in ms since 1970; None: fio did not report it."""
    starts_ms = [
        start
        for job in group
        if isinstance(start := job.get("job_start"), int) and 0 < start < 1e15
    ]
    if len(starts_ms) < len(group):
        return None
    ends_ms = [start + _runtime_ms(job) for start, job in zip(starts_ms, group, strict=True)]
    return min(starts_ms), max(ends_ms)


def _runtime_ms(job: Job) -> float:
    runtimes = [side.get("runtime") for name in _SIDES if isinstance(side := job.get(name), dict)]
    return max(
        (float(value) for value in runtimes if isinstance(value, int | float) and value < 1e12),
        default=0.0,
    )


def find_jobs_at_once(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of jobs that shared the device; clones of one job (numjobs) are one load."""
    names_at_once = (
        dict.fromkeys(str(job.get("jobname")) for job in group) for group in group_jobs(document)
    )
    return tuple(name for names in names_at_once if len(names) > 1 for name in names)


def divide_clones(group: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return jobs of one name and with the same options that ran at the same time."""
    clones: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for job in group:
        clones.setdefault((str(job.get("jobname")), str(job.get("job options"))), []).append(job)
    return list(clones.values())


def find_loads_beside(
    document: Mapping[str, Any], groups: Sequence[Sequence[dict[str, Any]]], at: int
) -> list[tuple[list[dict[str, Any]], tuple[LoadBeside, ...]]]:
    """Return the clones of each job of a group, with the loads that ran at the same time.

    Loads of other hosts began together with this host's group of the same number.
    """
    hosts = [host_of(group[0]) for group in groups]
    number = hosts[:at].count(hosts[at])
    beside_hosts = [
        describe_load(document, clones, on_other_host=True)
        for place, group in enumerate(groups)
        if hosts[place] != hosts[at] and hosts[:place].count(hosts[place]) == number
        for clones in divide_clones(group)
    ]
    of_group = divide_clones(groups[at])
    return [
        (
            clones,
            (
                *(
                    describe_load(document, other, beside=clones)
                    for other in of_group
                    if other is not clones
                ),
                *beside_hosts,
            ),
        )
        for clones in of_group
    ]


def describe_load(
    document: Mapping[str, Any],
    clones: Sequence[Job],
    *,
    beside: Sequence[Job] = (),
    on_other_host: bool = False,
) -> LoadBeside:
    """Describe a load that ran at the same time as another load; it need not be a usable result
    itself.

    Args:

        beside: the other load. A file that both loads used is not named.
    """
    options = options_of(document, clones[0])
    name = without_round(str(clones[0].get("jobname")))
    plain = {
        key: str(value).strip()
        for key, value in options.items()
        if not key.startswith(_NEUTRAL) and not (key == "offset" and is_place_counted(options))
    }
    words = f"job {readable(name[:40])}"
    if options:
        words = _name_load(options, len(clones))
    if on_other_host:
        words += f" on {readable(str(host_of(clones[0]))[:40])}"
    key = f"{words}\n{name} {len(clones)} {sorted(plain.items())}"
    own = options_of(document, beside[0]).get("filename") if beside else None
    file = options.get("filename")
    if beside and file is not None and file != own:
        words += f" on {readable(str(file)[:40])}"
    return LoadBeside(words, key, file, on_other_host)


def is_place_counted(options: Options) -> bool:
    """Return whether ``offset`` is the address where a sequential load begins; this address may
    advance from round to round.
    """
    text = str(options.get("offset", "0")).strip()
    pattern = pattern_of(options)
    is_address = parse_number(text, kb_base_of(options)) is not None and "%" not in text
    return bool(pattern) and "rand" not in pattern and is_address


def _name_load(options: Options, listed: int) -> str:
    """Return ``SEQ 8k writes TC1/QD4``, with the limits of the load's rate."""
    pattern = pattern_of(options) or "read"
    order = "RND" if pattern.startswith("rand") else "SEQ"
    share = parse_number(options.get("rwmixread", "")) or 100 - (
        parse_number(options.get("rwmixwrite", "50")) or 50
    )
    mix = f"R/W {format_mix(min(100, max(0, share)))}"
    what = {
        "read": "reads", "write": "writes", "trim": "trims", "rw": mix, "readwrite": mix, "trimwrite": "trims and writes",
    }.get(pattern.removeprefix("rand"), readable(pattern[:20]))  # fmt: skip
    side = "write" if pattern.endswith("write") and "read" not in pattern else "read"
    sizes = dict.fromkeys(block_sizes_of(options, side, kb_base_of(options)) or (None,))
    size = "/".join(
        format_block_size(one) if one and not one % 512 else "?"
        for one in list(sizes)[:_MOST_NAMED]
    )
    threads = max(parse_number(options.get("numjobs", "1")) or 1, listed)
    depth = parse_number(options.get("iodepth", "1")) or 1
    limits = [
        f", {name}={readable(str(options[name])[:20])}"
        for name in ("rate", "rate_iops", "thinktime")
        if str(options.get(name, "0")).strip() not in ("", "0")
    ]
    return f"{order} {size} {what} TC{threads}/QD{depth}{''.join(limits)}"


def name_beside(loads: Sequence[LoadBeside]) -> str:
    """Return ``at once with SEQ 8k writes TC1/QD4``; empty if nothing else ran."""
    counted = Counter(load.words for load in loads)
    named = [
        words if count == 1 else f"{count} x {words}" for words, count in sorted(counted.items())
    ]
    if not named:
        return ""
    more = len(named) - _MOST_NAMED
    others = f" and {more} more" if more > 0 else ""
    return f"at once with {' + '.join(named[:_MOST_NAMED])}{others}"
