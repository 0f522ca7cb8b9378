"""Each preset of a simulated drive behaves as its name indicates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.engine.simulation.test_drives import MIXED, RANDOM_WRITES, READS, make, measure
from tkperf.engine.simulation.models import PRESET_MODELS, FlashModel, find_preset
from tkperf.model.errors import EngineError, UsageError
from tkperf.model.steady_state import judge
from tkperf.model.workload import Workload

WINDOW = 5


def is_steady(values: list[float]) -> bool:
    """Return whether the series contains five consecutive values that are steady."""
    return any(
        judge(range(WINDOW), values[begin : begin + WINDOW], tracking="IOPS", unit="").reached
        for begin in range(len(values) - WINDOW + 1)
    )


def rounds(preset: str, step_s: float, others: tuple[Workload, ...]) -> list[float]:
    """Return the IOPS of random writes in 25 rounds, with other steps between the writes."""
    engine = make(PRESET_MODELS[preset])
    found = []
    for _ in range(25):
        found.append(measure(engine, RANDOM_WRITES, step_s).iops)
        for other in others:
            measure(engine, other, step_s)
    return found


@pytest.mark.parametrize("step_s", [1.0, 5.0, 60.0])
@pytest.mark.parametrize("others", [(), (READS,), (READS, MIXED)], ids=len)
def test_unsteady_is_in_no_window_steady(step_s: float, others: tuple[Workload, ...]) -> None:
    """The unsteady preset is not steady in any window. The other steps in its rounds do not matter."""
    assert not is_steady(rounds("unsteady", step_s, others))


@pytest.mark.parametrize("every_min", [1, 2, 30, 31])
def test_unsteady_is_not_steady_in_a_stream_either(every_min: int) -> None:
    """The unsteady preset is not steady in a stream either. The result is the same whether every minute, every second
    minute, or one minute in half an hour is judged.
    """
    engine = make(PRESET_MODELS["unsteady"])
    rates = [engine.drive.serve(RANDOM_WRITES, 1.0).rate for _ in range(12 * 3600)]
    minutes = np.array(rates).reshape(-1, 60).mean(axis=1)
    assert not is_steady(minutes[::every_min].tolist())


@pytest.mark.parametrize("preset", ["sata-ssd", "nvme-4kn"])
def test_the_well_behaved_become_steady(preset: str) -> None:
    """A well-behaved preset becomes steady, because only noise remains after all flash has been written."""
    engine = make(PRESET_MODELS[preset])
    measure(engine, RANDOM_WRITES, 2 * 3600)
    assert is_steady([measure(engine, RANDOM_WRITES, 60).iops for _ in range(WINDOW)])


def test_cliffs_are_sudden_and_pass() -> None:
    """The read rate of the cliffs preset falls to a third for six minutes in every 45 minutes. The rate changes from
    one second to the next.
    """
    rates = np.array([each.iops for each in measure(make(PRESET_MODELS["cliffs"]), READS, 5400).samples])
    low = rates < 0.5 * np.median(rates)
    assert np.flatnonzero(np.diff(low.astype(int))).tolist() == [2339, 2699, 5039]
    assert rates[low].mean() / rates[~low].mean() == pytest.approx(0.33, rel=0.02)


def test_spikes_come_every_13_minutes() -> None:
    """Every 13 minutes, the latency rises to 0.4 s for one second. In all other seconds, no latency reaches 0.2 s."""
    samples = measure(make(PRESET_MODELS["spikes-13min"]), READS, 3 * 780 + 60).samples
    longest = np.array([each.read.latency_max_ns or 0 for each in samples])
    spikes = np.flatnonzero(longest > 0.35e9)
    assert spikes.tolist() == [779, 1559, 2339]
    assert np.delete(longest, spikes).max() < 0.2e9


def test_dying_gets_slower_with_every_fill_and_then_fails() -> None:
    """Each fill reduces the rate of the dying preset by 30 %. After six fills, every I/O fails, and the error states
    that the drive failed.
    """
    model = replace(PRESET_MODELS["dying"], capacity_bytes=10**10)
    engine = make(model)
    work = replace(READS, io_depth=8)
    before = measure(engine, work).iops
    while engine.drive.translation.host_bytes < 3e10:  # type: ignore[attr-defined]
        measure(engine, RANDOM_WRITES, 1)
    written = engine.drive.translation.host_bytes / 1e10  # type: ignore[attr-defined]
    assert measure(engine, work).iops == pytest.approx(before * 0.7**written, rel=0.05)
    with pytest.raises(EngineError, match=r"failed.*6 times its capacity.*SIMULATED"):
        measure(engine, RANDOM_WRITES, 3600)


def test_an_unknown_preset_is_one_clear_error() -> None:
    """An unknown preset leads to one clear error that lists the existing presets."""
    with pytest.raises(UsageError, match="simulated drive 'floppy': choose from client-qlc"):
        find_preset("floppy")


def test_every_flash_preset_has_room_to_collect_in() -> None:
    """Every preset with flash has at least 5 % of spare flash, because greedy garbage collection does not work for long
    with less.
    """
    for model in PRESET_MODELS.values():
        assert not isinstance(model, FlashModel) or model.spare_percent >= 5
