"""Marks at figures that may not be the device's alone, and what they mean: the same in every output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from tkperf.model.disturbance.codes import (
    HOST_LIMITED,
    WORDS,
    Disturbance,
    DisturbanceCode,
    describe_count,
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
        """The kinds of its steps' disturbances."""
        ...


class Watched(Protocol):
    """A step."""

    @property
    def disturbances(self) -> tuple[Disturbance, ...] | None: ...


def mark(flagged: Flagged | None) -> str:
    """What stands behind a figure: ``*``, ``!``, both or nothing."""
    if flagged is None:
        return ""
    return "*" * bool(flagged.host_limited) + "!" * bool(flagged.disturbances)


def explain_marks(flagged: Iterable[Flagged | None]) -> tuple[str, ...]:
    """A line for each mark among figures, each with the mark first."""
    figures = [figure for figure in flagged if figure is not None]
    lines = [f"* {HOST_LIMITED}"] if any(figure.host_limited for figure in figures) else []
    codes = find_codes(code for figure in figures for code in figure.disturbances or ())
    if codes:
        lines.append(f"! {describe_disturbed(codes)}")
    return tuple(lines)


def describe_disturbed(codes: Iterable[DisturbanceCode]) -> str:
    """``disturbed: other I/O on the device, idle time before the step``."""
    return "disturbed: " + ", ".join(WORDS[code] for code in codes)


def is_flagged(flagged: Flagged) -> bool:
    """Whether there is a known reason why a figure may not be the device's alone."""
    return bool(flagged.host_limited or flagged.disturbances)


def describe_flags(flagged: Flagged) -> str:
    """Why a figure may not be the device's alone, in a line; empty: nobody knows of a reason."""
    if not is_flagged(flagged):  # as most of a day's are
        return ""
    words = [HOST_LIMITED] if flagged.host_limited else []
    words += [describe_disturbed(flagged.disturbances)] if flagged.disturbances else []
    return "; ".join(words)


def count_disturbed(steps: Iterable[Watched]) -> str:
    """``24 steps, fills included``: those that others had a part in; empty if there is none."""
    count = sum(bool(find_doubtful(step.disturbances or ())) for step in steps)
    return f"{format_count(count, 'step')}, {_ALL}" if count else ""


def join_flags(words: Iterable[str]) -> str:
    """What ``describe_flags`` says of several figures together: each reason once."""
    told = "; ".join(words)
    lines = [HOST_LIMITED] if HOST_LIMITED in told else []
    codes = [code for code in DisturbanceCode if WORDS[code] in told]
    return "; ".join([*lines, describe_disturbed(codes)] if codes else lines)


def describe_counts(
    steps: Mapping[DisturbanceCode, int] | None,
    not_compared_steps: int | None,
    watched: Iterable[Watched] = (),
) -> str | None:
    """How many steps of a test were disturbed by what; None if none was, and all was looked at.

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
    """What disturbed a figure; ``foreign_bytes``, what others moved, is None if not compared."""
    if flagged.disturbances is None:
        return NOT_WATCHED
    words = ", ".join(WORDS[code] for code in flagged.disturbances) or "no"
    return words if foreign_bytes is not None else f"{words}; {NOT_COMPARED}"


def describe_gaps(longest_s: float, steps: Mapping[DisturbanceCode, int] | None) -> str:
    """The longest time between two steps, which may overlap by a moment, and how many were too long.

    Which are, depends on what came before: no one limit can be told.
    """
    longest = "none" if longest_s <= 0 else f"{longest_s * 1000:.1f} ms"
    if steps is None:
        return f"{longest}, {NOT_WATCHED}"
    flagged = steps.get(DisturbanceCode.IDLE_BEFORE, 0)
    if flagged:
        return f"{longest}, {flagged} too long"
    return longest if longest_s <= 0 else f"{longest}, none flagged"


def describe_window(disturbed: int | None) -> str:
    """What a verdict has to say of its window's steps; empty if none was disturbed."""
    if not disturbed:
        return ""
    return f"; {format_count(disturbed, 'step')} of the window disturbed"
