"""A plan as a JSON document for programs."""

from __future__ import annotations

import json

import msgspec

from tkperf.analysis.outlook import Outlook
from tkperf.page.plan import describe_plan_verdict
from tkperf.render.export_json import build_verdict


def render_plan_json(outlook: Outlook, audit: list[dict[str, object]]) -> str:
    """Render a plan as JSON; times in seconds, amounts in bytes. ``audit``: findings about the host."""
    shares = outlook.shares
    document = {
        "schema": "tkperf-plan/1",
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
    return json.dumps(msgspec.to_builtins(document), indent=2)
