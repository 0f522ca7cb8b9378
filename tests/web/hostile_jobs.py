"""A worker process for tests. Its jobs behave as a reader may behave when it reads a hostile file."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tkperf.model.errors import LockedRunFileError, RunFileError
from tkperf.web.worker_process import serve_jobs


def answer(words: str) -> bytes:
    return words.encode()


def die() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b"never"


def hang(pid_file: Path) -> bytes:
    pid_file.write_text(str(os.getpid()))
    time.sleep(600)
    return b"never"


def grow() -> bytes:
    return b"x" * (1 << 40)


def refuse() -> bytes:
    raise RunFileError("it is <damaged>")


def meet_lock() -> bytes:
    raise LockedRunFileError("database is locked")


def fail() -> bytes:
    raise KeyError("a defect")


def kill_all() -> bytes:
    os.kill(os.getppid(), signal.SIGKILL)
    return b"done"


if __name__ == "__main__":
    jobs = (answer, die, hang, grow, refuse, meet_lock, fail, kill_all)
    serve_jobs({job.__name__: job for job in jobs})
