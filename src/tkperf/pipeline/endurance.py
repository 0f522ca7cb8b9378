"""What a drive's maker says it may be written, and what share of that a run takes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tkperf.model.errors import UsageError
from tkperf.model.units import format_capacity

DEFAULT_WARRANTY_YEARS = 5.0
DAYS_A_YEAR = 365
# More than a run may take of a drive's life without being told beforehand.
MUCH_OF_A_LIFE = 0.05
_FACTORS = {"GBW": 10**9, "TBW": 10**12, "PBW": 10**15}
# The most durable drives are rated at 100 drive writes a day.
_MOST_DWPD = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """An endurance rating as it was given: ``amount`` of ``unit`` TBW or DWPD."""

    text: str
    amount: float
    unit: str
    warranty_years: float

    def bytes_of(self, capacity_bytes: int) -> float:
        """How much may be written in all.

        Raises:
            UsageError: no drive of this capacity is rated so.
        """
        if self.unit == "DWPD":
            return self.amount * capacity_bytes * DAYS_A_YEAR * self.warranty_years
        rated_bytes = self.amount * _FACTORS[self.unit]
        writes_a_day = rated_bytes / capacity_bytes / DAYS_A_YEAR / self.warranty_years
        if rated_bytes < capacity_bytes or writes_a_day > _MOST_DWPD:
            raise UsageError(
                f"--rated {self.text}: impossible for a drive of {format_capacity(capacity_bytes)}, "
                f"which it would write {rated_bytes / capacity_bytes:,.3g} times in all"
            )
        return rated_bytes

    def describe(self, capacity_bytes: int) -> str:
        """``1DWPD over 5 years, 876.0 TB``."""
        whole = format_capacity(self.bytes_of(capacity_bytes))
        if self.unit == "DWPD":
            return f"{self.text} over {self.warranty_years:g} years, {whole}"
        return f"{self.text}, {whole}"


def parse_rating(text: str, warranty_years: float | None = None) -> Rating:
    """``600TBW``, ``1.2PBW`` or ``1DWPD``.

    Raises:
        UsageError: it is none of these, or nobody rates a drive so.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    if match is None or match[2].upper() not in (*_FACTORS, "DWPD"):
        raise UsageError(f"--rated '{text[:40]}': write for example 600TBW, 1.2PBW or 1DWPD")
    amount, unit = float(match[1]), match[2].upper()
    if not 0 < amount < 1e9 or (unit == "DWPD" and amount > _MOST_DWPD):
        raise UsageError(f"--rated '{text[:40]}': no drive is rated so")
    return Rating(
        text=f"{match[1]}{unit}",
        amount=amount,
        unit=unit,
        warranty_years=warranty_years or DEFAULT_WARRANTY_YEARS,
    )
