"""Measure how long a report (HTML and PDF) of a full run of all four tests takes.

For comparison, the script also runs the libraries with which TKperf 2.2 makes its report, on the same results.
matplotlib draws the twelve plots at 300 dpi, and rst2pdf then typesets them with the tables. The script installs these
libraries into a separate folder. Each measurement starts a new process. Before the measurements, an additional call
compiles the modules; its time is not counted. The printed ratio is the median of TKperf's libraries divided by the
median of tkperf.

    python bench/report_time.py [--times 5] [--profile pts-e-1.1]

With ``--pages``, the script measures only the HTML pages of the given run files: the number of bytes for each kind of
content, and the seconds until Chromium has drawn the first chart. ``--against`` names the tkperf of another version.
Pages of both versions are opened alternately, and each printed ratio is the old value divided by the new value.

    python bench/report_time.py --pages four.tkperf all.tkperf --against OLD/.venv/bin/tkperf
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

TKPERF = Path(sys.executable).parent / "tkperf"

# This code runs in the other environment, which does not contain tkperf, so it receives the results as JSON.
OF_TKPERFS_LIBRARIES = """
import json, sys
from pathlib import Path
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

def flat(value):
    # Each cell's workload and quantities side by side.
    if isinstance(value, list):
        return [flat(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "workload" in value and "all" in value:
        return {**value["workload"], **value["all"]}
    return {key: flat(each) for key, each in value.items()}


run = flat(json.loads(Path(sys.argv[1]).read_text()))
folder = Path(sys.argv[2])
tests = {test["name"]: test["sections"] for test in run["tests"]}
lines = ["Report", "======", ""]


def save(name):
    plt.savefig(folder / name, dpi=300)
    plt.close()
    lines.extend([".. figure:: " + name, "   :scale: 65%", ""])


def curves(title, ylabel, series):
    for label, (x, y) in series.items():
        plt.plot(x, y, "o-", label=label)
    plt.title(title)
    plt.xlabel("Round #")
    plt.ylabel(ylabel)
    plt.legend()


def by_size(section, mix, key):
    series = {}
    for each in section["rounds"]:
        for cell in each["cells"]:
            if cell["read_percent"] == mix:
                x, y = series.setdefault(cell["block_size_bytes"], ([], []))
                x.append(each["number"])
                y.append(cell[key])
    return series


def verification(section):
    verdict = section["verdict"]
    x, average = verdict["rounds"], verdict["average"]
    curves("Steady state verification", verdict["unit"], {
        "measured": (x, verdict["values"]),
        "average": (x, [average] * len(x)),
        "110 %": (x, [1.1 * average] * len(x)),
        "90 %": (x, [0.9 * average] * len(x)),
        "slope": (x, [verdict["fit"]["slope"] * at + verdict["fit"]["intercept"] for at in x]),
    })


def bars_3d(axes, section, key):
    mixes = list(dict.fromkeys(cell["read_percent"] for cell in section["cells"]))
    sizes = sorted({cell["block_size_bytes"] for cell in section["cells"]})
    for cell in section["cells"]:
        axes.bar3d(mixes.index(cell["read_percent"]), sizes.index(cell["block_size_bytes"]), 0,
                   0.6, 0.6, cell[key])


def table(section, key):
    mixes = list(dict.fromkeys(cell["read_percent"] for cell in section["cells"]))
    sizes = sorted({cell["block_size_bytes"] for cell in section["cells"]})
    cells = {(c["read_percent"], c["block_size_bytes"]): c[key] for c in section["cells"]}
    lines.extend([".. csv-table::", "   :header: size," + ",".join(map(str, mixes)), ""])
    for size in sizes:
        lines.append("   " + ",".join([str(size)] + ["%.1f" % cells[mix, size] for mix in mixes]))
    lines.append("")


def heading(text):
    lines.extend([text, "-" * len(text), ""])


heading("IOPS")
(iops,) = tests["iops"]
curves("Convergence", "IOPS", by_size(iops, 0, "iops"))
save("iops-convergence.png")
verification(iops)
save("iops-verification.png")
for mix in dict.fromkeys(cell["read_percent"] for cell in iops["cells"]):
    chosen = [cell for cell in iops["cells"] if cell["read_percent"] == mix]
    plt.loglog([c["block_size_bytes"] for c in chosen], [c["iops"] for c in chosen], "o-", label=mix)
plt.legend()
save("iops-2d.png")
bars_3d(plt.figure().add_subplot(projection="3d"), iops, "iops")
save("iops-3d.png")
table(iops, "iops")

heading("Throughput")
figure, both = plt.subplots(2)
for axes, mix in zip(both, (0, 100)):
    for section in tests["tp"]:
        for size, (x, y) in by_size(section, mix, "megabytes_per_s").items():
            axes.plot(x, y, "o-", label=size)
    axes.legend()
save("tp-convergence.png")
verification(tests["tp"][0])
save("tp-verification.png")
for section in tests["tp"]:
    for cell in section["cells"]:
        plt.barh(str((cell["block_size_bytes"], cell["read_percent"])), cell["megabytes_per_s"])
save("tp-2d.png")
for section in tests["tp"]:
    table(section, "megabytes_per_s")

heading("Latency")
latency = tests["lat"][0]
figure, three = plt.subplots(3)
for axes, mix in zip(three, (100, 65, 0)):
    for size, (x, y) in by_size(latency, mix, "latency_mean_us").items():
        axes.plot(x, y, "o-", label=size)
    axes.legend()
save("lat-convergence.png")
verification(latency)
save("lat-verification.png")
figure = plt.figure()
bars_3d(figure.add_subplot(2, 1, 1, projection="3d"), latency, "latency_mean_us")
bars_3d(figure.add_subplot(2, 1, 2, projection="3d"), latency, "latency_max_us")
save("lat-3d.png")
table(latency, "latency_mean_us")
table(latency, "latency_max_us")

heading("Write Saturation")
slices = tests["writesat"][0]["slices"]
x = [each["number"] for each in slices]
curves("IOPS", "IOPS", {"IOPS": (x, [each["values"]["iops"] for each in slices])})
save("writesat-iops.png")
curves("Latency", "us", {
    key: (x, [each["values"]["latency_" + key + "_us"] for each in slices])
    for key in ("mean", "min", "max")
})
save("writesat-latency.png")
(folder / "report.rst").write_text("\\n".join(lines))

from rst2pdf.createpdf import main
main(["--quiet", str(folder / "report.rst"), "-o", str(folder / "report.pdf")])
"""


def timed(argv: list[str | Path], times: int, **environment: str) -> list[float]:
    """Run a command several times. Return the seconds of each call."""
    took = []
    for _ in range(times):
        variables = {**os.environ, **environment}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)  # remove a variable that users do not normally set
        began = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=variables)
        took.append(time.perf_counter() - began)
    return took


# Regular expressions that match the beginning of the HTML elements, for each kind of content.
KINDS = {
    "charts": r'<script type="application/json" data-key[^>]*>',
    "cells": r'<script type="application/json" id="cell[^>]*>',
    "scripts": r'<script type="module">',
    "styles": "<style>",
}


def measure_bytes(page: Path) -> dict[str, int]:
    """Return the number of bytes for each kind of content in a page. ``text`` contains all content that belongs to no
    other kind.
    """
    text = page.read_text("utf-8")
    sizes = {}
    for kind, begins in KINDS.items():
        found = re.findall(rf"(?s){begins}(.*?)</(?:script|style)>", text)
        sizes[kind] = sum(len(each.encode()) for each in found)
    return {"all": page.stat().st_size, **sizes, "text": page.stat().st_size - sum(sizes.values())}


def time_opening(pages: list[Path], times: int) -> list[float]:
    """Return the median number of seconds until the first chart of each page is drawn. The pages are opened
    alternately.
    """
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only this measurement needs it

    took: list[list[float]] = [[] for _ in pages]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(times):
            for page, seconds in zip(pages, took, strict=True):
                tab = browser.new_page()
                began = time.perf_counter()
                tab.goto(page.as_uri(), wait_until="commit")
                tab.wait_for_selector("figure svg.marks", timeout=300_000)
                seconds.append(time.perf_counter() - began)
                tab.close()
        browser.close()
    return [statistics.median(seconds) for seconds in took]


def compare_pages(run_files: list[Path], against: Path | None, times: int) -> None:
    """Print the sizes of the pages of run files and the times to open these pages, each with the ratio of the old value
    to the new value.
    """
    with tempfile.TemporaryDirectory() as temporary:
        for run_file in run_files:
            pages = []
            for number, tkperf in enumerate(filter(None, (TKPERF, against))):
                page = Path(temporary) / f"{run_file.stem}-{number}.html"
                subprocess.run([tkperf, "report", run_file, "-o", page], check=True, stdout=subprocess.DEVNULL)
                pages.append(page)
            sizes = [measure_bytes(page) for page in pages]
            for kind in sizes[0]:
                values = [of[kind] / 1e6 for of in sizes]
                print(f"{run_file.name} {kind}: {_with_ratio(values, 'MB')}")
            print(f"{run_file.name} first chart: {_with_ratio(time_opening(pages, times), 's')}")


def _with_ratio(values: list[float], unit: str) -> str:
    new, *old = values
    return f"{new:.2f} {unit}" + "".join(f"; before {each:.2f} {unit}, ratio {each / new:.2f}" for each in old)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--profile", default="pts-e-1.1")
    parser.add_argument("--pages", type=Path, nargs="+", metavar="RUN_FILE", help="measure the pages of these runs")
    parser.add_argument("--against", type=Path, metavar="TKPERF", help="with --pages: the tkperf of another version")
    arguments = parser.parse_args()
    if arguments.pages:
        compare_pages(arguments.pages, arguments.against, arguments.times)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run = folder / "run.tkperf"
        subprocess.run(
            [
                TKPERF,
                "ssd",
                "run",
                "sim:sata-ssd",
                "--profile",
                arguments.profile,
                "-q",
                "--no-report",
                "--output",
                folder,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        html, pdf = folder / "run.html", folder / "run.pdf"
        report: list[str | Path] = [TKPERF, "report", run, "-o", html, "--pdf", pdf]
        cache = {"XDG_CACHE_HOME": str(folder / "cache")}
        (first,) = timed(report, 1, **cache)
        ours = timed(report, arguments.times, **cache)
        pages = len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))
        print(
            f"tkperf, HTML and PDF:     median {statistics.median(ours):.2f} s of {len(ours)} "
            f"(best {min(ours):.2f}, worst {max(ours):.2f}); the first on a machine {first:.2f} s"
        )
        print(
            f"  HTML {html.stat().st_size / 1e6:.1f} MB, PDF {pdf.stat().st_size / 1e6:.1f} MB of "
            f"{pages} pages, run file {run.stat().st_size / 1e6:.1f} MB"
        )

        results = folder / "run.json"
        subprocess.run([TKPERF, "report", run, "--json", results], check=True, stdout=subprocess.DEVNULL)
        venv.create(folder / "other", with_pip=True)
        other = folder / "other/bin/python"
        subprocess.run([other, "-m", "pip", "install", "--quiet", "matplotlib", "rst2pdf"], check=True)
        script = folder / "other.py"
        script.write_text(OF_TKPERFS_LIBRARIES)
        timed([other, script, results, folder], 1)
        theirs = timed([other, script, results, folder], arguments.times)
        print(
            f"matplotlib and rst2pdf:   median {statistics.median(theirs):.2f} s of {len(theirs)} "
            f"(best {min(theirs):.2f}, worst {max(theirs):.2f}), PDF with 12 plots, no HTML"
        )
        print(f"ratio: {statistics.median(theirs) / statistics.median(ours):.1f}")


if __name__ == "__main__":
    main()
