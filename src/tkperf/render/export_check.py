"""Outcome of claims as documents for programs: JSON and, for CI systems, JUnit XML.

Both carry the run's notices, such as SIMULATED. ``docs/claims.md`` has the layouts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from xml.etree import ElementTree as ET

import msgspec

from tkperf.analysis.claim_findings import Checked, ClaimState
from tkperf.analysis.results import RunResult
from tkperf.model.units import drop_controls
from tkperf.page.check import CheckedFile, CheckMatrix, describe_claim, find_check_warnings
from tkperf.page.words.run import find_notices
from tkperf.render.markdown_text import inert

CHECK_SCHEMA = "tkperf-check/1"
MATRIX_SCHEMA = "tkperf-check-matrix/1"
_UNCHECKED = (ClaimState.NOT_MEASURED, ClaimState.CANNOT_BE_TOLD)


def render_check_json(checked: Checked, result: RunResult) -> str:
    """Return the findings with the run's name and notices. "Not measured" is null."""
    return json.dumps(_document(checked, result), indent=2, allow_nan=False)


def render_matrix_json(matrix: CheckMatrix, files: Sequence[CheckedFile]) -> str:
    """Return the check of many runs, with the document of each."""
    document = {
        "schema": MATRIX_SCHEMA,
        "banner": matrix.banner,
        "passes": all(row.passes for row in matrix.rows),
        "claims": matrix.claims,
        "runs": [
            {
                "file": row.file,
                "passes": row.passes,
                "cells": [asdict(cell) for cell in row.cells],
                "error": row.error or None,
                "check": None
                if one.checked is None
                else _document(one.checked, one.checked.result),
            }
            for row, one in zip(matrix.rows, files, strict=True)
        ],
        "notes": matrix.notes,
    }
    return json.dumps(document, indent=2, allow_nan=False)


def render_matrix_markdown(matrix: CheckMatrix) -> str:
    """Return the check of many runs for wikis and mails."""
    numbers = range(1, len(matrix.claims) + 1)
    rows = [
        (inert(row.name), *(inert(cell.text) if cell.passes else f"**{inert(cell.text)}**" for cell in row.cells))
        if row.cells
        else (inert(row.name), "**could not be checked**", *("",) * (len(matrix.claims) - 1))
        for row in matrix.rows
    ]  # fmt: skip
    lines = [f"**{inert(matrix.banner)}**", ""]
    lines += [f"| run | {' | '.join(f'claim {number}' for number in numbers)} |"]
    lines += [f"|---|{'---|' * len(matrix.claims)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", *(f"- claim {number}: {inert(claim)}" for number, claim in zip(numbers, matrix.claims, strict=True))]  # fmt: skip
    lines += [f"- {inert(note)}" for note in matrix.notes]
    return "\n".join(lines) + "\n"


def render_matrix_junit(files: Sequence[CheckedFile], *, confirmed: bool = False) -> str:
    """Return a test suite for each run; a file that could not be checked is a suite with an error."""
    suites = ET.Element("testsuites", name="tkperf check")
    for one in files:
        if one.checked is not None:
            suites.append(_build_suite(one.checked, one.checked.result, confirmed=confirmed))
            continue
        file = drop_controls(one.file)
        suite = ET.SubElement(
            suites, "testsuite", name=f"tkperf check {file}", tests="1", failures="0", errors="1", skipped="0",
        )  # fmt: skip
        case = ET.SubElement(suite, "testcase", classname=file, name="run file")
        ET.SubElement(case, "error", message=drop_controls(one.error))
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _document(checked: Checked, result: RunResult) -> dict[str, object]:
    return {
        "schema": CHECK_SCHEMA,
        "run": result.info.name,
        "notices": find_notices(result),
        "warnings": tuple(find_check_warnings(checked)),
        "findings": msgspec.to_builtins(checked.findings),
    }


def render_junit(checked: Checked, result: RunResult, *, confirmed: bool = False) -> str:
    """Return a test suite named after the run, a test case for each claim; notices and warnings are properties.

    Args:
        confirmed: a claim that is met, but not beyond the uncertainty, is an error, too.
    """
    suite = _build_suite(checked, result, confirmed=confirmed)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _build_suite(checked: Checked, result: RunResult, *, confirmed: bool) -> ET.Element:
    findings = checked.findings
    failures = sum(finding.state is ClaimState.NOT_MET for finding in findings)
    doubted = checked.unconfirmed if confirmed else ()
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
        text = describe_claim(finding)
        message = f"{text.state}: {text.measured}, claimed {text.limit}"
        if finding.state is ClaimState.NOT_MET:
            ET.SubElement(case, "failure", message=message)
        elif finding.state in _UNCHECKED or finding in doubted:
            # Like the exit code: an unchecked promise is not kept.
            ET.SubElement(case, "error", message=message)
        if finding.note:
            ET.SubElement(case, "system-out").text = drop_controls(finding.note)
    return suite
