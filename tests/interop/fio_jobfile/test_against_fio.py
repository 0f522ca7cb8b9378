"""Comparison of two series of I/Os. fio issues the first series from a job file. fio issues the second series from the
jobs into which tkperf converts this file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop.fio_jobfile.job_files import JOBS, NAMES, convert, convert_file
from tkperf.engine.fio_job import FioTarget, count_threads, render_fill_job, render_step_job
from tkperf.model.workload import ActiveRange, Step, Workload
from tkperf.procedures import load_profile
from tkperf.procedures.own_workloads import parse_workload_file
from tkperf.procedures.own_workloads.parts import FillPhase, StreamPhase, combination_of, workload_of

pytestmark = pytest.mark.fio

MIB = 1 << 20
SIZE = 256 * MIB
MANY = 1500
# The I/Os go through the page cache, because the tests compare only which I/Os are requested. Without time_based=0, fio
# would begin again after number_ios. With thread=1, a killed fio leaves no processes behind.
FEW = ("direct=0", "group_reporting=0", "ramp_time=0", "time_based=0", "runtime=5", "loops=1", "thread=1")
PROFILE = load_profile("pts-e-1.1")


@dataclass(frozen=True, kw_only=True)
class Load:
    """The I/Os of one fio thread, read from fio's log of I/Os."""

    ios: tuple[tuple[str, int, int], ...]

    def reads(self) -> float:
        return sum(kind == "read" for kind, _, _ in self.ios) / len(self.ios)

    def sizes(self) -> dict[int, float]:
        count = Counter(size for _, _, size in self.ios)
        return {size: number / len(self.ios) for size, number in count.items()}

    def is_sequential(self) -> bool:
        """Return whether more than 90 % of the I/Os begin at the end of another I/O."""
        ended = {end for _, at, size in self.ios for end in (at + size,)}
        follow = sum(at in ended for _, at, _ in self.ios)
        return follow > 0.9 * len(self.ios)

    def alignment(self) -> int:
        return max(
            step for step in (512, 4096, 8192, 16384, 32768, 65536) if all(at % step == 0 for _, at, _ in self.ios)
        )

    def ends(self) -> tuple[float, float]:
        """Return the beginning and the end of the range that fio used, as shares of the file."""
        return (min(at for _, at, _ in self.ios) / SIZE, max(at + size for _, at, size in self.ios) / SIZE)

    def in_zones(self) -> list[float]:
        """Return the shares of the I/Os in three parts of the file: the first 5 %, the next 15 % and the last 80 %."""
        edges = (0.05, 0.2, 1.0)
        zone = Counter(sum(at / SIZE >= edge for edge in edges) for _, at, _ in self.ios)
        return [zone[number] / len(self.ios) for number in range(3)]


def sections_of(text: str) -> list[list[str]]:
    """Return the sections of a job file, each with its heading, without the filename options."""
    sections: list[list[str]] = []
    for line in text.splitlines():
        if line.strip().startswith("["):
            sections.append([line])
        elif sections and not line.strip().startswith("filename"):
            sections[-1].append(line)
    return sections


def is_job(section: list[str]) -> bool:
    return not section[0].strip().startswith("[global")


def run_fio(sections: list[list[str]], folder: Path, *added: str) -> list[Any]:
    """Return fio's results of a job file. ``added`` contains options that are appended to each job and override the
    job's own options.
    """
    lines = [line for part in sections for line in (*part, *(added if is_job(part) else ()))]
    tried = folder / "tried.fio"
    tried.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        ["fio", "--output-format=json", tried], check=False, cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = json.loads(done.stdout[done.stdout.index("{\n") :])["jobs"]
    assert isinstance(jobs, list)
    return jobs


def read_log(path: Path) -> Load:
    ios = []
    for line in path.read_text().splitlines():
        found = re.search(r" (read|write) (\d+) (\d+)$", line)
        if found:
            ios.append((found[1], int(found[2]), int(found[3])))
    assert ios, path
    return Load(ios=tuple(ios))


def observe(text: str, number: int, folder: Path, scratch: Path) -> Load:
    """Return the I/Os that the first thread of one job issues. The rate limit of the job is removed, because it would
    slow the job down.
    """
    log = folder / "ios.log"
    log.unlink(missing_ok=True)
    sections, jobs = [], 0
    for section in sections_of(text):
        if not is_job(section) or jobs == number:
            sections.append([line for line in section if "rate" not in line])
        jobs += is_job(section)
    run_fio(sections, folder, f"filename={scratch}", f"number_ios={MANY}", f"write_iolog={log}", "numjobs=1", *FEW)
    return read_log(log)


def jobs_of(name: str, scratch: Path) -> list[tuple[str, Workload]]:
    """For each phase of the workload file, return the fio job that tkperf would start, together with its load."""
    table = parse_workload_file(convert_file(name)[0], file=name)
    whole = ActiveRange(offset_bytes=0, length_bytes=SIZE)
    target = FioTarget(path=str(scratch), ioengine="libaio", active_range=whole)
    jobs = []
    for phase in table.phases:
        assert isinstance(phase, StreamPhase | FillPhase)
        assert phase.load is not None
        workload = workload_of(table.loads[phase.load], PROFILE, SIZE)
        if isinstance(phase, FillPhase):
            text = render_fill_job(workload, phase.passes or 1, [target])
        else:
            text = render_step_job(Step(workload=workload, duration_s=phase.longest_s), target)
        jobs.append((text, workload))
    return jobs


def resemble(one: Load, other: Load) -> Sequence[str]:
    """Compare two loads. Return those differences that chance cannot explain."""
    differing = []
    if abs(one.reads() - other.reads()) > 0.06 or (one.reads() in (0, 1)) is not (other.reads() in (0, 1)):
        differing.append("mix")
    sizes, others = one.sizes(), other.sizes()
    if sizes.keys() != others.keys() or any(abs(share - others[size]) > 0.06 for size, share in sizes.items()):
        differing.append("block sizes")
    if one.is_sequential() is not other.is_sequential():
        differing.append("order")
    if not one.is_sequential():
        if one.alignment() != other.alignment():
            differing.append("alignment")
        if any(abs(a - b) > 0.02 for a, b in zip(one.ends(), other.ends(), strict=True)):
            differing.append("range")
        if any(abs(a - b) > 0.06 for a, b in zip(one.in_zones(), other.in_zones(), strict=True)):
            differing.append("zones")
    elif abs(one.ends()[0] - other.ends()[0]) > 0.02:
        differing.append("begin")
    return differing


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fio") / "scratch.img"
    path.write_bytes(b"\xa5" * SIZE)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_tkperf_does_what_fio_does_with_the_file(name: str, tmp_path: Path, big: Path) -> None:
    """A converted load has the same mix, block sizes, order, alignment, range and zones as fio's job."""
    text = (JOBS / f"{name}.fio").read_text()
    jobs = jobs_of(name, big)
    assert len(jobs) == len(PHASES[name])
    for (job, _), number in zip(jobs, PHASES[name], strict=True):
        theirs, ours = (observe(of, at, tmp_path, big) for of, at in ((text, number), (job, 0)))
        assert resemble(theirs, ours) == []


# The numbers of the jobs that become phases, for each job file.
PHASES = {name: [0] for name in NAMES} | {
    "four-corners": [0, 1, 2, 3],
    "cloud-latency": [0, 1],
    "compressible": [0, 1],
    "fill-then-random": [0, 1],
    "two-globals": [0, 1, 2],
    "odd-spelling": [0, 1],
    "units-of-ten": [0, 1],
    "part-of-the-drive": [0, 1],
    "sides": [0, 1, 2],
}


@pytest.mark.parametrize("name", NAMES)
def test_as_many_threads_as_fio_starts(name: str, tmp_path: Path, big: Path) -> None:
    """A converted load has as many threads as fio starts. A thread of an I/O engine that waits for each I/O has queue
    depth 1.
    """
    text = (JOBS / f"{name}.fio").read_text()
    jobs = run_fio(sections_of(text), tmp_path, f"filename={big}", "number_ios=20", *FEW)
    groups = Counter(job["groupid"] for job in jobs)
    waiting = {job["groupid"]: job["iodepth_level"]["1"] == 100 for job in jobs}
    ours = jobs_of(name, big)
    assert [workload.jobs for _, workload in ours] == list(groups.values())
    for (_, workload), alone in zip(ours, waiting.values(), strict=True):
        assert alone == (workload.io_depth == 1) or (alone and workload.offered_iops is not None)
    for job, workload in ours:
        if "io_size=" not in job:  # a fill has an additional thread for the rest of the range
            assert count_threads(job) == workload.jobs


def test_an_offered_rate_is_that_of_fio(tmp_path: Path, big: Path) -> None:
    """The converted rate is the rate that fio offers. This rule applies to several threads, to separate rates for reads
    and writes, and to even or random arrival times.
    """
    # With direct I/O, the rate would also depend on how busy the disk is.
    added = (f"filename={big}", "direct=0", "runtime=2", "group_reporting=1", "thread=1")

    def rates(of: str) -> list[float]:
        (done,) = run_fio(sections_of(of), tmp_path, *added)
        return [done[side]["iops"] for side in ("read", "write")]

    for name, threads in (("offered-poisson", 2), ("offered-mix", 1)):
        text = (JOBS / f"{name}.fio").read_text()
        ((job, workload),) = jobs_of(name, big)
        assert (workload.jobs, workload.offered_iops) == (threads, 400)
        # A busy host sometimes delays fio, so only one of five attempts has to agree. With a wrong rate, no attempt
        # would agree.
        assert any(rates(job) == pytest.approx(rates(text), rel=0.15, abs=1) for _ in range(5))


TOGETHER = """[global]
direct=1
runtime=60
time_based
ioengine=libaio
norandommap
[reader]
rw=randread
bssplit=4k/60:16k/40
iodepth=4
rate=4m,
percentage_random=70,0
[writer]
rw=randwrite
bs=8k,8k
thinktime=20ms
thinktime_blocks=8
[log]
ioengine=sync
rw=write
fdatasync=4
rate_iops=,200
"""


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """Yield a sparse file in a memory file system. The rate of I/Os to this file does not depend on how busy a disk
    is.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder, "scratch.img")
        path.touch()
        os.truncate(path, SIZE)
        yield path


def test_jobs_at_the_same_time_do_what_fio_does(tmp_path: Path, in_memory: Path) -> None:
    """Loads that run together have the rates per direction, the pauses and the flushes of fio's jobs."""
    table = parse_workload_file(convert(TOGETHER)[0], file="a.fio")
    (phase,) = table.phases
    assert isinstance(phase, StreamPhase)
    whole = ActiveRange(offset_bytes=0, length_bytes=SIZE)
    target = FioTarget(path=str(in_memory), ioengine="libaio", active_range=whole)
    workload = combination_of(phase.together, table.loads, PROFILE, SIZE)
    ours = render_step_job(Step(workload=workload, duration_s=60), target)

    def done_by(text: str) -> dict[str, list[float]]:
        jobs = run_fio(sections_of(text), tmp_path, f"filename={in_memory}", "direct=0", "runtime=1", "thread=1")
        return {job["jobname"]: [job["read"]["iops"], job["write"]["iops"]] for job in jobs}

    # A busy host sometimes delays fio, so each job has to agree in only one of ten attempts. With a wrong rate, no
    # attempt would agree.
    open_jobs = {"reader", "writer", "log"}
    for _ in range(10):
        wanted, done = done_by(TOGETHER), done_by(ours)
        assert wanted.keys() == done.keys() >= open_jobs
        open_jobs = {name for name in open_jobs if done[name] != pytest.approx(wanted[name], rel=0.2, abs=5)}
        if not open_jobs:
            break
    assert not open_jobs
    assert "fsync=4" in ours
    assert "percentage_random=70" in ours


@pytest.mark.parametrize("split", ["4k/33:8k/33:16k/33", "4k/60:8k/60", "4k/0:8k/30:16k/30", "4k:8k/50:16k"])
def test_shares_that_do_not_add_up_are_those_that_fio_draws(split: str, tmp_path: Path) -> None:
    """If the percentages of bssplit do not add up to 100, the converted shares are the shares of the I/Os that fio
    issues. fio accepts percentages with any sum.
    """
    options = f"rw=randread\nnorandommap\nbssplit={split}\n"
    load = parse_workload_file(convert(f"[a]\ndirect=1\nruntime=9\n{options}")[0], file="a.fio").loads["a"]
    log = tmp_path / "ios.log"
    run_fio([["[a]", "ioengine=null", "size=1g", *options.split()]], tmp_path, "number_ios=4000", f"write_iolog={log}")
    drawn = read_log(log).sizes()
    assert {size / 1024: pytest.approx(100 * share, abs=4) for size, share in drawn.items()} == dict(load.block_shares)
