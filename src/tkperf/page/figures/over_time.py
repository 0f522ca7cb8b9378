"""Charts over the rounds, over time, and over the amount written."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.analysis.timeline.findings import Recorded, Timeline, preferred
from tkperf.model.figures import Figure
from tkperf.model.measurement import TOO_FEW_IOS
from tkperf.model.quantity import LATENCY_MEAN, PERCENTILES, Direction, Quantity
from tkperf.model.units import format_capacity
from tkperf.model.workload import Workload
from tkperf.page.naming import (
    capitalise,
    describe_curves,
    describe_direction,
    describe_together,
    list_words,
)
from tkperf.page.page import ChartView, Views
from tkperf.page.subject import SectionSubject, find_quantities
from tkperf.page.tables.results import directions_of
from tkperf.page.telemetry import show_course_below
from tkperf.render.charts import rounds
from tkperf.render.charts.over_time import mark_over_time
from tkperf.render.charts.seconds import (
    find_recorded,
    flagged_rows,
    over_seconds,
    part_rows,
    seconds_rows,
    window_rows,
)
from tkperf.render.charts.telemetry import align


def show_over_rounds(subject: SectionSubject, figure: Figure) -> Views:
    """Yield one chart for the mixes that the figure names; one for each mix if it names none."""
    section = subject.section
    measured = {cell.workload for round_result in section.rounds for cell in round_result.cells}
    mixes = sorted({workload.read_percent for workload in measured})
    for mix in (None,) if figure.read_percents else mixes:
        shown = figure.read_percents if mix is None else (mix,)
        of = "" if mix is None else f": {describe_direction(measured, mix)}"
        curves = rounds.shown_over_rounds(section, shown, most_threads=figure.most_threads)
        naming = rounds.naming_over_rounds(section, shown, most_threads=figure.most_threads)
        threads = "; of the most threads alone" if figure.most_threads else ""
        for quantity in find_quantities(figure.quantities):
            title = (figure.title or f"{capitalise(quantity.label)} over the rounds") + of
            yield ChartView(
                key="convergence",
                text=f"{title}: {quantity.title} of every round{describe_curves(naming.axes)}{threads}.",
                spec=mark_over_time(
                    rounds.convergence(
                        section,
                        quantity,
                        title,
                        read_percents=shown,
                        most_threads=figure.most_threads,
                        log=figure.log,
                        links=subject.links,
                    ),
                    _timelines_of(subject, Recorded.ROUNDS, curves),
                    (quantity,),
                    x="round",
                ),
                choice=(describe_direction(measured, mix),)
                if mix is not None and len(mixes) > 1
                else (),
            )


def show_window(subject: SectionSubject, figure: Figure) -> Views:
    """Yield the judged window, once for each tracking variable; nothing without a judged window."""
    section, verdicts = subject.section, subject.section.window_verdicts
    for number, verdict in enumerate(verdict for verdict in verdicts if verdict.judged):
        title = figure.title or "Steady state verification: the window"
        if len(verdicts) > 1:
            title += f" of {verdict.tracking}"
        yield ChartView(
            key=f"window{number or ''}",
            text=f"{verdict.tracking} in the window with its average, the lines at 110 % and 90 % of "
            "it, and the best linear fit. The lines are a convention; the criterion is the range.",
            spec=rounds.steady_state_window(
                verdict,
                title,
                "Slice" if section.slices else "Round",
                rounds.tracked_cells(section, verdict),
                subject.links,
            ),
            choice=(verdict.tracking,) if len(verdicts) > 1 else (),
        )


def show_over_time(subject: SectionSubject, figure: Figure) -> Views:
    if len(subject.section.slices) > 1:
        yield _stream(subject, figure, "time", rounds.TIME, "over time", "over time")
        asked = (each for each in subject.section.plan.figures if each.kind is figure.kind)
        if subject.course is not None and figure is next(asked):
            yield from show_course_below(subject.course)


def show_over_written(subject: SectionSubject, figure: Figure) -> Views:
    if _written_known(subject):
        text = "over the total amount written (TGBW)"
        yield _stream(subject, figure, "tgbw", rounds.TOTAL_WRITTEN, "over total GB written", text)


def show_over_fills(subject: SectionSubject, figure: Figure) -> Views:
    capacity_bytes = subject.capacity_bytes
    if capacity_bytes and _written_known(subject):
        text = f"over the amount written in multiples of {format_capacity(capacity_bytes)}, the capacity in use"
        over = rounds.drive_fills(capacity_bytes)
        yield _stream(subject, figure, "fills", over, "over drive fills", text)


def _written_known(subject: SectionSubject) -> bool:
    slices = subject.section.slices
    return len(slices) > 1 and slices[-1].total_written_bytes is not None


def _stream(
    subject: SectionSubject, figure: Figure, key: str, over: rounds.Over, of: str, text: str
) -> ChartView:
    quantities = find_quantities(figure.quantities)
    log = ", logarithmic" if figure.log else ""
    title = figure.title or f"{capitalise(_listed(quantities))} {of}{log}"
    caption = f"{capitalise(_listed(quantities))} of each slice {text}"
    workload = subject.section.slices[0].values.workload
    directions = directions_of(workload, apart=figure.apart)
    if len(directions) > 1:
        directions = tuple(named for named in directions if named[0] is not Direction.ALL)
        caption += ", reads and writes apart"
    if log:
        caption += ", the axis logarithmic"
    if len(subject.section.slices) > rounds.MOST_SLICES_DRAWN:
        caption += (
            f"; of {len(subject.section.slices):,} slices the lowest and the highest of neighbours, "
            f"{rounds.MOST_SLICES_DRAWN:,} at most"
        )
    if set(quantities) & set(PERCENTILES):
        caption += f"; none where a slice had {TOO_FEW_IOS}"
    spec = rounds.stream(
        subject.section,
        quantities,
        title,
        over=over,
        log=figure.log,
        directions=directions,
        link=subject.links.get(workload, ""),
    )
    aligned = over is rounds.TIME and subject.course is not None
    if aligned and subject.course is not None:
        spec = align(spec, 0.0, subject.course.length_s, rounds.stream_unit(subject.section)[1])
    if over is rounds.TIME:
        timelines = preferred(subject.section.timelines)
        unit_s = rounds.stream_unit(subject.section)[1]
        marked = mark_over_time(spec, timelines, quantities, scale=1 / unit_s)
        if marked is not spec:
            caption += ". Marked: what was found over time"
        spec = marked
    return ChartView(
        key=key,
        text=f"{caption}. Workload: {subject.section.workload}.",
        spec=spec,
        aligned=aligned,
    )


def _listed(quantities: tuple[Quantity, ...]) -> str:
    if len(quantities) > 1 and all(quantity.unit == LATENCY_MEAN.unit for quantity in quantities):
        words = [quantity.label.removesuffix(" latency") for quantity in quantities]
        return f"{list_words(words)} latency"
    return list_words([quantity.label for quantity in quantities])


def show_seconds(subject: SectionSubject, figure: Figure) -> Views:
    quantities = find_recorded(find_quantities(figure.quantities))
    for detail in subject.details.values():
        if not len(detail.seconds) or not quantities:
            continue
        what = describe_together(quantities)
        judged = any(part.judged for part in detail.parts)
        yield ChartView(
            key="seconds",
            text=f"{what} of every second: where a point stands for several, the shade reaches "
            "from the lowest to the highest."
            + (" Shaded green: the window that was judged." if judged else ""),
            spec=mark_over_time(
                over_seconds(
                    seconds_rows(detail, quantities),
                    window_rows(detail),
                    part_rows(detail),
                    flagged_rows(detail),
                    quantities,
                    figure.title or f"{what}, every second",
                ),
                _timelines_of(subject, Recorded.SECONDS),
                quantities,
                scale=1000,  # its axis is in ms
                x="t",
            ),
            cell=subject.links[detail.workload],
            choice=(str(detail.workload),) if len(subject.details) > 1 else (),
        )


def _timelines_of(
    subject: SectionSubject, recorded: Recorded, workloads: Sequence[Workload] | None = None
) -> tuple[Timeline, ...]:
    """Return the timelines of these workloads and this kind of record."""
    return tuple(
        timeline
        for timeline in subject.section.timelines
        if timeline.recorded is recorded and (workloads is None or timeline.workload in workloads)
    )
