"""The simulated drives that exist by name. Their verdicts match the promise of their names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tkperf.engine.simulation.flash_drive import FlashDrive
from tkperf.engine.simulation.hard_disk import HardDisk
from tkperf.engine.simulation.models import DiskModel, DriveModel, FlashModel, Misbehaviour
from tkperf.engine.simulation.service import SimulatedDrive
from tkperf.model.errors import not_known

_SATA = FlashModel(capacity_bytes=240_057_409_536)

PRESET_MODELS: dict[str, DriveModel] = {
    # Enterprise: much to spare, no cache of one-bit cells, the map in memory.
    "sata-ssd": _SATA,
    "nvme-4kn": FlashModel(
        capacity_bytes=960_197_124_096,
        logical_block_bytes=4096,
        interface_bytes_per_s=3.4e9,
        full_duplex=True,
        interface_iops=800e3,
        queue_places=1024,
        read_command_us=12.0,
        write_command_us=11.0,
        dies=64,
        program_us=900.0,
    ),
    # Client: little to spare, a cache of one-bit cells, a map that does not fit into memory, no cooling.
    "client-tlc": FlashModel(
        capacity_bytes=1_000_204_886_016,
        spare_percent=9.0,
        interface_bytes_per_s=3.5e9,
        full_duplex=True,
        interface_iops=600e3,
        queue_places=1024,
        read_command_us=15.0,
        write_command_us=13.0,
        dies=32,
        map_cached_bytes=64e9,
        slc_bytes=12e9,
        slc_free_share=0.08,
        slc_program_us=260.0,
        program_us=900.0,
        idle_reserve_percent=2.0,
        throttle_at=0.7,
        throttle_share=0.6,
        cool_at=0.45,
        heat_c=58.0,
        housekeeping_every_s=60.0,
        housekeeping_s=2.0,
        housekeeping_share=0.3,
        noise=0.03,
    ),
    "client-qlc": FlashModel(
        capacity_bytes=1_000_204_886_016,
        spare_percent=9.0,
        interface_bytes_per_s=2.4e9,
        full_duplex=True,
        interface_iops=350e3,
        queue_places=1024,
        read_command_us=18.0,
        write_command_us=15.0,
        dies=16,
        read_us=110.0,
        program_us=2400.0,
        slc_program_us=260.0,
        suspend_us=300.0,
        map_cached_bytes=32e9,
        slc_bytes=10e9,
        slc_free_share=0.2,
        fold_first=True,
        idle_reserve_percent=2.0,
        housekeeping_every_s=45.0,
        housekeeping_s=2.0,
        housekeeping_share=0.4,
        noise=0.04,
    ),
    "hdd": DiskModel(capacity_bytes=4_000_787_030_016),
    # Never steady.
    "unsteady": replace(
        _SATA, capacity_bytes=120_034_123_776, misbehaviour=Misbehaviour(unrest=0.6)
    ),
    # Falls to a third of its rate all of a sudden, for six minutes in every three quarters of an hour.
    "cliffs": replace(
        _SATA,
        misbehaviour=Misbehaviour(cliff_every_s=2700.0, cliff_lasts_s=360.0, cliff_share=0.33),
    ),
    # Does nothing for 0.4 s every 13 minutes.
    "spikes-13min": replace(_SATA, misbehaviour=Misbehaviour(stall_every_s=780.0, stall_s=0.4)),
    # Slower with each capacity written, and dead after six.
    "dying": replace(_SATA, misbehaviour=Misbehaviour(weaker_per_fill=0.3, fails_after_fills=6.0)),
}


def find_preset(name: str) -> DriveModel:
    """Return the model of ``sim:NAME``.

    Raises:
        UsageError: the preset does not exist.
    """
    if name not in PRESET_MODELS:
        raise not_known("simulated drive", name, sorted(PRESET_MODELS))
    return PRESET_MODELS[name]


def build_drive(
    model: DriveModel, active_range_bytes: int, random: np.random.Generator
) -> SimulatedDrive:
    """Return a new drive of this model."""
    match model:
        case FlashModel():
            return FlashDrive(model, active_range_bytes, random)
        case DiskModel():
            return HardDisk(model, active_range_bytes, random)
