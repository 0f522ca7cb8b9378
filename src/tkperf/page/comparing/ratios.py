"""Ratios of a comparison in words, with how certain they are, and names of runs."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.analysis.comparing.entries import Change, Entry
from tkperf.page.words.uncertainty import describe_share

# An interval is given by its ends if its middle is further from the value than this share of its half width.
_LOPSIDED = 0.25
MOST_NAMED = 4
"""Most runs that a sentence names."""


def describe_ratio(entry: Entry) -> str:
    """Return ``x1.034 ± 0.9 %``; in parentheses within noise, with a question mark if noise is not known."""
    if entry.ratio is None:
        return ""
    return mark_certainty(entry, f"x{format_ratio(entry.ratio)}{describe_ratio_uncertainty(entry)}")


def describe_ratio_uncertainty(entry: Entry) -> str:
    """Return the text after a ratio: `` ± 0.9 %``, `` (0.512 to 0.984)`` if the interval is lopsided; empty: not known."""
    known = entry.ratio_uncertainty
    if not entry.ratio or known is None or known.expanded is None:
        return ""
    if known.low is not None and known.high is not None:
        off_centre = abs(known.low + known.high - 2 * entry.ratio) / 2
        if off_centre > _LOPSIDED * known.expanded:
            return f" ({describe_ratio_interval(entry)})"
    return f" {describe_share(100 * known.expanded / entry.ratio)}"


def describe_ratio_interval(entry: Entry) -> str:
    """Return ``8.52 to 8.88``, ``above 8.52`` without an upper end; "or wider" for a lower limit; empty: none."""
    known = entry.ratio_uncertainty
    if entry.ratio is None or known is None or known.low is None:
        return ""
    low = format_ratio(known.low)
    text = f"above {low}" if known.high is None else f"{low} to {format_ratio(known.high)}"
    return f"{text} or wider" if known.at_least else text


def mark_certainty(entry: Entry, text: str) -> str:
    """Mark a text about the ratio with how certain the difference is."""
    if entry.change is Change.WITHIN_NOISE:
        return f"({text})"
    return f"{text}?" if entry.change is Change.CANNOT_BE_TOLD else text


def format_ratio(ratio: float) -> str:
    """Format a ratio: three digits after the point from 0.1 to 2, fewer above: ``1.034``, ``8.70``, ``120``."""
    if ratio < 0.1:
        return f"{ratio:.2g}" if ratio > 0 else "0"
    digits = next((digits for limit, digits in ((2, 3), (10, 2), (100, 1)) if ratio < limit), 0)
    return f"{ratio:,.{digits}f}"


def list_names(names: Sequence[str]) -> str:
    """Join names: ``A, B``; many names become ``A, B, C, D and 12 more``."""
    left = len(names) - MOST_NAMED
    if left < 2:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMED])} and {left} more"
