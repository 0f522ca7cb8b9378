"""The kernel's own trace of reads, with the times at which each read was accepted, sent to the driver and completed.
Lab cases and benchmarks use this trace.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TRACING = Path("/sys/kernel/tracing")
EVENTS = ("bio_queue", "rq_issue", "rq_complete")
BUFFER_KB = 65536
# The page docs/explanation/accuracy.md also states this limit.
MOST_PERCENTILE_ERROR = 0.02
TAIL_PERCENT = 99.0
PERCENTILES = {"p50_us": 50.0, "p90_us": 90.0, "p99_us": 99.0, "p99.9_us": 99.9}
# An example of a line: fio-412 [001] ..... 12.345678: block_rq_issue: 8,0 R 4096 () 2048 + 8 [fio]. Newer kernels
# print: + 8 none,0,0 [fio]
TRACED = re.compile(
    r" (\d+\.\d+): block_(bio_queue|rq_issue|rq_complete): \d+,\d+ (\w+) (?:\d+ )?(?:\(.*?\) )?"
    r"(\d+) \+ (\d+) (?:\w+,\d+,\d+ )?\[(.*)\]"
)


@contextmanager
def traced_reads(device: Path, buffer_kb: int = BUFFER_KB) -> Iterator[dict[str, list[float]]]:
    """Trace fio's reads of 4 KiB. Yield a dictionary. After the ``with`` statement, the dictionary contains the
    latencies in us.

    ``Q2C`` is the time from the acceptance of a read by the kernel to its completion. ``D2C`` is the time from the
    arrival of the read at the driver to its completion.
    """
    found: dict[str, list[float]] = {"Q2C": [], "D2C": []}
    with traced(device, lambda lines: found.update(_latencies_us(lines)), buffer_kb):
        yield found


@contextmanager
def traced(device: Path, parse: Callable[[Iterable[str]], object], buffer_kb: int = BUFFER_KB) -> Iterator[None]:
    """Trace the I/Os of a device. When the ``with`` statement ends, ``parse`` receives the lines of the trace
    (``TRACED``).

    ``buffer_kb`` is the size of the buffer for each CPU in KiB, as the kernel expects it. An event needs about 80
    bytes, and an I/O has three events.
    """
    number = os.stat(device).st_rdev
    if not (TRACING / "trace").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=True)
    (TRACING / "trace_clock").write_text("mono")
    (TRACING / "buffer_size_kb").write_text(str(buffer_kb))
    (TRACING / "trace").write_text("")
    # Without this setting, the kernel could merge two adjacent reads into one request.
    merging = Path("/sys/class/block") / device.name / "queue/nomerges"
    merged_before = merging.read_text()
    merging.write_text("2")
    events = [TRACING / "events/block" / f"block_{name}" for name in EVENTS]
    for event in events:
        # The kernel's internal device numbers contain the major number in bit 20 and the higher bits.
        (event / "filter").write_text(f"dev == {os.major(number) << 20 | os.minor(number)}")
        (event / "enable").write_text("1")
    try:
        yield
        for event in events:
            (event / "enable").write_text("0")
        for cpu in TRACING.glob("per_cpu/cpu*/stats"):
            require_whole(cpu.read_text())
        with (TRACING / "trace").open() as lines:
            parse(lines)
    finally:
        for event in events:
            (event / "enable").write_text("0")
            (event / "filter").write_text("0")
        (TRACING / "trace").write_text("")
        (TRACING / "buffer_size_kb").write_text("1000")
        merging.write_text(merged_before)


def require_whole(stats: str) -> None:
    """Require that the kernel neither overwrote nor dropped an event in the trace buffer of any CPU."""
    lost = dict(re.findall(r"^((?:commit )?overrun|dropped events): (\d+)$", stats, re.MULTILINE))
    assert set(lost.values()) == {"0"}, f"the trace is not whole: {lost}; use a larger buffer"


def _latencies_us(lines: Iterable[str]) -> dict[str, list[float]]:
    """Return the latencies. Each completion belongs to the oldest unfinished read of the same sector."""
    queued: dict[str, deque[float]] = defaultdict(deque)
    issued: dict[str, deque[float]] = defaultdict(deque)
    found: dict[str, list[float]] = {"Q2C": [], "D2C": []}
    for line in filter(None, map(TRACED.search, lines)):
        text_s, what, kind, sector, sectors, by = line.groups()
        if not kind.startswith("R") or sectors != "8":
            continue
        at_s = float(text_s)
        if what == "bio_queue" and by.startswith("fio"):
            queued[sector].append(at_s)
        elif what == "rq_issue" and queued[sector]:
            issued[sector].append(at_s)
        elif what == "rq_complete" and queued[sector] and issued[sector]:
            found["Q2C"].append(1e6 * (at_s - queued[sector].popleft()))
            found["D2C"].append(1e6 * (at_s - issued[sector].popleft()))
    return found


def percentile(ascending: Sequence[float], percent: float) -> float:
    """Return the latency with the rank ceil(N p / 100). This is the rule in docs/explanation/method.md, applied to
    exact latencies instead of buckets.
    """
    return ascending[math.ceil(round(len(ascending) * percent / 100, 6)) - 1]


def compare(cell: dict[str, Any], latencies: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Return the figures of a cell according to tkperf and according to the trace. The first key is the figure, and the
    second key is the source.

    A percentile is missing if tkperf leaves it out because too few I/Os lie beyond it.
    """
    given = {name: percent for name, percent in PERCENTILES.items() if cell[name] is not None}
    found: dict[str, dict[str, float]] = {
        "ios": {"tkperf": cell["ios"]},
        "latency_mean_us": {"tkperf": cell["latency_mean_us"]},
        **{name: {"tkperf": cell[name]} for name in given},
    }
    for which, times_us in latencies.items():
        ascending = sorted(times_us)
        found["ios"][which] = len(ascending)
        found["latency_mean_us"][which] = math.fsum(ascending) / len(ascending)
        for name, percent in given.items():
            found[name][which] = percentile(ascending, percent)
    return found


def find_beyond(
    figures: dict[str, dict[str, float]], most_overhead_us: float, most_tail_overhead_us: float
) -> list[str]:
    """Return the figures that differ by more than the permitted amount. The numbers of I/Os must be equal. The mean
    according to tkperf may exceed the mean according to the trace by at most ``most_overhead_us``. A percentile may
    differ by the permitted error of percentiles plus the stated overhead.

    Args:
        most_overhead_us: the most time that the path from fio to the kernel and back may add to the mean, p50 and p90.
        most_tail_overhead_us: the most time that this path may add to p99 and higher percentiles, including the time
            that fio waits for a CPU.
    """
    beyond = []
    for which in ("Q2C", "D2C"):
        if figures["ios"]["tkperf"] != figures["ios"][which]:
            beyond.append(f"number of I/Os, {which}")
        overhead_us = figures["latency_mean_us"]["tkperf"] - figures["latency_mean_us"][which]
        if not 0 <= overhead_us <= most_overhead_us:
            beyond.append(f"overhead, {which}: {overhead_us:.1f} us")
        for name, percent in PERCENTILES.items():
            if name in figures:
                true_us = figures[name][which]
                off_us = abs(figures[name]["tkperf"] - true_us)
                stated_us = most_tail_overhead_us if percent >= TAIL_PERCENT else most_overhead_us
                if off_us > MOST_PERCENTILE_ERROR * true_us + stated_us:
                    beyond.append(f"{name}, {which}: {off_us:.1f} us off {true_us:.1f} us")
    return beyond
