"""A simulation of a solid state drive second by second: its flash, its caches and its temperature."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np

from tkperf.engine.simulation.models import FlashModel
from tkperf.engine.simulation.service import Floats, Latency, Moods, Response, Second, balance, mean_units
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.workload import Access, ActiveRange, Workload, Zone

SUPERBLOCKS = 256
# The number of slices of the active range. The zones of the PTS's composite workload (5, 15, 80 %) consist of whole
# slices.
SLICES = 40
# The greatest share of the flash that is written in one step of the simulation. Only drives that are written completely
# within seconds, as in tests, reach this limit. Such drives also reach a steady state, but need more seconds.
_MOST_AT_ONCE = 0.25
_NOTHING = 1e-6
# If more than this share of a superblock is valid data, an idle drive does not copy the superblock.
_WORTH_COLLECTING = 0.98
# The greatest number of computed results of each kind that are stored. Most runs use a few loads for a long time.
# Streams that run together need the latency at another rate each second.
_MOST_REMEMBERED = 256


@dataclass(frozen=True, slots=True, eq=False)
class WriteSpread:
    """The spread of random writes over the slices.

    Each slice receives the share ``share`` of the writes. These writes go to ``span_bytes`` of addresses, which are the
    share ``of_slice`` of the slice's addresses.
    """

    share: Floats
    span_bytes: Floats
    of_slice: Floats


class FlashTranslation:
    """The flash translation layer, which stores where the flash contains valid data. Amounts are in bytes. Addresses
    count from the start of the active range.
    """

    def __init__(self, user_bytes: float, spare_share: float, active_bytes: float) -> None:
        self.superblock_bytes = user_bytes * (1 + spare_share) / SUPERBLOCKS
        self._slice_bytes = active_bytes / SLICES
        # The axes are the slice and the superblock. During a sequential pass, the additional last slice contains those
        # writes of the pass that belong to the slice at its current position.
        self._valid: Floats = np.zeros((SLICES + 1, SUPERBLOCKS))
        self.host_bytes = 0.0
        self.copied_bytes = 0.0
        self.forget_all()

    def forget_all(self) -> None:
        """Erase every superblock, as in a new drive."""
        self._valid[:] = 0.0
        self._free = list(range(1, SUPERBLOCKS))
        self._open, self._room = 0, self.superblock_bytes
        self._copies: int | None = None
        self._copies_room = 0.0
        self._pass_slice, self._passed = 0, 0.0
        # Random writes that ``_valid`` does not contain yet. It is faster to apply all of them together with one
        # exponential function.
        self._scattered: tuple[float, WriteSpread | None] = 0.0, None
        self.amplification = 1.0

    @property
    def mapped_bytes(self) -> float:
        self._scatter()
        return float(self._valid.sum())

    @property
    def free_bytes(self) -> float:
        """Return the number of bytes that are erased and ready to be written."""
        return len(self._free) * self.superblock_bytes + self._room

    def write_random(self, amount: float, spread: WriteSpread) -> None:
        self._end_pass()
        amount = min(amount, _MOST_AT_ONCE * SUPERBLOCKS * self.superblock_bytes)
        while amount > _NOTHING:
            chunk_bytes = min(amount, self._make_room())
            if self._scattered[1] is not spread:
                self._scatter()
            self._scattered = self._scattered[0] + chunk_bytes, spread
            self._wrote(chunk_bytes)
            amount -= chunk_bytes

    def write_sequential(self, amount: float, position: float, region: ActiveRange) -> float:
        """Write sequentially, and return the position after the writes. After the end of the region, the writes
        continue at its start.
        """
        self._scatter()
        begin, end = float(region.offset_bytes), float(region.offset_bytes + region.length_bytes)
        amount = min(amount, 2 * SUPERBLOCKS * self.superblock_bytes)
        while amount > _NOTHING:
            if not begin <= position < end - _NOTHING:
                position = begin
            number = min(int(position / self._slice_bytes + 1e-9), SLICES - 1)
            slice_end = self._slice_bytes * (number + 1) if number < SLICES - 1 else end
            if number != self._pass_slice:
                self._end_pass()
                self._pass_slice = number
            left = self._slice_bytes - self._passed
            chunk_bytes = min(amount, self._make_room(), slice_end - position, end - position, left)
            self._valid[number] *= max(0.0, 1 - chunk_bytes / left)
            self._valid[SLICES, self._open] += chunk_bytes
            self._wrote(chunk_bytes)
            self._passed += chunk_bytes
            if self._slice_bytes - self._passed <= _NOTHING:
                self._end_pass()
            position, amount = position + chunk_bytes, amount - chunk_bytes
        return position

    def trim(self, amount: float, spread: WriteSpread) -> None:
        """Discard the valid data of trimmed addresses. The addresses are random, as they are for random writes."""
        self._end_pass()
        self._scatter()
        hit = -np.expm1(-amount * spread.share / spread.span_bytes)
        self._valid[:SLICES] *= (1 - hit * spread.of_slice)[:, np.newaxis]

    def collect(self, copy_bytes: float, free_bytes: float) -> float:
        """Collect garbage while the drive is idle. Stop after ``copy_bytes``, or when ``free_bytes`` are free.

        Returns:
            The number of bytes that were copied.
        """
        self._scatter()
        copied = 0.0
        while copied < copy_bytes and self.free_bytes < free_bytes:
            valid = self._collect_one(_WORTH_COLLECTING * self.superblock_bytes)
            if valid is None:
                break
            copied += valid
        return copied

    def _collect_one(self, most: float = np.inf) -> float | None:
        """Copy the valid data of the next victim to the open superblock for copies.

        Returns:
            The number of bytes that were copied. None means that every superblock
                contains more valid data than ``most``.
        """
        victim, valid = self._find_victim()
        if valid > most:
            return None
        moved = 0.0
        if self._copies is not None and valid > 0:
            moved = min(valid, self._copies_room)
            self._valid[:, self._copies] += self._valid[:, victim] * (moved / valid)
            self._valid[:, victim] *= 1 - moved / valid
            self._copies_room -= moved
        if valid - moved > _NOTHING:
            # The rest of the data begins a new superblock for copies. This spare superblock receives the index of the
            # victim.
            self._copies, self._copies_room = victim, self.superblock_bytes - valid + moved
        else:
            self._valid[:, victim] = 0.0
            self._free.append(victim)
        self.copied_bytes += valid
        self.amplification = self.superblock_bytes / (self.superblock_bytes - valid)
        return valid

    def _find_victim(self) -> tuple[int, float]:
        """Return the index of the superblock with the least valid data, and the number of valid bytes in it."""
        totals = self._valid.sum(axis=0)
        totals[self._free] = totals[self._open] = np.inf
        if self._copies is not None:
            totals[self._copies] = np.inf
        victim = int(totals.argmin())
        return victim, float(totals[victim])

    def _make_room(self) -> float:
        """Return the number of free bytes in the open superblock. If the open superblock is full, open another
        superblock first.
        """
        if self._room > _NOTHING:
            return self._room
        self._scatter()
        self.amplification = 1.0
        while not self._free:
            self._collect_one()
        self._open, self._room = self._free.pop(), self.superblock_bytes
        return self._room

    def _scatter(self) -> None:
        """Apply the random writes since the last call. All these writes go to the open superblock."""
        amount, spread = self._scattered
        self._scattered = 0.0, None
        if spread is None:
            return
        hit = -np.expm1(-amount * spread.share / spread.span_bytes)
        self._valid[:SLICES] *= (1 - hit * spread.of_slice)[:, np.newaxis]
        self._valid[:SLICES, self._open] += hit * spread.span_bytes

    def _wrote(self, amount: float) -> None:
        self._room -= amount
        self.host_bytes += amount

    def _end_pass(self) -> None:
        """Add the writes of a sequential pass to the normal data of the slice to which they belong."""
        if self._passed:
            self._valid[self._pass_slice] += self._valid[SLICES]
            self._valid[SLICES] = 0.0
            self._passed = 0.0


# A full buffer accepts writes in bursts. ``_BURST_SHARE`` of the writes wait ``_BURST_TIMES`` as long as the other
# writes. The additional time is limited.
_BURST_SHARE, _BURST_TIMES, _BURST_MOST_US = 0.02, 6.0, 20_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """The work that the I/O of a workload causes in the flash. The times in µs are the times of one die."""

    reads: float
    block_bytes: float
    read_die_us: float
    read_wait_us: float
    write_flash_bytes: float
    write_read_us: float
    spread: WriteSpread | None
    region: ActiveRange


@dataclass(frozen=True, slots=True)
class _State:
    """The part of the drive's state that determines the response to a workload."""

    amplification: float
    in_cache: bool
    folds: bool
    dies: float


class FlashDrive:
    """A solid state drive that is simulated according to a ``FlashModel``."""

    def __init__(self, model: FlashModel, active_range_bytes: int, random: np.random.Generator) -> None:
        self._model = model
        self._range = ActiveRange(offset_bytes=0, length_bytes=active_range_bytes)
        self._random = random
        self._moods = Moods(model.misbehaviour)
        self.translation = FlashTranslation(
            max(model.capacity_bytes, active_range_bytes), model.spare_percent / 100, active_range_bytes
        )
        self.read_spread, self.write_spread = model.read_spread, model.write_spread
        self.flush_s, self.suspend_s, self.reads_go_first = model.flush_us / 1e6, model.suspend_us / 1e6, True
        hottest = model.throttle_at
        self.warning_c = None if hottest is None else model.idle_c + model.heat_c * hottest
        self._at_s = 0.0
        # Data of the host that is still in one-bit cells and must be folded into normal cells.
        self.cached_bytes = 0.0
        self._warmth = 0.0
        self._throttled = False
        self._throttled_count = 0
        self._host_read = self._host_written = self._programmed = 0.0
        self._positions: dict[ActiveRange, float] = {}
        self._demands: dict[Workload, _Demand] = {}
        self._answers: dict[tuple[Workload, _State], Response] = {}
        self._tlc_us = model.program_us / model.program_bytes
        self._slc_us = model.slc_program_us / model.program_bytes
        self._read_us = model.read_us / model.page_bytes

    def purge(self) -> None:
        self.translation.forget_all()
        self.cached_bytes = 0.0

    def trim(self, workload: Workload, amount_bytes: float) -> None:
        spread = build_spread(workload.zones, workload.region or self._range, self._range)
        self.translation.trim(amount_bytes, spread)

    def serve(self, workload: Workload, duration_s: float) -> Second:
        fills = self.translation.host_bytes / self._model.capacity_bytes
        self._moods.require_alive(fills)
        demand = self._demands.get(workload) or self._build_demand(workload)
        state = self._state()
        answer = self._answer(workload, demand, state)
        share = self._moods.share(workload, self._at_s, fills)
        share *= min(1.5, max(0.5, self._random.normal(1, self._model.noise)))
        if self._throttled:
            share *= self._model.throttle_share
        interface = self._interface_most(demand)
        most = min(self._flash_most(demand, state), interface)
        keeps_up = answer.rate == workload.offered_iops and answer.rate < most * share
        limit = interface / answer.rate
        if keeps_up:
            share = 1.0
        elif share > limit:
            share = 2 * limit - share  # the interface limits the rate, so the excess is subtracted from the limit
        stall_s = self._moods.stall_s(self._at_s, duration_s)
        rate = answer.rate * share * (1 - stall_s / duration_s)
        self._advance(workload, demand, state, rate, duration_s)
        busy = self._programming(demand, state, answer.rate)
        read_us, write_us = answer.read_us / share, answer.write_us / share
        burst_times = 1 + min(_BURST_TIMES - 1, _BURST_MOST_US / write_us)
        return Second(
            rate=rate,
            read=Latency(read_us * 1e3, busy, 1 + self._model.suspend_us / read_us),
            write=Latency(write_us * 1e3, _BURST_SHARE, burst_times),
            stalled_ios=workload.total_outstanding_ios if stall_s else 0,
            stall_s=stall_s,
        )

    def read_log(self, at_s: float) -> Reading:
        """Return the log of the drive. Garbage collection and folding also count as bytes written to the flash."""
        return Reading(
            at_s=at_s,
            drive="simulated drive",
            source="simulated",
            temperature_c=round(self._model.idle_c + self._model.heat_c * self._warmth, 1),
            host_read_bytes=round(self._host_read),
            host_written_bytes=round(self._host_written),
            nand_written_bytes=round(self._programmed + self.translation.copied_bytes),
            thermal_1_count=self._throttled_count,
            throttling=self._throttled,
        )

    def idle(self, duration_s: float) -> None:
        """Fold the cache, then collect garbage until the reserve is free. The drive cools down during this time."""
        self._at_s += duration_s
        self._warm(0.0, duration_s)
        left_us = duration_s * 1e6 * self._model.dies
        folded = min(self.cached_bytes, left_us / self._fold_us(self.translation.amplification))
        left_us -= folded * self._fold_us(self.translation.amplification)
        self.cached_bytes -= folded
        self._programmed += folded
        reserve = self._model.idle_reserve_percent / 100 * self._model.capacity_bytes
        self.translation.collect(left_us / (self._read_us + self._tlc_us), reserve)

    def _state(self) -> _State:
        model = self._model
        cache_bytes = model.slc_bytes
        if model.slc_free_share:
            unused = model.capacity_bytes - self.translation.mapped_bytes
            cache_bytes += model.slc_free_share * max(0.0, unused)
        dies = float(model.dies)
        if (every_s := model.housekeeping_every_s) and self._at_s % every_s < model.housekeeping_s:
            dies *= 1 - model.housekeeping_share
        return _State(
            round(self.translation.amplification, 2),
            self.cached_bytes < cache_bytes,
            cache_bytes > 0 and model.fold_first,
            dies,
        )

    def _write_die_us(self, demand: _Demand, state: _State) -> float:
        """Return the time in us for which one write occupies a die."""
        if state.in_cache:
            per_byte = self._slc_us
        elif state.folds:
            per_byte = self._slc_us + self._fold_us(state.amplification)
        else:
            per_byte = self._collected_us(state.amplification)
        return demand.write_flash_bytes * per_byte + demand.write_read_us

    def _collected_us(self, amplification: float) -> float:
        """Return the die time in µs for one byte from the host, including the copies that this byte causes."""
        return amplification * self._tlc_us + (amplification - 1) * self._read_us

    def _fold_us(self, amplification: float) -> float:
        return self._read_us + self._collected_us(amplification)

    def _flash_most(self, demand: _Demand, state: _State) -> float:
        """Return the I/Os per second at which all dies are always busy."""
        die_us = demand.reads * demand.read_die_us
        die_us += (1 - demand.reads) * self._write_die_us(demand, state)
        return state.dies * 1e6 / die_us

    def _interface_most(self, demand: _Demand) -> float:
        moved = demand.block_bytes
        if self._model.full_duplex:
            moved *= max(demand.reads, 1 - demand.reads)
        return min(self._model.interface_bytes_per_s / moved, self._model.interface_iops)

    def _programming(self, demand: _Demand, state: _State, rate: float) -> float:
        """Return the share of the dies that program at a given rate of I/Os."""
        busy_us = rate * (1 - demand.reads) * self._write_die_us(demand, state)
        return min(0.9, busy_us / (state.dies * 1e6))

    def _answer(self, workload: Workload, demand: _Demand, state: _State) -> Response:
        remembered = self._answers.get((workload, state))
        if remembered is not None:
            return remembered
        model = self._model
        # Schweitzer's approximation: an arriving I/O finds the queue as it would be without this I/O.
        outstanding = min(workload.total_outstanding_ios, model.queue_places)
        others = (outstanding - 1) / outstanding
        moving_us = demand.block_bytes * 1e6 / model.interface_bytes_per_s

        def response_us(rate: float) -> tuple[float, float]:
            reading = min(0.999, rate * demand.reads * demand.read_die_us / (state.dies * 1e6))
            read_us = demand.read_wait_us / (1 - others * reading)
            read_us += self._programming(demand, state, rate) * model.suspend_us
            return (model.read_command_us + moving_us + read_us, model.write_command_us + moving_us)

        flash, interface = self._flash_most(demand, state), self._interface_most(demand)
        answer = balance(
            workload, min(flash, interface), response_us, places=model.queue_places, writes_wait=flash <= interface
        )
        if len(self._answers) >= _MOST_REMEMBERED:
            self._answers.clear()
        self._answers[workload, state] = answer
        return answer

    def _advance(self, workload: Workload, demand: _Demand, state: _State, rate: float, duration_s: float) -> None:
        """Update counters, flash, cache and heat to the state after ``duration_s`` at a given rate of I/Os."""
        self._at_s += duration_s
        written = rate * (1 - demand.reads) * demand.block_bytes * duration_s
        self._host_written += written
        self._host_read += rate * demand.reads * demand.block_bytes * duration_s
        self._programmed += rate * (1 - demand.reads) * demand.write_flash_bytes * duration_s
        if state.folds and not state.in_cache:
            self._programmed += written
        if written:
            if demand.spread is not None:
                self.translation.write_random(written, demand.spread)
            else:
                position = self._positions.get(demand.region, float(demand.region.offset_bytes))
                position = self.translation.write_sequential(written, position, demand.region)
                self._positions[demand.region] = position
        if state.in_cache or self.cached_bytes:
            spare = max(0.0, 1 - rate / self._flash_most(demand, state))
            folded = spare * duration_s * 1e6 * state.dies / self._fold_us(state.amplification)
            cached = self.cached_bytes + (written if state.in_cache else 0.0)
            self.cached_bytes = max(0.0, cached - folded)
            self._programmed += cached - self.cached_bytes
        self._warm(rate * demand.block_bytes / self._model.interface_bytes_per_s, duration_s)

    def _warm(self, load: float, duration_s: float) -> None:
        limit = self._model.throttle_at
        self._warmth += (load - self._warmth) * (1 - exp(-duration_s / self._model.warm_up_s))
        if limit is None:
            return
        if self._warmth >= limit:
            self._throttled_count += not self._throttled
            self._throttled = True
        elif self._warmth <= self._model.cool_at:
            self._throttled = False

    def _build_demand(self, workload: Workload) -> _Demand:
        model, block_bytes = self._model, workload.mean_block_bytes
        random = workload.access is Access.RANDOM
        region = workload.region or self._range
        pages = mean_units(workload, model.page_bytes)
        missed = self._map_misses(workload, region) if random else 0.0
        # A drive reads ahead. If the dies are fast enough, sequential data is therefore already in the buffer when the
        # host requests this data.
        wait_pages = max(1.0, pages / model.dies) if random else pages / model.dies
        flash_bytes = mean_units(workload, model.map_unit_bytes) * model.map_unit_bytes
        small = flash_bytes > block_bytes * 1.001
        demand = _Demand(
            reads=workload.read_percent / 100,
            block_bytes=block_bytes,
            read_die_us=model.read_us * (pages + missed),
            read_wait_us=model.read_us * (wait_pages + missed),
            write_flash_bytes=flash_bytes,
            write_read_us=model.read_us if small else 0.0,
            spread=build_spread(workload.zones, region, self._range) if random else None,
            region=region,
        )
        if len(self._demands) >= _MOST_REMEMBERED:
            self._demands.clear()
        self._demands[workload] = demand
        return demand

    def _map_misses(self, workload: Workload, region: ActiveRange) -> float:
        """Return the share of random accesses that must first read a part of the address map. The part of the map for
        hot zones stays in memory.
        """
        left = self._model.map_cached_bytes
        if left is None:
            return 0.0
        missed = 0.0
        zones = workload.zones or (Zone(100, 100),)
        for zone in sorted(zones, key=lambda zone: -zone.access_percent / zone.range_percent):
            zone_bytes = zone.range_percent / 100 * region.length_bytes
            missed += zone.access_percent / 100 * (1 - min(1.0, left / zone_bytes))
            left = max(0.0, left - zone_bytes)
        return missed


def build_spread(zones: tuple[Zone, ...], region: ActiveRange, whole: ActiveRange) -> WriteSpread:
    """Return how random accesses to a region are spread over the slices of the whole active range."""
    edges = np.linspace(0.0, whole.length_bytes, SLICES + 1)
    spans, shares = np.zeros(SLICES), np.zeros(SLICES)
    begin = float(region.offset_bytes)
    for zone in zones or (Zone(100, 100),):
        length = zone.range_percent / 100 * region.length_bytes
        inside = np.minimum(edges[1:], begin + length) - np.maximum(edges[:-1], begin)
        inside = np.clip(inside, 0.0, None)
        spans += inside
        shares += inside / length * zone.access_percent / 100
        begin += length
    slice_bytes = whole.length_bytes / SLICES
    return WriteSpread(shares, np.maximum(spans, 1e-3), np.minimum(1.0, spans / slice_bytes))
