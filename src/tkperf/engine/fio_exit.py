"""The judgement of fio's end, by its exit status, the errors of its jobs and its output together. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tkperf.model.errors import EngineError, LostAtGateError, StepFailedError

# fio's own exit status after SIGTERM or SIGINT: others cut it short, nothing has failed.
_ENDED_BY_SIGNAL = 128


def find_fio_fault(
    status: int,
    job_errors: Sequence[int],
    *,
    device: str,
    has_result: bool,
    ended_at_gate: bool,
    output: str,
) -> EngineError | None:
    """Return the error that makes a measurement unusable; None: fio ended as it should.

    A status of 0 alone says nothing: jobs have errors of their own, and a program that is not fio
    may end well.

    Args:
        status: its exit status; that of a signal is negative.
        job_errors: an error number for each job, 0 for none.
        has_result: it printed at least one document.
        ended_at_gate: it was held before its first I/O.
        output: its own words, for the message.
    """
    failed = sorted({error for error in job_errors if error})
    if status < 0 or (status == _ENDED_BY_SIGNAL and not failed):
        by = "a signal" if status > 0 else f"signal {-status}"
        killed = f"fio on {device} was killed by {by}{output}"
        return LostAtGateError(killed) if ended_at_gate else StepFailedError(killed)
    if failed:
        names = ", ".join(f"{error} ({os.strerror(error)})" for error in failed)
        return EngineError(f"fio failed on {device}: job error {names}{output}")
    if status:
        return EngineError(f"fio failed on {device}: exit status {status}{output}")
    if ended_at_gate:
        return LostAtGateError(f"fio on {device} ended before its first I/O{output}")
    if not has_result:
        return EngineError(
            f"fio on {device} ended without printing a result{output}; "
            "is the 'fio' on PATH the real one?"
        )
    return None
