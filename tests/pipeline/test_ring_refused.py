"""If a filter or a limit of the host refuses io_uring, tkperf announces the I/O engine before the run. The run then
uses the announced engine.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tkperf
from tkperf.analysis.estimates import REFUSAL
from tkperf.engine import RequiredIo, fio_setup, registry
from tkperf.host.audit import Audit, AuditLevel
from tkperf.model.errors import EngineError
from tkperf.pipeline import host_check, run_plan
from tkperf.pipeline.host_check import audit_for
from tkperf.pipeline.run_request import RunRequest

# This program refuses io_uring_setup for itself and for all programs that it starts, as the seccomp profiles of
# containers do. The BPF filter loads the number of the system call. If the number is 425, the filter returns the error.
# Otherwise the filter permits the call (seccomp(2)).
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

from tkperf.engine import RequiredIo
from tkperf.engine.fio_setup import choose_ioengine
from tkperf.pipeline.diagnosis import diagnose_device, diagnose_host

of_run = choose_ioengine(sys.argv[2], 512, None, RequiredIo(jobs=2, io_depth=4))
audits = [diagnose_device(sys.argv[2]).audit, diagnose_host().audit]
found = [one.found for audit in audits for one in audit.findings if one.subject == "io_uring"]
print(json.dumps([of_run.name, of_run.instead_of, *found]))
"""


@pytest.mark.fio
@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOMEM, errno.ENOSYS], ids=os.strerror)
def test_doctor_and_run_agree_that_io_uring_is_refused(scratch: Path, number: int) -> None:
    """``tkperf doctor`` and the run agree that io_uring is refused. The kernel setting does not show the refusal. fio
    therefore has to try io_uring, both for the device and for the host.
    """
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(number), str(scratch)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode == 77:
        pytest.skip("this machine takes no seccomp filter")
    assert done.returncode == 0, done.stderr
    ioengine, instead_of, *found = json.loads(done.stdout)
    assert ioengine == "libaio"
    assert instead_of.startswith(f"io_uring: {os.strerror(number)}")
    words = f"io_uring cannot be used, so libaio will be used: {os.strerror(number)}"
    assert [text.partition(": fio")[0] for text in found] == [words, words]


def pretend_fio(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]) -> None:
    """Pretend that fio has this version and that every I/O engine works."""
    words = f"fio-{version[0]}.{version[1]}"
    monkeypatch.setattr(fio_setup, "_read_version", lambda: (words, version))
    monkeypatch.setattr(fio_setup, "_why_not", lambda *_: None)
    monkeypatch.setattr(registry, "find_program", lambda name: f"/{name}")
    # The cache would return this result in other tests.
    uncached = host_check._try_ioengines_without_device.__wrapped__
    monkeypatch.setattr(host_check, "_try_ioengines_without_device", uncached)


@pytest.mark.parametrize(
    ("version", "test", "says"),
    [
        ((3, 33), "iops", None),
        ((3, 33), "cbw", "io_uring cannot be used, so libaio will be used: fio-3.33 would keep 8"),
        ((3, 39), "cbw", None),
    ],
)
def test_plan_looks_at_all_queue_depths_of_the_run(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int], test: str, says: str | None
) -> None:
    """``tkperf plan`` checks all queue depths of a run, and not only the queue depth of the heaviest load. In ``cbw``,
    the heaviest load has a queue depth of 32. Another load has a queue depth of 6, which fio before 3.39 rounds up to
    8.
    """
    audits: list[Audit] = []

    def audit(*arguments: object, **options: object) -> Audit:
        audits.append(audit_for(*arguments, **options))  # type: ignore[arg-type]
        return audits[-1]

    pretend_fio(monkeypatch, version)
    monkeypatch.setattr(run_plan, "audit_for", audit)
    plan = tkperf.make_plan("ssd", str(scratch), tests=[test])
    (found,) = (one for one in audits[0].findings if one.subject == "io_uring")
    if says is None:
        assert (found.level, "libaio" in found.found) == (AuditLevel.OK, False)
    else:
        assert found.level is AuditLevel.ADVICE
        assert found.found.startswith(says)
    in_run = fio_setup.choose_ioengine(
        str(scratch), 512, None, RequiredIo(io_depths=frozenset(load.io_depth for load in plan.fitted.workloads))
    )
    assert (in_run.name == "libaio") is (says is not None)


MIXED_WITH_FLUSHES = """
format = 1
name = "mixed"
title = "Mixed"
[loads.mixed]
access = "random"
read_percent = 50
block_size_kib = 4
flush_every = 4
[[phases]]
kind = "stream"
section = "Mixed"
load = "mixed"
slice_s = 5
longest_s = 10
"""


@pytest.mark.parametrize(("version", "refuses"), [((3, 37), True), ((3, 38), False)])
def test_plan_names_the_refusal_of_the_run(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int], refuses: bool
) -> None:
    """``tkperf plan`` states that the installed fio cannot do the I/O of a test, and the run is refused before tkperf
    asks any question.
    """
    pretend_fio(monkeypatch, version)
    workload = tmp_path / "mixed.toml"
    workload.write_text(MIXED_WITH_FLUSHES, encoding="utf-8")
    request = RunRequest(suite="ssd", device=str(scratch), tests=(str(workload),))
    refusals = [one.text for one in run_plan.plan_run(request, look_only=True).warnings if one.code == REFUSAL]
    assert len(refusals) == refuses
    if refuses:
        assert "fio-3.37 would flush again after each read" in refusals[0]
        with pytest.raises(EngineError, match=r"fio-3\.37 would flush again after each read"):
            run_plan.plan_run(request)
    else:
        assert run_plan.plan_run(request).tests


@pytest.mark.parametrize(("version", "named"), [((3, 33), True), ((3, 39), False)])
def test_doctor_names_the_queue_depths_that_io_uring_does_not_keep(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int], named: bool
) -> None:
    """``tkperf doctor`` does not know which tests a run will contain, so it warns that old versions of fio round queue
    depths up. fio does not round the depths of the default tests, 1 and 32.
    """
    pretend_fio(monkeypatch, version)
    (found,) = (one for one in audit_for([], lasts_s=60).findings if one.subject == "io_uring")
    assert found.level is AuditLevel.OK
    assert ("fio-3.33 rounds a queue depth such as 6 up" in found.found) is named
