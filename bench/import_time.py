"""Measure how much time and memory the import of fio's files needs.

The script writes result files of the IOPS test of a specification: rounds of 7 mixes x 8 block sizes, in json+ format
with the latency bins of both directions. It imports 100, 1,000 and 7,000 of these files, each set in a separate
process. It prints the time and the peak memory of the import. For comparison, it prints the time and the peak memory of
a process that only reads the same files with json.loads.

    python bench/import_time.py [--files 100 1000 7000] [--folder /var/tmp]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

MIXES = (100, 95, 65, 50, 35, 5, 0)
SIZES = (512, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 1_048_576)
BINS = 400
FIRST_MS = 1_700_000_000_000
ONLY_LOADS = (
    "import json, sys\nfor name in open(sys.argv[1]).read().splitlines():\n"
    "    with open(name) as file: json.loads(file.read())"
)
IMPORT = (
    "import sys\nfrom tkperf.cli.main import main\n"
    "names = open(sys.argv[1]).read().splitlines()\n"
    "sys.argv = ['tkperf', 'import', *names, '--name', 'bench', '--output', sys.argv[2]]\nmain()"
)


def _direction(ios: int, size: int, chance: random.Random) -> dict[str, object]:
    base = chance.randrange(5_000, 20_000)
    counts = [chance.randrange(1, 1000) for _ in range(BINS)] if ios else []
    found: dict[str, object] = {
        "io_bytes": ios * size,
        "io_kbytes": ios * size // 1024,
        "bw_bytes": ios * size // 60,
        "bw": ios * size // 60 // 1024,
        "iops": ios / 60,
        "runtime": 60_000 if ios else 0,
        "total_ios": ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": {"min": 900, "max": 90_000, "mean": 1500.1, "stddev": 200.5},
        "bw_min": 1,
        "bw_max": 9,
        "bw_agg": 100.0,
        "iops_mean": ios / 60,
        "iops_samples": 120,
    }
    for name in ("clat_ns", "lat_ns"):
        found[name] = {
            "min": base,
            "max": base * 90,
            "mean": base * 3.5,
            "stddev": base / 3,
            "N": ios,
            "bins": {str(base + 300 * each): count for each, count in enumerate(counts)},
        }
    return found


def write_files(folder: Path, count: int) -> list[Path]:
    """Write the given number of files, with as many rounds as this number requires."""
    chance, paths = random.Random(1), []
    for number in range(count):
        turn, cell = divmod(number, len(MIXES) * len(SIZES))
        mix, size = MIXES[cell // len(SIZES)], SIZES[cell % len(SIZES)]
        ios = chance.randrange(500_000, 520_000)
        reads = ios * mix // 100
        options = {
            "name": "job",
            "filename": "/dev/sdb",
            "iodepth": "8",
            "numjobs": "16",
            "bs": str(size),
            "rw": "randrw",
            "rwmixread": str(mix),
            "runtime": "60",
            "direct": "1",
        }
        document = {
            "fio version": "fio-3.33",
            "timestamp": (FIRST_MS + number * 61_000) // 1000,
            "timestamp_ms": FIRST_MS + number * 61_000,
            "jobs": [
                {
                    "jobname": "job",
                    "groupid": 0,
                    "error": 0,
                    "job options": options,
                    "read": _direction(reads, size, chance),
                    "write": _direction(ios - reads, size, chance),
                    "trim": _direction(0, size, chance),
                    "job_runtime": 16 * 60_000,
                }
            ],
        }
        paths.append(folder / f"fio_pass={turn + 1}_rw={mix}_bs={size}.json")
        paths[-1].write_text(json.dumps(document, indent=2))
    return paths


def run(program: str, *words: str) -> tuple[float, float, float]:
    """Run a separate program. Return its elapsed time and its CPU time in seconds, and its peak memory in MB."""
    begun = time.monotonic()
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program, *words], dict(os.environ))
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"failed with status {status}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return time.monotonic() - begun, cpu_s, usage.ru_maxrss / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 1000, 7000])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        paths = write_files(folder, max(args.files))
        size_mb = sum(path.stat().st_size for path in paths) / 1e6 / len(paths)
        print(f"files of {size_mb * 1000:.0f} kB each")
        print("Seconds by the clock, seconds of CPU time, memory at most:")
        print(f"{'files':>6}  {'import':>23}  {'json.loads alone':>23}  run file")
        for count in args.files:
            listed, out = folder / "list", folder / f"out{count}"
            listed.write_text("\n".join(map(str, paths[:count])))
            sys.stdout.flush()
            ours, plain = run(IMPORT, str(listed), str(out)), run(ONLY_LOADS, str(listed))
            kept_mb = sum(path.stat().st_size for path in out.iterdir()) / 1e6
            said = "  ".join(
                f"{clock_s:>6.1f} s {cpu_s:>6.1f} s {peak_mb:>4.0f} MB" for clock_s, cpu_s, peak_mb in (ours, plain)
            )
            print(f"{count:>6,}  {said}  {kept_mb:>5.1f} MB")


if __name__ == "__main__":
    main()
