"""io_uring refused by a filter or a limit: what tkperf says before a run is what the run does."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# The program refuses io_uring_setup to itself and to what it starts, as the seccomp profiles of containers do.
# BPF: load the number of the system call; if it is 425, return the error, else allow it (seccomp(2)).
_PROGRAM = """
import ctypes, json, os, struct, sys
from pathlib import Path

def refuse_io_uring_setup(error):
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filters", ctypes.c_void_p)]
    program = Program(len(rows), ctypes.addressof(filters))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    return libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, by_filter, ctypes.byref(program), 0, 0)

if refuse_io_uring_setup(int(sys.argv[1])):
    sys.exit(77)

from tkperf.engine.fio_setup import choose_ioengine
from tkperf.pipeline.diagnosis import diagnose_device, diagnose_host

of_run = choose_ioengine(sys.argv[2], 512, None, jobs=2, io_depth=4)
audits = [diagnose_device(sys.argv[2]).audit, diagnose_host().audit]
found = [one.found for audit in audits for one in audit.findings if one.subject == "io_uring"]
print(json.dumps([of_run.name, of_run.instead_of, *found]))
"""


@pytest.mark.fio
@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOMEM, errno.ENOSYS], ids=os.strerror)
def test_doctor_and_run_agree_that_io_uring_is_refused(scratch: Path, number: int) -> None:
    """The kernel's switch does not show it: fio has to try it. Device and host get the same answer."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(number), str(scratch)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode == 77:
        pytest.skip("this machine takes no seccomp filter")
    assert done.returncode == 0, done.stderr
    ioengine, instead_of, *found = json.loads(done.stdout)
    assert ioengine == "libaio"
    assert instead_of.startswith(f"io_uring: {os.strerror(number)}")
    words = f"io_uring cannot be used, so libaio will be used: {os.strerror(number)}"
    assert [text.partition(": fio")[0] for text in found] == [words, words]
