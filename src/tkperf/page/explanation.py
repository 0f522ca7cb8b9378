"""Method of a run in words: procedure of each test with the numbers of its profile, and what figures mean."""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.analysis.results import CellResult, RunResult, SectionResult
from tkperf.model.errors import ProfileError
from tkperf.model.measurement import TOO_FEW_IOS
from tkperf.model.quantity import PERCENTILES
from tkperf.model.run_info import RunInfo
from tkperf.model.units import format_block_size_kib
from tkperf.model.workload import Workload
from tkperf.page.facts import capacity, or_not_known, word
from tkperf.page.tables.cell_tables import WIDE_RANGE, explain_intervals
from tkperf.page.words.time_course import describe_timelines
from tkperf.procedures import find_test, read_stored_profile
from tkperf.procedures.descriptor import Circumstances

UNITS = (
    "Latency is the time from submission to completion. Block sizes are binary (KiB), capacities and "
    f"rates decimal (1 MB = 10^6 bytes). A dash means not measured, or {TOO_FEW_IOS}."
)

OVER_TIME = (
    "tkperf finds phases, drops and spikes in the recorded series, in addition to the specification: a rate may have "
    "settled where the specification's rule of steady state is not met or has too few rounds. A settled rate stays "
    "within a tenth of its level, and changes by at most 3 % in the last quarter of the time. A drop falls at once to "
    "less than half of the level before. Its level is the median of the seconds that follow. Spikes are "
    "reported if there is less than 1 chance in 1,000 that their distances are equal by accident."
)


HEAT = (
    "A table of one quantity is a heat map: the greater a value, the darker its cell, on a logarithmic scale if "
    f"the greatest value is more than {WIDE_RANGE:g} times the least."
)


def explain(result: RunResult) -> tuple[str, ...]:
    """Return the sentences for the sections that the run has."""
    sections = [section for test in result.tests for section in test.sections]
    words = []
    if result.info.is_simulated:
        words.append("SIMULATED means that a model gave these figures; no device was measured.")
    if any(section.verdict for section in sections):
        words.append(
            "Steady state is judged on a window of consecutive rounds of the tracking variable. It is "
            "reached when the range of its values is at most 20 % of their average, and when the best "
            "linear fit through them rises or falls by at most 10 % of the average over the window "
            "(a profile may set other limits). Every figure in a table of cells is the mean "
            "over the rounds of that window; a maximum is the greatest of the window."
        )
    if any(section.areas for section in sections):
        words.append(
            "A hard disk is measured area by area from its start to its end, each area once; figures "
            "of a cell are means over the areas, and their spread is that of the disk. Hard disks have no "
            "steady state to wait for."
        )
    if any(section.slices for section in sections):
        words.append(
            (
                "Each slice of a stream was a fio run of its own. "
                if result.info.imported
                else "A stream is one unbroken load, recorded in slices. "
            )
            + "Figures of the whole stream count each I/O once; figures of a steady-state window are means over "
            "its slices."
        )
    if any(describe_timelines(section.timelines) for section in sections):
        words.append(OVER_TIME)
    if any(cell.workload.offered_iops is not None for section in sections for cell in section.cells):
        words.append(
            "At an offered rate, latency counts from submission. An I/O that is due while all TC × QD places "
            "are taken has to wait, and latency does not include that wait: once the device falls behind, latency "
            "levels off and the backlog grows. The backlog is the number of I/Os that were due but not done at the "
            "end of the level. The time behind, backlog / offered rate, is about how late the last I/O was."
        )
    if any(
        cell.value(percentile) is not None
        for section in sections
        for cell in _cells(section)
        for percentile in PERCENTILES
    ):
        words.append("Percentiles come from merged histograms and are exact to within 1/64.")
    return (*words, *explain_intervals(result), UNITS)


def _cells(section: SectionResult) -> Iterator[CellResult]:
    yield from section.cells
    yield from (slice_result.values for slice_result in section.slices)
    yield from (cell for _, cell in section.cells_of_rounds())


def describe_fill(info: RunInfo, load: str, filled_bytes: int | None = None, *, passes: int | None = None) -> str:
    """Return amount, place and load of the preconditioning.

    Args:
        load: in words, as ``describe_fill_load`` returns them.
        filled_bytes: the measured amount; without it the text has the profile's amount.
        passes: the requested passes, if they differ from the profile's.
    """
    times = or_not_known(word(passes or info.table("preconditioning").get("passes")))
    if info.fills_members:
        return f"{times} × each member, all at once, before the set is made, {load} each"
    length_bytes = info.preconditioned_length_bytes
    if filled_bytes is None:
        amount = f"{times} × {info.preconditioned_range}"
    elif not length_bytes:
        amount = or_not_known(capacity(filled_bytes))
    else:
        amount = f"{filled_bytes / length_bytes:.3g} × {info.preconditioned_range}"
    where = ", after the set is made" if info.suite == "raid" else ""
    return f"{amount}{where}, {load}"


def describe_fill_load(fill: Workload) -> str:
    """Return the load in words: ``SEQ 128 KiB writes, TC 4 / QD 32``."""
    size = format_block_size_kib(fill.block_size_bytes)
    return f"SEQ {size} KiB writes, TC {fill.jobs} / QD {fill.io_depth}"


def describe_procedure(info: RunInfo, test: str) -> str:
    """Return the test's steps, line by line; empty if its table is not known in full."""
    definition = find_test(info.suite, test, info.profile)
    if definition is None:
        return ""
    circumstances = Circumstances(
        purge=None if info.options.get("no_purge") else "Purge",
        describe_fill=lambda load, passes: describe_fill(info, load, passes=passes),
    )
    try:
        return "\n".join(definition.describe(read_stored_profile(info.profile), circumstances))
    except ProfileError:  # an imported run: only some of its numbers are known
        return ""
