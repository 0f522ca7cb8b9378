"""What is found out before the question whether data may be destroyed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tkperf.cli.options import RunOptions
from tkperf.device.blind_spots import find_blind_spots
from tkperf.device.file_target import (
    create_file_target,
    find_direct_io_block_bytes,
    remove_file_target,
)
from tkperf.device.identity import DeviceIdentity, TargetKind, read_identity
from tkperf.device.inspection import DeviceFacts, inspect_device
from tkperf.device.permit import refuse_objections
from tkperf.device.purge import PurgeMethod, plan_purge, refuse_purge_under_way
from tkperf.device.purge.ata import clear_left_password
from tkperf.engine.fio_job import split_regions
from tkperf.engine.simulated import find_preset
from tkperf.errors import DeviceError, TkperfError, UsageError
from tkperf.procedures import choose_tests, fit_to_sector, load_profile
from tkperf.procedures.descriptor import Test
from tkperf.procedures.walk import find_workloads
from tkperf.profiles import Profile, apply_options, resolve_active_range
from tkperf.record import RunWarning
from tkperf.units import parse_size_bytes
from tkperf.workload import ActiveRange

# Code of the warnings that are said before consent even where nothing else is.
USERS_NOT_VISIBLE = "users-not-visible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """Everything known before the question whether data may be destroyed.

    ``purge`` is None where nothing is purged: by the user's wish, or because no test asks for it.
    """

    identity: DeviceIdentity
    facts: DeviceFacts
    created: bool
    profile: Profile
    tests: tuple[Test, ...]
    active_range: ActiveRange
    purge: PurgeMethod | None
    write_cache: str
    warnings: tuple[RunWarning, ...]


def prepare(options: RunOptions) -> Preparation:
    """Profile, device, purge and active range, fitted to each other.

    Creates a scratch file with --size, and removes it again if something does not fit.

    Raises:
        UsageError, DeviceError: something does not fit.
        RefusedError: the device is in use.
    """
    profile = prepare_profile(options)
    identity, created = _identify(options)
    try:
        return fit(options, profile, identity, created=created)
    except TkperfError:
        if created:
            remove_file_target(Path(identity.path), identity.inode)
        raise


def prepare_profile(options: RunOptions) -> Profile:
    """The profile with the user's options in place.

    Raises:
        UsageError: there is none, or it does not define a test to run.
    """
    profile = apply_options(
        load_profile(options.profile),
        jobs=options.jobs,
        io_depth=options.io_depth,
        step_s=options.step_s,
        write_cache=options.write_cache,
    )
    choose_tests(profile, options.suite, options.tests)
    return profile


def fit(
    options: RunOptions,
    profile: Profile,
    identity: DeviceIdentity,
    *,
    created: bool = False,
    is_ours: bool = False,
) -> Preparation:
    """Fit profile, purge and active range to a device, and look whether it may be erased at all.

    Args:
        created: a scratch file made just now.
        is_ours: tkperf made the device, a RAID set, and holds the permit for it.

    Raises:
        UsageError, DeviceError, RefusedError: as ``prepare``.
    """
    tests = choose_tests(profile, options.suite, options.tests)
    if identity.kind is TargetKind.BLOCK and not is_ours:
        # What uses it comes first; a drive left locked by a purge that was cut off cannot be read.
        refuse_objections(identity, use_only=True)
        refuse_purge_under_way(identity)
        clear_left_password(identity)
    if identity.kind is not TargetKind.SIMULATED and not is_ours:
        refuse_objections(identity)
    profile, warnings = fit_to_sector(profile, identity.logical_block_bytes, tests)
    active_range = resolve_active_range(
        options.active_range or profile.active_range.length,
        identity.capacity_bytes,
        identity.logical_block_bytes,
    )
    _require_room(tests, profile, active_range, identity)
    facts = inspect_device(identity)
    # Nobody can have used what tkperf made itself.
    said = () if is_ours or created else find_unseen([identity])
    texts = [*warnings.values()]
    if facts.values["link_downgraded"]:
        texts.append(
            f"the device's link runs at {facts.values['link']}, it could do "
            f"{facts.values['link_fastest']}: its speed may be limited by that"
        )
    return Preparation(
        identity=identity,
        facts=facts,
        created=created,
        profile=profile,
        tests=tests,
        active_range=active_range,
        purge=_choose_purge(options, identity),
        write_cache=profile.write_cache.setting,
        warnings=(*said, *(RunWarning(code="preparation", text=text) for text in texts)),
    )


def find_unseen(identities: Sequence[DeviceIdentity]) -> tuple[RunWarning, ...]:
    """Where users of devices may be that nobody can see from here, each place once."""
    spots = {spot.text: None for identity in identities for spot in find_blind_spots(identity)}
    return tuple(RunWarning(code=USERS_NOT_VISIBLE, text=text) for text in spots)


def _choose_purge(options: RunOptions, identity: DeviceIdentity) -> PurgeMethod | None:
    if options.no_purge or options.suite != "ssd" or identity.kind is TargetKind.SIMULATED:
        return None
    plan = plan_purge(identity, command=options.purge_command)
    return plan.choose(options.purge_method, device=identity.path)


def _identify(options: RunOptions) -> tuple[DeviceIdentity, bool]:
    """The device, and whether it is a scratch file made just now."""
    if options.device.startswith("sim:"):
        model = find_preset(options.device.removeprefix("sim:"))
        identity = DeviceIdentity(
            path=options.device,
            kind=TargetKind.SIMULATED,
            capacity_bytes=model.capacity_bytes,
            logical_block_bytes=model.logical_block_bytes,
            model=f"simulated {options.device.removeprefix('sim:')}",
        )
        return identity, False
    path = Path(options.device)
    made: tuple[int, int] | None = None
    if options.size is not None:
        if not path.exists() and path.resolve().is_relative_to("/dev"):
            raise DeviceError(f"{path} does not exist, and /dev is no place for a scratch file")
        # The hard disk suite reads without having written before.
        made = create_file_target(
            path, parse_size_bytes(options.size), written=options.suite == "hdd"
        )
    try:
        identity = read_identity(path)
        if made is not None and identity.inode != made:
            raise DeviceError(f"{path} is not the scratch file any more that was made just now")
        if identity.kind is TargetKind.FILE:
            block_bytes = find_direct_io_block_bytes(identity.path)
            identity = replace(identity, logical_block_bytes=block_bytes)
    except DeviceError as error:
        if made is not None:
            remove_file_target(path, made)
        elif not path.exists():
            advice = "to measure a scratch file of that name, give its --size"
            raise DeviceError(f"{error}; {advice}") from None
        raise
    return identity, made is not None


def _require_room(
    tests: Sequence[Test], profile: Profile, active_range: ActiveRange, identity: DeviceIdentity
) -> None:
    """Refuse a range too small for a step of the tests to run, before anything is started."""
    try:
        for test in tests:
            for workload in find_workloads(test, profile, active_range.length_bytes):
                region = workload.region
                room = active_range if region is None else region.within(active_range)
                split_regions(room, workload.jobs, workload.block_size_bytes)
    except (UsageError, ValueError) as error:
        raise UsageError(f"{identity.path}: {error}") from None
