"""A search for users of a device reports an error if too few file descriptors are available. Otherwise the search would
find no user, and a used device would seem unused.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tkperf.device.identity import read_identity
from tkperf.device.safety import find_objections
from tkperf.device.survey import FREE_DESCRIPTORS_TO_LOOK, FREE_DESCRIPTORS_TO_START
from tkperf.model.errors import EngineError


@pytest.mark.parametrize("held", [False, True])
def test_a_look_that_lacks_descriptors_is_an_error(held: bool, tmp_path: Path) -> None:
    """If the limit of open files is below the number that the search needs, the search reports an error. If the limit
    is equal to this number or higher, the search reports no error.
    """
    path = tmp_path / "a.img"
    path.write_bytes(bytes(1 << 20))
    # The search runs in a separate process, because threads of other tests may open files at any moment.
    subprocess.run([sys.executable, __file__, str(path), *(["held"] if held else [])], check=True)


def _look_below_every_limit(path: Path, held: bool) -> None:
    """Search for the users of a file several times: once with each number of free descriptors, from 0 to two more than
    needed.
    """
    identity = read_identity(path)
    needed = FREE_DESCRIPTORS_TO_LOOK if held else FREE_DESCRIPTORS_TO_START
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    descriptor = os.open(path, os.O_RDONLY)
    taken = [os.dup(0)]
    # The dup calls fill the gaps between the open descriptors, so that no number below the highest one is free.
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    while taken[-1] < highest:
        taken.append(os.dup(0))
    for free in range(needed + 3):
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + free, hard_limit))
        if free >= needed:
            find_objections(identity, held=descriptor if held else None)
            continue
        with pytest.raises(EngineError, match=f"needs {needed} more open files"):
            find_objections(identity, held=descriptor if held else None)


if __name__ == "__main__":
    _look_below_every_limit(Path(sys.argv[1]), "held" in sys.argv[2:])
