"""Processes of drives. None of them ever continues to run the code of the batch process."""

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from tkperf.batch import drive_processes
from tkperf.batch.drive_processes import Channel, DriveProcesses
from tkperf.model.errors import RefusedError


@pytest.mark.usefixtures("plain_fork")
def test_a_drive_s_process_that_fails_at_once_ends_there(tmp_path: Path) -> None:
    def work(number: int, channel: Channel) -> NoReturn:
        raise OSError(errno.EMFILE, "too many")

    processes = DriveProcesses((1, 2), work)
    processes.gather()
    (tmp_path / str(os.getpid())).touch()
    assert [one.has_gone for one in processes.members] == [True, True]
    assert len(list(tmp_path.iterdir())) == 1


def test_processes_that_cannot_all_be_started_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def fork() -> int:
        if len(started) == 2:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        pid = os.fork()
        started.append(pid)
        return pid

    def work(number: int, channel: Channel) -> NoReturn:
        channel.receive_from_batch()
        os._exit(0)

    monkeypatch.setattr(drive_processes, "fork_early", fork)
    with pytest.raises(RefusedError, match=r"3 drives .* number 3 .* ulimit"):
        DriveProcesses((1, 2, 3), work)
    for pid in started:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
