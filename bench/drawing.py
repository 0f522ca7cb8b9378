"""What draws the charts of a PDF fastest? The charts of a full run of four tests, drawn in several ways.

vl-convert (Vega-Lite in V8), each way in processes started anew, as `tkperf report` does it: one chart after the
other in one process and shared by two, as one chart of many below each other, and Vega's specifications without Vega-Lite.
Beside it how long a process takes until its first chart is drawn, and what a chart costs after that.
Then the same specifications drawn by some lines of Python, as a measure of what a renderer of our own could save, with
what it would still have to learn: it is no renderer, its charts lack what it counts as missing.
Last the other parts of a report, each alone.

    python bench/drawing.py [--times 3] [--profile pts-e-1.1]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from tkperf.analysis.over_seconds import with_seconds
from tkperf.analysis.run_results import analyse
from tkperf.cli.rendering import build_run_view
from tkperf.report.html import render_view
from tkperf.report.page import ReportView
from tkperf.report.pdf import _for_print, _lay_out
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
    charts = [each.charts for test in view.tests for each in test.sections]
    charts += [test.charts for test in view.tests]
    rows = [row for drawn in charts for row in _lay_out(msgspec.to_builtins(drawn))]
    return path, [_for_print(chart, "") for row in rows for chart in row]


def read_view(path: Path) -> ReportView:
    with RunFile(path) as opened:
        record = opened.record()
        result = with_seconds(analyse(record), record, opened.seconds)
        return build_run_view(opened, record, result)


def in_processes(way: str, shares: Sequence[Sequence[Spec]]) -> tuple[float, float, float]:
    """Seconds until the first chart of each was drawn, and until all were; of CPUs."""
    fonts = resources.files("tkperf.report") / "templates/no-system-fonts.conf"
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


# ---- a specification as SVG, as far as some lines go

KNOWN_MARKS = {"line", "point", "rule", "bar", "area", "rect", "text"}
KNOWN_KEYS = {
    "$schema", "title", "width", "height", "config", "data", "datasets", "mark", "encoding", "layer",
    "params", "usermeta",
}  # fmt: skip
KNOWN_CHANNELS = {"x", "y", "x2", "y2", "color", "tooltip", "opacity", "order", "detail"}
KNOWN_SCALE = {"type", "domain", "zero", "nice", "range", "padding"}
KNOWN_AXIS = {"values", "tickCount", "labelAngle", "title", "format"}


class Sketch:
    """Axes and marks of a chart; what it does not know is counted in ``missing``."""

    def __init__(self, spec: Spec) -> None:
        self.missing: Counter[str] = Counter()
        self._count(spec, KNOWN_KEYS, "key")
        self.spec = spec
        self.width, self.height = spec["width"], spec["height"]
        self.layers = list(self._layers(spec, spec))
        self.scales = {channel: self._scale(channel) for channel in ("x", "y")}

    def _count(self, given: Iterable[str], known: set[str], what: str) -> None:
        self.missing.update(f"{what} {name}" for name in given if name not in known)

    def _layers(self, spec: Spec, outer: Spec) -> Iterator[tuple[str, Spec, list[Spec]]]:
        data = spec.get("data") or outer.get("data") or {}
        if "layer" in spec:
            for layer in spec["layer"]:
                encoding = {**spec.get("encoding", {}), **layer.get("encoding", {})}
                yield from self._layers(layer | {"encoding": encoding}, {**outer, "data": data})
            return
        rows = data.get("values") or self.spec.get("datasets", {}).get(data.get("name"), [])
        mark = spec["mark"] if isinstance(spec["mark"], dict) else {"type": spec["mark"]}
        if mark["type"] not in KNOWN_MARKS:
            self.missing[f"mark {mark['type']}"] += 1
        self._count(spec["encoding"], KNOWN_CHANNELS, "channel")
        yield mark["type"], spec["encoding"], rows

    def _scale(self, channel: str) -> Callable[[Any], float]:
        size = self.width if channel == "x" else self.height
        values: list[Any] = []
        kind: Spec = {}
        for _, encoding, rows in self.layers:
            for name in (channel, f"{channel}2"):
                one = encoding.get(name, {})
                if isinstance(one, dict) and "field" in one:
                    kind = {**one, **kind}
                    values += [row.get(one["field"]) for row in rows]
        scale, axis = kind.get("scale") or {}, kind.get("axis") or {}
        self._count(scale, KNOWN_SCALE, "scale")
        self._count(axis, KNOWN_AXIS, "axis")
        if kind.get("type") in ("ordinal", "nominal"):
            order = kind.get("sort") or list(dict.fromkeys(values))
            step = size / max(1, len(order))
            places = {value: (number + 0.5) * step for number, value in enumerate(order)}
            self.ticks = getattr(self, "ticks", {}) | {channel: [(places[v], v) for v in order]}
            return lambda value: places.get(value, 0.0)
        numbers = [float(v) for v in values if isinstance(v, int | float) and math.isfinite(v)]
        domain = scale.get("domain")
        if not isinstance(domain, list) or not domain:
            domain = [min(numbers, default=0.0), max(numbers, default=1.0)]
        low, high = domain[0], domain[-1]
        if scale.get("zero"):
            low = min(0, low)
        log = scale.get("type") == "log"

        def of(value: Any) -> float:
            return math.log10(max(value, 1e-9)) if log else float(value)

        start, span = of(low), (of(high) - of(low)) or 1.0

        def place(value: Any) -> float:
            share = float((of(value) - start) / span)
            return float(share * size if channel == "x" else (1 - share) * size)

        step = 10 ** math.floor(math.log10(span)) if not log else 1
        ticks = axis.get("values") or [low + step * n for n in range(int(span / step) + 1)]
        self.ticks = getattr(self, "ticks", {}) | {
            channel: [(place(t), f"{t:,.10g}") for t in ticks]
        }
        return place

    def draw(self) -> str:
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-60 -30 {self.width + 80} {self.height + 70}">'
        ]
        for at, label in self.ticks["x"]:
            out.append(
                f'<path d="M{at:.1f} 0V{self.height}" stroke="#ddd"/><text x="{at:.1f}" y="{self.height + 14}" text-anchor="middle" font-size="10">{escape(str(label))}</text>'
            )
        for at, label in self.ticks["y"]:
            out.append(
                f'<path d="M0 {at:.1f}H{self.width}" stroke="#ddd"/><text x="-5" y="{at + 3:.1f}" text-anchor="end" font-size="10">{escape(str(label))}</text>'
            )
        x, y = self.scales["x"], self.scales["y"]
        for mark, encoding, rows in self.layers:
            series: dict[Any, list[tuple[float, float]]] = {}
            group = encoding.get("color", {}).get("field")
            for row in rows:
                at = [row.get(encoding.get(name, {}).get("field")) for name in ("x", "y")]
                if None not in at:
                    series.setdefault(row.get(group), []).append((x(at[0]), y(at[1])))
            for number, points in enumerate(series.values()):
                colour = f"hsl({number * 47 % 360} 70% 40%)"
                if mark in ("line", "area"):
                    path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
                    out.append(f'<path d="M{path}" fill="none" stroke="{colour}"/>')
                else:
                    out += [
                        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2" fill="{colour}"/>'
                        for a, b in points
                    ]
        out.append(
            f'<text y="-12" font-size="13">{escape(str(self.spec["title"]["text"]))}</text></svg>'
        )
        return "".join(out)


def sketch_all(specs: Sequence[Spec], folder: Path | None = None) -> Counter[str]:
    missing: Counter[str] = Counter()
    for number, spec in enumerate(specs):
        try:
            sketch = Sketch(spec)
            drawn = sketch.draw()
        except (ValueError, TypeError, KeyError) as error:
            missing[f"charts it cannot draw ({type(error).__name__})"] += 1
            continue
        missing.update(sketch.missing)
        if folder is not None:
            (folder / f"{number}.svg").write_text(drawn)
    return missing


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
        measure("sketched by Python", wanted.times, lambda: alone(lambda: sketch_all(specs)))
        missing = sketch_all(specs)
        print(
            "  what the sketch lacks: "
            + ", ".join(f"{what} ({n})" for what, n in missing.most_common())
        )
        view = read_view(path)
        measure("reading, analysis and view", wanted.times, lambda: alone(lambda: read_view(path)))
        measure("the page as HTML", wanted.times, lambda: alone(lambda: render_view(view)))


if __name__ == "__main__":
    main()
