"""docs/reference/progress-json.md describes the output of ``--progress json`` with every event, every field and every
type.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.cli.test_bad_input import tkperf
from tests.procedures.test_own_workloads import EVERYTHING
from tkperf import make_plan
from tkperf.cli.lines import JsonLines
from tkperf.model.phases import Demand, Idle, Purge, SectionOutcome
from tkperf.model.record import RunNote, RunStatus
from tkperf.pipeline.api import resume, run
from tkperf.pipeline.resume_plan import ResumeRequest, make_resume_plan
from tkperf.runner.events import (
    Event,
    EventsDropped,
    Noted,
    PhaseStarted,
    RunEnded,
    SampleSeen,
    SectionEnded,
    StepEnded,
    TargetBusy,
    TestStarted,
)

PAGE = Path(__file__).parents[2] / "docs/reference/progress-json.md"
SHORT = Path(__file__).parents[1] / "short.toml"
PLAIN = {"text": str, "integer": int, "number": int | float, "boolean": bool, "object": dict, "null": type(None)}


def read_page() -> dict[str, dict[str, str]]:
    """Return the fields and their types for each object on the page."""
    objects: dict[str, dict[str, str]] = {}
    name = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            name = line.lstrip("# ")
        elif line.startswith("| `"):
            _, field, type_, _unit, _meaning, _ = (cell.strip(" `") for cell in line.split("|"))
            type_ = re.sub(r"\[(\w+)\]\(#\w+\)", r"\1", type_)
            assert field not in objects.setdefault(name, {}), (name, field)
            objects[name][field] = type_
    return objects


OBJECTS = read_page()
KINDS = {each.__name__: each for each in get_args(Event)}
# These objects occur on the page, but are not events of a run.
OF_A_BATCH = {"DriveStageChanged", "BatchNoted"}


def faults(value: Any, type_: str, place: str) -> list[str]:
    """Return the positions at which a value does not have the type that the page states."""
    list_of = "list of "
    if type_.startswith("(") and type_.endswith(")"):
        type_ = type_[1:-1]
    choices = [] if type_.startswith(f"{list_of}(") else re.split(r", | or ", type_)
    if len(choices) > 1:
        found = [faults(value, choice, place) for choice in choices]
        return [] if [] in found else min(found, key=len)
    if type_.startswith(list_of):
        if not isinstance(value, list):
            return [f"{place}: {value!r} is no list"]
        return [
            fault
            for number, each in enumerate(value)
            for fault in faults(each, type_.removeprefix(list_of), f"{place}[{number}]")
        ]
    if type_ in PLAIN:
        fits = isinstance(value, PLAIN[type_]) and (type_ == "boolean" or value is not True)
        return [] if fits else [f"{place}: {value!r} is no {type_}"]
    if not isinstance(value, dict):
        return [f"{place}: {value!r} is no {type_}"]
    known = OBJECTS[type_]
    if "kind" in known and type_ != value["kind"] and type_ in ("Purge", "Fill", "Round", "Idle"):
        return [f"{place}: no {type_}"] * 99
    odd = [f"{place}.{key}: only on one side" for key in value.keys() ^ known.keys()]
    return odd + [
        fault for key in value.keys() & known.keys() for fault in faults(value[key], known[key], f"{place}.{key}")
    ]


def assert_as_on_the_page(text: str) -> set[str]:
    """Require that each line is strict JSON as described on the page. Return the kinds of events that occurred."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    found = set()
    for line in text.splitlines():
        event = json.loads(line, parse_constant=refuse)
        kind = event.pop("event")
        found.add(kind)
        assert faults(event, kind, kind) == []
    return found


def test_the_page_has_every_event_and_no_other() -> None:
    """The page lists all events that exist, and no others. For each event that tkperf writes unchanged, the page also
    lists every field.
    """
    assert list(KINDS)[-1] == "EventsDropped"
    assert OBJECTS.keys() >= KINDS.keys()
    # These events are written with fewer fields than the records of samples and steps have.
    for name in KINDS.keys() - {SampleSeen.__name__, StepEnded.__name__, TestStarted.__name__}:
        assert {each.name for each in fields(KINDS[name])} == OBJECTS[name].keys(), name
    assert {each.name for each in fields(TestStarted)} - {"plan"} == OBJECTS["TestStarted"].keys()


def test_every_object_is_used_and_every_name_explained() -> None:
    """The page refers to every object that it describes, and describes every object that it refers to."""
    named = {word for types in OBJECTS.values() for type_ in types.values() for word in re.findall(r"[A-Z]\w+", type_)}
    assert named == OBJECTS.keys() - KINDS.keys() - OF_A_BATCH


def test_runs_write_what_the_page_says(tmp_path: Path) -> None:
    """The page describes exactly the output of runs with every kind of phase, and of a run that was resumed."""
    own = tmp_path / "own.toml"
    own.write_text(EVERYTHING)
    written = StringIO()
    lines = JsonLines(written)

    def observe(event: Event) -> None:
        lines(event, None)  # type: ignore[arg-type] # the line omits the time

    tests = ("lat", "writesat", str(own))
    plan = make_plan("ssd", "sim:sata-ssd", profile=SHORT, tests=tests)
    run(plan, "run", folder=tmp_path, observers=(observe,))
    request = ResumeRequest(path=tmp_path / "run.tkperf", repeat=("lat",))
    resume(make_resume_plan(request), observers=(observe,))
    found = assert_as_on_the_page(written.getvalue())
    assert KINDS.keys() - found <= {"Noted", "Warned", "EventsDropped", "TargetBusy"}


def test_rare_events_are_as_the_page_says() -> None:
    """Rare events match their descriptions on the page. Each optional value is present in one object and missing from
    another.
    """
    written = StringIO()
    lines = JsonLines(written)
    outcome = SectionOutcome(
        section="IOPS", window=(1, 2), verdict=None, ended_because="all is measured", demand=Demand(jobs=4, io_depth=32)
    )
    rare: tuple[Event, ...] = (
        TargetBusy(test="iops", doing="purging", done=None, at_s=1.0),
        TargetBusy(test="iops", doing="purging", done=0.5, at_s=2.0),
        Noted(note=RunNote(code="sleep-not-inhibited", text="why")),
        PhaseStarted(test="iops", phase=Purge(section="IOPS"), at_s=0.0, shortest_s=1.0, longest_s=2.0),
        PhaseStarted(
            test="iops", phase=Idle(section="IOPS", duration_s=5.0), at_s=0.0, shortest_s=1.0, longest_s=float("inf")
        ),
        SectionEnded(test="iops", outcome=outcome),
        RunEnded(status=RunStatus.FAILED, because="fio ended", ended_utc=None),
        EventsDropped(samples=3, others=0),
    )
    for event in rare[:4] + rare[5:]:
        lines(event, None)  # type: ignore[arg-type]
    assert len(assert_as_on_the_page(written.getvalue())) == 6


def test_a_mistake_on_the_page_would_be_found() -> None:
    """The test detects every kind of mistake on the page: an additional field, a missing field, or a field of another
    type.
    """
    right = {"samples": 3, "others": 0}
    assert faults(right, "EventsDropped", "e") == []
    assert faults({**right, "more": 1}, "EventsDropped", "e") == ["e.more: only on one side"]
    assert faults({"samples": 3}, "EventsDropped", "e") == ["e.others: only on one side"]
    assert faults({**right, "others": "0"}, "EventsDropped", "e") == ["e.others: '0' is no integer"]
    assert faults([1.0, None], "list of (number or null)", "e") == []
    assert faults(["x", None], "list of (number or null)", "e") == ["e[0]: 'x' is no number"]


@pytest.mark.fio
def test_a_real_run_and_its_watching_write_what_the_page_says(tmp_path: Path) -> None:
    """The page describes the output of a real run with fio on a scratch file, and of the command that watches
    this run.
    """
    argv: list[str | Path] = [
        "ssd",
        "n",
        tmp_path / "scratch.img",
        "--size",
        "64MiB",
        "-ft",
        "--profile",
        SHORT,
        "-ssdt",
        "lat",
        "--output",
        tmp_path,
    ]
    done = tkperf(*argv, "--detach", "-rt", "5")
    assert done.returncode == 0, done.stderr
    watched = tkperf("attach", tmp_path / "n.tkperf", "--progress", "json")
    assert watched.returncode == 0
    found = assert_as_on_the_page(watched.stdout)
    assert {"RunStarted", "TestStarted", "StepEnded", "SampleSeen", "RunEnded"} <= found
    (tmp_path / "n.tkperf").unlink()
    (tmp_path / "scratch.img").unlink()
    done = tkperf(*argv, "--progress", "json")
    assert done.returncode == 0, done.stderr
    found = assert_as_on_the_page(done.stdout)
    assert found >= {"RunStarted", "PhaseStarted", "StepStarted", "SampleSeen", "PurgeEnded"}
