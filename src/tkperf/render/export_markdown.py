"""Results as Markdown, for wikis, issues and mails."""

from __future__ import annotations

from collections.abc import Callable

from tkperf.analysis.host import host_findings, tuned_settings
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.model.figures import matrix_keys
from tkperf.model.quantity import QUANTITIES
from tkperf.model.units import format_capacity
from tkperf.page.findings import findings, headlines
from tkperf.page.remarks import find_badges, group_warnings, summarise_warnings
from tkperf.page.tables.results import (
    ResultTable,
    build_directions,
    build_listings,
    build_matrices,
    build_stream,
    explain_intervals,
)
from tkperf.page.tables.sections import build_section_tables, build_telemetry_table
from tkperf.page.verdict import describe_verdict
from tkperf.page.words.conditions import describe_demand, describe_preconditioning, describe_purge
from tkperf.page.words.flags import describe_counts
from tkperf.page.words.run import describe_resumptions
from tkperf.page.words.steady_state import describe_verdicts
from tkperf.page.words.timeline import describe_timelines
from tkperf.render.markdown_text import inert as _text
from tkperf.render.markdown_text import inert_line, render_rows


def render_markdown(result: RunResult) -> str:
    """Return disclosure, verdicts and the tables of the window; an unmeasured value is a dash."""
    info, device = result.info, result.info.device
    lines = [f"# {_text(info.name)}", ""]
    lines += [f"**{_text(describe_verdict(result).text)}**\n"]
    lines += [f"**{_text(badge)}**\n" for badge in find_badges(result)]
    lines += _opening(result)
    capacity = device.get("capacity_bytes")
    facts = {
        "Device": device.get("model") or device.get("kind"),
        "Serial number": device.get("serial"),
        "Firmware": device.get("firmware"),
        "Capacity": format_capacity(capacity) if isinstance(capacity, int) else None,
        "Interface": device.get("interface"),
        "Link": device.get("link"),
        "Write cache": device.get("write_cache_in_run"),
        "Profile": f"{info.profile_name}: {info.specification}",
        "Load": ", ".join(word for word in (info.fio_version, info.ioengine) if word),
        "Threads / queue depth": _demand(result),
        "Purge": _by_section(result, describe_purge),
        "Preconditioning": _by_section(result, describe_preconditioning),
        "Active range": info.active_range_text,
        "Host": ", ".join(
            str(info.host[name])
            for name in ("cpu_model", "operating_system", "kernel")
            if info.host.get(name)
        )
        or None,
        "Host audit": "; ".join(f"{one.title}: {one.text}" for one in host_findings(info.host))
        or None,
        "Started": info.started_utc,
    }
    if changes := tuned_settings(info.host):
        facts["Set for the run"] = "; ".join(changes)
    unknown = [name for name, value in facts.items() if value is None]
    lines += ["| | |", "|---|---|"]
    lines += [f"| {name} | {_text(value)} |" for name, value in facts.items() if value is not None]
    lines += [f"| Not known | {', '.join(unknown)} |"] if unknown else []
    lines += _warnings(result)
    for test in result.tests:
        lines += ["", f"## {_text(test.title)}"]
        lines += [f"\n**{_text(text)}**" for text in describe_resumptions(result, test)]
        for section in test.sections:
            lines += ["", f"### {_text(section.name)}", "", *_verdict(section), ""]
            described = describe_timelines(section.timelines)
            lines += [*(f"- {_text(line)}" for line in described), *([""] if described else [])]
            lines += _tables(section)
        lines += ["", *(line for table in build_section_tables(test) for line in _table(table))]
        telemetry = build_telemetry_table(test.telemetry)
        lines += [] if telemetry is None else _table(telemetry)
        if counts := describe_counts(test.disturbed_steps, test.not_compared_steps, test.steps):
            lines += [f"Disturbed: {_text(counts)}", ""]
    lines += ["", *explain_intervals(result)]
    return "\n".join(lines).rstrip() + "\n"


def _opening(result: RunResult) -> list[str]:
    """Return the headline figures first, then the findings of each test."""
    lines = []
    if shown := headlines(result):
        titles = {test.name: test.title for test in result.tests}
        lines += ["| | | | | |", "|---|---:|---|---|---|"]
        lines += [
            f"| {_text(one.label)} | **{_text(one.text)}** | {one.sure} | {one.verdict} | {_text(titles.get(one.test, one.test))} |"
            for one in shown
        ]
        lines.append("")
    found_in_run = findings(result)
    for test in result.tests:
        found = [finding for finding in found_in_run if finding.test == test.name]
        for finding in found:
            text = f"{_text(finding.text)}."
            words = f"**{text}**" if finding.alarm else text
            lines.append(f"- {_text(test.title)}: {words}")
    return [*lines, ""]


def _warnings(result: RunResult) -> list[str]:
    """Return each warning once, under its subject."""
    groups = group_warnings(result)
    if not groups:
        return []
    lines = ["", f"{summarise_warnings(groups)}:", ""]
    return lines + [f"- {group.title}: {_text(text)}" for group in groups for text in group.texts]


def _demand(result: RunResult) -> str | None:
    """Return the demand of all tests; with their titles if it differs between them."""
    titles: dict[str | None, list[str]] = {}
    for test in result.tests:
        titles.setdefault(describe_demand(test), []).append(test.title)
    if len(titles) < 2:
        return next(iter(titles), None)
    return "; ".join(f"{', '.join(of)}: {demand or 'not known'}" for demand, of in titles.items())


def _by_section(
    result: RunResult, describe: Callable[[RunResult, SectionResult], str | None]
) -> str | None:
    """Return the preparation of each section; with the sections' names if it differs between them.

    A section that continues the one before it, such as the latency histogram, is left out.
    """
    names: dict[str | None, list[str]] = {}
    for test in result.tests:
        for position, section in enumerate(test.sections):
            if position and section.purge is None and section.filled_bytes is None:
                continue
            names.setdefault(describe(result, section), []).append(section.name)
    if len(names) < 2:
        return next(iter(names), None)
    return "; ".join(f"{', '.join(of)}: {done or 'not known'}" for done, of in names.items())


def _verdict(section: SectionResult) -> list[str]:
    ended, verdict = _text(section.ended_because), section.verdict
    if verdict is None:
        return [ended]
    if not verdict.judged:
        return [f"{ended}; steady state not judged: {_text(verdict.reason)}"]
    state = "reached" if verdict.reached else "NOT reached"
    return [f"{ended}; steady state {state}: {_text(describe_verdicts(section))}"]


def _tables(section: SectionResult) -> list[str]:
    listings = build_listings(section)
    if section.slices:
        return [line for table in (build_stream(section), *listings) for line in _table(table)]
    if not section.cells:
        return ["nothing was measured to the end", ""]
    quantities = [QUANTITIES[key] for key in matrix_keys(section.plan)]
    apart = (build_directions(section, quantity) for quantity in quantities[:1])
    tables = [*build_matrices(section, quantities), *listings, *(table for table in apart if table)]
    return [line for table in tables for line in _table(table)]


def _table(table: ResultTable) -> list[str]:
    title = ", ".join(text for text in (table.title, table.over) if text)
    across = f"; {table.across} across" if table.across else ""
    return [
        f"{_text(title)}{_text(across)}",
        "",
        *render_rows(
            table.head,
            [
                [cell if isinstance(cell, str) else cell.text() for cell in row]
                for row in table.rows
            ],
        ),
        "",
        *(line for note in table.notes for line in (inert_line(note), "")),
    ]
