"""What a section shows, as plain data: written by its test, kept in the run file, drawn by each output.

The vocabulary is closed: a kind of figure is drawn once for each output, whatever test asks for it.
A chart answers one question: figures of one question are views of one chart, switched on a page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class FigureKind(StrEnum):
    """The kinds of figures.

    ``MATRIX`` is a table for each quantity, shaded by its values, ``LISTING`` one with a row for each
    workload and a column for each quantity, ``SECTIONS`` a table of a whole test; the others are charts.
    ``AGAINST`` has one quantity over another, a point for each cell; ``OVER_DEMAND`` quantities over the
    total number of outstanding I/Os. ``SECTIONS`` and what follows it are of a whole test, its loads placed
    by recorded start times. A figure of another kind that is asked of a whole test is of all its sections
    put together. ``HEAT_MAP`` stands in plans of older versions alone: it shows what a matrix does.
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
        question: that a chart answers; with the same question figures of a section are views of one
            chart. Empty, as in plans of older versions: a chart of its own.
        view: what it is called among these, a choice for each switch, such as ``("time", "linear")``.
        printed: whether it is printed beside others of its chart, as the specification asks for it as a
            plot of its own. Of a chart of which none is, the first is printed.
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
    question: str = ""
    view: tuple[str, ...] = ()
    printed: bool = False


TABLES = {FigureKind.MATRIX, FigureKind.LISTING, FigureKind.SECTIONS, FigureKind.HEAT_MAP}
"""The kinds that are no charts, so answer no question of their own."""

SETTLED = "Did it settle from round to round?"
STEADY = "Was the window that was judged steady?"
EVEN = "How even was it from second to second?"
DISTRIBUTED = "How long did single I/Os take?"
DONE = "What was done to the device, and when?"


def asking(question: str, *figures: Figure) -> tuple[Figure, ...]:
    """One chart that answers a question, the figures its views."""
    return tuple(replace(figure, question=question) for figure in figures)


def drawn(
    kind: FigureKind,
    *quantities: str,
    title: str = "",
    log: bool = False,
    axis: str = "",
    apart: bool = False,
    view: tuple[str, ...] = (),
    printed: bool = False,
) -> Figure:
    """A figure of all mixes."""
    return Figure(
        kind=kind, quantities=quantities, title=title, log=log, axis=axis, apart=apart, view=view,
        printed=printed,
    )  # fmt: skip


def over_rounds(
    quantity: str,
    title: str,
    *read_percents: int,
    log: bool = False,
    most_threads: bool = False,
    view: tuple[str, ...] = (),
    printed: bool = False,
) -> Figure:
    """Curves of a quantity over the rounds, of some mixes, or of the most threads alone."""
    return Figure(
        kind=FigureKind.OVER_ROUNDS,
        quantities=(quantity,),
        title=title,
        read_percents=read_percents or None,
        log=log,
        most_threads=most_threads,
        view=view,
        printed=printed,
    )


WINDOW = asking(STEADY, drawn(FigureKind.WINDOW, printed=True))
"""The steady-state window of each tracking variable."""

WHOLE_TEST = asking(
    DONE,
    drawn(FigureKind.TIMELINE, "megabytes_per_s", view=("whole test",)),
    drawn(FigureKind.PRECONDITIONING, "megabytes_per_s"),
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
        prepares: it brings the device into the state that later sections measure: worth a sentence
            only where it did not get there.
        state: what tells it from sections of the test with the same load, such as "bursts after 5 s idle"; a
            headline names it.
    """

    name: str
    quantities: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    prepares: bool = False
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPlan:
    """How a test's results are shown.

    Attributes:
        sections: in their order; a section that is not among them is shown by what was recorded.
        over_sections: in plans of older versions, keys of quantities that are drawn over all sections.
        figures: of the whole test.
    """

    __test__ = False

    title: str
    sections: tuple[SectionPlan, ...] = ()
    over_sections: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = WHOLE_TEST

    def section(self, name: str) -> SectionPlan | None:
        return next((section for section in self.sections if section.name == name), None)


def distributed(*, apart: bool = False) -> tuple[Figure, ...]:
    """How the response times of all I/Os are distributed; ``apart``: of reads and writes each."""
    return asking(
        DISTRIBUTED,
        drawn(FigureKind.HISTOGRAM, view=("histogram",), apart=apart, printed=True),
        drawn(FigureKind.EXCEEDANCE, view=("exceedance",), apart=apart),
    )


def histogram_run() -> tuple[Figure, ...]:
    """What a run for the response time histogram shows, which has one slice."""
    return (
        *distributed(),
        *asking(
            EVEN,
            drawn(
                FigureKind.SECONDS, "latency_mean_us", "latency_max_us", view=("response times",)
            ),
            drawn(FigureKind.SECONDS, "iops", view=("IOPS",)),
        ),
    )


def over_areas(quantity: str) -> tuple[Figure, ...]:
    """A quantity over the areas of a disk, and its spread."""
    return asking(
        "How does it change from the start of the disk to its end?",
        drawn(FigureKind.OVER_AREAS, quantity, view=("over the disk",), printed=True),
        drawn(FigureKind.SPREAD, quantity, view=("spread",), printed=True),
    )


def stream_latencies(question: str) -> tuple[Figure, ...]:
    """Latencies over the time of a stream: of its slices, and of every second."""
    return asking(
        question,
        drawn(
            FigureKind.OVER_TIME, "latency_mean_us", "p99.9_us", "latency_max_us",
            title="Latency over time", log=True, view=("mean, 99.9 %, maximum",), printed=True,
        ),
        drawn(
            FigureKind.OVER_TIME, "p50_us", "p99_us", "p99.9_us", "p99.99_us", "p99.999_us",
            title="Latency percentiles over time", log=True, view=("percentiles",), printed=True,
        ),
        drawn(
            FigureKind.SECONDS, "latency_mean_us", "latency_max_us", view=("every second",)
        ),
    )  # fmt: skip


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
    figures: tuple[Figure, ...]
    if stream:
        figures = (
            *asking(
                "How did IOPS change over time?",
                drawn(FigureKind.OVER_TIME, "iops", view=("slices",)),
                drawn(FigureKind.SECONDS, "iops", view=("every second",)),
            ),
            *stream_latencies("How did latency change over time?"),
            *distributed(),
        )
    elif areas:
        figures = (*tables, *over_areas("iops"))
    else:
        figures = (
            *tables,
            *asking(SETTLED, over_rounds("iops", "Steady state convergence", log=True)),
            *WINDOW,
            *asking("How many IOPS were there?", drawn(FigureKind.OVER_AXIS, "iops", log=True)),
        )
    return SectionPlan(name=name, quantities=quantities, figures=figures)
