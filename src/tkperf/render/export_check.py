"""Export the outcome of claims as documents: JSON, and JUnit XML for CI systems.

Both documents contain the notices of the run, such as SIMULATED. ``docs/reference/claims.md`` describes the layouts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from xml.etree import ElementTree as ET

import msgspec

from tkperf.analysis.claim_results import Checked, CheckedFile, ClaimKind
from tkperf.model.units import drop_controls
from tkperf.page.check import answer_check, answer_claims, build_check_page, find_check_warnings
from tkperf.page.claim_texts import describe_cells, describe_claim, name_columns
from tkperf.page.words.run import find_notices
from tkperf.render.export_json import build_verdict, drop_unused

CHECK_SCHEMA = "tkperf-check/1"
MATRIX_SCHEMA = "tkperf-check-matrix/1"


def render_check_json(checked: Checked) -> str:
    """Return the findings with the name and the notices of the run. The value null means that a value was not
    measured.
    """
    return json.dumps(_document(checked), indent=2, allow_nan=False)


def render_matrix_json(files: Sequence[CheckedFile]) -> str:
    """Return the results of checking many runs. The results contain the document of each run."""
    page, answer = build_check_page(files), answer_check(files)
    document = {
        "schema": MATRIX_SCHEMA,
        "title": page.title,
        "verdict": build_verdict(answer),
        "banner": "; ".join(answer.reasons),
        "passes": all(one.passes for one in files),
        "claims": tuple(name_columns(files)),
        "runs": [
            {
                "file": one.file,
                "passes": one.passes,
                "cells": [
                    {"text": text, "passes": kind is ClaimKind.MET, "kind": kind}
                    for text, kind in describe_cells(one.checked)
                ],
                "error": one.error or None,
                "check": None if one.checked is None else _document(one.checked),
            }
            for one in files
        ],
        "notes": (*page.banners, *(note for table in page.tables for note in table.notes)),
    }
    return json.dumps(document, indent=2, allow_nan=False)


def render_matrix_junit(files: Sequence[CheckedFile], *, confirmed: bool = False) -> str:
    """Return a test suite for each run. If a file could not be checked, its suite contains an error.

    Args:
        confirmed: whether a claim that is met, but only within the uncertainty, also counts as an error.
    """
    suites = ET.Element("testsuites", name="tkperf check")
    for one in files:
        if one.checked is not None:
            suites.append(_build_suite(one.checked, confirmed=confirmed))
            continue
        file = drop_controls(one.file)
        suite = ET.SubElement(suites, "testsuite", name=f"tkperf check {file}")
        case = ET.SubElement(suite, "testcase", classname=file, name="run file")
        ET.SubElement(case, "error", message=drop_controls(one.error))
        count_cases(suite)
    return write_junit(suites)


def render_junit(checked: Checked, *, confirmed: bool = False) -> str:
    """Return a test suite with the name of the run. The suite contains a test case for each claim. Notices and warnings
    are properties.

    Args:
        confirmed: whether a claim that is met, but only within the uncertainty, also counts as an error.
    """
    return write_junit(_build_suite(checked, confirmed=confirmed))


def count_cases(suite: ET.Element) -> None:
    """Set two kinds of attributes of a suite: the number of its test cases, and the number of test cases with each
    outcome.
    """
    suite.set("tests", str(len(suite.findall("testcase"))))
    for name, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{outcome}"))))


def write_junit(root: ET.Element) -> str:
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _document(checked: Checked) -> dict[str, object]:
    findings = drop_unused(msgspec.to_builtins(checked.claim_results))
    for finding, one in zip(findings, checked.claim_results, strict=True):
        del finding["about"], finding["workload"]
        finding["kind"] = checked.judge(one)
    return {
        "schema": CHECK_SCHEMA,
        "run": checked.result.info.name,
        "verdict": build_verdict(answer_claims(checked)),
        "notices": find_notices(checked.result),
        "warnings": tuple(find_check_warnings(checked)),
        "findings": findings,
    }


def _build_suite(checked: Checked, *, confirmed: bool) -> ET.Element:
    run = drop_controls(checked.result.info.name)
    doubted = checked.unconfirmed if confirmed else ()
    suite = ET.Element("testsuite", name=f"tkperf check {run}")
    remarks = [("notice", notice) for notice in find_notices(checked.result)]
    remarks += [("warning", warning) for warning in find_check_warnings(checked)]
    if remarks:
        properties = ET.SubElement(suite, "properties")
        for name, value in remarks:
            ET.SubElement(properties, "property", name=name, value=drop_controls(value))
    for finding in checked.claim_results:
        case = ET.SubElement(suite, "testcase", classname=run, name=drop_controls(finding.claim))
        text = describe_claim(finding)
        message = f"{text.state}: {text.measured}, claimed {finding.limit}, margin {text.margin}"
        kind = checked.judge(finding)
        if kind is ClaimKind.FAILED:
            ET.SubElement(case, "failure", message=message)
        elif kind is ClaimKind.NOT_JUDGED or finding in doubted:
            # As for the exit code, a claim that could not be checked counts as not met.
            ET.SubElement(case, "error", message=message)
        if finding.note:
            ET.SubElement(case, "system-out").text = drop_controls(finding.note)
    count_cases(suite)
    return suite
