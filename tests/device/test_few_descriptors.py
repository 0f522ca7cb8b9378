"""Without descriptors, a search for users of a device would find none, and a used device would seem
unused.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from tkperf.device.identity import read_identity
from tkperf.device.safety import find_objections
from tkperf.device.survey import FREE_DESCRIPTORS_TO_LOOK, FREE_DESCRIPTORS_TO_START
from tkperf.model.errors import EngineError


@pytest.mark.parametrize("held", [False, True])
def test_a_look_that_lacks_descriptors_is_an_error(held: bool, tmp_path: Path) -> None:
    """Every limit below the number that the search needs gives an error. Every higher limit gives
    none.
    """
    path = tmp_path / "a.img"
    path.write_bytes(bytes(1 << 20))
    identity = read_identity(path)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = FREE_DESCRIPTORS_TO_LOOK if held else FREE_DESCRIPTORS_TO_START
    descriptor = os.open(path, os.O_RDONLY)
    taken = [os.dup(0)]
    # No free number below the highest one: other tests leave gaps.
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    while taken[-1] < highest:
        taken.append(os.dup(0))
    try:
        for free in range(needed + 3):
            resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + free, before[1]))
            if free >= needed:
                find_objections(identity, held=descriptor if held else None)
                continue
            with pytest.raises(EngineError, match=f"needs {needed} more open files"):
                find_objections(identity, held=descriptor if held else None)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for each in (*taken, descriptor):
            os.close(each)
