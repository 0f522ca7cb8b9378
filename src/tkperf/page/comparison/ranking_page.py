"""Build the page of a ranking. The page shows the drives of many runs in the order of one figure.

The page also lists the drives that are not ranked, each with the reason. Figures, words and signs are the same as at
the beginning of a comparison.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tkperf.analysis.comparing.decision import Standing, Unranked
from tkperf.analysis.comparing.ranking import NUMBERS, Differing, RankedRun, Ranking
from tkperf.analysis.verdict import Judgement, VerdictState
from tkperf.model.run_info import SIMULATED_NOTICE
from tkperf.model.units import format_count
from tkperf.page.chart import NEUTRAL
from tkperf.page.comparison.decision_texts import build_cell, build_legend, describe_drive, find_scale
from tkperf.page.facts import format_moment, or_not_known, shorten
from tkperf.page.matrix import FIGURE_NAMES, DecisionView, MatrixColumn, MatrixRow, build_column
from tkperf.page.naming import list_words, shorten_names
from tkperf.page.page import Column, ReportView, TableView, build_table
from tkperf.page.verdict_texts import Verdict, word_verdict

_LONGEST_NAME, _LONGEST_MODEL, _LONGEST_CONDITION = 24, 30, 60
_MOST_IN_TITLE, _MOST_DIFFERING = 3, 2
_WORDS = (
    "Only values that were measured under equal conditions are ranked: the same load in the same test, with the same "
    "numbers of the profile, the same share of the drive, preparation and write cache. The conditions of most drives "
    "decide. If a drive has several runs, the newest run counts. Drives share a place if their difference is within "
    "noise or less than 3 %. The host is not a condition: values that the host limited or disturbed are not ranked."
)


def build_ranking_page(ranking: Ranking) -> ReportView:
    """Return the page of a ranking."""
    names = shorten_names(dict.fromkeys(one.run.name for one in ranking.runs), _LONGEST_NAME)
    view = build_ranking_view(ranking, names)
    return ReportView(
        title=find_ranking_title(ranking, names),
        device=format_count(len(ranking.runs), "run"),
        footer="tkperf rank",
        banners=(SIMULATED_NOTICE,) if ranking.is_simulated else (),
        stamp=(SIMULATED_NOTICE,) if ranking.is_simulated else (),
        verdict=judge_ranking(ranking),
        decision=view,
        overview=(_list_runs(ranking), _list_conditions(ranking)),
        words=(_WORDS,),
    )


def judge_ranking(ranking: Ranking) -> Verdict:
    """Return the number of ranked runs. For each reason, also return the number of runs that are not ranked for this
    reason.
    """
    simulated = ranking.is_simulated
    state = VerdictState.COMPARABLE if len(ranking.ranked) > 1 else VerdictState.NOT_COMPARABLE
    judged: Judgement[object] = Judgement(state=state, reasons=(), simulated=simulated)  # type: ignore[type-var]
    count = f"{len(ranking.ranked):,} of {format_count(len(ranking.runs), 'run')} ranked"
    reasons = Counter(str(one.cell.unranked) for one in ranking.others)
    return word_verdict(
        judged,
        (),
        title=f"{'SIMULATED. ' if simulated else ''}{count}",
        reasons=(f"{number:,} {reason}" for reason, number in reasons.most_common()),
    )


def find_ranking_title(ranking: Ranking, names: Mapping[str, str]) -> str:
    """Return a sentence that names the best drive. If several drives are equally good, the sentence names all of
    them.
    """
    at = FIGURE_NAMES[ranking.key][1]
    if len(ranking.ranked) < 2:
        return f"No drives can be ranked by {at}" if not ranking.ranked else f"Only one drive can be ranked by {at}"
    of = format_count(len(ranking.ranked), "drive")
    first = [names[one.run.name] for one in ranking.ranked if one.place == 1]
    if len(first) == len(ranking.ranked):
        return f"These {of} cannot be told apart at {at}"
    if len(first) == 1:
        return f"{first[0]} is the best of {of} at {at}"
    who = list_words(first) if len(first) <= _MOST_IN_TITLE else f"{len(first)} drives"
    undecided = any(one.cell.standing is Standing.UNDECIDED for one in ranking.ranked)
    return f"{who} {'cannot be told apart as' if undecided else 'are equally'} the best of {of} at {at}"


def build_ranking_view(ranking: Ranking, names: Mapping[str, str]) -> DecisionView:
    """Return the ranking as a matrix with one column. The ranked drives are at the top."""
    whole = find_scale([one.cell for one in ranking.runs])
    rows = tuple(_build_row(ranking, one, whole, names) for one in ranking.runs)
    shown = next((one.value for one in ranking.runs if one.value is not None), None)
    name = FIGURE_NAMES[ranking.key][0]
    column = MatrixColumn(title=name, detail=ranking.measure.unit)
    if shown is not None:
        column = build_column(ranking.key, shown.workload, ranking.measure, same_demand=bool(ranking.ranked))
    return DecisionView(
        lines=tuple(_describe_conditions(ranking)),
        columns=(column,) if rows else (),
        rows=rows,
        legend=build_legend(rows, (ranking.measure,)),
    )


def _build_row(ranking: Ranking, one: RankedRun, whole: float, names: Mapping[str, str]) -> MatrixRow:
    cell = build_cell(one.cell, ranking.measure, whole)
    if one.place is None:
        cell = replace(cell, words=describe_unranked(one))
    place = "" if one.place is None else f"{one.place}. "
    return MatrixRow(
        name=f"{place}{names[one.run.name]}",
        colour=NEUTRAL,
        whole_name=f"{place}{one.run.name}",
        detail=describe_peer(one),
        cells=(cell,),
    )


def describe_peer(one: RankedRun) -> str:
    """Return the facts that identify a drive: model, capacity, interface and form factor, if they are known."""
    device = one.run.device
    model = device.get("model")
    known = (
        "" if model is None else shorten(str(model), _LONGEST_MODEL),
        describe_drive(device),
        shorten(str(device.get("form_factor") or ""), _LONGEST_MODEL),
    )
    return ", ".join(filter(None, known))


def describe_unranked(one: RankedRun) -> str:
    """Return the reason why a run is not ranked: ``not steady``, ``other conditions: iops.step_s 5, not 60``,
    or both.
    """
    differing = [_describe_differing(each) for each in one.differing]
    more = len(differing) - _MOST_DIFFERING
    listed = "; ".join(differing[:_MOST_DIFFERING] + ([f"{more} more"] if more > 0 else []))
    reasons = dict.fromkeys((str(one.cell.unranked), *([str(Unranked.OTHER_CONDITIONS)] if listed else [])))
    return ": ".join(filter(None, (", ".join(reasons), listed)))


def _describe_differing(each: Differing) -> str:
    if each.name == NUMBERS:
        return NUMBERS
    own, ranked = _drop_shared_end(or_not_known(each.value).split(", "), or_not_known(each.ranked).split(", "))
    return f"{each.name} {shorten(own, _LONGEST_CONDITION)}, not {shorten(ranked, _LONGEST_CONDITION)}"


def _drop_shared_end(own: list[str], ranked: list[str]) -> tuple[str, str]:
    """Return two values without the equal parts at their beginnings and ends. These parts would only lengthen the
    reason.
    """
    while len(own) == len(ranked) > 1 and own[-1] == ranked[-1]:
        own, ranked = own[:-1], ranked[:-1]
    return ", ".join(own), ", ".join(ranked)


def _describe_conditions(ranking: Ranking) -> Iterator[tuple[str, str]]:
    if not ranking.conditions:
        yield "Not measured", "no run has a value of this figure"
        return
    listed = [
        f"{name} {shorten(value, _LONGEST_CONDITION)}"
        for name in _MAIN
        if (value := ranking.conditions.get(name)) is not None
    ]
    yield "Equal conditions", ", ".join(listed)


# The greatest number of conditions that a line names. A table contains all conditions.
_MAIN = ("test", "load", "part", "active range", "purge", "preconditioning", "write cache", "kind of target")


def _list_conditions(ranking: Ranking) -> TableView:
    columns: tuple[Column[tuple[str, str | None]], ...] = (
        Column("Condition", lambda condition: condition[0]),
        Column("Value", lambda condition: or_not_known(condition[1])),
    )
    return build_table("Conditions of the ranking", tuple(ranking.conditions.items()), columns)


def _list_runs(ranking: Ranking) -> TableView:
    """Return a table of the runs with the facts that help a reader to choose among them."""
    columns: tuple[Column[RankedRun], ...] = (
        Column("Run", lambda one: one.run.name),
        Column("Place", lambda one: "" if one.place is None else str(one.place)),
        Column("Model", lambda one: or_not_known(_fact(one, "model"))),
        Column("Serial number", lambda one: or_not_known(_fact(one, "serial"))),
        Column("Firmware", lambda one: or_not_known(_fact(one, "firmware"))),
        Column("Profile", lambda one: one.run.profile_name),
        Column("Host", lambda one: or_not_known(one.run.host)),
        Column("Began", lambda one: format_moment(one.run.started_utc)),
    )
    return build_table("Runs", ranking.runs, columns)


def _fact(one: RankedRun, name: str) -> str | None:
    value = one.run.device.get(name)
    return None if value is None else str(value)
