"""A run's results as a report: overview, disclosure, tests. Pure; html.py renders it."""

from __future__ import annotations

from tkperf.analysis.claims import Finding
from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.report.disclosure import build_disclosure
from tkperf.report.parts import ReportView, TableView, TestView
from tkperf.report.sections import build_section
from tkperf.report.wording import (
    NOT_MEASURED,
    describe_state,
    format_gap,
    format_known_capacity,
    format_number,
)
from tkperf.units import format_capacity, format_duration


def build_view(result: RunResult, findings: tuple[Finding, ...] = ()) -> ReportView:
    """Everything the report of a run says; ``findings`` are claims checked against it."""
    banners = list(result.info.notices)
    if result.status.value != "complete":
        banners.insert(
            0, f"RUN {result.status.value.upper()}: {result.ended_because or 'going on'}"
        )
    return ReportView(
        title=result.info.name,
        subtitle=_device_line(result),
        banners=tuple(banners),
        warnings=tuple(warning.text for warning in result.warnings),
        disclosure=build_disclosure(result),
        overview=_overview(result),
        tests=tuple(_test(test) for test in result.tests),
        claims=_claims(findings) if findings else None,
    )


def _claims(findings: tuple[Finding, ...]) -> TableView:
    return TableView(
        title="Claims",
        columns=("Claim", "Limit", "Measured", "Margin", "State", "Source"),
        rows=tuple(
            (
                finding.claim,
                finding.limit,
                f"{format_number(finding.value, 1)} {finding.unit}",
                NOT_MEASURED
                if finding.margin_percent is None
                else f"{finding.margin_percent:+.1f} %",
                finding.state.value + (f" ({finding.note})" if finding.note else ""),
                finding.source or "",
            )
            for finding in findings
        ),
        notes=("Margin: distance to the limit on its good side, in percent of the limit.",),
    )


def _device_line(result: RunResult) -> str:
    device = result.info.device
    words = [
        device.get("model") or device.get("kind"),
        format_known_capacity(device.get("capacity_bytes")),
    ]
    return ", ".join(str(word) for word in words if word)


def _overview(result: RunResult) -> TableView:
    rows = []
    for test in result.tests:
        for section in test.sections:
            rows.append(
                (section.name, describe_state(section), section.ended_because, _headline(section))
            )
    return TableView(
        title="Overview",
        columns=("Test", "Steady state", "Ended", "Headline"),
        rows=tuple(rows),
    )


def _headline(section: SectionResult) -> str:
    verdict = section.verdict
    if section.slices:
        last = section.slices[-1].values
        return (
            f"last slice: {format_number(last.iops, 0)} IOPS, mean "
            f"{format_number(last.latency_mean_us, 1)} us"
        )
    if section.areas and section.cells:
        best = section.cells[0]
        if section.name.startswith("Throughput"):
            value = f"{format_number(best.megabytes_per_s, 1)} MB/s"
        else:
            value = f"{format_number(best.iops, 1)} IOPS"
        return f"{best.cell}: {value}, mean of {section.areas} areas"
    if verdict is None:
        return NOT_MEASURED
    return f"{verdict.tracking}: {verdict.average:,.1f} {verdict.unit}"


def _test(test: TestResult) -> TestView:
    duration = NOT_MEASURED if test.duration_s is None else format_duration(test.duration_s)
    gap = test.longest_gap_s
    facts = [
        ("Status", test.status.value),
        ("Duration", duration),
        ("Written", format_capacity(test.written_bytes)),
    ]
    if gap is not None:
        facts.append(
            ("Longest gap between steps of a round", f"{format_gap(gap)} by tkperf's clock")
        )
    return TestView(
        key=test.name,
        title=test.title,
        facts=tuple(facts),
        sections=tuple(
            build_section(test, section, f"{test.name}{number}")
            for number, section in enumerate(test.sections)
        ),
    )
