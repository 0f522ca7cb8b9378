"""tkperf responds quickly and clearly to any path that a user names as an input file."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.builders import run_info, simulate
from tkperf.cli.main import cli
from tkperf.model.errors import ProfileError, TkperfError, UsageError
from tkperf.model.input_files import read_input, read_text_input
from tkperf.model.units import GIB, MIB

# Commands that read each kind of input file. XXX is replaced with the path of the file.
COMMANDS = {
    "profile": (["ssd", "n", "sim:sata-ssd", "--profile", "XXX"], 2),
    "claims": (["check", "RUN", "XXX"], 2),
    "raid.json": (["raid", "n", "/dev/md99", "-c", "XXX"], 2),
    "description": (["ssd", "n", "sim:sata-ssd", "-dsc", "XXX"], 2),
    "feature matrix": (["ssd", "n", "sim:sata-ssd", "-fm", "XXX"], 2),
    "result of fio or TKperf": (["import", "XXX"], 2),
    "run file": (["show", "XXX"], 6),
    "run file of compare": (["compare", "RUN", "XXX"], 6),
    "run file of check": (["check", "XXX", "claims.toml"], 6),
    "run file of report": (["report", "XXX", "--json", "-"], 6),
}


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    simulate(folder, run_info())
    return folder / "run.tkperf"


@pytest.fixture
def limits() -> Iterator[None]:
    """Turn an input that would block the test or exhaust the memory into an error."""

    def hangs(*_: object) -> None:
        raise AssertionError("it hangs")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + GIB, before[1]))
    handler = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, handler)
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def make_odd(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that creates an unusual file. The path of the file contains ``/``, because a name without ``/``
    is the name of a profile.
    """

    def make(odd: str) -> Path:
        path = tmp_path / f"{odd.replace('/', '_')}.toml"
        match odd:
            case "a pipe without a writer":
                os.mkfifo(path)
            case "a directory":
                path.mkdir()
            case "10 GB of nothing":
                with path.open("wb") as file:
                    file.truncate(10 * 10**9)
            case _:
                return Path(odd)
        return path

    return make


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize(
    "odd", ["/dev/zero", "/dev/random", "/proc/kmsg", "a pipe without a writer", "a directory", "10 GB of nothing"]
)
@pytest.mark.usefixtures("limits")
def test_what_is_no_file_with_an_end_is_one_clear_error(
    make_odd: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_file: Path,
    kind: str,
    odd: str,
) -> None:
    """For every kind of input file, an endless or unreadable file causes one clear error with the right exit code.
    tkperf neither waits forever nor exhausts the memory.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.toml").write_text("")
    argv, code = COMMANDS[kind]
    place = str(make_odd(odd))
    words = [{"XXX": place, "RUN": str(run_file)}.get(word, word) for word in argv]
    done = CliRunner().invoke(cli, words)
    assert isinstance(done.exception, TkperfError), done.exception
    assert done.exception.exit_code == code
    assert place in str(done.exception)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    """A pipe is read to its end, as with ``<(...)``, even if its writer is slow."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            for _ in range(3):
                file.write(b"x" * 100_000)

    writer = threading.Thread(target=write)
    writer.start()
    assert read_input(pipe, what="claims", limit_bytes=MIB) == b"x" * 300_000
    writer.join()


def test_process_substitution_works(tmp_path: Path) -> None:
    """A profile can be given with process substitution. The test passes an invalid profile, and the resulting error
    shows that tkperf read the profile.
    """
    script = f"{sys.executable} -m tkperf ssd n sim:sata-ssd --profile <(echo 'naem = 1')"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "required key" in done.stderr or "naem" in done.stderr


def test_limits_are_kept_and_errors_are_of_the_kind_asked_for(tmp_path: Path) -> None:
    """A file that exceeds the limit by one byte is refused with the expected kind of error, even if its size is not
    known beforehand.
    """
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    assert read_input(path, what="profile", limit_bytes=10) == b"x" * 10
    with pytest.raises(ProfileError, match=r"cannot read profile .*larger than 9 B"):
        read_input(path, what="profile", limit_bytes=9, error=ProfileError)
    with pytest.raises(UsageError, match="larger than 10 B"):
        read_input(Path("/proc/self/mounts"), what="claims", limit_bytes=10)
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="it is not text in UTF-8, from byte 0 on"):
        read_text_input(path, what="claims", limit_bytes=10)
    with pytest.raises(UsageError, match="cannot read claims"):
        read_input(Path("a\0b"), what="claims", limit_bytes=10)
