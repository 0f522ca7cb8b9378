"""Rules that the flash translation layer follows for valid, copied and free data."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.simulation.settled import settled_amplification
from tkperf.engine.simulation.flash_drive import FlashTranslation, build_spread
from tkperf.model.workload import ActiveRange, Zone

USER_BYTES = 10**12
WHOLE = ActiveRange(offset_bytes=0, length_bytes=USER_BYTES)
EVENLY = build_spread((), WHOLE, WHOLE)


def write_random(translation: FlashTranslation, fills: float) -> float:
    """Write the flash ``fills`` times at random, and return the write amplification."""
    host, copied = translation.host_bytes, translation.copied_bytes
    for _ in range(round(fills * 20)):
        translation.write_random(USER_BYTES / 20, EVENLY)
    return 1 + (translation.copied_bytes - copied) / (translation.host_bytes - host)


def write_sequential(translation: FlashTranslation, fills: float = 1.0) -> float:
    """Write the flash ``fills`` times sequentially, and return the write amplification."""
    host, copied = translation.host_bytes, translation.copied_bytes
    translation.write_sequential(fills * USER_BYTES, 0.0, WHOLE)
    return 1 + (translation.copied_bytes - copied) / (translation.host_bytes - host)


def test_the_analytic_amplification_is_the_published_one() -> None:
    """With 30 % of spare flash, the analytic write amplification is 2.36, as published by Xiang and Kurkoski
    (arXiv:1110.4245, abstract).
    """
    assert settled_amplification(0.30) == pytest.approx(2.36, abs=0.005)


@pytest.mark.parametrize("spare", [0.07, 0.15, 0.28, 0.5])
def test_random_writes_settle_at_the_analytic_amplification(spare: float) -> None:
    """With uniform random writes, greedy garbage collection settles within 2 % of the analytic write amplification."""
    translation = FlashTranslation(USER_BYTES, spare, USER_BYTES)
    write_random(translation, 6)
    assert write_random(translation, 2) == pytest.approx(settled_amplification(spare), rel=0.02)


def test_nothing_is_copied_before_all_flash_was_written() -> None:
    """A drive copies no data before all flash was written once. After that, its write amplification never decreases."""
    translation = FlashTranslation(USER_BYTES, 0.28, USER_BYTES)
    assert write_random(translation, 1.25) == 1.0
    steps = [write_random(translation, 0.25) for _ in range(4)]
    assert steps == sorted(steps)
    assert steps[0] > 1.0


def test_what_is_mapped_is_what_was_written_once() -> None:
    """After random writes whose amount equals the capacity of the drive, a share of 1 - exp(-1) of the addresses has
    been written and is mapped. After a sequential pass, all addresses are mapped.
    """
    translation = FlashTranslation(USER_BYTES, 0.28, USER_BYTES)
    write_random(translation, 1)
    assert translation.mapped_bytes == pytest.approx((1 - np.exp(-1)) * USER_BYTES, rel=1e-9)
    write_sequential(translation)
    assert translation.mapped_bytes == pytest.approx(USER_BYTES, rel=1e-9)


@pytest.mark.parametrize("spare", [0.07, 0.28])
def test_sequential_writes_copy_nothing_once_they_went_over_all_of_it(spare: float) -> None:
    """The second sequential pass over the drive copies no data, because the first pass emptied whole superblocks. The
    first sequential pass after random writes, however, copies data.
    """
    translation = FlashTranslation(USER_BYTES, spare, USER_BYTES)
    write_random(translation, 4)
    first, second, third = (write_sequential(translation) for _ in range(3))
    assert 1.2 < first < settled_amplification(spare)
    assert second == pytest.approx(1.0, abs=0.02)
    assert third == pytest.approx(1.0, abs=1e-9)


def test_collection_while_idle_makes_room_for_a_burst() -> None:
    """Garbage collection during idle time frees the requested space and loses no data. A burst of this size is then
    written without copying.
    """
    translation = FlashTranslation(USER_BYTES, 0.28, USER_BYTES)
    write_random(translation, 4)
    mapped = translation.mapped_bytes
    assert translation.collect(USER_BYTES, 0.05 * USER_BYTES) > 0
    assert translation.free_bytes >= 0.05 * USER_BYTES
    assert translation.mapped_bytes == pytest.approx(mapped, rel=1e-9)
    assert write_random(translation, 0.05) == 1.0
    assert write_random(translation, 0.05) > 1.5


def test_skewed_writes_copy_less_than_even_ones() -> None:
    """Skewed writes, as in the zones of the composite workload, cause less copying than uniform writes, because
    superblocks with frequently written data soon contain no valid data.
    """
    zones = (Zone(50, 5), Zone(30, 15), Zone(20, 80))
    skewed = build_spread(zones, WHOLE, WHOLE)
    assert skewed.share.sum() == pytest.approx(1.0)
    assert skewed.share[:2].sum() == pytest.approx(0.5)
    translation = FlashTranslation(USER_BYTES, 0.28, USER_BYTES)
    for _ in range(120):
        translation.write_random(USER_BYTES / 20, skewed)
    host, copied = translation.host_bytes, translation.copied_bytes
    for _ in range(40):
        translation.write_random(USER_BYTES / 20, skewed)
    found = 1 + (translation.copied_bytes - copied) / (translation.host_bytes - host)
    assert 1.3 < found < 0.9 * settled_amplification(0.28)
