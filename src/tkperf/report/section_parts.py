"""Tables and charts that sections of several tests have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tkperf.analysis.details import CellDetail
from tkperf.analysis.flags import explain_marks, mark
from tkperf.analysis.results import CellResult, SectionResult
from tkperf.measurement import explain_rare
from tkperf.report.charts import rounds
from tkperf.report.charts.bars_3d import bars_3d
from tkperf.report.parts import ChartView, TableView
from tkperf.units import NOT_MEASURED, format_block_size_kib, format_mix, format_number
from tkperf.workload import Cell

Value = Callable[[CellResult], float | None]
Parts = tuple[tuple[TableView, ...], tuple[ChartView, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A section that is reported; ``key`` is unique in the report.

    ``details`` has what lies behind its cells, where samples and histograms are at hand.
    """

    test: str
    section: SectionResult
    key: str
    details: Mapping[Cell, CellDetail] = field(default_factory=dict)

    def link(self, cell: Cell) -> str:
        """The key of what a click on the cell opens; empty if nothing is known of it."""
        if cell not in self.details:
            return ""
        return f"{self.key}-{cell.read_percent}-{cell.block_size_bytes}"


def iops(cell: CellResult) -> float | None:
    return cell.iops


def throughput(cell: CellResult) -> float | None:
    return cell.megabytes_per_s


def latency_mean(cell: CellResult) -> float | None:
    return cell.latency_mean_us


def latency_max(cell: CellResult) -> float | None:
    return cell.latency_max_us


def percentile(name: str) -> Value:
    return lambda cell: cell.percentiles_us[name]


def percentile_matrix(subject: Subject, name: str) -> TableView:
    """A percentile, which cells with few I/Os may lack."""
    table = matrix(subject, f"{name} latency in us", percentile(name), over="all I/Os")
    rare = explain_rare((cell.percentiles_us for cell in subject.section.cells), only=name)
    return replace(table, notes=(*table.notes, *rare))


def matrix(subject: Subject, title: str, value: Value, *, over: str = "mean") -> TableView:
    """Block sizes down, R/W mixes across.

    Args:
        over: what a value is of the rounds of the window: their mean, the greatest, ...
    """
    section = subject.section
    mixes = list(dict.fromkeys(cell.read_percent for cell in section.cells))
    sizes = sorted({cell.block_size_bytes for cell in section.cells})
    rows, links = [], []
    for size in sizes:
        cells = [section.cell(Cell(mix, size)) for mix in mixes]
        texts = (
            NOT_MEASURED if cell is None else format_number(value(cell), 1) + mark(cell)
            for cell in cells
        )
        rows.append((format_block_size_kib(size), *texts))
        links.append(tuple(subject.link(Cell(mix, size)) for mix in mixes))
    what = "areas" if section.areas else "rounds"
    window = (
        f"{over} of {what} {section.window[0]} to {section.window[-1]}" if section.window else ""
    )
    return TableView(
        title=", ".join(part for part in (title, window) if part),
        columns=("Block size (KiB)", *(format_mix(mix) for mix in mixes)),
        rows=tuple(rows),
        notes=explain_marks(section.cells),
        links=tuple(links),
    )


def convergence_chart(
    subject: Subject,
    name: str,
    mixes: tuple[int, ...],
    value: Value,
    quantity: str,
    title: str,
    *,
    log: bool = True,
) -> ChartView:
    """A value over the rounds; ``name`` tells several such charts of a section apart."""
    return ChartView(
        key=f"{subject.key}{name}",
        text=f"{title}: {quantity} of every round, one curve for each block size.",
        spec=rounds.convergence(
            subject.section,
            title=title,
            read_percents=mixes,
            value=value,
            quantity=quantity,
            log=log,
        ),
    )


def window_chart(subject: Subject) -> tuple[ChartView, ...]:
    """The window that was judged, if one was."""
    verdict = subject.section.verdict
    if verdict is None or not verdict.judged:
        return ()
    x_title = "Slice" if subject.section.slices else "Round"
    spec = rounds.steady_state_window(verdict, "Steady state verification: the window", x_title)
    text = (
        f"{verdict.tracking} in the window with its average, the lines at 110 % and 90 % of it, "
        "and the best linear fit. The lines are a convention; the criterion is the range."
    )
    return (ChartView(key=f"{subject.key}window", text=text, spec=spec),)


def measurement_chart(subject: Subject, value: Value, quantity: str, title: str) -> ChartView:
    return ChartView(
        key=f"{subject.key}2d",
        text=f"{title}: means over the window, one curve for each R/W mix.",
        spec=rounds.measurement_2d(subject.section, title=title, value=value, quantity=quantity),
    )


def bars_chart(subject: Subject, name: str, value: Value, quantity: str, title: str) -> ChartView:
    return ChartView(
        key=f"{subject.key}{name}",
        text=f"{title}: every cell of the window's table as a bar, the R/W mix to the right, the "
        "block size to the back.",
        spec=bars_3d(subject.section, title=title, value=value, quantity=quantity),
    )
