"""The settings of the host that should be changed for a measurement. This module changes no setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.sysfs import find_selected, text
from tkperf.host.audit.audited_host import AuditedDrive, AuditedHost
from tkperf.host.audit.drives import choose_scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting, which is a file in sysfs. ``path`` is the path of this file on the host.

    Attributes:
        subject: the name of the setting in the audit.
        now: the current value. None means that the value cannot be read.
        wanted: the value to set. None means that tkperf does not set the value, but restores the value if a change of
            another setting also changes this value.
        offered: whether the kernel accepts ``wanted``. None means that the answer is not known.
        drive: the drive to which the setting belongs. None means that the setting belongs to the CPUs.
        disk_sequence: the kernel's sequence number of the drive. No later drive with the same name has this number.
    """

    subject: str
    path: str
    now: str | None
    wanted: str | None
    why: str
    offered: bool | None = None
    drive: str | None = None
    disk_sequence: str | None = None

    @property
    def is_changed(self) -> bool:
        """Return whether tkperf would change the setting."""
        return (
            self.wanted is not None and self.now is not None and self.now != self.wanted and self.offered is not False
        )


def find_settings(audited: AuditedHost, drives: Sequence[AuditedDrive]) -> tuple[Setting, ...]:
    """Return all settings for a measurement in the order in which they are set, even if they already have the wanted
    value.

    If a file is measured, the settings of its drive are omitted, because the drive has other users.
    """
    queues = {drive.disk.name: drive for drive in drives if not drive.is_file}
    return (*_of_cpus(audited), *(setting for drive in queues.values() for setting in _of_queue(audited, drive)))


def read_setting(path: Path) -> str | None:
    """Return the value of a setting. For a choice such as ``mq-deadline [none]``, return the selected value."""
    words = text(path)
    return find_selected(words) if path.name == "scheduler" else words


def _of_cpus(audited: AuditedHost) -> Iterator[Setting]:
    """Yield the settings of the CPUs. The governor is first, because it determines which energy preferences the CPU
    accepts.
    """
    policies = sorted((audited.cpu_folder / "cpufreq").glob("policy*"))
    for name, subject, choices, why in (
        ("scaling_governor", "CPU governor", "scaling_available_governors", "the same clock at every load"),
        (
            "energy_performance_preference",
            "energy preference",
            "energy_performance_available_preferences",
            "the highest clock at once",
        ),
    ):
        for policy in policies:
            now, offered = text(policy / name), text(policy / choices)
            if now is None and not (policy / name).exists():
                continue
            yield Setting(
                subject=subject,
                path=_on_host(audited, policy / name),
                now=now,
                wanted="performance",
                why=why,
                offered=None if offered is None else "performance" in offered.split(),
            )


def _of_queue(audited: AuditedHost, drive: AuditedDrive) -> Iterator[Setting]:
    queue = audited.sys / "block" / drive.disk.name / "queue"
    sequence = text(drive.disk / "diskseq")
    choices = (text(queue / "scheduler") or "").replace("[", "").replace("]", "").split()
    scheduler = find_selected(text(queue / "scheduler"))
    wanted = None if scheduler is None else choose_scheduler(drive, scheduler)
    for name, subject, value, offered, why in (
        (
            "scheduler",
            "I/O scheduler",
            wanted,
            wanted in choices,
            ("the kernel passes I/Os to the drive in the order in which they were issued"),
        ),
        # A change of the scheduler resets the number of requests.
        ("nr_requests", "requests of the queue", None, None, "restored together with the scheduler"),
        (
            "rq_affinity",
            "completion affinity",
            "2",
            None,
            "each CPU completes the I/Os that it submitted, so that no CPU has to complete all I/Os",
        ),
        ("wbt_lat_usec", "writeback throttling", "0", None, "the kernel does not delay writes in favour of reads"),
    ):
        if not (queue / name).exists():
            continue
        yield Setting(
            subject=subject,
            path=_on_host(audited, queue / name),
            now=read_setting(queue / name),
            wanted=value,
            why=why,
            offered=offered,
            drive=drive.name,
            disk_sequence=sequence,
        )


def _on_host(audited: AuditedHost, path: Path) -> str:
    """Return the path on the host that corresponds to a path below the root folder."""
    return f"/{path.relative_to(audited.root)}"
