"""Mark figures that may depend on more than the device, and explain the marks, the same in every output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from tkperf.model.disturbance.codes import (
    HOST_LIMITED,
    WORDS,
    Disturbance,
    DisturbanceCode,
    describe_count,
    describe_disturbed,
    find_codes,
    find_doubtful,
)
from tkperf.model.units import format_count

NOT_WATCHED = "not watched"
NOT_COMPARED = "I/O of others not compared"
_ALL = "fills included"


class Flagged(Protocol):
    """A figure of a table."""

    @property
    def host_limited(self) -> bool | None: ...

    @property
    def disturbances(self) -> tuple[DisturbanceCode, ...] | None:
        """Return the kinds of disturbance in its steps."""
        ...


class Watched(Protocol):
    """A step."""

    @property
    def disturbances(self) -> tuple[Disturbance, ...] | None: ...


def mark(flagged: Flagged | None) -> str:
    """Return the marks after a figure: ``*``, ``!``, both or nothing."""
    if flagged is None:
        return ""
    return "*" * bool(flagged.host_limited) + "!" * bool(flagged.disturbances)


def explain_marks(flagged: Iterable[Flagged | None]) -> tuple[str, ...]:
    """Return a line for each mark among the figures, with the mark first."""
    figures = [figure for figure in flagged if figure is not None]
    lines = [f"* {HOST_LIMITED}"] if any(figure.host_limited for figure in figures) else []
    codes = find_codes(code for figure in figures for code in figure.disturbances or ())
    if codes:
        lines.append(f"! {describe_disturbed(codes)}")
    return tuple(lines)


def is_flagged(flagged: Flagged) -> bool:
    """Return whether a figure has a known reason not to be the device's alone."""
    return bool(flagged.host_limited or flagged.disturbances)


def describe_flags(flagged: Flagged) -> str:
    """Explain in a line why a figure may not be the device's alone; empty: there is no known reason."""
    if not is_flagged(flagged):  # the common case
        return ""
    words = [HOST_LIMITED] if flagged.host_limited else []
    words += [describe_disturbed(flagged.disturbances)] if flagged.disturbances else []
    return "; ".join(words)


def count_disturbed(steps: Iterable[Watched]) -> str:
    """Count the steps that others had a part in: ``24 steps, fills included``; empty if there is none."""
    count = sum(bool(find_doubtful(step.disturbances or ())) for step in steps)
    return f"{format_count(count, 'step')}, {_ALL}" if count else ""


def join_flags(words: Iterable[str]) -> str:
    """Join the texts of ``describe_flags`` of several figures, each reason once."""
    text = "; ".join(words)
    lines = [HOST_LIMITED] if HOST_LIMITED in text else []
    codes = [code for code in DisturbanceCode if WORDS[code] in text]
    return "; ".join([*lines, describe_disturbed(codes)] if codes else lines)


def describe_counts(
    steps: Mapping[DisturbanceCode, int] | None,
    not_compared_steps: int | None,
    watched: Iterable[Watched] = (),
) -> str | None:
    """Count a test's disturbed steps by kind; None: none was disturbed, and all were watched and compared.

    ``24 steps, fills included: 20 steps with other I/O on the device; 6 steps with ...``.
    """
    if steps is None:
        return NOT_WATCHED
    counts = [describe_count(code, steps[code]) for code in steps]
    if counts and (of_all := count_disturbed(watched)):
        counts[0] = f"{counts[0]}, {_ALL}" if len(counts) == 1 else f"{of_all}: {counts[0]}"
    if not_compared_steps:
        of = format_count(not_compared_steps, "step")
        counts = [*(counts or ["no"]), f"{NOT_COMPARED} in {of}"]
    return "; ".join(counts) or None


def describe_disturbances(flagged: Flagged, foreign_bytes: int | None) -> str:
    """Describe the disturbances of a figure; ``foreign_bytes`` is the I/O of others, None: not compared."""
    if flagged.disturbances is None:
        return NOT_WATCHED
    words = ", ".join(WORDS[code] for code in flagged.disturbances) or "no"
    return words if foreign_bytes is not None else f"{words}; {NOT_COMPARED}"


def describe_gaps(longest_s: float, steps: Mapping[DisturbanceCode, int] | None) -> str:
    """Describe the longest time between two steps, and count the gaps that were flagged as too long.

    Two steps may overlap by a moment. The text gives no limit, because the limit depends on the load before
    the gap.
    """
    longest = "none" if longest_s <= 0 else f"{longest_s * 1000:.1f} ms"
    if steps is None:
        return f"{longest}, {NOT_WATCHED}"
    flagged = steps.get(DisturbanceCode.IDLE_BEFORE, 0)
    if flagged:
        return f"{longest}, {flagged} too long"
    return longest if longest_s <= 0 else f"{longest}, none flagged"


def describe_window(disturbed: int | None) -> str:
    """Describe the disturbed steps of a verdict's window; empty if there is none."""
    if not disturbed:
        return ""
    return f"; {format_count(disturbed, 'step')} of the window disturbed"
