"""Batches as a user runs them. The tests cover the single consent question for all drives, the process of each drive,
and kills of any of these processes.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.test_bad_input import ENV, assert_clear, tkperf
from tests.cli.test_detach import SHORT, Terminal, wait_for
from tests.conftest import attach_again, children_of
from tkperf.batch.ledger import find_start, read_batch
from tkperf.model.batch_state import DriveStage, find_place
from tkperf.model.errors import RunFileError
from tkperf.model.record import RunStatus
from tkperf.model.sharing import SharingState
from tkperf.runfile.reader import read_run
from tkperf.runfile.writers import find_writer, is_being_written

MIB = 1 << 20
SIMULATED = ("sim:sata-ssd", "sim:nvme-4kn", "sim:sata-ssd")
WITH_SERIALS = [sys.executable, "-m", "tests.cli.with_serials"]
fio = pytest.mark.fio


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder, and stop the runs that are left in this folder when the test ends."""
    yield tmp_path
    for path in tmp_path.glob("*.tkperf"):
        if is_being_written(path) and (writer := find_writer(path)) is not None and writer.pid:
            os.kill(writer.pid, signal.SIGINT)
    wait_for(lambda: not any(map(is_being_written, tmp_path.glob("*.tkperf"))))


@pytest.fixture
def images(folder: Path) -> list[Path]:
    """Return files with data that must not be lost."""
    paths = [folder / f"{name}.img" for name in "abc"]
    for path in paths:
        path.write_bytes(b"\xa5" * (16 * MIB))
    return paths


def options(folder: Path, *others: str | Path) -> list[str | Path]:
    return ["--profile", SHORT, "-ssdt", "lat", "--output", folder, "--no-report", "--no-compare-reads", *others]


def batch(folder: Path, *words: str | Path, others: tuple[str | Path, ...] = ()) -> list[str | Path]:
    return ["batch", "b", "ssd", *words, *options(folder, *others)]


def digests(paths: list[Path]) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


def stages(folder: Path) -> list[DriveStage]:
    return [drive.stage for drive in read_batch(folder / "b.batch").drives]


def has_begun(run_path: Path) -> bool:
    """Return whether a run can be resumed. The run file is created shortly before the run can be resumed."""
    with suppress(RunFileError):
        return bool(run_path.exists() and read_run(run_path).planned)
    return False


def supervisor(folder: Path) -> int:
    writer = find_writer(folder / "b.batch")
    assert writer is not None
    assert writer.pid
    return writer.pid


def test_each_drive_has_its_run_file_and_the_run_says_with_how_many_it_was_measured(folder: Path) -> None:
    """Each drive of a batch has a run file. The run file records the number of other drives that were measured at the
    same time. It also records that simulated drives overload no link.
    """
    done = tkperf(*batch(folder, *SIMULATED, others=("--parallel", "2")))
    assert done.returncode == 0, done.stderr
    assert stages(folder) == [DriveStage.DONE] * 3
    places = []
    for number in (1, 2, 3):
        record = read_run(folder / f"b-{number:02}.tkperf")
        assert record.status is RunStatus.COMPLETE
        place = find_place(record.info.host)
        assert place is not None
        places.append((place.name, place.number, place.others, place.sharing))
    assert places == [
        ("b", 1, 1, SharingState.WITHIN_BUDGET),
        ("b", 2, 1, SharingState.WITHIN_BUDGET),
        ("b", 3, 0, SharingState.ALONE),
    ]


def test_progress_as_json_leaves_nothing_else_on_stdout(folder: Path) -> None:
    done = tkperf(*batch(folder, "sim:sata-ssd", others=("--progress", "json")))
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert all("event" in json.loads(line) for line in done.stdout.splitlines())


def test_one_fault_before_consent_refuses_the_whole_batch(folder: Path) -> None:
    done = tkperf(*batch(folder, "sim:sata-ssd", folder / "missing.img", "sim:no-such"))
    assert done.returncode in (2, 4), done.stderr
    assert "missing.img" in done.stderr
    assert not list(folder.iterdir())


def test_a_name_that_is_taken_refuses_the_whole_batch(folder: Path) -> None:
    (folder / "b-02.tkperf").write_text("of someone")
    assert_clear(tkperf(*batch(folder, *SIMULATED)), 6, "b-02.tkperf")
    assert [path.name for path in folder.iterdir()] == ["b-02.tkperf"]


def test_a_folder_that_cannot_be_made_is_named_once(folder: Path) -> None:
    (folder / "file").write_text("of someone")
    done = tkperf(*batch(folder / "file" / "below", *SIMULATED))
    assert_clear(done, 6, "file/below")
    assert done.stderr.count("file/below") == 1


@fio
def test_without_a_terminal_nothing_is_erased(folder: Path, images: list[Path]) -> None:
    before = digests(images)
    assert_clear(tkperf(*batch(folder, *images)), 3, "--yes-destroy-file")
    assert digests(images) == before
    assert len(list(folder.iterdir())) == 3


@fio
@pytest.mark.parametrize("lines", ["", "{0}\n{1}\n", "{0}\n{1}\n{2}\n/dev/sdz\n", "{0}\n{0}\n{1}\n{2}\n"])
def test_a_consent_file_with_missing_or_other_lines_erases_nothing(
    folder: Path, images: list[Path], lines: str
) -> None:
    before = digests(images)
    consent = folder / "yes.txt"
    consent.write_text(lines.format(*images))
    assert_clear(tkperf(*batch(folder, *images, others=("--yes-destroy-file", consent))), 3, "yes.txt")
    assert digests(images) == before
    assert not [*folder.glob("b-*"), *folder.glob("b.batch")]


@fio
def test_a_consent_file_that_others_can_write_erases_nothing(folder: Path, images: list[Path]) -> None:
    before = digests(images)
    consent = folder / "yes.txt"
    consent.write_text("".join(f"{image}\n" for image in images))
    consent.chmod(0o666)
    assert_clear(tkperf(*batch(folder, *images, others=("--yes-destroy-file", consent))), 3, "others can write")
    assert digests(images) == before


@fio
def test_a_consent_file_with_all_drives_erases_them(folder: Path, images: list[Path]) -> None:
    before = digests(images)
    consent = folder / "yes.txt"
    consent.write_text("".join(f"{image}\n" for image in images))
    done = tkperf(*batch(folder, *images, others=("--yes-destroy-file", consent)))
    assert done.returncode == 0, done.stderr
    assert stages(folder) == [DriveStage.DONE] * 3
    assert not set(digests(images)) & set(before)


@fio
def test_views_follow_a_book_whose_name_another_file_takes(folder: Path, images: list[Path]) -> None:
    consent, ledger = folder / "yes.txt", folder / "b.batch"
    consent.write_text("".join(f"{image}\n" for image in images[:2]))
    options = ("--parallel", "1", "--yes-destroy-file", consent, "--progress", "plain")
    with (folder / "shown.txt").open("w+") as shown:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "tkperf", *batch(folder, *images[:2], others=options)], env=ENV, stderr=shown
        )
        wait_for((folder / "b-01.tkperf").exists)
        (folder / "other").write_text("of the user")
        (folder / "other").rename(ledger)
        assert supervisor.wait() == 0
    assert (folder / "shown.txt").read_text().count("b-02: done") == 1
    assert ledger.read_text() == "of the user"


@fio
def test_only_the_name_and_the_number_of_drives_confirm(folder: Path, images: list[Path]) -> None:
    before = digests(images)
    terminal = Terminal(*batch(folder, *images))
    for answer in ("yes", f"{images[0]}", "b 2"):
        terminal.read_until("to continue")
        terminal.text = ""
        terminal.type(f"{answer}\n")
    assert terminal.wait() == 3
    assert "does not confirm" in terminal.text
    assert digests(images) == before
    assert not [*folder.glob("b-*"), *folder.glob("b.batch")]


@fio
def test_ctrl_c_at_the_question_touches_nothing(folder: Path, images: list[Path]) -> None:
    before = digests(images)
    terminal = Terminal(*batch(folder, *images))
    terminal.read_until("to continue")
    terminal.type("\x03")
    assert terminal.wait() == 130
    assert "nothing was touched" in terminal.text.lower()
    assert digests(images) == before
    assert not [*folder.glob("b-*"), *folder.glob("b.batch")]


@fio
def test_when_the_batch_s_process_is_killed_at_the_question_consent_can_no_longer_be_given(
    folder: Path, images: list[Path]
) -> None:
    before = digests(images)
    terminal = Terminal(*batch(folder, *images))
    terminal.read_until("to continue")
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.wait() == -signal.SIGKILL
    # tkperf can ask about the files again as soon as no process holds them.
    wait_for(lambda: tkperf(*batch(folder, *images)).stderr.count("--yes-destroy-file"))
    assert digests(images) == before


@fio
def test_a_killed_supervisor_stops_no_drive_and_the_rest_is_asked_about_again(folder: Path, images: list[Path]) -> None:
    waiting = digests(images[1:2])
    terminal = Terminal(*batch(folder, *images[:2], others=("--parallel", "1", "-rt", "2")))
    terminal.read_until("to continue")
    terminal.type("b 2\n")
    wait_for((folder / "b-01.tkperf").exists)
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.wait()
    assert stages(folder)[1] is DriveStage.CONSENT_ENDED
    assert digests(images[1:2]) == waiting
    wait_for(lambda: stages(folder) == [DriveStage.DONE, DriveStage.CONSENT_ENDED])
    ledger = folder / "b.batch"
    assert_clear(tkperf("resume", ledger), 3, "--yes-destroy-file")
    assert digests(images[1:2]) == waiting
    consent = folder / "yes.txt"
    consent.write_text(f"{images[1]}\n")
    done = tkperf("resume", ledger, "--yes-destroy-file", consent, "--no-report")
    assert done.returncode == 0, done.stderr
    assert stages(folder) == [DriveStage.DONE] * 2
    assert_clear(tkperf("resume", ledger), 2, "nothing remains to be measured")


@fio
def test_drives_exchanged_before_a_resumption_are_refused_and_the_others_go_on(
    folder: Path, loop_device: Callable[..., Path]
) -> None:
    """A resumed batch refuses a drive at the old path if its serial number differs. It does not matter whether the run
    of this path had begun or was waiting. The other drives continue.
    """
    drives = [loop_device(size=16 * MIB) for _ in range(4)]
    env = {**ENV, "SERIALS_OF_FOLDER": str(folder)}
    consent = folder / "yes.txt"
    consent.write_text("loop0\nloop1\nloop2\nloop3\n")
    words = batch(folder, *drives, others=("--parallel", "2", "-rt", "2"))
    begun = folder / "b-loop1.tkperf"
    said = folder / "said.txt"
    with said.open("wb") as output:
        supervisor = subprocess.Popen(
            [*WITH_SERIALS, *map(str, words), "--yes-destroy-file", consent], env=env, stdout=output, stderr=output
        )
    try:
        wait_for(lambda: has_begun(begun) or supervisor.poll() is not None)
        assert supervisor.poll() is None
    except AssertionError as failed:
        failed.add_note(said.read_text(errors="replace"))
        raise
    finally:
        supervisor.kill()
        supervisor.wait()
    writer = find_writer(begun)
    assert writer is not None
    assert writer.pid
    os.kill(writer.pid, signal.SIGKILL)
    ended = [DriveStage.DONE, DriveStage.KILLED, *[DriveStage.CONSENT_ENDED] * 2]
    wait_for(lambda: stages(folder) == ended)
    others = [folder / "other1.img", folder / "other2.img"]
    for drive, other in zip(drives[1:3], others, strict=True):
        other.write_bytes(b"\x5a" * (16 * MIB))
        attach_again(drive, other)
    images = [*others, folder / "loop1.img", folder / "loop2.img", folder / "loop3.img"]
    loved, run = digests(images), begun.read_bytes()

    def resume(*options: str) -> subprocess.CompletedProcess[str]:
        words = ["resume", folder / "b.batch", "--no-report", "--yes-destroy-file", consent]
        return subprocess.run(
            [*WITH_SERIALS, *map(str, words), *options],
            env=env,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    consent.write_text("loop1\nloop2\nloop3\n")
    assert_clear(resume(), 4, "b-loop1: no drive has the serial number 'loop1'", "b-loop2: ")
    assert digests(images) == loved
    consent.write_text("loop3\n")
    done = resume("--without", "b-loop1", "--without", "b-loop2")
    assert done.returncode == 130, done.stderr
    assert stages(folder) == [*ended[:3], DriveStage.DONE]
    assert digests(images[:4]) == loved[:4]
    assert digests(images[4:]) != loved[4:]
    assert begun.read_bytes() == run


@fio
def test_a_drive_s_process_that_is_killed_costs_its_drive_alone(folder: Path, images: list[Path]) -> None:
    terminal = Terminal(*batch(folder, *images, others=("-rt", "2")))
    terminal.read_until("to continue")
    terminal.type("b 3\n")
    run_path = folder / "b-02.tkperf"
    wait_for(lambda: run_path.exists() and is_being_written(run_path))
    writer = find_writer(run_path)
    assert writer is not None
    assert writer.pid
    os.kill(writer.pid, signal.SIGKILL)
    assert terminal.wait() == 130
    assert stages(folder) == [DriveStage.DONE, DriveStage.KILLED, DriveStage.DONE]
    consent = folder / "yes.txt"
    consent.write_text(f"{images[1]}\n")
    done = tkperf("resume", folder / "b.batch", "--yes-destroy-file", consent, "--no-report")
    assert done.returncode == 0, done.stderr
    assert stages(folder) == [DriveStage.DONE] * 3


@fio
def test_stop_ends_all_drives_in_order_and_those_that_wait_are_not_touched(folder: Path, images: list[Path]) -> None:
    waiting = digests(images[1:2])
    terminal = Terminal(*batch(folder, *images[:2], others=("--parallel", "1", "-rt", "5")))
    terminal.read_until("to continue")
    terminal.type("b 2\n")
    wait_for((folder / "b-01.tkperf").exists)
    assert supervisor(folder) == terminal.pid
    done = tkperf("stop", folder / "b.batch")
    assert done.returncode == 0, done.stderr
    assert terminal.wait() == 130
    assert stages(folder) == [DriveStage.STOPPED, DriveStage.CONSENT_ENDED]
    assert digests(images[1:2]) == waiting


@fio
def test_what_gets_a_drive_s_name_after_consent_is_not_erased(folder: Path, images: list[Path]) -> None:
    terminal = Terminal(*batch(folder, *images[:2], others=("--parallel", "1")))
    terminal.read_until("to continue")
    terminal.type("b 2\n")
    wait_for((folder / "b-01.tkperf").exists)
    moved = folder / "moved.img"
    images[1].rename(moved)
    images[1].write_bytes(b"\x5a" * (16 * MIB))
    loved = digests([images[1], moved])
    assert terminal.wait() == 3
    # The new name changed the ctime of the held file. When the drive starts, tkperf compares the ctime, so tkperf does
    # not erase the held file either.
    assert stages(folder) == [DriveStage.DONE, DriveStage.FAILED]
    assert digests([images[1], moved]) == loved


@fio
def test_data_written_while_a_drive_waits_is_not_erased(folder: Path, images: list[Path]) -> None:
    for image in images:
        image.write_bytes(bytes(16 * MIB))
        with image.open("r+b") as file:
            file.write(b"one")
    terminal = Terminal(*batch(folder, *images[:2], others=("--parallel", "1")))
    terminal.read_until("to continue")
    terminal.type("b 2\n")
    wait_for((folder / "b-01.tkperf").exists)
    # The data looks like an ext4 file system, because it contains the magic number of ext4.
    with images[1].open("r+b") as file:
        file.seek(1024)
        file.write(bytes(56) + b"\x53\xef" + b"\1" * 400)
    loved = digests([images[1]])
    terminal.wait()
    state = read_batch(folder / "b.batch").drives[1]
    assert state.stage is DriveStage.FAILED, state
    assert digests([images[1]]) == loved


def test_the_state_can_be_asked_for_from_anywhere(folder: Path) -> None:
    assert tkperf(*batch(folder, *SIMULATED)).returncode == 0
    for command in ("status", "attach", "stop"):
        done = tkperf(command, folder / "b.batch")
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr


@fio
def test_drives_that_slow_each_other_down_are_measured_once_more_alone(folder: Path, images: list[Path]) -> None:
    """With ``--alone-again``, the drives that slowed each other down are measured again alone, and the results name
    these drives. The test does not require that drives slow each other down, because this depends on the host.
    """
    consent = folder / "yes.txt"
    consent.write_text("".join(f"{image}\n" for image in images[:2]))
    words = [word for word in batch(folder, *images[:2]) if word != "--no-compare-reads"]
    done = tkperf(*words, "--alone-again", "--yes-destroy-file", consent)
    assert done.returncode == 0, done.stderr
    assert "once more, alone" in done.stderr
    for drive in read_batch(folder / "b.batch").drives:
        assert drive.stage is DriveStage.DONE
        assert drive.place is not None
        assert (drive.again_file is not None) is (drive.place.sharing is SharingState.SLOWED)
        if drive.again_file is not None:
            record = read_run(Path(drive.again_file))
            assert record.status is RunStatus.COMPLETE
            place = find_place(record.info.host)
            assert place is not None
            assert (place.others, place.sharing) == (0, SharingState.ALONE)


@fio
def test_a_drive_that_has_gone_at_the_question_refuses_the_whole_batch(folder: Path, images: list[Path]) -> None:
    before = digests(images)
    terminal = Terminal(*batch(folder, *images))
    terminal.read_until("to continue")
    second = children_of(terminal.pid)[1]
    os.kill(second, signal.SIGKILL)
    wait_for(lambda: find_start(second) is None)
    terminal.type("b 3\n")
    assert terminal.wait() == 3
    assert "b.img: its process was killed by signal 9" in " ".join(terminal.text.split())
    assert digests(images) == before
    assert not [*folder.glob("b-*"), *folder.glob("b.batch")]


@fio
def test_a_waiting_drive_whose_process_is_killed_says_so_and_the_others_are_measured(
    folder: Path, images: list[Path]
) -> None:
    waiting = digests(images[2:])
    terminal = Terminal(*batch(folder, *images, others=("--parallel", "1")))
    terminal.read_until("to continue")
    processes = children_of(terminal.pid)
    terminal.type("b 3\n")
    wait_for((folder / "b-01.tkperf").exists)
    os.kill(processes[2], signal.SIGKILL)
    wait_for(lambda: stages(folder)[2] is DriveStage.KILLED)
    assert terminal.wait() == 130
    assert stages(folder) == [DriveStage.DONE, DriveStage.DONE, DriveStage.KILLED]
    assert "killed by signal 9" in read_batch(folder / "b.batch").drives[2].text
    assert digests(images[2:]) == waiting


@fio
@pytest.mark.parametrize("name", ["b-02.tkperf", "b-02.log", "b.batch", "b.html"])
def test_a_file_that_the_batch_writes_is_no_drive_of_it(folder: Path, name: str) -> None:
    done = tkperf(*batch(folder, folder / name, folder / "c.img", others=("--size", "8MiB")))
    assert_clear(done, 6, "the batch would write results to")
    assert not list(folder.iterdir())


def test_more_drives_than_this_process_may_have_files_are_refused(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tkperf", *map(str, batch(folder, *["sim:sata-ssd"] * 80))],
        env=ENV,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )
    assert_clear(done, 3, "80 drives", "ulimit -n")
    assert not list(folder.iterdir())
