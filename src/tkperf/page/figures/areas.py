"""Tables and charts of the areas of a hard disk."""

from __future__ import annotations

from tkperf.analysis.axes import place_of
from tkperf.model.figures import Figure
from tkperf.model.quantity import find_quantities
from tkperf.page.chart import Axis, Chart, Curve, Mark, Point, Scale
from tkperf.page.figures.curves import build_curves, flag
from tkperf.page.naming import capitalise, find_naming
from tkperf.page.page import ChartView, Views
from tkperf.page.subject import SectionSubject
from tkperf.page.tables.results import build_areas


def show_over_areas(subject: SectionSubject, figure: Figure) -> Views:
    section = subject.section
    if not section.areas:
        return
    for quantity in find_quantities(figure.quantities):
        if section.cells:
            yield build_areas(subject, quantity)
        points = [
            (cell.workload, Point(area.number, cell.value(quantity), flag=flag(cell)))
            for area in section.rounds
            for cell in area.cells
        ]
        naming = find_naming(work for work, _ in points)
        yield ChartView(
            key="area",
            text=f"{capitalise(quantity.title)} of every area from the start of the disk to its end.",
            chart=Chart(
                title=figure.title or f"{capitalise(quantity.label)} over area",
                x=Axis(
                    title="Area of the device (1 is its start)", domain=(0.5, section.areas + 0.5)
                ),
                y=Axis(title=quantity.title),
                curves=build_curves(points, naming),
                series=naming.title,
            ),
        )


def show_spread(subject: SectionSubject, figure: Figure) -> Views:
    section = subject.section
    if not section.areas:
        return
    cells = [cell for area in section.rounds for cell in area.cells]
    workloads = {cell.workload for cell in cells}
    naming = find_naming(workloads)
    ordered = sorted(workloads, key=lambda work: place_of(work, naming.axes[::-1]))
    places = tuple(map(naming.name_of, ordered))
    for quantity in find_quantities(figure.quantities):
        points = tuple(
            Point(naming.name_of(cell.workload), cell.value(quantity), flag=flag(cell))
            for cell in cells
        )
        yield ChartView(
            key="box",
            text=f"Spread of {quantity.title} over the areas: median, quartiles, and whiskers to the "
            "slowest and the fastest area.",
            chart=Chart(
                title=figure.title or f"{capitalise(quantity.label)}, spread over areas",
                x=Axis(title=naming.title, scale=Scale.ORDINAL, places=places),
                y=Axis(title=quantity.title),
                curves=(Curve(points=points, mark=Mark.BOX),),
            ),
        )
