"""A chart taken out of its report still says what the report says on top: SIMULATED, IMPORTED ..."""

from __future__ import annotations

from dataclasses import replace

from tkperf.report.charts.vega import PALETTE, Spec
from tkperf.report.page import ChartView, ReportView
from tkperf.report.wording import shorten

_WARM = PALETTE[1]  # seen on light and on dark pages
_MOST_CHARACTERS = 40


def mark_charts(view: ReportView) -> ReportView:
    """The view with the keywords of its banners below the title of each chart."""
    keywords = find_keywords(view)
    if not keywords:
        return view

    def mark(spec: Spec) -> Spec:
        title = spec["title"]
        assert isinstance(title, dict)
        return spec | {
            "title": title | {"subtitle": keywords, "subtitleColor": _WARM, "subtitleFontSize": 10}
        }

    def mark_all(charts: tuple[ChartView, ...]) -> tuple[ChartView, ...]:
        return tuple(replace(chart, spec=mark(chart.spec)) for chart in charts)

    return replace(
        view,
        tests=tuple(
            replace(
                test,
                charts=mark_all(test.charts),
                sections=tuple(
                    replace(section, charts=mark_all(section.charts)) for section in test.sections
                ),
            )
            for test in view.tests
        ),
        cell_charts=view.cell_charts
        and {name: mark(spec) for name, spec in view.cell_charts.items()},
    )


def find_keywords(view: ReportView) -> str:
    """What the banners say, in a few words; empty without banners."""
    return " · ".join(shorten(banner.split(":")[0], _MOST_CHARACTERS) for banner in view.banners)
