"""Lines of a procedure's text that several tests share."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.model.units import format_mix
from tkperf.procedures.descriptor import Circumstances
from tkperf.procedures.profiles import Profile


def purge(circumstances: Circumstances) -> tuple[str, ...]:
    return () if circumstances.purge is None else (circumstances.purge,)


def preconditioning(
    profile: Profile, circumstances: Circumstances, load: str | None = None, *, passes: int | None = None
) -> str:
    """Describe the preconditioning; ``load``, ``passes``: the writes, if they differ from the profile's table."""
    table = profile.preconditioning
    load = load or f"SEQ {table.block_size_kib:g} KiB writes, {demand(profile)}"
    if circumstances.describe_fill is None:
        filled = f"{passes or table.passes} × {table.range_text}, {load}"
    else:
        filled = circumstances.describe_fill(load, passes)
    return f"Workload-independent preconditioning: {filled}"


def at_most_rounds(profile: Profile) -> str:
    return f"Until steady state, at most {profile.steady_state.max_rounds} rounds:"


def steady_state(profile: Profile) -> str:
    table = profile.steady_state
    return (
        f"Steady state: over {table.window_rounds} rounds, range <= "
        f"{table.max_data_excursion_percent:g} % and best linear fit <= "
        f"{table.max_slope_excursion_percent:g} % of the average"
        + (", disturbed rounds taken as they are" if table.accept_disturbed else "")
    )


def until_steady(
    profile: Profile, circumstances: Circumstances, loops: Sequence[tuple[str, str]], step: str, tracking: str
) -> tuple[str, ...]:
    """Describe purge, preconditioning and rounds of nested loops until steady state.

    Args:
        loops: the name and the values of each, the outermost first.
        step: the step in the innermost loop.
    """
    indented = [f"{'    ' * level}For {name} {values}:" for level, (name, values) in enumerate(loops, 1)]
    return (
        *purge(circumstances),
        preconditioning(profile, circumstances),
        at_most_rounds(profile),
        *indented,
        f"{'    ' * (1 + len(loops))}{step}",
        tracking,
        steady_state(profile),
    )


def mixes_and_sizes(read_percents: Sequence[int], block_sizes_kib: Sequence[float]) -> tuple[tuple[str, str], ...]:
    """Return the loops over R/W mixes and block sizes in words."""
    return ("R/W mix", mixes(read_percents)), ("block size", f"{numbers(block_sizes_kib)} KiB")


def demand(profile: Profile, jobs: int | None = None, io_depth: int | None = None) -> str:
    """Return the demand in words: the profile's, or a test's own."""
    if profile.demand.searched and not (jobs and io_depth):
        return "TC and QD as the demand search found them"
    return f"TC {jobs or profile.demand.jobs} / QD {io_depth or profile.demand.io_depth}"


def judged_slices(slice_s: float, every: int, other_slices: str = "slices") -> str:
    """Return ``minutes 1, 31, 61 ...``; ``other_slices`` replaces minutes for slices of another length."""
    numbers = ", ".join(str(1 + index * every) for index in range(3))
    return f"{'minutes' if slice_s == 60 else other_slices} {numbers} ..."


def mixes(read_percents: Sequence[int]) -> str:
    return ", ".join(format_mix(percent) for percent in read_percents)


def numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
