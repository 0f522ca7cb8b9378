"""Series of fio's results: the rounds of one workload, their order, and their section.

Rounds are results of the same workload, job, purpose, host, folder and conditions. A section has an
access and a demand; its name also has the differences between two series of one cell. Each cell is
judged by its own rounds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from tkperf.interop.fio_documents import ALL_CLIENTS
from tkperf.interop.fio_options import kb_base_of, parse_number, parse_time_s, pattern_of
from tkperf.interop.imported import NaturalKey, Remarks, natural_key, readable, without_numbers
from tkperf.model.measurement import Measurement
from tkperf.model.purposes import find_purposes, prepares
from tkperf.model.workload import Workload

# Words in a job's name before a number that counts rounds; any other number may count drives.
_ROUND = re.compile(r"(?<![a-z])(round|pass|loop|cycle|iter|iteration)([-_ ]?)\d+", re.IGNORECASE)
_LARGEST_COUNTER = 10  # times the number of files
# Limits and other distributions of a load are part of the workload.
_LIMITS = (
    "rate", "rate_iops", "rate_process", "thinktime", "flow", "random_distribution",
    "percentage_random", "zonemode", "zonesize", "zoneskip", "rw_sequencer", "dedupe_percentage",
    "buffer_compress_percentage", "fsync", "fdatasync", "latency_target",
)  # fmt: skip
_USUAL = {"random_distribution": "random", "percentage_random": "100", "zonemode": "none"}
# Options that belong to the workload or the series in another way, or do not affect the measurement.
_OTHERWISE = frozenset({
    "name", "description", "rw", "readwrite", "bs", "blocksize", "bsrange", "blocksize_range", "bssplit",
    "kb_base", "rwmixread", "rwmixwrite", "numjobs", "iodepth", "runtime", "timeout", "group_reporting",
    "stonewall", "wait_for", "new_group", "startdelay", "start_delay", "thread", "time_based", "randseed",
    "exec_prerun", "exec_postrun", "job_start_clock_id", "comm", "per_job_logs", "unit_base", "disk_util", "percentile_list",
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
# Part of the section's name, like a name from the user.
_FILL = "fill by amount"
# A step shorter than this share of its runtime was stopped, or finished early.
WHOLE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesKey:
    """Properties that two results of a workload share if they are its rounds.

    Attributes:
        always: parts of the section's name in any case; the others appear only if they separate series.
        writes_amount: it writes a given amount sequentially, without a runtime.
    """

    always: tuple[str, ...]
    prepares: bool
    writes_amount: bool
    job: str
    host: str | None
    folder: str
    file: str
    runtime_s: float | None
    conditions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One workload of one fio run.

    Attributes:
        place: numbers of its file, of the document in that, of the group in that.
        written_ms: time at which fio wrote it.
        start: address of its beginning; None if that is part of its key.
        uneven: times of its clones, in words, if they ended at different times.
    """

    place: tuple[int, int, int]
    job: str
    workload: Workload
    series_key: SeriesKey
    measurement: Measurement
    version: str
    written_ms: float | None
    job_text: str
    start: str | None
    uneven: str | None

    @property
    def source(self) -> int:
        return self.place[0]


@dataclass(slots=True, kw_only=True)
class CellSeries:
    """Series of one cell: its rounds in their order."""

    workload: Workload
    series_key: SeriesKey
    rounds: list[Result] = field(default_factory=list)
    section: str = ""


def build_series_key(
    *,
    file: str,
    jobname: str,
    host: str | None,
    options: Mapping[str, Any],
    threads: int,
    measurement: Measurement,
) -> SeriesKey:
    folder, _, name = file.replace("\\", "/").rpartition("/")
    runtime_s = parse_time_s(options.get("runtime", options.get("timeout", "")))
    parent = folder.rpartition("/")[2]
    always = [*find_purposes(jobname, name, folder=parent), *_limits(options)]
    if host == ALL_CLIENTS.lower():
        always.insert(0, host)
    if _is_cut_short(options, runtime_s, threads, measurement):
        always.append("ended early")
    return SeriesKey(
        always=tuple(always),
        prepares=prepares(jobname, name, folder=parent, writes=measurement.write.ios > 0),
        writes_amount=runtime_s is None and pattern_of(options) == "write",
        job=_ROUND.sub(r"\1\2", jobname),
        host=host,
        folder=without_numbers(folder),
        # Known options separate workloads better than names do.
        file="" if options else without_numbers(name),
        runtime_s=runtime_s,
        conditions=tuple(sorted(_conditions(options))),
    )


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
    """Return whether it ran for less than its runtime without an option that ends it earlier."""
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
    advances = start_of(options) is not None
    for name, value in options.items():
        if name == "offset" and advances:
            continue
        if name not in _OTHERWISE and not name.startswith(_OUTPUT):
            yield str(name), str(value).strip()


def start_of(options: Mapping[str, Any]) -> str | None:
    """Return the address at which a sequential load begins; None for random loads and shares of the device.

    Rounds of a throughput test begin at the end of the last one (PTS-E 1.1, throughput); a share, such as
    ``offset=50%``, is a place that the user chose.
    """
    text = str(options.get("offset", "0")).strip()
    pattern = pattern_of(options)
    is_address = parse_number(text, kb_base_of(options)) is not None and "%" not in text
    return text if pattern and "rand" not in pattern and is_address else None


def arrange_series(
    results: Iterable[Result], names: Sequence[str], remarks: Remarks
) -> list[CellSeries]:
    """Return the results as series, each with its section, in an order independent of the order of the files.

    Args:
        results: results of all files.
        names: names of the files, indexed by ``Result.source``.
        remarks: receives remarks on the order of rounds.
    """
    by_key: dict[tuple[Workload, SeriesKey], CellSeries] = {}
    for result in results:
        key = result.workload, result.series_key
        series = by_key.setdefault(
            key, CellSeries(workload=result.workload, series_key=result.series_key)
        )
        series.rounds.append(result)
    divided = [part for series in by_key.values() for part in _divide(series, names)]
    for fill in _find_fills(divided):
        always = (*fill.series_key.always, _FILL)
        fill.series_key = replace(fill.series_key, always=always, prepares=True)
    keys = [natural_key(name) for name in names]
    for series in divided:
        _order(series, names, keys, remarks)
    in_order = sorted(divided, key=lambda series: _order_key(series.rounds[0], keys))
    _name_sections(in_order, names)
    # Series with further words in their section's name come last.
    return sorted(in_order, key=lambda series: "," in series.section)


def _find_fills(all_series: Sequence[CellSeries]) -> list[CellSeries]:
    """Return loads that prepare: each wrote an amount sequentially, once, while others ran for a time.

    If nothing ran for a time, or it was repeated in rounds, the amount may be the measurement.
    """
    if not any(one.series_key.runtime_s and not one.series_key.prepares for one in all_series):
        return []
    return [
        one
        for one in all_series
        if one.series_key.writes_amount and not one.series_key.prepares and len(one.rounds) == 1
    ]


def _divide(series: CellSeries, names: Sequence[str]) -> Iterator[CellSeries]:
    """Yield a series for each of several runs in their folders, or for each of several places of the device."""
    for run in _runs(series, names):
        by_start: dict[str | None, list[Result]] = {}
        for result in run.rounds:
            by_start.setdefault(result.start, []).append(result)
        # Rounds that continue at the end of the last one do not all return to the start of others.
        if len(by_start) == 1 or min(map(len, by_start.values())) == 1:
            yield run
            continue
        for start, rounds in by_start.items():
            conditions = (*run.series_key.conditions, ("offset", str(start)))
            series_key = replace(run.series_key, conditions=tuple(sorted(conditions)))
            yield CellSeries(workload=run.workload, series_key=series_key, rounds=rounds)


def _runs(series: CellSeries, names: Sequence[str]) -> Iterator[CellSeries]:
    """Separate folders that each hold rounds of the same names: they count runs, not rounds."""
    folders: dict[str, list[str]] = {}
    by_folder: dict[str, list[Result]] = {}
    for result in series.rounds:
        folder, _, file = names[result.source].replace("\\", "/").rpartition("/")
        folders.setdefault(folder, []).append(file)
        by_folder.setdefault(folder, []).append(result)
    counted = any(
        len({without_numbers(file) for file in files}) < len(files) for files in folders.values()
    )
    times_given = Counter(file for files in folders.values() for file in set(files))
    if not counted or max(times_given.values()) == 1:
        yield series
        return
    for folder, rounds in by_folder.items():
        series_key = replace(series.series_key, folder=folder)
        yield CellSeries(workload=series.workload, series_key=series_key, rounds=rounds)


def _order_key(result: Result, keys: Sequence[NaturalKey]) -> tuple[object, ...]:
    stamp = float("inf") if result.written_ms is None else result.written_ms
    return stamp, keys[result.source], result.place


def _order(
    series: CellSeries, names: Sequence[str], keys: Sequence[NaturalKey], remarks: Remarks
) -> None:
    """Order rounds by the time at which fio wrote them, or by their files' names if a time is not known."""
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
    for displaced in _find_displaced(series.rounds, names):
        remarks.say(
            "order-conflict",
            "the order of the files' names is not that of the times fio wrote in them: rounds are in "
            "the order of these",
            names[displaced.source],
        )
    for before, after in pairwise(series.rounds):
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


def _find_displaced(rounds: Sequence[Result], names: Sequence[str]) -> Iterator[Result]:
    """Yield results, in order of time, before one whose file has a smaller counter in its name.

    A counter is the only number that differs between names, and not much larger than the number of files: a
    larger one is a process id or a time.
    """
    families: dict[str, list[Result]] = {}
    for result in rounds:
        families.setdefault(without_numbers(names[result.source]), []).append(result)
    for family in families.values():
        numbers = [map(int, re.findall(r"\d{1,30}", names[result.source])) for result in family]
        counters = [column for column in zip(*numbers, strict=False) if len(set(column)) > 1]
        if len(counters) == 1 and max(counters[0]) <= _LARGEST_COUNTER * len(family):
            numbered = zip(family, counters[0], strict=True)
            for (result, counter), (_, next_counter) in pairwise(numbered):
                if next_counter < counter:
                    yield result


def _name_sections(all_series: Sequence[CellSeries], names: Sequence[str]) -> None:
    """Give each series its section; the names of series of one cell include their differences."""
    rivals: dict[tuple[str, Workload], list[CellSeries]] = {}
    for series in all_series:
        series.section = ", ".join((_base_name(series.workload), *series.series_key.always))
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


def _labels(series: CellSeries, group: Sequence[CellSeries], names: Sequence[str]) -> list[str]:
    """Return this series' values of the properties in which the series of a cell differ."""
    mine, first = series.series_key, series.rounds[0]
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
        if len({getattr(other.series_key, facet) for other in group}) > 1
    ]
    options = [dict(other.series_key.conditions) for other in group]
    for name in sorted({name for conditions in options for name in conditions}):
        if len({conditions.get(name) for conditions in options}) > 1:
            value = dict(mine.conditions).get(name)
            labels.append(f"no {name}" if value is None else f"{name}={value}"[:60])
    return [readable(text[:80]).replace("\n", " ") for text in labels[:4]]


def _base_name(workload: Workload) -> str:
    return f"fio {workload.access.order} TC{workload.jobs}/QD{workload.io_depth}"
