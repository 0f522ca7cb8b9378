"""Opening of a report: headline figures, the chart that carries the story, and findings test by test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tkperf.analysis.characteristics import NO_BACKLOG
from tkperf.analysis.results import RunResult, TestResult
from tkperf.model.quantity import QUANTITIES
from tkperf.model.units import format_exact, unit_for_people
from tkperf.page.figures.build import open_over_time
from tkperf.page.findings import findings, headlines
from tkperf.page.findings.headlines import find_highest_spikes
from tkperf.page.page import ChartView, FindingsView, HeadlineView, TestView
from tkperf.page.subject import SectionSubject


def build_headline_views(
    result: RunResult, subjects: Mapping[str, Sequence[SectionSubject]]
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


def choose_story(
    tests: Sequence[TestView],
    results: Sequence[TestResult],
    subjects: Mapping[str, Sequence[SectionSubject]],
) -> ChartView | None:
    """Return the chart that a reader should see first, as a copy with a key of its own; None without charts.

    The highest periodic spikes come first, then a rate that changes over time, then a search for the highest rate;
    else it is the first chart of the first test.
    """
    sections = {section.key: section for test in tests for section in test.sections}
    spikes = find_highest_spikes(results)
    if spikes is not None:
        test, section, timeline = spikes
        views = next(view for view in tests if view.key == test.name)
        key = next(one.key for one in subjects[test.name] if one.section.name == section.name)
        for chart in (*sections[key].charts, *views.charts, *views.course.charts):
            if (opened := open_over_time(chart, {timeline.quantity})) is not None:
                return _as_story(opened)
    for asked in (_has_course, _is_search):
        for subject in (one for of_test in subjects.values() for one in of_test):
            drawn = sections.get(subject.key)
            if drawn is not None and drawn.charts and asked(subject):
                return _as_story(drawn.charts[0])
    every = (chart for test in tests for section in test.sections for chart in section.charts)
    first = next(every, None)
    return None if first is None else _as_story(first)


def _has_course(subject: SectionSubject) -> bool:
    return (
        not subject.section.plan.prepares
        and len(subject.section.slices) > 1
        and any(timeline.changes for timeline in subject.section.timelines)
    )


def _is_search(subject: SectionSubject) -> bool:
    return any(one.key == NO_BACKLOG.key for one in subject.section.characteristics)


def _as_story(chart: ChartView) -> ChartView:
    others = tuple(replace(view, key=f"story-{view.key}") for view in chart.others)
    return replace(chart, key=f"story-{chart.key}", below=False, others=others)
