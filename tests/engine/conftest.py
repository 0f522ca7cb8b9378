"""Fixtures with a scripted fio, and with engines for scratch files."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tkperf.device.identity import read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.engine import ChosenEngine
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.device_jobs import DeviceJobs, Seeds
from tkperf.engine.fio import FioEngine
from tkperf.model.workload import Access, ActiveRange, Workload

# The scenario of a scripted fio: a list of plays for each block size (see fake_fio.py).
Scenario = Mapping[str, list[Any]]


@pytest.fixture
def fake_fio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Scenario], None]:
    """Put a fio that plays a scenario on the PATH (see fake_fio.py)."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "fio"
    source = Path(__file__).with_name("fake_fio.py").read_text()
    program.write_text(f"#!{sys.executable} -IS\n" + source.partition("\n")[2])
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_FIO", str(tmp_path / "scenario.json"))

    def play(scenario: Scenario) -> None:
        (tmp_path / "scenario.json").write_text(json.dumps(scenario))

    play({})
    return play


@pytest.fixture
def make_engine(scratch: Path) -> Iterator[Callable[..., FioEngine]]:
    """Yield a function that creates engines for a scratch file. At the end, stop all loads that the engines
    still run.
    """
    permit = grant_permit(hold_target(read_identity(scratch)), confirmed_id=str(scratch)).redeem()
    made: list[FioEngine] = []

    def make(**options: Any) -> FioEngine:
        engine = FioEngine(
            DeviceJobs(
                PermittedDevice(
                    permit=permit,
                    ioengine=ChosenEngine(name="libaio"),
                    active_range=ActiveRange(offset_bytes=0, length_bytes=scratch.stat().st_size),
                    **options,
                )
            ),
            version="",
            cpus=2,
            seeds=Seeds(1),
        )
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.close()
    permit.release()


def workload(
    *,
    jobs: int = 2,
    io_depth: int = 4,
    block_size_bytes: int = 4096,
    read_percent: int = 0,
    access: Access = Access.RANDOM,
) -> Workload:
    return Workload(
        access=access, read_percent=read_percent, block_size_bytes=block_size_bytes, jobs=jobs, io_depth=io_depth
    )
