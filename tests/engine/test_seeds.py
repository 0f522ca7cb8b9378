"""Random addresses can be repeated from the seed of a run, and each step has different addresses (PTS User Guide)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.engine.conftest import workload
from tkperf.engine.device_jobs import Seeds
from tkperf.engine.fio_job import FioTarget, render_step_job
from tkperf.model.workload import ActiveRange, Step

STEP = Step(workload=workload(jobs=2, io_depth=1, read_percent=50), duration_s=1)
OTHER = Step(workload=workload(jobs=2, read_percent=100), duration_s=1)


def test_no_two_jobs_of_a_run_have_one_seed_nor_after_it_was_resumed() -> None:
    """No two jobs of a run receive the same random seed, even if a step is repeated or the run is resumed."""
    seeds = Seeds(7)
    drawn = [seeds.take(step) for step in (STEP, OTHER, STEP)]
    seeds.go_on(7, resumptions=1)
    drawn += [seeds.take(step) for step in (STEP, OTHER, STEP)]
    assert len(set(drawn)) == len(drawn)


def test_a_runs_seed_gives_its_jobs_seeds_again_whatever_was_made_ready_in_vain() -> None:
    """The same seed of a run leads to the same seeds of its jobs. A load that was prepared but did not run does not use
    up a seed.
    """
    first, second = Seeds(7), Seeds(7)
    for _ in range(3):
        second.next_of(OTHER)
    assert first.take(STEP) == second.take(STEP)
    assert first.take(OTHER) == second.take(OTHER)
    assert Seeds(8).take(STEP) != Seeds(7).take(STEP)


@pytest.mark.fio
def test_fio_draws_the_same_addresses_from_one_seed_and_others_from_another(tmp_path: Path) -> None:
    """fio's threads use the same addresses for the same seed, and different addresses for another seed. The test starts
    fio.
    """
    target = FioTarget(
        path=str(tmp_path / "target"), ioengine="libaio", active_range=ActiveRange(offset_bytes=0, length_bytes=1 << 30)
    )
    with Path(target.path).open("wb") as file:
        file.truncate(1 << 30)

    def addresses(seed: int) -> set[str]:
        """Return the addresses of 100 I/Os of each thread, as fio logs them."""
        text = render_step_job(STEP, target, seed=seed).replace("time_based=1\n", "")
        text = text.replace("runtime=1000ms", "number_ios=100\nwrite_iolog=log")
        (tmp_path / "job.fio").write_text(text)
        (tmp_path / "log").unlink(missing_ok=True)  # fio appends to an existing log, so the old log is removed
        command = ["fio", "job.fio"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=600)
        lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
        return {line[-2] for line in lines if {"read", "write"} & {*line}}

    seeds = Seeds(1)
    first, then = seeds.take(STEP), seeds.take(STEP)
    once = addresses(first)
    # two threads issue 200 I/Os; if both used the same sequence, they would use only 100 addresses
    assert len(once) > 190
    # fio's threads write to the same log, so lines of different threads are sometimes mixed.
    assert len(addresses(first) ^ once) < 10
    assert len(addresses(then) & once) < 10
