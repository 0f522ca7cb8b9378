"""Verdicts before a run: whether a device can be tested, whether this host can measure, and which settings of the host
must still be changed.

The argument of each function is the document that ``--json`` prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tkperf.analysis.host_conditions import ADVICE, DISTURBS, HostCondition, host_findings
from tkperf.analysis.verdict import Judgement, NamedReason, VerdictCode, VerdictState, judge_by_gravest

Data = Mapping[str, Any]
"""A document that ``--json`` prints, or a part of such a document."""

# The kind of target that is simulated.
SIMULATED_DRIVE = "simulated drive"


class DeviceCode(VerdictCode):
    """Reasons for the verdict on a device."""

    OBJECTION = "objection", VerdictState.CANNOT_BE_TESTED
    HOLDS_DATA = "holds-data", VerdictState.CAN_BE_TESTED_WITH_CAUTIONS
    SLOW_LINK = "slow-link", VerdictState.CAN_BE_TESTED_WITH_CAUTIONS
    WOULD_DISTURB = "would-disturb", VerdictState.CAN_BE_TESTED_WITH_CAUTIONS
    MAY_DISTURB = "may-disturb", VerdictState.CAN_BE_TESTED


class HostCode(VerdictCode):
    """Reasons for the verdict on the host."""

    NO_FIO = "no-fio", VerdictState.CANNOT_MEASURE
    NEEDED = "needed-program-missing", VerdictState.CANNOT_MEASURE
    MISSING = "program-missing", VerdictState.CAN_MEASURE_WITH_CAUTIONS
    LIMITED = "limited", VerdictState.CAN_MEASURE_WITH_CAUTIONS
    WOULD_DISTURB = "would-disturb", VerdictState.CAN_MEASURE_WITH_CAUTIONS
    MAY_DISTURB = "may-disturb", VerdictState.CAN_MEASURE


class TuneCode(VerdictCode):
    """Reasons for the verdict on settings for a run."""

    WOULD_CHANGE = "would-change", VerdictState.TUNED_IN_PART
    WOULD_DISTURB = "would-disturb", VerdictState.TUNED_IN_PART
    MAY_DISTURB = "may-disturb", VerdictState.TUNED


class RestoreCode(VerdictCode):
    """Reasons for the verdict on settings that tkperf should have restored."""

    NOT_PUT_BACK = "not-put-back", VerdictState.NOT_PUT_BACK
    LEFT = "left-unchanged", VerdictState.PUT_BACK_IN_PART


def judge_device(found: Data) -> Judgement[NamedReason]:
    """Return the verdict on whether a device can be tested. If tkperf would refuse the device, the function examines no
    other reason.
    """
    facts = found["facts"]
    simulated = facts["kind"] == SIMULATED_DRIVE
    reasons = [NamedReason(code=DeviceCode.OBJECTION, names=(objection["text"],)) for objection in found["objections"]]
    if not reasons and not simulated:
        if found["data"]:
            reasons.append(NamedReason(code=DeviceCode.HOLDS_DATA, names=tuple(found["data"])))
        if facts["link_downgraded"]:
            reasons.append(NamedReason(code=DeviceCode.SLOW_LINK))
        reasons += _of_findings(
            host_findings({"audit": found["host"]}), DeviceCode.WOULD_DISTURB, DeviceCode.MAY_DISTURB
        )
    return judge_by_gravest(reasons, VerdictState.CAN_BE_TESTED, simulated=simulated)


def judge_host(found: Data) -> Judgement[NamedReason]:
    """Return the verdict on whether this host can measure. If the host cannot measure, the function examines no other
    reason.
    """
    missing = tuple(found["missing"])
    reasons = []
    if not found["could_measure"]:
        # If fio cannot be used, the entry for the version contains a text with the reason.
        unusable = " " in found["fio"]
        code = HostCode.NO_FIO if unusable else HostCode.NEEDED
        reasons.append(NamedReason(code=code, names=(found["fio"],) if unusable else missing))
    else:
        if missing:
            reasons.append(NamedReason(code=HostCode.MISSING, names=missing))
        reasons += [NamedReason(code=HostCode.LIMITED, names=(text,)) for text in found["remarks"]]
        reasons += _of_findings(host_findings({"audit": found["audit"]}), HostCode.WOULD_DISTURB, HostCode.MAY_DISTURB)
    return judge_by_gravest(reasons, VerdictState.CAN_MEASURE, simulated=False)


def judge_tuning(found: Data, *, applied: bool) -> Judgement[NamedReason]:
    """Return the verdict on the settings for a run. The verdict names the settings that must still be changed.
    ``applied`` means that tkperf changed the settings.
    """
    changes = () if applied else tuple(row["path"] for row in find_changes(found))
    reasons = [NamedReason(code=TuneCode.WOULD_CHANGE, names=changes)] if changes else []
    reasons += _of_findings(find_not_tuned(found), TuneCode.WOULD_DISTURB, TuneCode.MAY_DISTURB)
    return judge_by_gravest(reasons, VerdictState.TUNED, simulated=False)


def judge_restored(found: Data) -> Judgement[NamedReason]:
    """Return the verdict on whether the settings again have their original values."""
    kinds = {RestoreCode.NOT_PUT_BACK: found["failed"], RestoreCode.LEFT: found["left"]}
    reasons = [NamedReason(code=code, names=tuple(names)) for code, names in kinds.items() if names]
    return judge_by_gravest(reasons, VerdictState.PUT_BACK, simulated=False)


def find_settings(found: Data) -> list[Data]:
    """Return all settings that tkperf needs for a run, including settings that already have the required value."""
    return [row for row in found["settings"] if row["wanted"] is not None]


def find_changes(found: Data) -> list[Data]:
    return [row for row in find_settings(found) if is_changed(row)]


def is_changed(row: Data) -> bool:
    """Return whether tkperf would change a setting. A setting that the kernel does not offer is not changed."""
    return row["now"] is not None and row["now"] != row["wanted"] and row["offered"] is not False


def find_not_tuned(found: Data) -> list[HostCondition]:
    """Return the findings that disturb or may disturb a run and that tkperf cannot correct."""
    own = {row["subject"] for row in find_settings(found)}
    return [
        one
        for one in host_findings({"audit": found["host"]})
        if one.level in (DISTURBS, ADVICE) and one.title not in own
    ]


def _of_findings(
    findings: Sequence[HostCondition], disturbs: VerdictCode, advice: VerdictCode
) -> Iterator[NamedReason]:
    for level, code in ((DISTURBS, disturbs), (ADVICE, advice)):
        names = dict.fromkeys(one.title for one in findings if one.level == level)
        if names:
            yield NamedReason(code=code, names=tuple(names))
