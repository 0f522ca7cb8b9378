"""Tables and charts of the areas of a hard disk."""

from __future__ import annotations

from tkperf.model.figures import Figure
from tkperf.page.naming import capitalise
from tkperf.page.page import ChartView, Views
from tkperf.page.subject import SectionSubject, find_quantities, show_table
from tkperf.page.tables.results import build_areas
from tkperf.render.charts.hard_disk import box_plot, draw_over_areas


def show_over_areas(subject: SectionSubject, figure: Figure) -> Views:
    section = subject.section
    if not section.areas:
        return
    for quantity in find_quantities(figure.quantities):
        if section.cells:
            yield show_table(build_areas(section, quantity), subject.links)
        title = figure.title or f"{capitalise(quantity.label)} over area"
        text = f"{capitalise(quantity.title)} of every area from the start of the disk to its end."
        yield ChartView(key="area", text=text, spec=draw_over_areas(section, quantity, title))


def show_spread(subject: SectionSubject, figure: Figure) -> Views:
    section = subject.section
    if not section.areas:
        return
    for quantity in find_quantities(figure.quantities):
        yield ChartView(
            key="box",
            text=f"Spread of {quantity.title} over the areas: median, quartiles, and whiskers to the "
            "slowest and the fastest area.",
            spec=box_plot(
                section,
                quantity,
                figure.title or f"{capitalise(quantity.label)}, spread over areas",
            ),
        )
