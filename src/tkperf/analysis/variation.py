"""Variation of a cell within the window of its section: whether the cell's own figure would satisfy
the rule of steady state.

The rule judges the tracking variables. The figures of other cells are means over the same rounds,
even if those figures were not steady.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose, isfinite

from tkperf.analysis.results import CellResult, SectionResult
from tkperf.model.quantity import Quantity
from tkperf.model.steady_state import Criteria, SteadyStateVerdict, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Variation of one figure over the rounds of a steady window.

    Attributes:
        percent: range of the values in percent of their mean; if only the slope exceeds its limit, the change of the
            least-squares line.
        is_judged: the figure is a tracking variable, so the verdict is about this figure.
        exceeds_rule: range or slope exceed the limits of the section's rule.
    """

    percent: float
    is_judged: bool
    exceeds_rule: bool


def find_variation(section: SectionResult, cell: CellResult, quantity: Quantity) -> Variation | None:
    """Return the variation of a cell's figure in the steady window; None: no steady window, or not measured in each
    round.
    """
    verdict = section.verdict
    if not section.steady or verdict is None or not verdict.average > 0:
        return None
    measured = dict(_values(section, cell, quantity))
    values = [value for number in section.window if (value := measured.get(number)) is not None]
    if len(values) < 2 or len(values) < len(section.window):
        return None
    # The limits of the section's own rule. The verdict has these limits in the unit of its tracking
    # variable.
    criteria = Criteria(
        window_rounds=len(values),
        max_data_excursion=verdict.allowed_data_excursion / verdict.average,
        max_slope_excursion=verdict.allowed_slope_excursion / verdict.average,
    )
    own = judge(section.window, values, tracking=quantity.label, unit=quantity.unit, criteria=criteria)
    if not own.average > 0:
        return None
    is_judged = any(_is_about(each, measured) for each in (verdict, *section.window_verdicts))
    slope_alone = own.data_excursion <= own.allowed_data_excursion and not own.reached
    amount = (own.slope_excursion or 0.0) if slope_alone else own.data_excursion
    return Variation(
        percent=100 * amount / own.average, is_judged=is_judged, exceeds_rule=not is_judged and not own.reached
    )


def _values(section: SectionResult, cell: CellResult, quantity: Quantity) -> Iterator[tuple[int, float | None]]:
    """Yield the numbers of the rounds or slices of a cell, with the figure in each."""
    for each, of_round in section.cells_of_rounds():
        if of_round.workload == cell.workload:
            yield each.number, of_round.value(quantity)
    for one in section.slices:
        if one.values.workload == cell.workload:
            yield one.number, one.values.value(quantity)


def _is_about(verdict: SteadyStateVerdict, measured: dict[int, float | None]) -> bool:
    """Return whether a verdict judged these values.

    The verdict may use another unit, such as ms.
    """
    values = [measured.get(number) for number in verdict.rounds]
    ratios = [judged / value for judged, value in zip(verdict.values, values, strict=True) if value]
    return len(ratios) == len(values) and all(
        isfinite(ratio) and isclose(ratio, ratios[0], rel_tol=1e-9) for ratio in ratios
    )
