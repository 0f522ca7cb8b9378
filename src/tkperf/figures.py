"""What a section shows, as plain data: written by its test, kept in the run file, drawn by each output.

The vocabulary is closed: a kind of figure is drawn once for each output, whatever test asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FigureKind(StrEnum):
    """The kinds of figures.

    ``MATRIX`` is a table for each quantity, ``LISTING`` one with a row for each workload and a column for
    each quantity, ``SECTIONS`` a table of a whole test; the others are charts. ``AGAINST``
    has one quantity over another, a point for each cell; ``OVER_DEMAND`` quantities over the total number
    of outstanding I/Os. ``SECTIONS`` and what follows it are of a whole test, its loads placed by recorded
    start times.
    """

    MATRIX = "matrix"
    LISTING = "listing"
    OVER_ROUNDS = "over rounds"
    WINDOW = "window"
    OVER_AXIS = "over an axis"
    BARS_3D = "3-D bars"
    HEAT_MAP = "heat map"
    AGAINST = "one quantity against another"
    OVER_DEMAND = "over outstanding I/Os"
    OVER_TIME = "over time"
    OVER_WRITTEN = "over total written"
    OVER_FILLS = "over drive fills"
    SECONDS = "every second"
    HISTOGRAM = "response time histogram"
    EXCEEDANCE = "exceedance"
    OVER_AREAS = "over areas"
    SPREAD = "spread over areas"
    SECTIONS = "sections beside each other"
    TIMELINE = "timeline"
    PRECONDITIONING = "preconditioning over time"
    OVERLAID = "sections over each other"
    CHANGES = "changes of load"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One table or chart.

    Attributes:
        quantities: keys of ``quantity.QUANTITIES``; one, or for curves of several in one chart more. Of
            one against another, the upright axis comes first.
        title: of the figure; empty: made of its quantities.
        read_percents: the mixes shown; None: all, over rounds a chart for each.
        log: a logarithmic axis for the quantity.
        apart: reads and writes of a mix each on their own; drawn in listings, over time and in
            distributions.
        axis: of a chart over an axis, the key of the field of workloads that it is drawn over; empty: the
            block size if that differs, else the first field that does. Not drawn where it does not differ.
        most_threads: over rounds, of the workloads with the most threads alone.
        groups: of a whole test's figure, sections that follow each other: on a timeline a chart for
            each group, overlaid a curve for each; empty: all sections.
    """

    kind: FigureKind
    quantities: tuple[str, ...] = ()
    title: str = ""
    read_percents: tuple[int, ...] | None = None
    log: bool = False
    apart: bool = False
    axis: str = ""
    most_threads: bool = False
    groups: tuple[tuple[str, ...], ...] = ()


WHOLE_TEST = (
    Figure(kind=FigureKind.TIMELINE, quantities=("megabytes_per_s",)),
    Figure(kind=FigureKind.PRECONDITIONING, quantities=("megabytes_per_s",)),
)
"""All that was done to the device, and how preconditioning went: what every test shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPlan:
    """A section of a test, as every output shows it.

    Attributes:
        name: as the phases of the procedure have it.
        quantities: what it is about, the first above all: what a summary, a comparison and a
            baseline look at.
        figures: in the order of a report.
    """

    name: str
    quantities: tuple[str, ...]
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPlan:
    """How a test's results are shown.

    Attributes:
        sections: in their order; a section that is not among them is shown by what was recorded.
        over_sections: charts of one quantity over all sections; keys of quantities.
        figures: of the whole test.
    """

    __test__ = False

    title: str
    sections: tuple[SectionPlan, ...] = ()
    over_sections: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = WHOLE_TEST

    def section(self, name: str) -> SectionPlan | None:
        return next((section for section in self.sections if section.name == name), None)


def drawn(
    kind: FigureKind,
    *quantities: str,
    title: str = "",
    log: bool = False,
    axis: str = "",
    apart: bool = False,
) -> Figure:
    """A figure of all mixes."""
    return Figure(kind=kind, quantities=quantities, title=title, log=log, axis=axis, apart=apart)


def over_rounds(
    quantity: str, title: str, *read_percents: int, log: bool = False, most_threads: bool = False
) -> Figure:
    """Curves of a quantity over the rounds, of some mixes, or of the most threads alone."""
    return Figure(
        kind=FigureKind.OVER_ROUNDS,
        quantities=(quantity,),
        title=title,
        read_percents=read_percents or None,
        log=log,
        most_threads=most_threads,
    )


DISTRIBUTION = (
    Figure(kind=FigureKind.SECONDS, quantities=("iops",)),
    Figure(kind=FigureKind.SECONDS, quantities=("latency_mean_us", "latency_max_us")),
    Figure(kind=FigureKind.HISTOGRAM),
    Figure(kind=FigureKind.EXCEEDANCE),
)
"""Every second of a stream, and how the response times of all its I/Os are distributed."""


def matrices(*quantities: str) -> tuple[Figure, ...]:
    """A table for each quantity."""
    return tuple(Figure(kind=FigureKind.MATRIX, quantities=(quantity,)) for quantity in quantities)


def matrix_keys(plan: SectionPlan) -> tuple[str, ...]:
    """The quantities that a section has tables of."""
    return tuple(
        key
        for figure in plan.figures
        if figure.kind is FigureKind.MATRIX
        for key in figure.quantities
    )


def generic_section(name: str, *, areas: bool = False, stream: bool = False) -> SectionPlan:
    """A section of which nothing is known but what was recorded."""
    quantities = ("iops", "latency_mean_us", "p99.9_us")
    tables = matrices("iops", "megabytes_per_s", "latency_mean_us")
    if stream:
        figures: tuple[Figure, ...] = (
            drawn(FigureKind.OVER_TIME, "iops"),
            drawn(
                FigureKind.OVER_TIME, "latency_mean_us", "p99.9_us", "latency_max_us",
                title="Latency over time", log=True,
            ),
            *DISTRIBUTION,
        )  # fmt: skip
    elif areas:
        figures = (*tables, drawn(FigureKind.OVER_AREAS, "iops"), drawn(FigureKind.SPREAD, "iops"))
    else:
        figures = (
            *tables,
            over_rounds("iops", "Steady state convergence", log=True),
            drawn(FigureKind.WINDOW),
            drawn(FigureKind.OVER_AXIS, "iops", log=True),
        )
    return SectionPlan(name=name, quantities=quantities, figures=figures)
