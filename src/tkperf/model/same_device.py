"""A comparison of two readings of a device's facts. Every comparison uses the same table of facts.

The page docs/how-to/resume.md contains the same list of facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tkperf.model.errors import DeviceError
from tkperf.model.units import format_capacity

Facts = Mapping[str, object]
_FILE = "file"
# Prefixes of world-wide names that are unique to a device. A name of the kind t10 consists of the model and the serial
# number, which may be the same for the two bays of a dock.
_UNIQUE = ("naa.", "eui.", "uuid.", "nvme.", "0x")


class When(StrEnum):
    """The occasion of a comparison: within a run, or when a run is resumed."""

    WITHIN_RUN = "within a run"
    AT_RESUME = "at resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFact:
    """A fact that distinguishes two devices.

    Attributes:
        name: the name of the fact in ``DeviceIdentity`` and in the run file.
        words: the name of the fact in messages.
        within_run: whether the fact is compared within a run, from the question for consent to the last write. Numbers
            that the kernel assigns do not change during this time.
        at_resume: whether the fact is compared when a run is resumed. The host may have been booted, or may be another
            host.
        may_be_unknown: whether a resumption omits the comparison if the run file records the fact as not known.
    """

    name: str
    words: str
    within_run: bool = True
    at_resume: bool = True
    may_be_unknown: bool = False


COMPARED = (
    ComparedFact(name="kind", words="kind"),
    ComparedFact(name="capacity_bytes", words="capacity"),
    ComparedFact(name="logical_block_bytes", words="sector", within_run=False, may_be_unknown=True),
    ComparedFact(name="serial", words="serial number", may_be_unknown=True),
    ComparedFact(name="wwn", words="world-wide name", may_be_unknown=True),
    ComparedFact(name="model", words="model", within_run=False, may_be_unknown=True),
    ComparedFact(name="firmware", words="firmware", within_run=False, may_be_unknown=True),
    ComparedFact(name="unit", words="unit"),
    ComparedFact(name="partition", words="partition"),
    ComparedFact(name="partition_start_bytes", words="start of the partition in bytes"),
    ComparedFact(name="mapping_uuid", words="UUID of the mapping"),
    ComparedFact(name="mapping_name", words="name of the mapping", within_run=False),
    ComparedFact(name="inode", words="inode"),
    ComparedFact(name="birth_time_ns", words="time when the file was made (ns)"),
    ComparedFact(name="beneath", words="drives and files that it uses", within_run=False),
    ComparedFact(name="path", words="path", within_run=False),
    ComparedFact(name="backing", words="file or file system behind it", within_run=False),
    ComparedFact(name="loop_backing", words="file or device behind it", at_resume=False),
    ComparedFact(name="major_minor", words="device number", at_resume=False),
    ComparedFact(name="disk_sequence", words="disk sequence number", at_resume=False),
)


def require_same_device(recorded: Facts, now: Facts) -> None:
    """Check that a device is the same device that a run used.

    Args:
        recorded: the facts about the run's device, as the run file contains them.
        now: the present facts of the device.

    Raises:
        DeviceError: the device is another device, or has changed. The text of the error contains the differences.
    """
    differences = tuple(find_differences(recorded, now, When.AT_RESUME))
    if differences:
        raise DeviceError(
            f"{now.get('path')} is not the device of the run, or has changed since the run: {'; '.join(differences)}. "
            "If the device of the run has another name now, run: tkperf resume RUN_FILE DEVICE"
        )


def find_differences(before: Facts, now: Facts, when: When) -> Iterator[str]:
    """Yield a text for each difference between two readings of a device's facts. If both readings describe the same
    device, the function yields no text.
    """
    if before.get("kind") != now.get("kind"):
        yield f"a {now.get('kind')}, not a {before.get('kind')}"
        return
    for fact in COMPARED:
        if when is When.WITHIN_RUN:
            if fact.within_run and before.get(fact.name) != now.get(fact.name):
                yield _describe(fact, before, now)
        elif fact.at_resume and _differs_at_resume(fact, before, now):
            yield _describe(fact, before, now)


def _differs_at_resume(fact: ComparedFact, before: Facts, now: Facts) -> bool:
    then, here = _without_boot_part(fact.name, before), _without_boot_part(fact.name, now)
    if then == here or _is_identified_better(fact.name, before):
        return False
    if then is None and fact.may_be_unknown:
        # If the first reading contained neither serial number nor world-wide name, and the drive reports such a name
        # now, the drive may be another drive.
        return fact.name in ("serial", "wwn") and not (before.get("serial") or before.get("wwn"))
    return True


def _without_boot_part(name: str, facts: Facts) -> object:
    """Return a fact without the part that may change when the host is booted. Lists and tuples are returned as lists,
    because the run file stores facts as JSON, which has no tuples.
    """
    value = facts.get(name)
    if isinstance(value, list | tuple):
        # When the host is booted, the kernel may assign other numbers to file systems.
        return value[-1] if name == "inode" and value else list(value) or None
    return value


def _is_identified_better(name: str, before: Facts) -> bool:
    """Return whether another fact identifies the device more reliably. In this case, this fact may change."""
    is_file = before.get("kind") == _FILE
    has_number = bool(before.get("serial") or before.get("wwn") or before.get("mapping_uuid"))
    match name:
        case "path" | "backing":
            named = before.get("mapping_name") or before.get("beneath")
            return is_file or has_number or bool(named)
        case "mapping_name":
            return bool(before.get("mapping_uuid"))
        case "unit":
            return is_unique_name(before.get("wwn"))
    return False


def is_unique_name(wwn: object) -> bool:
    """Return whether a world-wide name has a form that is unique to each drive."""
    return str(wwn or "").startswith(_UNIQUE)


def _describe(fact: ComparedFact, before: Facts, now: Facts) -> str:
    then, here = _without_boot_part(fact.name, before), _without_boot_part(fact.name, now)
    if fact.name not in before:
        return f"an older tkperf wrote the run file, which does not contain the {fact.words}: start a new run"
    if fact.name == "capacity_bytes" and isinstance(then, int) and isinstance(here, int):
        sizes = [format_capacity(then), format_capacity(here)]
        if sizes[0] == sizes[1]:
            sizes = [f"{then} bytes", f"{here} bytes"]
        return f"it has {'grown' if here > then else 'shrunk'} from {sizes[0]} to {sizes[1]}"
    if fact.name == "inode":
        return f"it is another file (inode {here}, not {then})"
    if fact.name == "birth_time_ns":
        return f"it is another file ({fact.words}: {_word(here)}, not {_word(then)})"
    if fact.name == "beneath":
        return f"it uses {_word(here)}, not {_word(then)}"
    return f"{fact.words} {_word(here)}, not {_word(then)}"


def _word(value: object) -> str:
    if isinstance(value, list | tuple):
        return " and ".join(map(str, value)) or "nothing known"
    return "not known" if value is None else str(value)


def find_measured_part(facts: Facts) -> tuple[object, ...] | None:
    """Return the facts that identify the measured part of a drive, for the comparison of results. None means that the
    serial number is not known.

    The firmware, path and host are not among these facts, because they may differ between results of the same drive.
    """
    serial = facts.get("serial")
    if not serial:
        return None
    return (serial, *(facts.get(name) for name in ("unit", "partition", "partition_start_bytes")))
