"""Facts of a run, from the table run of its file; impossible facts are left out, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import msgspec

from tkperf.model.record import RunStatus
from tkperf.model.run_info import RunInfo
from tkperf.runfile.rows import Count, PositiveCount, convert

# No fact is nested deeper than profile.own_workload.phases[0].tracked[0].at.io_depth.
_DEEPEST = 7


def _nested(levels: int) -> Any:
    """Return the type of plain data with at most ``levels`` nested lists or tables."""
    scalar: Any = str | bool | int | float | None
    if not levels:
        return scalar
    inner: Any = _nested(levels - 1)
    return scalar | list.__class_getitem__(inner) | dict.__class_getitem__((str, inner))


_Fact = _nested(_DEEPEST)


class _Drive(msgspec.Struct):
    """A drive's identity, used to compare and combine runs, and its size."""

    kind: str | None = None
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    capacity_bytes: Count | None = None


class _Device(_Drive):
    members: tuple[_Drive, ...] | None = None


class _Facts(msgspec.Struct):
    """Facts that are input of computations."""

    device: _Device
    active_range_offset_bytes: Count | None
    active_range_length_bytes: PositiveCount | None
    seed: Count | None


class RunEnd(msgspec.Struct, frozen=True):
    """The end of the run, among its facts."""

    status: RunStatus
    ended_utc: str | None
    ended_because: str | None


_TABLES = ("profile", "options", "device")


_FACTS = get_type_hints(RunInfo)


_FACT_CHECKS = {
    key: [
        msgspec.defstruct(key, [(key, check)])
        for check in (_Fact, type_, get_type_hints(_Facts, include_extras=True).get(key))
        if check is not None
    ]
    for key, type_ in _FACTS.items()
}


# Values for missing facts. A run has a device: one without may also be an imported run.
_NOT_KNOWN: dict[str, Any] = {
    "suite": "not known",
    "tkperf_version": "not known",
    "fio_version": None,
    "ioengine": "not known",
    "command_line": (),
    "started_utc": None,
    "profile_name": "not known",
    "profile": {},
    "options": {},
    "device": {},
    "hosts": (),
    "active_range_offset_bytes": None,
    "active_range_length_bytes": None,
}  # fmt: skip


def parse_run_facts(facts: Mapping[str, Any], *, name: str) -> tuple[RunInfo, dict[str, str]]:
    """Return the readable facts of a run, and the reason for each unreadable one.

    Args:
        name: of the run, if its facts have none.
    """
    readable: dict[str, Any] = dict(_NOT_KNOWN, name=name)
    unread: dict[str, str] = {}
    for key, type_ in _FACTS.items():
        if key not in facts:
            if key in readable:
                unread[key] = "it is missing"
            continue
        value, reasons = mend_fact(key, facts[key])
        unread.update(reasons)
        if key in reasons:
            continue
        readable[key] = msgspec.convert(value, type_)
    return RunInfo(**readable), unread


def mend_fact(key: str, value: object) -> tuple[Any, dict[str, str]]:
    """Return a fact of RunInfo without its impossible parts, and the reasons."""
    reasons: dict[str, str] = {}
    # A bad entry of a device, host or profile must not remove the others.
    if isinstance(value, dict) and key in _TABLES:
        return _mend_table(key, value, lambda entry: _why_not(key, entry))
    if key == "hosts" and isinstance(value, list) and all(isinstance(one, dict) for one in value):
        mended = [
            _mend_table(f"{key}[{index}]", one, lambda entry: _why_not(key, [entry]))
            for index, one in enumerate(value)
        ]
        for _, why in mended:
            reasons.update(why)
        value = [one for one, _ in mended]
    elif reason := _why_not(key, value):
        reasons[key] = reason
    return value, reasons


def _mend_table(
    name: str, table: dict[str, Any], why_not: Callable[[dict[str, Any]], str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a table without its impossible entries, and the reasons."""
    reasons = {key: why_not({key: value}) for key, value in table.items()}
    return (
        {key: value for key, value in table.items() if not reasons[key]},
        {f"{name}.{key}": reason for key, reason in reasons.items() if reason},
    )


def _why_not(key: str, value: object) -> str:
    for type_ in _FACT_CHECKS[key]:
        try:
            convert("run", {key: value}, type_)
        except (ValueError, RecursionError) as error:
            return str(error)
    return ""
