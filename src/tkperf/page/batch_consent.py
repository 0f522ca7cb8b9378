"""The drives of a batch as the user sees them before the question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tkperf.model.batch_state import DriveShown
from tkperf.model.sharing import BudgetState, CpuPlan, DriveGroup
from tkperf.model.units import format_capacity, format_count, list_names
from tkperf.page.page import TableView

_NOTHING = "-"
# A number alone; those in names are parts of words.
_NUMBER = re.compile(r"\b\d[\d.,]*\b")


def build_consent_table(drives: Sequence[DriveShown]) -> TableView:
    """Return what the processes of the drives found: a row each."""
    asked = sum(drive.confirm_id is not None for drive in drives)
    title = format_count(len(drives), "drive")
    hosts = any(drive.host is not None for drive in drives)
    lost = "nothing can be lost" if not asked else f"{asked} of them {'is' if asked == 1 else 'are'} erased"
    return TableView(
        title=f"{title}: {'all are erased' if asked == len(drives) else lost}",
        columns=("", *("host",) * hosts, "slot", "drive", "model", "serial number", "size", "holds", "run"),
        labels=3 + hosts,
        rows=tuple(
            (
                str(drive.number),
                *(drive.host or _NOTHING,) * hosts,
                drive.slot or _NOTHING,
                f"{drive.path} (file)" if drive.is_file else drive.path,
                drive.model or _NOTHING,
                drive.serial or _NOTHING,
                format_capacity(drive.capacity_bytes),
                ", ".join(drive.data) or ("nothing to lose" if drive.confirm_id is None else "no data recognised"),
                drive.name,
            )
            for drive in drives
        ),
    )


def describe_groups(groups: Sequence[DriveGroup]) -> str:
    """Describe the groups in which drives are measured: ``in 3 groups, one after the other (8, 8, 4)``."""
    if len(groups) < 2:
        return "all at once"
    sizes = ", ".join(str(len(group.drives)) for group in groups)
    return f"in {len(groups)} groups, one after the other ({sizes})"


def describe_neighbours(groups: Sequence[DriveGroup], cpus: Sequence[CpuPlan | None]) -> Iterator[str]:
    """Yield a sentence for each link whose budget is exceeded, for what is not known, and for CPUs that are shared."""
    for group in groups:
        for budget in group.budgets:
            if budget.state is BudgetState.OVER:
                yield (
                    f"{len(budget.drives)} drives at once are over the budget of {budget.part.name}: their links carry "
                    f"{budget.demand_bytes_per_s / 1e9:.1f} GB/s, it carries "
                    f"{(budget.part.bytes_per_s or 0) / 1e9:.1f} GB/s"
                )
    unknown = [group for group in groups if len(group.drives) > 1 and group.state is BudgetState.NOT_KNOWN]
    if unknown:
        count = format_count(sum(len(group.drives) for group in unknown), "drive")
        hidden = {budget.part.name for group in unknown for budget in group.budgets if budget.part.bytes_per_s is None}
        why = f"; not seen: {list_names(sorted(hidden))}" if hidden else ""
        yield f"whether they slow each other down is not known: the links of {count} are not all known{why}"
    if any(one.is_shared for plan in cpus if plan is not None for one in plan.assignments):
        yield "too few CPUs for each drive to have its own: they share them"


def fold_texts(
    of_drives: Sequence[tuple[str, Sequence[tuple[str, str]]]], *, by_words: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield each labelled text of several drives once, with their names if it is not that of all.

    Args:
        by_words: texts that differ only in their numbers are one: the host was looked at for each drive.
    """
    names: dict[tuple[str, str], dict[str, None]] = {}
    texts: dict[tuple[str, str], str] = {}
    for name, facts in of_drives:
        for label, text in facts:
            key = label, _NUMBER.sub("", text) if by_words else text
            texts.setdefault(key, text)
            names.setdefault(key, {})[name] = None
    for key, text in texts.items():
        of = tuple(names[key])
        yield key[0], text if len(of) == len(of_drives) else f"{text} ({list_names(of)})"
