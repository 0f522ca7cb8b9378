"""Facts from the operator, which no tool can find out, and the date of a report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType

from tkperf.model.errors import UsageError
from tkperf.model.run_info import RunInfo
from tkperf.model.units import on_one_line

SPONSOR = "Test sponsor"
NAND_TYPE = "NAND type"
PLATFORM = "Reference test platform"
MANUFACTURER = "Manufacturer"
MOTHERBOARD = "Motherboard"
NOTE = "Note"
FACT_NAMES = (SPONSOR, PLATFORM, MANUFACTURER, NAND_TYPE, MOTHERBOARD, NOTE)
"""Names of facts that no tool can find out, or not for every drive and host."""
LONGEST_FACT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFacts:
    """Date of a report, and the operator's facts.

    Attributes:
        report_date: date of the report; None: not shown.
        facts: the operator's facts, by their names in ``FACT_NAMES``.
    """

    report_date: str | None = None
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, name: str, known: str | None = None) -> str | None:
        """Return the known value of a fact, else the operator's; both if they differ."""
        given = self.facts.get(name)
        if known is None or given is None:
            return known or given
        return known if known == given else f"{known} (the operator's: {given})"

    def with_those_of(self, info: RunInfo) -> UserFacts:
        """Return these facts, and those that the run was begun with; of two with one name, these."""
        return replace(self, facts={**dict(_readable_facts(info)), **self.facts})


NO_USER_FACTS = UserFacts()


def _readable_facts(info: RunInfo) -> Iterator[tuple[str, str]]:
    """Yield the facts in a run file, which may hold anything."""
    facts = info.options.get("facts")
    for name, text in facts.items() if isinstance(facts, dict) else ():
        if name in FACT_NAMES and isinstance(text, str) and on_one_line(text):
            yield name, on_one_line(text)[:LONGEST_FACT]


def parse_facts(texts: Iterable[str], file_text: str = "") -> dict[str, str]:
    """Parse facts from ``NAME=TEXT`` or ``NAME: TEXT``, and return them by their names in reports.

    Args:
        file_text: content of a file with a fact on each line; lines with # are comments. ``texts`` prevail.

    Raises:
        UsageError: a text has another form, is too long, or has a name that reports do not have.
    """
    lines = (line for line in file_text.splitlines() if line.strip() and line.strip()[0] != "#")
    return {**_parse("--fact-file", lines), **_parse("--fact", texts)}


def _parse(option: str, texts: Iterable[str]) -> dict[str, str]:
    pairs = []
    for text in texts:
        name, *rest = re.split("[=:]", text, maxsplit=1)
        if not "".join(rest).strip():
            raise UsageError(f"{option} '{on_one_line(text)[:80]}': write NAME=TEXT, as in 'NAND type=3D TLC'")
        pairs.append((name, rest[0]))
    return check_names(option, pairs)


def check_names(option: str, facts: Iterable[tuple[object, object]]) -> dict[str, str]:
    """Return facts by their names in reports, after a check of the names.

    Raises:
        UsageError: a name is not one of reports, or its text is none or too long.
    """
    names = {name.lower(): name for name in FACT_NAMES}
    found = {}
    for key, fact in facts:
        given = str(key).strip()
        name = names.get(given.lower())
        if name is None:
            near = get_close_matches(given.lower()[:80], names, n=1)
            meant = f"; did you mean '{names[near[0]]}'?" if near else ""
            raise UsageError(
                f"{option}: there is no '{on_one_line(given)[:80]}'; the names are {', '.join(FACT_NAMES)}{meant}"
            )
        text = on_one_line(fact) if isinstance(fact, str) else ""
        if not 1 <= len(text) <= LONGEST_FACT:
            raise UsageError(f"{option}: {name} has {len(text)} characters of text; use 1 to {LONGEST_FACT}")
        found[name] = text
    return found
