"""What draws the charts of a PDF fastest? The charts of a full run of four tests, drawn in several ways.

As `tkperf report` does it: by tkperf itself, in the process that makes the PDF. Beside it vl-convert (Vega-Lite in V8), which
draws what tkperf refuses, each way in processes started anew: one chart after the other in one process and shared by two, as one
chart of many below each other, and Vega's specifications without Vega-Lite; how long a process takes until its first chart is
drawn, and what a chart costs after that.
Last the other parts of a report, each alone.

    python bench/drawing.py [--times 3] [--profile pts-e-1.1]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from tkperf.analysis.over_seconds import with_seconds
from tkperf.analysis.run_results import analyse
from tkperf.cli.rendering import build_run_view
from tkperf.page.page import ReportView
from tkperf.render.document import compose
from tkperf.render.html import render_view
from tkperf.render.paper import charts_of
from tkperf.render.svg.chart import draw
from tkperf.runfile.reader import RunFile

Spec = dict[str, Any]

# Reads specifications, draws them in one way, and says when the first and when all were there.
IN_A_PROCESS = """
import json, sys, time
import vl_convert
way, specs = sys.argv[1], json.load(sys.stdin)
draw = vl_convert.vegalite_to_svg
if way == "nothing":
    specs = []
if way == "below":
    common = {key: specs[0][key] for key in ("$schema", "config")}
    parts = [{key: value for key, value in spec.items() if key not in common} for spec in specs]
    specs = [{**common, "vconcat": parts, "resolve": {"scale": {"color": "independent"}}}]
if way == "vega":
    draw = vl_convert.vega_to_svg
first = None
for spec in specs:
    draw(spec)
    first = first or time.time()
print(json.dumps([first, time.time()]))
"""


def collect(folder: Path, profile: str) -> tuple[Path, list[Spec]]:
    """The charts of the PDF of a run on a simulated drive."""
    path = folder / "run.tkperf"
    argv = [sys.executable, "-m", "tkperf", "ssd", "run", "sim:sata-ssd", "--profile", profile]
    subprocess.run(
        [*argv, "-q", "--output", str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    view = read_view(path)
    return path, [chart["spec"] for chart in charts_of(compose(view, footer=""))]


def read_view(path: Path) -> ReportView:
    with RunFile(path) as opened:
        record = opened.record()
        result = with_seconds(analyse(record), record, opened.seconds)
        return build_run_view(opened, record, result)


def in_processes(way: str, shares: Sequence[Sequence[Spec]]) -> tuple[float, float, float]:
    """Seconds until the first chart of each was drawn, and until all were; of CPUs."""
    fonts = resources.files("tkperf.render") / "templates/no-system-fonts.conf"
    environment = {**os.environ, "FONTCONFIG_FILE": str(fonts)}
    began = time.time()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", IN_A_PROCESS, way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        for _ in shares
    ]
    for process, share in zip(started, shares, strict=True):
        assert process.stdin is not None
        process.stdin.write(json.dumps(share).encode())
        process.stdin.close()
    answers, of_cpus = [], 0.0
    for process in started:
        assert process.stdout is not None
        answers.append(json.loads(process.stdout.read()))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        of_cpus += used.ru_utime + used.ru_stime
        process.stdout.close()
    firsts = [first or last for first, last in answers]
    return max(firsts) - began, max(last for _, last in answers) - began, of_cpus


def measure(what: str, times: int, act: Callable[[], tuple[float, float, float]]) -> None:
    found = [act() for _ in range(times)]
    first, whole, of_cpus = (statistics.median(column) for column in zip(*found, strict=True))
    print(
        f"  {what:55s} first {first:5.2f} s, all {whole:5.2f} s, {of_cpus:5.2f} s of CPU",
        flush=True,
    )


def alone(act: Callable[[], object]) -> tuple[float, float, float]:
    began, began_cpu = time.perf_counter(), time.process_time()
    act()
    took = time.perf_counter() - began
    return took, took, time.process_time() - began_cpu


def draw_all(specs: Sequence[Spec]) -> None:
    for spec in specs:
        draw(spec)


IMPORTED = "import time; began = time.process_time(); import tkperf.render.svg.chart; print(time.process_time() - began)"


def importing() -> tuple[float, float, float]:
    """Seconds that loading tkperf's own renderer takes, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", IMPORTED], check=True, capture_output=True)
    took = float(done.stdout)
    return took, took, took


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--profile", default="pts-e-1.1")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path, specs = collect(Path(name), wanted.profile)
        print(f"{len(specs)} charts of a PDF, on {os.cpu_count()} CPUs; medians of {wanted.times}")
        import vl_convert  # noqa: PLC0415 - the processes below are to start without it

        compiled = [vl_convert.vegalite_to_vega(spec) for spec in specs]
        halves = [specs[::2], specs[1::2]]
        for what, way, shares in (
            ("a process that draws nothing", "nothing", [[]]),
            ("one process that draws one chart", "each", [specs[:1]]),
            ("one process, one after the other", "each", [specs]),
            ("two processes, one after the other", "each", halves),
            ("one process, all below each other as one chart", "below", [specs]),
            ("two processes, theirs as one chart each", "below", halves),
            ("one process, Vega without Vega-Lite", "vega", [compiled]),
        ):
            measure(what, wanted.times, lambda way=way, shares=shares: in_processes(way, shares))  # type: ignore[misc]
        measure("tkperf's own renderer: loading it", wanted.times, importing)
        measure("all drawn by it", wanted.times, lambda: alone(lambda: draw_all(specs)))
        view = read_view(path)
        measure("reading, analysis and view", wanted.times, lambda: alone(lambda: read_view(path)))
        measure("the page as HTML", wanted.times, lambda: alone(lambda: render_view(view)))


if __name__ == "__main__":
    main()
