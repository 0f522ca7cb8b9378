"""A plan as a JSON document for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

from tkperf.analysis.batch_outlook import BatchOutlook
from tkperf.analysis.outlook import Outlook
from tkperf.page.batch_plan import describe_batch_plan_verdict
from tkperf.page.plan import describe_plan_verdict
from tkperf.render.export_json import build_verdict


def render_plan_json(outlook: Outlook, audit: list[dict[str, object]]) -> str:
    """Render a plan as JSON; times in seconds, amounts in bytes. ``audit``: findings about the host."""
    return _render({"schema": "tkperf-plan/1", **_build(outlook, audit)})


def render_batch_plan_json(outlook: BatchOutlook) -> str:
    """Render the plan of a batch as JSON; ``plan`` of a drive has the keys of a single plan, null with a fault."""
    return _render(
        {
            "schema": "tkperf-batch-plan/1",
            "verdict": build_verdict(describe_batch_plan_verdict(outlook)),
            "name": outlook.name,
            "shortest_s": outlook.bounds_s[0],
            "longest_s": outlook.bounds_s[1],
            "least_written_bytes": outlook.written_bytes[0],
            "most_written_bytes": outlook.written_bytes[1],
            "refused": outlook.refused or None,
            "groups": [
                {
                    "drives": group.drives,
                    "state": group.state,
                    "budgets": [
                        {
                            "part": budget.part,
                            "drives": budget.drives,
                            "demand_bytes_per_s": budget.demand_bytes_per_s,
                            "factor": budget.factor,
                            "state": budget.state,
                        }
                        for budget in group.budgets
                    ],
                    "cpus": cpus,
                }
                for group, cpus in zip(outlook.groups, outlook.cpus, strict=True)
            ],
            "drives": [
                {
                    "number": drive.number,
                    "name": drive.name,
                    "given": drive.given,
                    "path": drive.path,
                    "slot": drive.slot,
                    "refusals": drive.refusals,
                    "plan": drive.outlook and _build(drive.outlook, drive.host),
                }
                for drive in outlook.drives
            ],
        }
    )


def _render(document: dict[str, object]) -> str:
    return json.dumps(msgspec.to_builtins(document), indent=2)


def _build(outlook: Outlook, audit: Sequence[Mapping[str, object]]) -> dict[str, object]:
    shares = outlook.shares
    return {
        "verdict": build_verdict(describe_plan_verdict(outlook)),
        "device": outlook.device,
        "profile": outlook.profile.name,
        "choices": outlook.choices,
        "alterations": outlook.alterations,
        "shortest_s": outlook.shortest_s,
        "longest_s": outlook.longest_s,
        "least_written_bytes": outlook.least_bytes,
        "most_written_bytes": outlook.most_bytes,
        "capacity_bytes": outlook.capacity_bytes,
        "rate_bytes_per_s": outlook.rates.bytes_per_s,
        "rate_source": outlook.rates.source,
        "rated_bytes": outlook.rated_bytes,
        "least_share_of_rating": shares and shares[0],
        "most_share_of_rating": shares and shares[1],
        "stages": outlook.stages,
        "host": audit,
        "warnings": outlook.warnings,
    }
