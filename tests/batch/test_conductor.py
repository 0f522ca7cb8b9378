"""A confirmed batch whose processes measure nothing."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tkperf.batch.conductor import Conductor
from tkperf.batch.draft import DriveSelection
from tkperf.batch.drive_processes import Begun, Channel, DriveProcesses, Ended, Go, Held, Repeatable
from tkperf.batch.ledger import DriveBegan, DriveEnded, Ledger, Line, append_end, read_log
from tkperf.batch.neighbours import Neighbours
from tkperf.batch.request import BatchDrive, BatchRequest
from tkperf.model.batch_state import DriveShown, DriveStage
from tkperf.model.errors import DeviceError, RefusedError, RunFileError
from tkperf.model.sharing import DrivePath, SharingState
from tkperf.pipeline.run_request import RunRequest
from tkperf.system.host import now_utc

pytestmark = pytest.mark.usefixtures("plain_fork")
Behave = Callable[[int, Channel], int]


class Batch:
    """A batch of processes without real drives. Each process records its end in the ledger, as the process of a real
    drive does.
    """

    def __init__(self, folder: Path, behave: Behave, *, count: int = 2, parallel: int = 1) -> None:
        run = RunRequest(suite="ssd", device="sim:sata-ssd")
        drives = tuple(BatchDrive(name=f"b-{number}", request=run, given="") for number in range(1, count + 1))
        self.request = BatchRequest(name="b", drives=drives, parallel=parallel)
        self.path = folder / "b.batch"
        self.warnings: list[str] = []
        self.processes = DriveProcesses(range(1, count + 1), self._work(behave))
        self.processes.gather()

    def _work(self, behave: Behave) -> Callable[[int, Channel], NoReturn]:
        def work(number: int, channel: Channel) -> NoReturn:
            code = behave(number, channel)
            ended = DriveEnded(number=number, utc=now_utc(), pid=os.getpid(), exit_code=code)
            append_end(self.path, ended)
            channel.send(Ended(exit_code=code))
            os._exit(code)

        return work

    def conduct(self) -> Ledger:
        """Run the batch in this process until the batch ends. Return the open ledger of the batch."""
        held = [one.found for one in self.processes.members]
        neighbours = Neighbours(request=self.request, held=held, allowed=frozenset({0}), cores={})
        ledger = Ledger.create(self.path, self.request, ())
        selection = DriveSelection(request=self.request, numbers=tuple(one.number for one in self.processes.members))
        conductor = Conductor(selection, self.processes, neighbours, ledger, warn=self.warnings.append)
        while conductor.go_on(0.1):
            pass
        conductor.note_ends()
        return ledger


def hold(number: int, channel: Channel) -> Go:
    """Hold a drive as the process of a real drive does. Return the message that permits the start."""
    name = f"b-{number}"
    shown = DriveShown(number=number, name=name, path="sim:sata-ssd", capacity_bytes=1)
    way = DrivePath(drive=name)
    channel.send(Held(shown=shown, shortest_s=1, longest_s=1, file_bytes=1, jobs=1, way=way))
    go = channel.receive_from_batch()
    assert isinstance(go, Go)
    assert go.digest == shown.digest
    channel.send(Begun())
    return go


def fail_as_second(number: int, channel: Channel) -> int:
    hold(number, channel)
    return 4 if number == 2 else 0


def test_drives_begin_in_turn_and_the_fault_of_one_is_its_own(tmp_path: Path) -> None:
    ledger = Batch(tmp_path, fail_as_second, count=3).conduct()
    log = ledger.read()
    assert [log.began[number].place.sharing for number in (1, 2, 3)] == [SharingState.ALONE] * 3
    assert list(log.began) == [1, 2, 3]
    assert {number: one.exit_code for number, one in log.ended.items()} == {1: 0, 2: 4, 3: 0}
    ledger.close()


def repeat(number: int, channel: Channel) -> int:
    hold(number, channel)
    channel.send(Repeatable())
    go = channel.receive_from_batch()
    assert isinstance(go, Go)
    return 0 if (go.place.others, go.place.sharing) == (0, SharingState.ALONE) else 9


def test_drives_are_measured_once_more_alone_after_all_others(tmp_path: Path) -> None:
    ledger = Batch(tmp_path, repeat, parallel=2).conduct()
    log = ledger.read()
    assert log.again == {1, 2}
    assert {number: one.exit_code for number, one in log.ended.items()} == {1: 0, 2: 0}
    ledger.close()


def vanish(number: int, channel: Channel) -> int:
    hold(number, channel)
    if number == 1:
        os._exit(9)
    return 0


def test_the_end_of_a_process_that_notes_none_is_noted_for_it(tmp_path: Path) -> None:
    ledger = Batch(tmp_path, vanish).conduct()
    assert ledger.read_state().drives[0].stage is DriveStage.FAILED
    assert ledger.read().ended[1].text == "its process has gone"
    ledger.close()


def refuse(number: int, channel: Channel) -> NoReturn:
    kinds = {1: DeviceError, 2: RefusedError}
    channel.send(Ended(exit_code=kinds[number].exit_code, text=f"fault {number}"))
    os._exit(0)


def test_faults_before_the_word_refuse_all_drives_by_the_gravest(tmp_path: Path) -> None:
    batch = Batch(tmp_path, refuse)
    with pytest.raises(RefusedError, match=r"2 of 2 drives .*no drive .*fault 1; .*fault 2$"):
        batch.processes.require_sound(batch.request)


def remove_the_ledger(number: int, channel: Channel) -> int:
    place = Path(hold(number, channel).place.name + ".batch")
    if number == 1:
        place.unlink()
    return 0


def test_a_ledger_that_is_removed_is_written_anew_and_the_others_keep_their_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    batch = Batch(tmp_path, remove_the_ledger, count=3)
    ledger = batch.conduct()
    assert {number: one.exit_code for number, one in read_log(batch.path).ended.items()} == {1: 0, 2: 0, 3: 0}
    assert len(batch.warnings) == 1
    assert f"the batch goes on in {batch.path}, with all" in batch.warnings[0]
    with pytest.raises(RunFileError, match="is still running"):
        Ledger.open(batch.path)
    ledger.close()


def replace_the_ledger(number: int, channel: Channel) -> int:
    place = Path(hold(number, channel).place.name + ".batch")
    if number == 1:
        Path("other").write_text("of the user")
        Path("other").rename(place)
    return 0


def test_the_ledger_that_is_held_counts_and_not_another_file_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    batch = Batch(tmp_path, replace_the_ledger, count=3)
    ledger = batch.conduct()
    assert list(ledger.read().began) == [1, 2, 3]
    assert batch.path.read_text() == "of the user"
    assert len(batch.warnings) == 1
    assert f"{batch.path} was removed or replaced" in batch.warnings[0]
    # The ledger is kept under another name for the process that continues the batch.
    assert list(read_log(tmp_path / "b-kept.batch").began) == [1, 2, 3]
    ledger.close()


def test_no_drive_begins_while_the_ledger_s_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the disk of the ledger is full, no drive starts. A drive keeps its consent while it waits, and starts when
    the disk has free space again.
    """
    write = Ledger.write
    refused: list[Line] = []

    def write_if_room(ledger: Ledger, line: Line) -> None:
        ledger.keeps_up = not isinstance(line, DriveBegan) or len(refused) == 3
        if not ledger.keeps_up:
            refused.append(line)
            raise RunFileError("cannot write b.batch: no space left")
        write(ledger, line)

    monkeypatch.setattr(Ledger, "write", write_if_room)
    batch = Batch(tmp_path, fail_as_second)
    ledger = batch.conduct()
    assert list(ledger.read().began) == [1, 2]
    assert len(refused) == 3
    assert len(batch.warnings) == 1
    assert "no space left; no drive begins before that is possible" in batch.warnings[0]
    ledger.close()
