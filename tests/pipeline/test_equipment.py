"""What a run is made with is disclosed where it is not what was expected."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import tkperf
from tkperf.pipeline.consent import Consent


def test_another_io_engine_than_the_first_choice_is_a_warning() -> None:
    """An I/O engine other than the first choice causes a warning with the engine and the reason, because numbers of
    libaio and io_uring are not the same.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick", tests=["lat"])
    with plan.dut.open(plan.fitted, Consent()) as equipment:
        assert equipment.warnings == ()
        instead = replace(equipment, ioengine="libaio", instead_of="io_uring: Operation not permitted")
    (warning,) = instead.warnings
    assert warning.code == "ioengine"
    assert warning.text == "libaio issues the I/O, because io_uring: Operation not permitted"


def test_one_thread_looks_at_the_counters_of_a_device(scratch: Path) -> None:
    """One thread reads the counters of a device, because each reading takes a CPU from the load. Only a set has other
    devices that are filled.
    """
    plan = tkperf.make_plan("ssd", str(scratch), profile="quick", tests=["lat"])
    with plan.dut.open(plan.fitted, Consent(confirm=str(scratch))) as equipment:
        looking = [thread for thread in threading.enumerate() if thread.name == "counters"]
        assert len(looking) == 1
        assert equipment.counters is not None
        assert equipment.fill_counters is None
