"""Work on drives that already runs: md resyncs, scrubs of ZFS and btrfs, and the like."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from tkperf.device.sysfs import text
from tkperf.host.audit.finding import Finding, Level, not_known
from tkperf.host.audit.site import TOOL_LIMIT_S, Site
from tkperf.model.errors import EngineError

_WHY = "it reads or writes drives for hours, and takes CPUs, links and controllers"
_MD_WORK = ("check", "repair", "resync", "recover", "reshape")
# Programs that work on whole drives or file systems, with their names in the kernel.
_PROGRAMS = ("fstrim", "e2scrub", "e2scrub_all", "xfs_scrub", "checkarray", "updatedb.mlocat",
             "updatedb.plocat", "updatedb", "badblocks", "fio", "dd")  # fmt: skip


def audit_scrubs(site: Site, neighbours: Collection[str]) -> Iterator[Finding]:
    """Yield findings on work that runs. ``neighbours`` are drives on the tested one's controller or link."""
    yield from _audit_md(site, neighbours)
    yield from _audit_zfs(site)
    yield _audit_programs(site)


def _audit_md(site: Site, neighbours: Collection[str]) -> Iterator[Finding]:
    for folder in sorted((site.sys / "block").glob("md*/md")):
        action = text(folder / "sync_action")
        if action not in _MD_WORK:
            continue
        name = folder.parent.name
        members = {_disk_name(member) for member in (folder.parent / "slaves").glob("*")}
        done = text(folder / "sync_completed") or "how far is not known"
        stops = action in ("check", "repair")
        yield Finding(
            subject=f"{action} of {name}",
            level=Level.DISTURBS if members & set(neighbours) else Level.ADVICE,
            found=f"runs on {', '.join(sorted(members)) or 'drives not known'} "
            f"({done} sectors done)",
            why=_WHY,
            command=f"echo idle | sudo tee /sys/block/{name}/md/sync_action" if stops else None,
            otherwise=None if stops else "wait until it has ended: cat /proc/mdstat",
            is_setting=False,
        )


def _disk_name(member: Path) -> str:
    node = member.resolve()
    return node.parent.name if (node / "partition").exists() else node.name


def _audit_zfs(site: Site) -> Iterator[Finding]:
    if not (site.proc / "spl/kstat/zfs").is_dir():
        return
    try:
        done = site.run(["zpool", "status"], timeout_s=TOOL_LIMIT_S)
    except EngineError as error:
        yield not_known("scrub of ZFS", str(error), _WHY)
        return
    pool = "a pool"
    for row in done.stdout.splitlines():
        label, _, value = row.strip().partition(":")
        if label == "pool":
            pool = value.strip()
        if label == "scan" and "in progress" in value:
            yield Finding(
                subject=f"scrub of {pool}",
                level=Level.ADVICE,
                found=value.strip(),
                why=_WHY,
                command=f"sudo zpool scrub -p {pool}" if "scrub" in value else None,
                otherwise="wait until it has ended: zpool status",
                is_setting=False,
            )


def _audit_programs(site: Site) -> Finding:
    subject = "work on drives under way"
    if site.processes is None:
        return not_known(subject, "/proc shows no processes", _WHY)
    running = sorted(set(_PROGRAMS) & site.processes)
    if "btrfs" in site.processes:
        running.append("btrfs (a scrub or balance)")
    return Finding(
        subject=subject,
        level=Level.ADVICE if running else Level.OK,
        found=f"{', '.join(running)} run{'s' * (len(running) == 1)}" if running else "none is seen",
        why=_WHY,
        otherwise="wait until it has ended" if running else None,
        is_setting=False,
    )
