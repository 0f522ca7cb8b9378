"""If the I/O engine, the counters or the flushes of a run differ from what a user expects, the run discloses this."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

import tkperf
from tkperf.host.audit.audited_host import Audit
from tkperf.pipeline.consent import Consent
from tkperf.pipeline.host_check import HostState
from tkperf.pipeline.run_disclosure import RunTitle, build_run_info


def test_another_io_engine_than_the_first_choice_is_a_warning() -> None:
    """An I/O engine that is not the first choice causes a warning with the engine and the reason, because results of
    libaio and io_uring differ.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick", tests=["lat"])
    with plan.dut.open(plan.fitted, Consent()) as equipment:
        assert equipment.warnings == ()
        instead = replace(equipment, ioengine="libaio", instead_of="io_uring: Operation not permitted")
    (warning,) = instead.warnings
    assert warning.code == "ioengine"
    assert warning.text == "libaio issues the I/O, because io_uring: Operation not permitted"


def test_one_thread_looks_at_the_counters_of_a_device(scratch: Path) -> None:
    """A single thread reads the counters of the devices, because each reading takes CPU time from the load. The thread
    reads more than one device only if the target is a set of several devices.
    """
    plan = tkperf.make_plan("ssd", str(scratch), profile="quick", tests=["lat"])
    with plan.dut.open(plan.fitted, Consent(confirm=str(scratch))) as equipment:
        looking = [thread for thread in threading.enumerate() if thread.name == "counters"]
        assert len(looking) == 1
        assert equipment.counters is not None
        assert equipment.fill_counters is None


FLUSHING = """
format = 1
name = "flushing"
title = "Flushing"
[loads.log]
access = "sequential"
read_percent = 0
block_size_kib = 4
flush_every = 4
[loads.reader]
access = "random"
read_percent = 100
block_size_kib = 4
[[phases]]
kind = "rounds"
section = "Rounds"
together = ["reader", "log"]
step_s = 1
rounds = 1
"""


@pytest.mark.parametrize(
    ("cache", "flushes", "said"),
    [("write through", True, True), ("write through", False, False), ("write back", True, False)],
)
def test_a_run_discloses_that_no_flushes_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scratch: Path, cache: str, flushes: bool, said: bool
) -> None:
    """If a load issues flushes and the write cache is in write-through mode, the run discloses that the kernel sends no
    flushes.
    """
    own = tmp_path / "own.toml"
    own.write_text(FLUSHING if flushes else FLUSHING.replace("flush_every = 4\n", ""))
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue/write_cache").write_text(f"{cache}\n")
    monkeypatch.setattr("tkperf.pipeline.run_disclosure.find_node", lambda _: tmp_path)
    plan = tkperf.make_plan("ssd", str(scratch), profile="quick", tests=[str(own)])
    with plan.dut.open(plan.fitted, Consent(confirm=str(scratch))) as equipment:
        identity = replace(plan.fitted.identity, major_minor="259:0")
        disk = replace(equipment, fitted=replace(plan.fitted, identity=identity))
        info = build_run_info(plan.request, RunTitle(name="run"), disk, HostState(audit=Audit()))
    assert any(notice.startswith("NO FLUSHES SENT: ") for notice in info.notices) is said
