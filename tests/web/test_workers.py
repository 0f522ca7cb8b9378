"""Workers of tkperf serve. If a file harms its reader, the server continues and states the reason."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tkperf.web.bounds import MOST_WAITING
from tkperf.web.workers import BusyError, FileError, JobError, LateError, LockedError, Workers

SOURCES = Path(__file__).parents[2]
T = TypeVar("T")
Use = Callable[[Workers], Awaitable[T]]


@pytest.fixture(autouse=True)
def _own_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))


def with_workers(use: Use[T], *, limit_s: float = 60.0, limit_bytes: int = 1 << 30) -> T:
    async def run() -> T:
        workers = Workers("tests.web.hostile_jobs", limit_s=limit_s, limit_bytes=limit_bytes)
        try:
            return await use(workers)
        finally:
            workers.close()

    return asyncio.run(run())


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def wait_for(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not is_so():
            await asyncio.sleep(0.01)


def test_jobs_that_fail_cost_their_own_page_only() -> None:
    """A job that fails affects only its own page. The page contains the reason, and the next job is done."""

    async def use(workers: Workers) -> list[JobError]:
        errors = []
        for job in ("die", "grow", "refuse", "meet_lock", "fail", "kill_all"):
            try:
                await workers.run(job)
            except JobError as error:
                errors.append(error)
            assert await workers.run("answer", words="well") == b"well"
        return errors

    died, grew, refused, locked, failed, *_ = with_workers(use)
    assert "ended unexpectedly" in str(died)
    assert "more than 1.1 GB of memory" in str(grew)
    assert str(refused) == "it is <damaged>"
    assert isinstance(refused, FileError)
    assert isinstance(locked, LockedError)
    assert "defect" in str(failed)


def test_an_order_may_be_longer_than_a_message() -> None:
    """The description of a job for a worker can be longer than a single message. The paths of 200 run files may need
    800 kB, but a single message through a socket can contain only about 200 kB.
    """

    async def use(workers: Workers) -> bytes:
        return await workers.run("answer", words="x" * 1_000_000)

    assert with_workers(use) == b"x" * 1_000_000


def test_a_job_over_its_time_is_killed() -> None:
    async def use(workers: Workers) -> None:
        await workers.run("answer", words="it has begun")
        workers._limit_s = 5.0
        with pytest.raises(LateError, match="tkperf report"):
            await workers.run("hang", pid_file=pid_file)
        await wait_for(lambda: not is_running(int(pid_file.read_text())))

    # The job must write the file before it is killed. A busy disk could delay the file beyond the time limit.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        pid_file = Path(memory, "pid")
        with_workers(use)


def test_a_job_that_is_given_up_is_killed(tmp_path: Path) -> None:
    """If the request for a job ends, for example because the browser leaves, the job is killed."""
    pid_file = tmp_path / "pid"

    async def use(workers: Workers) -> None:
        job = asyncio.create_task(workers.run("hang", pid_file=pid_file))
        await wait_for(lambda: pid_file.exists() and pid_file.read_text() != "")
        job.cancel()
        await wait_for(lambda: not is_running(int(pid_file.read_text())))
        assert await workers.run("answer", words="well") == b"well"

    with_workers(use)


def test_a_job_that_is_given_up_before_it_reports_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the browser leaves after the descriptor of the job's process has arrived and before the server has read this
    descriptor, the job is also killed.
    """
    pid_file = tmp_path / "pid"

    async def wait_only(_: object) -> None:
        await wait_for(lambda: pid_file.exists() and pid_file.read_text() != "")
        raise asyncio.CancelledError

    async def use(workers: Workers) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("tkperf.web.workers._receive_process", wait_only)
            with pytest.raises(asyncio.CancelledError):
                await workers.run("hang", pid_file=pid_file)
            await wait_for(lambda: not is_running(int(pid_file.read_text())))
            pid_file.unlink()
            with pytest.raises(asyncio.CancelledError):
                async for _ in workers.follow("hang", pid_file=pid_file):
                    pass
            await wait_for(lambda: not is_running(int(pid_file.read_text())))
        assert await workers.run("answer", words="well") == b"well"

    with_workers(use)


def test_one_pdf_at_a_time(tmp_path: Path) -> None:
    """A second PDF waits for the first PDF, even if a process is free. Other jobs do not wait for a PDF."""
    files = [tmp_path / "first", tmp_path / "second"]

    async def use(workers: Workers) -> None:
        jobs = [asyncio.create_task(workers.run("hang", alone=True, pid_file=file)) for file in files]
        await wait_for(files[0].exists)
        assert await workers.run("answer", words="well") == b"well"
        assert not files[1].exists()
        jobs[0].cancel()
        await wait_for(files[1].exists)
        jobs[1].cancel()

    with_workers(use)


def test_the_queue_is_bounded(tmp_path: Path) -> None:
    async def use(workers: Workers) -> None:
        jobs = [
            asyncio.create_task(workers.run("hang", pid_file=tmp_path / str(number))) for number in range(MOST_WAITING)
        ]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="again in a minute"):
            await workers.run("answer", words="none")
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        assert await workers.run("answer", words="well") == b"well"

    with_workers(use)
