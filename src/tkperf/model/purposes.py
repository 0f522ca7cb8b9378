"""Purposes in names of jobs, files and sections: loads that prepare a device for the next measurement."""

from __future__ import annotations

import re

# "preconditioned" is the state of a drive afterwards.
_PURPOSES = {
    "precondition": r"pre[-_ ]?cond(?!\w*ed(?![a-z]))|(?<![a-z])wipc(?![a-z])|workload[-_ ]?independent",
    "fill": r"(?<![a-z])((pre|seq|rand|rnd|over)[-_ ]?)?fill(s|ing|up)?(?![a-z])",
    "warm-up": r"warm(ing)?[-_ ]?up|(?<![a-z])warm(?![a-z])",
    "purge": r"purge|saniti[sz]e|secure[-_ ]?erase|(?<![a-z])(wipe|discard|trim)(?![a-z])",
}
# The state before the load: "randwrite-after-precond", "post-fill", "no-trim".
_AFTERWARDS = r"(?<![a-z])(after|post|no|without)[-_ ].*"
# Workload-dependent preconditioning is the rounds that the PTS measures until they are steady.
_ROUNDS = r"(?<![a-z])wdpc(?![a-z])|workload[-_ ]?dependent"
# Conditions, not actions: "read-warm" next to "read-cold", "fill80-randwrite", "steady-trim".
_CONDITIONS = r"(?<![a-z])(warm(?![-_ ]?up)|trim|discard|wipe|fill(ed)?[-_ ]?\d+)(?![a-z])"
# Folders may also be named after drives and conditions: they give a purpose only if they contain nothing else.
_FOLDER = r"wipc|pre[-_ ]?condition(ing)?|(pre[-_ ]?)?fill|warm[-_ ]?up|purge"


def find_purposes(*names: str, folder: str = "") -> tuple[str, ...]:
    """Return the purposes that names give; empty: the load is itself a measurement."""
    lowered = [name.lower() for name in names]
    if any(re.search(_ROUNDS, name) for name in lowered):
        return ()
    if re.fullmatch(_FOLDER, folder.lower()):
        lowered.append(folder.lower())
    return tuple(purpose for purpose, pattern in _PURPOSES.items() if any(re.search(pattern, name) for name in lowered))


def prepares(*names: str, folder: str = "", writes: bool = True) -> bool:
    """Return whether the load with these names prepares the device; a name of the device's state is not enough.

    Args:
        writes: the load writes. A load without writes fills and preconditions nothing; it can warm up a cache.
    """
    purposes = find_purposes(
        *(re.sub(f"{_AFTERWARDS}|{_CONDITIONS}", "", name.lower(), flags=re.DOTALL) for name in names), folder=folder
    )
    return bool(purposes) and (writes or "warm-up" in purposes)
