"""Which results of fio's are rounds of one workload, in which order, and in which section.

Rounds are results of the same workload, job, purpose, host, folder and conditions. A section has an
access and a demand; what makes two series of one cell different stands in its name. Each cell is
judged by its own rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tkperf.importers.fio_documents import ALL_CLIENTS
from tkperf.importers.fio_options import kb_base_of, parse_number, parse_time_s
from tkperf.importers.imported import readable
from tkperf.importers.left_out import NaturalKey, Remarks, natural_key, without_numbers
from tkperf.measurement import Measurement
from tkperf.workload import Workload

# Purposes, as job and file names tell them. "preconditioned" is what a drive is afterwards.
_PURPOSES = {
    "precondition": r"pre[-_ ]?cond(?!\w*ed(?![a-z]))|(?<![a-z])w[id]pc(?![a-z])",
    "fill": r"(?<![a-z])(pre[-_ ]?)?fill(ing)?(?![a-z])",
    "warm-up": r"warm(ing)?[-_ ]?up|(?<![a-z])warm(?![a-z])",
    "purge": r"purge|saniti[sz]e|secure[-_ ]?erase|(?<![a-z])(wipe|discard|trim)(?![a-z])",
}
# What holds the load back, or makes another distribution of it, is part of what was run.
_LIMITS = (
    "rate", "rate_iops", "rate_process", "thinktime", "flow", "random_distribution",
    "percentage_random", "zonemode", "zonesize", "zoneskip", "rw_sequencer", "dedupe_percentage",
    "buffer_compress_percentage", "fsync", "fdatasync", "latency_target",
)  # fmt: skip
_USUAL = {"random_distribution": "random", "percentage_random": "100", "zonemode": "none"}
# Part of the workload or of the series otherwise, or without a bearing on what was measured.
_OTHERWISE = frozenset({
    "name", "description", "rw", "readwrite", "bs", "blocksize", "bsrange", "blocksize_range", "bssplit",
    "kb_base", "rwmixread", "rwmixwrite", "numjobs", "iodepth", "runtime", "timeout", "group_reporting",
    "stonewall", "wait_for", "new_group", "startdelay", "start_delay", "thread", "time_based", "randseed",
    "exec_prerun", "exec_postrun", "per_job_logs", "unit_base", "disk_util", "percentile_list",
    "lat_percentiles", "clat_percentiles", "slat_percentiles", "unified_rw_reporting", *_LIMITS,
})  # fmt: skip
_OUTPUT = (
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "write_hist_log",
    "log_",
    "bwavgtime",
    "iopsavgtime",
)
# A step shorter than this share of its runtime was stopped, or was done before.
WHOLE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What must be the same for two results of a workload to be its rounds.

    ``always`` is told in the section's name in any case; the rest where it tells series apart.
    """

    always: tuple[str, ...]
    job: str
    host: str | None
    folder: str
    file: str
    runtime_s: float | None
    conditions: tuple[tuple[str, str], ...]


@dataclass(slots=True, kw_only=True)
class Result:
    """One workload of one fio run. ``place`` is where in its file; ``written_ms`` when fio wrote it."""

    source: int
    place: tuple[int, int]
    job: str
    workload: Workload
    identity: Identity
    measurement: Measurement
    written_ms: float | None
    job_text: str


@dataclass(slots=True, kw_only=True)
class Series:
    """The rounds of one cell, in their order."""

    workload: Workload
    identity: Identity
    rounds: list[Result] = field(default_factory=list)
    section: str = ""


def identify(
    *,
    file: str,
    jobname: str,
    host: str | None,
    options: Mapping[str, Any],
    threads: int,
    measurement: Measurement,
) -> Identity:
    folder, _, name = file.replace("\\", "/").rpartition("/")
    runtime_s = parse_time_s(options.get("runtime", options.get("timeout", "")))
    always = [*_purposes(jobname, name), *_limits(options)]
    if host == ALL_CLIENTS.lower():
        always.insert(0, host)
    if _is_cut_short(options, runtime_s, threads, measurement):
        always.append("ended early")
    return Identity(
        always=tuple(always),
        job=jobname,
        host=host,
        folder=without_numbers(folder),
        # Where options are known they tell workloads apart better than names do.
        file="" if options else without_numbers(name),
        runtime_s=runtime_s,
        conditions=tuple(sorted(_conditions(options))),
    )


def _purposes(*names: str) -> Iterator[str]:
    for purpose, pattern in _PURPOSES.items():
        if any(re.search(pattern, name.lower()) for name in names):
            yield purpose


def _limits(options: Mapping[str, Any]) -> Iterator[str]:
    for name in _LIMITS:
        value = str(options.get(name, "")).strip()
        if value not in ("", "0") and not value.startswith(_USUAL.get(name, "\0")):
            yield f"{name}={readable(value[:40])}"
    modifier = str(options.get("rw", options.get("readwrite", ""))).partition(":")[2]
    if modifier:
        yield f"rw with :{readable(modifier[:40])}"


def _is_cut_short(
    options: Mapping[str, Any], runtime_s: float | None, threads: int, measurement: Measurement
) -> bool:
    """Whether it ran for less than its runtime, though fio was not asked to end it before."""
    if runtime_s is None or measurement.duration_s >= min(WHOLE * runtime_s, runtime_s - 0.1):
        return False
    if any(name in options for name in ("number_ios", "loops", "steadystate", "ss")):
        return False
    for name in ("io_size", "io_limit", "size"):
        text = str(options.get(name, ""))
        amount = None if "%" in text else parse_number(text, kb_base_of(options))
        if amount:
            return measurement.bytes < 0.99 * amount * threads
    return True


def _conditions(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if name not in _OTHERWISE and not name.startswith(_OUTPUT):
            yield str(name), str(value).strip()


def arrange(results: Iterable[Result], names: Sequence[str], remarks: Remarks) -> list[Series]:
    """Results as series, each with its section, in an order that files cannot change by theirs.

    Args:
        names: of the files that ``Result.source`` counts.
    """
    by_key: dict[tuple[Workload, Identity], Series] = {}
    for result in results:
        key = result.workload, result.identity
        series = by_key.setdefault(key, Series(workload=result.workload, identity=result.identity))
        series.rounds.append(result)
    keys = [natural_key(name) for name in names]
    for series in by_key.values():
        _order(series, names, keys, remarks)
    in_order = sorted(by_key.values(), key=lambda series: _order_key(series.rounds[0], keys))
    _name_sections(in_order, names)
    # What is told apart stands behind what needs no more than its workload to be told.
    return sorted(in_order, key=lambda series: "," in series.section)


def _order_key(result: Result, keys: Sequence[NaturalKey]) -> tuple[object, ...]:
    stamp = float("inf") if result.written_ms is None else result.written_ms
    return stamp, keys[result.source], result.place


def _order(
    series: Series, names: Sequence[str], keys: Sequence[NaturalKey], remarks: Remarks
) -> None:
    """Rounds by the time at which fio wrote them; where that is not known by their files' names."""
    by_name = sorted(series.rounds, key=lambda result: (keys[result.source], result.place))
    if any(result.written_ms is None for result in by_name):
        series.rounds = by_name
        for result in by_name if len({result.source for result in by_name}) > 1 else ():
            if result.written_ms is None:
                remarks.say(
                    "no-time-stamps",
                    "no time in the results: rounds are in the order of the files' names, numbers in them "
                    "counted as numbers",
                    names[result.source],
                )
        return
    series.rounds = sorted(series.rounds, key=lambda result: _order_key(result, keys))
    families: dict[str, float] = {}
    for result in by_name:
        stamp, family = result.written_ms or 0.0, without_numbers(names[result.source])
        if stamp < families.get(family, 0.0):
            remarks.say(
                "order-conflict",
                "the order of the files' names is not that of the times fio wrote in them: rounds are in "
                "the order of these",
                names[result.source],
            )
        families[family] = max(stamp, families.get(family, 0.0))
    for before, after in zip(series.rounds, series.rounds[1:], strict=False):
        ran_ms = after.measurement.duration_s * 1000
        passed_ms = (after.written_ms or 0.0) - (before.written_ms or 0.0)
        if before.source != after.source and passed_ms < 0.5 * ran_ms - 1000:
            remarks.say(
                "rounds-overlap",
                "results taken as rounds of one workload were measured at the same time: on one drive they "
                "shared it, on several they are no rounds",
                names[after.source],
                f" (with {readable(names[before.source])})",
            )


def _name_sections(all_series: Sequence[Series], names: Sequence[str]) -> None:
    """Give each series its section; series of one cell are told apart by what is different."""
    rivals: dict[tuple[str, Workload], list[Series]] = {}
    for series in all_series:
        series.section = ", ".join((_base_name(series.workload), *series.identity.always))
        rivals.setdefault((series.section, series.workload), []).append(series)
    taken: set[tuple[str, Workload]] = set()
    for group in rivals.values():
        labels = [_labels(series, group, names) for series in group]
        for series, differences in zip(group, labels, strict=True):
            name, count = ", ".join((series.section, *differences)), 1
            while (place := (name, series.workload)) in taken:
                count += 1
                name = ", ".join((series.section, *differences, f"({count})"))
            taken.add(place)
            series.section = name


def _labels(series: Series, group: Sequence[Series], names: Sequence[str]) -> list[str]:
    """What is not the same for all series of a cell, of this series."""
    mine, first = series.identity, series.rounds[0]
    file = names[first.source].replace("\\", "/")
    facets: dict[str, str] = {
        "host": f"host {mine.host}" if mine.host else "no host named",
        "job": f"job {first.job}",
        "folder": f"in {file.rpartition('/')[0] or '.'}",
        "file": f"file {file.rpartition('/')[2]}",
        "runtime_s": "no runtime" if mine.runtime_s is None else f"runtime {mine.runtime_s:g} s",
    }
    labels = [
        text
        for facet, text in facets.items()
        if len({getattr(other.identity, facet) for other in group}) > 1
    ]
    options = [dict(other.identity.conditions) for other in group]
    for name in sorted({name for conditions in options for name in conditions}):
        if len({conditions.get(name) for conditions in options}) > 1:
            value = dict(mine.conditions).get(name)
            labels.append(f"no {name}" if value is None else f"{name}={value}"[:60])
    return [readable(text[:80]).replace("\n", " ") for text in labels[:4]]


def _base_name(workload: Workload) -> str:
    return f"fio {workload.access.order} TC{workload.jobs}/QD{workload.io_depth}"
