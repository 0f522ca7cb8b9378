"""The test suites on drives of every bus, with the real drivers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lab.cases.conftest import Drive, measure

MIB = 1 << 20
RANGE_BYTES = 64 * MIB


ALL = ("iops", "lat", "tp", "writesat")


def check_everything_measured(results: dict[str, Any], drive: Drive, names: tuple[str, ...] = ALL) -> None:
    """Check that the tests are complete, that every cell contains numbers, and that the drive is described."""
    assert results["status"] == "complete"
    tests = results["tests"]
    assert isinstance(tests, list)
    assert [test["name"] for test in tests] == list(names)
    for test in tests:
        for section in test["sections"]:
            assert section["cells"]
            assert all(cell["all"]["iops"] > 0 and cell["all"]["ios"] > 0 for cell in section["cells"])
            assert section["filled_bytes"] in (None, 2 * RANGE_BYTES)
    device = results["info"]["device"]
    assert device["serial"] == drive.serial
    assert device["capacity_bytes"] == drive.size_bytes


# In the core cases, the SATA drive runs one of the four tests. An NVMe drive runs the iops test in test_purge.py.
def test_nvme(nvme: Drive, tmp_path: Path) -> None:
    """An NVMe drive is purged with Format NVM, and the purge is verified. The write cache of the drive is off during
    the run and on again afterwards.
    """
    results = measure(tmp_path, nvme)
    check_everything_measured(results, nvme)
    device = results["info"]["device"]
    assert device["interface"] == "NVMe"
    assert device["link"] == "PCIe gen 1 x1"
    assert device["sources"]["link"].startswith("sysfs")
    assert device["write_cache_in_run"] == "off, set for the run (was on)"
    purge = results["tests"][0]["sections"][0]["purge"]
    assert purge["method"].startswith("NVMe Format NVM, user data erase")
    assert purge["note"] == "verified: all 128 samples read as zeros"


@pytest.mark.core
def test_sata(sata: Drive, tmp_path: Path) -> None:
    """A SATA drive on AHCI is purged with discard, because it supports neither security erase nor sanitize. One test is
    enough, because the layers above the driver treat all drives in the same way.
    """
    results = measure(tmp_path, sata, "-ssdt", "lat")
    check_everything_measured(results, sata, ("lat",))
    device = results["info"]["device"]
    assert device["interface"] == "SATA"
    assert device["link"] == "SATA 1.5 Gbit/s"
    assert device["security"] == "ATA security not supported"
    assert device["write_cache_in_run"] == "off, set for the run (was on)"
    assert sata.sysfs("queue/write_cache") == "write back"


def test_sas(sas: Drive, tmp_path: Path) -> None:
    """A SAS drive behind an mptsas adapter is measured. One test is enough, because the layers above the driver treat
    all drives in the same way.
    """
    results = measure(tmp_path, sas, "-ssdt", "tp")
    check_everything_measured(results, sas, ("tp",))
    device = results["info"]["device"]
    assert device["interface"] == "SAS"
    assert device["link"].startswith("SAS ")
    assert sas.sysfs("queue/write_cache") == "write back"
