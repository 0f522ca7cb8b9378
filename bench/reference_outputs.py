"""Show whether a change of the code changes the output that users see.

The script writes the outputs of about thirty runs, so that two checkouts can be compared byte by byte.

``make`` runs the tkperf of the checkout. In each call, ``make`` performs the simulated runs (with all profiles and
presets, with workload files, sweeps and a batch) and the imports. Real runs on a scratch file (and, as root, on a loop
device) are performed only once. Their run files are stored in the folder ``--kept``, and later calls only render them.
One of the real runs is interrupted and resumed. For every run, the script writes all outputs: the terminal with 80 and
200 columns, HTML, the text of the PDF, Markdown, JSON, CSV, the schema of Parquet, TKperf's XML, OpenMetrics and line
protocol. For batches, it also writes JUnit and mail. Comparisons and checks follow. Words that differ between two calls
of the same program are replaced with fixed words: dates, times of day, test IDs, UUIDs, folders, the command line and
the state of the host.

    python bench/reference_outputs.py make FOLDER [--kept FOLDER] [--only NAME,...]
    python bench/reference_outputs.py compare OLD NEW

``compare`` prints which files differ, with their first differing lines. It ends with exit status 1 if any file differs.
"""

from __future__ import annotations

import argparse
import difflib
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet
from handover_gap import loop_device

ROOT = Path(__file__).parents[1]
TKPERF = Path(sys.executable).with_name("tkperf")
GOLDEN = ROOT / "tests" / "golden"
WIDTHS = (80, 200)
# The first rounds of the run end within this time, before the run is interrupted.
INTERRUPTED_AFTER_S = 40.0
MOST_DIFFERENT_LINES, LONGEST_LINE = 6, 200

QUICK = ("--profile", "quick")
PROFILES = ("pts-e-1.1", "pts-2.0", "pts-2.0-client", "pts-c-1.2", "tkperf-2.2", "myce")
# The script runs all tests of these profiles. The other profiles have few tests, or tests that would take longer than a
# simulated day.
WITH_ALL_TESTS = ("pts-e-1.1", "pts-2.0", "pts-2.0-client")
PRESETS = ("sata-ssd", "nvme-4kn", "client-tlc", "client-qlc", "unsteady", "cliffs", "spikes-13min", "dying")

FIO_JOB = """\
[global]
ioengine=libaio
direct=1
time_based
runtime=5
size=100%
[lookups]
rw=randrw
rwmixread=70
bs=8k
iodepth=8
numjobs=2
"""
CLAIMS = """\
[[claim]]
test = "iops"
metric = "iops"
read_percent = 100
block_size = "4k"
at_least = 10000
source = "data sheet"
[[claim]]
test = "iops"
metric = "iops"
read_percent = 0
block_size = "4k"
at_least = 100000000
source = "a claim that no drive meets"
"""
BATCH = """\
suite = "ssd"
profile = "quick"
tests = ["iops", "lat"]
claims = "claims.toml"
drives = ["sim:sata-ssd", "sim:nvme-4kn", "sim:dying"]
"""

MASKS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"20\d\d-\d\d-\d\d([T ,]+\d\d[:.]\d\d([:.]\d\d(\.\d+)?)?)?( ?(Z|UTC|GMT)\b|[+-]\d\d:?\d\d\b)?", "DATE"),
    (r"20\d{6}T\d{6}", "DATE"),
    # The scripts in pages contain names of modules. Modules can be renamed without a visible change.
    (r"\b[a-z_/]+\.py\b", "MODULE"),
    (r"\b1[789]\d{17}\b", "NANOSECONDS"),
    (r"\b1[789]\d{8}(\.\d+)?\b", "SECONDS"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the reference. ``words`` contains the arguments of ``tkperf``. The word ``NAME`` is replaced with the
    name of the run.
    """

    name: str
    words: tuple[str, ...]
    suffix: str = "tkperf"

    @property
    def file(self) -> str:
        return f"{self.name}.{self.suffix}"


def simulated_runs() -> Iterator[Run]:
    """Yield the runs on simulated drives. They cover all profiles, all presets, and each command that measures."""
    for profile in PROFILES:
        tests = ("--test", "all") if profile in WITH_ALL_TESTS else ()
        yield Run(f"profile-{profile}", ("ssd", "NAME", "sim:sata-ssd", "--profile", profile, *tests))
    for preset in PRESETS:
        # The block sizes of the test cbw are not multiples of 4,096 bytes.
        chosen = "iops,lat,tp,writesat,dirth,hir,xsr,demand,qos" if preset.endswith("4kn") else "all"
        yield Run(f"preset-{preset}", ("ssd", "NAME", f"sim:{preset}", *QUICK, "--test", chosen))
    altered = ("-nj", "2", "-iod", "8", "-rt", "3", "--active-range", "50%", "--no-purge")
    yield Run("altered", ("ssd", "NAME", "sim:sata-ssd", *QUICK, *altered))
    yield Run("auto-demand", ("ssd", "NAME", "sim:nvme-4kn", *QUICK, "--auto-demand"))
    yield Run("workload", ("ssd", "NAME", "sim:nvme-4kn", "--test", "workload.toml"))
    yield Run("disk", ("hdd", "NAME", "sim:hdd"))
    yield Run("sweep", ("sweep", "NAME", "sim:nvme-4kn", *QUICK))
    yield Run("batch", ("batch", "NAME", "batch.toml"), suffix="batch")


def imported_runs() -> Iterator[Run]:
    """Yield imports of TKperf's XML and of fio's JSON."""
    xml = str(GOLDEN / "tkperf-2.2-tp.xml")
    yield Run("import-xml", ("import", xml, "--name", "NAME"))
    for version in ("3.33", "3.42"):
        yield Run(f"import-{version}", ("import", f"fio-{version}.json", "--name", "NAME"))


def real_runs() -> Iterator[Run]:
    """Yield the runs with real I/O. ``LOOP`` in the arguments of these runs is replaced with a loop device."""
    short = ("-rt", "2", *QUICK)
    size = ("--size", "256MiB", *short)
    yield Run("file", ("ssd", "NAME", "./file.img", *size, "--test", "iops,lat"))
    yield Run("interrupted", ("ssd", "NAME", "./interrupted.img", *size, "--test", "iops,tp"))
    if os.geteuid() == 0:
        yield Run("loop", ("ssd", "NAME", "LOOP", *short, "--test", "lat", "--yes-destroy", "LOOP"))


def environment(columns: int) -> dict[str, str]:
    """Return an environment in which no setting of the user affects the output."""
    fixed = {"COLUMNS": str(columns), "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    return {**os.environ, **fixed}


def call(folder: Path, *words: str, columns: int = 160) -> str:
    """Run tkperf in a folder. Return the command, the exit status and the output as one text."""
    done = subprocess.run(
        [TKPERF, *words],
        cwd=folder,
        env=environment(columns),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return f"$ tkperf {' '.join(words)}\n{done.stdout.decode(errors='replace')}exit code {done.returncode}\n"


def prepare(folder: Path) -> None:
    """Write the files that the runs read."""
    for version in ("3.33", "3.42"):
        packed = (GOLDEN / f"fio-{version}-randrw-2jobs.txt.xz").read_bytes()
        (folder / f"fio-{version}.json").write_bytes(lzma.decompress(packed))
    (folder / "lookups.fio").write_text(FIO_JOB)
    (folder / "claims.toml").write_text(CLAIMS)
    (folder / "batch.toml").write_text(BATCH)
    call(folder, "workload", "from-fio", "lookups.fio", "-o", "workload.toml")


def measure(run: Run, folder: Path) -> str:
    """Perform one of the simulated runs or imports and return its output. The lines of a batch are sorted, because its
    drives print in any order.
    """
    printed = call(folder, *(word.replace("NAME", run.name) for word in run.words))
    return "\n".join(sorted(printed.splitlines())) if run.suffix == "batch" else printed


def measure_really(kept: Path) -> None:
    """Measure those real runs whose files do not exist yet. The interrupted run is resumed under another name."""
    kept.mkdir(parents=True, exist_ok=True)
    for run in real_runs():
        if (kept / run.file).exists():
            continue
        with loop_device(kept) if "LOOP" in run.words else nullcontext(Path()) as device:
            words = [w.replace("NAME", run.name).replace("LOOP", str(device)) for w in run.words]
            if run.name == "interrupted":
                interrupt(kept, words)
            else:
                print(call(kept, *words))
    resumed = kept / "resumed.tkperf"
    if not resumed.exists():
        shutil.copy(kept / "interrupted.tkperf", resumed)
        image = str(kept / "interrupted.img")
        print(call(kept, "resume", resumed.name, "--yes-destroy", image))


def interrupt(folder: Path, words: Sequence[str]) -> None:
    """Start a run, and interrupt it with SIGINT some time after its beginning."""
    process = subprocess.Popen([TKPERF, *words], cwd=folder, stdin=subprocess.DEVNULL)
    time.sleep(INTERRUPTED_AFTER_S)
    process.send_signal(signal.SIGINT)
    process.wait()


def outputs_of(file: str, folder: Path, into: Path) -> None:
    """Write all outputs of a run file or of a batch."""
    into.mkdir(parents=True)
    is_batch = file.endswith(".batch")
    for columns in WIDTHS:
        (into / f"show-{columns}.txt").write_text(call(folder, "show", file, columns=columns))
    (into / "show.json").write_text(call(folder, "show", file, "--json"))
    (into / "status.txt").write_text(call(folder, "status", file))
    options = ["--html", f"{into}/report.html", "--pdf", f"{into}/report.pdf", "--csv", f"{into}/csv"]
    options += ["--json", f"{into}/report.json", "--markdown", f"{into}/report.md"]
    if is_batch:
        options += ["--junit", f"{into}/junit.xml", "--mail", f"{into}/mail.txt"]
    else:
        options += ["--parquet", f"{into}/parquet", "--openmetrics", f"{into}/openmetrics.txt"]
        options += ["--line-protocol", f"{into}/line-protocol.txt", "--claims", "claims.toml"]
    (into / "report.txt").write_text(call(folder, "report", file, *options))
    if not is_batch:
        (into / "xml.txt").write_text(call(folder, "report", file, "--xml", f"{into}/tkperf.xml"))
        (into / "claims.txt").write_text(call(folder, "check", file, "claims.toml"))
    make_text(into)


def comparisons(folder: Path, into: Path) -> None:
    """Write comparisons of two runs and of several runs, as a cohort and as a history. Also write checks of several
    runs and a check against a baseline.
    """
    into.mkdir(parents=True)
    two = ("preset-sata-ssd.tkperf", "preset-nvme-4kn.tkperf")
    many = (*two, "preset-client-tlc.tkperf", "preset-unsteady.tkperf")
    for name, words in {
        "two": two,
        "same": (two[0], two[0]),
        "many": many,
        "cohort": ("--as", "cohort", *many),
        "history": ("--as", "history", *many),
        "imported": ("import-3.33.tkperf", "import-3.42.tkperf"),
    }.items():
        for columns in WIDTHS:
            text = call(folder, "compare", *words, columns=columns)
            (into / f"{name}-{columns}.txt").write_text(text)
        (into / f"{name}.txt").write_text(call(folder, "compare", *words, "-f", f"{into}/{name}"))
        if (into / name).is_dir():
            make_text(into / name)
    for options in (("--json",), ("--junit", "-"), ("--html", f"{into}/check.html")):
        name = f"check{options[0]}.txt"
        (into / name).write_text(call(folder, "check", *many, "claims.toml", *options))


def make_text(folder: Path) -> None:
    """Replace each binary file with text: a PDF with its words, a Parquet file with its schema, and an image with its
    size.
    """
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".pdf":
            subprocess.run(["pdftotext", "-layout", file, f"{file}.txt"], check=True)
        elif file.suffix == ".parquet":
            Path(f"{file}.txt").write_text(f"{pyarrow.parquet.read_schema(file)}\n")
        elif file.suffix == ".png":
            Path(f"{file}.txt").write_text(f"{file.name}: an image\n")
        else:
            continue
        file.unlink()


def mask(folder: Path, places: Sequence[Path]) -> None:
    """Replace words that differ between two calls of the same program."""
    masks = [(re.escape(str(place)), "FOLDER") for place in places] + list(MASKS)
    for file in folder.rglob("*"):
        if file.is_file():
            text = file.read_text(errors="replace")
            for pattern, word in masks:
                text = re.sub(pattern, word, text)
            file.write_text(text)


def make(folder: Path, kept: Path, only: Sequence[str]) -> None:
    folder = folder.resolve()
    kept = kept.resolve()
    if folder.exists():
        sys.exit(f"{folder} exists")
    work, outputs = folder / "work", folder / "outputs"
    work.mkdir(parents=True)
    outputs.mkdir()
    prepare(work)
    measure_really(kept)
    runs = [run for run in (*simulated_runs(), *imported_runs()) if not only or run.name in only]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for run, text in zip(runs, pool.map(lambda run: measure(run, work), runs), strict=True):
            (outputs / f"{run.name}.txt").write_text(text)
        for file in kept.glob("*.tkperf"):
            shutil.copy(file, work)
        files = sorted(file.name for file in (*work.glob("*.tkperf"), *work.glob("*.batch")))
        list(pool.map(lambda file: outputs_of(file, work, outputs / file), files))
    if not only:
        comparisons(work, outputs / "comparisons")
    mask(outputs, (outputs, work, kept, ROOT))
    print(f"{sum(file.is_file() for file in outputs.rglob('*'))} outputs of {len(files)} runs in {outputs}")


def compare(old: Path, new: Path) -> int:
    """Print the differences between two folders and return the exit status."""
    old, new = old / "outputs", new / "outputs"
    names = sorted({str(file.relative_to(top)) for top in (old, new) for file in top.rglob("*") if file.is_file()})
    different = 0
    for name in names:
        texts = [(top / name).read_text() if (top / name).exists() else "" for top in (old, new)]
        if texts[0] == texts[1]:
            continue
        different += 1
        print(f"--- {name}")
        lines = difflib.unified_diff(texts[0].splitlines(), texts[1].splitlines(), lineterm="", n=0)
        changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        for line in changed[:MOST_DIFFERENT_LINES]:
            print(f"    {line[:LONGEST_LINE]}")
        if len(changed) > MOST_DIFFERENT_LINES:
            print(f"    and {len(changed) - MOST_DIFFERENT_LINES} more lines")
    print(f"{different} of {len(names)} outputs differ")
    return 1 if different else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("--kept", type=Path, default=Path("/var/tmp/tkperf-reference"), help="real runs")
    making.add_argument("--only", default="", help="names of runs, with commas")
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        return compare(options.old, options.new)
    make(options.folder, options.kept, [name for name in options.only.split(",") if name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
