"""One drive over time: the trend of each headline figure, and changes of firmware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tkperf.analysis.comparing.entries import Change, ComparedRow, judge_change
from tkperf.analysis.comparing.robust import Trend, find_trend


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Unit of time of a trend."""

    label: str
    days: float


# The first that the runs span is used.
_PERIODS = (
    Period(label="year", days=365.0),
    Period(label="30 days", days=30.0),
    Period(label="day", days=1.0),
    Period(label="hour", days=1 / 24),
)
_MINUTE = Period(label="minute", days=1 / 1440)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFigure:
    """Trend of a headline figure.

    Attributes:
        trend: trend of the values in percent of their median, per period since the first run;
            None: fewer than two values.
        change: better, worse, or within noise.
    """

    row: ComparedRow
    median: float
    trend: Trend | None
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareChange:
    """A change of firmware between two runs.

    Attributes:
        name: first run with the new firmware.
        day: middle between the two runs, in days since 1970.
    """

    name: str
    day: float
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """History of a drive; ``days`` are the starts of the runs, in days since 1970."""

    serial: str | None
    period: Period
    days: tuple[float, ...]
    figures: tuple[HistoryFigure, ...]
    firmware: tuple[FirmwareChange, ...]


def build_history(
    names: Sequence[str],
    devices: Sequence[Mapping[str, object]],
    days: Sequence[float],
    rows: Sequence[ComparedRow],
) -> History:
    """Return the history of runs in the order of their dates; ``devices`` are the facts of the drive in each run."""
    spanned = days[-1] - days[0]
    period = next((each for each in _PERIODS if spanned >= each.days), _MINUTE)
    serials = {device.get("serial") for device in devices}
    (serial,) = serials if len(serials) == 1 else (None,)
    return History(
        serial=None if serial is None else str(serial),
        period=period,
        days=tuple(days),
        figures=tuple(_figure(row, days, period) for row in rows),
        firmware=tuple(_find_changes(names, [one.get("firmware") for one in devices], days)),
    )


def _figure(row: ComparedRow, days: Sequence[float], period: Period) -> HistoryFigure:
    known = [
        ((day - days[0]) / period.days, entry.value)
        for day, entry in zip(days, row.entries, strict=True)
        if entry.value is not None
    ]
    middle = median([value for _, value in known])
    trend = (
        find_trend([place for place, _ in known], [100 * value / middle for _, value in known])
        if middle
        else None
    )
    return HistoryFigure(row=row, median=middle, trend=trend, change=_judge(row, trend))


def _judge(row: ComparedRow, trend: Trend | None) -> Change:
    if trend is None or trend.beyond_noise is None:
        return Change.CANNOT_BE_TOLD
    rises = 2.0 if trend.slope > 0 else 0.5
    return judge_change(rises, row.quantity, within_noise=not trend.beyond_noise)


def _find_changes(
    names: Sequence[str], firmware: Sequence[object], days: Sequence[float]
) -> list[FirmwareChange]:
    """Find changes between successive runs with a known firmware."""
    known = [
        (name, str(version), day)
        for name, version, day in zip(names, firmware, days, strict=True)
        if version
    ]
    return [
        FirmwareChange(name=name, day=(last + day) / 2, before=before, after=after)
        for (_, before, last), (name, after, day) in pairwise(known)
        if before != after
    ]
