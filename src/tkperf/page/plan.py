"""Build the page that shows the plan of a run. The page states whether the run could begin, and how much time the run
needs. The page also shows each test, phase and condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from tkperf.analysis.estimates import (
    MUCH_OF_A_LIFE,
    PURGE,
    PlanCode,
    Repeated,
    RunEstimate,
    Stage,
    fold,
    judge_plan,
    sum_bytes,
    sum_times_s,
)
from tkperf.analysis.verdict import VerdictCode
from tkperf.model.units import NOT_MEASURED, format_capacity, format_count, format_durations
from tkperf.page.facts import NOT_KNOWN_TEXT, SLOW_LINK, describe_device
from tkperf.page.page import Column, Note, NotesView, ReportView, build_table
from tkperf.page.verdict_texts import NoteLevel, Verdict, word_verdict
from tkperf.procedures import Circumstances

NOTHING_WRITTEN = "nothing is written before you confirm"
# Browsers remove ordinary spaces at the beginning of a line, but they keep no-break spaces.
_INDENT = "\N{NO-BREAK SPACE}" * 2


def build_plan_page(estimate: RunEstimate, ends: str = "") -> ReportView:
    """Return the page of a plan. The page contains the verdict, the time and amount of each test and its phases, and
    the conditions.

    Args:
        ends: the time at which the run would end, on the user's clock; empty if the time is not known.
    """
    by_test: dict[str, list[Stage]] = {test.title: [] for test in estimate.tests}
    for stage in estimate.stages:
        by_test[stage.test].append(stage)
    rows = [
        row
        for title, stages in by_test.items()
        for row in (
            (title, format_durations(*sum_times_s(stages)), describe_amounts(sum_bytes(stages))),
            *map(_phase, fold(stages)),
        )
    ]
    columns = [Column("Test", itemgetter(0)), Column("Takes", itemgetter(1)), Column("Writes", itemgetter(2))]
    phases = build_table("Tests and phases", rows, columns)
    warnings = NotesView(
        title="Warnings", notes=tuple(Note(text=text, level=NoteLevel.CAUTION) for text in estimate.cautions)
    )
    return ReportView(
        title="Plan",
        subtitle=describe_device(estimate.device),
        disclosure=(("Conditions", tuple(describe_conditions(estimate, ends))),),
        verdict=describe_plan_verdict(estimate),
        overview=(phases, warnings) if estimate.cautions else (phases,),
    )


def describe_plan_verdict(estimate: RunEstimate) -> Verdict:
    """Return the verdict on a plan. The verdict states whether the run could begin. It also contains the duration, the
    amount written, and the share of the drive's rated life that the run consumes.
    """
    judged = judge_plan(estimate)
    cost = f"more than {_percent(MUCH_OF_A_LIFE)}"
    words: dict[VerdictCode, str] = {
        PlanCode.COSTS_MUCH: f"it may write {cost} of the rated endurance",
        PlanCode.SLOW_LINK: SLOW_LINK,
    }
    sums = [
        format_count(len(estimate.tests), "test"),
        describe_time(estimate),
        f"writes {describe_amounts(sum_bytes(estimate.stages))}",
    ]
    if estimate.shares is not None:
        more = f" ({cost})" if estimate.costs_much else ""
        sums.append(f"{describe_shares(estimate.shares)} of the rated endurance{more}")
    reasons = [*estimate.refusals, ", ".join(sums)]
    if estimate.has_slow_link:
        reasons.append(SLOW_LINK)
    if estimate.cautions:
        reasons.append(f"{format_count(len(estimate.cautions), 'warning')} below")
    if estimate.asks and not estimate.refusals:
        reasons.append(NOTHING_WRITTEN)
    texts = ("; ".join(reason.names) or words[reason.code] for reason in judged.reasons)
    return word_verdict(judged, texts, reasons=reasons)


def warn_of_cost(estimate: RunEstimate) -> str | None:
    """Return the warning that the run may consume a large share of a drive's rated life. Return None if the share is
    small, or if no endurance rating of the drive is known.
    """
    if estimate.shares is None or not estimate.costs_much:
        return None
    return (
        f"the run may write {_percent(estimate.shares[1])} of the rated endurance ({estimate.rated_as}), "
        f"more than {_percent(MUCH_OF_A_LIFE)}"
    )


def describe_time(estimate: RunEstimate) -> str:
    """Return the duration in words: ``2 h 10 min to 3 h 05 min plus purging``."""
    return format_durations(estimate.shortest_s, estimate.longest_s) + describe_clock(estimate)


def describe_clock(estimate: RunEstimate) -> str:
    """Return the text that follows a duration. The text is `` of simulated time`` for a simulated run, and `` plus
    purging`` for a run that purges. Otherwise the text is empty.
    """
    if estimate.simulated:
        return " of simulated time"
    return " plus purging" if estimate.purge_count else ""


def _phase(repeated: Repeated) -> tuple[str, str, str]:
    """Return the row of a phase, or of a group of phases that is repeated: ``5 to 25 times: Warm-up (1 round of 1
    step), ...``.
    """
    (stage, *others), stages = repeated.once, repeated.stages
    if repeated.most > 1:
        least = "" if repeated.least == repeated.most else f"{repeated.least:,} to "
        each = (f"{one.section} ({one.what})" for one in repeated.once)
        text = f"{least}{repeated.most:,} times: {', '.join(each)}"
    else:
        text = stage.what if stage.section == stage.test else f"{stage.section}: {stage.what}"
    purges = not others and stage.what == PURGE
    takes = NOT_KNOWN_TEXT if purges else format_durations(*sum_times_s(stages))
    return (_INDENT + text, takes, describe_amounts(sum_bytes(stages)) if sum_bytes(stages)[1] else NOT_MEASURED)


def describe_amounts(bounds_bytes: tuple[float, float]) -> str:
    """Return the amount that is written, in words: ``1.9 TB to 29.0 TB``."""
    least, most = bounds_bytes
    return _between(format_capacity(least), format_capacity(most), nothing=least == 0)


def describe_shares(shares: tuple[float, float]) -> str:
    """Return the share of a drive's endurance rating, in words: ``0.22 % to 3.3 %``."""
    return _between(*map(_percent, shares), nothing=shares[0] == 0)


def _between(least: str, most: str, *, nothing: bool) -> str:
    """Return a range in words: ``1.9 TB to 29.0 TB``. If the lower bound is 0, return only the upper bound."""
    if nothing:
        return f"at most {most}"
    return most if least == most else f"{least} to {most}"


def _percent(share: float) -> str:
    return f"{100 * share:,.2g} %" if share < 1 else f"{100 * share:,.0f} %"


def describe_conditions(estimate: RunEstimate, ends: str) -> Iterator[tuple[str, str]]:
    """Yield the actions of the run, and the conditions under which the run would take place. Each line has a label."""
    if ends:
        yield "ends", ends
    profile, raid = estimate.profile, estimate.device.get("raid")
    if raid:
        yield "set", f"{estimate.target}: {raid}"
    else:
        yield "device", describe_device(estimate.device)
    demand, least = profile.demand, "at least " if raid else ""
    at = "TC and QD found first" if demand.searched else f"TC{demand.jobs}/QD{demand.io_depth}"
    at = f", {at}" if estimate.uses_demand else ""
    filled = profile.preconditioning
    # If preconditioning does not write the same range as the test, the text states the range of preconditioning,
    # because users do not expect different ranges.
    other = "" if filled.length is None else f"; preconditioning writes {filled.range_text}"
    active_range = f"{least}{format_capacity(estimate.active_range_bytes)}{other}"
    yield "profile", f"{profile.title}{at}, active range {active_range}"
    yield from (("choice", choice) for choice in estimate.choices)
    yield from (("altered", alteration) for alteration in estimate.alterations)
    yield "tests", ", ".join(test.title for test in estimate.tests)
    circumstances = Circumstances(purge="Purge" if estimate.purges_first else None)
    for test in estimate.tests:
        if test.own:  # The procedure of this test is described here, because no other part of the page describes it.
            yield "course", f"{test.title}:"
            yield from (("", line) for line in test.describe(profile, circumstances))
    fills = (f"{amount / estimate.capacity_bytes:,.1f}" for amount in sum_bytes(estimate.stages))
    nothing = estimate.least_bytes == 0
    yield ("writes", f"{describe_amounts(sum_bytes(estimate.stages))}, {_between(*fills, nothing=nothing)} drive fills")
    yield "rate", f"{format_capacity(estimate.rates.bytes_per_s)}/s, {estimate.rates.note}"
    if estimate.shares is not None:
        yield "life", f"{describe_shares(estimate.shares)} of its rating ({estimate.rated_as})"
    yield from estimate.conditions
    yield from (("note", text) for text in estimate.remarks)
    cache = profile.write_cache.setting
    if cache != "keep" and estimate.device.get("kind") != "file" and not raid:
        yield "cache", f"volatile write cache {cache} during the run"
