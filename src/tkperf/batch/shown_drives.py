"""A drive of a batch as the user sees it before consent, of the plan that its run would follow."""

from __future__ import annotations

import msgspec

from tkperf.analysis.run_estimate import RunEstimate
from tkperf.batch.protocol import Held
from tkperf.batch.request import BatchDrive
from tkperf.device.identity import TargetKind
from tkperf.host.paths import read_path
from tkperf.model.batch_state import DriveShown
from tkperf.model.units import on_one_line
from tkperf.pipeline.consent import Question
from tkperf.pipeline.run_plan import RunPlan

# What a message carries at most, of texts from outside.
_MOST_WARNINGS, _LONGEST_TEXT = 20, 1_000


def show_drive(
    number: int,
    drive: BatchDrive,
    plan: RunPlan,
    estimate: RunEstimate,
    *,
    question: Question | None = None,
    resumed: str = "",
) -> Held:
    """Return what is known of a drive before consent.

    Args:
        number: its place in the batch.
        question: the question before its data is lost; None: nothing is lost, or nothing is asked yet.
        resumed: how its run goes on; empty for a new run.
    """
    identity, facts = plan.dut.identity, plan.dut.facts.values
    way = msgspec.structs.replace(read_path(identity), drive=drive.name)
    return Held(
        shown=DriveShown(
            number=number,
            name=drive.name,
            path=identity.path,
            capacity_bytes=identity.capacity_bytes,
            slot=drive.slot or way.slot,
            model=short(identity.model) or None,
            serial=short(identity.serial) or None,
            wwn=short(identity.wwn) or None,
            firmware=short(identity.firmware) or None,
            link=short(str(facts.get("link") or "")) or None,
            data=tuple(map(short, question.data)) if question is not None else (),
            is_file=identity.kind is TargetKind.FILE,
            confirm_id=None if question is None else question.expected,
        ),
        shortest_s=estimate.shortest_s,
        longest_s=estimate.longest_s,
        jobs=max(load.jobs for test in plan.tests for load in test.workloads),
        way=way,
        resumed=short(resumed),
        warnings=tuple(short(one.text) for one in plan.warnings[:_MOST_WARNINGS]),
    )


def short(text: str | None) -> str:
    """Return a text from outside in the form for messages: one line without control characters."""
    return on_one_line(text or "")[:_LONGEST_TEXT]
