"""What a run is made with is disclosed where it is not what was expected."""

from __future__ import annotations

from dataclasses import replace

import tkperf
from tkperf.pipeline.consent import Consent


def test_another_io_engine_than_the_first_choice_is_a_warning() -> None:
    """Numbers of libaio and of io_uring are not the same: the reader learns which and why."""
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick", tests=["lat"])
    with plan.subject.open(plan.fitted, Consent()) as equipment:
        assert equipment.warnings == ()
        instead = replace(
            equipment, ioengine="libaio", instead_of="io_uring: Operation not permitted"
        )
    (warning,) = instead.warnings
    assert warning.code == "ioengine"
    assert warning.text == "libaio issues the I/O, because io_uring: Operation not permitted"
