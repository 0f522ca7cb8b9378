"""From values to pixels: scales of numbers, of times and of names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tkperf.render.svg import ticks
from tkperf.render.svg.formats import (
    form_of_step,
    format_loosely,
    format_tick_time,
    format_utc,
    number_text,
)
from tkperf.render.svg.known import NotDrawnError

Labeller = Callable[[Any], str]


class Continuous(Struct, frozen=True, kw_only=True):
    """Numbers from ``domain`` on pixels from ``range_``: linear, logarithmic, or times in ms."""

    domain: tuple[float, float]
    range_: tuple[float, float]
    log: bool = False
    utc: bool = False

    def __post_init__(self) -> None:
        low, high = self.domain
        if not -math.inf < low <= high < math.inf:
            raise NotDrawnError(f"an axis from {low} to {high}")
        if self.log and low <= 0:
            raise NotDrawnError("a logarithmic axis with 0")

    bandwidth = 0.0

    def many(self, values: Iterable[float]) -> list[float]:
        """Pixels of numbers."""
        low, high = self.domain
        first, last = self.range_
        if self.log:
            try:
                values = list(map(math.log, values))
            except ValueError as error:
                raise NotDrawnError("0 on a logarithmic axis") from error
            low, high = math.log(low), math.log(high)
        if low == high:
            return [(first + last) / 2 for _ in values]
        span = high - low
        # Not by a factor: the ends of the domain are exactly those of the range.
        return [first * (1 - (share := (value - low) / span)) + last * share for value in values]

    def ticks(self, count: float) -> list[float]:
        low, high = self.domain
        if self.utc:
            # As Vega does it: it tells ticks apart by their seconds and keeps the last of each.
            each = {math.floor(tick / 1000): tick for tick in ticks.utc_ticks(low, high, count)}
            return list(each.values())
        return (ticks.log_ticks if self.log else ticks.linear_ticks)(low, high, count)

    def label(self, count: float, form: str | None, *, all_labelled: bool) -> Labeller:
        """How its ticks are written.

        Args:
            form: in d3's notation; None: as suits them.
            all_labelled: whether there is one for each, however many.
        """
        low, high = self.domain
        if self.utc:
            return format_tick_time if form is None else lambda value: format_utc(value, form)
        if not self.log:
            step = ticks.step_of(low, high, count) if low < high else 0.0
            return form_of_step(step, form).write
        given = "," if form is None else form
        if all_labelled:
            return lambda value: format_loosely(value, given)
        shown = ticks.log_labels(self.ticks(count), count)
        return lambda value: format_loosely(value, given) if shown(value) else ""


class Bands(Struct, frozen=True, kw_only=True):
    """Names side by side; a point for each is a band without a width."""

    domain: tuple[object, ...]
    range_: tuple[float, float]
    inner: float
    outer: float
    banded: bool = True

    @property
    def _step(self) -> float:
        first, last = self.range_
        return (last - first) / max(1.0, len(self.domain) - self.inner + 2 * self.outer)

    @property
    def bandwidth(self) -> float:
        return self._step * (1 - self.inner)

    def starts(self) -> dict[object, float]:
        """Where each name's band begins."""
        first, last = self.range_
        step = self._step
        begin = first + (last - first - step * (len(self.domain) - self.inner)) / 2
        return {name: begin + place * step for place, name in enumerate(self.domain)}

    def middles(self) -> dict[object, float]:
        half = self.bandwidth / 2
        return {name: start + half for name, start in self.starts().items()}

    def ticks(self, _count: float) -> list[object]:
        return list(self.domain)

    def label(self, _count: float, form: str | None, *, all_labelled: bool) -> Labeller:
        if form is not None:
            raise NotDrawnError("a format of names")
        return name_text


Scale = Continuous | Bands


def name_text(value: object) -> str:
    """A name on an axis or in a legend."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise NotDrawnError(f"the name {value!r:.60}")
    return value if isinstance(value, str) else number_text(value)


def pad_domain(
    domain: tuple[float, float], *, log: bool, padding: float, length: float
) -> tuple[float, float]:
    """The ends of a domain that has so many pixels more at each end of a range of this length."""
    if length <= 2 * padding or domain[0] == domain[1]:
        return domain
    by = length / (length - 2 * padding)
    low, high = (math.log(end) for end in domain) if log else domain
    middle = (low + high) / 2
    low, high = middle + (low - middle) * by, middle + (high - middle) * by
    return (math.exp(low), math.exp(high)) if log else (low, high)


class Styles(Struct, frozen=True, kw_only=True):
    """What names are told apart by: colours or dashes, again from the first where they are too few."""

    domain: tuple[object, ...]
    range_: Sequence[Any]

    def of_names(self) -> Mapping[object, Any]:
        return {
            name: self.range_[place % len(self.range_)] for place, name in enumerate(self.domain)
        }
