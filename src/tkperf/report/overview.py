"""The overview: each section at a glance, its state and the numbers asked for first."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.analysis.results import CellResult, SectionResult, TestResult
from tkperf.report.parts import CardView, Facts
from tkperf.report.section_parts import Value, iops, latency_mean, percentile, throughput
from tkperf.report.wording import describe_end, describe_state, format_written
from tkperf.units import KIB, format_block_size, format_mix, format_number, format_quantity
from tkperf.workload import Cell

# What a data sheet names: 4 KiB, reads, the mix, writes.
_BLOCK_SIZE_BYTES = 4 * KIB
_MIXES = (100, 65, 0)


def build_card(test: TestResult, section: SectionResult, key: str) -> CardView:
    """A section's card; ``key`` is that of the section."""
    return CardView(
        key=key,
        title=section.name,
        state=describe_state(section.steady),
        summary=describe_end(section),
        figures=_figures(test, section),
    )


def _figures(test: TestResult, section: SectionResult) -> Facts:
    if section.slices:
        return _stream(section)
    if section.areas:
        if test.name == "tp":
            return _pick(section.cells, throughput, "MB/s mean", "SEQ")
        return _pick(section.cells, iops, "IOPS mean", "RND")
    if test.name == "tp":
        return _pick(section.cells, throughput, "MB/s", "SEQ")
    four_kib = [
        cell for mix in _MIXES if (cell := section.cell(Cell(mix, _BLOCK_SIZE_BYTES))) is not None
    ] or list(section.cells[:3])
    if test.name == "lat":
        return (
            *_pick(four_kib, latency_mean, "us mean", "RND"),
            *_pick(four_kib[-1:], percentile("p99.9"), "us at 99.9 %", "RND"),
        )
    return _pick(four_kib, iops, "IOPS", "RND")


def _pick(cells: Sequence[CellResult], value: Value, unit: str, access: str) -> Facts:
    return tuple(
        (
            f"{access} {format_block_size(cell.block_size_bytes)} {_direction(cell)}",
            format_quantity(value(cell), 1, unit),
        )
        for cell in cells
    )


def _direction(cell: CellResult) -> str:
    names = {100: "read", 0: "write"}
    return names.get(cell.read_percent, f"R/W {format_mix(cell.read_percent)}")


def _stream(section: SectionResult) -> Facts:
    last = section.slices[-1]
    steady = bool(section.window) and bool(section.cells)
    values = section.cells[0] if steady else last.values
    where = "" if len(section.slices) == 1 else (", window" if steady else ", last slice")
    whole = section.cells and not steady and len(section.slices) > 1
    return (
        *((("IOPS, whole stream", format_number(section.cells[0].iops, 1)),) if whole else ()),
        (f"IOPS{where}", format_number(values.iops, 1)),
        (f"Mean latency{where}", format_quantity(values.latency_mean_us, 1, "us")),
        (f"99.9 %{where}", format_quantity(values.percentiles_us["p99.9"], 1, "us")),
        (f"Maximum{where}", format_quantity(values.latency_max_us, 1, "us")),
        ("Written", format_written(last.total_written_bytes)),
    )
