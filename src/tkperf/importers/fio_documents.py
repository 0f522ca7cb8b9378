"""fio's JSON documents in any text: those of one fio that reported in between count once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tkperf.errors import UsageError

# Between two status reports of one fio its jobs ran, but for at most this.
IDLE_MS = 2000.0
# Where fio gives no time of day: the jobs of two reports ran on by at least this.
SHORTEST_INTERVAL_MS = 100.0
# More is no number of fio's.
LARGEST = 1e18
# Braces in the text around results. A file with more is not fio's, and would take long to search.
MOST_ATTEMPTS = 1000


def documents(text: str, file: str) -> Iterator[dict[str, Any]]:
    """JSON objects with jobs in any text.

    Raises:
        UsageError: it is full of braces that begin no JSON.
    """
    decoder, position, failed = json.JSONDecoder(), 0, 0
    while (position := text.find("{", position)) >= 0:
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position, failed = position + 1, failed + 1
            if failed > MOST_ATTEMPTS:
                raise UsageError(
                    f"{file}: more than {MOST_ATTEMPTS:,} braces in it begin no JSON; is it fio's output?"
                ) from None
            continue
        if isinstance(value, dict) and isinstance(value.get("jobs"), list):
            _divide_unified(value)
            yield value


def options_of(document: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Any]:
    """A job's options, those of all jobs included."""
    shared, own = document.get("global options"), job.get("job options")
    return {
        **(shared if isinstance(shared, dict) else {}),
        **(own if isinstance(own, dict) else {}),
    }


def pattern_of(options: Mapping[str, Any]) -> str:
    """``randwrite`` of ``randwrite:8``; empty if it is not known."""
    return str(options.get("rw", options.get("readwrite", ""))).partition(":")[0]


def _divide_unified(document: dict[str, Any]) -> None:
    """Name the only direction of jobs whose results stand under ``mixed`` (unified_rw_reporting)."""
    for job in document["jobs"]:
        if isinstance(job, dict) and is_unified(job):
            side = pattern_of(options_of(document, job)).removeprefix("rand")
            if side in ("read", "write"):
                job[side] = job["mixed"]


def is_unified(job: Mapping[str, Any]) -> bool:
    """Whether reads and writes of a job were counted together only."""
    return "mixed" in job and not ("read" in job or "write" in job)


def group_jobs(document: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """The jobs of a document, those together that did not wait for each other.

    Jobs that wait (stonewall) are a new group; fio does not list stonewall where it has no value.
    """
    groups: list[list[dict[str, Any]]] = []
    group_before: object = None
    for job in document["jobs"]:
        if not isinstance(job, dict):
            continue
        options, group = options_of(document, job), job.get("groupid")
        waits = "wait_for" in options or (group is None and "stonewall" in options)
        if not groups or waits or group != group_before:
            groups.append([])
        group_before = group
        groups[-1].append(job)
    return groups


def find_jobs_at_once(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the jobs that shared the device. Clones of one job (numjobs) are one load."""
    together = (
        dict.fromkeys(str(job.get("jobname")) for job in group) for group in group_jobs(document)
    )
    return tuple(name for names in together if len(names) > 1 for name in names)


def find_first_written_s(written: Sequence[Mapping[str, Any]]) -> float | None:
    """When fio wrote the first of some documents, in seconds since 1970; None is not known."""
    stamps_ms = [stamp for each in written if (stamp := _stamp_ms(each))]
    return min(stamps_ms) / 1000 if stamps_ms else None


def last_of_each_run(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
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
    return float(value) if isinstance(value, int | float) and abs(value) < LARGEST else None


def _stamp_ms(document: Mapping[str, Any]) -> float | None:
    """When fio wrote the document; older versions give whole seconds."""
    for name, factor in (("timestamp_ms", 1), ("timestamp", 1000)):
        stamp = _finite(document.get(name))
        if stamp is not None:
            return stamp * factor
    return None
