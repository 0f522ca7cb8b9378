"""A process that forks a process for each job. Before the first fork, this process loads all modules that are necessary
to build reports.

The process has one thread and reads orders from the socket on stdin. The process ends when the server closes the
socket.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import socket
import sys
import traceback
from contextlib import suppress

from tkperf.model.errors import ExitCode, LockedRunFileError, TkperfError, reason_of
from tkperf.model.input_files import confine
from tkperf.system.process import fork_early
from tkperf.web.files import KnownFile
from tkperf.web.workers import DONE, FAILED, LOCKED, SIZE_BYTES, Jobs, Order


def serve_jobs(jobs: Jobs) -> None:
    """Fork a process for each order, until the server has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # processes of finished jobs do not remain as zombies
    # The processes of jobs share the memory of all existing objects until they write to this memory. gc.freeze()
    # excludes these objects from garbage collection, which would write to them. A job ends before a garbage collection
    # would be useful.
    gc.freeze()
    gc.disable()
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as orders:
        # V8 checks the standard streams, so stdin must be an open file.
        os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
        while True:
            message, descriptors, _, _ = socket.recv_fds(orders, 1, 3)
            if not message:
                return
            if fork_early() == 0:
                orders.close()
                _work(jobs, *descriptors)
            for descriptor in descriptors:
                os.close(descriptor)


def _work(jobs: Jobs, to_server: int, result: int, ordered: int) -> None:
    """Execute a job, and end the process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with suppress(BaseException), socket.socket(fileno=to_server) as answers:
        with open(ordered, "rb") as file:
            file.seek(0)
            order: Order = pickle.load(file)  # noqa: S301 - the order is from the server
        # The server uses this descriptor to kill the process. The descriptor never refers to another process, even a
        # long time later.
        socket.send_fds(answers, [b"p"], [os.pidfd_open(os.getpid())])
        answers.sendall(_do(jobs, order, result, answers))
    os._exit(ExitCode.DONE)


def _do(jobs: Jobs, order: Order, result: int, answers: socket.socket) -> bytes:
    """Execute a job and return the answer. The messages of a continuous job are its answer."""
    signal.alarm(round(order.limit_s) + 1)  # if the server has died, this call ends the process
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (order.limit_bytes, order.limit_bytes))
    confine({one.folder for one in order.arguments.values() if isinstance(one, KnownFile)})
    try:
        made = jobs[order.job](**order.arguments)
        if not isinstance(made, bytes):
            for message in made:
                answers.sendall(DONE + len(message).to_bytes(SIZE_BYTES, "big") + message)
                signal.alarm(round(order.limit_s) + 1)
            return b""
        with open(result, "wb") as file:
            file.write(made)
    except LockedRunFileError as error:
        return LOCKED + reason_of(error).encode(errors="replace")
    except (TkperfError, OSError) as error:
        return FAILED + reason_of(error).encode(errors="replace")
    except MemoryError:
        return (
            FAILED
            + (
                f"it takes more than {order.limit_bytes / 1e9:.1f} GB of memory: use tkperf report on the command "
                "line, "
                "which has no such limit"
            ).encode()
        )
    except Exception:
        traceback.print_exc()
        return FAILED + b"a defect of tkperf: please report it with the lines on the server's stderr"
    return DONE


if __name__ == "__main__":
    from tkperf.render.html import load_templates
    from tkperf.web.jobs import JOBS

    load_templates()
    serve_jobs(JOBS)
