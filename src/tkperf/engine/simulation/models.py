"""What simulated drives are made of: every number, with its unit. docs/simulated-drive.md explains them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehaviour:
    """What a drive does that none should; all of it is off by default.

    Attributes:
        unrest: of its rate up to so much is missing, another share under every new load, and another
            one every second, every 8 s and every minute under the same load.
        cliff_every_s, cliff_lasts_s: so often its rate falls to ``cliff_share`` at once, for so long.
        stall_every_s, stall_s: so often it answers nothing for so long, less than a second.
        weaker_per_fill: share of its rate that it loses with each capacity's worth of writes.
        fails_after_fills: after so many of them every I/O is an error.
    """

    unrest: float = 0.0
    cliff_every_s: float | None = None
    cliff_lasts_s: float = 0.0
    cliff_share: float = 1.0
    stall_every_s: float | None = None
    stall_s: float = 0.0
    weaker_per_fill: float = 0.0
    fails_after_fills: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashModel:
    """A solid state drive.

    Attributes:
        capacity_bytes: what users see; the flash is larger by ``spare_percent`` of it.
        interface_bytes_per_s: reads and writes together, or each of them with ``full_duplex``.
        interface_iops: commands that controller and interface process in a second.
        queue_places: I/Os that the drive takes at once; the others wait in the host.
        read_command_us: host, interface and controller, without the flash; per read.
        write_command_us: until a write is in the drive's buffer and acknowledged.
        dies: flash dies that work at the same time.
        read_us: one die reads a page of ``page_bytes``.
        program_us: one die programs ``program_bytes`` (all planes), its share of the erase included.
        suspend_us: a read of a die that programs waits for so long.
        map_unit_bytes: random writes that are smaller cost a read and a write of so much.
        map_cached_bytes: how much of the addresses the map in memory covers; None: all.
        slc_bytes: cells used with one bit each, always.
        slc_free_share: of the unused capacity so much more serves as such a cache.
        slc_program_us: as ``program_us``, with one bit a cell.
        fold_first: with a full cache, room is made before each write; else writes go past it.
        idle_reserve_percent: of the flash so much is made free while idle.
        throttle_at: load (share of the interface's rate, averaged over ``warm_up_s``) at which it
            is too hot; None: never. It then serves ``throttle_share`` of its rate until the load
            is down to ``cool_at``.
        idle_c, heat_c: its temperature after a long time without load, and by how much it rises with the
            interface's rate for a long time; in between by the averaged load.
        housekeeping_every_s, housekeeping_s: so often for so long it needs ``housekeeping_share``
            of its dies for itself.
        noise: relative spread of a second's rate.
        read_spread, write_spread: shape of the latencies, the larger the narrower.
    """

    capacity_bytes: int
    logical_block_bytes: int = 512
    spare_percent: float = 28.0
    interface_bytes_per_s: float = 530e6
    full_duplex: bool = False
    interface_iops: float = 95e3
    queue_places: int = 32
    read_command_us: float = 30.0
    write_command_us: float = 28.0
    dies: int = 16
    read_us: float = 60.0
    page_bytes: int = 16384
    program_us: float = 1000.0
    program_bytes: int = 32768
    suspend_us: float = 150.0
    map_unit_bytes: int = 4096
    map_cached_bytes: float | None = None
    slc_bytes: float = 0.0
    slc_free_share: float = 0.0
    slc_program_us: float = 200.0
    fold_first: bool = False
    idle_reserve_percent: float = 3.0
    throttle_at: float | None = None
    throttle_share: float = 1.0
    cool_at: float = 0.0
    warm_up_s: float = 300.0
    idle_c: float = 34.0
    heat_c: float = 20.0
    housekeeping_every_s: float | None = None
    housekeeping_s: float = 0.0
    housekeeping_share: float = 0.0
    noise: float = 0.015
    read_spread: float = 12.0
    write_spread: float = 8.0
    misbehaviour: Misbehaviour = field(default_factory=Misbehaviour)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskModel:
    """A hard disk, its write cache off.

    Attributes:
        outer_bytes_per_s, inner_bytes_per_s: at the first and at the last address.
        turns_per_minute: of the platters.
        shortest_seek_ms, longest_seek_ms: to the next track, across all of them.
        write_settle_ms: a head that is to write settles for so much longer.
        command_us: per I/O, beside the mechanics.
        queue_places: I/Os among which it picks the nearest.
        stream_bytes: of one of several sequential streams, read ahead or written between two seeks.
        noise, spread: as ``FlashModel.noise`` and ``read_spread``.
    """

    capacity_bytes: int
    logical_block_bytes: int = 512
    outer_bytes_per_s: float = 250e6
    inner_bytes_per_s: float = 120e6
    turns_per_minute: float = 7200.0
    shortest_seek_ms: float = 0.6
    longest_seek_ms: float = 16.0
    write_settle_ms: float = 0.5
    command_us: float = 60.0
    queue_places: int = 32
    stream_bytes: float = 2e6
    noise: float = 0.01
    spread: float = 5.0
    misbehaviour: Misbehaviour = field(default_factory=Misbehaviour)


DriveModel = FlashModel | DiskModel
