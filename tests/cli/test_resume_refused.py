"""Resumptions that are refused. tkperf prints one clear line and ends with the right exit code, and the run file does
not change.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.cli.test_bad_input import assert_clear, tkperf
from tests.resuming import cuts
from tkperf import make_plan
from tkperf.device.identity import read_identity
from tkperf.model.errors import TkperfError
from tkperf.pipeline.api import run
from tkperf.pipeline.resume_plan import ResumeRequest, make_resume_plan
from tkperf.runfile import writer
from tkperf.runfile.schema import VERSION
from tkperf.runfile.writer import require_resumable

SHORT = Path(__file__).parents[1] / "short.toml"
GOLDEN = Path(__file__).parents[1] / "golden"
SIZE = 16 << 20


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run file of a simulated run that was killed in its third round."""
    folder = tmp_path_factory.mktemp("whole")
    plan = make_plan("ssd", "sim:sata-ssd", profile=SHORT, tests=("lat",))
    run(plan, "run", folder=folder, observers=(cuts(folder / "run.tkperf", folder / "cuts"),))
    return [cut for cut in sorted((folder / "cuts").iterdir()) if "StepEnded" in cut.name][3]


@pytest.fixture
def run_file(cut_off: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(cut_off, tmp_path / "run.tkperf"))


@pytest.fixture
def on_a_file(run_file: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Return a run file and a scratch file. The run file is changed as if the run had measured this scratch file."""
    scratch = tmp_path / "scratch"
    scratch.write_bytes(b"\xa5" * SIZE)
    device = fact(run_file, "device")
    assert isinstance(device, dict)
    edit(run_file, device=device | read_identity(scratch).facts(), ioengine="libaio")
    return run_file, scratch


def fact(path: Path, key: str) -> object:
    with closing(sqlite3.connect(path)) as db:
        return json.loads(db.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()[0])


def edit(path: Path, **facts: object) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for key, value in facts.items():
            db.execute("UPDATE run SET value = ? WHERE key = ?", (json.dumps(value), key))


def assert_refused(path: Path, code: int, *says: str, **wishes: object) -> None:
    before = path.read_bytes()
    with pytest.raises(TkperfError) as caught:
        make_resume_plan(ResumeRequest(path=path, **wishes))  # type: ignore[arg-type]
    assert caught.value.exit_code == code
    for words in says:
        assert words in str(caught.value)
    assert path.read_bytes() == before


def test_on_the_command_line(run_file: Path, tmp_path: Path) -> None:
    """``tkperf resume`` accepts no option of a run, because the run continues with its original options."""
    assert_clear(tkperf("resume", run_file, "--profile", "quick"), 2, "there is no option --profile")
    assert_clear(tkperf("resume", run_file, "-nj", "4"), 2, "there is no option -nj")
    assert_clear(tkperf("resume", tmp_path / "none.tkperf"), 6, "there is no run file")
    copy = tmp_path / "copy.db"
    copy.write_bytes(run_file.read_bytes())
    assert_clear(tkperf("resume", copy), 2, f"{copy} does not end in .tkperf, so tkperf does not resume it")
    done = tkperf("resume", run_file, "--quiet")
    assert done.returncode == 0, done.stderr
    assert_clear(tkperf("resume", run_file), 2, "has ended, and no result is missing", "--repeat TEST")


@pytest.mark.parametrize(
    ("wishes", "says"),
    [
        ({"repeat": ("iops",)}, "--repeat 'iops': choose from lat"),
        ({"add": ("lat",)}, "the run already contains this test. Pass --repeat lat"),
        ({"add": ("nothing",)}, "--test 'nothing': choose from"),
        ({"add": ("auto-demand",)}, "the other tests ran without this demand"),
        ({"add": ("xsr",)}, "profile short has no table cross_stimulus_recovery"),
    ],
)
def test_wrong_wishes(wishes: dict[str, tuple[str, ...]], says: str, run_file: Path) -> None:
    assert_refused(run_file, 2, says, **wishes)


def test_an_added_test_whose_alterations_nobody_can_tell(run_file: Path) -> None:
    """If a run used a user's own profile with changed numbers, no test can be added at a resumption. The run file does
    not contain the original numbers of the profile.
    """
    options = fact(run_file, "options")
    assert isinstance(options, dict)
    edit(run_file, options=options | {"jobs": 7})
    assert_refused(run_file, 2, "short, which is a profile of your own", add=("iops",))


@pytest.mark.parametrize("option", [{"device": "/dev/null"}, {"suite": "hdd"}, {"profile": "quick"}, {"force": True}])
def test_an_option_that_no_run_has(option: dict[str, object], run_file: Path) -> None:
    """A run file is refused as damaged if it contains an option or a value that tkperf never writes. Only a damaged or
    forged file contains such a value.
    """
    options = fact(run_file, "options")
    assert isinstance(options, dict)
    edit(run_file, options=options | option)
    assert_refused(run_file, 6, "damaged", "no run has this option")


def test_a_run_that_still_goes_on(run_file: Path) -> None:
    with _locked(run_file):
        assert_refused(run_file, 6, "is being written, because its run has not ended")


def test_one_who_only_looks_is_waited_for(run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process such as ``tkperf status`` is reading the run file, the resumption waits. Such a process holds
    the lock only for a moment.
    """
    assert writer.LOOKERS_WAIT_S >= 0.3
    monkeypatch.setattr(writer, "LOOKERS_WAIT_S", 60.0)
    descriptor = os.open(run_file, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    looker = threading.Timer(0.1, os.close, [descriptor])
    looker.start()
    require_resumable(run_file)
    looker.join()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield
    os.close(descriptor)


def test_a_run_of_another_version(run_file: Path) -> None:
    edit(run_file, tkperf_version="2.9")
    assert_refused(run_file, 6, "was measured by tkperf 2.9, but this is tkperf 3.")


@pytest.mark.parametrize(
    ("version", "says"), [(VERSION - 1, "format that was never released"), (VERSION + 1, "which is newer (format 2")]
)
def test_a_run_of_another_schema(version: int, says: str, run_file: Path) -> None:
    with closing(sqlite3.connect(run_file)) as db:
        db.execute(f"PRAGMA user_version = {version}")
        db.commit()
    assert_refused(run_file, 6, says)


def test_an_imported_run(tmp_path: Path) -> None:
    done = tkperf("import", GOLDEN / "tkperf-2.2-tp.xml", "--name", "old", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    assert_refused(tmp_path / "old.tkperf", 2, "is an imported result")


def test_a_raid_run(run_file: Path) -> None:
    edit(run_file, suite="raid")
    assert_refused(run_file, 2, "such a run cannot be resumed")


def test_a_run_of_no_suite(run_file: Path) -> None:
    edit(run_file, suite="../x")
    assert_refused(run_file, 6, "does not contain the suite of")


@pytest.mark.parametrize(("option", "value"), [("no_purge", "no"), ("tune", "/etc"), ("strict", 1)])
def test_a_switch_that_is_neither_on_nor_off(option: str, value: object, run_file: Path) -> None:
    """A switch in a run file must be true or false. Otherwise tkperf would interpret every non-empty text as true."""
    options = fact(run_file, "options")
    assert isinstance(options, dict)
    edit(run_file, options=options | {option: value})
    assert_refused(run_file, 6, f"Option {option}:")


@pytest.mark.parametrize(
    ("facts", "code", "says"), [(["Note"], 6, "Option facts:"), ({"Note": 7}, 2, "Note has 0 characters")]
)
def test_facts_that_no_run_has(facts: object, code: int, says: str, run_file: Path) -> None:
    options = fact(run_file, "options")
    assert isinstance(options, dict)
    edit(run_file, options=options | {"facts": facts})
    assert_refused(run_file, code, says)


def test_a_run_in_segments(run_file: Path) -> None:
    profile = fact(run_file, "profile")
    assert isinstance(profile, dict)
    table = profile["active_range"] | {"segments": 2048, "amount": "8GiB"}
    edit(run_file, profile=profile | {"active_range": table})
    assert_refused(run_file, 2, "the places of the segments were chosen for this run only")


def test_a_damaged_file(run_file: Path) -> None:
    with closing(sqlite3.connect(run_file)) as db, db:
        db.execute("UPDATE step SET read_percent = 200 WHERE sequence = 3")
    assert_refused(run_file, 6, "is damaged, so the run cannot be resumed: step 3 of lat")


def test_bytes_that_are_no_database(run_file: Path) -> None:
    content = bytearray(run_file.read_bytes())
    content[3000:9000] = b"\x00" * 6000
    run_file.write_bytes(content)
    assert_refused(run_file, 6)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE step SET section = 'Other' WHERE sequence = 3",
        "UPDATE step SET block_size_bytes = 8192 WHERE sequence = 3",
        "UPDATE verdict SET verdict = replace(verdict, 'RND', 'SEQ')",
        "DELETE FROM purge",
    ],
)
def test_a_log_that_does_not_follow_its_test(change: str, run_file: Path) -> None:
    with closing(sqlite3.connect(run_file)) as db, db:
        db.execute(change)
    assert_refused(run_file, 6, "the log of the test lat does not fit its procedure: row")


def test_a_plan_that_is_another_now(run_file: Path) -> None:
    profile = fact(run_file, "profile")
    assert isinstance(profile, dict)
    edit(run_file, profile=profile | {"a_table_of_another_version": {"key": 1}})
    assert_refused(run_file, 6, "computes a different plan than the version that began the run")


def test_a_file_that_cannot_be_written(run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a run file cannot be opened for writing, the resumption is refused. This happens, for example, if a disk
    became read-only after errors of its file system.
    """
    opened: Callable[..., int] = os.open

    def refuse(path: object, flags: int, *more: object, **named: object) -> int:
        if str(path) == str(run_file) and flags & os.O_RDWR:
            raise OSError(30, "Read-only file system", str(path))
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    assert_refused(run_file, 6, "Read-only file system")


def test_a_simulated_drive_of_another_kind(run_file: Path) -> None:
    assert_refused(run_file, 4, "is not the device of the run", device="sim:client-tlc")


def replace_file(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"\xa5" * SIZE)
    other.replace(path)


@pytest.mark.fio
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda scratch: os.truncate(scratch, SIZE + 4096), "it has grown from"),
        (lambda scratch: os.truncate(scratch, SIZE - 4096), "it has shrunk from"),
        (lambda scratch: scratch.unlink(), "there is no device or file"),
        (replace_file, "it is another file"),
    ],
)
def test_another_device(change: Callable[[Path], None], says: str, on_a_file: tuple[Path, Path]) -> None:
    path, scratch = on_a_file
    change(scratch)
    assert_refused(path, 4, says)


@pytest.mark.fio
def test_another_fio(on_a_file: tuple[Path, Path]) -> None:
    path, _ = on_a_file
    edit(path, fio_version="fio-3.30")
    assert_refused(path, 5, "was measured with fio-3.30, but this host has fio-")


def test_a_file_that_was_changed_meanwhile(run_file: Path) -> None:
    """If a run file changes while tkperf asks for consent, the resumption is refused."""
    plan = make_resume_plan(ResumeRequest(path=run_file))
    edit(run_file, name="other")
    with pytest.raises(TkperfError, match="was changed after tkperf had read it"):
        plan.require_unchanged()


def with_command(path: Path, command: str) -> None:
    options = fact(path, "options")
    assert isinstance(options, dict)
    edit(path, options=options | {"purge_command": command})


@pytest.mark.parametrize("given", [None, "", "other {device}", "touch  /x {device}"])
def test_a_purge_command_is_given_again(given: str | None, run_file: Path) -> None:
    """For a resumption, the user must state the purge command again. tkperf never uses the purge command of a run file,
    because another user may have written the file.
    """
    with_command(run_file, "touch /x {device}")
    says = "begun with --purge-command 'touch /x {device}'. tkperf executes no command from a run file"
    assert_refused(run_file, 3, says, purge_command=given)
    for wishes in ({"repeat": ("lat",)}, {"accept": True}, {"strict": True}):
        assert_refused(run_file, 3, says, purge_command=given, **wishes)


def test_a_purge_command_is_not_added(run_file: Path) -> None:
    """A purge command cannot be added at a resumption, because all results of a run need the same purge."""
    assert_refused(run_file, 3, "was begun without --purge-command", purge_command="x {device}")


@pytest.mark.fio
@pytest.mark.parametrize("detach", [(), ("--detach",)])
def test_no_command_of_a_run_file_is_run(detach: tuple[str, ...], on_a_file: tuple[Path, Path], tmp_path: Path) -> None:
    """tkperf never executes a command that a run file contains, even if the user confirmed all other facts."""
    path, scratch = on_a_file
    command = f"touch {tmp_path / 'made'} {{device}}"
    with_command(path, command)
    confirmed: list[str | Path] = ["resume", path, "-q", "--yes-destroy", scratch, *detach]
    assert_clear(tkperf(*confirmed), 3, "tkperf executes no command from a run file")
    assert_clear(tkperf(*confirmed, "--purge-command", "true {device}"), 3, "Pass the same option again")
    assert not (tmp_path / "made").exists()
    assert set(scratch.read_bytes()) == {0xA5}
    edit(path, fio_version="fio-3.30")
    assert_refused(path, 5, "was measured with fio-3.30", purge_command=command)


def test_a_file_that_others_can_write(run_file: Path) -> None:
    """A run file that others can write to can be shown, but not resumed."""
    run_file.chmod(0o646)
    assert_refused(
        run_file,
        3,
        "can be shown, but not resumed, because another user may have written the file: others can write to",
    )
    assert_clear(tkperf("resume", run_file, "-q"), 3, "chmod go-w")
    assert tkperf("show", run_file).returncode == 0


def test_a_file_that_became_another_meanwhile(run_file: Path) -> None:
    """If a run file was replaced by another file after it was read, the resumption is refused, even if both files have
    the same size and time. Results are written only to the file that was read.
    """
    plan = make_resume_plan(ResumeRequest(path=run_file))
    other = Path(shutil.copy2(run_file, run_file.with_name("other")))
    other.replace(run_file)
    with pytest.raises(TkperfError, match="was changed after tkperf had read it"):
        plan.require_unchanged()


@pytest.mark.fio
def test_an_engine_that_fio_would_load_as_a_library(on_a_file: tuple[Path, Path]) -> None:
    """A resumed run must use an I/O engine that tkperf supports, because fio would load ``external:PATH`` as code."""
    path, _ = on_a_file
    edit(path, ioengine="external:/tmp/x.so")
    assert_refused(path, 2, "I/O engine 'external:/tmp/x.so'")
