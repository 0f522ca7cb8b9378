"""tkperf explains errors in words, without error numbers, names of codecs or the word None. Each test provokes a real
error.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_bad_input import tkperf
from tkperf.model.errors import reason_of

RAW = re.compile(r"\[Errno|codec|\bNone\b|Error\(|E[A-Z]{3,}\b(?!_)|Traceback|0x[0-9a-f]{2}")
QUICK = ("--profile", "quick", "-ssdt", "iops", "-q")


def binary(path: Path) -> Path:
    """Write a file that is not text, and return its path."""
    path.write_bytes(bytes(range(256)) * 4)
    return path


def latin(path: Path) -> Path:
    path.write_bytes('title = "Gr\xf6\xdfe"\n'.encode("latin-1"))
    return path


PROVOKED: dict[str, tuple[Callable[[Path], tuple[object, ...]], int, str]] = {
    "profile that is no text": (
        lambda folder: ("ssd", "n", "sim:sata-ssd", "--profile", latin(folder / "p.toml")),
        2,
        "it is not text in UTF-8, from byte 11 on",
    ),
    "claims that are no text": (
        lambda folder: ("check", folder / "run.tkperf", binary(folder / "claims.toml")),
        2,
        "it is not text in UTF-8, from byte 128 on",
    ),
    "workload that is no text": (
        lambda folder: ("workload", "show", binary(folder / "w.toml")),
        2,
        "it is not text in UTF-8, from byte 128 on",
    ),
    "job file that is no text": (
        lambda folder: ("workload", "from-fio", latin(folder / "w.fio")),
        2,
        "it is not text in UTF-8",
    ),
    "profile that is a folder": (
        lambda folder: ("ssd", "n", "sim:sata-ssd", "--profile", f"{folder}/"),
        2,
        "it is a directory",
    ),
    "raid.json that is no JSON": (
        lambda folder: ("raid", "n", "/dev/md0", "-c", binary(folder / "raid.json")),
        2,
        "not valid JSON",
    ),
    "import of neither": (lambda folder: ("import", binary(folder / "x.xml")), 2, "x.xml"),
    "run file that is none": (
        lambda folder: ("show", binary(folder / "n.tkperf")),
        6,
        "n.tkperf is not a run file of tkperf",
    ),
    "output in a file": (
        lambda folder: ("ssd", "n", "sim:sata-ssd", *QUICK, "--output", f"{binary(folder / 'f')}/x"),
        6,
        "Not a directory",
    ),
    "output nobody may write": (
        lambda folder: ("ssd", "n", "sim:sata-ssd", *QUICK, "--output", "/proc/x"),
        6,
        "No such file or directory",
    ),
    "page over a folder": (lambda folder: ("report", folder / "run.tkperf", "-o", folder), 2, "is a directory"),
    "page in a file": (
        lambda folder: ("report", folder / "run.tkperf", "-o", f"{binary(folder / 'f')}/x.html"),
        2,
        "Not a directory",
    ),
    "tables in a file": (
        lambda folder: ("report", folder / "run.tkperf", "--csv", binary(folder / "f")),
        2,
        "is a file",
    ),
    "device that loops": (lambda folder: ("doctor", loop(folder / "l")), 4, "Too many levels of symbolic links"),
    "name that is too long": (lambda folder: ("show", "n" * 300), 6, "File name too long"),
    "description that is a pipe": (
        lambda folder: ("ssd", "n", "sim:sata-ssd", "-dsc", "/dev/zero"),
        2,
        "neither a file nor a pipe",
    ),
    "facts without an end": (
        lambda folder: ("ssd", "n", "sim:sata-ssd", "--fact-file", "/dev/zero"),
        2,
        "cannot read the facts /dev/zero: this path leads to neither a file nor a pipe",
    ),
    "facts of a report that are none": (
        lambda folder: ("report", folder / "run.tkperf", "--fact-file", binary(folder / "f")),
        2,
        "--fact-file '",
    ),
    "command that cannot be split": (
        lambda folder: ("ssd", "n", "sim:sata-ssd", "--notify-command", "mail 'x"),
        2,
        "No closing quotation",
    ),
}


def loop(path: Path) -> Path:
    path.symlink_to(path.name)
    return path


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    done = tkperf("ssd", "run", "sim:sata-ssd", *QUICK, "--output", folder)
    assert done.returncode == 0, done.stderr
    return folder / "run.tkperf"


@pytest.mark.parametrize("name", PROVOKED)
def test_a_provoked_error_is_told_in_words(run_file: Path, tmp_path: Path, name: str) -> None:
    """A provoked error leads to one line that describes the mistake, without any notation of Python or the kernel."""
    (tmp_path / "run.tkperf").write_bytes(run_file.read_bytes())
    make, code, says = PROVOKED[name]
    done = tkperf(*(str(word) for word in make(tmp_path)))
    assert done.returncode == code, done.stderr
    (line,) = (each for each in done.stderr.splitlines() if each.startswith("tkperf: "))
    assert says in line
    assert not RAW.search(line.replace(str(tmp_path), "")), line


def test_a_mail_server_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    """If the mail server cannot be reached after a run, the warning describes the reason in words."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mail = ("-m", "a@example.org", "-s", f"127.0.0.1:{port}")
    done = tkperf("ssd", "n", "sim:sata-ssd", *QUICK, "--output", tmp_path, *mail)
    (line,) = (each for each in done.stderr.splitlines() if "was not sent" in each)
    assert line.endswith(f"was not sent through 127.0.0.1:{port}: Connection refused")


def raised(act: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        act()
    return caught.value


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda: os.open("/nowhere/x", os.O_RDONLY), "No such file or directory"),
        (lambda: os.open("/", os.O_RDWR), "Is a directory"),
        (b"ab\xff".decode, "it is not text in UTF-8, from byte 2 on"),
        (lambda: "\xf6".encode("ascii"), "it has characters that cannot be sent or written there"),
        (lambda: (_ for _ in ()).throw(OSError("said so")), "said so"),
        (lambda: (_ for _ in ()).throw(TimeoutError()), "TimeoutError"),
        (
            lambda: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device", "/x")),
            "No space left on device",
        ),
    ],
)
def test_the_reason_of_an_error(act: Callable[[], object], says: str) -> None:
    """``reason_of`` returns the text of an error without the number and the type of the error."""
    assert reason_of(raised(act)) == says
