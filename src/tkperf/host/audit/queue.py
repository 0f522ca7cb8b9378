"""Settings of a drive's queue in the kernel: scheduler, requests, completions, merging."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tkperf.device.sysfs import number, text
from tkperf.host.audit.finding import Finding, Level, not_known
from tkperf.host.audit.site import Drive, Site

# The I/O size of throughput tests, in KiB (PTS-E 1.1: 1024 KiB).
LARGEST_IO_KIB = 1024
# Drivers without a limit of their own write the largest number.
_NO_LIMIT_KIB = 1 << 24
_SCHEDULER = "a scheduler may reorder, merge and delay what the drive is to be measured with"
_REQUESTS = "what is outstanding beyond the queue's requests waits in the host, not in the drive"


def choose_scheduler(drive: Drive, now: str) -> str:
    """Return the scheduler to measure with: none; a hard disk may keep its usual mq-deadline.

    The scheduler "none" keeps the drive's own order, and takes the least CPU time.
    """
    return now if drive.rotates and now == "mq-deadline" else "none"


def chosen_of(words: str | None) -> str | None:
    """Return the chosen word of a list: ``none`` for ``mq-deadline [none]``."""
    if words is None or "[" not in words:
        return words
    return words.partition("[")[2].partition("]")[0]


def audit_queue(site: Site, drive: Drive) -> Iterator[Finding]:
    queue = drive.disk / "queue"
    if not queue.is_dir():
        yield not_known("queue settings", "the kernel shows none", _SCHEDULER)
        return
    yield _scheduler(drive, queue)
    yield _requests(site, drive, queue)
    yield _affinity(queue)
    yield _merging(queue)
    yield _throttling(queue)
    yield _largest(queue)
    yield _statistics(drive, queue)
    yield _other_settings(queue)


def _scheduler(drive: Drive, queue: Path) -> Finding:
    now = chosen_of(text(queue / "scheduler"))
    if now is None:
        return not_known("I/O scheduler", "the kernel does not tell", _SCHEDULER)
    wanted = choose_scheduler(drive, now)
    is_best = now == wanted
    return Finding(
        subject="I/O scheduler",
        level=Level.OK if is_best else Level.ADVICE,
        found=now,
        why=_SCHEDULER,
        command=None if is_best else f"echo {wanted} | sudo tee {_shell(drive, 'scheduler')}",
    )


def _requests(site: Site, drive: Drive, queue: Path) -> Finding:
    """Check the requests of the queue: each of the device's hardware queues has so many."""
    requests = number(queue / "nr_requests")
    if requests is None:
        return not_known("requests of the queue", "the kernel does not tell", _REQUESTS)
    queues = len(list((drive.disk / "mq").glob("[0-9]*"))) or 1
    places = requests * queues
    too_few = site.outstanding is not None and places < site.outstanding
    asked = f", {site.outstanding} I/Os will be outstanding" if site.outstanding else ""
    return Finding(
        subject="requests of the queue",
        level=Level.ADVICE if too_few else Level.OK,
        found=f"{requests} in each of {queues} hardware queue{'s' * (queues > 1)}{asked}",
        why=_REQUESTS,
        command=f"echo {site.outstanding} | sudo tee {_shell(drive, 'nr_requests')}"
        if too_few
        else None,
    )


def _affinity(queue: Path) -> Finding:
    why = "where completions run: with 2 on the CPU that issued the I/O, so that none does all of them"
    setting = number(queue / "rq_affinity")
    if setting is None:
        return not_known("completion affinity", "the kernel does not tell", why)
    meaning = {0: "any CPU", 1: "a CPU near the issuing one", 2: "the issuing CPU"}
    found = f"rq_affinity {setting}: {meaning.get(setting, 'not known to tkperf')}"
    return Finding(subject="completion affinity", level=Level.NOTE, found=found, why=why)


def _merging(queue: Path) -> Finding:
    why = "neighbouring I/Os that are merged reach the drive as fewer and larger ones"
    setting = number(queue / "nomerges")
    if setting is None:
        return not_known("merging", "the kernel does not tell", why)
    meaning = {0: "on", 1: "simple merges only", 2: "off"}
    found = f"{meaning.get(setting, 'not known to tkperf')} (nomerges {setting})"
    return Finding(subject="merging", level=Level.NOTE, found=found, why=why)


def _throttling(queue: Path) -> Finding:
    why = (
        "direct writes, which tkperf makes, are exempt from it; timing every I/O for it takes a "
        "little of the CPU, and discards are held back"
    )
    target_us = number(queue / "wbt_lat_usec")
    if target_us is None:
        return not_known("writeback throttling", "the kernel does not tell (or has none)", why)
    found = f"target {target_us} µs" if target_us else "off"
    return Finding(subject="writeback throttling", level=Level.NOTE, found=found, why=why)


def _largest(queue: Path) -> Finding:
    why = "a larger I/O is split by the kernel, so that the drive gets several"
    now, possible = number(queue / "max_sectors_kb"), number(queue / "max_hw_sectors_kb")
    if now is None:
        return not_known("largest request", "the kernel does not tell", why)
    limited = possible is not None and possible < _NO_LIMIT_KIB
    found = f"{now} KiB" + (f", the hardware takes {possible} KiB" if limited else "")
    return Finding(
        subject="largest request",
        level=Level.OK if now >= LARGEST_IO_KIB else Level.NOTE,
        found=found,
        why=why,
    )


def _statistics(drive: Drive, queue: Path) -> Finding:
    why = "without the device's counters tkperf cannot tell I/O of others from its own"
    setting = number(queue / "iostats")
    if setting is None:
        return not_known("I/O statistics", "the kernel does not tell", why)
    return Finding(
        subject="I/O statistics",
        level=Level.OK if setting else Level.ADVICE,
        found="on" if setting else "off",
        why=why,
        command=None if setting else f"echo 1 | sudo tee {_shell(drive, 'iostats')}",
    )


def _other_settings(queue: Path) -> Finding:
    why = "disclosed: neither acts on direct I/O that is not polled"
    polls, ahead_kib = number(queue / "io_poll"), number(queue / "read_ahead_kb")
    known = (
        f"polling {'not known' if polls is None else 'on' if polls else 'off'}",
        f"read-ahead {'not known' if ahead_kib is None else f'{ahead_kib} KiB'}",
    )
    return Finding(
        subject="other queue settings", level=Level.NOTE, found=", ".join(known), why=why
    )


def _shell(drive: Drive, name: str) -> str:
    return f"/sys/block/{drive.disk.name}/queue/{name}"
