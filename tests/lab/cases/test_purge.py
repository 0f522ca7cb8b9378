"""Each purge method on each emulated bus that supports it. The data is erased, and the report names the method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lab.cases.conftest import Drive, measure, tkperf
from tests.lab.cases.test_suites import check_everything_measured

ONLY_WRITE_SATURATION = ("-ssdt", "writesat", "-rt", "1")


def purge_note(results: dict[str, Any]) -> tuple[str, str]:
    purge = results["tests"][0]["sections"][0]["purge"]
    return purge["method"], purge["note"]


def purged(folder: Path, drive: Drive, method: str) -> tuple[str, str]:
    """Purge a drive that is full of data. Return the method and the finding that the report contains."""
    drive.write_pattern()
    assert not drive.is_zero()
    return purge_note(measure(folder, drive, *ONLY_WRITE_SATURATION, "--purge", method))


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("nvme-format", "NVMe Format NVM, user data erase"),
        ("discard", "block discard"),
        ("write-zeroes", "zeroes written"),
    ],
)
def test_nvme(nvme: Drive, tmp_path: Path, method: str, says: str) -> None:
    """An NVMe drive is purged with every method for which its controller reports support. Each purge is verified."""
    title, note = purged(tmp_path, nvme, method)
    assert title.startswith(says)
    assert "verified" in note


@pytest.mark.core
def test_nvme_4kn_keeps_its_lba_format(nvme_4kn: Drive, tmp_path: Path) -> None:
    """Format NVM keeps the LBA format of a 4Kn namespace. Cells of 512 bytes are left out with a warning."""
    nvme_4kn.write_pattern()
    results = measure(tmp_path, nvme_4kn, "-ssdt", "iops")
    title, note = purge_note(results)
    assert "kept" in title
    assert note == "verified: all 128 samples read as zeros"
    assert nvme_4kn.sysfs("queue/logical_block_size") == "4096"
    check_everything_measured(results, nvme_4kn, ("iops",))
    cells = results["tests"][0]["sections"][0]["cells"]
    sizes = {cell["workload"]["block_size_bytes"] for cell in cells}
    assert sizes == {4096}
    assert any("512" in warning["text"] or "0.5" in warning["text"] for warning in results["warnings"])


@pytest.mark.parametrize("method", ["discard", "write-zeroes"])
def test_sata(sata: Drive, tmp_path: Path, method: str) -> None:
    """A SATA drive is purged with TRIM, or with zeros if the user asks for zeros."""
    _, note = purged(tmp_path, sata, method)
    assert "verified" in note


@pytest.mark.parametrize("method", ["discard", "write-zeroes"])
def test_scsi(scsi: Drive, tmp_path: Path, method: str) -> None:
    """A SCSI drive behind virtio is purged with UNMAP, or with zeros if the user asks for zeros."""
    _, note = purged(tmp_path, scsi, method)
    assert "verified" in note


@pytest.mark.parametrize("method", ["discard", "write-zeroes", "scsi-format"])
def test_sas(sas: Drive, tmp_path: Path, method: str) -> None:
    """A SAS drive is purged with UNMAP, with zeros or with Format Unit. If the emulation does not execute Format Unit,
    tkperf notices the remaining data.
    """
    sas.write_pattern()
    ended = tkperf(
        "ssd",
        "case",
        sas.path,
        "--output",
        tmp_path,
        "--yes-destroy",
        sas.serial,
        "--profile",
        Path(__file__).parent / "lab.toml",
        *ONLY_WRITE_SATURATION,
        "--purge",
        method,
        "--progress",
        "plain",
    )
    if method != "scsi-format":
        assert ended.status == 0, ended.stderr
    else:
        assert ended.status in (0, 4), ended.stderr
        if ended.status == 4:
            assert "still contains its data after SCSI Format Unit" in ended.stderr


@pytest.mark.core
def test_a_format_that_erases_nothing_ends_the_test(scsi: Drive, tmp_path: Path) -> None:
    """If a format erases nothing, the test ends. The emulated SCSI disk reports success although it keeps its data, so
    tkperf reads the data and finds it unchanged.
    """
    scsi.write_pattern()
    ended = tkperf(
        "ssd",
        "case",
        scsi.path,
        "--output",
        tmp_path,
        "--yes-destroy",
        scsi.serial,
        "--profile",
        Path(__file__).parent / "lab.toml",
        *ONLY_WRITE_SATURATION,
        "--purge",
        "scsi-format",
        "--progress",
        "plain",
    )
    assert ended.status == 4
    assert "still contains its data after SCSI Format Unit" in ended.stderr
    assert not scsi.is_zero()


@pytest.mark.core
def test_security_erase_is_not_offered_without_the_claim(sata: Drive, tmp_path: Path) -> None:
    """Security erase is refused for a drive that does not report support for it, because hdparm would exit with status
    0 and erase nothing.
    """
    ended = tkperf(
        "ssd", "case", sata.path, "--output", tmp_path, "--yes-destroy", sata.serial, "--purge", "ata-security-erase"
    )
    assert ended.status == 2
    assert "claims no security feature set" in ended.stderr


def test_usb_without_discard_needs_a_word(usb: Drive, tmp_path: Path) -> None:
    """If a USB stick cannot be purged, it is refused, and the message proposes --no-purge. With this option, the stick
    is measured.
    """
    ended = tkperf("ssd", "case", usb.path, "--output", tmp_path, "--yes-destroy", usb.serial)
    assert ended.status == 4
    assert "--no-purge" in ended.stderr
    results = measure(tmp_path, usb, *ONLY_WRITE_SATURATION, "--no-purge")
    assert purge_note(results)[0] == "none"
    notices = results["info"]["notices"]
    assert any("NOT PURGED" in notice for notice in notices)


def test_a_vendors_command(nvme: Drive, tmp_path: Path) -> None:
    """A vendor's tool can be used with --purge-command. The result of the tool is verified in the same way as every
    purge.
    """
    nvme.write_pattern()
    results = measure(tmp_path, nvme, *ONLY_WRITE_SATURATION, "--purge-command", "blkdiscard -z {device}")
    assert purge_note(results) == ("command 'blkdiscard -z {device}'", "verified: all 128 samples read as zeros")


def test_a_vendors_command_that_does_nothing(nvme: Drive, tmp_path: Path) -> None:
    """If a vendor's tool reports success but erases nothing, the test ends."""
    nvme.write_pattern()
    ended = tkperf(
        "ssd",
        "case",
        nvme.path,
        "--output",
        tmp_path,
        "--yes-destroy",
        nvme.serial,
        "--purge-command",
        "echo erased {device}",
    )
    assert ended.status == 4
    assert "still contains its data" in ended.stderr
