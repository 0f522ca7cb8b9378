"""Outcome of claims as documents for programs: JSON and, for CI systems, JUnit XML.

Both carry the run's notices, such as SIMULATED. ``docs/claims.md`` has the layouts.
"""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import msgspec

from tkperf.analysis.claim_findings import Checked, ClaimState
from tkperf.analysis.results import RunResult
from tkperf.model.units import drop_controls
from tkperf.page.check import find_check_warnings
from tkperf.page.words.run import find_notices

CHECK_SCHEMA = "tkperf-check/1"
_UNCHECKED = (ClaimState.NOT_MEASURED, ClaimState.CANNOT_BE_TOLD)


def render_check_json(checked: Checked, result: RunResult) -> str:
    """Return the findings with the run's name and notices. "Not measured" is null."""
    document = {
        "schema": CHECK_SCHEMA,
        "run": result.info.name,
        "notices": find_notices(result),
        "warnings": tuple(find_check_warnings(checked)),
        "findings": msgspec.to_builtins(checked.findings),
    }
    return json.dumps(document, indent=2, allow_nan=False)


def render_junit(checked: Checked, result: RunResult, *, confirmed: bool = False) -> str:
    """Return a test suite named after the run, a test case for each claim; notices and warnings are properties.

    Args:
        confirmed: a claim that is met, but not beyond the uncertainty, is an error, too.
    """
    findings = checked.findings
    failures = sum(finding.state is ClaimState.NOT_MET for finding in findings)
    doubted = [
        finding
        for finding in findings
        if confirmed and finding.state is ClaimState.MET and not finding.is_confirmed
    ]
    errors = sum(finding.state in _UNCHECKED for finding in findings) + len(doubted)
    run = drop_controls(result.info.name)
    suite = ET.Element(
        "testsuite",
        name=f"tkperf check {run}",
        tests=str(len(findings)),
        failures=str(failures),
        errors=str(errors),
        skipped="0",
    )
    remarks = [("notice", notice) for notice in find_notices(result)]
    remarks += [("warning", warning) for warning in find_check_warnings(checked)]
    if remarks:
        properties = ET.SubElement(suite, "properties")
        for name, value in remarks:
            ET.SubElement(properties, "property", name=name, value=drop_controls(value))
    for finding in findings:
        case = ET.SubElement(suite, "testcase", classname=run, name=drop_controls(finding.claim))
        measured = finding.measured_text
        message = f"{finding.outcome}: {measured}, claimed {finding.limit}"
        if finding.state is ClaimState.NOT_MET:
            ET.SubElement(case, "failure", message=message)
        elif finding.state in _UNCHECKED or finding in doubted:
            # Like the exit code: an unchecked promise is not kept.
            ET.SubElement(case, "error", message=message)
        if finding.note:
            ET.SubElement(case, "system-out").text = drop_controls(finding.note)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
