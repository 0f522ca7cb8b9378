"""The reason why segments are mapped (docs/adr/0027): two features of fio also restrict I/O to parts of a file, but
neither of them is sufficient.

If a later version of fio changes one of these features, the decision should be reviewed.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.fio
MIB = 1 << 20
IOS = 4000


def run_fio(folder: Path, *options: str) -> tuple[list[int], str]:
    """Return the addresses at which fio wrote 4 KiB blocks in a file of 1 GiB, in the order of the writes. Also return
    fio's error messages.
    """
    file, log = folder / "sparse", folder / "written"
    with file.open("wb") as out:
        out.truncate(1 << 30)
    words = [
        "fio",
        "--name=segments",
        f"--filename={file}",
        "--ioengine=libaio",
        "--direct=1",
        "--thread=1",
        "--rw=randwrite",
        "--bs=4k",
        "--iodepth=4",
        "--norandommap=1",
        "--randrepeat=0",
        f"--number_ios={IOS}",
        "--size=1g",
        f"--write_iolog={log}",
        *options,
    ]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=600)
    lines = [line.split() for line in log.read_text().splitlines()]
    return [int(line[-2]) for line in lines if "write" in line], done.stdout + done.stderr


def test_strided_zones_are_visited_in_order(tmp_path: Path) -> None:
    """With strided zones, fio visits the segments in order and not at random. All I/O is inside the segments, and the
    distances between segments are equal.
    """
    offsets, _ = run_fio(tmp_path, "--zonemode=strided", "--zonerange=1m", "--zonesize=4k", "--zoneskip=15m")
    assert len(offsets) == IOS
    assert all(offset % (16 * MIB) < MIB for offset in offsets)
    segments = [offset // (16 * MIB) for offset in offsets]
    assert all(later == (earlier + 1) % 64 for earlier, later in pairwise(segments))


def test_zones_by_size_are_a_hundred_at_most(tmp_path: Path) -> None:
    """fio accepts at most a hundred zones that are defined by size. If 128 segments are given, only 100 receive I/O,
    and the exit status of fio does not report this.
    """
    zones = ":".join(f"{1 if number < 100 else 0}/1m:0/7m" for number in range(128))
    offsets, _ = run_fio(tmp_path, f"--random_distribution=zoned_abs:{zones}")
    assert all(offset % (8 * MIB) < MIB for offset in offsets)
    assert len(Counter(offset // (8 * MIB) for offset in offsets)) == 100
    zones += ":0/1m"
    _, complaint = run_fio(tmp_path, f"--random_distribution=zoned_abs:{zones}")
    assert "hit max of 256 split entries" in complaint
