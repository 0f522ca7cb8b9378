"""Measure how much CPU time and memory tkperf needs at most to read a run file of 60 MB.

The script makes files that are expensive on purpose, and reads them with the commands of tkperf.

Each case starts with the run file of a simulated drive. It enlarges one table, one text or one blob
(expensive_rows.py), or several tables (full_tables.py), until the file has the requested size or reaches the limit that
the docstring of the case names. The commands `show`, `status`, `report`, `compare`, `rank` and `export` then read the
file, each in a separate process with a limited address space. `status held` is `status` for a run in progress. For this
command, the script locks the file in the same manner as the writer of a run file. The script prints the CPU time, the
peak memory and the last message of each command.

    python bench/hostile_files.py [--megabytes 60] [--below] [--case NAME ...] [--folder FOLDER] [--list]

Most of these files exceed a limit and are refused. With ``--below``, the script searches for the largest file of each
case that tkperf still reads, and fills the file with unused pages up to the full size.

The exit status is 1 if a command needs more than 15 s of CPU time or 600 MB of memory, or ends with an exception or a
signal.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import expensive_rows  # noqa: F401 - its cases
import full_tables  # noqa: F401 - its cases
from enlarging import CASES

from tkperf.model.errors import ExitCode, RunFileError
from tkperf.runfile.reader import RunFile

MOST_CPU_S = 15.0
MOST_MEMORY_MB = 600.0
# A command that far exceeds the limits is killed. The address space of a report is not limited, because V8, which draws
# the charts of the report, reserves a terabyte of address space.
STOP_CPU_S, STOP_ADDRESSES = 60, 8 << 30
MB = 1_000_000
# The search for the largest readable file ends when the size of this file is known to within this share.
CLOSE_ENOUGH = 0.08

HELD = "status held"
COMMANDS = {
    "show": ["show", "{file}"],
    "show --json": ["show", "{file}", "--json"],
    "status": ["status", "{file}"],
    HELD: ["status", "{file}"],
    "report": ["report", "{file}", "--output", "{folder}/out.html"],
    "compare": ["compare", "{file}", "{base}"],
    "rank": ["rank", "{file}", "{base}"],
    "export": ["export", "{file}", "--parquet", "{folder}/fleet"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The CPU time and the memory of one command, with the last line that the command printed."""

    command: str
    cpu_s: float
    memory_mb: float
    exit_code: int
    said: str


def make_base(folder: Path) -> Path:
    """Make the run file of a simulated drive, with rounds, streams, verdicts and readings. Return its path."""
    path = folder / "base.tkperf"
    if not path.exists():
        argv = ["ssd", "base", "sim:sata-ssd", "-ssdt", "tp,lat,writesat", "-q", "--no-report"]
        profile = ["--profile", "quick", "--output", str(folder)]
        subprocess.run([sys.executable, "-m", "tkperf", *argv, *profile], check=True, stdout=subprocess.DEVNULL)
    return path


def make_file(name: str, base: Path, path: Path, size: int, *, filled_to: int = 0) -> None:
    """Make the file of a case.

    Args:
        filled_to: size in bytes up to which unused pages are added.
    """
    shutil.copyfile(base, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        CASES[name](db, size)
        db.execute("COMMIT")
        # A page of 4,096 bytes can hold 4,092 bytes of a long value.
        unused = (filled_to - path.stat().st_size) * 4092 // 4096 - 8192
        if unused > 0:
            db.execute("CREATE TABLE unused (a)")
            db.execute("INSERT INTO unused VALUES (zeroblob(?))", (unused,))


def is_read(path: Path) -> bool:
    """Return whether a file is within all limits. A child process reads the file, so that its memory is released
    afterwards.
    """
    child = os.fork()
    if child == 0:
        code = 0
        try:
            resource.setrlimit(resource.RLIMIT_AS, (STOP_ADDRESSES, STOP_ADDRESSES))
            with RunFile(path) as run_file:
                record = run_file.record()
                for test in record.tests:
                    run_file.seconds(test)
        except RunFileError:
            code = 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def make_largest(name: str, base: Path, path: Path, size: int) -> None:
    """Make the largest file of a case that tkperf reads. The limits are those for a file of the full size."""
    least, most = 0, size
    make_file(name, base, path, most, filled_to=size)
    if is_read(path):
        return
    while most - least > max(CLOSE_ENOUGH * most, 50):
        middle = (least + most) // 2
        make_file(name, base, path, middle, filled_to=size)
        if is_read(path):
            least = middle
        else:
            most = middle
    make_file(name, base, path, least, filled_to=size)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Mark the run in a file as under way, and lock the file in the same manner as the writer of a run file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("""UPDATE run SET value = '"running"' WHERE key = 'status'""")
        db.execute("UPDATE test SET status = 'running', ended_s = NULL")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def measure(command: str, path: Path, base: Path, folder: Path) -> Cost:
    argv = [part.format(file=path, base=base, folder=folder) for part in COMMANDS[command]]

    def limit() -> None:
        os.nice(5)
        resource.setrlimit(resource.RLIMIT_CPU, (STOP_CPU_S, STOP_CPU_S + 1))
        if command != "report":
            resource.setrlimit(resource.RLIMIT_AS, (STOP_ADDRESSES, STOP_ADDRESSES))

    # The command must not find results that an earlier command has cached. Only the cached script that draws charts
    # remains.
    cache = folder / "cache"
    for kept in ("results", "overviews", "figures"):
        shutil.rmtree(cache / "tkperf" / kept, ignore_errors=True)
    shutil.rmtree(folder / "fleet", ignore_errors=True)
    said = folder / "said"
    with said.open("wb") as errors, (folder / "out").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "tkperf", *argv],
            stdout=out,
            stderr=errors,
            env=os.environ | {"XDG_CACHE_HOME": str(cache)},
            preexec_fn=limit,  # noqa: PLW1509 - this process has one thread
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    lines = [
        line for line in said.read_text(errors="replace").splitlines() if not line.startswith(("usage", "help"))
    ] or [""]
    return Cost(
        command=command,
        cpu_s=used.ru_utime + used.ru_stime,
        memory_mb=used.ru_maxrss * 1024 / MB,
        exit_code=process.returncode,
        said=lines[0] if process.returncode else "",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--below", action="store_true")
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--command", action="append", choices=list(COMMANDS))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(CASES))
        return 0
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    over = 0
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        base = make_base(folder)
        print(f"{'case':34}{'MB':>6}  {'command':12}{'CPU s':>7}{'MB':>7}  says")
        for chosen in asked.case or CASES:
            path = folder / "hostile.tkperf"
            if asked.below:
                make_largest(chosen, base, path, asked.megabytes * MB)
            else:
                make_file(chosen, base, path, asked.megabytes * MB)
            file_mb = path.stat().st_size / MB
            # The command that changes the file runs last.
            for command in sorted(asked.command or COMMANDS, key=HELD.__eq__):
                with held(path) if command == HELD else nullcontext():
                    cost = measure(command, path, base, folder)
                is_defect = cost.exit_code == ExitCode.DEFECT or cost.exit_code < 0
                is_over = cost.cpu_s > MOST_CPU_S or cost.memory_mb > MOST_MEMORY_MB or is_defect
                over += is_over
                print(
                    f"{chosen:34}{file_mb:6.1f}  {command:12}{cost.cpu_s:7.1f}{cost.memory_mb:7.0f}"
                    f" {'!' if is_over else ' '} {cost.exit_code} {cost.said[:150]}",
                    flush=True,
                )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
