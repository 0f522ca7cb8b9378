"""Facts about a run that are known before the first I/O, and facts that the operator adds. Every result shows both
kinds of facts.
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
"""Names of facts that the operator may add, because tkperf cannot determine these facts on every drive and host."""
LONGEST_FACT = 1000
SIMULATED_NOTICE = "SIMULATED: these numbers come from a model, no device was measured"
"""The notice on every page of a result that was measured on a simulated drive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFacts:
    """The date of a report, and the facts that the operator adds.

    Attributes:
        report_date: date of the report. None means that the date is not shown.
        facts: the facts of the operator, keyed by the names in ``FACT_NAMES``.
    """

    report_date: str | None = None
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, name: str, known: str | None = None) -> str | None:
        """Return the value of a fact that tkperf knows, or the value that the operator gave if tkperf does not know the
        fact. If the two values differ, return both.
        """
        given = self.facts.get(name)
        if known is None or given is None:
            return known or given
        return known if known == given else f"{known} (the operator's: {given})"

    def with_those_of(self, info: RunInfo) -> UserFacts:
        """Return these facts together with the facts that the operator gave at the start of the run. If both contain
        the same name, the value in this object has priority.
        """
        return replace(self, facts={**dict(_readable_facts(info)), **self.facts})


NO_USER_FACTS = UserFacts()


def _readable_facts(info: RunInfo) -> Iterator[tuple[str, str]]:
    """Yield those facts of a run file that can be read. A damaged run file may contain other values."""
    facts = info.options.get("facts")
    for name, text in facts.items() if isinstance(facts, dict) else ():
        if name in FACT_NAMES and isinstance(text, str) and on_one_line(text):
            yield name, on_one_line(text)[:LONGEST_FACT]


def find_run_id(info: RunInfo) -> str:
    """Return the id of a run as 32 hexadecimal digits. The id is the UUID of the run, or a digest of the facts if the
    run file contains no UUID.
    """
    try:
        return UUID(info.uuid).hex
    except (TypeError, ValueError):
        facts = msgspec.json.encode((info.started_utc, info.seed, info.name, info.device), order="sorted")
        return hashlib.sha256(facts).hexdigest()[:32]


def parse_facts(texts: Iterable[str], file_text: str = "") -> dict[str, str]:
    """Parse facts of the form ``NAME=TEXT`` or ``NAME: TEXT``. Return each text under the name that reports use.

    Args:
        file_text: content of a file with a fact on each line. Lines that begin with # are comments. ``texts`` override
            these facts.

    Raises:
        UsageError: a text has another form, is too long, or contains a name that reports do not use.
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
    """Check the names and texts of facts. Return each text under the name that reports use.

    Raises:
        UsageError: reports do not use the name, or the text is missing or too long.
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


# The device kind in the run file of a measurement that another tool made.
IMPORTED = "imported result"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """All facts that are known about a run before the first I/O. Every result shows these facts.

    ``device`` and each entry of ``hosts`` are facts as plain data (name -> value, None = not known). ``profile`` is the
    whole profile as plain data, with the user's options applied. For an imported run, ``profile`` contains only the
    known parts. ``options`` are the settings of the user. ``seed`` is the seed of the run, from which the seeds of the
    fio jobs are drawn. None means that the seed is not known, or that no seed was used. ``uuid`` is the same in every
    copy of the run file and after every resumption. None means that the file was written by an older version.
    ``choices`` and ``alterations`` are the changes that the user's options made to the profile, each in the form
    ``runtime 60 s -> 1 s``. A choice changes a number that the specification leaves to the operator. An alteration
    changes a number that the specification prescribes. Every page of a result shows ``notices`` (quick profile, file
    target, SIMULATED).
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
        """Return the name of the specification for the headers of all outputs. The word "altered" in the name means
        that some numbers of the run differ from the numbers that the specification prescribes.
        """
        title = self.profile.get("title")
        if title is None:
            return None
        return f"{title}, altered" if self.alterations else str(title)

    @property
    def host(self) -> dict[str, object]:
        """Return the facts of the first host, to which the device is attached. If the host is not known, the result is
        empty.
        """
        return self.hosts[0] if self.hosts else {}

    @property
    def is_simulated(self) -> bool:
        """Return whether the run measured a simulated drive. No other process can reach a simulated drive, so no
        disturbances occur.
        """
        return self.ioengine == "simulated"

    @property
    def fills_members(self) -> bool:
        """Return whether the members of a RAID set were filled before the set was created. If not, the set itself was
        filled.
        """
        return self.suite == "raid" and self.device.get("preconditioned") == "members"

    @property
    def software(self) -> str:
        """Return the program that made the measurement, with the version. For an imported run, the result also contains
        the program that imported the run.
        """
        return self.tkperf_version if self.imported else f"tkperf {self.tkperf_version}"

    @property
    def command_text(self) -> str:
        """Return the command line, quoted for a shell. For an imported run, return the command line as the other tool
        recorded it.
        """
        words = self.command_line
        return " ".join(words) if self.imported else shlex.join(words)

    def table(self, name: str) -> dict[str, object]:
        """Return a table of the profile as plain data. The result is empty if the table is not known, as in an imported
        run.
        """
        table = self.profile.get(name)
        return table if isinstance(table, dict) else {}

    @property
    def active_range_text(self) -> str | None:
        """Return the size of the active range, such as ``17.2 GB`` or ``17.2 GB in 2,048 segments``. None means that
        the value is not known.
        """
        if self.active_range_length_bytes is None:
            return None
        length, count = format_capacity(self.active_range_length_bytes), self._segments
        return length if count == 1 else f"{length} in {format_count(count, 'segment')}"

    @property
    def active_range_place(self) -> str | None:
        """Return ``active_range_text`` with the place of the active range on the device. For segments, the result
        contains the data from which the same places can be drawn again.
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
        """Return the length of the range that preconditioning writes. None means that the value is not known."""
        length = self.table("preconditioning").get("length")
        return self.active_range_length_bytes if length is None else parse_size_bytes(str(length))

    @property
    def preconditioned_range(self) -> str:
        """Return the range that preconditioning writes, in words: ``the active range``, or
        ``the first 80 % of the device``.
        """
        capacity_bytes, length_bytes = (self.device.get("capacity_bytes"), self.preconditioned_length_bytes)
        if self.table("preconditioning").get("length") is None or length_bytes is None:
            return "the active range"
        if not isinstance(capacity_bytes, int) or not capacity_bytes:
            return f"the first {format_capacity(length_bytes)} of the device"
        return f"the first {100 * length_bytes / capacity_bytes:.3g} % of the device"

    @property
    def imported(self) -> bool:
        """Return whether another tool made the measurement. Values that the other tool did not record are not known."""
        return self.device.get("kind") == IMPORTED
