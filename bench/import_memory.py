"""Measure how much memory `tkperf import` needs in relation to the size of the imported file.

The script makes files of several shapes, and imports each file in a separate process. It prints the peak memory of the
import minus the peak memory of an import of a file without results, in MB and as a multiple of the file size.

    python bench/import_memory.py [--megabytes 176] [--shape NAME ...]

The exit status is 1 if the import of a file needs more than ten times the size of the file and also more than 64 MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MB = 1_000_000
ALWAYS_MB, MOST_TIMES = 67, 10

JOB = {
    "jobname": "j",
    "job options": {"rw": "randread", "bs": "4k", "runtime": "10", "time_based": "1", "direct": "1"},
    "read": {
        "total_ios": 1000,
        "io_bytes": 4096000,
        "runtime": 10000,
        "iops": 100.0,
        "bw": 400,
        "clat_ns": {
            "min": 1000,
            "max": 90000,
            "mean": 50000.5,
            "stddev": 10.0,
            "N": 1000,
            "bins": {str(1000 * n): n for n in range(1, 200)},
        },
    },
    "write": {"total_ios": 0, "io_bytes": 0, "runtime": 0},
}


def of_jobs(job: str):  # type: ignore[no-untyped-def]
    def make(size: int) -> str:
        head = '{"fio version":"fio-3.33","jobs":['
        return head + ",".join([job] * (size // (len(job) + 1))) + "]}"

    return make


def document(number: int, indent: int | None) -> str:
    fio = {"fio version": "fio-3.33", "timestamp_ms": 10**12 + 20_000 * number, "jobs": [JOB]}
    return json.dumps(fio, indent=indent)


def of_documents(indent: int | None):  # type: ignore[no-untyped-def]
    def make(size: int) -> str:
        one = document(0, indent)
        return "\n".join(document(n, indent) for n in range(size // len(one)))

    return make


def of_bins(size: int) -> str:
    latency = {"mean": 5.0, "N": 1000, "bins": {str(7 * n): 1 for n in range(size // 14)}}
    side = {"total_ios": 1000, "io_bytes": 4096000, "runtime": 10000, "lat_ns": latency}
    return json.dumps({"fio version": "fio-3.33", "jobs": [{**JOB, "read": side}]})


def of_digits(keys: int):  # type: ignore[no-untyped-def]
    """Return results with histograms of this number of bins. The number of different keys is so large that the decoder
    cannot share all of them.
    """
    return of_jobs("{" + ",".join(f'"{100 + n}":1' for n in range(keys)) + "}")


def of_small_jobs(size: int) -> str:
    """Return usable jobs that are as short as possible, in documents of a thousand jobs each."""
    jobs, documents = [], []
    for number in range(size // 128):
        jobs.append(
            f'{{"jobname":"{number}","job options":{{"rw":"read","bs":"4k"}},'
            f'"read":{{"total_ios":{1 + number},"io_bytes":4096,"runtime":1000}}}}'
        )
        if len(jobs) == 1000:
            documents.append('{"fio version":"fio-3.33","jobs":[' + ",".join(jobs) + "]}")
            jobs = []
    return "\n".join(documents)


def of_small_documents(size: int) -> str:
    """Return documents of one job each that are as short as possible."""
    return "".join(
        f'{{"jobs":[{{"job options":{{"rw":"read","bs":"4k"}},"read":{{"total_ios":{1 + number},"io_bytes":4096,'
        f'"runtime":1000}}}}]}}'
        for number in range(size // 110)
    )


def of_full_histograms(size: int) -> str:
    """Return realistic documents with full histograms and without white space."""
    bins = {str(64 * n + 10_000): 1000 + n for n in range(1400)}
    read = {"total_ios": 1000, "io_bytes": 4096000, "runtime": 10000}
    side = {**read, "clat_ns": {"min": 1000, "max": 90000, "mean": 50000.5, "bins": bins}}
    one = json.dumps({**JOB, "read": side}, separators=(",", ":"))
    return of_jobs(one)(size)  # type: ignore[no-any-return]


SHAPES = {
    "empty jobs": of_jobs("{}"),
    "empty arrays": of_jobs("[]"),
    "numbers": of_jobs("1.5"),
    "great numbers": of_jobs("1234567"),
    "short strings": of_jobs('"a"'),
    "other letters": of_jobs('"\U0001f600"'),
    "jobs of one key": of_jobs('{"a":0}'),
    "nested": of_jobs("[[[[[[[[]]]]]]]]"),
    "deep": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "deep objects": lambda size: '{"a":' * (size // 6) + "0" + "}" * (size // 6),
    "keys": lambda size: "{" + ",".join(f'"{n}":1' for n in range(size // 11)) + "}",
    "one string": lambda size: json.dumps({"fio version": "x" * size, "jobs": []}),
    "one wide string": lambda size: '{"jobs":["' + "x" * size + '\U0001f600"]}',
    "half surrogates": lambda size: '{"fio version":"' + "\\ud800" * (size // 6) + '"}',
    "C's words for no number": lambda size: '{"jobs":[' + "nan," * (size // 4) + "nan]}",
    "backslashes": lambda size: '{"jobs":["' + "\\qq" * (size // 3) + '"]}',
    "bins": of_bins,
    "tiny keys": of_digits(700),
    "few tiny keys": of_digits(11),
    "long repeated keys": of_jobs('{"' + "k" * 33 + '":0}'),
    "long keys of long objects": of_jobs("{" + ",".join(f'"{n:033}":0' for n in range(22)) + "}"),
    "repeated keys": lambda size: '{"jobs":[],' + '"a":1,' * (size // 6) + '"b":1}',
    "other letters as keys": of_jobs('{"\u00e9\u00e9\u00e9":0}'),
    "objects as values": lambda size: "{" + ",".join(f'"{n:015}":{{}}' for n in range(size // 21)) + "}",
    "negative digits": of_jobs("-9"),
    "short exponents": of_jobs("1e9"),
    "long numbers": of_jobs("1" * 4000),
    "long fractions": of_jobs("0." + "1" * 300),
    "escapes": of_jobs(r'"\u0100"'),
    "an escape in each string": of_jobs('"' + "a" * 40 + r'\ud83d\ude00"'),
    "one escape": lambda size: '{"jobs":["' + "x" * size + r'\ud83d\ude00"]}',
    "wide string and text around": lambda size: 'x{"jobs":["' + "x" * size + '\U0001f600"]}',
    "wide string cut off": lambda size: '{"jobs":["' + "x" * size + "\U0001f600",
    "wide numbers": lambda size: '{"a":"\U0001f600","jobs":[' + "123456789012," * (size // 13) + "1]}",
    "half bins, half wide string": lambda size: (
        '{"jobs":[],"w":"'
        + "x" * (size // 2)
        + '\U0001f600","bins":'
        + "{"
        + ",".join(f'"{7 * n}":1' for n in range(size // 24))
        + "}}"
    ),
    "small jobs": of_small_jobs,
    "small documents": of_small_documents,
    "full histograms": of_full_histograms,
    "cut off": lambda size: '{"a":' * 900 + "[" + "0," * (size // 2),
    "braces": lambda size: "{" * size,
    "documents": of_documents(2),
    "documents on one line": of_documents(None),
    "XML of elements": lambda size: "<r>" + "<a/>" * (size // 4) + "</r>",
}


def measure(path: Path) -> tuple[float, float, str]:
    """Import a file. Return the peak memory in MB, the CPU time in s, and the message of the import."""
    folder = path.parent / "out"
    argv = [sys.executable, "-m", "tkperf", "import", str(path), "--output", str(folder)]
    said = path.parent / "said"
    with said.open("wb") as errors:
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    lines = said.read_text(errors="replace").splitlines() or [""]
    for made in folder.glob("*.tkperf"):
        made.unlink()
    return used.ru_maxrss * 1024 / MB, used.ru_utime + used.ru_stime, lines[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=176)
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.make:
        content = SHAPES[asked.shape[0]](asked.megabytes * MB)
        asked.make.write_text(content, encoding="utf-8")
        return 0
    over = 0
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "r.json"
        path.write_text("{}")
        base_mb, _, _ = measure(path)
        print(f"without a result: {base_mb:.0f} MB")
        for shape in asked.shape or SHAPES:
            # The measurement runs in a separate process, because the peak memory of a child process is at least that of
            # its parent.
            argv = ["--shape", shape, "--megabytes", str(asked.megabytes), "--make", str(path)]
            subprocess.run([sys.executable, __file__, *argv], check=True)
            size_mb = path.stat().st_size / MB
            memory_mb, cpu_s, said = measure(path)
            more_mb = memory_mb - base_mb
            is_over = more_mb > max(MOST_TIMES * size_mb, ALWAYS_MB)
            over += is_over
            print(
                f"{shape:24}{size_mb:7.1f} MB {more_mb:8.0f} MB {more_mb / size_mb:6.1f} times"
                f" {cpu_s:6.1f} s {'!' if is_over else ' '} {said[:110]}",
                flush=True,
            )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
