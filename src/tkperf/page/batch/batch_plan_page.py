"""Build the page that shows the plan of a batch.

The page states whether the batch could begin, and how much time the batch needs. The page also shows each drive, the
links that drives share, and the conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tkperf.analysis.estimates import (
    MUCH_OF_A_LIFE,
    BatchEstimate,
    DriveEstimate,
    PlanCode,
    RunEstimate,
    judge_batch_plan,
)
from tkperf.analysis.verdict import NamedReason
from tkperf.model.batch_state import DriveShown
from tkperf.model.sharing import BudgetState, CpuPlan, DriveGroup, PartBudget
from tkperf.model.units import NOT_MEASURED, format_capacity, format_count, format_durations, format_ranges, list_names
from tkperf.page.facts import NOT_KNOWN_TEXT, SLOW_LINK
from tkperf.page.page import Block, Column, Note, NotesView, ReportView, TableView, build_table
from tkperf.page.plan import NOTHING_WRITTEN, describe_amounts, describe_clock, describe_conditions, describe_shares
from tkperf.page.verdict_texts import NoteLevel, Verdict, word_verdict

# The greatest number of reasons in a verdict. A longer verdict would not be clearer. The page itself contains all
# reasons.
_MOST_NAMED = 3
# Those conditions of a run that the tables already contain. The page therefore does not repeat these conditions.
_IN_TABLES = ("device", "writes")
_LEVELS = {BudgetState.OVER: NoteLevel.CAUTION}


def build_batch_plan_page(estimate: BatchEstimate, ends: str = "") -> ReportView:
    """Return the page that shows the plan of a batch.

    Args:
        ends: the time at which the batch would end, on the user's clock; empty if the time is not known.
    """
    blocks: list[Block] = [_build_drives(estimate)]
    if any(group.budgets for group in estimate.groups):
        blocks.append(_build_links(estimate))
    refused = [f"{one.name}: {text}" for one in estimate.refused_drives for text in one.refusals]
    refusals = [Note(text=text, level=NoteLevel.FAILURE) for text in refused]
    warnings = fold_texts(
        [
            (one.name, [("", text) for text in one.estimate.cautions])
            for one in estimate.drives
            if one.estimate is not None
        ],
        by_words=True,
    )
    cautions = [Note(text=text, level=NoteLevel.CAUTION) for _, text in warnings]
    for title, notes in (("Would be refused", refusals), ("Warnings", cautions)):
        if notes:
            blocks.append(NotesView(title=title, notes=tuple(notes)))
    return ReportView(
        title="Plan of a batch",
        subtitle=f"{estimate.name}: {format_count(len(estimate.drives), 'drive')}",
        disclosure=(("Conditions", tuple(_conditions(estimate, ends))),),
        verdict=describe_batch_plan_verdict(estimate),
        overview=tuple(blocks),
    )


def describe_batch_plan_verdict(estimate: BatchEstimate) -> Verdict:
    """Return the verdict on a plan. The verdict states whether the batch could begin. It also contains the duration,
    the amount written, and the share of the drives' rated life that the batch consumes.
    """
    judged = judge_batch_plan(estimate)
    texts = [_describe_reason(reason, estimate) for reason in judged.reasons]
    words = {reason.code: text for reason, text in zip(judged.reasons, texts, strict=True)}
    refused = words.pop(PlanCode.REFUSED, None)
    reasons = [] if refused is None else [refused]
    if estimate.estimates:
        reasons.append(", ".join(_sums(estimate)))
    reasons += words.values()
    if estimate.lost and refused is None:
        reasons.append(NOTHING_WRITTEN)
    return word_verdict(judged, texts, reasons=reasons)


def _sums(estimate: BatchEstimate) -> Iterator[str]:
    estimates = estimate.estimates
    yield format_count(len(estimates), "drive")
    clock = describe_clock(next((one for one in estimates if not one.simulated), estimates[0]))
    yield f"{format_durations(*estimate.bounds_s)}{clock}"
    yield describe_groups(estimate.groups)
    yield f"writes {describe_amounts(estimate.written_bytes)} in all"
    if estimate.shares is not None:
        yield f"{describe_shares(estimate.shares)} of each drive's rated endurance"


def _describe_reason(reason: NamedReason, estimate: BatchEstimate) -> str:
    names = list_names(reason.names)
    if reason.code is PlanCode.REFUSED:
        return "; ".join(_refusals(estimate))
    if reason.code is PlanCode.COSTS_MUCH:
        share = f"{100 * MUCH_OF_A_LIFE:.2g} %"
        return f"it may write more than {share} of the rated endurance of {names}"
    if reason.code is PlanCode.SLOW_LINK:
        return f"{SLOW_LINK} ({names})"
    if reason.code is PlanCode.OVER_BUDGET:
        return f"drives that run at once may overload {names}"
    return f"warnings of {names} below"


def _refusals(estimate: BatchEstimate) -> Iterator[str]:
    whys = [f"{one.name}: {'; '.join(one.refusals)}" for one in estimate.refused_drives]
    if whys:
        whole = format_count(len(estimate.drives), "drive")
        yield f"{len(whys)} of {whole}, and the batch with them"
        if len(whys) > _MOST_NAMED:
            yield "the reason of each drive is below"
        else:
            yield from whys
    if estimate.refused:
        yield estimate.refused


def _build_drives(estimate: BatchEstimate) -> TableView:
    group_of = {name: str(number) for number, group in enumerate(estimate.groups, start=1) for name in group.drives}
    has_rating = estimate.shares is not None
    cpus = {
        one.drive: format_ranges(one.cpus) + " (shared)" * one.is_shared
        for plan in estimate.cpus
        if plan is not None
        for one in plan.assignments
    }
    levels = {one.name: NoteLevel.FAILURE for one in estimate.drives if one.refusals}
    columns: list[Column[DriveEstimate]] = [
        Column("", lambda one: str(one.number)),
        Column("Slot", lambda one: one.slot or NOT_MEASURED, 1),
        Column("Drive", lambda one: one.path or one.given),
        Column("Takes", lambda one: (_describe_time(one), levels.get(one.name))),
        Column("Writes", lambda one: NOT_MEASURED if (found := _find_run(one)) is None else _describe_writes(found)),
        Column("Of its life", lambda one: NOT_MEASURED if (found := _find_run(one)) is None else _describe_life(found)),
        Column("Group", lambda one: group_of.get(one.name, NOT_MEASURED), 2),
        Column("CPUs", lambda one: cpus.get(one.name, NOT_MEASURED), 4),
        Column("Run", lambda one: one.name, 3),
    ]
    has = {"Of its life": has_rating, "CPUs": bool(cpus)}
    return build_table("Drives", estimate.drives, [one for one in columns if has.get(one.title, True)], labels=3)


def _find_run(drive: DriveEstimate) -> RunEstimate | None:
    """Return the estimated time and amount for the run of a drive, or None if tkperf would refuse the run."""
    return None if drive.refusals else drive.estimate


def _describe_time(drive: DriveEstimate) -> str:
    found = _find_run(drive)
    return "would be refused" if found is None else format_durations(found.shortest_s, found.longest_s)


def _describe_writes(found: RunEstimate) -> str:
    return describe_amounts((found.least_bytes, found.most_bytes))


def _describe_life(found: RunEstimate) -> str:
    return NOT_MEASURED if found.shares is None else describe_shares(found.shares)


def _build_links(estimate: BatchEstimate) -> TableView:
    """Return a table of the links that the drives of one group share, with the budget of each link."""
    of_groups = [(number, one) for number, group in enumerate(estimate.groups, start=1) for one in group.budgets]
    columns: list[Column[tuple[int, PartBudget]]] = [
        Column("Group", lambda row: str(row[0])),
        Column("Link", lambda row: row[1].part.name),
        Column("Drives", lambda row: f"{len(row[1].drives)}"),
        Column("Drives' links carry", lambda row: _describe_rate(row[1].demand_bytes_per_s or None, NOT_KNOWN_TEXT)),
        Column("It carries", lambda row: _describe_rate(row[1].part.bytes_per_s, "not seen")),
        Column("Budget", lambda row: (row[1].state.value, _LEVELS.get(row[1].state))),
    ]
    return build_table("Shared links", of_groups, columns, labels=2)


def _describe_rate(bytes_per_s: float | None, otherwise: str) -> str:
    return otherwise if bytes_per_s is None else f"{format_capacity(bytes_per_s)}/s"


def _conditions(estimate: BatchEstimate, ends: str) -> Iterator[tuple[str, str]]:
    """Yield the conditions under which the batch would run, each as a label and a text. If a condition does not apply
    to all drives, its text names the drives to which it applies.
    """
    if ends:
        yield "ends", ends
    yield from estimate.settings
    yield from (("at once", text) for text in describe_neighbours(estimate.groups, estimate.cpus))
    facts = [
        (
            drive.name,
            # The word "DEVICE" replaces the path. Lines that differ only in the path then become equal, and the page
            # shows them only once.
            [
                (label, text.replace(drive.path or drive.given, "DEVICE"))
                for label, text in describe_conditions(drive.estimate, "")
                if label not in _IN_TABLES
            ],
        )
        for drive in estimate.drives
        if drive.estimate is not None
    ]
    folded = list(fold_texts(facts))
    labels = list(dict.fromkeys(label for label, _ in folded))
    yield from sorted(folded, key=lambda fact: labels.index(fact[0] or "course"))


_NOTHING = "-"
# A number that is a separate word. Digits inside a name, such as sda1, do not count as a number.
_NUMBER = re.compile(r"\b\d[\d.,]*\b")


def build_consent_table(drives: Sequence[DriveShown]) -> TableView:
    """Return a table with a row for each drive. The table contains the facts that the process of each drive found out
    about the drive.
    """
    asked = sum(drive.confirm_id is not None for drive in drives)
    title = format_count(len(drives), "drive")
    lost = "nothing can be lost" if not asked else f"{asked} of them {'is' if asked == 1 else 'are'} erased"
    hosts = any(drive.host is not None for drive in drives)
    columns: list[Column[DriveShown]] = [
        Column("", lambda drive: str(drive.number)),
        *(Column("host", lambda drive: drive.host or _NOTHING),) * hosts,
        Column("slot", lambda drive: drive.slot or _NOTHING),
        Column("drive", lambda drive: f"{drive.path} (file)" if drive.is_file else drive.path),
        Column("model", lambda drive: drive.model or _NOTHING),
        Column("serial number", lambda drive: drive.serial or _NOTHING),
        Column("size", lambda drive: format_capacity(drive.capacity_bytes)),
        Column("holds", _describe_content),
        Column("run", lambda drive: drive.name),
    ]
    title = f"{title}: {'all are erased' if asked == len(drives) else lost}"
    return build_table(title, drives, columns, labels=3 + hosts)


def _describe_content(drive: DriveShown) -> str:
    return ", ".join(drive.data) or ("nothing to lose" if drive.confirm_id is None else "no data recognised")


def describe_groups(groups: Sequence[DriveGroup]) -> str:
    """Return the groups in which drives are measured, in words: ``in 3 groups, one after the other (8, 8, 4)``."""
    if len(groups) < 2:
        return "all at once"
    sizes = ", ".join(str(len(group.drives)) for group in groups)
    return f"in {len(groups)} groups, one after the other ({sizes})"


def describe_neighbours(groups: Sequence[DriveGroup], cpus: Sequence[CpuPlan | None]) -> Iterator[str]:
    """Yield a sentence for each link whose budget is exceeded, a sentence about the links whose budget is not known,
    and a sentence about the CPUs that drives share.
    """
    for group in groups:
        for budget in group.budgets:
            if budget.state is BudgetState.OVER:
                yield (
                    f"{len(budget.drives)} drives at once are over the budget of {budget.part.name}: their links carry "
                    f"{budget.demand_bytes_per_s / 1e9:.1f} GB/s, it carries "
                    f"{(budget.part.bytes_per_s or 0) / 1e9:.1f} GB/s"
                )
    unknown = [group for group in groups if len(group.drives) > 1 and group.state is BudgetState.NOT_KNOWN]
    if unknown:
        count = format_count(sum(len(group.drives) for group in unknown), "drive")
        hidden = {budget.part.name for group in unknown for budget in group.budgets if budget.part.bytes_per_s is None}
        why = f"; not seen: {list_names(sorted(hidden))}" if hidden else ""
        yield f"whether they slow each other down is not known: the links of {count} are not all known{why}"
    if any(one.is_shared for plan in cpus if plan is not None for one in plan.assignments):
        yield "too few CPUs for each drive to have its own: they share them"


def fold_texts(
    of_drives: Sequence[tuple[str, Sequence[tuple[str, str]]]], *, by_words: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield each labelled text only once, even if several drives have the same text. If a text does not apply to all
    drives, it names the drives to which it applies.

    Args:
        by_words: whether texts that differ only in their numbers count as equal. The numbers can differ because the
            host was examined separately for each drive.
    """
    names: dict[tuple[str, str], dict[str, None]] = {}
    texts: dict[tuple[str, str], str] = {}
    for name, facts in of_drives:
        for label, text in facts:
            key = label, _NUMBER.sub("", text) if by_words else text
            texts.setdefault(key, text)
            names.setdefault(key, {})[name] = None
    for key, text in texts.items():
        of = tuple(names[key])
        yield key[0], text if len(of) == len(of_drives) else f"{text} ({list_names(of)})"
