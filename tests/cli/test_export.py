"""``tkperf export`` writes one data set of many runs, with one folder for each run. The export is incremental and never
leaves an incomplete run.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from tests.builders import run_info, simulate
from tests.fleets import vary_run_file
from tkperf.cli.main import cli
from tkperf.model.errors import RunFileError, UsageError
from tkperf.model.record import LogEntry
from tkperf.procedures import SSD_TESTS
from tkperf.render import dataset as dataset_module
from tkperf.render.dataset import MARKER, Dataset
from tkperf.runfile.reader import RunFile
from tkperf.system import output_files

UUIDS = [f"{number:08x}-1111-4111-8111-111111111111" for number in range(1, 4)]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    simulate(folder, run_info(name="source"), suite={"lat": SSD_TESTS["lat"]})
    return folder / "run.tkperf"


@pytest.fixture
def runs(source: Path, tmp_path: Path) -> Path:
    """Return a folder with two run files of two drives."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for name, uuid in zip("AB", UUIDS, strict=False):
        vary_run_file(source, folder / f"{name}.tkperf", device={"serial": name}, uuid=uuid)
    return folder


def export(*words: object) -> Result:
    return CliRunner().invoke(cli, ["export", *map(str, words)])


def said(result: Result) -> str:
    assert result.exception is None, result.exception
    return result.stdout.strip().rpartition(": ")[2]


def write_later_state(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write another file of the same run. The log of the new file seems to have one more entry. Return the path of the
    new file.
    """
    later, log_of = path.with_name("later.tkperf"), RunFile.log
    vary_run_file(path, later, device={"serial": "later"})

    def lengthen(self: RunFile) -> tuple[LogEntry, ...]:
        log = log_of(self)
        return log + log[-1:] if self._path.name == later.name else log

    monkeypatch.setattr(RunFile, "log", lengthen)
    return later


def read(dataset: Path, table: str) -> dict[str, list[dict[str, object]]]:
    """Return the rows of a table for each run. The key is the name of the folder of the run."""
    return {
        path.parent.name: pq.read_table(path).to_pylist() for path in sorted(dataset.glob(f"run_id=*/{table}.parquet"))
    }


def test_each_run_has_a_folder_with_all_tables(runs: Path, tmp_path: Path) -> None:
    """Each run has a folder with all tables, including the empty tables, so that a query over all runs finds each table
    in each folder.
    """
    dataset = tmp_path / "fleet"
    assert said(export(runs, "--parquet", dataset)) == "2 exported; 2 runs in all"
    assert [path.name for path in sorted(dataset.glob("run_id=*"))] == [f"run_id={uuid}" for uuid in UUIDS[:2]]
    tables = [{path.name for path in folder.iterdir()} for folder in dataset.glob("run_id=*")]
    assert (
        tables[0]
        == tables[1]
        >= {"runs.parquet", "figures.parquet", "cells.parquet", "samples.parquet", "_export.json"}
    )
    (of_a,) = read(dataset, "runs")[f"run_id={UUIDS[0]}"]
    assert (of_a["run"], of_a["serial"], of_a["simulated"]) == ("A", "A", True)
    figures = read(dataset, "figures")[f"run_id={UUIDS[1]}"]
    assert {"single_read", "single_write"} <= {row["figure"] for row in figures}
    assert all(row["conditions"] for row in figures)


def test_only_what_is_new_is_exported(
    runs: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export opens only run files that are new or have changed. The folders of unchanged runs remain untouched."""
    dataset = tmp_path / "fleet"
    export(runs, "--parquet", dataset)
    times = {path.name: path.stat().st_ino for path in dataset.glob("run_id=*")}
    with monkeypatch.context() as patched:
        patched.setattr(RunFile, "__init__", lambda *_, **__: pytest.fail("a run file was opened"))
        assert said(export(runs, "--parquet", dataset)) == "0 exported, 2 unchanged; 2 runs in all"
    vary_run_file(source, runs / "C.tkperf", device={"serial": "C"}, uuid=UUIDS[2])
    assert said(export(runs, "--parquet", dataset)) == "1 exported, 2 unchanged; 3 runs in all"
    assert {name: (dataset / name).stat().st_ino for name in times} == times


def test_a_changed_file_replaces_its_run(runs: Path, tmp_path: Path) -> None:
    """A changed run file, for instance after a resumption, replaces its run in the data set. If the options of the
    export change the tables, every run is exported again.
    """
    dataset = tmp_path / "fleet"
    export(runs, "--parquet", dataset)
    again = tmp_path / "again.tkperf"
    vary_run_file(runs / "A.tkperf", again, device={"serial": "A2"})
    (runs / "A.tkperf").write_bytes(again.read_bytes())
    assert said(export(runs, "--parquet", dataset)) == "1 exported, 1 unchanged; 2 runs in all"
    assert read(dataset, "runs")[f"run_id={UUIDS[0]}"][0]["serial"] == "A2"
    assert said(export(runs, "--parquet", dataset, "--no-seconds")) == "2 exported; 2 runs in all"
    assert not any(read(dataset, "samples").values())
    assert not list(dataset.glob(".*"))


def test_a_changed_status_of_a_file_is_no_change(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If only the metadata of a run file changed, such as the permissions, the next export reads the file once and does
    not change the data set. Later exports do not open the file.
    """
    dataset = tmp_path / "fleet"
    export(runs, "--parquet", dataset)
    folder = dataset / f"run_id={UUIDS[0]}"
    inode = folder.stat().st_ino
    (runs / "A.tkperf").chmod(0o600)
    assert said(export(runs, "--parquet", dataset)) == "0 exported, 2 unchanged; 2 runs in all"
    assert folder.stat().st_ino == inode
    monkeypatch.setattr(RunFile, "__init__", lambda *_, **__: pytest.fail("a run file was opened"))
    assert said(export(runs, "--parquet", dataset)) == "0 exported, 2 unchanged; 2 runs in all"


def test_an_older_copy_does_not_replace_a_later_state_after_an_upgrade(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade of tkperf, an older copy of a run does not replace the newer state in the data set. If the file
    with the newer state is given, this state is exported again.
    """
    dataset = tmp_path / "fleet"
    later = write_later_state(runs / "A.tkperf", monkeypatch)
    export(later, "--parquet", dataset)
    monkeypatch.setattr(dataset_module, "describe_columns", lambda: "other")
    assert "0 exported, 1 other files" in said(export(runs / "A.tkperf", "--parquet", dataset))
    assert read(dataset, "runs")[f"run_id={UUIDS[0]}"][0]["serial"] == "later"
    assert "1 exported" in said(export(later, "--parquet", dataset))


def test_names_of_others_are_no_names_of_folders(source: Path, tmp_path: Path) -> None:
    """tkperf names the folder of a run after the id of the run, or after a digest if the id is unsuitable. Names of
    drives and files are not used, because such names may contain any characters.
    """
    dataset, folder = tmp_path / "fleet", tmp_path / "runs"
    folder.mkdir()
    hostile = ("a/b", "../../etc", "run_id=9", "100%", "nul\0", "line\nfeed", "x" * 4096, "\ud800", "..")
    for number, name in enumerate(hostile):
        device = {"model": name, "serial": name, "firmware": name, "interface": name, "form_factor": name}
        vary_run_file(source, folder / f"{number}.tkperf", device=device, uuid=name)
    os.rename(folder / "0.tkperf", os.fsencode(folder) + b"/\xff=%\n.tkperf")
    result = export(folder, "--parquet", dataset)
    assert said(result) == f"{len(hostile)} exported; {len(hostile)} runs in all"
    assert {path.name for path in tmp_path.iterdir()} == {"fleet", "runs"}
    for path in dataset.glob("run_id=*"):
        UUID(path.name.removeprefix("run_id="))
    assert f"{len(hostile)} unchanged" in said(export(folder, "--parquet", dataset))


def test_two_files_of_a_run_are_one(runs: Path, tmp_path: Path) -> None:
    """A copy of a run file counts only once. If another file of the same run has other content and a log of the same
    length, this file does not replace the exported file.
    """
    dataset = tmp_path / "fleet"
    shutil.copy(runs / "A.tkperf", runs / "copy.tkperf")
    result = export(runs, "--parquet", dataset)
    assert said(result) == "2 exported, 1 other files of these runs; 2 runs in all"
    vary_run_file(runs / "A.tkperf", runs / "other.tkperf", device={"serial": "other"})
    result = export(runs, "--parquet", dataset)
    assert "other.tkperf: A.tkperf is another file of the same run and has at least as many" in result.stderr
    assert read(dataset, "runs")[f"run_id={UUIDS[0]}"][0]["serial"] == "A"


def test_a_longer_log_wins(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a run that was resumed elsewhere has a longer log, so it replaces the exported file of this run. A file
    with a shorter log does not replace a file with a longer log.
    """
    dataset = tmp_path / "fleet"
    export(runs / "A.tkperf", "--parquet", dataset)
    later = write_later_state(runs / "A.tkperf", monkeypatch)
    assert "1 exported" in said(export(later, "--parquet", dataset))
    assert "0 exported, 1 other files" in said(export(runs / "A.tkperf", "--parquet", dataset))
    assert read(dataset, "runs")[f"run_id={UUIDS[0]}"][0]["serial"] == "later"


def test_a_failure_leaves_the_former_run(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full, the data set keeps the earlier state of the run. Neither a part of a run nor a hidden folder
    remains.
    """
    dataset = tmp_path / "fleet"
    export(runs, "--parquet", dataset)
    before = read(dataset, "figures")

    def fail(*_: object) -> Iterator[object]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output_files, "_exchange", fail)
    result = export(runs, "--parquet", dataset, "--no-seconds")
    assert isinstance(result.exception, UsageError)
    assert "No space left on device" in str(result.exception)
    assert read(dataset, "figures") == before
    assert not list(dataset.glob(".*"))


def test_what_a_killed_export_left_is_removed(runs: Path, tmp_path: Path) -> None:
    """The next export deletes the hidden folder that a killed export left behind. If a table of a run is too short, the
    next export writes this run again.
    """
    dataset = tmp_path / "fleet"
    export(runs, "--parquet", dataset)
    left = dataset / ".tkperf-0123456789abcdef.folder"
    left.mkdir()
    (left / "cells.parquet").write_text("half")
    short = dataset / f"run_id={UUIDS[0]}" / "cells.parquet"
    short.write_bytes(short.read_bytes()[:-1])
    assert said(export(runs, "--parquet", dataset)) == "1 exported, 1 unchanged; 2 runs in all"
    assert not left.exists()
    assert read(dataset, "cells")


def test_a_file_that_cannot_be_read_does_not_hide_others(runs: Path, tmp_path: Path) -> None:
    """If a run file cannot be read, the other runs are exported, and the exit code reports the missing run."""
    (runs / "bad.tkperf").write_text("no run file")
    result = export(runs, "--parquet", tmp_path / "fleet")
    assert isinstance(result.exception, RunFileError)
    assert "2 exported, 1 left out; 2 runs in all" in result.stdout


def test_links_in_a_data_set_lead_nowhere(runs: Path, tmp_path: Path) -> None:
    """An export never deletes a folder through a link. The link may have the name of the folder of a run, or of a
    folder that a killed export left behind.
    """
    dataset, outside = tmp_path / "fleet", tmp_path / "outside"
    export(runs, "--parquet", dataset)
    outside.mkdir()
    (outside / "cells.parquet").write_text("mine")
    (dataset / ".tkperf-0123456789abcdef.folder").symlink_to(outside)
    (dataset / ".tkperf-0123456789abcdef.part").symlink_to(outside / "cells.parquet")
    assert "2 unchanged" in said(export(runs, "--parquet", dataset))
    of_a = dataset / f"run_id={UUIDS[0]}"
    shutil.rmtree(of_a)
    of_a.symlink_to(outside)
    error = export(runs, "--parquet", dataset).exception
    assert isinstance(error, UsageError)
    assert f"{of_a} is not a folder, and tkperf does not replace it" in str(error)
    assert (outside / "cells.parquet").read_text() == "mine"


def test_an_export_that_was_killed_at_its_beginning_can_be_repeated(runs: Path, tmp_path: Path) -> None:
    """A folder that contains only an unfinished file of tkperf counts as empty, so a killed export can be repeated."""
    dataset = tmp_path / "fleet"
    dataset.mkdir()
    (dataset / ".tkperf-0123456789abcdef.part").write_text("{")
    assert said(export(runs, "--parquet", dataset)) == "2 exported; 2 runs in all"
    assert not list(dataset.glob(".*"))


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (
            lambda folder: (folder / "mine.txt").write_text("mine"),
            "contains files that do not belong to a data set of tkperf",
        ),
        (lambda folder: (folder / MARKER).write_text('{"tkperf_dataset": 2}'), "of another version of tkperf"),
        (lambda folder: (folder / MARKER).write_text("rubbish"), "of another version of tkperf"),
    ],
)
def test_other_folders_are_refused(runs: Path, tmp_path: Path, prepare: object, says: str) -> None:
    """If a folder is not a data set, an export refuses the folder and writes no file into it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    prepare(folder)  # type: ignore[operator]
    before = sorted(folder.iterdir())
    error = export(runs, "--parquet", folder).exception
    assert isinstance(error, UsageError)
    assert says in str(error)
    assert sorted(folder.iterdir()) == before


def test_files_of_others_in_a_run_are_not_deleted(runs: Path, tmp_path: Path) -> None:
    """An export does not replace the folder of a run if the folder contains a file that no export wrote."""
    dataset = tmp_path / "fleet"
    export(runs, "--parquet", dataset)
    mine = dataset / f"run_id={UUIDS[0]}" / "notes.txt"
    mine.write_text("mine")
    error = export(runs, "--parquet", dataset, "--no-seconds").exception
    assert isinstance(error, UsageError)
    assert "notes.txt is not a table of tkperf" in str(error)
    assert mine.read_text() == "mine"


def test_one_export_at_a_time(runs: Path, tmp_path: Path) -> None:
    """While an export writes to a data set, a second export to the same data set is refused. After the first export has
    ended, an export succeeds.
    """
    dataset = tmp_path / "fleet"
    export(runs, "--parquet", dataset)
    descriptor = os.open(dataset, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    error = export(runs, "--parquet", dataset).exception
    os.close(descriptor)
    assert isinstance(error, UsageError)
    assert "another 'tkperf export' is writing" in str(error)
    assert "2 unchanged" in said(export(runs, "--parquet", dataset))


def test_folders_are_exchanged_without_the_kernels_help(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export also replaces the folder of a run on a file system that cannot exchange two names in one step."""
    dataset = tmp_path / "fleet"
    export(runs, "--parquet", dataset)
    # with this unknown flag, the kernel rejects the exchange
    monkeypatch.setattr(output_files, "_RENAME_EXCHANGE", 1 << 30)
    assert said(export(runs, "--parquet", dataset, "--no-seconds")) == "2 exported; 2 runs in all"
    assert not list(dataset.glob(".*"))
    assert len(Dataset(dataset).runs) == 2


def test_other_code_exports_again(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the version of the exporting code differs, every run is exported again. Otherwise one data set would contain
    columns and figures of two versions.
    """
    dataset = tmp_path / "fleet"
    export(runs, "--parquet", dataset)
    monkeypatch.setattr(dataset_module, "describe_columns", lambda: "other")
    assert said(export(runs, "--parquet", dataset)) == "2 exported; 2 runs in all"


def test_report_does_not_replace_the_tables_of_another_run(runs: Path, tmp_path: Path) -> None:
    """``tkperf report --parquet`` overwrites the tables of the same run. The command refuses to overwrite tables of
    another run and files of another program.
    """

    def report(name: str, folder: Path) -> Exception | None:
        result = CliRunner().invoke(cli, ["report", str(runs / f"{name}.tkperf"), "--parquet", str(folder)])
        assert isinstance(result.exception, UsageError | None)
        return result.exception

    tables, dataset = tmp_path / "tables", tmp_path / "fleet"
    assert report("A", tables) is None
    assert report("A", tables) is None
    assert "cells.parquet is not a table of this run" in str(report("B", tables))
    assert {row["run"] for row in pq.read_table(tables / "cells.parquet").to_pylist()} == {"A"}
    (tables / "cells.parquet").write_text("mine")
    assert report("A", tables) is not None
    assert (tables / "cells.parquet").read_text() == "mine"
    export(runs, "--parquet", dataset)
    assert "is a data set that 'tkperf export' wrote. Nothing was written. Name" in str(report("A", dataset))
    assert json.loads((dataset / MARKER).read_text()) == {"tkperf_dataset": 1}
