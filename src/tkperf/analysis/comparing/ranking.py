"""Rank the drives of many runs by one figure. Only values that were measured under equal conditions are ranked."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from tkperf.analysis.comparing.compared_rows import Entry
from tkperf.analysis.comparing.decision import DecisionCell, Unranked, rank
from tkperf.analysis.comparing.decision_figures import find_short
from tkperf.analysis.comparing.run_figures import KEPT_RATE_KEY, MEASURES, STREAM, FigureValue, RunFigures, join_place
from tkperf.model.quantity import Measure
from tkperf.model.same_device import find_measured_part


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """A condition of a measured value that differs from the same condition of the ranked values. If ``value`` or
    ``ranked`` is None, the condition is not known.
    """

    name: str
    value: str | None
    ranked: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRun:
    """A run together with its value of a figure.

    Attributes:
        number: place of the run among all given runs.
        value: the value, or None if the run has no value for the figure.
        place: the place in the ranking. Place 1 belongs to the best run, and to all runs whose difference from the best
            run is not certain or is less than 3 %. None means that the run is not ranked.
        differing: the conditions that differ from those of the ranked values.
    """

    number: int
    run: RunFigures
    value: FigureValue | None
    cell: DecisionCell
    place: int | None
    differing: tuple[Differing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The drives of many runs, ranked according to one figure.

    Attributes:
        conditions: the conditions of the ranked values, empty if no run has a value.
        ranked: the ranked runs, the best first.
        others: the runs that are not ranked. Runs with a value are listed first. The cell of each run contains the
            reason why the run is not ranked.
    """

    key: str
    measure: Measure
    conditions: Mapping[str, str | None]
    ranked: tuple[RankedRun, ...]
    others: tuple[RankedRun, ...]

    @property
    def runs(self) -> tuple[RankedRun, ...]:
        return (*self.ranked, *self.others)

    @property
    def is_simulated(self) -> bool:
        """Return whether the shown values were measured on simulated drives. If one value is simulated, all values are
        simulated, because simulated drives are never ranked together with real drives.
        """
        shown = self.ranked or self.others
        return bool(shown) and all(one.run.is_simulated for one in shown)


_Conditions = tuple[tuple[str, str | None], ...]


def rank_runs(runs: Sequence[RunFigures], key: str) -> Ranking:
    """Return the drives ranked according to a figure. ``key`` is one of the keys of ``MEASURES``.

    The ranking uses the conditions under which the greatest number of drives have a value that can be ranked. If there
    are several runs of one drive, only the newest run is ranked. Simulated drives are ranked only if no real drive has
    a value.
    """
    measure = MEASURES[key]
    excluded = _find_excluded(runs, key)
    conditions = _find_usual(runs, key, excluded)
    chosen = [_choose_value(run, key, conditions) for run in runs]
    differing = [
        () if value is None else tuple(_compare(run, value, conditions))
        for run, value in zip(runs, chosen, strict=True)
    ]
    reasons = _find_reasons(chosen, differing, excluded)
    if key == KEPT_RATE_KEY:
        short = find_short(
            value.fills if value is not None and number not in reasons else None for number, value in enumerate(chosen)
        )
        reasons |= {number: Unranked.NOT_COMPARABLE for number, is_short in enumerate(short) if is_short}
    reasons |= dict(_find_repeated(runs, reasons))
    entries = [Entry(value=None) if value is None else value.entry for value in chosen]
    cells, groups = rank(entries, reasons, measure)
    places: dict[int, int] = {}
    for group in groups:
        places |= dict.fromkeys(group, len(places) + 1)
    made = [
        RankedRun(
            number=number,
            run=run,
            value=chosen[number],
            cell=cells[number],
            place=places.get(number),
            differing=differing[number],
        )
        for number, run in enumerate(runs)
    ]
    others = [one for one in made if one.place is None]
    return Ranking(
        key=key,
        measure=measure,
        conditions=dict(conditions),
        ranked=tuple(made[number] for group in groups for number in group),
        others=tuple(sorted(others, key=lambda one: (one.value is None, one.run.name, one.run.started_utc or ""))),
    )


def _values_of(run: RunFigures, key: str) -> Iterator[FigureValue]:
    for value in run.values:
        if value.key == key and value.entry.value is not None:
            yield value


def _find_excluded(runs: Sequence[RunFigures], key: str) -> dict[int, Unranked]:
    """Return the runs that must not be ranked, with the reasons. A run must not be ranked if it is not valid. A
    simulated drive must not be ranked if a real drive has a value.
    """
    simulated = [number for number, run in enumerate(runs) if run.is_simulated]
    drives = any(not run.is_simulated and any(_values_of(run, key)) for run in runs)
    return {
        **{number: Unranked.NOT_COMPARABLE for number, run in enumerate(runs) if not run.is_valid},
        **dict.fromkeys(simulated if drives else (), Unranked.SIMULATED),
    }


def _find_usual(runs: Sequence[RunFigures], key: str, excluded: Mapping[int, Unranked]) -> _Conditions:
    """Return the conditions under which the greatest number of drives have a value. If several sets of conditions have
    equally many drives, return the set that belongs to the preferred load.
    """
    drives: dict[_Conditions, set[Hashable]] = {}
    orders: dict[_Conditions, tuple[float, int]] = {}
    for rankable in (True, False):
        for number, run in enumerate(runs):
            for value in _values_of(run, key):
                if (value.unranked is None and number not in excluded) is rankable:
                    conditions = freeze_conditions(run, value)
                    drives.setdefault(conditions, set()).add(_identify(run, number))
                    orders.setdefault(conditions, order_of(value))
        if drives:  # Values that cannot be ranked decide only if no other value exists.
            return max(drives, key=lambda one: (len(drives[one]), tuple(-part for part in orders[one])))
    return ()


def order_of(value: FigureValue) -> tuple[float, int]:
    """Return a key that sorts values by preference, the preferred value first. Values are sorted according to the load
    in the order of the figure's loads, and then according to the demand. The greatest demand is first.
    """
    load = float("inf") if value.load == STREAM else value.load
    return load, -value.workload.total_outstanding_ios


def freeze_conditions(run: RunFigures, value: FigureValue) -> _Conditions:
    """Return the conditions of a value as pairs of name and text, in the same order for all runs."""
    return tuple(sorted(run.conditions_of(value).items()))


def _choose_value(run: RunFigures, key: str, conditions: _Conditions) -> FigureValue | None:
    """Return the value that was measured under these conditions. If the run has no such value, return the preferred
    value.
    """
    values = sorted(_values_of(run, key), key=order_of)
    return next(
        (value for value in values if freeze_conditions(run, value) == conditions), values[0] if values else None
    )


def _compare(run: RunFigures, value: FigureValue, conditions: _Conditions) -> Iterator[Differing]:
    own, ranked = run.conditions_of(value), dict(conditions)
    for name in dict.fromkeys((*own, *ranked)):
        if own.get(name) != ranked.get(name):
            yield Differing(name=name, value=own.get(name), ranked=ranked.get(name))


def _find_reasons(
    chosen: Sequence[FigureValue | None], differing: Sequence[Sequence[Differing]], excluded: Mapping[int, Unranked]
) -> dict[int, Unranked]:
    reasons: dict[int, Unranked] = {}
    for number, value in enumerate(chosen):
        reason = Unranked.NOT_MEASURED if value is None else excluded.get(number) or value.unranked
        if reason is None and differing[number]:
            reason = Unranked.OTHER_CONDITIONS
        if reason is not None:
            reasons[number] = reason
    return reasons


def _find_repeated(runs: Sequence[RunFigures], reasons: Mapping[int, Unranked]) -> Iterator[tuple[int, Unranked]]:
    """Yield the runs that repeat a ranked run: older runs of the same drive, and additional files of the same run."""
    of_drives: dict[Hashable, list[int]] = {}
    for number, run in enumerate(runs):
        if number not in reasons:
            of_drives.setdefault(_identify(run, number), []).append(number)
    for numbers in of_drives.values():
        newest = max(numbers, key=lambda number: (runs[number].started_utc or "", -number))
        for number in numbers:
            if number != newest:
                same = runs[number].uuid is not None and runs[number].uuid == runs[newest].uuid
                yield number, Unranked.COPY if same else Unranked.OLDER


def _identify(run: RunFigures, number: int) -> Hashable:
    """Return a key that identifies the drive of a run. If the drive is not known, the key is unique, so the run counts
    as a run of a separate drive.
    """
    part = find_measured_part(dict(run.device))
    if part is not None:
        return (run.device.get("model"), *part)
    return number if run.uuid is None else run.uuid


NUMBERS = "numbers of the profile"
"""Name of the condition that replaces all numbers of the profile in a shortened record of a run."""
_MOST_VALUES = 4


def shorten_figures(run: RunFigures) -> RunFigures:
    """Return the values of a run in a shorter form, which is used to rank many runs. The result contains only the
    preferred values of each figure. A digest replaces the numbers of the profile.
    """
    values: list[FigureValue] = []
    for key in MEASURES:
        values += sorted(_values_of(run, key), key=order_of)[:_MOST_VALUES]
    places = dict.fromkeys(join_place(value.test, value.section) for value in values)
    return replace(
        run,
        values=tuple(values),
        conditions={place: _shorten_conditions(run.conditions[place]) for place in places if place in run.conditions},
    )


def _shorten_conditions(conditions: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the conditions with one digest instead of all numbers of the profile. A condition belongs to the profile
    if its name contains a dot.
    """
    numbers = sorted((name, text) for name, text in conditions.items() if "." in name)
    digest = blake2b(repr(numbers).encode(errors="replace"), digest_size=8).hexdigest()
    return {**{name: text for name, text in conditions.items() if "." not in name}, NUMBERS: digest}
