"""All nodes of a drive count as the target, including the nodes of another path to the same drive."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tkperf.device.usage.target_nodes import find_target_nodes

WWID = "naa.5000c500a1b2c3d4"


@pytest.fixture
def two_paths(tmp_path: Path) -> Path:
    """Return a /sys with a drive that the kernel shows as sda and sdb, and with another drive sdc. Each disk has a
    partition.
    """
    for position, (disk, wwid) in enumerate({"sda": WWID, "sdb": WWID, "sdc": "naa.5000c500ffffffff"}.items()):
        folder = tmp_path / "devices" / disk
        for node, minor in ((folder, 16 * position), (folder / f"{disk}1", 16 * position + 1)):
            node.mkdir(parents=True)
            (node / "dev").write_text(f"8:{minor}\n")
            link = tmp_path / "dev/block" / f"8:{minor}"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(node)
        (folder / f"{disk}1/partition").write_text("1\n")
        (folder / "device").mkdir()
        (folder / "device/wwid").write_text(f"{wwid}\n")
        (tmp_path / "block").mkdir(exist_ok=True)
        (tmp_path / "block" / disk).symlink_to(folder)
    return tmp_path


@pytest.mark.parametrize("target", ["8:0", "8:1"], ids=["disk", "partition"])
def test_the_partitions_of_another_path_are_part_of_the_target(two_paths: Path, target: str) -> None:
    """If sda and sdb are the same drive, a use of a partition of sdb is a use of sda. sdc is another drive."""
    found = find_target_nodes(target, (), two_paths)
    assert {node.name for node in found.devices} == {"sda", "sda1", "sdb", "sdb1"}
    assert found.name_of_device(os.makedev(8, 17)) == "sdb1"
    assert found.name_of_device(os.makedev(8, 33)) is None
