"""Process that forks a process for each job, with everything loaded that reports are made with.

It has one thread, reads orders from the socket on stdin, and ends when the server closes it.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import socket
import sys
import traceback
from contextlib import suppress

import msgspec

from tkperf.model.errors import TkperfError
from tkperf.system.process import fork_early
from tkperf.web.workers import Answer, Jobs, Order

_ORDER_BYTES = 1 << 16


def serve_jobs(jobs: Jobs) -> None:
    """Fork for each order until the server has gone."""
    # The server ends this process; Ctrl-C in the terminal reaches both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process of a job stays as a zombie
    with socket.socket(fileno=sys.stdin.fileno()) as orders:
        while True:
            order, descriptors, _, _ = socket.recv_fds(orders, _ORDER_BYTES, 1)
            if not order:
                return
            if fork_early() == 0:
                orders.close()
                _work(jobs, pickle.loads(order), descriptors[0])  # noqa: S301 - of the server
            os.close(descriptors[0])


def _work(jobs: Jobs, order: Order, descriptor: int) -> None:
    """Do a job in its own process, which ends with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    status = 1
    try:
        with socket.socket(fileno=descriptor) as answers:
            # The server kills it by this descriptor, which no other process can have.
            socket.send_fds(answers, [b"p"], [os.pidfd_open(os.getpid())])
            answers.sendall(msgspec.msgpack.encode(_answer(jobs, order)))
        status = 0
    finally:
        os._exit(status)


def _answer(jobs: Jobs, order: Order) -> Answer:
    # If the server has died, nobody else ends it.
    signal.alarm(round(order.limit_s) + 1)
    resource.setrlimit(resource.RLIMIT_DATA, (order.limit_bytes, order.limit_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        content = jobs[order.job](**order.arguments)
    except TkperfError as error:
        return Answer(done=False, content=str(error).encode(errors="replace"))
    except MemoryError:
        limit_gb = order.limit_bytes / 1e9
        words = (
            f"it takes more than {limit_gb:.1f} GB of memory to show: use tkperf report on the command line, "
            "which has no such limit"
        )
        return Answer(done=False, content=words.encode())
    except Exception:
        with suppress(OSError):
            traceback.print_exc()
        return Answer(
            done=False,
            content=b"a defect of tkperf: please report it with the lines on the server's stderr",
        )
    return Answer(done=True, content=content)


if __name__ == "__main__":
    from tkperf.web.jobs import JOBS  # the packages of reports, before the first job

    serve_jobs(JOBS)
