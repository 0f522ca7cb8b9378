"""The hard disk suite measures every area of a disk that reports rotation."""

from __future__ import annotations

import json
from pathlib import Path

from tests.lab.cases.conftest import Drive, tkperf


def test_hdd(sata: Drive, tmp_path: Path) -> None:
    """Both tests of the hard disk suite measure the areas in order from the start to the end of the disk. The suite
    does not purge the disk.
    """
    ended = tkperf(
        "hdd",
        "case",
        sata.path,
        "--profile",
        Path(__file__).parent / "lab.toml",
        "--yes-destroy",
        sata.serial,
        "--output",
        tmp_path,
    )
    assert ended.status == 0, ended.stderr
    results = json.loads(tkperf("show", "--json", tmp_path / "case.tkperf").stdout)
    assert results["info"]["device"]["rotational"] is True
    iops, throughput = results["tests"]
    assert iops["sections"][0]["areas"] == 3
    assert [area["number"] for area in iops["sections"][0]["rounds"]] == [1, 2, 3]
    assert throughput["sections"][0]["name"] == "Throughput by area 128k"
    assert all(section["purge"] is None for section in iops["sections"])
    assert all(cell["all"]["ios"] > 0 for cell in iops["sections"][0]["cells"])
