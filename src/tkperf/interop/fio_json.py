"""The importer of fio's JSON and json+ results. Any number of files from fio 2.x and 3.x become one run.

Files are read one by one, and only their results remain in memory. Unusable parts are left out, and the reason is
recorded. The import fails only if no result remains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from tkperf.interop import FIO_TEST
from tkperf.interop.fio_arrangement import arrange_series
from tkperf.interop.fio_combination import LoadAtOnce, combine_loads
from tkperf.interop.fio_documents import (
    ALL_CLIENTS,
    STOPPED,
    Documents,
    describe_text,
    host_of,
    last_of_each_run,
    stamp_ms,
)
from tkperf.interop.fio_options import find_server_fault, options_of, parse_number
from tkperf.interop.fio_result import LARGEST_IOS, Job, job_name, read_result, shorten_value
from tkperf.interop.fio_rounds import build_test
from tkperf.interop.fio_series import ENDED_EARLY, CellSeries, Result, build_series_key, start_of
from tkperf.interop.fio_together import ALONE, LoadsBeside, find_jobs_at_once, find_loads_beside, group_jobs
from tkperf.interop.imported import (
    LARGEST_DEMAND,
    MOST_LISTED,
    ImportedRun,
    Remarks,
    Unusable,
    list_readable_names,
    natural_key,
    one_line,
    readable,
    require_room,
)
from tkperf.model.errors import InputFileError, UsageError
from tkperf.model.measurement import Measurement
from tkperf.model.workload import Workload

# The largest accepted difference between the sum that fio computes over its servers and the sum of the servers'
# results, as a share of the second sum.
SUM_TOLERANCE = 0.01

# The greatest number of sections (MOST_SECTIONS in runfile/limits.py) and the greatest number of steps (MOST_ROWS in
# the same module) in a run file.
MOST_SECTIONS = 1000
MOST_RESULTS = 61_000


class FioResults:
    """A collector of the results in fio's files.

    The files are added in the natural order of their names, so the order in which the user names them has no effect.
    """

    def __init__(self) -> None:
        self.remarks = Remarks()
        self._names: list[str] = []
        self._results: list[Result] = []
        # The keys are values that differ between runs of fio. The value of a key is the index of the first result of a
        # document.
        self._places: dict[object, int] = {}
        self._at_once: dict[str, str] = {}

    def add(self, file: str, text: str, file_bytes: int | None = None) -> None:
        """Add the usable results of a file, and leave out unusable results. ``file_bytes`` is the size of the file in
        bytes.
        """
        documents, taken = Documents(text, file_bytes), 0
        unusable: list[Unusable] = []
        self._names.append(file)
        try:
            for number, document in enumerate(last_of_each_run(documents)):
                try:
                    self._add_document(document, len(self._names) - 1, number)
                    taken += 1
                except Unusable as why:
                    unusable.append(why)
        except Unusable as why:
            if taken:
                self.remarks.say("read-in-part", f"only its beginning is taken: {why}", file)
            else:
                self.remarks.leave_out_file(file, why)
            return
        if taken and documents.cut_off:
            self.remarks.say("cut-off", "is cut off or damaged: only intact JSON is used", file)
        if taken:
            for fault in unusable:
                reason = f"one result in it is left out, and the others are imported: {fault.kind}"
                self.remarks.say("read-in-part", reason, file, fault.detail)
        else:
            cut = "its JSON is cut off or damaged" if documents.cut_off else None
            none = describe_text(text) or (
                "holds no JSON result of fio (--output-format=json or json+)" if text.strip() else "it is empty"
            )
            self.remarks.leave_out_file(file, unusable[0] if unusable else Unusable(cut or none))

    def leave_out(self, file: str, reason: str) -> None:
        """Record that a file is left out because it cannot be read."""
        self.remarks.leave_out_file(file, Unusable(reason))

    def count_taken(self) -> int:
        """Return the number of files from which results were imported."""
        return len({result.source for result in self._results})

    def build_run(self, name: str) -> ImportedRun:
        """Return the run that contains all results.

        Raises:
            InputFileError: no results were added, or more results than a run file can contain.
        """
        if not self._results:
            # Each reason contains the name of its file.
            reasons = [warning.text for warning in self.remarks.warnings()[:MOST_LISTED]]
            raise InputFileError(f"nothing could be imported: {'; '.join(reasons) or 'no file'}")
        place = list_readable_names(sorted(self._names, key=natural_key))
        in_time = sorted(self._results, key=lambda one: (one.written_ms or inf, one.version))
        versions = list(dict.fromkeys(result.version for result in in_time))
        first_ms = in_time[0].written_ms
        series = arrange_series(self._results, self._names, self.remarks)
        test = build_test(FIO_TEST, series, self._names)
        if len(test.outcomes) > MOST_SECTIONS:
            raise InputFileError(
                f"{place}: these results would become {len(test.outcomes):,} sections, but a run file can "
                f"contain only {MOST_SECTIONS:,}. Import the results in "
                f"parts{_name_parts(series, self._names)}"
            )
        require_room(test.steps, place=place)
        return ImportedRun(
            name=name,
            written_s=None if first_ms is None else first_ms / 1000,
            tool=" and ".join(version.replace("fio-", "fio ", 1) for version in versions),
            profile_name="fio",
            profile=self._profile(),
            fio_version=versions[0],
            notices=(_shared_load(self._at_once),) if self._at_once else (),
            tests=(test,),
            warnings=self.remarks.warnings(),
        )

    def _add_document(self, document: dict[str, Any], source: int, number: int) -> None:
        file, jobs = self._names[source], document["jobs"]
        if len(jobs) > LARGEST_DEMAND:
            raise Unusable(f"more than {LARGEST_DEMAND:,} jobs in one result")
        if not all(isinstance(job, dict) for job in jobs):
            raise Unusable("a job of fio's is not an object")
        if not jobs:
            raise Unusable("fio ran, but no job of it moved data")
        if fault := find_server_fault(document):
            raise Unusable(fault)
        results = list(self._of_document(document, source, number))
        fingerprint = tuple(_fingerprint(result) for result in results)
        if results and fingerprint in self._places:
            self._keep_one(self._places[fingerprint], results)
            return
        self._places[fingerprint] = len(self._results)
        self._results += results
        if len(self._results) > MOST_RESULTS:
            raise UsageError(
                f"{file}: this file raises the number of results above {MOST_RESULTS:,}, but a run file "
                "can contain at most that number. Import fewer files"
            )
        for jobname in find_jobs_at_once(document):
            self._at_once.setdefault(jobname, file)

    def _keep_one(self, place: int, again: Sequence[Result]) -> None:
        """Keep one of two equal results: the result from the file with the shorter name. The name of a copy, such as
        ``copy of r1.json``, is longer than the name of the original.
        """
        kept = self._results[place : place + len(again)]

        def rank(results: Sequence[Result]) -> tuple[int, object, object]:
            name = self._names[results[0].source]
            return len(name), natural_key(name), results[0].place

        kept, left_out = sorted((kept, list(again)), key=rank)
        self._results[place : place + len(again)] = kept
        self.remarks.say(
            "given-twice",
            "contains a result twice, or the same result as another file: the result counts once",
            self._names[left_out[0].source],
            f" (as {readable(self._names[kept[0].source])})",
        )

    def _of_document(self, document: Mapping[str, Any], source: int, number: int) -> list[Result]:
        """Return the results of the jobs in a document.

        Clones (numjobs) that ran at the same time count as one job, but jobs that waited for each other do not. Loads
        that ran at the same time on one drive are a combination. If such loads cannot be combined, and have the same
        workload on the same file, they are left out, because they are neither rounds nor one known load.
        """
        file, results = self._names[source], []
        groups = group_jobs(document)
        for at, loads in enumerate(find_loads_beside(document, groups)):
            of_group = [
                LoadAtOnce(
                    clones=clones,
                    beside=beside,
                    result=next(iter(self._take(document, clones, (source, number, at), beside=beside)), None),
                )
                for clones, beside in loads
            ]
            combined, apart = combine_loads(document, of_group)
            results += combined
            alike = Counter(map(_load_of, apart))
            for result in apart:
                if alike[_load_of(result)] == 1:
                    results.append(result)
                else:
                    why = Unusable(
                        "it ran at the same time as other jobs with the same load, and filename "
                        "does not distinguish these jobs",
                        f" ({result.workload})",
                    )
                    self.remarks.leave_out_job(file, result.job, why)
        return results + self._of_all_clients(document, results, (source, number))

    def _take(
        self,
        document: Mapping[str, Any],
        clones: Sequence[Job],
        place: tuple[int, int, int],
        host: str | None = None,
        options: Mapping[str, Any] | None = None,
        beside: LoadsBeside = ALONE,
    ) -> list[Result]:
        """Return the result of clones, with their own options or the given options. An empty list means that the result
        is unusable.
        """
        file, jobname = self._names[place[0]], job_name(clones[0])
        options = options_of(document, clones[0]) if options is None else options
        try:
            if STOPPED in document:
                raise Unusable("fio was stopped by a signal in it")
            workload, measurement, uneven = read_result(clones, options, file, self.remarks)
        except Unusable as why:
            self.remarks.leave_out_job(file, jobname, why)
            return []
        self._say_if_rounded(document, options, workload.io_depth, file)
        self._say_if_flushed_too_often(document, options, clones, workload, measurement, file)
        series_key = build_series_key(
            file=file,
            jobname=jobname,
            host=host or host_of(clones[0]),
            options=options,
            threads=workload.jobs,
            measurement=measurement,
            beside=beside,
        )
        if ENDED_EARLY in series_key.always:
            self.remarks.say(
                "ended-early",
                "a job ran for less than its runtime: it was stopped, or had done all it could; such "
                "results have sections of their own",
                file,
                f" ({measurement.duration_s:.1f} s of {series_key.runtime_s:g} s)",
            )
        if uneven is not None:
            self.remarks.say(
                "clones-of-different-times",
                "clones ran for different times; their I/Os are counted over the longest, as fio "
                "does (group_reporting)",
                file,
                f": {uneven}",
            )
        text = f"[{jobname}]\n" + "".join(f"{key}={value}\n" for key, value in options.items())
        result = Result(
            place=place,
            job=jobname,
            workload=workload,
            series_key=series_key,
            measurement=measurement,
            version=one_line(str(document.get("fio version", ""))) or "fio",
            written_ms=stamp_ms(document),
            job_text=readable(text),
            start=start_of(options),
            uneven=uneven,
        )
        return [result]

    def _say_if_rounded(
        self, document: Mapping[str, Any], options: Mapping[str, Any], io_depth: int, file: str
    ) -> None:
        """Add a remark if this version of fio kept more I/Os outstanding than ``iodepth``. fio 3.39 corrects this error
        (commit af0ad0fa).
        """
        if _is_older(document, (3, 39)) and options.get("ioengine") == "io_uring" and io_depth & (io_depth - 1):
            self.remarks.say(
                "depth-rounded",
                "fio before 3.39 rounds iodepth up to a power of two with io_uring: more I/Os were outstanding than "
                "the queue depth says",
                file,
                f" (iodepth={io_depth}, {1 << io_depth.bit_length()} outstanding)",
            )

    def _say_if_flushed_too_often(
        self,
        document: Mapping[str, Any],
        options: Mapping[str, Any],
        clones: Sequence[Job],
        workload: Workload,
        measurement: Measurement,
        file: str,
    ) -> None:
        """Add a remark if this version of fio flushed more often than ``fsync`` or ``fdatasync`` requires.

        fio before 3.38 flushes again after each read until the next write (corrected with commit 704a8cfe). With
        io_uring at a queue depth above 1, fio 3.33 flushed 5,735 times where 2,500 flushes were due.
        """
        every = {name: parse_number(options.get(name, "0")) or 0 for name in ("fsync", "fdatasync")}
        name = next((name for name, writes in every.items() if writes), None)
        is_affected = workload.is_mixed or (options.get("ioengine") == "io_uring" and workload.io_depth > 1)
        if name is None or not is_affected or not _is_older(document, (3, 38)):
            return
        due = measurement.write.ios / every[name]
        sides = [side for clone in clones if isinstance(side := clone.get("sync"), dict)]
        counts = [ios for side in sides if isinstance(ios := side.get("total_ios"), int)]
        flushes = sum(ios for ios in counts if 0 <= ios < LARGEST_IOS)
        # Some I/O engines do not count their flushes. Each thread may flush once more than its share of the writes.
        if flushes and flushes <= due + workload.jobs:
            return
        counted = f", {flushes:,} flushes for {measurement.write.ios:,} writes" if flushes else ""
        self.remarks.say(
            "flushed-too-often",
            "fio before 3.38 flushes too often in a job that reads and writes, and with io_uring at a queue depth "
            "above 1: the device executed more flushes than fsync or fdatasync says",
            file,
            f" ({name}={shorten_value(options[name])}{counted})",
        )

    def _of_all_clients(
        self, document: Mapping[str, Any], results: Sequence[Result], place: tuple[int, int]
    ) -> list[Result]:
        """Return the sum that fio computes over its servers, if all servers ran the same workload."""
        rows = [row for row in document.get("all clients", ()) if isinstance(row, dict)]
        hosts = {result.series_key.host for result in results}
        if not rows or len({host_of(job) for job in document["jobs"]}) < 2:
            return []
        file = self._names[place[0]]
        self.remarks.say(
            "several-hosts",
            "each host's numbers were measured while the others ran; they have sections of their own",
            file,
        )
        # The limits and the runtime of a server are part of the load that the server ran.
        workloads = {(one.job, one.workload, one.series_key.always, one.series_key.runtime_s) for one in results}
        has_combinations = any(result.workload.is_combination for result in results)
        if len(workloads) != 1 or len(results) != len(hosts) or has_combinations:
            why = Unusable("fio's sum over all clients is one of several workloads")
            self.remarks.leave_out_job(file, ALL_CLIENTS, why)
            return []
        # fio reports no options for the sum, because each host has its own options.
        threads = sum(result.workload.jobs for result in results)
        options = options_of(document, document["jobs"][0]) | {"numjobs": threads}
        last = *place, len(document["jobs"])
        taken = self._take(document, rows[:1], last, ALL_CLIENTS.lower(), options)
        for total in taken:
            if contradiction := _compare_sum(total, results):
                self.remarks.leave_out_job(file, ALL_CLIENTS, contradiction)
                return []
            if contradiction := _compare_mean(total, results):
                self.remarks.say("sum-contradicts", contradiction.kind, file, contradiction.detail)
        return taken

    def _profile(self) -> dict[str, object]:
        """Return the thread count and the queue depth if they are the same in all results. Otherwise only the sections
        contain these numbers.
        """
        demands = {(result.workload.jobs, result.workload.io_depth) for result in self._results}
        profile: dict[str, object] = {"title": "fio results"}
        # The demand of a combination consists of upper limits.
        has_combinations = any(result.workload.is_combination for result in self._results)
        if not self.remarks.has("job-options-missing") and not has_combinations and len(demands) == 1:
            ((jobs, io_depth),) = demands
            profile["demand"] = {"jobs": jobs, "io_depth": io_depth}
        return profile


def _is_older(document: Mapping[str, Any], version: tuple[int, int]) -> bool:
    """Return whether fio was certainly older than this version."""
    found = re.match(r"fio-(\d{1,4})\.(\d{1,4})", str(document.get("fio version", "")))
    return found is not None and (int(found[1]), int(found[2])) < version


def _name_parts(series: Sequence[CellSeries], names: Sequence[str]) -> str:
    """Return a text that lists the folders that divide the results, each with the number of its series."""
    paths = [names[one.rounds[0].source].replace("\\", "/").split("/")[:-1] for one in series]
    shared = 0
    while len({tuple(path[: shared + 1]) for path in paths}) == 1 and shared < min(map(len, paths)):
        shared += 1
    counted = Counter("/".join(path[: shared + 1]) for path in paths)
    if len(counted) < 2:
        return ", such as the files of one block size or depth at a time"
    folders = sorted(counted, key=natural_key)
    named = ", ".join(f"{readable(folder)} ({counted[folder]:,})" for folder in folders[:MOST_LISTED])
    more = len(folders) - MOST_LISTED
    return f", one folder at a time: {named}" + (f" and {more:,} more" if more > 0 else "")


def _compare_sum(total: Result, hosts: Sequence[Result]) -> Unusable | None:
    """Return how fio's sum contradicts the results of the hosts. None means that the sum agrees with the results.

    In fio 3.33, the sum may cover only the first second, or only some of the hosts.
    """
    for name, words in (("ios", "I/Os"), ("bytes", "bytes")):
        given = getattr(total.measurement, name)
        added = sum(getattr(host.measurement, name) for host in hosts)
        if abs(given - added) > SUM_TOLERANCE * added:
            return Unusable(
                f"fio's sum over all clients contradicts its hosts in {words}", f": {given:,} instead of {added:,}"
            )
    return None


def _compare_mean(total: Result, hosts: Sequence[Result]) -> Unusable | None:
    """Return how the mean latency of fio's sum contradicts the hosts. None means that the mean latency lies between the
    latencies of the hosts, or a latency is not known.
    """
    mean_us = total.measurement.latency_mean_us
    known_us = [one for host in hosts if (one := host.measurement.latency_mean_us) is not None]
    if mean_us is None or len(known_us) < len(hosts):
        return None
    if (1 - SUM_TOLERANCE) * min(known_us) <= mean_us <= (1 + SUM_TOLERANCE) * max(known_us):
        return None
    return Unusable(
        "the mean latency of fio's sum over all clients is not between those of its hosts",
        f": {mean_us:,.1f} us, the hosts have {min(known_us):,.1f} to {max(known_us):,.1f} us",
    )


def _load_of(result: Result) -> tuple[object, ...]:
    """Return the properties, other than job names, that distinguish a load from other loads that ran at the
    same time.
    """
    key = result.series_key
    limits = tuple(text for text in key.always if "=" in text)
    return result.workload, key.conditions, limits, result.start


def _fingerprint(result: Result) -> tuple[object, ...]:
    """Return values that differ between results of different fio runs."""
    measurement = result.measurement
    sides = [
        (side.ios, side.bytes, side.latency_sum_ns, side.latency_min_ns, side.latency_max_ns)
        for side in (measurement.read, measurement.write)
    ]
    return result.written_ms, result.job, result.workload, measurement.duration_s, *sides


def _shared_load(at_once: Mapping[str, str]) -> str:
    """Return a text for the reader of the result that describes jobs that did not wait for each other."""
    names = [one_line(name) for name in sorted(at_once, key=natural_key)]
    listed = ", ".join(names[:MOST_LISTED]) + ", ..." * (len(names) > MOST_LISTED)
    first = one_line(min(at_once.values(), key=natural_key))
    return (
        f"SHARED LOAD: jobs of one fio ran at the same time ({listed}; first in {first}): they "
        "shared the drive, or at least the host, so no figure shows what a load reaches alone"
    )
