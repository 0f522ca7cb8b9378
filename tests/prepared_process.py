"""Preparation of a process that runs tkperf itself or in its copies."""

from __future__ import annotations

from tkperf.analysis.results import RunResult
from tkperf.model import decoding
from tkperf.pipeline import result_cache
from tkperf.runfile import row_records, writer


def examine_types() -> None:
    """Make msgspec examine the types of the facts in run files, and the type of a cached result.

    Otherwise, each copy of this process would examine these types again. The examination would take as much CPU time as
    the rest of a short simulated run.
    """
    for types in row_records._FACT_CHECKS.values():
        for type_ in types:
            decoding.examine(type_)
    decoding.examine(result_cache._Entry[RunResult])


def stop_syncs() -> None:
    """Write run files without a sync after each commit. The tests in tests/runfile/, the lab and the processes that
    tests start without ``run_forked`` use the setting of tkperf.

    A sync protects a run only from a power failure or a crash of the kernel. Half of the time of a simulated run would
    be spent waiting for these syncs.
    """
    writer.SYNCHRONOUS = "OFF"
