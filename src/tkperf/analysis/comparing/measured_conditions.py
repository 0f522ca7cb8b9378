"""Conditions under which a run was measured. The conditions are the used share of the drive, the preparation of the
drive, and the numbers of the profile.

A comparison lists the conditions that differ. A ranking ranks only values with equal conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tkperf.analysis.results import RunResult, SectionResult
from tkperf.procedures import find_test

_LARGEST_SECTOR_KIB = 4


def describe_share_of_range(result: RunResult) -> str | None:
    """Return the share of the capacity that the active range covers. Drives of different sizes are comparable if this
    share is the same.
    """
    capacity = result.info.device.get("capacity_bytes")
    length_bytes = result.info.active_range_length_bytes
    if not isinstance(capacity, int) or not capacity or length_bytes is None:
        return None
    return f"{100 * length_bytes / capacity:.3g} %"


def describe_write_cache(result: RunResult) -> str | None:
    """Return the state of the write cache during the run: ``on``, ``off``, or the reason why the state is not known."""
    value = result.info.device.get("write_cache_in_run")
    return str(value).split(",")[0] if value is not None else None


def find_numbers(result: RunResult, tests: Sequence[str]) -> dict[str, str]:
    """Return the part of the run's profile that these tests use. The keys are flat, such as ``iops.step_s``.

    The demand, the active range and the write cache are omitted, because a comparison uses the values that the run
    recorded instead.
    """
    lookups = (find_test(result.info.suite, name, result.info.profile) for name in tests)
    definitions = [test for test in lookups if test is not None]
    shared = dict.fromkeys(table.key for test in definitions for table in test.shared)
    numbers = {f"{key}.{name}": value for key in shared for name, value in _table(result, key)}
    for test in definitions:
        numbers |= {
            f"{table.key}.{name}": value
            for table in test.tables
            for name, value in _table(result, table.key)
            if name not in test.not_used
        }
    return numbers


def _table(result: RunResult, name: str) -> Iterator[tuple[str, str]]:
    for key, value in result.info.table(name).items():
        if key != "source":
            yield from _flat(key, value)


def _flat(key: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield each value of nested tables together with a flat key. The tables of a list are numbered from 1, as in
    ``phases.2.step_s``.
    """
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(f"{key}.{name}", inner)
    elif isinstance(value, list | tuple) and any(isinstance(inner, dict) for inner in value):
        for number, inner in enumerate(value, start=1):
            yield from _flat(f"{key}.{number}", inner)
    else:
        yield key, _text(value)


def _text(value: object) -> str:
    """Return a value as text. The numbers 1 and 1.0 result in the same text, and so do a list and a tuple with the same
    items.
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return "/".join(_text(item) for item in value)
    return str(value)


def describe_purge(result: RunResult, section: SectionResult) -> str | None:
    """Return the purge method of a section, or None if not known."""
    if section.purge is None:
        return None if result.info.imported else "none"
    return section.purge.method


def describe_preconditioning(result: RunResult, section: SectionResult) -> str | None:
    """Return the amount and the load of preconditioning, or None if not known.

    The amount is a multiple of the preconditioned range, as in the specifications.
    """
    if section.filled_bytes is None:
        return None if result.info.imported else "none"
    length_bytes = result.info.preconditioned_length_bytes
    if result.info.fills_members:
        amount = f"{_text(result.info.table('preconditioning').get('passes'))} × each member"
    elif not length_bytes:
        amount = f"{section.filled_bytes} bytes"
    else:
        amount = f"{section.filled_bytes / length_bytes:.1f} × {result.info.preconditioned_range}"
    return amount if section.fill_workload is None else f"{amount}, {section.fill_workload}"


def find_value_conditions(result: RunResult, test: str, section: SectionResult) -> dict[str, str | None]:
    """Return the conditions that must be equal before values of a section are ranked together. The keys are the names
    of the conditions. A value of None means that the condition is not known.

    The host is not one of the conditions, because a value that the host limited or disturbed is not ranked.
    """
    info = result.info
    purge = describe_purge(result, section)
    return {
        "test": test,
        "section": section.name,
        "kind of target": _known(info.device.get("kind")),
        "suite": info.suite,
        "I/O engine": _known(info.ioengine),
        "active range": describe_share_of_range(result),
        "write cache": describe_write_cache(result),
        # The purge method is not compared, because drives with different interfaces use different methods for the same
        # purpose.
        "purge": "done" if purge not in (None, "none") else purge,
        "preconditioning": describe_preconditioning(result, section),
        **{key: _without_sectors(key, text) for key, text in find_numbers(result, [test]).items()},
    }


def _without_sectors(key: str, text: str) -> str:
    """Return a list of block sizes without the sizes below 4 KiB, because a drive with sectors of 4 KiB cannot be
    measured with such block sizes.
    """
    if not key.endswith("block_sizes_kib"):
        return text
    return "/".join(size for size in text.split("/") if not _is_small(size))


def _is_small(size_kib: str) -> bool:
    try:
        return float(size_kib) < _LARGEST_SECTOR_KIB
    except ValueError:  # The run file of another user can contain any text.
        return False


def _known(value: object) -> str | None:
    return None if value is None else str(value)
