"""Loads of one fio process that ran at the same time on one drive. tkperf imports these loads as one combination, with
a stream for each load.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tkperf.interop.fio_options import Options, options_of
from tkperf.interop.fio_result import job_name
from tkperf.interop.fio_series import Result, SeriesKey
from tkperf.interop.fio_together import LoadsBeside, have_one_duration, name_others
from tkperf.interop.imported import one_line, without_round
from tkperf.model.figures import LoadCaution
from tkperf.model.measurement import NO_IO, IoStats, Measurement, StreamPart, add_all
from tkperf.model.workload import Stream, combine
from tkperf.procedures.own_workloads.parts import MOST_STREAMS, name_load

# In a group with more loads than this number, a search for the other loads of each drive would take too long.
_MOST_LOADS = 256
# Options that name the files of a load. Loads with none of these options use files in the working directory.
_PLACES = ("filename", "filename_format", "directory", "opendir", "rbdname", "pool", "volume", "uri")
# fio separates files by colons. An escaped colon is a part of a name.
_SEVERAL_FILES = re.compile(r"(?<!\\):")

_Place = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAtOnce:
    """A load of a group of jobs that ran at the same time.

    Attributes:
        clones: the jobs of the load in fio's document.
        result: the result of the load. None means that the result cannot be imported.
    """

    clones: Sequence[dict[str, Any]]
    beside: LoadsBeside
    result: Result | None


def combine_loads(document: Mapping[str, Any], loads: Sequence[LoadAtOnce]) -> tuple[list[Result], list[Result]]:
    """Return the results of a group: the combinations, and the results of loads that are not combined.

    The loads of one drive are a combination if every load can be imported, and if the loads began and ended together.
    Loads of several drives are never combined.
    """
    places = [_find_place(options_of(document, load.clones[0]), job_name(load.clones[0])) for load in loads]
    by_place: dict[_Place | None, list[LoadAtOnce]] = {}
    for load, place in zip(loads, places, strict=True):
        by_place.setdefault(place, []).append(load)
    combined: list[Result] = []
    apart: list[Result] = []
    for place, of_place in by_place.items():
        results = [load.result for load in of_place if load.result is not None]
        if place is not None and len(loads) <= _MOST_LOADS and _is_combination(document, of_place, results):
            elsewhere = [load.beside.own for load, other in zip(loads, places, strict=True) if other != place]
            # The empty text represents the combination itself.
            combined.append(_combine(results, name_others(["", *elsewhere])[0]))
        else:
            apart += results
    return combined, apart


def _find_place(options: Options, jobname: str) -> _Place | None:
    """Return the options that name the files of a load. None means that the options are not known, or that they name
    several files.
    """
    if not options or _SEVERAL_FILES.search(str(options.get("filename", ""))):
        return None
    # If the option filename is missing, a job whose name is the path of a device uses that device (``add_job`` in fio's
    # init.c).
    device = jobname if "filename" not in options and re.search(r"[/\\]", jobname) else ""
    return device, *(str(options.get(name, "")).strip() for name in _PLACES)


def _is_combination(document: Mapping[str, Any], loads: Sequence[LoadAtOnce], results: Sequence[Result]) -> bool:
    if not 1 < len(loads) <= MOST_STREAMS or len(results) < len(loads):
        return False
    # Loads that only prepare the drive are not combined with loads that are measured, because a combination is a single
    # series: either preparation or measurement.
    if len({result.series_key.prepares for result in results}) > 1:
        return False
    return have_one_duration(document, [load.clones for load in loads])


def _name_streams(results: Sequence[Result]) -> list[str]:
    """Return a different name for each load: the name of its job without the number of a round."""
    names: list[str] = []
    for result in results:
        names.append(name_load(one_line(without_round(result.job)), names, is_stream=True))
    return names


def _combine(results: Sequence[Result], elsewhere: str) -> Result:
    """Return the combination of results.

    Args:
        elsewhere: the loads that ran at the same time on other drives, in words. An empty value means that no load ran
            on another drive.
    """
    names = _name_streams(results)
    streams = [Stream(name=name, workload=one.workload) for name, one in zip(names, results, strict=True)]
    named = list(zip(names, results, strict=True))
    starts = [f"{name} {one.start}" for name, one in named if one.start is not None]
    return replace(
        results[0],
        job=" + ".join(one.job for one in results),
        workload=combine(streams),
        series_key=_combine_keys(names, [one.series_key for one in results], elsewhere),
        measurement=_combine_measurements(names, [one.measurement for one in results]),
        job_text="\n".join(one.job_text for one in results),
        start=", ".join(starts) or None,
        uneven="; ".join(f"{name}: {one.uneven}" for name, one in named if one.uneven is not None) or None,
    )


def _combine_keys(names: Sequence[str], keys: Sequence[SeriesKey], elsewhere: str) -> SeriesKey:
    first, runtimes_s = keys[0], [key.runtime_s for key in keys if key.runtime_s is not None]
    cautions = {caution for key in keys for caution in key.cautions}
    always = [[text for text in key.always if text != key.beside.words] for key in keys]
    common = [one for one in first.conditions if all(one in key.conditions for key in keys)]
    own = [
        (f"{name}: {option}", value)
        for name, key in zip(names, keys, strict=True)
        for option, value in key.conditions
        if (option, value) not in common
    ]
    return replace(
        first,
        always=(*_merge(names, always), *([elsewhere] if elsewhere else [])),
        writes_amount=all(key.writes_amount for key in keys),
        job=" + ".join(names),
        runtime_s=max(runtimes_s, default=None),
        conditions=tuple(sorted([*common, *own])),
        # ``beside.key`` is kept, because it describes all loads of the group, including the options of each stream.
        beside=replace(first.beside, own=" + ".join(key.beside.own for key in keys), words=elsewhere),
        cautions=tuple(caution for caution in LoadCaution if caution in cautions),
    )


def _merge(names: Sequence[str], texts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the texts of all streams. A text that all streams share occurs once. Texts of single streams follow, each
    with the name of the stream.
    """
    common = [text for text in texts[0] if all(text in others for others in texts[1:])]
    own = [f"{name}: {text}" for name, of in zip(names, texts, strict=True) for text in of if text not in common]
    return (*common, *own)


def _combine_measurements(names: Sequence[str], measurements: Sequence[Measurement]) -> Measurement:
    """Return the measurement of a combination: the total of its streams and each stream, over the longest duration."""
    sides = [side for one in measurements for side in (one.read, one.write) if not side.is_empty]
    has_latencies = all(side.latency_ios for side in sides)
    has_bins = all(side.histogram.total for side in sides)

    def add(stats: Sequence[IoStats]) -> IoStats:
        # A mean or a percentile that covers only some of the streams is not a value of the total.
        total = add_all(stats)
        if not has_latencies:
            total = IoStats(ios=total.ios, bytes=total.bytes, histogram=total.histogram)
        return total if has_bins else replace(total, histogram=NO_IO.histogram)

    return Measurement(
        duration_s=max(one.duration_s for one in measurements),
        read=add([one.read for one in measurements]),
        write=add([one.write for one in measurements]),
        streams=tuple(
            StreamPart(name=name, read=one.read, write=one.write) for name, one in zip(names, measurements, strict=True)
        ),
    )
