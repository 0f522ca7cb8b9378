"""Endurance rating of a drive, and the share of it that a run takes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tkperf.model.errors import UsageError
from tkperf.model.units import format_capacity

DEFAULT_WARRANTY_YEARS = 5.0
DAYS_A_YEAR = 365
# A run that may take this share of a drive's life or more calls for a warning beforehand.
MUCH_OF_A_LIFE = 0.05
_FACTORS = {"GBW": 10**9, "TBW": 10**12, "PBW": 10**15}
# The most durable drives have ratings of 100 drive writes a day.
_MOST_DWPD = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """An endurance rating as the user gave it: ``amount`` of ``unit`` TBW or DWPD."""

    text: str
    amount: float
    unit: str
    warranty_years: float

    def bytes_of(self, capacity_bytes: int) -> float:
        """Return the bytes that may be written to the drive in all.

        Raises:
            UsageError: no drive of this capacity has such a rating.
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
        """Return the rating in words, as ``1DWPD over 5 years, 876.0 TB``."""
        whole = format_capacity(self.bytes_of(capacity_bytes))
        if self.unit == "DWPD":
            return f"{self.text} over {self.warranty_years:g} years, {whole}"
        return f"{self.text}, {whole}"


def parse_rating(text: str, warranty_years: float | None = None) -> Rating:
    """Parse ``600TBW``, ``1.2PBW`` or ``1DWPD``.

    Raises:
        UsageError: the text is none of these, or no drive has such a rating.
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
