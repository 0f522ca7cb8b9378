"""docs/explanation/accuracy.md names existing commands and cases. The tests check the limits that the page states."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.lab import block_trace
from tests.lab.cases import test_accuracy as lab

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/accuracy.md").read_text(encoding="utf-8")


def bench(name: str) -> ModuleType:
    """Import a script of bench/ in such a way that it finds the modules in its folder."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(ROOT / "bench"))


def table(heading: str) -> list[list[str]]:
    """Return the cells of each row of the first table whose header begins with this text."""
    lines = PAGE[PAGE.index(f"| {heading} |") :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[2:]]


def limit(claim: str) -> str:
    """Find the only claim that begins with this text on the page, and return its limit."""
    (found,) = [row[1] for row in table("claim") if row[0].startswith(claim)]
    return found


def test_the_commands_are_those_of_the_script() -> None:
    commands = {name.strip("`"): command.strip("`") for name, command in table("name")}
    assert commands == bench("accuracy").COMMANDS


def test_the_commands_can_be_called() -> None:
    """The commands that the page lists can be called, because their scripts exist and accept the options."""
    for command in bench("accuracy").COMMANDS.values():
        _, script, *options = command.split()
        if script == "-m":
            assert command.split()[2] == "tests.lab.run"
            continue
        text = (ROOT / script).read_text(encoding="utf-8")
        for option in options:
            if option.startswith("--"):
                assert f'"{option}"' in text, (script, option)


def test_every_claim_is_measured_by_a_command_or_a_case_that_is_there() -> None:
    names = set(bench("accuracy").COMMANDS)
    for row in table("claim"):
        assert len(row) == 4, row
        named = re.findall(r"`([\w-]+)`", row[2])
        assert named or row[2] == "same", row
        for each in named:
            assert each in names or hasattr(lab, each), each


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(test_\w+)`", PAGE))))
def test_every_test_named_exists(named: str) -> None:
    tests = (ROOT / "tests").rglob("test_*.py")
    assert any(f"def {named}(" in path.read_text(encoding="utf-8") for path in tests)


def test_the_limits_are_those_that_are_checked() -> None:
    against, wall, trace = (bench(name) for name in ("against_fio", "wall_time", "against_trace"))
    streams, starts = bench("streams_against_fio"), bench("stream_starts")
    rate = f"within {100 * lab.MOST_RATE_ERROR:g} %"
    assert limit("IOPS of a drive with a known rate") == rate
    assert limit("IOPS of a drive with a known response time") == rate
    percent = f"{100 * block_trace.MOST_PERCENTILE_ERROR:g} %"
    emulated = f"{lab.MOST_OVERHEAD_US / 1000:g} ms"
    limits = f"the difference is at most {percent} plus"
    assert limit("p50 and p90") == (
        f"{limits} {trace.MOST_OVERHEAD_US:g} us; on an emulated CPU, {percent} plus {emulated}"
    )
    assert limit("p99 and p99.9") == (
        f"{limits} {trace.MOST_TAIL_OVERHEAD_US:g} us; p99 on an emulated CPU: {percent} plus {emulated}"
    )
    assert limit("overhead") == f"at most {trace.MOST_OVERHEAD_US:g} us; {emulated} on an emulated CPU"
    assert limit("IOPS compared") == "{:g} to {:g}".format(*against.IOPS_RATIOS)
    assert limit("mean latency compared") == "{:g} to {:g}".format(*against.MEAN_LATENCY_RATIOS)
    assert limit("p99.9 of latency compared") == f"at most {against.MOST_P999_RATIO:g}"
    assert (
        limit("CPU time that tkperf itself uses within steps")
        == f"at most {wall.MOST_CPU_PERCENT['long']:g} % of a CPU"
    )
    assert (
        limit("CPU time that tkperf itself uses while four streams")
        == f"at most {wall.MOST_CPU_PERCENT['together']:g} % of a CPU"
    )
    assert limit("IOPS of each stream") == "{:g} to {:g}".format(*streams.LIMITS[streams.IOPS])
    assert limit("p99.9 of each stream") == "{:g} to {:g}".format(*streams.LIMITS[streams.P999])
    spreads = ", and ".join(
        f"{most:g} ms with up to {threads} threads" for threads, most in starts.MOST_SPREAD_MS.items()
    )
    assert limit("time between the first and the last start") == f"at most {spreads}"
    gaps = ", ".join(
        f"{most:g} ms, with up to {threads} threads" for threads, most in starts.MOST_MEDIAN_GAP_MS.items()
    )
    assert limit("time from the last I/O of a step") == f"median: at most {gaps}"
    actual = "actual duration of the steps of a test, divided by the prescribed duration, with steps of"
    assert limit(f"{actual} 1 s") == f"at most {wall.MOST_AT_ONE_SECOND:g}"
    assert limit(f"{actual} 60 s") == f"at most {wall.MOST_AT_ONE_MINUTE:g}"


def test_what_is_known_is_what_the_cases_set() -> None:
    for known_iops in lab.THROTTLED:
        assert f"{known_iops:,}" in table("claim")[0][0]
    known = table("claim")[1][0]
    assert f"{lab.OUTSTANDING} outstanding I/Os" in known
    assert f"after {lab.ANSWER_US / 1000:g} ms" in known
    assert f"{lab.OUTSTANDING / lab.ANSWER_US * 1e6:g} IOPS" in known
    assert f"from 0 to {lab.LONGEST_ANSWER_US / 1000:g} ms" in PAGE


def test_a_trace_that_lost_events_is_none() -> None:
    """A trace that lost events is refused. In the statistics of the kernel, the lines about overwritten events and
    about events that were never committed end with the same word.
    """
    whole = "entries: 7\noverrun: 0\ncommit overrun: 0\nbytes: 560\ndropped events: 0\n"
    block_trace.require_whole(whole)
    for lost in ("overrun", "dropped events"):
        with pytest.raises(AssertionError, match="not whole"):
            block_trace.require_whole(whole.replace(f"\n{lost}: 0", f"\n{lost}: 706337"))
