"""The exit of fio is correct only if its status is 0, no job reports an error, and fio printed a result."""

from __future__ import annotations

import pytest

from tkperf.engine.fio_output import find_fio_fault
from tkperf.model.errors import EngineError, LostAtGateError, StepFailedError


def fault(status: int = 0, *errors: int, has_result: bool = True, ended_at_gate: bool = False) -> EngineError | None:
    return find_fio_fault(
        status, errors, device="/dev/x", has_result=has_result, ended_at_gate=ended_at_gate, output="; it said: so"
    )


def test_an_end_as_it_should_be() -> None:
    """If fio exits with status 0, without an error of any job and with a result, tkperf reports no fault."""
    assert fault(0, 0, 0) is None


@pytest.mark.parametrize(
    ("found", "kind", "text"),
    [
        (fault(-9), StepFailedError, "fio on /dev/x was killed by signal 9; it said: so"),
        (fault(-9, ended_at_gate=True), LostAtGateError, "fio on /dev/x was killed by signal 9; it said: so"),
        (fault(128), StepFailedError, "fio on /dev/x was killed by a signal; it said: so"),
        (fault(128, 5), EngineError, "fio failed on /dev/x with job error 5 (Input/output error); it said: so"),
        (fault(1, 5, 0, 5), EngineError, "fio failed on /dev/x with job error 5 (Input/output error); it said: so"),
        (fault(0, 5), EngineError, "fio failed on /dev/x with job error 5 (Input/output error); it said: so"),
        (
            fault(1, 0, 35),
            EngineError,
            "fio failed on /dev/x with job error 35 (Resource deadlock avoided); it said: so. A thread of fio "
            "waited 5 s for the report of all threads. Either the CPUs of the host were too busy for this number of "
            "threads, or the device did not answer; check the kernel log",
        ),
        (fault(2, ended_at_gate=True), EngineError, "fio failed on /dev/x with exit status 2; it said: so"),
        (fault(ended_at_gate=True), LostAtGateError, "fio on /dev/x ended before its first I/O; it said: so"),
        (
            fault(has_result=False),
            EngineError,
            "fio on /dev/x ended without printing a result; it said: so. Check that the program that tkperf finds "
            "(through TKPERF_FIO or PATH) is really fio",
        ),
    ],
)
def test_each_other_end_says_what_it_was(found: EngineError | None, kind: type[EngineError], text: str) -> None:
    """The reported fault states whether fio was killed, failed, was blocked forever or is another program. The type of
    the fault determines whether the step may be started again.
    """
    assert type(found) is kind
    assert str(found) == text
