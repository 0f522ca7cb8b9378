"""How many steps of a run something disturbed, counted without reading all of them."""

from __future__ import annotations

import sqlite3

from tkperf.record import RunRecord
from tkperf.telemetry.marking import find_stretches, is_throttled


def count_disturbed(db: sqlite3.Connection, record: RunRecord) -> int | None:
    """Steps that count and that something disturbed; None where nobody looked, as at a simulated drive.

    Args:
        record: of the run, whether its steps were read or not.
    """
    tests = {test.id for test in record.tests}
    stretches = find_stretches(record)
    looked = disturbed = 0
    # Of a damaged file what cannot be a time is 0.
    for sequence, test_id, began_s, ended_s, is_watched, is_disturbed in db.execute(
        "SELECT sequence, test_id, CAST(started_s AS REAL), CAST(started_s + duration_s AS REAL), "
        "watched AND (foreign_read_bytes IS NOT NULL OR foreign_write_bytes IS NOT NULL "
        "OR host_use IS NOT NULL), "
        "EXISTS (SELECT 1 FROM disturbance WHERE step_sequence = sequence) FROM step"
    ):
        set_aside = any(
            resumption.test_id == test_id and resumption.sets_aside(sequence)
            for resumption in record.resumptions
        )
        if test_id in tests and not set_aside:
            looked += bool(is_watched)
            disturbed += bool(is_disturbed) or is_throttled(stretches, began_s, ended_s)
    return disturbed if looked or disturbed else None
