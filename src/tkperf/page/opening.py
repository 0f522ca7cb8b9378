"""Opening of a report: the headline figures first, then the findings, test by test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tkperf.analysis.results import RunResult
from tkperf.model.quantity import QUANTITIES
from tkperf.model.units import format_exact, unit_for_people
from tkperf.page.findings import findings, headlines
from tkperf.page.page import FindingsView, HeadlineView
from tkperf.page.subject import Subject


def build_headline_views(
    result: RunResult, subjects: Mapping[str, Sequence[Subject]]
) -> tuple[HeadlineView, ...]:
    """Return the headline figures, each with the key of its section and of the cell behind it, if any."""
    titles = {test.name: test.title for test in result.tests}
    views = []
    for headline in headlines(result):
        subject = next(
            one for one in subjects[headline.test] if one.section.name == headline.section
        )
        of_figure = headline.workload is not None and headline.key in QUANTITIES
        opens = subject.links.get(headline.workload, "") if of_figure and headline.workload else ""
        exact = ""
        if headline.value is not None:
            exact = f"{format_exact(headline.value)} {unit_for_people(headline.unit)}".rstrip()
        views.append(
            HeadlineView(
                label=headline.label,
                text=headline.text,
                exact=exact,
                sure=headline.sure,
                verdict=headline.verdict,
                alarm=headline.alarm,
                test=titles[headline.test],
                section=subject.key,
                cell=opens,
            )
        )
    return tuple(views)


def build_findings_views(result: RunResult) -> tuple[FindingsView, ...]:
    """Return the sentences of each test that has any."""
    found_in_run = findings(result)
    return tuple(
        FindingsView(
            key=test.name,
            title=test.title,
            sentences=tuple((finding.text, finding.alarm) for finding in found),
        )
        for test in result.tests
        if (found := [finding for finding in found_in_run if finding.test == test.name])
    )
