"""Build texts about the findings of a run: sentences and a few figures. Every output begins with these findings.

The findings are based on the results and on the figures that the plans of the tests request. The code in this package
does not depend on the name of a test.
"""

from __future__ import annotations

from tkperf.analysis.results import RunResult
from tkperf.page.findings.headlines import Headline, build_headlines
from tkperf.page.findings.tiles import build_tiles
from tkperf.page.findings.whole_test_findings import Finding, build_findings


def headlines(result: RunResult) -> tuple[Headline, ...]:
    """Return the figures of a run that readers want to see first. If a run has several tests, these are always the same
    six figures.
    """
    return build_tiles(result) or build_headlines(result.tests)


def findings(result: RunResult) -> tuple[Finding, ...]:
    """Return the findings of a run as sentences, in the order of the tests."""
    return build_findings(result.tests, result.info.active_range_length_bytes)
