"""Steady state: the rule of the PTS for the window, and the verdict as data.

The rule is from PTS 2.0.2, definition 2.1.24, and is the same in PTS 1.1 (sources in docs/explanation/method.md). For
the tracking variable y over the last five consecutive rounds, with A = mean(y):

- data excursion: max(y) - min(y) <= 20 % of A, and
- slope excursion: (max - min) of the least-squares line over the window <= 10 % of A.

A value equal to the limit is accepted. The +-10 % lines in the charts of reports are only a drawing convention, because
the criterion limits the difference between maximum and minimum. The verdict must describe only the device. Therefore a
window is not steady if something other than the device influenced one of the values, unless the user accepts such
values (docs/explanation/method.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """The limits of the steady-state rule, as fractions of the average of the window.

    With ``accept_disturbed``, a window can be steady even if something other than the device influenced one of the
    values.
    """

    window_rounds: int = 5
    max_data_excursion: float = 0.20
    max_slope_excursion: float = 0.10
    accept_disturbed: bool = False


PTS_CRITERIA = Criteria()
WITHIN_LIMITS = "data and slope excursion are within their limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The least-squares line y = slope * round + intercept over the window.

    ``correlation`` is Pearson's r. None means that all values are equal, so that r is not defined.
    """

    slope: float
    intercept: float
    correlation: float | None

    def at(self, round_number: float) -> float:
        return self.slope * round_number + self.intercept


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyStateVerdict:
    """The verdict after one round, with all data that a reader needs to check the verdict.

    ``rounds`` and ``values`` describe the window. The window consists of the last ``window_rounds`` rounds, or of all
    rounds if the test has fewer rounds. Excursions are absolute values in ``unit``. ``fit`` is None if the window has
    fewer than two values. ``reached`` is the verdict, and ``reason`` explains the verdict. ``judged`` is False as long
    as the test has fewer than ``needed_rounds`` rounds. ``disturbed_rounds`` are the rounds of the window that
    something other than the device influenced.
    """

    tracking: str
    unit: str
    rounds: tuple[int, ...]
    values: tuple[float, ...]
    average: float
    data_excursion: float
    allowed_data_excursion: float
    slope_excursion: float | None
    allowed_slope_excursion: float
    fit: Fit | None
    reached: bool
    reason: str
    needed_rounds: int = 5
    disturbed_rounds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.rounds or len(self.rounds) != len(self.values):
            raise ValueError("a verdict needs one value for each round, and at least one round")

    @property
    def judged(self) -> bool:
        return len(self.rounds) >= self.needed_rounds


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> Fit | None:
    """Return the least-squares line through the points. None means that there are fewer than two points.

    m = sum((x-xm)(y-ym)) / sum((x-xm)^2), b = ym - m xm, r = sum((x-xm)(y-ym)) / sqrt(sum((x-xm)^2) sum((y-ym)^2)).
    """
    if len(xs) < 2:
        return None
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    sxx = sum((x - x_mean) ** 2 for x in xs)
    syy = sum((y - y_mean) ** 2 for y in ys)
    sxy = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    slope = sxy / sxx
    correlation = sxy / sqrt(sxx * syy) if syy > 0 and sxx * syy > 0 else None
    return Fit(slope=slope, intercept=y_mean - slope * x_mean, correlation=correlation)


def judge(
    rounds: Sequence[int],
    values: Sequence[float],
    *,
    tracking: str,
    unit: str,
    criteria: Criteria = PTS_CRITERIA,
    doubts: Sequence[str | None] = (),
) -> SteadyStateVerdict:
    """Return the steady-state verdict on the last window of a series.

    Args:
        rounds: numbers of all rounds so far, ascending.
        values: value of the tracking variable in each round, in ``unit``.
        tracking: name of the tracking variable, as text for people to read, such as ``RND 4k R/W 0/100 IOPS``.
        doubts: for each round, the influence of something other than the device, in words. None means that there is no
            influence. If the argument is omitted, no round was influenced.

    Raises:
        ValueError: the two sequences differ in length or are empty.
    """
    if len(rounds) != len(values) or not values or len(doubts) not in (0, len(values)):
        raise ValueError("the judgement of steady state needs one value for each round, and at least one round")
    window = tuple(values[-criteria.window_rounds :])
    window_rounds = tuple(rounds[-criteria.window_rounds :])
    average = sum(window) / len(window)
    data_excursion = max(window) - min(window)
    fit = fit_line(window_rounds, window)
    slope_excursion = None
    if fit is not None:
        slope_excursion = abs(fit.slope) * (window_rounds[-1] - window_rounds[0])
    allowed_data = criteria.max_data_excursion * average
    allowed_slope = criteria.max_slope_excursion * average
    unsteady = _explain(window, criteria, average, data_excursion, allowed_data, slope_excursion, allowed_slope)
    doubted = {
        number: doubt
        for number, doubt in zip(rounds[-criteria.window_rounds :], doubts[-criteria.window_rounds :], strict=False)
        if doubt is not None
    }
    doubtful = _describe_doubts(doubted)
    reached = unsteady is None and (not doubtful or criteria.accept_disturbed)
    reasons = [unsteady or WITHIN_LIMITS]
    if doubtful:
        accepted = ", accepted" if criteria.accept_disturbed else ""
        reasons.append(doubtful + accepted)
    return SteadyStateVerdict(
        tracking=tracking,
        unit=unit,
        rounds=window_rounds,
        values=window,
        average=average,
        data_excursion=data_excursion,
        allowed_data_excursion=allowed_data,
        slope_excursion=slope_excursion,
        allowed_slope_excursion=allowed_slope,
        fit=fit,
        reached=reached,
        reason="; ".join(reasons),
        needed_rounds=criteria.window_rounds,
        disturbed_rounds=tuple(doubted),
    )


def _describe_doubts(doubted: Mapping[int, str]) -> str:
    """Return the doubtful rounds in words, such as ``not the device alone in 4: other I/O on the device``. If no round
    is doubtful, the result is empty.
    """
    named: dict[str, list[str]] = {}
    for number, doubt in doubted.items():
        named.setdefault(doubt, []).append(str(number))
    doubts = [f"{', '.join(numbers)}: {doubt}" for doubt, numbers in named.items()]
    return f"not the device alone in {'; '.join(doubts)}" if doubts else ""


def _explain(
    window: tuple[float, ...],
    criteria: Criteria,
    average: float,
    data_excursion: float,
    allowed_data: float,
    slope_excursion: float | None,
    allowed_slope: float,
) -> str | None:
    """Return the reason why the window is not steady. None means that the window is steady."""
    if len(window) < criteria.window_rounds:
        return f"{len(window)} of the {criteria.window_rounds} rounds a window needs"
    if not all(isfinite(value) for value in window) or average <= 0:
        return "the window holds rounds in which nothing was measured"
    faults = []
    if data_excursion > allowed_data:
        faults.append(
            f"data excursion {100 * data_excursion / average:.1f} % "
            f"exceeds {100 * criteria.max_data_excursion:.0f} % of the average"
        )
    if slope_excursion is None or slope_excursion > allowed_slope:
        measured = "unknown" if slope_excursion is None else f"{100 * slope_excursion / average:.1f} %"
        faults.append(f"slope excursion {measured} exceeds {100 * criteria.max_slope_excursion:.0f} % of the average")
    return " and ".join(faults) or None
