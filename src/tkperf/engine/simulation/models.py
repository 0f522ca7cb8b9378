"""The models of simulated drives with all numbers and units, and the presets. docs/explanation/simulated-drive.md
explains the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tkperf.model.errors import not_known


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehaviour:
    """The faults of a drive. All of them are off by default.

    Attributes:
        unrest: the greatest share of the rate that each of three random losses subtracts. All three losses change with
            every new load. Under one load, the first loss changes every second, the second every 8 s, and the third
            every minute.
        cliff_every_s, cliff_lasts_s: the interval at which the rate suddenly falls to ``cliff_share``, and the time for
            which the rate stays low.
        stall_every_s, stall_s: the interval of stalls without any answer, and the length of a stall, which is less than
            a second.
        weaker_per_fill: the share of the rate that is lost each time that the whole capacity has been written.
        fails_after_fills: how many times the capacity can be written before every I/O fails.
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
        capacity_bytes: the capacity for users. The flash is larger by ``spare_percent`` of this capacity.
        interface_bytes_per_s: limit of reads and writes together. With ``full_duplex``, the limit applies to reads and
            to writes separately.
        interface_iops: number of commands that the controller and the interface can process in a second.
        queue_places: number of I/Os that the drive accepts at the same time. Other I/Os wait in the host.
        read_command_us: time that the host, the interface and the controller need for each read, without the flash.
        write_command_us: time until a write is in the drive's buffer and acknowledged.
        dies: number of flash dies that work at the same time.
        read_us: time in which one die reads a page of ``page_bytes``.
        program_us: time in which one die programs ``program_bytes`` (all planes), including a share of the erase time.
        suspend_us: time that a read waits for a die that programs.
        flush_us: time of a flush. The time is short if capacitors protect the buffer.
        map_unit_bytes: unit of the address map. A smaller random write causes a read and a write of a whole unit.
        map_cached_bytes: amount of data whose addresses are in the part of the map that the drive keeps in memory. None
            means all data.
        slc_bytes: fixed size of the cache of cells with one bit each.
        slc_free_share: share of the unused capacity that also serves as cache of one-bit cells.
        slc_program_us: the same as ``program_us``, but for cells with one bit each.
        fold_first: if True and the cache is full, the drive frees cache before each write. If False, writes bypass the
            full cache.
        idle_reserve_percent: share of the capacity that the drive frees while it is idle.
        throttle_at: load (share of the interface's rate, averaged over ``warm_up_s``) at which the drive is too hot.
            When this load is reached, the drive serves ``throttle_share`` of its rate until the load has fallen to
            ``cool_at``. None means that the drive is never too hot.
        idle_c, heat_c: the temperature after a long time without load, and the rise of the temperature after a long
            time at the interface's rate. Between these values, the temperature follows the averaged load.
        housekeeping_every_s, housekeeping_s: interval and duration of internal work, which occupies
            ``housekeeping_share`` of the dies.
        noise: relative spread of the rate from second to second.
        read_spread, write_spread: shape of the latency distribution. A larger value means a narrower distribution.
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
    flush_us: float = 25.0
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
    """A hard disk with the write cache off.

    Attributes:
        outer_bytes_per_s, inner_bytes_per_s: rate at the first and at the last address.
        turns_per_minute: speed of the platters.
        shortest_seek_ms, longest_seek_ms: time of a seek to the next track, and of a seek across all tracks.
        write_settle_ms: additional time for which a head must settle before a write.
        command_us: time per I/O in addition to the mechanical times.
        queue_places: number of I/Os among which the drive chooses the nearest.
        stream_bytes: amount that is read ahead or written between two seeks, for each of several sequential streams.
        noise, spread: the same as ``FlashModel.noise`` and ``read_spread``.
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


_SATA = FlashModel(capacity_bytes=240_057_409_536)

PRESET_MODELS: dict[str, DriveModel] = {
    # An enterprise drive has much spare capacity, no cache of one-bit cells, and its whole map in memory.
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
    # A client drive has little spare capacity, a cache of one-bit cells, a map larger than its memory, and no cooling.
    "client-tlc": FlashModel(
        capacity_bytes=1_000_204_886_016,
        spare_percent=9.0,
        flush_us=1500.0,
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
        flush_us=2500.0,
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
    # This drive never reaches steady state.
    "unsteady": replace(_SATA, capacity_bytes=120_034_123_776, misbehaviour=Misbehaviour(unrest=0.6)),
    # The rate of this drive suddenly falls to a third for six minutes in every 45 minutes.
    "cliffs": replace(_SATA, misbehaviour=Misbehaviour(cliff_every_s=2700.0, cliff_lasts_s=360.0, cliff_share=0.33)),
    # This drive completes no I/O for 0.4 s every 13 minutes.
    "spikes-13min": replace(_SATA, misbehaviour=Misbehaviour(stall_every_s=780.0, stall_s=0.4)),
    # This drive becomes slower each time that its capacity is written, and fails after its capacity was written six
    # times.
    "dying": replace(_SATA, misbehaviour=Misbehaviour(weaker_per_fill=0.3, fails_after_fills=6.0)),
}


def find_preset(name: str) -> DriveModel:
    """Return the model of the simulated drive ``sim:NAME``.

    Raises:
        UsageError: the preset does not exist.
    """
    if name not in PRESET_MODELS:
        raise not_known("simulated drive", name, sorted(PRESET_MODELS))
    return PRESET_MODELS[name]
