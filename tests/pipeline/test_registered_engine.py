"""Another engine needs its module and its entry in the registry, and nothing else in the rooms above."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tkperf.engine.registry import ENGINES, FIO
from tkperf.host.audit import Audit, audit_host
from tkperf.model.errors import UsageError
from tkperf.pipeline import diagnosis, host_check
from tkperf.pipeline.run_request import RunRequest


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """An engine that needs no program, in the place of fio, on a host without any program."""
    engine = SimpleNamespace(
        name="other",
        programs={},
        ioengines=("preadv",),
        find_named_program=lambda: None,
        find_version=lambda: "other-1",
        find_rounding=lambda: None,
        find_readable_file=lambda: "/a file",
        choose_ioengine=lambda path, *_, **__: SimpleNamespace(name=f"preadv on {path}", instead_of=None),
    )
    engines: dict[str, Any] = {**ENGINES, FIO: engine}
    monkeypatch.setattr("tkperf.engine.registry.ENGINES", engines)
    monkeypatch.setattr(diagnosis, "find_program", lambda _: None)
    monkeypatch.setattr(diagnosis, "audit_for", lambda *_, **__: Audit())
    return engine


@pytest.mark.usefixtures("other")
def test_a_request_names_the_interfaces_of_the_engine() -> None:
    """A run is resumed with the interface that it used, so a request has to accept every one of them."""
    assert RunRequest(suite="ssd", device="/dev/x", ioengine="preadv").ioengine == "preadv"
    with pytest.raises(UsageError, match="'io_uring': choose from preadv"):
        RunRequest(suite="ssd", device="/dev/x", ioengine="io_uring")


def test_doctor_asks_the_engine_for_the_programs_that_it_needs(other: SimpleNamespace) -> None:
    """Without a program of the engine nothing can be measured; other programs are only missing."""
    assert diagnosis.diagnose_host().could_measure
    other.programs = {"setpriv": "ending it with tkperf"}
    found = diagnosis.diagnose_host()
    assert not found.could_measure
    assert "setpriv" in found.missing


@pytest.mark.usefixtures("other")
def test_the_audit_speaks_of_the_engine_in_use() -> None:
    """The limits of the host concern this engine, and an engine without io_uring needs no switch for it."""
    findings = audit_host(host_check.make_site(), ()).findings
    assert any("tkperf or other" in one.why or "other could not" in one.why for one in findings)
    assert not any(one.subject == "io_uring" or "fio" in one.why for one in findings)


@pytest.mark.usefixtures("other")
def test_interfaces_are_tried_on_a_file_of_the_engine() -> None:
    """Doctor has no device to try them on."""
    try_uncached = host_check._try_ioengines_without_device.__wrapped__
    found = try_uncached(1, 1, frozenset({1}))
    assert found is not None
    assert found.name == "preadv on /a file"
