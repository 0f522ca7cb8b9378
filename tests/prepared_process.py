"""Preparation of a process whose copies run tkperf."""

from __future__ import annotations

from tkperf.analysis.results import RunResult
from tkperf.model import decoding
from tkperf.pipeline import result_cache
from tkperf.runfile import row_records


def examine_types() -> None:
    """Make msgspec examine the types of the facts in run files, and the type of a cached result.

    Otherwise, each copy of this process would examine these types again. The examination would take as much CPU time as
    the rest of a short simulated run.
    """
    for types in row_records._FACT_CHECKS.values():
        for type_ in types:
            decoding.examine(type_)
    decoding.examine(result_cache._Entry[RunResult])
