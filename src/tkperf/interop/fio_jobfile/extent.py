"""Where a job stays, and for how long."""

from __future__ import annotations

import msgspec

from tkperf.interop.fio_jobfile import notation
from tkperf.interop.fio_jobfile.account import JobOptions
from tkperf.model.workload import Access
from tkperf.procedures.own_workloads.parts import Load
from tkperf.procedures.profiles.tables import LONGEST_S, MOST_PASSES


def read_range(options: JobOptions) -> tuple[int, int]:
    """Begin and end in percent of the device."""
    begin = _read_percent(options, "offset") or 0
    length = _read_percent(options, "size")
    end = 100 if length is None else begin + length
    if end > 100 or begin >= end:
        options.refuse("size", "with its offset it is nothing, or beyond the device's end")
        return 0, 100
    options.keep(
        "offset", "size", key="range_begin_percent, range_end_percent of the active range, to 1 MiB"
    )
    return begin, end


def set_apart(options: JobOptions, load: Load) -> Load:
    """Sequential threads of tkperf have parts of their own, as fio's with a fitting ``offset_increment``."""
    name, jobs = "offset_increment", load.jobs or 1
    text = options.text(name)
    if text in (None, "0", "0%") and (jobs == 1 or load.access is Access.RANDOM):
        options.drop(name, why="fio's default, which does nothing")
        return load
    if load.access is Access.RANDOM:
        options.refuse(name, "random threads of tkperf share one range")
        return load
    part = f"{100 / jobs:g}%"
    if text == part == options.text("size") and not load.range_begin_percent:
        options.keep(name, key="jobs, each of which has a part of its own")
        return msgspec.structs.replace(load, range_end_percent=100)
    options.refuse(
        name,
        f"{jobs} sequential threads of tkperf have a part of the range each; fio's have with size={part} and "
        f"offset_increment={part}",
        default="offset_increment=0 (fio's default: all threads go over the same addresses)",
    )
    return load


def read_times(options: JobOptions) -> tuple[float | None, float]:
    """How long it runs, in s, None where its amount ends it, and how long it runs before it counts."""
    times = []
    for name in ("runtime", "ramp_time"):
        time_s = options.value(name, notation.read_time_s, 0.0)
        if round(time_s * 1000) % 100 or time_s > LONGEST_S:
            options.refuse(name, "tkperf's times are multiples of 0.1 s, 30 days at most")
            time_s = 0.0
        times.append(time_s)
    runtime_s, ramp_s = times
    options.keep("runtime", key="longest_s")
    is_time_based = options.flag("time_based")
    if not runtime_s:
        options.drop("time_based", why="it does nothing without runtime")
        options.drop("ramp_time", why="nothing of a fill is a result")
        return None, 0.0
    options.keep("ramp_time", key="warm_up_s")
    why = "every load goes on for its whole time"
    options.imply("time_based", why=why)
    if not is_time_based:
        options.note("no time_based", f"{why}; fio would end once it has gone over its range")
    return runtime_s, ramp_s


def read_passes(options: JobOptions, *, is_timed: bool) -> int:
    """How often it goes over its range, where no time ends it."""
    passes = options.value("loops", lambda text: notation.read_count(text, 1, MOST_PASSES), 1)
    if is_timed:
        options.drop("loops", why="runtime ends the load")
    options.keep("loops", key="passes")
    return passes


def _read_percent(options: JobOptions, name: str) -> int | None:
    text = options.text(name)
    if text is None or (name == "offset" and text == "0"):
        return None
    if text.endswith("%"):
        return options.value(name, lambda _: notation.read_count(text[:-1].strip(), 0, 100), None)
    options.refuse(
        name,
        f"a workload file has parts of the range in percent: write {name}=..%, or give it up, and give the "
        "range itself to the run with --active-range",
    )
    return None
