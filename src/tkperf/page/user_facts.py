"""Facts of a report that its run file does not have: its date, and facts from the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType

from tkperf.model.errors import UsageError
from tkperf.model.units import on_one_line

SPONSOR = "Test sponsor"
NAND_TYPE = "NAND type"
PLATFORM = "Reference test platform"
MANUFACTURER = "Manufacturer"
MOTHERBOARD = "Motherboard"
NOTE = "Note"
TELLABLE = (SPONSOR, PLATFORM, MANUFACTURER, NAND_TYPE, MOTHERBOARD, NOTE)
"""Names of facts that no tool can find out, or not for every drive and host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFacts:
    """Facts that are not in a run file.

    Attributes:
        report_date: date of the report; None: not shown.
        facts: the user's facts, by their names in ``TELLABLE``.
    """

    report_date: str | None = None
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, name: str, known: str | None = None) -> str | None:
        """Return the known value of a fact, else the user's; both if they differ."""
        told = self.facts.get(name)
        if known is None or told is None:
            return known or told
        return known if known == told else f"{known} (told: {told})"


NO_USER_FACTS = UserFacts()


def parse_facts(texts: Iterable[str]) -> dict[str, str]:
    """Parse facts from ``NAME=TEXT``, and return them by their names in reports.

    Raises:
        UsageError: a text has another form or a name that reports do not have.
    """
    names = {name.lower(): name for name in TELLABLE}
    facts = {}
    for text in texts:
        given, _, fact = (part.strip() for part in text.partition("="))
        if not fact:
            raise UsageError(
                f"--fact '{on_one_line(text)}': write NAME=TEXT, as in 'NAND type=3D TLC'"
            )
        name = names.get(given.lower())
        if name is None:
            near = get_close_matches(given.lower(), names, n=1)
            meant = f"; did you mean '{names[near[0]]}'?" if near else ""
            raise UsageError(
                f"--fact: there is no '{on_one_line(given)}'; the names are {', '.join(TELLABLE)}{meant}"
            )
        facts[name] = on_one_line(fact)
    return facts
