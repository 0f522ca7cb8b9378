"""Draw the charts in docs/explanation/concepts.md, the picture in docs/how-to/several-loads.md, and the gallery of all
charts, docs/reference/gallery.md.

    .venv/bin/python scripts/docs_charts.py [FOLDER]

Each chart shows a run on a simulated drive. A command in RUNS measures this run. All runs together take about six
minutes. With a folder as its argument, the script stores the run files in this folder and reuses them. tkperf's own
functions draw the charts. Simulated drives use fixed seeds, so one version of tkperf always draws the same charts.
"""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import median

from PIL import Image

import tkperf
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.results import CellResult, RunResult, SectionResult
from tkperf.model.figures import DONE
from tkperf.model.quantity import Figures
from tkperf.model.record import StepKind
from tkperf.page.chart import (
    PALETTE,
    AnyChart,
    Axis,
    Bucket,
    Chart,
    Curve,
    Distribution,
    GridMap,
    Legend,
    Marked,
    Point,
    Rule,
    RuleKind,
    Scale,
    Shade,
    ShadeKind,
)
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.page import ChartView, ReportView
from tkperf.render.charts.draw import draw
from tkperf.render.pdf import draw_all, load_vega
from tkperf.render.reports import build_run_view

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONCEPTS = DOCS / "explanation/concepts"
GALLERY = DOCS / "reference/gallery"
PAGE = DOCS / "reference/gallery.md"
WIDTH_PX, SMALL_PX = 720, 480
SHADES = 64
"""The number of colours in a picture of the gallery."""
MOST_VIEWS = 8
"""The largest number of views that the gallery lists for a chart."""

# The name of each run, and the command that performs the run. The command is called in the root folder of the
# repository.
RUNS = {
    "sata": "tkperf ssd sata sim:sata-ssd",
    "nvme": "tkperf ssd nvme sim:nvme-4kn",
    "idle": "tkperf ssd idle sim:client-tlc --profile pts-2.0-client --test hir",
    "stimuli": "tkperf ssd stimuli sim:client-tlc --profile pts-2.0-client --test xsr",
    "fresh": "tkperf ssd fresh sim:sata-ssd --profile pts-2.0 --test hir",
    "cache": "tkperf ssd cache sim:client-tlc --test writesat",
    "heat": "tkperf ssd heat sim:client-tlc --test docs/examples/heat.toml",
    "search": "tkperf ssd search sim:sata-ssd --test auto-demand",
    "sweep": "tkperf sweep sweep sim:nvme-4kn --threads 1,4,16 --depth 1,2,4,8,16,32,64 --mix 100/0",
    "composite": "tkperf ssd composite sim:sata-ssd --profile pts-2.0 --test cbw",
    "offered": "tkperf ssd offered sim:nvme-4kn --profile myce",
    "disk": "tkperf hdd disk sim:hdd",
    "together": "tkperf ssd together sim:nvme-4kn --test interference,neighbours",
}
COMPARISON = ("sata", "nvme")


class Runs:
    """The runs in a folder, by name. A run is measured if its file does not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        """Return the run file of the run with this name."""
        path = self._folder / f"{name}.tkperf"
        if not path.exists():
            print("measuring:", RUNS[name], flush=True)
            words = shlex.split(RUNS[name])[1:]
            call = [sys.executable, "-m", "tkperf", *words, "--no-report", "--quiet", "--output", str(self._folder)]
            subprocess.run(call, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        return path

    def load(self, name: str) -> RunResult:
        return tkperf.load(self.path(name))

    def view(self, name: str) -> ReportView:
        """Return the report of a run."""
        with tkperf.open_run(self.path(name)) as opened:
            record = opened.record()
            return build_run_view(opened, record, self.load(name))


def main() -> None:
    """Draw every chart, and write the page of the gallery."""
    with tempfile.TemporaryDirectory(prefix="tkperf-charts-") as scratch:
        runs = Runs(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch))
        draw_concepts(runs)
        draw_interference(runs)
        write_gallery(runs)


def draw_concepts(runs: Runs) -> None:
    CONCEPTS.mkdir(exist_ok=True)
    charts = {name: build(runs) for name, build in CHARTS.items()}
    drawings = draw_all([draw(chart) | {"width": WIDTH_PX, "padding": 12} for chart in charts.values()])
    for name, drawing in zip(charts, drawings, strict=True):
        (CONCEPTS / f"{name}.svg").write_text(drawing + "\n", encoding="utf-8")


def draw_interference(runs: Runs) -> None:
    """Draw the picture of docs/how-to/several-loads.md."""
    grids = (one.chart for one in charts_of(runs.view("together")) if isinstance(one.chart, GridMap))
    draw_picture(next(grids), DOCS / "interference.png")


def write_gallery(runs: Runs) -> None:
    """Write a picture of the first view of each chart, and the page that shows these pictures."""
    GALLERY.mkdir(exist_ok=True)
    for old in GALLERY.iterdir():
        old.unlink()
    PAGE.write_text("\n".join(build_gallery(runs)).rstrip() + "\n", encoding="utf-8")


def build_gallery(runs: Runs) -> Iterator[str]:
    """Yield the lines of the gallery page, and draw the pictures of the page."""
    yield "# Gallery of charts\n"
    yield _wrap(
        "This page shows each kind of chart once, together with the command that performs the run. All drives are "
        "simulated, so every chart is marked SIMULATED. Each chart answers a question. Many charts have several "
        "views, and the reader of a report can switch between these views. [Charts of each test](charts.md) lists the "
        "tests that have each chart. The script `scripts/docs_charts.py` generates this page and its pictures."
    )
    shown: set[tuple[str, str]] = set()
    for name, command in RUNS.items():
        yield from _show(command, runs.view(name), shown)
    pair = [runs.load(name) for name in COMPARISON]
    files = " ".join(f"{name}.tkperf" for name in COMPARISON)
    command = "\n".join((*(RUNS[name] for name in COMPARISON), f"tkperf compare {files} --html comparison.html"))
    yield from _show(command, build_comparison_page(compare(pair)), set())


def charts_of(view: ReportView) -> list[ChartView]:
    """Return the charts of a page in the order of the page."""
    of_tests = (
        chain(*(section.charts for section in test.sections), test.charts, test.events.charts) for test in view.tests
    )
    return [one for one in chain(view.lead_charts, view.overview_charts, *of_tests) if one.chart.drawable]


def _show(command: str, page: ReportView, shown: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the pictures of a page. Kinds of charts that an earlier page already showed are left out."""
    is_first = True
    for one in charts_of(page):
        question = one.question or one.chart.title
        new = {(question, view.figure.kind if view.figure else ""): view for view in reversed(one.views)}
        new = {key: view for key, view in reversed(new.items()) if key not in shown and view.chart.drawable}
        if not new:
            continue
        shown.update(new)
        if is_first:
            yield f"```sh\n{command}\n```\n"
        is_first = False
        names = [f"*{name}*" for name in dict.fromkeys(", ".join(each.choice) for each in one.views if each.choice)]
        if len(names) > MOST_VIEWS:
            names[MOST_VIEWS:] = [f"and {len(names) - MOST_VIEWS} more"]
        yield _wrap(
            f"**{question}**" + (f" The chart has these views: {'; '.join(names)}." if one.others and names else "")
        )
        for view in new.values():
            number = len(list(GALLERY.iterdir())) + 1
            draw_picture(view.chart, GALLERY / f"{number:02}.png")
            yield f"![{view.chart.title}](gallery/{number:02}.png)\n"


def draw_picture(chart: AnyChart, path: Path) -> None:
    """Write a small picture of a chart with few colours."""
    (drawing,) = draw_all([draw(_without_alignment(chart)) | {"width": SMALL_PX, "padding": 8}])
    picture = Image.open(io.BytesIO(load_vega().svg_to_png(drawing, scale=1.0))).convert("RGB")
    picture.quantize(SHADES, dither=Image.Dither.NONE).save(path, optimize=True)


def _without_alignment(chart: AnyChart) -> AnyChart:
    return replace(chart, aligned=False) if isinstance(chart, Chart) else chart


def _wrap(text: str) -> str:
    return textwrap.fill(text, 100, break_on_hyphens=False, break_long_words=False) + "\n"


def find_section(result: RunResult, test: str, name: str = "") -> SectionResult:
    """Return the first section of a test, or the section with this name."""
    sections = next(each for each in result.tests if each.name == test).sections
    return next(section for section in sections if name in ("", section.name))


def iops(cell: CellResult) -> float:
    return value_of(cell.all, "iops")


def value_of(figures: Figures, key: str) -> float:
    value = figures[key]
    assert value is not None
    return float(value)


def draw_states(runs: Runs) -> Chart:
    """Return a chart of random writes to a purged drive until their rate no longer changes."""
    slices = find_section(runs.load("fresh"), "hir").slices
    hours = [each.start_s / 3600 for each in slices]
    values = [iops(each.values) for each in slices]
    settled = median(values[-len(values) // 5 :])
    fresh_end = next(at for at, value in zip(hours, values, strict=True) if value < 0.95 * values[0])
    steady_from = next(at for at, value in zip(hours, values, strict=True) if value < 1.05 * settled)
    top = 1.08 * values[0]
    return Chart(
        title="Random 4 KiB writes to a purged drive",
        keywords="SIMULATED: sim:sata-ssd",
        x=Axis(title="Time (h)", includes=(0.0,)),
        y=Axis(title="IOPS"),
        curves=(Curve(points=tuple(map(Point, hours, values))),),
        rules=(
            name_stretch("fresh", 0.0, fresh_end, top),
            name_stretch("transition", fresh_end, steady_from, top),
            name_stretch("steady state", steady_from, hours[-1], top),
            *(Rule(kind=RuleKind.BOUNDARY, x=at) for at in (fresh_end, steady_from)),
        ),
        legend=Legend.NONE,
    )


def name_stretch(name: str, begin: float, end: float, y: float) -> Rule:
    """Return a line above a part of the x axis, with a name for this part."""
    return Rule(kind=RuleKind.LEVEL, x=begin, x_end=end, y=y, name=name)


def draw_demand(quantity: str, title: str, axis: str, scale: Scale) -> Callable[[Runs], Chart]:
    """Return a function that draws a quantity over the number of outstanding I/Os, with a curve for each thread
    count.
    """

    def build(runs: Runs) -> Chart:
        cells = find_section(runs.load("sweep"), "sweep").cells
        threads = sorted({cell.workload.jobs for cell in cells})
        curves = tuple(
            Curve(
                name=f"TC {jobs}",
                colour=PALETTE[number],
                dash=number % 4,
                dots=True,
                points=tuple(
                    Point(float(cell.workload.jobs * cell.workload.io_depth), value_of(cell.all, quantity))
                    for cell in sorted(cells, key=lambda each: each.workload.io_depth)
                    if cell.workload.jobs == jobs
                ),
            )
            for number, jobs in enumerate(threads)
        )
        return Chart(
            title=title,
            keywords="SIMULATED: sim:nvme-4kn",
            x=Axis(title="Outstanding I/Os (OIO = TC × QD)", scale=Scale.LOG),
            y=Axis(title=axis, scale=scale),
            curves=curves,
            rules=(Rule(kind=RuleKind.CHANGE, x=256.0, name="saturated"),),
            series="Threads",
            legend=Legend.TOP,
        )

    return build


def draw_phases(runs: Runs) -> AnyChart:
    """Return a chart of what the IOPS test did to the device, as in the report, with the names of the phases."""
    chart = _without_alignment(next(one for one in charts_of(runs.view("sata")) if one.question == DONE).chart)
    assert isinstance(chart, Chart)
    test = next(each for each in runs.load("sata").tests if each.name == "iops")
    begin = test.steps[0].started_s
    steps = [step for step in test.steps if step.kind is StepKind.ROUND]
    rounds = sorted({step.number for step in steps})
    starts = [min(step.started_s for step in steps if step.number == each) - begin for each in rounds]
    last = test.steps[-1]
    ends = [*starts[1:], last.started_s + last.duration_s - begin]
    top = 1.07 * max(point.y or 0.0 for curve in chart.curves for point in curve.points)
    phases = [(f"round {each}", *place) for each, place in zip(rounds, zip(starts, ends, strict=True), strict=True)]
    return replace(
        chart,
        title="The IOPS test: preconditioning and rounds",
        keywords="SIMULATED: sim:sata-ssd",
        rules=(
            *(name_stretch(name, start / 3600, end / 3600, top) for name, start, end in phases),
            *(Rule(kind=RuleKind.BOUNDARY, x=start / 3600) for _, start, _ in phases),
            Rule(kind=RuleKind.CHANGE, x=0.0, name="purge"),
        ),
    )


def draw_window(runs: Runs) -> Chart:
    """Return a chart of the tracking variable of the IOPS test, round by round, with its window."""
    section = find_section(runs.load("search"), "auto-demand")
    verdict = section.verdict
    assert verdict is not None
    tracked = [
        (float(each.number), iops(max(each.cells, key=lambda cell: cell.workload.jobs * cell.workload.io_depth)))
        for each in section.rounds
    ]
    first, last = section.window[0], section.window[-1]
    of_window = [value for number, value in tracked if first <= number <= last]
    low, high = min(of_window), max(of_window)
    excursion = 100 * (high - low) / (sum(of_window) / len(of_window))
    reference = Rule(kind=RuleKind.REFERENCE, x=float(first), x_end=float(last))
    return Chart(
        title="The tracking variable, round by round",
        keywords="SIMULATED: sim:sata-ssd",
        x=Axis(title="Round", includes=(1.0,), zero=False, ticks=tuple(number for number, _ in tracked)),
        y=Axis(title="IOPS"),
        curves=(Curve(points=tuple(Point(*each) for each in tracked), dots=True),),
        shades=(Shade(kind=ShadeKind.JUDGED, begin=first, end=last, text="window"),),
        rules=(
            Rule(kind=RuleKind.CHANGE, x=float(first), name="window of five rounds"),
            replace(reference, y=high, name="largest value"),
            replace(
                reference, y=low, name=f"smallest value: data excursion {excursion:.1f} % of the average", below=True
            ),
        ),
        legend=Legend.NONE,
    )


def draw_tail(runs: Runs) -> Distribution:
    """Return a chart of the response times of single I/Os, with the mean, percentiles and maximum."""
    section = find_section(runs.load("sata"), "lat", "Response time histogram")
    (cell,) = section.cells
    marks = {
        "latency_mean_us": "mean",
        "p50_us": "p50",
        "p99_us": "p99",
        "p99.9_us": "p99.9",
        "p99.99_us": "p99.99",
        "latency_max_us": "maximum",
    }
    return Distribution(
        title="How long single I/Os took: random 4 KiB writes, one outstanding I/O",
        keywords="SIMULATED: sim:sata-ssd",
        buckets=tuple(Bucket(*each) for each in section.histogram_us),
        marks=tuple(Marked(name, value_of(cell.all, key), name) for key, name in marks.items()),
    )


def draw_cache(runs: Runs) -> Chart:
    """Return a chart of the first minutes of random writes to a client drive with an SLC cache."""
    points: list[tuple[float, float]] = []
    with tkperf.open_run(runs.path("cache")) as opened:
        (test,) = opened.record().tests
        for columns in opened.seconds(test)[:2]:
            begin = len(points)
            points += [(begin + float(at), float(rate)) for at, rate in zip(columns.start_s, columns.iops, strict=True)]
    full = next(at for at, rate in points if rate < 0.7 * points[0][1])
    top = 1.1 * points[0][1]
    return Chart(
        title="Random 4 KiB writes to a purged client drive, second by second",
        keywords="SIMULATED: sim:client-tlc",
        x=Axis(title="Time (s)", includes=(0.0,)),
        y=Axis(title="IOPS"),
        curves=(Curve(points=tuple(Point(*each) for each in points)),),
        rules=(
            name_stretch("the writes fit into the cache", 0.0, full, top),
            name_stretch("the cache is full", full, points[-1][0], top),
            Rule(kind=RuleKind.BOUNDARY, x=full),
        ),
        legend=Legend.NONE,
    )


def draw_heat(runs: Runs) -> Chart:
    """Return a chart of sequential reads of a drive without cooling. The chart marks the time in which the drive
    reports throttling.
    """
    slices = find_section(runs.load("heat"), "heat", "Sequential reads").slices
    minutes = [(each.start_s / 60, value_of(each.values.all, "megabytes_per_s")) for each in slices]
    throttled = [each for each in slices if each.values.disturbances]
    begin = throttled[0].start_s / 60
    end = (throttled[-1].start_s + throttled[-1].duration_s) / 60
    top = 1.1 * minutes[0][1]
    return Chart(
        title="Sequential 128 KiB reads of a drive without cooling",
        keywords="SIMULATED: sim:client-tlc",
        x=Axis(title="Time (min)", includes=(0.0,)),
        y=Axis(title="MB/s"),
        curves=(Curve(points=tuple(Point(*each) for each in minutes)),),
        shades=(Shade(kind=ShadeKind.THROTTLED, begin=begin, end=end),),
        rules=(
            name_stretch("cool", 0.0, begin, top),
            name_stretch("throttled, according to the drive's log (read once a minute)", begin, end, top),
        ),
        legend=Legend.NONE,
    )


CHARTS: dict[str, Callable[[Runs], AnyChart]] = {
    "states": draw_states,
    "demand-iops": draw_demand("iops", "More outstanding I/Os: more IOPS", "IOPS", Scale.LINEAR),
    "demand-latency": draw_demand(
        "latency_mean_us", "More outstanding I/Os: longer response times", "Mean latency (µs)", Scale.LOG
    ),
    "phases": draw_phases,
    "window": draw_window,
    "tail": draw_tail,
    "cache": draw_cache,
    "heat": draw_heat,
}

if __name__ == "__main__":
    main()
