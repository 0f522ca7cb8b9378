"""What comes from a host is a stranger's until it is read: nothing that it sends is taken on trust."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from shlex import quote

import msgspec
import pytest

from tkperf.model.batch import DriveShown, DriveStage, HostMet
from tkperf.model.drive_path import DrivePath
from tkperf.model.errors import TkperfError
from tkperf.model.version import __version__
from tkperf.pipeline.batch.fleet.fleet import _describe_clock, _find_old_fio
from tkperf.pipeline.batch.fleet.messages import (
    PROTOCOL,
    Begin,
    Clock,
    EventSeen,
    Found,
    FromHost,
    Hello,
    Outlined,
    Over,
    Refused,
    Seen,
    Snapshot,
    UnderWay,
)
from tkperf.pipeline.batch.fleet.site import Site
from tkperf.pipeline.batch.fleet.work import (
    Event,
    Failed,
    Heard,
    HostWork,
    Left,
    Looked,
    Lost,
    Met,
    News,
    find_same,
)
from tkperf.pipeline.batch.protocol import Held
from tkperf.pipeline.batch.request import BatchDrive, BatchRequest
from tkperf.pipeline.request import RunRequest

HELLO = Hello(
    protocol=PROTOCOL,
    tkperf_version=__version__,
    fio_version="fio-3.33",
    boot_id="1",
    user="measure",
)
NOW = Clock(utc_s=0.0)
OUTLINED = Outlined(shortest_s=1, longest_s=2, groups="all at once")


def held(number: int = 1, name: str = "b-07") -> Held:
    shown = DriveShown(number=number, name=name, path="/dev/sda", capacity_bytes=10**9)
    return Held(shown=shown, shortest_s=1, longest_s=2, jobs=1, way=DrivePath(drive=name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Site):
    """A host that a shell script plays."""

    script: Path

    @property
    def argv(self) -> list[str]:
        return ["sh", str(self.script)]


def _say(*words: FromHost | str) -> str:
    lines = (one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in words)
    return "\n".join(f"printf '%s\\n' {quote(line)}" for line in lines) or ":"


def work_with(
    tmp_path: Path,
    begins: tuple[FromHost | str, ...] = (NOW, Found(held=held()), OUTLINED),
    follows: str = ":",
    *,
    hello: Hello = HELLO,
    then: str = 'while read -r more; do case "$more" in *Answer*) exit 0;; esac; done',
) -> HostWork:
    """The seventh drive of a batch, which is the first one of its host.

    Args:
        begins: what its host says to the order to begin.
        follows: what it does at that to follow.
        then: what it does afterwards.
    """
    request = BatchRequest(
        name="b",
        drives=(
            BatchDrive(
                name="b-07", request=RunRequest(suite="ssd", device="/dev/sda"), given="/dev/sda"
            ),
        ),
    )
    script = tmp_path / "host.sh"
    script.write_text(
        f'{_say(hello)}\nread -r order\ncase "$order" in\n*\'"Begin"\'*)\n{_say(*begins)}\n;;\n*)\n{follows}\n;;\nesac\n{then}\n'
    )
    folder = tmp_path / "here"
    folder.mkdir()
    return HostWork(
        site=Scripted(host="measure@lab3", tkperf="/opt/tkperf", script=script),
        begin=Begin(request=request, files={}, options={}),
        numbers=(7,),
        folder=folder,
        news=Queue(),
    )


def news_of(work: HostWork, kind: Callable[[News], bool]) -> list[News]:
    """The news up to the first one of a kind."""
    found: list[News] = []
    while not (found and kind(found[-1])):
        found.append(work.news.get(timeout=20))
    return found


def follow(work: HostWork) -> None:
    """Start it, and give the answer."""
    work.start()
    (looked,) = news_of(work, lambda _: True)
    assert isinstance(looked, Looked), looked
    work.answer()


@pytest.mark.parametrize(
    ("begins", "says"),
    [
        ((NOW, "rm -rf /"), "a line that is no message"),
        ((NOW, "x" * 200_000), "a line of more than"),
        ((NOW, "[" * 100_000), "a line that is no message"),
        ((NOW, '{"type":"Found","held":1e999}'), "a line that is no message"),
        ((NOW, '{"type":"UnderWay","more":1}'), "unknown field"),
        ((NOW, r'{"type":"Refused","exit_code":3,"text":"\u001b]0;x\u0007"}'), "control char"),
        ((NOW, Found(held=held(name="../../etc/x")), OUTLINED), "another drive"),
        ((NOW, Found(held=held(number=2)), OUTLINED), "another drive"),
        ((NOW, Found(held=held()), Found(held=held())), "another drive"),
        ((NOW, OUTLINED), "it shows 0 of 1 drives"),
        ((NOW, Found(held=held()), UnderWay()), "UnderWay"),
        ((NOW, Over()), "Over"),
        ((UnderWay(),), "UnderWay came in place of Clock"),
        ((NOW, Refused(exit_code=4, text="no such drive")), "lab3: no such drive"),
    ],
)
def test_before_consent_a_host_that_says_something_else_takes_no_part(
    tmp_path: Path, begins: tuple[FromHost | str, ...], says: str
) -> None:
    work = work_with(tmp_path, begins)
    work.start()
    (failed,) = news_of(work, lambda _: True)
    assert isinstance(failed, Failed)
    assert says in str(failed.error)
    assert "measure@lab3" in str(failed.error)


def test_an_end_of_the_connection_before_the_answer_is_a_fault(tmp_path: Path) -> None:
    work = work_with(tmp_path, then="exit 0")
    work.start()
    *_, failed = news_of(work, lambda one: isinstance(one, Failed))
    assert isinstance(failed, Failed)
    assert "the connection has ended" in str(failed.error)


def _copy_of(content: bytes, sha256: str | None = None) -> str:
    """A host that has the content for the run file of its drive, which is done."""
    head = Snapshot(size_bytes=len(content), sha256=sha256 or hashlib.sha256(content).hexdigest())
    done = _say(NOW, Seen(number=1, stage=DriveStage.DONE, exit_code=0))
    return f"{done}\nread -r fetch\n{_say(head)}\nprintf '%s' {quote(content.decode())}"


@pytest.mark.parametrize(
    ("follows", "says"),
    [
        (_say(NOW, Seen(number=9, stage=DriveStage.RUNNING)), "drive 9, which it has not"),
        (_say(NOW, EventSeen(number=9, event={})), "drive 9, which it has not"),
        (_say(NOW, '{"type":"Seen","number":0,"stage":"done"}'), "a line that is no message"),
        (_say(NOW, '{"type":"Seen","number":1,"stage":"erased"}'), "a line that is no message"),
        (_say(NOW, Outlined(shortest_s=0, longest_s=0, groups="")), "for which nothing asked"),
        (_copy_of(b"no database" * 9), "is no snapshot of a run file"),
        (_copy_of(b"no database" * 9, "0" * 64), "came damaged"),
        (_say(NOW, '{"type":"Snapshot","size_bytes":-1,"sha256":""}'), "no message"),
        (_say(NOW, f'{{"type":"Snapshot","size_bytes":{1 << 40},"sha256":""}}'), "no message"),
    ],
)
def test_after_consent_such_a_host_is_asked_again_and_leaves_no_file_here(
    tmp_path: Path, follows: str, says: str
) -> None:
    work = work_with(tmp_path, follows=follows)
    follow(work)
    *_, lost = news_of(work, lambda one: isinstance(one, Lost))
    assert isinstance(lost, Lost)
    assert says in lost.text
    assert not list(work.folder.iterdir())


def test_news_have_the_number_of_the_whole_batch_and_times_of_the_clock_here(
    tmp_path: Path,
) -> None:
    """The host's clock is an hour ahead."""
    now_s = time.time()
    follows = _say(
        Clock(utc_s=now_s + 3600),
        Seen(number=1, stage=DriveStage.RUNNING, started_s=now_s + 3600),
        EventSeen(number=1, event={"event": "RunStarted"}),
        Seen(number=1, stage=DriveStage.CONSENT_ENDED, started_s=1e30),
        Over(),
    )
    work = work_with(tmp_path, follows=follows)
    follow(work)
    met, running, event, ended, _ = news_of(work, lambda one: isinstance(one, Left))
    assert isinstance(met, Met)
    assert abs(met.met.ahead_s - 3600) < 60
    (text,) = _describe_clock(met.met)
    assert "measure@lab3 is 1 h" in text
    assert "ahead of the one here" in text
    assert isinstance(running, Heard)
    assert isinstance(ended, Heard)
    assert (running.line.number, ended.line.number) == (7, 7)
    assert running.line.started_utc is not None
    assert running.line.started_utc[:13] <= time.strftime("%Y-%m-%dT%H", time.gmtime())
    assert ended.line.started_utc is None
    assert event == Event(number=7, event={"event": "RunStarted"})


def test_another_version_is_named_with_its_host(tmp_path: Path) -> None:
    work = work_with(tmp_path, hello=msgspec.structs.replace(HELLO, tkperf_version="2.9"))
    work.start()
    (failed,) = news_of(work, lambda _: True)
    assert isinstance(failed, Failed)
    assert "lab3 has tkperf 2.9" in str(failed.error)


SITE = Site(host="measure@lab3", tkperf="/usr/local/bin/tkperf")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "sudo: a password is required",
            "measure ALL=(root) NOPASSWD: /usr/local/bin/tkperf on-host",
        ),
        ("sh: 1: sudo: not found", "there is no sudo"),
        ("sudo: /usr/local/bin/tkperf: command not found", "install tkperf"),
        ("measure@lab3: Permission denied (publickey).", "ssh-copy-id measure@lab3"),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            "ssh-keygen -R lab3",
        ),
        ("ssh: connect to host lab3 port 22: No route to host", "cannot be reached: ssh: connect"),
        ("\x1b[2J", "cannot be reached"),
        ("", "ssh ended with 255"),
    ],
)
def test_a_host_that_does_not_answer_is_explained(words: str, says: str) -> None:
    error: TkperfError = SITE.explain(words, 255)
    assert says in str(error)
    assert "\x1b" not in str(error)


def test_one_drive_on_two_hosts_is_found() -> None:
    def on(host: str, **facts: str) -> tuple[Held, ...]:
        one = held()
        shown = msgspec.structs.replace(one.shown, host=host, **facts)
        return (msgspec.structs.replace(one, shown=shown),)

    assert find_same({"a": on("a", wwn="0x5"), "b": on("b", wwn="0x6")}) is None
    found = find_same({"a": on("a", wwn="0x5"), "b": on("b", wwn="0x5")})
    assert found is not None
    assert "world-wide name 0x5" in found
    numbers = {"a": on("a", model="X", serial="1"), "b": on("b", model="X", serial="1")}
    assert "serial number 1" in (find_same(numbers) or "")
    # Makers number their models independently.
    assert find_same({**numbers, "b": on("b", model="Y", serial="1")}) is None


def test_the_host_with_the_older_fio_is_to_be_updated() -> None:
    def met(host: str, fio: str | None) -> HostMet:
        return HostMet(host=host, tkperf="/x", boot_id="", fio_version=fio, ahead_s=0, within_s=0)

    assert not list(_find_old_fio([met("a", "fio-3.36"), met("b", "fio-3.36"), met("c", None)]))
    assert list(_find_old_fio([met("a", "fio-3.9"), met("b", "fio-3.36")])) == [
        "a has fio-3.9, and b has fio-3.36: update fio on a"
    ]
