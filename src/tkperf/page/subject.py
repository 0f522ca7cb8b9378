"""A section on its way into a report: its results, what lies behind them, and how it is linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tkperf.analysis.details import CellDetail
from tkperf.analysis.layout import MIX
from tkperf.analysis.results import SectionResult, TestResult
from tkperf.analysis.tables import Figure, Table, shade
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
from tkperf.model.telemetry.course import Course
from tkperf.model.workload import Workload
from tkperf.page.naming import address, capitalise, describe_axes, name_links
from tkperf.page.page import TableView

MARKABLE = (LATENCY_MEAN, LATENCY_MIN, *PERCENTILES, LATENCY_MAX)
"""What can be marked in a histogram of response times."""

NO_COURSES: Mapping[str, Course] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A section that is reported; ``key`` is unique in the report.

    ``details`` has what lies behind its cells, where samples and histograms are at hand; ``links``
    the key of what a click on each of them opens. ``capacity_bytes`` is what a drive fill is, None
    is not known. ``course`` is what drives told during its stream, None where nothing was.
    """

    section: SectionResult
    key: str
    details: Mapping[Workload, CellDetail] = field(default_factory=dict)
    links: Mapping[Workload, str] = field(default_factory=dict)
    capacity_bytes: int | None = None
    course: Course | None = None

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What the section is about, the first above all."""
        return find_quantities(self.section.plan.quantities)

    @property
    def rate(self) -> Quantity:
        """IOPS, or throughput where the section is about that."""
        rates = [quantity for quantity in self.quantities if quantity in (IOPS, THROUGHPUT)]
        return rates[0] if rates else IOPS


def build_subjects(
    test: TestResult,
    details: Sequence[CellDetail],
    capacity_bytes: int | None,
    courses: Mapping[str, Course] = NO_COURSES,
) -> tuple[Subject, ...]:
    """The sections of a test with what lies behind them, ``courses`` by their names."""
    subjects = []
    for number, section in enumerate(test.sections):
        key = f"{test.name}{number}"
        behind = {
            detail.workload: detail
            for detail in details
            if (detail.test, detail.section) == (test.name, section.name)
        }
        subjects.append(
            Subject(
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
    """Quantities by their keys; one that this version does not know is left out."""
    return tuple(QUANTITIES[key] for key in keys if key in QUANTITIES)


def show_table(table: Table, links: Mapping[Workload, str], *, folded: bool = False) -> TableView:
    """A table as texts, each figure with the link to what lies behind it."""

    by = describe_axes((*table.head[: table.labels], table.across)) if table.across else ""
    # A mix is known by its stroke, a number by what stands before it.
    across = f"{table.across} " if table.across not in ("", MIX.title) else ""
    title = capitalise(table.title) + (f" by {by}" if by else "")
    return TableView(
        title=", ".join(text for text in (title, table.over) if text),
        columns=(
            *table.head[: table.labels],
            *(across + head for head in table.head[table.labels :]),
        ),
        rows=tuple(
            tuple(cell.text() if isinstance(cell, Figure) else cell for cell in row)
            for row in table.rows
        ),
        labels=table.labels,
        notes=table.notes,
        links=tuple(
            tuple(_address(cell, links) for cell in row[table.labels :]) for row in table.rows
        ),
        hints=tuple(
            tuple(cell.sure() if isinstance(cell, Figure) else "" for cell in row[table.labels :])
            for row in table.rows
        ),
        heat=shade(table) if table.shaded else (),
        folded=folded,
    )


def _address(figure: str | Figure, links: Mapping[Workload, str]) -> str:
    """Of what a figure is made of, and of itself among the latencies; empty where nothing lies behind it."""
    if not isinstance(figure, Figure) or figure.workload is None:
        return ""
    part = "" if figure.part is None else str(figure.part)
    if 0 < figure.workload.read_percent < 100 and figure.direction is not Direction.ALL:
        part = figure.direction.value
    measure = figure.measure
    mark = measure.short if isinstance(measure, Quantity) and measure in MARKABLE else ""
    return address(links.get(figure.workload, ""), part, mark)
