"""A plan as a JSON document for programs."""

from __future__ import annotations

import json

import msgspec

from tkperf.pipeline.outlook import Outlook
from tkperf.pipeline.run_plan import RunPlan


def render_plan_json(made: RunPlan, outlook: Outlook) -> str:
    """Render a plan and its outlook as JSON; times in seconds, amounts in bytes."""
    shares = outlook.shares
    document = {
        "schema": "tkperf-plan/1",
        "device": made.subject.facts.values,
        "profile": made.profile.name,
        "choices": made.changes.choices,
        "alterations": made.alterations,
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
        "host": made.audit.plain(),
        "warnings": made.warnings,
    }
    return json.dumps(msgspec.to_builtins(document), indent=2)
