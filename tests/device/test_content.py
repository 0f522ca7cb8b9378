"""Whatever changes on a device after it was shown is noticed before the first write, whether it is recognised or not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import run_tool
from tests.device.test_file_map import loop_on
from tkperf.device.content import WriteMarks, describe_write, read_content
from tkperf.device.identity import read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.model.errors import RefusedError
from tkperf.pipeline.consent import Consent, Question, permitted

MIB = 1 << 20
MakeLoop = Callable[..., Path]
# Between two samples.
BETWEEN = 32 * MIB + 8192


def write(path: Path, place: int = BETWEEN) -> None:
    with path.open("r+b", buffering=0) as file:
        file.seek(place)
        file.write(os.urandom(4096))


def open_while(path: Path, act: Callable[[], object]) -> None:
    """Answer the question about a target, and do something before the answer."""

    def ask(question: Question) -> str:
        act()
        return question.expected

    with permitted([read_identity(path)], Consent(ask=ask)) as (permit,):
        permit.recheck()


def with_old_times(path: Path) -> None:
    """As by a program that copies the times of a file, too."""
    status = path.stat()
    write(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("act", [write, with_old_times, lambda path: write(path, 0)])
def test_other_data_in_a_file_is_a_change(scratch: Path, act: Callable[[Path], object]) -> None:
    """Random bytes took the place of other bytes that nobody recognises, also between samples."""
    with pytest.raises(
        RefusedError, match=r"was written to since it was shown: .*Nothing was touched"
    ):
        open_while(scratch, lambda: act(scratch))


@pytest.mark.root
@pytest.mark.parametrize("through_file", [True, False])
def test_other_data_behind_a_loop_device_is_a_change(
    loop_device: MakeLoop, tmp_path: Path, through_file: bool
) -> None:
    """Data written to the device, or to the file behind the device, counts as a change."""
    device = loop_device()
    target = tmp_path / "loop0.img" if through_file else device
    with pytest.raises(RefusedError, match="was written to since it was shown: "):
        open_while(device, lambda: write(target))


@pytest.mark.root
def test_writes_to_a_block_device_are_counted(loop_device: MakeLoop) -> None:
    """The same bytes are written again between the samples, so only the kernel's counter shows the
    write.
    """
    under = loop_device()
    data = under.read_bytes()[BETWEEN : BETWEEN + 4096]

    def write_the_same() -> None:
        with under.open("r+b", buffering=0) as file:
            file.seek(BETWEEN)
            file.write(data)

    with loop_on(under) as device:
        with pytest.raises(RefusedError, match=r"the kernel counts 4\.1 kB written or discarded"):
            open_while(device, write_the_same)
        with pytest.raises(RefusedError, match="was written to since it was shown: "):
            open_while(
                device, lambda: run_tool("blkdiscard", "-o", "33554432", "-l", "4096", under)
            )


@pytest.mark.root
def test_what_only_reads_is_no_change(loop_device: MakeLoop, scratch: Path) -> None:
    """A program that reads the target while the question is open does not prevent the run."""
    device = loop_device()
    for target in (scratch, device):

        def read(target: Path = target) -> None:
            target.read_bytes()
            run_tool("wipefs", "--no-act", target)
            os.sync()

        open_while(target, read)


@pytest.mark.root
def test_a_write_after_the_answer_is_noticed_before_the_first_phase(
    loop_device: MakeLoop, scratch: Path
) -> None:
    """The first recheck compares again. After that the data is the run's own."""
    for target in (scratch, loop_device()):
        for begun in (False, True):
            identity = read_identity(target)
            permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem()
            try:
                if begun:
                    permit.recheck()
                write(target)
                if begun:
                    permit.recheck()
                else:
                    with pytest.raises(
                        RefusedError, match=r"was written to.*Nothing more is written"
                    ):
                        permit.recheck()
            finally:
                permit.release()


def test_a_new_name_after_the_answer_is_no_change_of_content(scratch: Path) -> None:
    """The confirmed file is measured, whatever its name is."""
    identity = read_identity(scratch)
    permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem()
    scratch.rename(scratch.with_name("moved"))
    permit.recheck()
    permit.release()


def test_counters_that_do_not_count_are_not_compared() -> None:
    """With iostats off, a device counts nothing. Samples and times then decide."""
    marks = WriteMarks(written_bytes=None)
    assert describe_write(marks, WriteMarks(written_bytes=5)) is None
    assert describe_write(WriteMarks(written_bytes=4), WriteMarks(written_bytes=5)) is not None


def test_a_drive_gives_its_samples_in_one_digest(tmp_path: Path) -> None:
    """The digest has the beginning, the end, and samples; data anywhere in them is not zero."""
    image = tmp_path / "image"
    subprocess.run(["truncate", "-s", "64M", image], check=True)
    digests = set()
    for place in (None, 0, 64 * MIB - 1, 64 * MIB // 1024 * 7):
        if place is not None:
            write_byte(image, place)
        descriptor = os.open(image, os.O_RDONLY)
        content = read_content(descriptor, read_identity(image))
        os.close(descriptor)
        digests.add(content.digest)
        assert content.is_zero is (place is None)
    assert len(digests) == 4


def test_a_few_bad_blocks_may_hold_data(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bad blocks do not prevent the measurement of a worn drive.

    A drive that cannot be read is refused.
    """
    scratch.write_bytes(bytes(64 * MIB))
    pread = os.pread

    def fail(bad: set[int]) -> Callable[[int, int, int], bytes]:
        def read(descriptor: int, count: int, place: int) -> bytes:
            if place // 65536 in bad:
                raise OSError(5, "Input/output error")
            return pread(descriptor, count, place)

        return read

    descriptor = os.open(scratch, os.O_RDONLY)
    try:
        monkeypatch.setattr("tkperf.device.content.os.pread", fail({500}))
        assert not read_content(descriptor, read_identity(scratch)).is_zero
        monkeypatch.setattr("tkperf.device.content.os.pread", fail({500, 501, 502, 503}))
        with pytest.raises(OSError, match="Input/output"):
            read_content(descriptor, read_identity(scratch))
    finally:
        os.close(descriptor)


def write_byte(path: Path, place: int) -> None:
    with path.open("r+b", buffering=0) as file:
        file.seek(place)
        file.write(b"x")
