"""A call of ``tkperf batch`` with options and a call with a file lead to the same request. An incorrect call is refused
before tkperf accesses a drive.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tkperf.batch.request import BatchRequest
from tkperf.cli.commands.batch import FILE, batch
from tkperf.cli.commands.suites import hdd, ssd
from tkperf.cli.main import cli
from tkperf.cli.run_options import BatchOptions
from tkperf.model.errors import InputFileError, RefusedError

CLAIMS = '[[claim]]\ntest = "iops"\nmetric = "iops"\nread_percent = 100\nblock_size = "4k"\nat_least = 1\n'
Call = tuple[BatchRequest, BatchOptions]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Call]:
    """Return a list. The requests that the command would have run are added to this list."""
    calls: list[Call] = []

    def run_batch(request: BatchRequest, options: BatchOptions) -> int:
        calls.append((request, options))
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tkperf.cli.batch_session.run_batch", run_batch)
    return calls


def invoke(*words: str) -> Exception | None:
    done = CliRunner().invoke(cli, ["batch", *words], standalone_mode=False)
    error = done.exception
    assert error is None or isinstance(error, Exception)
    return error


def test_both_forms_ask_for_the_same(asked: list[Call]) -> None:
    Path("claims.toml").write_text(CLAIMS)
    Path("lab.toml").write_text(
        """
        suite = "ssd"
        tests = ["iops", "lat"]
        profile = "quick"
        claims = "claims.toml"
        parallel = 2
        stagger = "5min"
        strict = true
        compare_reads = false
        alone_again = true
        own_cpus = false
        drives = ["sim:sata-ssd", "sim:client-tlc"]
        [options]
        jobs = 2
        io_depth = 8
        write_cache = "off"
        facts = { Note = "rack 4" }
        """
    )
    assert invoke("lab", "lab.toml", "--output", "out") is None
    words = (
        "lab ssd sim:sata-ssd sim:client-tlc -ssdt iops lat --profile quick --claims claims.toml "
        "--parallel 2 --stagger 5min --strict --no-compare-reads --alone-again --share-cpus "
        "-nj 2 -iod 8 --write-cache off --fact Note=rack\u00a04 --output out"
    )
    assert invoke(*(word.replace("\u00a0", " ") for word in words.split(" "))) is None
    (by_file, options), (by_words, other_options) = asked
    assert by_file == by_words
    assert options == other_options
    assert options.path == Path("out/lab.batch")


def test_options_prevail_over_the_file(asked: list[Call]) -> None:
    Path("claims.toml").write_text(CLAIMS)
    Path("lab.toml").write_text('suite = "ssd"\nparallel = 1\nstagger = 9\ndrives = ["sim:hdd"]\n')
    assert invoke("lab", "lab.toml", "--parallel", "all", "--claims", "claims.toml") is None
    ((request, _),) = asked
    assert (request.parallel, request.stagger_s, request.claims) == ("all", 9, CLAIMS)


def test_a_file_in_another_folder(asked: list[Call], tmp_path: Path) -> None:
    """Paths in the batch file are relative to the folder of this file. Paths on the command line are relative to the
    current folder.
    """
    (tmp_path / "there").mkdir()
    (tmp_path / "there/claims.toml").write_text(CLAIMS)
    (tmp_path / "there/lab.toml").write_text(
        'suite = "ssd"\nclaims = "claims.toml"\ndrives = [{ drive = "a.img", size = "1MiB" }]\n'
    )
    assert invoke("lab", "there/lab.toml") is None
    ((request, options),) = asked
    assert request.drives[0].request.device == f"{tmp_path}/there/a.img"
    assert options.path == Path("lab.batch")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("n", "After NAME, pass BATCH.toml, or a suite and its drives"),
        ("ssd /dev/sdb /dev/sdc", "NAME comes before ssd"),
        (
            "n --parallel 2 lab.toml",
            "--parallel is in the wrong place. Pass options after BATCH.toml or after the suite",
        ),
        ("n raid /dev/md0", "a RAID set is one device made of several: run 'tkperf raid'"),
        ("n ssd", "Missing argument 'DEVICE...'"),
        ("n lab.toml more", "'more': more than this command takes"),
        ("n lab.toml -nj 4", "there is no option -nj"),
        ("n ssd sim:hdd --yes-destroy X", "there is no option --yes-destroy; did you mean --yes-destroy-file?"),
        ("n ssd sim:hdd --force", "there is no option --force"),
        ("n ssd sim:hdd --parallel 0", "must be 1 or more, but it is 0"),
        ("n ssd sim:hdd --parallel x", "--parallel 'x' is not a number of drives. Write auto, all, or a number"),
        ("n ssd sim:hdd --stagger x", "--stagger 'x' is not a time"),
        ("n ssd sim:hdd --rate x", "--rate 'x'"),
        ("n ssd sim:hdd --rated x", "--rated 'x'"),
        ("n ssd sim:hdd --detach --progress json", "with --detach, the batch continues without a terminal"),
        ("a/b ssd sim:hdd", "NAME 'a/b' becomes a file name"),
        ("n ssd ./a.img ./a.img --size 1MiB", "drive 2: "),
        ("n ssd sim:hdd --size 1", "--size"),
        ("n ssd sim:hdd -ssdt ipos", "test 'ipos'"),
        ("n hdd sim:hdd --no-purge", "there is no option --no-purge"),
        ("n nosuch.toml", "cannot read batch nosuch.toml"),
    ],
)
def test_wrong_calls(asked: list[Call], words: str, says: str) -> None:
    Path("lab.toml").write_text('suite = "ssd"\ndrives = ["sim:hdd"]\n')
    error = invoke(*words.split())
    assert error is not None
    message = error.format_message() if isinstance(error, click.ClickException) else str(error)
    assert says in message
    assert not asked


def test_a_strangers_file_is_not_used(asked: list[Call]) -> None:
    path = Path("lab.toml")
    path.write_text('suite = "ssd"\ndrives = ["sim:hdd"]\n')
    path.chmod(0o666)
    assert isinstance(invoke("n", "lab.toml"), RefusedError)
    path.chmod(0o600)
    path.write_text("suite")
    assert isinstance(invoke("n", "lab.toml"), InputFileError)
    assert not asked


def test_the_suites_have_their_own_options() -> None:
    """A batch accepts all options of its suite, except the options that apply only to a single drive or a single run. A
    new option of a suite therefore also becomes an option of its batches.
    """
    of_one = {"name", "force", "yes_destroy"}
    for suite in (ssd, hdd):
        names: set[Any] = {param.name for param in batch.commands[str(suite.name)].params}
        assert names >= {param.name for param in suite.params} - of_one
        assert not names & of_one


def test_every_option_of_a_batch_goes_somewhere(asked: list[Call]) -> None:
    """Every option has an effect. In the form with a file, each option is a field of the batch request or of the batch
    options.
    """
    own = {field.name for field in fields(BatchOptions)}
    known = own | set(BatchRequest.__struct_fields__) | {"stagger"}
    names = {param.name for param in batch.commands[FILE].params}
    assert names <= known
    assert invoke("lab", "ssd", "sim:hdd", "--profile", "quick") is None
    ((request, _),) = asked
    assert json.loads(json.dumps(request.drives[0].request.options))["telemetry"] is True


_WITH_A_SERIAL = """
import sys
from pathlib import Path
from tkperf.cli.run_options import BatchOptions
from tkperf.cli.batch_session import run_batch
from tkperf.model.errors import TkperfError
from tkperf.batch.request import BatchDrive, BatchRequest
from tkperf.pipeline.run_request import RunRequest

run = RunRequest(suite="ssd", device=sys.argv[1], profile="quick")
drive = BatchDrive(name="lab-01", request=run, given="PHYH850500YA", serial="PHYH850500YA")
try:
    run_batch(BatchRequest(name="lab", drives=(drive,)), BatchOptions(name="lab", folder=Path()))
except TkperfError as error:
    print(error.exit_code.value, error)
"""


def test_another_drive_at_the_path(tmp_path: Path) -> None:
    """If the kernel renames the drives after tkperf has inspected them and before it opens them exclusively, tkperf
    refuses a drive whose serial number differs from the requested one.
    """
    other = tmp_path / "other.img"
    other.write_bytes(b"x" * (64 << 20))
    done = subprocess.run(
        [sys.executable, "-c", _WITH_A_SERIAL, other],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.startswith("4 1 of 1 drive cannot be measured"), done.stdout + done.stderr
    assert "the requested drive has the serial number PHYH850500YA" in done.stdout
    assert "no drive was touched" in done.stdout
    assert {each.name for each in tmp_path.iterdir()} == {"other.img"}
