"""What is found out before the question whether data may be destroyed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tkperf.cli.options import SsdOptions
from tkperf.device.file_target import create_file_target, find_direct_io_block_bytes
from tkperf.device.identity import DeviceIdentity, TargetKind, read_identity
from tkperf.engine.fio_job import split_regions
from tkperf.engine.simulated import find_preset
from tkperf.errors import DeviceError, TkperfError, UsageError
from tkperf.procedures import SSD_TESTS, Test
from tkperf.profiles import (
    Profile,
    apply_options,
    fit_to_sector,
    load_profile,
    resolve_active_range,
)
from tkperf.units import KIB, parse_size_bytes
from tkperf.workload import ActiveRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """Everything known before the question whether data may be destroyed."""

    identity: DeviceIdentity
    created: bool
    profile: Profile
    tests: tuple[Test, ...]
    active_range: ActiveRange
    warnings: tuple[str, ...]


def prepare(options: SsdOptions) -> Preparation:
    """Profile, device and active range, fitted to each other; creates a scratch file with --size.

    Raises:
        UsageError, DeviceError: something does not fit; a scratch file made here is removed.
    """
    profile = apply_options(
        load_profile(options.profile),
        jobs=options.jobs,
        io_depth=options.io_depth,
        step_s=options.step_s,
    )
    wanted = options.tests or tuple(SSD_TESTS)
    tests = tuple(test for name, test in SSD_TESTS.items() if name in wanted)
    identity, created = _identify(options)
    try:
        profile, warnings = fit_to_sector(profile, identity.logical_block_bytes)
        active_range = resolve_active_range(
            options.active_range or profile.active_range.length,
            identity.capacity_bytes,
            identity.logical_block_bytes,
        )
        _require_room(profile, active_range, identity)
    except TkperfError:
        if created:
            Path(identity.path).unlink()
        raise
    return Preparation(
        identity=identity,
        created=created,
        profile=profile,
        tests=tests,
        active_range=active_range,
        warnings=tuple(text for test, text in warnings.items() if test in wanted),
    )


def _identify(options: SsdOptions) -> tuple[DeviceIdentity, bool]:
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
    created = False
    if options.size is not None:
        if not path.exists() and path.resolve().is_relative_to("/dev"):
            raise DeviceError(f"{path} does not exist, and /dev is no place for a scratch file")
        create_file_target(path, parse_size_bytes(options.size))
        created = True
    try:
        identity = read_identity(path)
        if identity.kind is TargetKind.FILE:
            block_bytes = find_direct_io_block_bytes(identity.path)
            identity = replace(identity, logical_block_bytes=block_bytes)
    except DeviceError as error:
        if created:
            path.unlink()
        elif not path.exists():
            advice = "to measure a scratch file of that name, give its --size"
            raise DeviceError(f"{error}; {advice}") from None
        raise
    return identity, created


def _require_room(profile: Profile, active_range: ActiveRange, identity: DeviceIdentity) -> None:
    """Refuse a range too small for the largest step, before anything is started."""
    largest_kib = max(
        profile.preconditioning.block_size_kib,
        *profile.iops.block_sizes_kib,
        *profile.throughput.block_sizes_kib,
        *profile.latency.block_sizes_kib,
    )
    try:
        split_regions(active_range, profile.demand.jobs, round(largest_kib * KIB))
    except UsageError as error:
        raise UsageError(f"{identity.path}: {error}") from None
