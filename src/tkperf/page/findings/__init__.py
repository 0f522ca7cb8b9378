"""Findings of a run as sentences and a few figures. Every output opens with them.

Their sources are the results and the tests' plans of figures; no code here depends on a test's name.
"""

from __future__ import annotations

from tkperf.analysis.results import RunResult
from tkperf.page.findings.headlines import Headline, build_headlines
from tkperf.page.findings.tiles import build_tiles
from tkperf.page.findings.whole_test_findings import Finding, build_findings


def headlines(result: RunResult) -> tuple[Headline, ...]:
    """Return the figures of a run that readers want to see first. A run of several tests always has the same six."""
    return build_tiles(result) or build_headlines(result.tests)


def findings(result: RunResult) -> tuple[Finding, ...]:
    """Return what was found, in sentences, in the order of the tests."""
    return build_findings(result.tests, result.info.active_range_length_bytes)
