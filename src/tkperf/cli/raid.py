"""tkperf raid: make a RAID set of whole drives, measure it as one, and leave or remove it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from tkperf.cli.consent import ask_for, ask_permits, tell_warnings
from tkperf.cli.console import complain, tell
from tkperf.cli.equipment import Equipment, find_ioengine, fio_engine
from tkperf.cli.options import (
    RunOptions,
    consent_options,
    load_options,
    profile_option,
    purge_options,
    result_options,
    suite_command,
    tests_option,
)
from tkperf.cli.output import plain
from tkperf.cli.preparation import Preparation, find_unseen, fit, prepare_profile
from tkperf.cli.session import require_free_name, run_and_keep, show_results
from tkperf.cli.tables import describe_device
from tkperf.device.counters import watching
from tkperf.device.identity import DeviceIdentity, TargetKind, read_identity
from tkperf.device.inspection import inspect_device
from tkperf.device.permit import (
    ErasePermit,
    SetPermit,
    grant_controller_permit,
    grant_set_permit,
    grant_virtual_drive_permit,
    refuse_objections,
)
from tkperf.device.purge import PurgeMethod, plan_purge, refuse_purge_under_way
from tkperf.device.raid.config import RaidConfig, load_raid_config
from tkperf.device.raid.mdadm import MdadmSet
from tkperf.device.raid.storcli import StorcliSet
from tkperf.device.raid.target import MdadmTarget, Member, StorcliTarget, create_of
from tkperf.device.write_cache import WriteCache, restoring
from tkperf.engine.fio_setup import find_fio_version
from tkperf.errors import DeviceError, RefusedError, TkperfError, UsageError
from tkperf.profiles import Profile

FLAGS = ("-ssdt", "--ssd-type")


@click.command(
    cls=suite_command("raid", FLAGS), short_help="Make a RAID set of whole drives and measure it."
)
@click.argument("name")
@click.argument("device")
@click.option(
    "-c",
    "--config",
    "raid_config",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="raid.json: devices, raidlevel, type (sw_mdadm or hw_lsi), stripsize ...",
)
@click.option("--remove-set", is_flag=True, help="Take the set down again after the run.")
@tests_option("raid", FLAGS)
@profile_option("pts-e-1.1")
@load_options
@purge_options
@consent_options
@result_options
def raid(**options: object) -> None:
    """Make a RAID set of whole drives and run the SSD tests on it. All its members are erased.

    DEVICE is the set's node: one to be made for sw_mdadm (/dev/md0), the one the virtual drive
    gets for hw_lsi (/dev/sdX). For each test the members are purged and preconditioned in
    parallel, the set is made anew and measured when its resync is done.

    \b
    raid.json:
      {"devices": ["/dev/sdb", "/dev/sdc", "/dev/sdd"], "raidlevel": 5, "type": "sw_mdadm"}
      {"devices": ["252:0", "252:1"], "raidlevel": 1, "type": "hw_lsi",
       "readpolicy": "nora", "writepolicy": "wt", "stripsize": "256"}

    \b
    Examples:
      tkperf raid R5 /dev/md0 -c raid.json -nj 4 -iod 32
      tkperf raid R1 /dev/md0 -c raid.json -ssdt iops --yes-destroy SERIAL1,SERIAL2 --remove-set
    """
    run_raid(
        RunOptions(suite="raid", **options, command_line=tuple(sys.argv))  # type: ignore[arg-type]
    )


def run_raid(options: RunOptions) -> None:
    """The whole of ``tkperf raid``."""
    require_free_name(options)
    assert options.raid_config is not None
    config = load_raid_config(options.raid_config)
    profile = prepare_profile(options)
    version = find_fio_version()
    opened = _open_mdadm if config.type == "sw_mdadm" else _open_storcli
    with opened(options, config, profile, version) as (preparation, equipment):
        run_and_keep(options, preparation, equipment)
    show_results(options)


@dataclass(frozen=True, slots=True)
class _Drive:
    """A member before consent."""

    identity: DeviceIdentity
    method: PurgeMethod | None


@contextmanager
def _open_mdadm(
    options: RunOptions, config: RaidConfig, profile: Profile, version: str
) -> Iterator[tuple[Preparation, Equipment]]:
    """Check the members, ask, make the set; put back what was changed in the end."""
    path = Path(options.device)
    if not path.is_absolute() or not path.name.startswith("md") or path.parent != Path("/dev"):
        raise UsageError(f"DEVICE {path}: the node of a software RAID set is /dev/md0 or the like")
    drives = tuple(_look_at(options, device) for device in config.devices)
    raid = MdadmSet(path, config)
    if raid.exists():
        raise RefusedError(
            f"{path} is a RAID set already and is not touched: choose another node, or stop it "
            f"first with 'mdadm --stop {path}' if nobody needs it"
        )
    described = [describe_device(drive.identity.facts()) for drive in drives]
    methods = [drive.method.title for drive in drives if drive.method]
    _show_plan(options, profile, raid.title, described, methods)
    unseen = find_unseen([drive.identity for drive in drives])
    tell_warnings(unseen)
    with ExitStack() as undo:
        permits = ask_permits(options, [drive.identity for drive in drives])
        for permit in permits:
            undo.callback(permit.release)
            permit.redeem()
        caches = [WriteCache(permit, profile.write_cache.setting) for permit in permits]
        undo.enter_context(restoring(*caches))
        disclosed = [cache.apply() for cache in caches]
        undo.callback(_clear_away, options, lambda: _remove(raid, permits))
        create_of(raid, permits)
        permit = grant_set_permit(str(path), permits)
        undo.callback(permit.release)
        members = [
            Member(permit=each, method=drive.method, cache=cache)
            for each, drive, cache in zip(permits, drives, caches, strict=True)
        ]
        preparation = _prepare(options, profile, permit, raid.title, permits)
        preparation = replace(preparation, warnings=(*unseen, *preparation.warnings))
        ioengine = find_ioengine(options, preparation, permit)
        engine = fio_engine(permit, preparation, ioengine.name, version, fill_permits=permits)
        yield (
            preparation,
            Equipment(
                engine=engine,
                target=MdadmTarget(raid, permit, members),
                ioengine=ioengine.name,
                instead_of=ioengine.instead_of,
                clock=time.monotonic,
                write_cache="members: " + ", ".join(sorted(set(disclosed))),
                counters=undo.enter_context(watching(permit.identity)),
                fill_counters=undo.enter_context(watching(*(each.identity for each in permits))),
            ),
        )


@contextmanager
def _open_storcli(
    options: RunOptions, config: RaidConfig, profile: Profile, version: str
) -> Iterator[tuple[Preparation, Equipment]]:
    """The same with a MegaRAID controller, which alone knows the members."""
    raid = StorcliSet(Path(options.device), config)
    raid.refuse_taken_node()
    raid.refuse_used_drives()
    drives = raid.drives()
    members = [f"{each.address}: {each.model}, {each.serial}, {each.size}" for each in drives]
    _show_plan(options, profile, raid.title, members, [])
    serials = raid.serials()
    expected = ",".join(serial or "" for serial in serials.values())
    confirmed = options.yes_destroy or ask_for(
        expected, "serial numbers", raid.title, "data that cannot be seen behind the controller"
    )
    drives_permit = grant_controller_permit(serials, confirmed_id=confirmed)
    with ExitStack() as undo:
        undo.callback(_clear_away, options, raid.remove)
        raid.create(drives_permit)
        permit = grant_virtual_drive_permit(str(raid.path), lambda: raid.virtual_drive().naa)
        undo.callback(permit.release)
        preparation = _prepare(options, profile, permit, raid.title, [])
        ioengine = find_ioengine(options, preparation, permit)
        yield (
            preparation,
            Equipment(
                engine=fio_engine(permit, preparation, ioengine.name, version),
                target=StorcliTarget(raid, permit, drives_permit, no_purge=options.no_purge),
                ioengine=ioengine.name,
                instead_of=ioengine.instead_of,
                clock=time.monotonic,
                write_cache=f"controller: {config.writepolicy or 'as found'}",
                counters=undo.enter_context(watching(permit.identity)),
            ),
        )


def _look_at(options: RunOptions, device: str) -> _Drive:
    """A member and how it will be purged.

    Raises:
        DeviceError, RefusedError: it is missing, in use, or no block device.
    """
    identity = read_identity(device)
    if identity.kind is not TargetKind.BLOCK:
        raise DeviceError(f"{device} is a file: members of a RAID set are block devices")
    refuse_purge_under_way(identity)
    refuse_objections(identity)
    if options.no_purge:
        return _Drive(identity, None)
    plan = plan_purge(identity, command=options.purge_command)
    return _Drive(identity, plan.choose(options.purge_method, device=identity.path))


def _prepare(
    options: RunOptions,
    profile: Profile,
    permit: SetPermit,
    title: str,
    members: list[ErasePermit],
) -> Preparation:
    """Fit the profile to the set that was just made, and describe it with its members."""
    preparation = fit(options, profile, permit.identity, is_ours=True)
    preparation.facts.add("tkperf", raid=title)
    preparation.facts.values["members"] = [
        inspect_device(member.identity).plain() for member in members
    ]
    return replace(preparation, write_cache="keep")


def _show_plan(
    options: RunOptions,
    profile: Profile,
    title: str,
    members: list[str],
    methods: list[str],
) -> None:
    if options.quiet or options.progress == "json":
        return
    lines = [f"[bold]set[/bold]      {plain(options.device)}: {plain(title)}"]
    lines += [f"[bold]member[/bold]   {plain(member)}" for member in members]
    lines.append(f"[bold]profile[/bold]  {plain(profile.title)}")
    purge = "none (--no-purge)" if options.no_purge else "by the controller"
    lines.append(f"[bold]purge[/bold]    {', '.join(sorted(set(methods))) or purge}")
    tell(*lines)


def _clear_away(options: RunOptions, remove: Callable[[], None]) -> None:
    """Take the set down if that was asked for, or if it came to nothing."""
    if not options.remove_set and options.run_path.exists():
        return
    try:
        remove()
    except TkperfError as error:
        if options.remove_set and options.run_path.exists():
            raise
        # The error that stopped the run before it began is worth more than one of clearing away.
        complain(f"tkperf: {options.device} could not be taken away again: {error}")


def _remove(raid: MdadmSet, permits: list[ErasePermit]) -> None:
    for permit in permits:
        permit.recheck()
    raid.remove([permit.handle for permit in permits])
