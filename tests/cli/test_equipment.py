"""What a run is made with is disclosed where it is not what was expected."""

from __future__ import annotations

from tests.builders import FreeTarget
from tkperf.cli.equipment import Equipment
from tkperf.engine.simulated import PRESETS, SimulatedEngine


def equipment(instead_of: str | None) -> Equipment:
    engine = SimulatedEngine(PRESETS["sata-ssd"], 1 << 30)
    return Equipment(
        engine=engine,
        target=FreeTarget(),
        ioengine="libaio",
        clock=engine.clock,
        write_cache="",
        instead_of=instead_of,
    )


def test_another_io_engine_than_the_first_choice_is_a_warning() -> None:
    """Numbers of libaio and of io_uring are not the same: the reader learns which and why."""
    assert equipment(None).warnings == ()
    (warning,) = equipment("io_uring: Operation not permitted").warnings
    assert warning.code == "ioengine"
    assert warning.text == "libaio issues the I/O, because io_uring: Operation not permitted"
