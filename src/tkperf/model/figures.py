"""Tables and charts of a section as plain data. The test defines the tables and charts, the run file stores the
definitions, and each output draws them.

The set of kinds is fixed. Each output draws a kind of figure in the same form for every test. A chart answers one
question. Figures with the same question are views of the same chart, and the user of a page can switch between the
views.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from tkperf.model.quantity import percentile
from tkperf.model.reported_percentiles import TAIL_PERCENT, PercentileUse, find_percentiles


class FigureKind(StrEnum):
    """Kinds of figures.

    ``MATRIX`` is a table for each quantity, shaded by its values. ``LISTING`` is a table with a row for each workload
    and a column for each quantity. ``SECTIONS`` is a table of a whole test. All other kinds count as charts, even
    ``INTERFERENCE``, which is drawn as a table. ``AGAINST`` draws one quantity over another quantity, with a point for
    each cell. ``OVER_DEMAND`` draws quantities over the total number of outstanding I/Os. ``HEAT_MAP`` draws the I/Os
    of a stream by time and response time. ``INTERFERENCE`` draws a table of offered reads and writes, shaded by a
    latency of the reads. ``FRONTIER`` draws, for each write rate, the highest read rate at which the latency stays
    within a limit. ``NEIGHBOURS`` draws the factor by which each neighbour increases the latency of the same reader.

    ``SECTIONS`` and the kinds after ``SECTIONS`` show a whole test, and arrange the loads by their recorded start
    times. If a whole test has a figure of an earlier kind, the figure shows all sections of the test together.
    """

    MATRIX = "matrix"
    LISTING = "listing"
    OVER_ROUNDS = "over rounds"
    WINDOW = "window"
    OVER_AXIS = "over an axis"
    BARS_3D = "3-D bars"
    AGAINST = "one quantity against another"
    OVER_DEMAND = "over outstanding I/Os"
    OVER_TIME = "over time"
    OVER_WRITTEN = "over total written"
    OVER_FILLS = "over drive fills"
    SECONDS = "every second"
    HISTOGRAM = "response time histogram"
    EXCEEDANCE = "exceedance"
    HEAT_MAP = "heat map of response times"
    INTERFERENCE = "reads during writes"
    FRONTIER = "most reads within a limit"
    NEIGHBOURS = "reader with neighbours"
    OVER_AREAS = "over areas"
    SPREAD = "spread over areas"
    SECTIONS = "sections side by side"
    TIMELINE = "timeline"
    PRECONDITIONING = "preconditioning over time"
    OVERLAID = "sections over each other"
    CHANGES = "changes of load"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One table or chart.

    Attributes:
        quantities: keys of ``quantity.QUANTITIES``. Several keys result in several curves in one chart. In a chart of
            one quantity against another, the first key belongs to the vertical axis.
        title: title of the figure. An empty value means that the names of the quantities form the title.
        read_percents: the mixes that the figure shows. None means all mixes. In figures over rounds, each mix has a
            separate chart.
        log: whether the axis of the quantity is logarithmic.
        apart: whether listings, distributions and charts over time show the reads and writes of a mix separately.
        axis: for a chart over a workload field, the key of that field. If ``axis`` is empty, the chart uses the block
            size if the block sizes differ, and otherwise the first field that differs. No chart is drawn if all
            workloads have the same value in the field.
        most_threads: whether a chart over rounds shows only the workloads with the most threads.
        groups: for a figure of a whole test, groups of consecutive sections. A timeline has a chart for each group, and
            an overlaid figure has a curve for each group. If ``groups`` is empty, all sections form one group.
        question: the question that the chart answers. Figures of a section with the same question are views of one
            chart. If ``question`` is empty, the figure is a separate chart.
        view: the name of the figure among the views of a chart, with one word for each switch on the page, such as
            ``("time", "linear")``.
        printed: whether the figure is printed in addition to other views of the same chart, because the specification
            requires a separate plot. If no view of a chart has this mark, the first view is printed.
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


TABLE_KINDS = {FigureKind.MATRIX, FigureKind.LISTING, FigureKind.SECTIONS}
"""Kinds that are tables and not charts. A table has no question."""

SETTLED = "Did the values settle from round to round?"
WAS_STEADY = "Was the window that was judged steady?"
EVEN = "How even were the values from second to second?"
DISTRIBUTED = "How long did single I/Os take?"
SPREAD_OVER_TIME = "How did response times change over time?"
DONE = "What was done to the device, and when?"
COST_IN_LATENCY = "How does latency rise with IOPS?"
HOW_MANY_IOPS = "How many IOPS were measured?"
MORE_DEMAND = "What is the effect of more demand?"
CONVERGENCE = "Steady state convergence"
"""The title of the charts that show quantities over the rounds of a test."""


def percentile_keys(use: PercentileUse) -> tuple[str, ...]:
    """Return the quantity keys of the percentiles that one place in the outputs shows."""
    return tuple(percentile(percent).key for percent in find_percentiles(use))


(TAIL,) = percentile_keys(PercentileUse.TAIL)
TAIL_WORDS = f"{TAIL_PERCENT:g} %"
LATENCIES = ("latency_mean_us", TAIL, "latency_max_us")
"""The latency quantities in a summary."""
PERCENTILE_KEYS = percentile_keys(PercentileUse.CURVES)


def asking(question: str, *figures: Figure) -> tuple[Figure, ...]:
    """Return a chart that answers a question. The figures become the views of the chart."""
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
    groups: tuple[tuple[str, ...], ...] = (),
) -> Figure:
    """Return a figure that shows all mixes. The arguments are the attributes of ``Figure``."""
    return Figure(
        kind=kind,
        quantities=quantities,
        title=title,
        log=log,
        axis=axis,
        apart=apart,
        view=view,
        printed=printed,
        groups=groups,
    )


def over_rounds(
    quantity: str,
    title: str,
    *read_percents: int,
    log: bool = False,
    most_threads: bool = False,
    view: tuple[str, ...] = (),
    printed: bool = False,
) -> Figure:
    """Return a figure with curves of a quantity over the rounds, for some mixes or for the workloads with the most
    threads.
    """
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


WINDOW = asking(WAS_STEADY, drawn(FigureKind.WINDOW, printed=True))
"""Figures of the steady-state window of each tracking variable."""

WHOLE_TEST = asking(
    DONE,
    drawn(FigureKind.TIMELINE, "megabytes_per_s", view=("whole test",)),
    drawn(FigureKind.PRECONDITIONING, "megabytes_per_s"),
)
"""Figures that every test has. These figures show all loads on the device in the order of time, and the change of the
rate during preconditioning.
"""


class LoadCaution(StrEnum):
    """Reasons why the figures of a section do not show the performance of the device alone. These reasons result from
    the load itself.
    """

    BUFFERED = "buffered-io"
    NO_DEVICE = "no-device"
    RATE_LIMITED = "rate-limited"
    SHARED_LOAD = "shared-load"
    ENDED_EARLY = "ended-early"


CAUTION_WORDS = {
    LoadCaution.NO_DEVICE: "no device was measured: the I/O engine or the file uses no device",
    LoadCaution.BUFFERED: "buffered I/O: the host's memory answered some of it",
    LoadCaution.RATE_LIMITED: "options limited the rate",
    LoadCaution.SHARED_LOAD: "other loads ran at the same time",
    LoadCaution.ENDED_EARLY: "the load ended before its runtime",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPlan:
    """A plan for the presentation of a test's section. Every output follows this plan.

    Attributes:
        name: the name of the section in the phases of the procedure.
        quantities: the quantities in a summary, a comparison and a baseline. The first quantity is the most important
            quantity.
        figures: the figures in the order of a report.
        prepares: whether the section brings the device into the state that later sections measure. Outputs mention such
            a section only if the device did not reach that state.
        state: the difference from other sections of the test with the same load, such as "bursts after 5 s idle". A
            headline names the state.
        cautions: cautions about an imported load. Each caution is a reason of the verdict.
    """

    name: str
    quantities: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    prepares: bool = False
    state: str = ""
    cautions: tuple[LoadCaution, ...] = ()

    def draws(self, kind: FigureKind) -> bool:
        """Return whether a report of the section has a figure of this kind."""
        return any(figure.kind is kind for figure in self.figures)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPlan:
    """A plan for the presentation of a test's results.

    Attributes:
        sections: the plans of the sections, in order. If a section has no plan, outputs show the recorded values of the
            section.
        figures: the figures of the whole test.
    """

    __test__ = False

    title: str
    sections: tuple[SectionPlan, ...] = ()
    figures: tuple[Figure, ...] = WHOLE_TEST

    def section(self, name: str) -> SectionPlan | None:
        return next((section for section in self.sections if section.name == name), None)


def distributed(*, apart: bool = False) -> tuple[Figure, ...]:
    """Return the figures of the distribution of the response times of all I/Os. With ``apart``, reads and writes are
    separate.
    """
    return asking(
        DISTRIBUTED,
        drawn(FigureKind.HISTOGRAM, view=("histogram",), apart=apart, printed=True),
        drawn(FigureKind.EXCEEDANCE, view=("exceedance",), apart=apart),
    )


HEAT_MAP = asking(SPREAD_OVER_TIME, drawn(FigureKind.HEAT_MAP, printed=True))
"""A figure that shows the I/Os of a stream by time and response time. A mix has two views: reads and writes."""


def plan_histogram_run(name: str) -> SectionPlan:
    """Return the plan for a load that was run once more to record the distribution of its response times."""
    return SectionPlan(
        name=name,
        quantities=("iops", *LATENCIES),
        figures=(
            *distributed(),
            *asking(
                EVEN,
                drawn(FigureKind.SECONDS, "latency_mean_us", "latency_max_us", view=("response times",)),
                drawn(FigureKind.SECONDS, "iops", view=("IOPS",)),
            ),
            *HEAT_MAP,
        ),
    )


def over_areas(quantity: str) -> tuple[Figure, ...]:
    """Return figures that show a quantity over the areas of a disk, and the spread of this quantity."""
    return asking(
        "How do the results change from the start of the disk to the end?",
        drawn(FigureKind.OVER_AREAS, quantity, view=("over the disk",), printed=True),
        drawn(FigureKind.SPREAD, quantity, view=("spread",), printed=True),
    )


def stream_latencies(question: str) -> tuple[Figure, ...]:
    """Return figures of the latencies of a stream over time: charts of the latencies by slice and by second, and a heat
    map of all I/Os of the stream.
    """
    curves = asking(
        question,
        drawn(
            FigureKind.OVER_TIME,
            *LATENCIES,
            title="Latency over time",
            log=True,
            view=(f"mean, {TAIL_WORDS}, maximum",),
            printed=True,
        ),
        drawn(
            FigureKind.OVER_TIME,
            *PERCENTILE_KEYS,
            title="Latency percentiles over time",
            log=True,
            view=("percentiles",),
            printed=True,
        ),
        drawn(FigureKind.SECONDS, "latency_mean_us", "latency_max_us", view=("every second",)),
    )
    return (*curves, *HEAT_MAP)


def matrices(*quantities: str) -> tuple[Figure, ...]:
    """Return a figure of the kind ``MATRIX`` for each quantity."""
    return tuple(Figure(kind=FigureKind.MATRIX, quantities=(quantity,)) for quantity in quantities)


def matrix_keys(plan: SectionPlan) -> tuple[str, ...]:
    """Return the keys of the quantities for which a section has tables."""
    return tuple(key for figure in plan.figures if figure.kind is FigureKind.MATRIX for key in figure.quantities)


def generic_section(name: str, *, areas: bool = False, stream: bool = False) -> SectionPlan:
    """Return the plan with which outputs show a section whose test defined no plan. The plan shows only recorded
    values.
    """
    quantities = ("iops", "latency_mean_us", TAIL)
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
            *asking(SETTLED, over_rounds("iops", CONVERGENCE, log=True)),
            *WINDOW,
            *asking(HOW_MANY_IOPS, drawn(FigureKind.OVER_AXIS, "iops", log=True)),
        )
    return SectionPlan(name=name, quantities=quantities, figures=figures)
