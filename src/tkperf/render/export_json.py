"""Results as a JSON document for programs; layout in docs/results-json.md."""

from __future__ import annotations

import json
import math

import msgspec

from tkperf.analysis.results import RunResult


def render_json(result: RunResult) -> str:
    """Return the whole result. "Not measured" is null; keys and units are stable within a schema."""
    return json.dumps(finite(msgspec.to_builtins(result)), indent=2, allow_nan=False)


def finite(value: object) -> object:
    """Return the data with NaN, which JSON lacks, as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
