"""Measure how long ``tkperf rank`` and ``tkperf export`` take for each run.

The script measures a first call and later calls, and the time of queries on the exported data set.

The files are copies of one run with other UUIDs, drives and dates, as in bench/serve.py. A first call analyses each
file, and a later call reads the results from the cache.

    python bench/export_time.py [--files 200] [--source RUN.tkperf] [--seconds]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb
from serve import make_files, simulate

TKPERF = Path(sys.executable).parent / "tkperf"
PAGE = Path(__file__).parents[1] / "docs/how-to/many-runs.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--source", type=Path, help="a run file to copy, instead of a simulated run")
    parser.add_argument("--seconds", action="store_true", help="export every second, too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, dataset = Path(scratch) / "runs", Path(scratch) / "fleet"
        os.environ["XDG_CACHE_HOME"] = str(Path(scratch) / "cache")
        size_mb = make_files(asked.source or simulate(Path(scratch)), folder, asked.files) / 1e6
        print(f"{asked.files} files, {size_mb:,.0f} MB")
        export = ["export", folder, "--parquet", dataset, *([] if asked.seconds else ["--no-seconds"])]
        for title, words in (
            ("rank, nothing kept", ["rank", folder]),
            ("rank, figures kept", ["rank", folder, "--by", "single-write"]),
            ("export, results kept", export),
            ("export, nothing new", export),
        ):
            wall_s, cpu_s = measure(words)
            print(f"{title}: {wall_s:.1f} s ({1e3 * wall_s / asked.files:.1f} ms a run), CPU {cpu_s:.1f} s")
        files = [path for path in dataset.rglob("*") if path.is_file()]
        print(f"data set: {len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:,.1f} MB")
        ask(dataset)


def measure(words: Sequence[object]) -> tuple[float, float]:
    """Run a command. Return its elapsed time and its CPU time in seconds."""
    began_s, before = time.monotonic(), os.times()
    subprocess.run([str(TKPERF), *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began_s, cpu_s


def ask(dataset: Path) -> None:
    """Measure the time of each query in the documentation."""
    database = duckdb.connect()
    for section in re.split(r"^#+ ", PAGE.read_text(), flags=re.M):
        for block in re.findall(r"```sql\n(.*?)```", section, re.S):
            began_s = time.monotonic()
            for sql in filter(str.strip, block.split(";")):
                database.execute(sql.replace("/srv/fleet", str(dataset))).fetchall()
            title = section.partition("\n")[0]
            print(f"query '{title}': {time.monotonic() - began_s:.2f} s")


if __name__ == "__main__":
    main()
