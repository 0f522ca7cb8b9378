"""Facts about a run that are known before its first I/O, and facts that the operator adds. Every result discloses
both.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from uuid import UUID

import msgspec

from tkperf.model.errors import UsageError
from tkperf.model.units import format_capacity, format_count, on_one_line, parse_size_bytes

SPONSOR = "Test sponsor"
NAND_TYPE = "NAND type"
PLATFORM = "Reference test platform"
MANUFACTURER = "Manufacturer"
MOTHERBOARD = "Motherboard"
FORM_FACTOR = "Form factor"
NOTE = "Note"
FACT_NAMES = (SPONSOR, PLATFORM, MANUFACTURER, NAND_TYPE, FORM_FACTOR, MOTHERBOARD, NOTE)
"""Names of facts that no tool can find out, or cannot find out for every drive and host."""
LONGEST_FACT = 1000
SIMULATED_NOTICE = "SIMULATED: these numbers come from a model, no device was measured"
"""Notice on every page of a result that a model gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFacts:
    """Date of a report, and the facts that the operator adds.

    Attributes:
        report_date: date of the report; None: not shown.
        facts: the operator's facts, by their names in ``FACT_NAMES``.
    """

    report_date: str | None = None
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, name: str, known: str | None = None) -> str | None:
        """Return the known value of a fact, or the value of the operator. Return both if they differ."""
        given = self.facts.get(name)
        if known is None or given is None:
            return known or given
        return known if known == given else f"{known} (the operator's: {given})"

    def with_those_of(self, info: RunInfo) -> UserFacts:
        """Return these facts together with the facts that were given at the start of the run. If both contain a name,
        these facts count.
        """
        return replace(self, facts={**dict(_readable_facts(info)), **self.facts})


NO_USER_FACTS = UserFacts()


def _readable_facts(info: RunInfo) -> Iterator[tuple[str, str]]:
    """Yield the facts in a run file, which may contain anything."""
    facts = info.options.get("facts")
    for name, text in facts.items() if isinstance(facts, dict) else ():
        if name in FACT_NAMES and isinstance(text, str) and on_one_line(text):
            yield name, on_one_line(text)[:LONGEST_FACT]


def find_run_id(info: RunInfo) -> str:
    """Return the id of a run, 32 hexadecimal digits: the UUID, or for a file without a UUID a digest of its facts."""
    try:
        return UUID(info.uuid).hex
    except (TypeError, ValueError):
        facts = msgspec.json.encode((info.started_utc, info.seed, info.name, info.device), order="sorted")
        return hashlib.sha256(facts).hexdigest()[:32]


def parse_facts(texts: Iterable[str], file_text: str = "") -> dict[str, str]:
    """Parse facts from ``NAME=TEXT`` or ``NAME: TEXT``, and return them by their names in reports.

    Args:
        file_text: content of a file with a fact on each line; lines with # are comments. ``texts`` override these
            facts.

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
            raise UsageError(
                f"{option} '{on_one_line(text)[:80]}' does not have the form NAME=TEXT. Write, for example, 'NAND "
                "type=3D TLC'"
            )
        pairs.append((name, rest[0]))
    return check_names(option, pairs)


def check_names(option: str, facts: Iterable[tuple[object, object]]) -> dict[str, str]:
    """Return facts by their names in reports, after a check of the names.

    Raises:
        UsageError: reports do not have the name, or the text is missing or too long.
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
                f"{option}: there is no fact with the name '{on_one_line(given)[:80]}'. The names are "
                f"{', '.join(FACT_NAMES)}{meant}"
            )
        text = on_one_line(fact) if isinstance(fact, str) else ""
        if not 1 <= len(text) <= LONGEST_FACT:
            raise UsageError(
                f"{option}: the text of {name} has {len(text)} characters. Use 1 to {LONGEST_FACT} characters"
            )
        found[name] = text
    return found


# The device kind of a run that another tool made.
IMPORTED = "imported result"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Everything that is known about a run before its first I/O. Every result discloses it.

    ``device`` and each of ``hosts`` are facts as plain data (name -> value, None = not known);
    ``profile`` is the whole profile as plain data, with user options applied, or for an imported run
    its known parts; ``options`` are the user's settings. ``seed`` is the run's; the seeds of its fio jobs are
    drawn from it; None: not known, or there is none. ``uuid`` is the run's in every copy of its file and after every
    resumption; None: an older file. ``choices`` and ``alterations`` are what
    the user's options changed, each as ``runtime 60 s -> 1 s``: what is left to the operator, and departures from the
    specification's numbers. Every page of a result shows
    ``notices`` (quick profile, file target, SIMULATED).
    """

    name: str
    suite: str
    tkperf_version: str
    fio_version: str | None
    ioengine: str
    command_line: tuple[str, ...]
    started_utc: str | None
    profile_name: str
    profile: dict[str, object]
    options: dict[str, object]
    device: dict[str, object]
    hosts: tuple[dict[str, object], ...]
    active_range_offset_bytes: int | None
    active_range_length_bytes: int | None
    device_description: str | None = None
    feature_matrix: str | None = None
    seed: int | None = None
    notices: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    alterations: tuple[str, ...] = ()
    uuid: str | None = None

    @property
    def specification(self) -> str | None:
        """Return the specification for every header. "altered" means that the run departs from the numbers of the
        specification.
        """
        title = self.profile.get("title")
        if title is None:
            return None
        return f"{title}, altered" if self.alterations else str(title)

    @property
    def host(self) -> dict[str, object]:
        """Return the facts of the first host, which has the device; no facts if the host is not known."""
        return self.hosts[0] if self.hosts else {}

    @property
    def is_simulated(self) -> bool:
        """Return whether a model was measured. No other process can reach a model, so there are no disturbances."""
        return self.ioengine == "simulated"

    @property
    def fills_members(self) -> bool:
        """Return whether the members of a RAID set were filled before the set was made, instead of the set itself."""
        return self.suite == "raid" and self.device.get("preconditioned") == "members"

    @property
    def software(self) -> str:
        """Return the program that measured, with its version; for an imported run also the program that imported it."""
        return self.tkperf_version if self.imported else f"tkperf {self.tkperf_version}"

    @property
    def command_text(self) -> str:
        """Return the command line in the form of a shell; for an imported run as the other tool wrote it."""
        words = self.command_line
        return " ".join(words) if self.imported else shlex.join(words)

    def table(self, name: str) -> dict[str, object]:
        """Return a table of the profile; empty if the table is not known, as in an imported run."""
        table = self.profile.get(name)
        return table if isinstance(table, dict) else {}

    @property
    def active_range_text(self) -> str | None:
        """Return ``17.2 GB``, or ``17.2 GB in 2,048 segments``; None: not known."""
        if self.active_range_length_bytes is None:
            return None
        length, count = format_capacity(self.active_range_length_bytes), self._segments
        return length if count == 1 else f"{length} in {format_count(count, 'segment')}"

    @property
    def active_range_place(self) -> str | None:
        """Return ``active_range_text`` with the place of the range. For segments, this includes the data from which
        their places can be drawn again.
        """
        if self._segments == 1:
            offset_bytes = self.active_range_offset_bytes
            return None if offset_bytes is None else f"{self.active_range_text} from byte {offset_bytes}"
        words = [f"{self.active_range_text} at random places"]
        drawn = self.device.get("segments")
        if isinstance(drawn, dict):
            words += [
                f"seed {drawn.get('seed')} (layout {drawn.get('layout')})",
                f"SHA-256 {str(drawn.get('sha256'))[:16]}",
                f"by {self.device.get('layer')}",
            ]
        return ", ".join(words)

    @property
    def _segments(self) -> int:
        count = self.table("active_range").get("segments")
        return count if isinstance(count, int) else 1

    @property
    def preconditioned_length_bytes(self) -> int | None:
        """Return the length of the range that preconditioning writes; None: not known."""
        length = self.table("preconditioning").get("length")
        return self.active_range_length_bytes if length is None else parse_size_bytes(str(length))

    @property
    def preconditioned_range(self) -> str:
        """Return ``the active range``, or ``the first 80 % of the device``."""
        capacity_bytes, length_bytes = (self.device.get("capacity_bytes"), self.preconditioned_length_bytes)
        if self.table("preconditioning").get("length") is None or length_bytes is None:
            return "the active range"
        if not isinstance(capacity_bytes, int) or not capacity_bytes:
            return f"the first {format_capacity(length_bytes)} of the device"
        return f"the first {100 * length_bytes / capacity_bytes:.3g} % of the device"

    @property
    def imported(self) -> bool:
        """Return whether another tool made the measurement. Values that this tool did not record are not known."""
        return self.device.get("kind") == IMPORTED
