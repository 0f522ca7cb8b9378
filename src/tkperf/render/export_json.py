"""Results as a JSON document for programs; layout in docs/results-json.md."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import msgspec

from tkperf.analysis.results import RunResult
from tkperf.analysis.verdict import judge_run
from tkperf.page.findings import findings, headlines
from tkperf.page.verdict import describe_reason, describe_verdict
from tkperf.page.words.run import (
    describe_progress,
    describe_resumption,
    describe_resumptions,
    describe_step_under_way,
    find_notices,
    find_warnings,
)


def render_json(result: RunResult) -> str:
    """Return the whole result. "Not measured" is null; keys and units are stable within a schema."""
    return json.dumps(finite(_with_words(result)), indent=2, allow_nan=False)


def _with_words(result: RunResult) -> dict[str, Any]:
    """Return the result as plain data, with the sentences that every output shows."""
    bare = replace(
        result, tests=tuple(replace(test, under_way=None) for test in result.tests), left_out=()
    )
    plain: dict[str, Any] = msgspec.to_builtins(bare)
    del plain["left_out"]
    plain["info"]["notices"] = find_notices(result)
    plain["warnings"] = msgspec.to_builtins(find_warnings(result))
    verdict = judge_run(result)
    plain["verdict"] = {
        "state": verdict.state.value,
        "simulated": verdict.simulated,
        "text": describe_verdict(result).text,
        "reasons": [
            {
                **msgspec.to_builtins(reason),
                "severity": reason.severity.value,
                "text": describe_reason(reason, result),
            }
            for reason in verdict.reasons
        ],
    }
    plain["headlines"] = msgspec.to_builtins(headlines(result))
    plain["findings"] = msgspec.to_builtins(findings(result))
    for resumption, of_plain in zip(result.resumptions, plain["resumptions"], strict=True):
        of_plain["text"] = describe_resumption(resumption)
    for test, of_plain in zip(result.tests, plain["tests"], strict=True):
        of_plain["under_way"] = describe_step_under_way(test, result.status)
        of_plain["progress"] = describe_progress(test)
        of_plain["resumptions"] = describe_resumptions(result, test)
    return plain


def finite(value: object) -> object:
    """Return the data with NaN, which JSON lacks, as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
