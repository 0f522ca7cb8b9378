"""A new engine needs only its own module and an entry in the registry. The layers above do not change."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tkperf.engine import PROBE_S, ChosenEngine, Engine, RequiredIo, RunSeeds
from tkperf.engine.device_engine import DeviceEngine, PermittedDevice
from tkperf.engine.registry import ENGINES, FIO, find_engine
from tkperf.host.audit import Audit, audit_host
from tkperf.model.errors import UsageError
from tkperf.pipeline import diagnosis, host_check
from tkperf.pipeline.run_request import RunRequest


class OtherEngine:
    """An engine that has its own I/O interface and needs no external program."""

    name = "other"
    ioengines: tuple[str, ...] = ("preadv",)
    variable = "OTHER"

    def __init__(self) -> None:
        self.programs: Mapping[str, str] = {}

    def find_named_program(self) -> str | None:
        return None

    def find_limits(self) -> tuple[str, ...]:
        return ()

    def find_version(self) -> str:
        return "other-1"

    def choose_ioengine(
        self,
        path: str,
        block_bytes: int,
        wanted: str | None,
        io: RequiredIo,
        *,
        shown_path: str | None = None,
        direct: bool = True,
    ) -> ChosenEngine:
        return ChosenEngine(name=f"preadv on {path}")

    def refuse_io(self, wanted: str | None, io: RequiredIo) -> None:
        return None

    def find_readable_file(self) -> str | None:
        return "/a file"

    def find_rounding(self) -> str | None:
        return None

    def read_bytes_per_s(self, path: str, capacity_bytes: int, *, seconds: int = PROBE_S) -> float:
        raise NotImplementedError

    def start(self, device: PermittedDevice, *, version: str) -> tuple[Engine, RunSeeds | None]:
        raise NotImplementedError


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> OtherEngine:
    """Register this engine as the only engine of a host on which all external programs are missing."""
    engine = OtherEngine()
    engines: dict[str, DeviceEngine] = {"other": engine}
    monkeypatch.setattr("tkperf.engine.registry.ENGINES", engines)
    monkeypatch.setattr(diagnosis, "find_program", lambda _: None)
    monkeypatch.setattr(diagnosis, "audit_for", lambda *_, **__: Audit())
    return engine


def test_the_interface_of_a_request_chooses_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run uses the engine with the I/O interface that the request names. If the request names none, the run uses the
    first engine.
    """
    engines: dict[str, DeviceEngine] = {**ENGINES, "other": OtherEngine()}
    monkeypatch.setattr("tkperf.engine.registry.ENGINES", engines)
    found = [find_engine(RunRequest(suite="ssd", device="/dev/x", ioengine=one).ioengine) for one in (None, "preadv")]
    assert [engine.name for engine in found] == [FIO, "other"]
    assert find_engine("libaio").name == FIO


@pytest.mark.usefixtures("other")
def test_a_request_names_the_interfaces_of_the_engine() -> None:
    """A request accepts every I/O interface of the registered engines, because a run is resumed with the interface that
    it used.
    """
    assert RunRequest(suite="ssd", device="/dev/x", ioengine="preadv").ioengine == "preadv"
    with pytest.raises(UsageError, match="'io_uring': choose from preadv"):
        RunRequest(suite="ssd", device="/dev/x", ioengine="io_uring")


def test_doctor_asks_the_engine_for_the_programs_that_it_needs(other: OtherEngine) -> None:
    """``tkperf doctor`` asks the engine which programs it needs. If such a program is missing, doctor reports that no
    device can be measured.
    """
    assert diagnosis.diagnose_host().could_measure
    other.programs = {"setpriv": "ending it with tkperf"}
    found = diagnosis.diagnose_host()
    assert not found.could_measure
    assert "setpriv" in found.missing


@pytest.mark.usefixtures("other")
def test_the_audit_speaks_of_the_engine_in_use() -> None:
    """The audit of the host names the limits for the engine that is used. If an engine does not use io_uring, the audit
    does not request a kernel setting for io_uring.
    """
    findings = audit_host(host_check.describe_audited_host(), ()).findings
    assert any("tkperf or other" in one.why or "other could not" in one.why for one in findings)
    assert not any(one.subject == "io_uring" or "fio" in one.why for one in findings)


@pytest.mark.usefixtures("other")
def test_interfaces_are_tried_on_a_file_of_the_engine() -> None:
    """Without a device, ``tkperf doctor`` tests the I/O interfaces on a file that the engine provides."""
    try_uncached = host_check._try_ioengines_without_device.__wrapped__
    found = try_uncached(RequiredIo())
    assert found is not None
    assert found.name == "preadv on /a file"
