"""Prepare a section of a test for a report, together with the details of its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tkperf.analysis.details import CellDetail
from tkperf.analysis.drive_telemetry import TelemetrySeries
from tkperf.analysis.results import CellResult, RoundResult, SectionResult, TestResult
from tkperf.model.quantity import IOPS, IOS
from tkperf.model.workload import Workload
from tkperf.page.naming import name_links

NO_LINKS: Mapping[Workload, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSection:
    """A section in the form in which a report shows it.

    Attributes:
        key: a key that is unique in the report.
        details: the samples and histograms of the cells of the section, if they are available.
        links: for each cell, the key of the content that opens when a user clicks on the cell.
        capacity_bytes: number of bytes that fill the drive once; None if it is not known.
        drive_reports: the reports of the drives during the section's stream; None if there are no reports.
        rounds: the rounds or areas of each workload, with the cells of the workload.
        cells: the results of the section, with the workload as the key.
        slices: the results of each slice, with the number of the slice as the outer key and the workload as the inner
            key. The workload is the whole load, a stream, or the flushes of a stream.
        slices_s: the total duration of all slices.
        has_rates, has_counts: whether each slice has a rate, and whether each slice has a number of I/Os.
    """

    section: SectionResult
    key: str
    details: Mapping[Workload, CellDetail] = field(default_factory=dict)
    links: Mapping[Workload, str] = field(default_factory=dict)
    capacity_bytes: int | None = None
    drive_reports: TelemetrySeries | None = None
    # The following attributes are computed only once. If the report searched separately for each cell, the time would
    # grow with the square of the number of cells.
    rounds: Mapping[Workload, Sequence[tuple[RoundResult, CellResult]]] = field(init=False)
    cells: Mapping[Workload, CellResult] = field(init=False)
    slices: Mapping[Workload, Mapping[int, CellResult]] = field(init=False)
    slices_s: float = field(init=False)
    has_rates: bool = field(init=False)
    has_counts: bool = field(init=False)

    def __post_init__(self) -> None:
        section = self.section
        object.__setattr__(self, "rounds", section.rounds_of_workloads())
        object.__setattr__(self, "cells", {cell.workload: cell for cell in section.cells})
        slices: dict[Workload, dict[int, CellResult]] = {}
        for each in section.slices:
            for cell in each.cells:
                slices.setdefault(cell.workload, {})[each.number] = cell
        object.__setattr__(self, "slices", slices)
        object.__setattr__(self, "slices_s", sum(each.duration_s for each in section.slices))
        values = [each.values for each in section.slices]
        object.__setattr__(self, "has_rates", all(each.value(IOPS) is not None for each in values))
        object.__setattr__(self, "has_counts", all(each.value(IOS) is not None for each in values))


def build_shown_sections(
    test: TestResult,
    details: Sequence[CellDetail],
    capacity_bytes: int | None,
    drive_reports: Mapping[str, TelemetrySeries],
) -> tuple[ShownSection, ...]:
    """Return the sections of a test with their details.

    Args:
        drive_reports: the reports of the drives, with the names of the sections as the keys.
    """
    shown_sections = []
    of_sections: dict[str, dict[Workload, CellDetail]] = {}
    for detail in details:
        if detail.test == test.name:
            of_sections.setdefault(detail.section, {})[detail.workload] = detail
    for number, section in enumerate(test.sections):
        key = find_section_key(test, number)
        behind = of_sections.get(section.name, {})
        shown_sections.append(
            ShownSection(
                section=section,
                key=key,
                details=behind,
                links=name_links(key, behind),
                capacity_bytes=capacity_bytes,
                drive_reports=drive_reports.get(section.name),
            )
        )
    return tuple(shown_sections)


def find_section_key(test: TestResult, number: int) -> str:
    """Return the key of a section. The key is unique in the report."""
    return f"{test.name}{number}"
