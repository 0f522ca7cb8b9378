"""Build the texts about the decision of a comparison: its title, a line for each use, and the matrix."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tkperf.analysis.characteristics import LATENCY_FACTOR
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.decision import (
    Decision,
    DecisionCell,
    DecisionFigure,
    Standing,
    Unranked,
    Use,
    has_interval,
)
from tkperf.analysis.uncertainty.estimate import Uncertainty
from tkperf.analysis.verdict import QUICK
from tkperf.analysis.workload_axes import name_stream
from tkperf.model.quantity import Measure
from tkperf.model.units import NOT_MEASURED, format_capacity, format_number
from tkperf.page.comparison.conclusions import find_conclusions
from tkperf.page.comparison.ratio_tables import describe_exactly, number_rows
from tkperf.page.comparison.ratio_texts import describe_group, describe_loads
from tkperf.page.comparison.run_curves import call_runs, colour_runs
from tkperf.page.matrix import (
    CUT,
    FIGURE_NAMES,
    SIGN_WORDS,
    DecisionView,
    MatrixCell,
    MatrixColumn,
    MatrixRow,
    Sign,
    build_column,
    describe_direction,
    mark_falling,
)
from tkperf.page.naming import capitalise, list_words, shorten_names
from tkperf.page.words.uncertainty import INTERVAL, describe_ends, describe_share, is_below_digits, is_lopsided
from tkperf.procedures.interference import READER

_SIGNS = {
    Standing.BEST: Sign.BEST,
    Standing.EQUAL: Sign.EQUAL,
    Standing.UNDECIDED: Sign.UNDECIDED,
    Standing.WORST: Sign.WORST,
    Standing.BETWEEN: Sign.NONE,
}
# Words that distinguish several lines about the same use.
_PARTS = {"large_read": ", reading", "large_write": ", writing", "single_write": ", p99.9"}
# In a short run, all drives reach the speed of their interface. This speed is far above the rate that the drives can
# sustain.
_SHORT_WRITES, _TOO_SHORT = "Random writes", "too short to be sustained"
# From this ratio on, a multiple is easier to read than a percentage.
_LEAST_TIMES = 1.2
# The greatest number of runs for which a line has space for values that are not ranked. A line always names the runs in
# the first places. Further runs are named as long as the line does not exceed the greatest number of characters.
_MOST_NAMED = 4
_FIRST_PLACES, _LONGEST_LINE = 3, 145
_MOST_IN_GROUP, _MOST_IN_LIST = 3, 2
# If a value exceeds the second greatest value by this factor, its bar would reduce all other bars to dots. The bar of
# this value is therefore cut at a multiple of the second greatest value. If there are only two runs, no bar is cut.
_FLATTENS, _CUT_AT, _FEWEST_FOR_CUT = 10.0, 4.0, 3
# The greatest width of a bar with its interval, as a multiple of the longest bar.
_MOST_ROOM = 1.5
# The greatest number of characters that the names of the best runs can have on a line.
_LONGEST_GROUP = 60
_LONGEST_IN_TITLE = 24
_MOST_WINNERS = 3
_MOST_IN_TITLE = 2
# Reasons in a form that can follow the words "figures are".
_REASONS = {Unranked.NO_INTERVAL: "without an interval", Unranked.OWN_LOAD: "relative to the reads of each drive alone"}
_AT_LEAST = "≥ "
_NOT_DECIDED = "not decided, because no value has an interval"
_NOTHING, _SAME = "0.0 %", "the same"


# ---- the title


def find_title(comparison: Comparison, decision: Decision) -> str:
    """Return a title that states for how many figures each run is the best.

    For a cohort, the title names the outliers instead. For a history, the title names the drive.
    """
    if comparison.cohort is not None:
        return _describe_outliers(comparison)
    if comparison.history is not None:
        serial, count = comparison.history.serial, len(comparison.names)
        return f"Drive {serial} over {count} runs" if serial else f"{count} runs in order of date"
    names = shorten_names(comparison.names, _LONGEST_IN_TITLE)
    called = [names[name] for name in comparison.names]
    count, ranked = len(decision.figures), len(decision.ranked)
    if not ranked:
        return f"{_list_runs(called)} cannot be ranked: {_explain_unranked(decision)}"
    text = _describe_winners(called, decision)
    left = count - ranked
    text = f"{text}, {left} {'is' if left == 1 else 'are'} not ranked" if left else text
    return text + _describe_better_unranked(called, decision)


def _describe_winners(called: Sequence[str], decision: Decision) -> str:
    """Return a text that names each run that is the single best run for at least one figure. All other ranked figures
    are counted, so that the sum of the numbers is the number of all figures.

    If no run is the single best run for any figure, the text names the runs that share the best place most often.
    """
    count, runs = len(decision.figures), range(len(called))
    alone = [decision.count(Standing.BEST, run) for run in runs]
    near = [wins + decision.count(Standing.EQUAL, run) for run, wins in enumerate(alone)]
    pair = len(called) == 2
    word = "better" if pair else "the best"
    if not any(alone) and all(map(_has_no_interval, decision.ranked)):
        return f"{_list_runs(called)} cannot be ranked: figures are {_REASONS[Unranked.NO_INTERVAL]}"
    if not any(alone) and (pair or not any(near) or min(near) == max(near)):
        who = list_words(called) if pair else f"These {len(called)} runs"
        ranked = len(decision.ranked)
        return f"{who} cannot be told apart at {'any figure' if ranked == count else _of(ranked, count)}"
    if not any(alone):
        winners = [called[run] for run in runs if near[run] == max(near)]
        who = list_words(winners) if len(winners) <= _MOST_WINNERS else f"{len(winners)} runs"
        verb = "is" if len(winners) == 1 else "are"
        return f"{who} {verb} the best or equal to the best at {_of(max(near), count)}"
    first = [run for run in runs if alone[run] == max(alone)]
    others = sorted((run for run in runs if 0 < alone[run] < max(alone)), key=lambda run: -alone[run])
    who = list_words([called[run] for run in first]) if len(first) <= _MOST_WINNERS else f"{len(first)} runs"
    text = f"{who} {'is' if len(first) == 1 else 'are'} {word} at {_of(max(alone), count)}"
    text += " each" if len(first) > 1 else ""
    if len(others) < _MOST_WINNERS:
        text = ", ".join((text, *(f"{called[run]} at {alone[run]}" for run in others)))
    else:
        text += f", {len(others)} others at {sum(alone[run] for run in others)}"
    shared = ", ".join(_describe_shared(called, decision))
    return f"{text}; {shared}" if shared else text


def _describe_shared(called: Sequence[str], decision: Decision) -> Iterator[str]:
    """Yield the number of figures for which several runs are equally good, and the number of figures for which the best
    run is undecided.
    """
    equal: list[tuple[int, ...]] = []
    undecided = 0
    for figure in decision.ranked:
        group = figure.ranking[0]
        standings = {figure.cells[run].standing for run in group}
        if Standing.UNDECIDED in standings:
            undecided += 1
        elif Standing.EQUAL in standings:
            equal.append(group)
    if equal:
        most = max(decision.count(Standing.BEST, run) for run in range(len(called)))
        names = [called[run] for run in sorted(equal[0])]
        # If the number of figures for which the same equal runs share the best place is greater than the number for
        # which any single run is the best, the title names the equal runs.
        if len(called) > 2 and len({*map(frozenset, equal)}) == 1 and len(names) <= _MOST_WINNERS and len(equal) > most:
            yield f"{list_words(names)} are equal at {len(equal)}"
        else:
            yield f"{len(equal)} {'is' if len(equal) == 1 else 'are'} equal"
    if undecided:
        yield f"{undecided} {'is' if undecided == 1 else 'are'} undecided"


def _describe_better_unranked(called: Sequence[str], decision: Decision) -> str:
    """Return a text that names the runs that are not ranked although they have better values than the ranked runs. A
    title must not hide these runs.
    """
    better = [run for figure in decision.ranked for run in figure.better_unranked]
    counts = {run: better.count(run) for run in sorted(set(better), key=lambda run: -better.count(run))}
    if not counts:
        return ""
    if len(counts) > _MOST_IN_TITLE:
        return f"; better but not ranked: {len(counts)} runs"
    return f"; better but not ranked: {list_words([f'{called[run]} at {times}' for run, times in counts.items()])}"


def _has_no_interval(figure: DecisionFigure) -> bool:
    """Return whether no value has an interval. Without intervals, it is not known whether the values differ by more
    than noise.
    """
    return not any(has_interval(figure.cells[run].entry) for run in figure.measured)


def _of(number: int, count: int) -> str:
    if number == count:
        return "the only figure" if count == 1 else f"all {count} figures"
    return f"{number} of {count} figures"


def _explain_unranked(decision: Decision) -> str:
    found = [cell.unranked for figure in decision.figures for cell in figure.cells if cell.entry.value is not None]
    reasons = [_REASONS.get(reason, str(reason)) for reason in dict.fromkeys(found) if reason is not None]
    return f"figures are {list_words(reasons)}" if reasons else "they share no figure"


def _list_runs(called: Sequence[str]) -> str:
    return list_words(called) if len(called) <= _MOST_WINNERS else f"These {len(called)} runs"


def _describe_outliers(comparison: Comparison) -> str:
    cohort, group = comparison.cohort, describe_group(comparison)
    assert cohort is not None
    if not any(figure.distribution.scores is not None for figure in cohort.figures):
        return group
    found = list(dict.fromkeys(one.name for figure in cohort.figures for one in figure.outliers))
    names = shorten_names(found, _LONGEST_IN_TITLE)
    if not found:
        return f"{group}: no outlier"
    if len(found) > _MOST_WINNERS:
        return f"{group}: {len(found)} outliers"
    return f"{group}: {list_words(list(names.values()))} {'is an outlier' if len(found) == 1 else 'are outliers'}"


# ---- the lines


def describe_uses(comparison: Comparison, decision: Decision) -> Iterator[tuple[str, str]]:
    """Yield a name and a sentence for each use. For two runs, first yield the figures for which each run is better."""
    names = call_runs(comparison.names)
    called = [names[name] for name in comparison.names]
    if len(called) == 2:
        yield from _describe_pair(called, decision)
    is_short = any(result.info.profile_name == QUICK for result in comparison.results)
    for use in Use:
        for figure in decision.of_use(use):
            text = _rank_in_words(figure, called)
            if use is Use.WRITES and is_short:
                yield _SHORT_WRITES, f"{_TOO_SHORT}: {text}"
            else:
                yield f"{capitalise(use)}{_PARTS.get(figure.key, '')}", text


def _describe_pair(called: Sequence[str], decision: Decision) -> Iterator[tuple[str, str]]:
    for run, name in enumerate(called):
        better = [
            f"{name_figure_of(figure)} ({_describe_lead(figure.cells[1 - run])})"
            for figure in decision.figures
            if figure.cells[run].standing is Standing.BEST
        ]
        if better:
            yield name, f"better at {list_words(better)}"
    for standing, word in ((Standing.EQUAL, "Equal"), (Standing.UNDECIDED, "Not decided")):
        alike = [
            f"{name_figure_of(figure)} ({_percent_apart(figure)})"
            for figure in decision.figures
            if figure.find(standing)
        ]
        if alike:
            yield word, list_words(alike)


def name_figure_of(figure: DecisionFigure) -> str:
    """Return the name of a figure in the form that a sentence needs."""
    if figure.key in FIGURE_NAMES:
        return FIGURE_NAMES[figure.key][1]
    work = figure.workload
    return f"{figure.measure.label} of {name_stream(work)}" if work.together else figure.measure.label


def _percent_apart(figure: DecisionFigure) -> str:
    ratios = [cell.entry.ratio for cell in figure.cells if cell.entry.ratio]
    times = format_times(max(ratios, key=lambda ratio: abs(1 - ratio), default=1.0))
    return _SAME if times == _NOTHING else f"{times} apart"


def _describe_lead(cell: DecisionCell) -> str:
    """Return the distance between the best value and a worse value in words: ``4.4 ×``, ``12 % more``, ``11 %
    less``.
    """
    ratio = 1 / (cell.entry.ratio or 1.0)
    times = format_times(ratio)
    return f"{times} {'more' if ratio > 1 else 'less'}" if times.endswith("%") else times


def format_times(ratio: float) -> str:
    """Return the distance of a ratio from 1: ``4.4 ×`` for 4.4 and for 1/4.4.

    A small distance is easier to read in percent: ``12 %`` for 1.12, and ``11 %`` for 1/1.12.
    """
    factor, percent = max(ratio, 1 / ratio), 100 * abs(ratio - 1)
    if factor < _LEAST_TIMES:
        return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"
    return f"{factor:,.1f} ×" if factor < 10 else f"{factor:,.0f} ×"


def _rank_in_words(figure: DecisionFigure, called: Sequence[str]) -> str:
    """Return a ranking in words: ``A (210,000 IOPS), then B (4.4 × less); not ranked: D (7,310 IOPS, not steady)``."""
    if len(figure.measured) == 1:
        (run,) = figure.measured
        return f"only {called[run]} was measured ({', '.join(_facts_of(figure, run))})"
    if not figure.is_ranked:
        values = [f"{called[run]} ({', '.join(_facts_of(figure, run))})" for run in figure.measured]
        return f"cannot be ranked: {_list_few(values, few=True)}"
    groups = figure.ranking
    if _has_no_interval(figure):
        # Each run is shown with its own value, because a range would hide how much the runs of a group differ.
        groups = tuple((run,) for group in groups for run in group)
    # With more runs, the values would need a second line. The charts would then no longer fit on the first screen.
    few, has_values = len(called) <= _MOST_NAMED + 1, len(called) <= _MOST_NAMED
    better = figure.better_unranked
    unranked = [
        called[run] + _explain_missing_rank(figure, run, with_value=has_values, with_reason=has_values or not better)
        for run in figure.measured
        if figure.cells[run].unranked is not None and run not in better
    ]
    hidden = [f"{called[run]} ({', '.join(_facts_of(figure, run))})" for run in better[:1]]
    hidden += [f"{len(better) - 1} more"] if len(better) > 1 else []
    missing = [called[run] for run in range(len(called)) if run not in figure.measured]
    parts = [_NOT_DECIDED] if _has_no_interval(figure) else []
    parts += [f"better but not ranked: {list_words(hidden)}"] if hidden else []
    parts += [f"not ranked: {_list_few(unranked, few=few)}"] if unranked else []
    parts += [f"not measured: {_list_few(missing, few=few)}"] if missing else []
    rest = "; ".join(("", *parts))
    # The first three places are always shown. Further places are shown as long as they fit on the line.
    places = [sum(map(len, groups[:number])) for number in range(len(groups) + 1)]
    least = next((number for number, place in enumerate(places) if place >= _FIRST_PLACES), len(groups))
    texts = [_list_places(figure, groups, number, called) for number in range(max(2, least), len(groups) + 1)]
    texts = texts or [_list_places(figure, groups, len(groups), called)]
    return next((text for text in reversed(texts) if len(text + rest) <= _LONGEST_LINE), texts[0]) + rest


def _list_places(figure: DecisionFigure, groups: Sequence[Sequence[int]], number: int, called: Sequence[str]) -> str:
    """Return the first groups of a ranking in words, in the order of their values. If groups are omitted, the text also
    contains the number of their runs, and the last group.
    """
    # If only one group would be omitted, it is named, because its name needs no more space than a text with the number
    # of omitted runs.
    number = len(groups) if number >= len(groups) - 1 else number
    text = _describe_first(figure, groups[0], called)
    place, named = len(groups[0]), []
    for group in groups[1:number]:
        named.append(_describe_next(figure, group, called, is_first=place < _FIRST_PLACES))
        place += len(group)
    text += f", then {', '.join(named)}" if named else ""
    if left := sum(map(len, groups[number:-1])):
        text += f", {left} more, last {_describe_next(figure, groups[-1], called)}"
    return text


def _explain_missing_rank(figure: DecisionFigure, run: int, *, with_value: bool, with_reason: bool) -> str:
    """Return, in parentheses, the value of a run without a rank and the reason why the run has no rank. The text is
    shortened to the space that the caller has. The matrix always shows both the value and the reason.
    """
    if with_value:
        return f" ({', '.join(_facts_of(figure, run))})"
    return f" ({figure.cells[run].unranked})" if with_reason else ""


def _facts_of(figure: DecisionFigure, run: int) -> Iterator[str]:
    yield _value_of(figure, run)
    if (reason := figure.cells[run].unranked) is not None:
        yield str(reason)


def _list_few(texts: Sequence[str], *, few: bool) -> str:
    """Return the texts as a list if they fit on one line. Otherwise return the number of texts.

    Args:
        few: whether the comparison has few runs, so that a line has more space.
    """
    most = _MOST_IN_LIST if few else 1
    return ", ".join(texts) if len(texts) <= most else f"{len(texts)} runs"


def _describe_first(figure: DecisionFigure, group: Sequence[int], called: Sequence[str]) -> str:
    unit = figure.measure.unit
    if len(group) == 1:
        return f"{called[group[0]]} ({_value_of(figure, group[0])})"
    names = _name_group(group, called, is_first=True)
    ends = (figure.cells[group[0]].entry.value, figure.cells[group[-1]].entry.value)
    low, high = (format_number(end, figure.measure.digits) for end in ends)
    value = low if low == high else f"{low} to {high}"
    equal = "not decided" if any(figure.cells[run].standing is Standing.UNDECIDED for run in group) else "equal"
    return f"{names} ({value} {unit}, {equal})"


def _name_group(group: Sequence[int], called: Sequence[str], *, is_first: bool = False) -> str:
    """Return the names of the runs of a group, or the number of runs if there are too many names for a line. For the
    first group, the names are returned whenever they fit.
    """
    most = _MOST_IN_GROUP if len(called) <= _MOST_NAMED + 1 else _MOST_IN_LIST
    names = list_words([called[run] for run in group])
    return names if len(group) <= most or (is_first and len(names) <= _LONGEST_GROUP) else f"{len(group)} runs"


def _describe_next(
    figure: DecisionFigure, group: Sequence[int], called: Sequence[str], *, is_first: bool = False
) -> str:
    names = _name_group(group, called, is_first=is_first)
    words = _join_distances(*(describe_distance(figure.cells[run]) for run in (group[0], group[-1])))
    if len(called) == 2:
        words = f"{_value_of(figure, group[0])}, {words}"
    return f"{names} ({words})"


def _join_distances(first: str, last: str) -> str:
    """Return the distances of all runs of a group: ``1.2 to 1.3 × less``, ``5.7 to 7.5 % less``."""
    if first == last or not first:
        return last
    if first == _SAME:
        return f"up to {last}"
    least, unit, word = first.split(" ")
    return (
        f"{least}{'' if last.split(' ')[1] == unit else f' {unit}'} to {last}"
        if last.endswith(word)
        else f"{first} to {last}"
    )


def _value_of(figure: DecisionFigure, run: int) -> str:
    entry = figure.cells[run].entry
    return f"{_AT_LEAST if entry.is_least else ''}{figure.measure.text(entry.value)}"


def describe_distance(cell: DecisionCell) -> str:
    """Return the distance between a value and the best value: ``4.4 × less``, ``1.7 % more``. The text is empty for the
    best value.
    """
    ratio = cell.entry.ratio
    if not ratio:
        return ""
    times = format_times(ratio)
    if times == _NOTHING:
        return _SAME
    return f"{times} {'more' if ratio > 1 else 'less'}"


# ---- the matrix


def build_decision_view(comparison: Comparison, decision: Decision) -> DecisionView:
    """Return the content at the beginning of a comparison page. This content consists of one line for each use (such as
    random reads), and the matrix of drives and figures.

    For a cohort or a history, sentences about the findings replace the lines.
    """
    alike = comparison.cohort is not None or comparison.history is not None
    found = [("", sentence) for sentence in find_conclusions(comparison)] if alike else []
    names, colours = call_runs(comparison.names), colour_runs(comparison.names)
    numbers, tests = number_rows(comparison), {row.test for row in comparison.rows}
    columns = [_build_cells(figure, numbers, tests) for figure in decision.figures]
    rows = tuple(
        MatrixRow(
            name=names[name],
            colour=colours[name],
            whole_name=name,
            detail=describe_drive(result.info.device),
            cells=tuple(cells[run] for cells in columns),
        )
        for run, (name, result) in enumerate(zip(comparison.names, comparison.results, strict=True))
    )
    return DecisionView(
        lines=tuple(found or describe_uses(comparison, decision)),
        columns=tuple(_build_column(comparison, figure) for figure in decision.figures),
        rows=rows,
        legend=build_legend(rows, (figure.measure for figure in decision.figures)),
    )


def build_legend(rows: Sequence[MatrixRow], measures: Iterable[Measure]) -> tuple[tuple[str, str], ...]:
    """Return the meaning of each sign that occurs. Each pair consists of the sign and the words."""
    cells = [cell for row in rows for cell in row.cells]
    signs = {cell.sign for cell in cells}
    return (
        *((str(sign), words) for sign, words in SIGN_WORDS.items() if sign in signs),
        *((("line", INTERVAL),) if any(cell.low is not None for cell in cells) else ()),
        *(((CUT, "cut bar"),) if any(cell.is_cut for cell in cells) else ()),
        *((("↓", "lower is better"),) if any(map(mark_falling, measures)) else ()),
    )


def describe_drive(device: Mapping[str, object]) -> str:
    """Return the capacity and the interface of a drive, if they are known: ``960 GB, SATA``."""
    size = device.get("capacity_bytes")
    words = [name_size(size) if isinstance(size, int | float) else None, device.get("interface")]
    return ", ".join(str(word) for word in words if word)


def name_size(capacity_bytes: float) -> str:
    """Return the nominal size of a drive, such as ``960 GB``. A longer text does not fit into a row."""
    number, unit = format_capacity(capacity_bytes).split(" ")
    return f"{float(number):.3g} {unit}" if float(number) < 1000 else f"{number} {unit}"


def _build_column(comparison: Comparison, figure: DecisionFigure) -> MatrixColumn:
    if figure.key in FIGURE_NAMES:
        return build_column(figure.key, figure.workload, figure.measure, same_demand=figure.same_demand)
    loads = describe_loads(comparison)
    place = (figure.test, figure.section, figure.workload, figure.part, figure.measure.key)
    work = figure.workload
    if figure.measure.key == LATENCY_FACTOR.key:
        other = next(stream.name for stream in work.together if stream.name != READER)
        return MatrixColumn(
            title=f"with {other}",
            detail=f"read p99 against alone ({LATENCY_FACTOR.unit})",
            unit=LATENCY_FACTOR.unit,
            direction="",
        )
    if work.together:
        load = loads.get(place, "").removeprefix(f"{name_stream(work)}: ")
        return MatrixColumn(
            title=name_stream(work),
            detail=f"{load}, {figure.measure.title}{mark_falling(figure.measure)}".removeprefix(", "),
            unit=f"{figure.measure.title}{mark_falling(figure.measure)}",
            direction=describe_direction(figure.measure),
        )
    return MatrixColumn(
        title=loads.get(place, figure.section),
        detail=f"{figure.measure.title}{mark_falling(figure.measure)}",
        unit=f"{figure.measure.unit}{mark_falling(figure.measure)}",
        direction=describe_direction(figure.measure),
    )


def _build_cells(
    figure: DecisionFigure, numbers: Mapping[tuple[object, ...], str], tests: Collection[str]
) -> tuple[MatrixCell, ...]:
    """Return the cells of a column. A cell links to the row with the values of all runs. If no such row exists, the
    cell links to the test.

    Args:
        numbers: the IDs of the rows on the page.
        tests: the tests that the page contains.
    """
    place = (figure.test, figure.section, figure.workload, figure.part, figure.measure.key)
    target = numbers.get(place, figure.test if figure.test in tests else "")
    whole = find_scale(figure.cells)
    return tuple(build_cell(cell, figure.measure, whole, target=target) for cell in figure.cells)


def find_scale(cells: Sequence[DecisionCell]) -> float:
    """Return the value at which the bars of a column end. This value is the greatest value of the column, or the
    greatest end of an interval.

    If one value is very great, the bars of all other values would use less than a tenth of the width. In this case, the
    scale ends at 4 times the second greatest value, and the longest bar is cut.
    """
    values = sorted((cell.entry.value for cell in cells if cell.entry.value is not None), reverse=True)
    whole = max((0.0, *values))
    if len(values) >= _FEWEST_FOR_CUT and 0 < _FLATTENS * values[1] < whole:
        whole = _CUT_AT * values[1]
    shown = [
        known for cell in cells if (cell.entry.value or 0.0) <= whole and (known := _find_interval(cell)) is not None
    ]
    # An interval that is based on few rounds may be many times longer than all bars.
    highs = (min(known.high, _MOST_ROOM * whole) for known in shown if known.high is not None)
    return max((whole, *highs)) or 1.0


def _find_interval(cell: DecisionCell) -> Uncertainty | None:
    return None if cell.entry.uncertainty is None else cell.entry.uncertainty.of_level


def build_cell(cell: DecisionCell, measure: Measure, whole: float, *, target: str = "") -> MatrixCell:
    """Return a cell of a matrix.

    Args:
        whole: the value at which the longest bar of the column ends.
        target: the address of the cell's link; empty for a cell without a link.
    """
    value = cell.entry.value
    if value is None:
        return MatrixCell(text=NOT_MEASURED, sign=Sign.NONE, words=cell.entry.not_found or str(cell.unranked))
    known, is_cut = _find_interval(cell), value > whole
    low, high = (None, None) if known is None or known.high is None or is_cut else (known.low, known.high)
    unranked = cell.unranked is not None
    return MatrixCell(
        text=f"{_AT_LEAST if cell.entry.is_least else ''}{format_number(value, measure.digits)}",
        sign=Sign.UNRANKED if unranked else _SIGNS[cell.standing] if cell.standing else Sign.NONE,
        words=_describe_cell(cell),
        bar=_limit(value / whole),
        is_cut=is_cut,
        low=None if low is None else _limit(low / whole),
        high=None if high is None else _limit(high / whole),
        interval=_describe_interval(cell, known, value),
        hint=describe_exactly(measure, cell.entry, to_first=False),
        target=target,
    )


def _describe_cell(cell: DecisionCell) -> str:
    if cell.unranked is None:
        return describe_distance(cell)
    # The value has no rank because the offered rate of its reader is a share of the rate that the drive reaches when
    # the reader runs alone. This reason applies to all values of the figure, so only the title states it.
    return "" if cell.unranked is Unranked.OWN_LOAD else str(cell.unranked)


def _describe_interval(cell: DecisionCell, known: Uncertainty | None, value: float) -> str:
    if known is None or not known.known:
        # The reason why a run has no rank may already state that the interval is missing.
        return "" if cell.unranked is Unranked.NO_INTERVAL else str(Unranked.NO_INTERVAL)
    half = known.expanded
    if not half or value <= 0:
        return ""
    percent = 100 * half / value
    if is_lopsided(value, known) and not is_below_digits(percent):
        return describe_ends(known)
    return describe_share(percent, at_least=known.at_least)


def _limit(share: float) -> float:
    """Return a share of a column's width, limited to the range from 0 to 1."""
    return min(1.0, max(0.0, share))
