import os
import shutil
import signal
import stat
from pathlib import Path

import pytest

from tkperf.analysis.batch_verdict import exit_code_of
from tkperf.batch.ledger import (
    DriveBegan,
    DriveEnded,
    DrivesConfirmed,
    Ledger,
    LedgerNote,
    append_end,
    find_start,
    read_batch,
    read_log,
)
from tkperf.batch.request import BatchDrive, BatchRequest
from tkperf.model.batch_state import BatchPlace, DriveShown, DriveStage
from tkperf.model.errors import ExitCode, RefusedError, RunFileError
from tkperf.model.record import RunStatus
from tkperf.model.sharing import SharingState
from tkperf.page.batch.batch_progress import build_batch_progress
from tkperf.pipeline.run_request import RunRequest

MODULE = "tkperf.batch.ledger"


def request_of(count: int = 3) -> BatchRequest:
    return BatchRequest(
        name="rack",
        claims="[[claim]]",
        drives=tuple(
            BatchDrive(
                name=f"rack-{number:02}",
                request=RunRequest(suite="ssd", device=f"/dev/sd{'abcdef'[number]}", jobs=4),
                given=f"SERIAL{number}",
                slot=f"bay {number}",
            )
            for number in range(1, count + 1)
        ),
    )


def shown(number: int) -> DriveShown:
    return DriveShown(
        number=number,
        name=f"rack-{number:02}",
        path=f"/dev/sd{'abcdef'[number]}",
        capacity_bytes=10**9,
        serial=f"SERIAL{number}",
        confirm_id=f"SERIAL{number}",
    )


def began(number: int, pid: int = 1, pid_started: str | None = "never") -> DriveBegan:
    return DriveBegan(
        number=number,
        utc="2026-11-24T10:00:00+00:00",
        pid=pid,
        pid_started=pid_started,
        place=BatchPlace(name="rack7", number=number, others=2, sharing=SharingState.WITHIN_BUDGET, cpus=(2, 3)),
    )


def ended(number: int, code: int, text: str = "") -> DriveEnded:
    return DriveEnded(number=number, utc="2026-11-24T11:00:00+00:00", pid=1, exit_code=code, text=text)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "rack.batch", request_of(), ("tkperf", "batch"))
    made.write(DrivesConfirmed(utc="2026-11-24T09:59:00+00:00", drives=tuple(map(shown, (1, 2, 3)))))
    return made


def test_the_ledger_is_for_its_owner_alone_and_keeps_the_request(ledger: Ledger) -> None:
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert read_log(ledger.path).begun.request == request_of()


def test_a_second_batch_of_the_name_is_refused(ledger: Ledger) -> None:
    with pytest.raises(RunFileError, match="tkperf resume"):
        Ledger.create(ledger.path, request_of(), ())


def test_only_one_process_goes_on_with_a_batch(ledger: Ledger) -> None:
    with pytest.raises(RunFileError, match="is still running"):
        Ledger.open(ledger.path)
    ledger.close()
    Ledger.open(ledger.path).close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_strangers_ledger_is_not_gone_on_with(ledger: Ledger) -> None:
    """A batch is not resumed from a ledger that belongs to another user, because the ledger may name a purge command,
    which root would run.
    """
    ledger.close()
    os.chown(ledger.path, 12345, -1)
    with pytest.raises(RefusedError, match="12345"):
        Ledger.open(ledger.path)
    assert read_batch(ledger.path).name == "rack"


def test_a_ledger_that_others_can_write_is_not_gone_on_with(ledger: Ledger) -> None:
    ledger.close()
    ledger.path.chmod(0o622)
    with pytest.raises(RefusedError, match="others can write"):
        Ledger.open(ledger.path)


def test_stages_while_the_batch_s_process_lives(ledger: Ledger) -> None:
    ledger.write(began(1, os.getpid(), find_start(os.getpid())))
    ledger.write(began(2))
    append_end(ledger.path, ended(2, 4, "the drive has gone"))
    state = read_batch(ledger.path)
    assert [drive.stage for drive in state.drives] == [DriveStage.RUNNING, DriveStage.FAILED, DriveStage.WAITING]
    assert state.drives[1].text == "the drive has gone"
    assert state.drives[1].exit_code == 4
    assert state.drives[0].place is not None
    assert state.drives[0].place.cpus == (2, 3)
    assert state.supervisor == os.getpid()
    assert state.is_under_way


def test_without_the_batch_s_process_consent_has_ended_for_drives_that_waited(ledger: Ledger) -> None:
    ledger.write(began(1))
    ledger.write(ended(1, 130, "stopped by the user"))
    ledger.write(began(2, os.getpid(), "another start"))
    ledger.close()
    state = read_batch(ledger.path)
    assert [drive.stage for drive in state.drives] == [DriveStage.STOPPED, DriveStage.KILLED, DriveStage.CONSENT_ENDED]
    assert state.supervisor is None
    assert not state.is_under_way


def test_a_drive_that_begins_again_has_not_ended(ledger: Ledger) -> None:
    ledger.write(began(1))
    ledger.write(ended(1, 130))
    ledger.write(began(1, os.getpid(), find_start(os.getpid())))
    assert read_batch(ledger.path).drives[0].stage is DriveStage.RUNNING


def test_a_drive_whose_run_has_failed_runs_until_its_process_has_noted_why(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULE}._status_of", lambda _: RunStatus.FAILED)
    ledger.write(began(1, os.getpid(), find_start(os.getpid())))
    assert read_batch(ledger.path).drives[0].stage is DriveStage.RUNNING
    append_end(ledger.path, ended(1, 5, "fio failed"))
    assert read_batch(ledger.path).drives[0].stage is DriveStage.FAILED


def test_a_process_that_ends_while_the_ledger_is_read_was_not_killed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(_: int) -> None:
        append_end(ledger.path, ended(1, 5, "fio failed"))

    ledger.write(began(1))
    monkeypatch.setattr(f"{MODULE}.find_start", end)
    drive = read_batch(ledger.path).drives[0]
    assert (drive.stage, drive.text) == (DriveStage.FAILED, "fio failed")


@pytest.mark.parametrize("torn", [1, 5, 60, 1000])
def test_a_torn_line_costs_itself_alone(ledger: Ledger, torn: int) -> None:
    ledger.write(LedgerNote(text="x" * 2000))
    content = ledger.path.read_bytes()
    ledger.path.write_bytes(content[:-torn])
    append_end(ledger.path, ended(1, 5, "fio failed"))
    log = read_log(ledger.path)
    assert log.ended[1].text == "fio failed"
    assert len(log.shown) == 3


@pytest.mark.parametrize(
    "content", [b"", b"\0\xff", b"{}", b'{"type":"note","text":"a"}\n', b'{"type":"batch"}', b"[" * 9999]
)
def test_a_file_that_is_no_ledger_is_an_error_with_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.batch"
    path.write_bytes(content)
    with pytest.raises(RunFileError, match=r"x\.batch"):
        read_batch(path)


def test_a_ledger_of_a_later_format_is_refused(ledger: Ledger) -> None:
    ledger.path.write_text(ledger.path.read_text().replace('"format":1', '"format":2'))
    with pytest.raises(RunFileError, match="newer"):
        read_log(ledger.path)


def test_a_missing_or_endless_ledger_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.batch", Path("/dev/zero"), tmp_path):
        with pytest.raises(RunFileError, match="cannot read"):
            read_batch(path)


def test_the_digest_covers_everything_shown() -> None:
    import msgspec

    plain = shown(1)
    digests = {plain.digest}
    for change in (
        {"path": "/dev/sdz"},
        {"serial": "other"},
        {"capacity_bytes": 1},
        {"model": "M"},
        {"wwn": "0x5"},
        {"data": ("ext4",)},
        {"confirm_id": "other"},
        {"number": 2},
        {"slot": "9"},
        {"firmware": "F"},
        {"name": "n"},
        {"link": "x4"},
        {"host": "h"},
    ):
        digests.add(msgspec.structs.replace(plain, **change).digest)
    assert len(digests) == 14


def test_a_line_that_is_cut_by_a_full_disk_is_an_error(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda *_: 5)
    with pytest.raises(RunFileError, match="No space left"):
        ledger.write(LedgerNote(text="a long text"))


def test_a_ledger_whose_first_line_cannot_be_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", lambda *_: 5)
    with pytest.raises(RunFileError, match="No space left"):
        Ledger.create(tmp_path / "rack.batch", request_of(), ())
    assert not list(tmp_path.iterdir())


def test_a_drive_s_end_goes_into_no_other_file_that_has_the_ledger_s_name(tmp_path: Path) -> None:
    other, path = tmp_path / "other", tmp_path / "rack.batch"
    other.write_text("of someone")
    for take_name in (path.hardlink_to, path.symlink_to):
        take_name(other)
        append_end(path, ended(1, 4))
        path.unlink()
    os.mkfifo(path)
    append_end(path, ended(1, 4))  # opening the FIFO does not wait for a reader
    assert other.read_text() == "of someone"


def test_an_impossible_request_is_a_damaged_first_line(ledger: Ledger) -> None:
    ledger.path.write_text(ledger.path.read_text().replace('"name":"rack-02"', '"name":"../x"'))
    with pytest.raises(RunFileError, match="damaged"):
        read_log(ledger.path)


def test_a_drive_whose_process_has_ended_does_not_run_though_nobody_asked_for_its_end(ledger: Ledger) -> None:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    start = find_start(pid)
    assert start is not None
    os.kill(pid, signal.SIGKILL)
    while find_start(pid) is not None:
        pass
    ledger.write(began(1, pid, start))
    assert read_batch(ledger.path).drives[0].stage is DriveStage.KILLED
    os.waitpid(pid, 0)


def test_a_drive_whose_process_has_gone_before_its_turn_says_why(ledger: Ledger) -> None:
    """If the process of a drive was killed while the drive waited for its turn, the ledger records the reason. The exit
    code of the batch is then the code of a stopped run.
    """
    ledger.write(ended(3, 137, "its process was killed by signal 9"))
    state = read_batch(ledger.path)
    third = state.drives[2]
    assert (third.stage, third.text) == (DriveStage.KILLED, "its process was killed by signal 9")
    assert exit_code_of(state) == ExitCode.STOPPED


def test_a_drive_whose_run_file_has_gone_since_says_so(ledger: Ledger) -> None:
    ledger.write(began(1))
    ledger.write(ended(1, 0))
    (first, *_) = read_batch(ledger.path).drives
    assert (first.stage, first.exit_code) == (DriveStage.FAILED, 6)
    assert "rack-01.tkperf is missing or damaged" in first.text


def test_a_full_disk_is_reported_while_a_drive_runs(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full while a drive is measured, the batch reports this, because a run file that cannot be written
    does not show the end of the run.
    """
    ledger.write(began(1, pid=os.getpid(), pid_started=find_start(os.getpid())))
    assert read_batch(ledger.path).notes == ()
    usage = shutil.disk_usage(ledger.path)._replace(free=4096)
    monkeypatch.setattr(f"{MODULE}.shutil.disk_usage", lambda _: usage)
    state = read_batch(ledger.path)
    (note,) = state.notes
    assert "is full" in note
    assert note in [remark.text for remark in build_batch_progress(state, {}).remarks]
    ledger.write(ended(1, 130))
    assert read_batch(ledger.path).notes == ()


def test_a_pipe_is_no_ledger_to_go_on_with(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "rack.batch")
    with pytest.raises(RunFileError, match="not a regular file"):
        Ledger.open(path)
