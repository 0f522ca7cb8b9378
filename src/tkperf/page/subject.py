"""A section on its way into a report: its results, the details behind them, and its links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tkperf.analysis.axes import MIX
from tkperf.analysis.details import CellDetail
from tkperf.analysis.results import SectionResult, TestResult
from tkperf.analysis.telemetry import TelemetryCourse
from tkperf.model.quantity import (
    IOPS,
    LATENCY_MAX,
    LATENCY_MEAN,
    LATENCY_MIN,
    PERCENTILES,
    QUANTITIES,
    THROUGHPUT,
    Direction,
    Quantity,
)
from tkperf.model.workload import Workload
from tkperf.page.naming import address, capitalise, describe_axes, name_links
from tkperf.page.page import TableView
from tkperf.page.tables.results import ResultTable, TableNumber, shade

MARKABLE = (LATENCY_MEAN, LATENCY_MIN, *PERCENTILES, LATENCY_MAX)
"""Quantities that a histogram of response times can mark."""

NO_COURSES: Mapping[str, TelemetryCourse] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionSubject:
    """A section that a report shows.

    Attributes:
        key: unique in the report.
        details: the samples and histograms behind its cells, as far as they are at hand.
        links: the key that a click on each cell opens.
        capacity_bytes: size of one drive fill; None: not known.
        course: the drives' own reports during its stream; None without any.
    """

    section: SectionResult
    key: str
    details: Mapping[Workload, CellDetail] = field(default_factory=dict)
    links: Mapping[Workload, str] = field(default_factory=dict)
    capacity_bytes: int | None = None
    course: TelemetryCourse | None = None

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Return the quantities of the section's plan, the main one first."""
        return find_quantities(self.section.plan.quantities)

    @property
    def rate(self) -> Quantity:
        """Return IOPS, or throughput if the section's plan names it first."""
        rates = [quantity for quantity in self.quantities if quantity in (IOPS, THROUGHPUT)]
        return rates[0] if rates else IOPS


def build_subjects(
    test: TestResult,
    details: Sequence[CellDetail],
    capacity_bytes: int | None,
    courses: Mapping[str, TelemetryCourse] = NO_COURSES,
) -> tuple[SectionSubject, ...]:
    """Return the sections of a test with their details; ``courses`` by the sections' names."""
    subjects = []
    for number, section in enumerate(test.sections):
        key = f"{test.name}{number}"
        behind = {
            detail.workload: detail
            for detail in details
            if (detail.test, detail.section) == (test.name, section.name)
        }
        subjects.append(
            SectionSubject(
                section=section,
                key=key,
                details=behind,
                links=name_links(key, behind),
                capacity_bytes=capacity_bytes,
                course=courses.get(section.name),
            )
        )
    return tuple(subjects)


def find_quantities(keys: Sequence[str]) -> tuple[Quantity, ...]:
    """Return quantities by their keys; a key that this version does not know is left out."""
    return tuple(QUANTITIES[key] for key in keys if key in QUANTITIES)


def show_table(
    table: ResultTable, links: Mapping[Workload, str], *, folded: bool = False
) -> TableView:
    """Return a table as texts, each figure with the link to the cell behind it."""

    by = describe_axes((*table.head[: table.labels], table.across)) if table.across else ""
    # A mix is clear by its stroke; a number needs the axis title before it.
    across = f"{table.across} " if table.across not in ("", MIX.title) else ""
    title = capitalise(table.title) + (f" by {by}" if by else "")
    return TableView(
        title=", ".join(text for text in (title, table.over) if text),
        columns=(
            *table.head[: table.labels],
            *(across + head for head in table.head[table.labels :]),
        ),
        rows=tuple(
            tuple(cell.text() if isinstance(cell, TableNumber) else cell for cell in row)
            for row in table.rows
        ),
        labels=table.labels,
        notes=table.notes,
        links=tuple(
            tuple(_address(cell, links) for cell in row[table.labels :]) for row in table.rows
        ),
        hints=tuple(
            tuple(
                cell.sure() if isinstance(cell, TableNumber) else "" for cell in row[table.labels :]
            )
            for row in table.rows
        ),
        heat=shade(table) if table.shaded else (),
        folded=folded,
        stepwise=table.stepwise,
    )


def _address(figure: str | TableNumber, links: Mapping[Workload, str]) -> str:
    """Return the address of a figure's part and, for a latency, its mark; empty if nothing lies behind the figure."""
    if not isinstance(figure, TableNumber) or figure.workload is None:
        return ""
    part = "" if figure.part is None else str(figure.part)
    if 0 < figure.workload.read_percent < 100 and figure.direction is not Direction.ALL:
        part = figure.direction.value
    measure = figure.measure
    mark = measure.short if isinstance(measure, Quantity) and measure in MARKABLE else ""
    return address(links.get(figure.workload, ""), part, mark)
