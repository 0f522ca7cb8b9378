"""A batch file is read strictly. Every mistake is reported with the file and the key before tkperf accesses a drive."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.batch.draft import choose_rest, parse_batch_file, read_batch_file
from tkperf.batch.ledger import DriveBegan, DrivesConfirmed, Ledger
from tkperf.batch.request import BatchRequest
from tkperf.model.batch_state import BatchPlace, DriveShown
from tkperf.model.errors import InputFileError, RefusedError, RunFileError, TkperfError
from tkperf.model.sharing import SharingState
from tkperf.pipeline.run_request import RunRequest

CLAIMS = '[[claim]]\ntest = "iops"\nmetric = "iops"\nread_percent = 100\nblock_size = "4k"\nat_least = 1\n'


def settle(folder: Path, text: str, name: str = "lab") -> BatchRequest:
    path = folder / "lab.toml"
    path.write_text(text)
    return read_batch_file(path).settle(name).require_sound()


def refused(folder: Path, text: str, name: str = "lab") -> str:
    with pytest.raises(InputFileError) as caught:
        settle(folder, text, name)
    words = str(caught.value)
    assert words.startswith(f"batch {folder}/lab.toml")
    return words.removeprefix(f"batch {folder}/lab.toml").removeprefix(", ").removeprefix(": ")


def test_every_key(tmp_path: Path) -> None:
    """Every key of a batch file becomes part of the request. Relative paths begin in the folder of the file."""
    (tmp_path / "claims.toml").write_text(CLAIMS)
    request = settle(
        tmp_path,
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
        drives = [
            "sim:sata-ssd",
            { drive = "new.img", size = "64MiB", slot = 3, name = "third", facts = { "nand type" = "QLC" } },
        ]
        [options]
        jobs = 2
        step_s = 1
        no_purge = true
        facts = { "NAND type" = "TLC", Note = "rack 4" }
        """,
    )
    runs = [drive.request for drive in request.drives]
    assert [drive.name for drive in request.drives] == ["lab-01", "third"]
    assert [drive.slot for drive in request.drives] == [None, "3"]
    assert [run.device for run in runs] == ["sim:sata-ssd", f"{tmp_path}/new.img"]
    assert runs[1].size == "64MiB"
    assert runs[1].facts == {"NAND type": "QLC", "Note": "rack 4"}
    assert runs[0] == RunRequest(
        suite="ssd",
        device="sim:sata-ssd",
        tests=("iops", "lat"),
        profile="quick",
        jobs=2,
        step_s=1.0,
        no_purge=True,
        strict=True,
        facts={"NAND type": "TLC", "Note": "rack 4"},
    )
    assert request.parallel == 2
    assert request.stagger_s == 300
    assert request.strict
    assert not request.compare_reads
    assert request.alone_again
    assert not request.own_cpus
    assert request.claims == CLAIMS
    assert request.claims_path == f"{tmp_path}/claims.toml"
    assert msgspec.json.decode(msgspec.json.encode(request), type=BatchRequest) == request


def test_options_are_the_fields_of_a_run(tmp_path: Path) -> None:
    """A batch file accepts exactly the fields of a run request as options, because tkperf has no second list of
    keys.
    """
    words = refused(tmp_path, 'suite = "ssd"\ndrives = ["sim:sata-ssd"]\n[options]\nio_deph = 3\n')
    listed = words.partition("choose from ")[2].partition(";")[0].split(", ")
    elsewhere = {"suite", "device", "tests", "profile", "raid", "remove_set"}
    assert set(listed) == set(RunRequest.__struct_fields__) - elsewhere
    assert words.endswith("did you mean io_depth?")
    assert words.startswith("options, key io_deph:")


DRIVES = 'drives = ["sim:sata-ssd"]\n'
SSD = f'suite = "ssd"\n{DRIVES}'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("suite = ", "not valid TOML"),
        (DRIVES, "required key suite is missing"),
        ('suite = "ssd"', "required key drives is missing"),
        ('suite = "ssd"\ndrives = []', "key drives: a list of 0 is not allowed"),
        ('suite = "ssd"\ndrives = [5]', "drives 1"),
        ('suite = "ssd"\ndrives = "sda"', 'key drives: "sda" is not allowed'),
        ('suite = "ssd"\ndrives = [""]', "drives 1, key drive"),
        ('suite = "ssd"\ndrives = [{ slot = "1" }]', "drives 1: required key drive is missing"),
        (
            'suite = "ssd"\ndrives = ["sim:sata-ssd", { drive = "sim:hdd", serail = "X" }]',
            "drives 2, key serail: choose from drive, slot, name, size, host, facts",
        ),
        ('suite = "raid"\n' + DRIVES, "key suite: a batch measures drives next to each other"),
        ('suite = "sdd"\n' + DRIVES, "key suite 'sdd': choose from hdd, ssd; did you mean"),
        (f"paralel = 2\n{SSD}", "key paralel: choose from"),
        (f"parallel = 0\n{SSD}", "key parallel: 0 is not allowed"),
        (f'parallel = "al"\n{SSD}', "key parallel"),
        (f'stagger = "soon"\n{SSD}', "key stagger: 'soon' is not a time"),
        (f'stagger = "48h"\n{SSD}', "stagger: 172800 s is outside"),
        (f"strict = 1\n{SSD}", "key strict: 1 is not allowed, it takes true or false"),
        (f'tests = ["ipos"]\n{SSD}', "key tests: test 'ipos': choose from"),
        (f'profile = "quik"\n{SSD}', "profile 'quik'"),
        (f"{SSD}[options]\njobs = 0", "key options.jobs: number of threads: 0 is not within"),
        (f'{SSD}[options]\njobs = "4"', 'options, key jobs: "4" is not allowed'),
        (f'{SSD}[options]\nactive_range = "0%"', "key options.active_range"),
        (f"{SSD}[options]\nsuite = 'hdd'", "options, key suite: choose from"),
        (
            f'{SSD}[options]\nfacts = {{ Nand = "x" }}',
            "key options.facts: facts: there is no fact with the name 'Nand'",
        ),
        (f'{SSD}[options]\nno_purge = true\npurge_method = "discard"', "--no-purge and --purge exclude each other"),
        (
            'suite = "ssd"\ndrives = ["sim:hdd", { drive = "sim:hdd", facts = { Nand = "x" } }]',
            "drives 2: facts: there is no fact with the name 'Nand'",
        ),
        ('suite = "ssd"\ndrives = [{ drive = "a.img", size = "1" }]', "drives 1: --size"),
        ('suite = "ssd"\ndrives = ["./a", "./a"]', "drives 2: "),
        ('suite = "ssd"\ndrives = [{ drive = "sim:hdd", name = "../x" }]', "drives 1, key name: NAME '../x'"),
        (
            'suite = "ssd"\ndrives = [{ drive = "sim:hdd", name = "x" }, { drive = "sim:hdd", name = "x" }]',
            "two drives of the batch have the name x",
        ),
        (
            'suite = "ssd"\ndrives = [{ drive = "sim:hdd", name = "lab" }]',
            "a drive of the batch has the same name as the batch, lab",
        ),
        ('suite = "ssd"\ndrives = ["a\\u0000b"]', "zero byte"),
        ('suite = "ssd"\ndrives = ["sim:hdd", { drive = "sim:hdd", host = "lab3" }]', "Name a host for every drive"),
        ('suite = "ssd"\ndrives = [{ drive = "sim:hdd", host = "-oProxyCommand=x" }]', "is not the name of a host"),
        ('tkperf = "/a b"\nsuite = "ssd"\ndrives = ["sim:hdd"]', "Write an absolute path"),
        (
            'suite = "ssd"\ndrives = [{ drive = "a/b.img", host = "lab3", size = "1GiB" }]',
            "Write the absolute path of the drive on that host",
        ),
        (f"{SSD}[options]\nno_purge = true\nremove_set = true", "options, key remove_set"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, says: str) -> None:
    assert says in refused(tmp_path, text)


def test_claims_with_a_mistake(tmp_path: Path) -> None:
    """Claims are read before the measurement begins. If a claim contains a mistake, the error names the key."""
    (tmp_path / "claims.toml").write_text(CLAIMS.replace("at_least", "at_leats"))
    path = tmp_path / "lab.toml"
    path.write_text(f'claims = "claims.toml"\n{SSD}')
    with pytest.raises(InputFileError, match=r"claims .*/claims.toml, claim 1, key at_leats"):
        read_batch_file(path).settle("lab")
    path.write_text(f'claims = "none.toml"\n{SSD}')
    with pytest.raises(InputFileError, match=r"cannot read claims .*/none.toml"):
        read_batch_file(path).settle("lab")


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_can_write(tmp_path: Path, mode: int) -> None:
    """A batch file may name a command that runs as root. Such a file is refused if other users can write to it."""
    path = tmp_path / "lab.toml"
    path.write_text(SSD)
    path.chmod(mode)
    with pytest.raises(
        RefusedError, match=r"lab.toml is not used, because another user may have written the file: others can write to"
    ):
        read_batch_file(path)
    path.chmod(0o644)
    tmp_path.chmod(0o777)
    with pytest.raises(RefusedError, match="others can write to the folder"):
        read_batch_file(path)


def test_files_without_an_end(tmp_path: Path) -> None:
    for path in (Path("/dev/zero"), tmp_path, tmp_path / "none.toml"):
        with pytest.raises(InputFileError, match="cannot read batch"):
            read_batch_file(path)
    (tmp_path / "large.toml").write_text("#" * 300_000)
    with pytest.raises(InputFileError, match="larger than"):
        read_batch_file(tmp_path / "large.toml")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("suite", "drives", "tests", "profile", "parallel", "stagger", "options", "host", "x")


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_anything_is_read_or_refused(data: dict[str, object]) -> None:
    """A batch file with any content is either accepted or refused with an error of tkperf."""
    said = "/nowhere/lab.toml"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tkperf.batch.draft.tomllib.loads", lambda _: dict(data))
        try:
            parse_batch_file("", Path("/nowhere/lab.toml"))
        except TkperfError as error:
            said = str(error)
    assert "/nowhere/lab.toml" in said


# This program creates a run file. It is killed when it writes beyond a number of bytes in the run file or its journal.
KILLED_WRITER = """
import resource, signal, sys
from pathlib import Path
from tkperf.runfile.writer import create_run_file

limit = int(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
create_run_file(Path(sys.argv[1]))
"""


@pytest.fixture
def begun(tmp_path: Path) -> Ledger:
    """Return the ledger of a batch of one drive. The process that measured the drive no longer runs."""
    ledger = Ledger.create(tmp_path / "lab.batch", settle(tmp_path, 'suite = "ssd"\ndrives = ["sim:sata-ssd"]'), ())
    utc = "2026-11-24T10:00:00+00:00"
    drive = DriveShown(
        number=1, name="lab-01", path="sim:sata-ssd", capacity_bytes=10**9, serial="", confirm_id="sim:sata-ssd"
    )
    ledger.write(DrivesConfirmed(utc=utc, drives=(drive,)))
    place = BatchPlace(name="lab", number=1, others=0, sharing=SharingState.WITHIN_BUDGET, cpus=())
    ledger.write(DriveBegan(number=1, utc=utc, pid=1, pid_started="never", place=place))
    return ledger


@pytest.mark.parametrize("written_bytes", [0, 8192])
def test_a_run_file_of_a_process_that_was_killed_at_its_beginning_is_made_anew(
    begun: Ledger, tmp_path: Path, written_bytes: int
) -> None:
    """A process that is killed while it creates its run file leaves a file without a run, and the journal of this file.
    If the batch continues, both are deleted, because a new run is refused if one of them exists.
    """
    run_file = tmp_path / "lab-01.tkperf"
    journal = tmp_path / "lab-01.tkperf-journal"
    done = subprocess.run([sys.executable, "-c", KILLED_WRITER, run_file, str(written_bytes)], check=False)
    assert done.returncode == -signal.SIGXFSZ
    assert journal.exists()
    assert run_file.stat().st_size == written_bytes
    selection = choose_rest(begun)
    assert selection.numbers == (1,)
    assert not selection.resumed
    assert not run_file.exists()
    assert not journal.exists()


def test_a_damaged_run_file_is_not_deleted(begun: Ledger, tmp_path: Path) -> None:
    run_file = tmp_path / "lab-01.tkperf"
    run_file.write_bytes(b"SQLite format 3\0" + bytes(5000))
    with pytest.raises(RunFileError):
        choose_rest(begun)
    assert run_file.stat().st_size == 5016
