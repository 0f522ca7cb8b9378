"""Procedure of each test in words, with the numbers of the run's own profile."""

from __future__ import annotations

from tkperf.model.errors import ProfileError
from tkperf.model.run_info import RunInfo
from tkperf.page.preconditioning import describe_fill
from tkperf.procedures import find_test, read_stored_profile
from tkperf.procedures.descriptor import Circumstances


def describe_procedure(info: RunInfo, test: str) -> str:
    """Return the test's steps, line by line; empty if its table is not known in full."""
    definition = find_test(info.suite, test, info.profile)
    if definition is None:
        return ""
    circumstances = Circumstances(
        purge=None if info.options.get("no_purge") else "Purge",
        filled=lambda load, passes: describe_fill(info, load, passes=passes),
    )
    try:
        return "\n".join(definition.describe(read_stored_profile(info.profile), circumstances))
    except ProfileError:  # an imported run: only some of its numbers are known
        return ""
