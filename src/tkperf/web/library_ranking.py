"""Rank the runs that the library shows by a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tkperf.analysis.comparing.ranking import RankedRun, Ranking, rank_runs
from tkperf.analysis.comparing.run_figures import RunFigures
from tkperf.model.choices import FIGURES
from tkperf.model.decoding import make_msgpack_decoder
from tkperf.model.units import format_count
from tkperf.page.comparison.decision_texts import build_cell, find_scale
from tkperf.page.comparison.ranking_page import build_ranking_view, describe_unranked
from tkperf.page.matrix import FIGURE_NAMES, MatrixCell
from tkperf.page.naming import capitalise
from tkperf.web.library import ListedRun

_DECODER = make_msgpack_decoder(RunFigures)
CHOICES = tuple((figure, capitalise(FIGURE_NAMES[figure.replace("-", "_")][1])) for figure in FIGURES)
"""Each figure by which the library ranks, with its name."""


class ShownRank(NamedTuple):
    """A run in the ranking of a list. ``place`` is empty if the run is not ranked."""

    place: str
    cell: MatrixCell
    words: str


class ListRanking(NamedTuple):
    """The ranking of the runs of a list.

    Attributes:
        order: the ids of all runs, the ranked ones first.
        shown: the place of each run, by its id.
        title: the figure with its load and unit.
        ranked: the number of ranked runs in words, with SIMULATED if they are models.
        conditions: the conditions that the ranked values share.
    """

    order: tuple[str, ...]
    shown: Mapping[str, ShownRank]
    title: str
    ranked: str
    conditions: str


def rank_list(runs: Sequence[ListedRun], figure: str) -> ListRanking:
    """Return the ranking of these runs by a figure of ``FIGURES``. Runs without this figure are last."""
    known: list[ListedRun] = []
    figures: list[RunFigures] = []
    for run in runs:
        try:
            figures.append(_DECODER.decode(run.row.ranks))
        except msgspec.MsgspecError:
            continue
        known.append(run)
    ranking = rank_runs(figures, figure.replace("-", "_"))
    view = build_ranking_view(ranking, {run.name: run.name for run in figures})
    whole = find_scale([one.cell for one in ranking.runs])
    shown = {known[one.number].run_id: _show(ranking, one, whole) for one in ranking.runs}
    simulated = "SIMULATED: " if ranking.is_simulated else ""
    titles = [f"{column.title}, {column.detail}" for column in view.columns]
    return ListRanking(
        order=(*shown, *(run.run_id for run in runs if run.run_id not in shown)),
        shown=shown,
        title=titles[0] if titles else capitalise(FIGURE_NAMES[ranking.key][1]),
        ranked=f"{simulated}{len(ranking.ranked):,} of {format_count(len(runs), 'run')} ranked",
        conditions="; ".join(text for _, text in view.lines),
    )


def _show(ranking: Ranking, one: RankedRun, whole: float) -> ShownRank:
    cell = build_cell(one.cell, ranking.measure, whole)
    if one.place is None:
        return ShownRank("", cell, describe_unranked(one))
    return ShownRank(f"{one.place}.", cell, ", ".join(filter(None, (cell.words, cell.interval))))
