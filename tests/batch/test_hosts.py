"""tkperf does not trust data that a host sends."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Queue
from shlex import quote
from typing import Any

import msgspec
import pytest

from tests.conftest import until
from tests.printed_forms import Printed, load_forms
from tkperf.batch.drive_processes import Held
from tkperf.batch.hosts import ssh
from tkperf.batch.hosts.all_hosts import BatchHosts, _commission, _describe_clock, _find_old_fio, _find_twins
from tkperf.batch.hosts.host_thread import DriveNews, HostEnded, HostLost, HostNews, HostReady, HostWork, find_same
from tkperf.batch.hosts.messages import (
    PROTOCOL,
    BatchEnded,
    Begin,
    Clock,
    DriveReport,
    EventReport,
    FromHost,
    HeldDrive,
    Hello,
    Lines,
    Options,
    Outlined,
    Refused,
    Snapshot,
    ToHost,
    UnderWay,
)
from tkperf.batch.hosts.ssh import RemoteHost
from tkperf.batch.ledger import BatchBegun, BatchLog, DrivesConfirmed, Ledger, RemoteDriveLine, read_batch
from tkperf.batch.request import BatchDrive, BatchRequest
from tkperf.cli.remote_orders import _begin
from tkperf.model.batch_state import ConnectedHost, DriveShown, DriveStage
from tkperf.model.errors import RefusedError, RunFileError, TkperfError
from tkperf.model.sharing import DrivePath
from tkperf.model.version import __version__
from tkperf.pipeline.run_request import RunRequest
from tkperf.pipeline.run_state import Brief
from tkperf.system.process import Completed

HELLO = Hello(protocol=PROTOCOL, tkperf_version=__version__, fio_version="fio-3.33", boot_id="1")
NOW = Clock(utc_s=0.0)
OUTLINED = Outlined(shortest_s=1, longest_s=2, groups="all at once")


def held(number: int = 1, name: str = "b-07") -> Held:
    shown = DriveShown(number=number, name=name, path="/dev/sda", capacity_bytes=10**9)
    return Held(shown=shown, shortest_s=1, longest_s=2, file_bytes=1, jobs=1, way=DrivePath(drive=name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(RemoteHost):
    """A host that a shell script simulates."""

    script: Path

    @property
    def argv(self) -> list[str]:
        return ["sh", str(self.script)]


_works: list[HostWork] = []


@pytest.fixture(autouse=True)
def _no_thread_is_left(tmp_path: Path) -> Iterator[None]:
    """End the threads of a test. Otherwise, they would connect to the host again and again, until the end of all
    tests.
    """
    yield
    script = tmp_path / "host.sh"
    if _works:
        script.write_text(f"{_say(HELLO)}\nread -r order\n{_say(NOW, BatchEnded())}\n")
    while _works:
        work = _works.pop()
        until(partial(_has_ended, work), "a thread of the test does not end")


def _has_ended(work: HostWork) -> bool:
    work.answer()  # ends the pause before the next connection
    work.join(0.1)
    return work._thread is None or not work._thread.is_alive()


def _say(*words: FromHost | str) -> str:
    lines = (one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in words)
    return "\n".join(f"printf '%s\\n' {quote(line)}" for line in lines) or ":"


def work_with(
    tmp_path: Path,
    begins: tuple[FromHost | str, ...] = (NOW, HeldDrive(held=held()), OUTLINED),
    follows: str = ":",
    *,
    hello: Hello | str = HELLO,
    then: str = 'while read -r more; do case "$more" in *Answer*) exit 0;; esac; done',
) -> HostWork:
    """Return the part of a batch that runs on one host. The first drive of the host is the seventh drive of the batch.

    Args:
        begins: what the host sends after the order to begin.
        follows: what the host does after the order to report on the batch ("follow").
        then: what the host does after ``begins`` or ``follows``.
    """
    request = BatchRequest(
        name="b",
        drives=(BatchDrive(name="b-07", request=RunRequest(suite="ssd", device="/dev/sda"), given="/dev/sda"),),
    )
    script = tmp_path / "host.sh"
    script.write_text(
        f'{_say(hello)}\nread -r order\ncase "$order" '
        f"in\n*'\"Begin\"'*)\n{_say(*begins)}\n;;\n*)\n{follows}\n;;\nesac\n{then}\n"
    )
    folder = tmp_path / "here"
    folder.mkdir()
    work = HostWork(
        remote_host=Scripted(host="measure@lab3", tkperf="/opt/tkperf", script=script),
        begin=Begin(request=request, files={}, options=Options()),
        numbers=(7,),
        folder=folder,
        news=Queue(),
        events=True,
    )
    _works.append(work)
    return work


def news_of(work: HostWork, kind: Callable[[HostNews], bool]) -> list[HostNews]:
    """Return the messages of the host, up to the first message of the given kind."""
    found: list[HostNews] = []
    while not (found and kind(found[-1])):
        found.append(work.news.get(timeout=120))
    return found


def follow(work: HostWork) -> None:
    """Start the work of the host and send the user's answer."""
    work.start()
    (ready,) = news_of(work, lambda _: True)
    assert isinstance(ready, HostReady), ready
    work.answer()


@pytest.mark.parametrize(
    ("begins", "says"),
    [
        ((NOW, "rm -rf /"), "a line that is not a message"),
        ((NOW, "x" * 200_000), "a line of more than"),
        ((NOW, "[" * 100_000), "a line that is not a message"),
        ((NOW, '{"type":"HeldDrive","held":1e999}'), "a line that is not a message"),
        ((NOW, '{"type":"UnderWay","more":1}'), "unknown field"),
        ((NOW, r'{"type":"Refused","exit_code":3,"text":"\u001b]0;x\u0007"}'), "control char"),
        ((NOW, r'{"type":"Refused","exit_code":3,"text":"a\nlab4: erased"}'), "control char"),
        ((NOW, r'{"type":"Refused","exit_code":3,"text":"\u202etxt.exe"}'), "control char"),
        (('{"type":"Clock","utc_s":1e300}',), "a line that is not a message"),
        ((NOW, Outlined(shortest_s=1, longest_s=1, groups="x" * 5000)), "a text field longer than"),
        ((NOW, HeldDrive(held=held(name="../../etc/x")), OUTLINED), "not part of the request"),
        ((NOW, HeldDrive(held=held(number=2)), OUTLINED), "not part of the request"),
        ((NOW, HeldDrive(held=held()), HeldDrive(held=held())), "not part of the request"),
        ((NOW, OUTLINED), "it shows 0 of 1 drives"),
        ((NOW, HeldDrive(held=held()), UnderWay()), "UnderWay"),
        ((NOW, BatchEnded()), "BatchEnded"),
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
    assert isinstance(failed, HostEnded)
    assert says in str(failed.error)
    assert "measure@lab3" in str(failed.error)


def test_an_end_of_the_connection_before_the_answer_is_a_fault(tmp_path: Path) -> None:
    work = work_with(tmp_path, then="exit 0")
    work.start()
    *_, failed = news_of(work, lambda one: isinstance(one, HostEnded))
    assert isinstance(failed, HostEnded)
    assert "the connection has ended" in str(failed.error)


def _copy_of(content: bytes, sha256: str | None = None) -> str:
    """Return the script of a host whose drive is done. The host sends the given content as the run file of the
    drive.
    """
    head = Snapshot(size_bytes=len(content), sha256=sha256 or hashlib.sha256(content).hexdigest())
    done = _say(NOW, DriveReport(number=1, stage=DriveStage.DONE, exit_code=0))
    return f"{done}\nread -r fetch\n{_say(head)}\nprintf '%s' {quote(content.decode())}"


@pytest.mark.parametrize(
    ("follows", "says"),
    [
        (_say(NOW, DriveReport(number=9, stage=DriveStage.RUNNING)), "drive 9, which is not part of the request"),
        (_say(NOW, EventReport(number=9, event={})), "drive 9, which is not part of the request"),
        (_say(NOW, '{"type":"DriveReport","number":0,"stage":"done"}'), "a line that is not a message"),
        (_say(NOW, '{"type":"DriveReport","number":1,"stage":"erased"}'), "a line that is not a message"),
        (
            _say(NOW, DriveReport(number=1, stage=DriveStage.RUNNING, brief=Brief(left_s=(0, 1e300)))),
            "a line that is not a message",
        ),
        (_say(NOW, Outlined(shortest_s=0, longest_s=0, groups="")), "without a request"),
        (_copy_of(b"no database" * 9), "are not a snapshot of the run file"),
        (_copy_of(b"no database" * 9, "0" * 64), "snapshot that the host sent is damaged"),
        (_say(NOW, '{"type":"Snapshot","size_bytes":-1,"sha256":""}'), "not a message"),
        (_say(NOW, f'{{"type":"Snapshot","size_bytes":{1 << 40},"sha256":""}}'), "not a message"),
    ],
)
def test_after_consent_such_a_host_is_asked_again_and_leaves_no_file_here(
    tmp_path: Path, follows: str, says: str
) -> None:
    work = work_with(tmp_path, follows=follows)
    follow(work)
    *_, lost = news_of(work, lambda one: isinstance(one, HostLost))
    assert isinstance(lost, HostLost)
    assert says in lost.text
    assert not list(work.folder.iterdir())


def test_news_have_the_number_of_the_whole_batch_and_times_of_the_clock_here(tmp_path: Path) -> None:
    """The messages from a host contain the drive numbers of the whole batch. The times in these messages are times of
    the local clock, even if the clock of the host is an hour ahead.
    """
    now_s = time.time()
    follows = _say(
        Clock(utc_s=now_s + 3600),
        DriveReport(number=1, stage=DriveStage.RUNNING, started_s=now_s + 3600),
        EventReport(number=1, event={"event": "RunStarted"}),
        DriveReport(number=1, stage=DriveStage.CONSENT_ENDED, started_s=1e30),
        BatchEnded(),
    )
    work = work_with(tmp_path, follows=follows)
    follow(work)
    connected, running, event, ended, _ = news_of(work, lambda one: isinstance(one, HostEnded))
    assert isinstance(connected, ConnectedHost)
    assert abs(connected.ahead_s - 3600) < 60
    (text,) = _describe_clock(connected)
    assert "measure@lab3 is 1 h" in text
    assert "ahead of the one here" in text
    assert isinstance(running, DriveNews)
    assert isinstance(ended, DriveNews)
    assert (running.line.number, ended.line.number) == (7, 7)
    assert running.line.started_utc is not None
    assert running.line.started_utc[:13] <= time.strftime("%Y-%m-%dT%H", time.gmtime())
    assert ended.line.started_utc is None
    assert event == EventReport(number=7, event={"event": "RunStarted"})


@pytest.mark.parametrize(
    ("hello", "says"),
    [
        (msgspec.structs.replace(HELLO, tkperf_version="2.9"), "lab3 has tkperf 2.9"),
        (
            '{"type":"Hello","protocol":2,"tkperf_version":"9","fio_version":null,"boot_id":"","key":1}',
            "lab3 has tkperf 9 (protocol 2)",
        ),
        ("Welcome to lab3", "printed to stdout on the host before tkperf did"),
    ],
)
def test_what_greets_in_place_of_this_version_is_named_with_its_host(
    tmp_path: Path, hello: Hello | str, says: str
) -> None:
    work = work_with(tmp_path, hello=hello)
    work.start()
    (failed,) = news_of(work, lambda _: True)
    assert isinstance(failed, HostEnded)
    assert says in str(failed.error)


def _first_and_later(tmp_path: Path, first: str, later: str) -> str:
    """Return the script of a host that behaves differently after the first ``Follow`` order than after later ``Follow``
    orders.
    """
    mark = quote(str(tmp_path / "followed"))
    return f"if mkdir {mark} 2>/dev/null; then\n{first}\nexit 0\nfi\n{later}"


RUNNING = DriveReport(number=1, stage=DriveStage.RUNNING)
STOPPED = DriveReport(number=1, stage=DriveStage.CONSENT_ENDED)


def test_a_wish_to_stop_that_a_cut_connection_swallowed_is_sent_again(tmp_path: Path) -> None:
    read_stop = 'while read -r more; do case "$more" in *Stop*) break;; esac; done'
    first = f"{_say(NOW, RUNNING)}\n{read_stop}"
    later = f"{_say(NOW)}\n{read_stop}\n{_say(STOPPED, BatchEnded())}"
    work = work_with(tmp_path, follows=_first_and_later(tmp_path, first, later))
    follow(work)
    news_of(work, lambda one: isinstance(one, DriveNews))
    work.stop()
    *_, report, _ = news_of(work, lambda one: isinstance(one, HostEnded))
    assert isinstance(report, DriveNews)
    assert report.line.stage is STOPPED.stage


def test_an_answer_that_is_still_on_its_way_is_waited_for(tmp_path: Path) -> None:
    """If a host does not know the batch yet, tkperf waits, because the user's answer may not have reached the host yet.
    The host holds its drives until it has received nothing for a while.
    """
    first = _say(NOW, Refused(exit_code=6, text="there is no batch"))
    later = _say(NOW, STOPPED, BatchEnded())
    work = work_with(tmp_path, follows=_first_and_later(tmp_path, first, later))
    follow(work)
    found = news_of(work, lambda one: isinstance(one, HostEnded))
    assert [one.line.stage for one in found if isinstance(one, DriveNews)] == [STOPPED.stage]
    assert not any(isinstance(one, HostLost) for one in found)


def test_connections_that_end_at_once_are_made_with_growing_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a connection ends immediately, tkperf connects again after pauses of increasing length. A host that crashes at
    each snapshot causes such connections.
    """
    pauses: list[float] = []
    take = HostWork._take_order

    def take_at_once(work: HostWork, timeout_s: float) -> object:
        if work._answered_s and timeout_s:
            pauses.append(timeout_s)
            timeout_s = 0.0
        return take(work, timeout_s)

    monkeypatch.setattr(HostWork, "_take_order", take_at_once)
    work = work_with(tmp_path, follows=f"{_say(NOW, RUNNING)}\nexit 0")
    follow(work)
    for _ in range(4):
        news_of(work, lambda one: isinstance(one, HostLost))
    assert pauses[:3] == [1.0, 2.0, 4.0]


def test_each_reason_for_silence_is_said(tmp_path: Path) -> None:
    """Each reason why a host does not answer is reported, because the user may have to act. For example, the host may
    be another machine or have another version of tkperf.
    """
    work = work_with(tmp_path, follows=f"{_say(NOW, RUNNING)}\nexit 0")
    script = tmp_path / "host.sh"
    other = _say(msgspec.structs.replace(HELLO, tkperf_version="2.9"))
    count = f"n=1\nwhile ! mkdir {quote(str(tmp_path))}/call-$n 2>/dev/null; do n=$((n + 1)); done"
    cases = f"case $n in 3) echo broken; exit 0;; 4) {other}; exit 0;; esac"
    script.write_text(f"{count}\n{cases}\n{script.read_text()}")
    follow(work)
    lost = [news_of(work, lambda one: isinstance(one, HostLost))[-1] for _ in range(3)]
    texts = [one.text for one in lost if isinstance(one, HostLost)]
    assert "the connection has ended" in texts[0]
    assert "printed to stdout on the host" in texts[1]
    assert "has tkperf 2.9" in texts[2]


def test_without_room_here_a_host_is_followed_all_the_same(tmp_path: Path) -> None:
    follows = f"{_copy_of(b'no database' * 9)}\n{_say(EventReport(number=1, event={}))}\nexit 0"
    work = work_with(tmp_path, follows=follows)
    work.folder.rmdir()
    follow(work)
    _, report, event = news_of(work, lambda one: isinstance(one, EventReport))
    assert isinstance(report, DriveNews)
    assert "its run file is still there: cannot write" in report.line.text
    assert isinstance(event, EventReport)


def test_events_that_nobody_asked_for_end_the_connection(tmp_path: Path) -> None:
    work = work_with(tmp_path, follows=_say(NOW, EventReport(number=1, event={})))
    work.events = False
    follow(work)
    *_, lost = news_of(work, lambda one: isinstance(one, HostLost))
    assert isinstance(lost, HostLost)
    assert "EventReport was sent without a request" in lost.text


def test_a_flood_of_messages_in_place_of_a_snapshot_ends_the_connection(tmp_path: Path) -> None:
    done = _say(NOW, DriveReport(number=1, stage=DriveStage.DONE))
    event = quote(msgspec.json.encode(EventReport(number=1, event={"a": "x" * 100_000})).decode())
    work = work_with(tmp_path, follows=f"{done}\nread -r fetch\nyes {event}")
    follow(work)
    *_, lost = news_of(work, lambda one: isinstance(one, HostLost))
    assert isinstance(lost, HostLost)
    assert "no snapshot of b-07 came" in lost.text


def test_input_files_have_names_of_their_content(tmp_path: Path) -> None:
    """The name of an input file depends on its content. If a second batch has the same name as the first, the host
    refuses the second batch. Even before this refusal, the files of the second batch cannot replace a profile of the
    first batch.
    """
    sent = []
    for text in ("a = 1", "a = 2"):
        path = tmp_path / "p.toml"
        path.write_text(text)
        run = RunRequest(suite="ssd", device="/dev/sda", profile=str(path))
        drives = (BatchDrive(name="b-01", request=run, given="/dev/sda"),)
        sent.append(_commission(BatchRequest(name="b", drives=drives), [1], resumes=False))
    (one, files), (other, others) = sent
    assert one.drives[0].request.profile != other.drives[0].request.profile
    assert (list(files.values()), list(others.values())) == (["a = 1"], ["a = 2"])


def _two_hosts() -> BatchRequest:
    run = RunRequest(suite="ssd", device="/dev/sda")
    drives = tuple(BatchDrive(name=f"b-{host}", request=run, given="/dev/sda", host=host) for host in ("lab3", "lab4"))
    return BatchRequest(name="b", drives=drives)


def test_of_a_confirmed_drive_without_news_nobody_says_that_it_is_untouched(tmp_path: Path) -> None:
    """If the batch was killed after the user's answer and before the first message from the host, the host may have
    started to erase the drive. tkperf therefore never states that a confirmed drive is untouched.
    """
    path = tmp_path / "b.batch"
    shown = msgspec.structs.replace(held(1).shown, host="lab3")
    ledger = Ledger.create(path, _two_hosts(), ())
    ledger.write(DrivesConfirmed(utc="", drives=(shown,)))
    ledger.close()
    confirmed, other = read_batch(path).drives
    assert (confirmed.stage, other.stage) == (DriveStage.WAITING, DriveStage.CONSENT_ENDED)
    assert confirmed.text == "no word from lab3 since consent"


def _resume(folder: Path, **given: Any) -> BatchHosts:
    """Return a resumed batch with a drive on each of two hosts. Only one of the hosts had started to work."""
    request = _two_hosts()
    log = BatchLog(
        begun=BatchBegun(format=1, tkperf_version="", command_line=(), request=request),
        reports={1: RemoteDriveLine(number=1, utc="", stage=DriveStage.DONE)},
    )
    return BatchHosts(request, folder, Options(), events=False, warn=pytest.fail, log=log, **given)


def test_a_host_without_any_wanted_drive_is_left_alone(tmp_path: Path) -> None:
    batch_hosts = _resume(tmp_path, without=("b-lab4",))
    assert [work.host for work in batch_hosts._works] == ["lab3"]
    # No connection was started, as after an early Ctrl-C.
    batch_hosts.dismiss()


def test_a_batch_whose_files_a_host_has_lost_is_not_begun_anew_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a host has lost its run files, for instance in a reboot, a batch does not start again on this host and creates
    no folder there.
    """
    lab3, lab4 = (work.begin for work in _resume(tmp_path)._works)
    assert (lab3.has_begun, lab4.has_begun) == (True, False)
    monkeypatch.setattr("tkperf.cli.remote_orders.HOSTS_FOLDER", tmp_path / "lost")
    with (tmp_path / "orders").open("w+b") as orders, pytest.raises(RunFileError, match="no longer exists"):
        _begin(lab3, Lines(orders.fileno(), ToHost), 0)
    assert not (tmp_path / "lost").exists()


def test_a_run_of_sudo_erases_drives_and_runs_no_other_program(tmp_path: Path) -> None:
    """Through sudo, a batch may erase drives but can run no other program. Otherwise the line in sudoers would grant
    the user all rights of root.
    """
    run = RunRequest(suite="ssd", device="/dev/sda", purge_command="touch {device}")
    drives = (BatchDrive(name="b-01", request=run, given="/dev/sda"),)
    order = Begin(request=BatchRequest(name="b", drives=drives), files={}, options=Options())
    with (tmp_path / "orders").open("w+b") as orders, pytest.raises(RefusedError, match="root@"):
        _begin(order, Lines(orders.fileno(), ToHost), 4711)
    given = msgspec.json.encode(order).replace(b'"rate":null', b'"notify_command":"id"')
    with pytest.raises(msgspec.ValidationError, match="notify_command"):
        msgspec.json.decode(given, type=ToHost)


SITE = RemoteHost(host="measure@lab3", tkperf="/usr/local/bin/tkperf")


def said(program: str, form: str, **fields: str) -> Printed:
    return load_forms(program)[form].fill(**fields)


NOPASSWD = "measure ALL=(root) NOPASSWD: /usr/local/bin/tkperf on-host"
EXECUTE = "is not allowed to execute '/usr/local/bin/tkperf on-host' as root"


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        (said("sudo", "password"), NOPASSWD),
        (said("sudo", "not-allowed", USER="measure", WHAT="may not run sudo", HOST="lab3"), NOPASSWD),
        (said("sudo", "not-allowed", USER="measure", WHAT=EXECUTE, HOST="lab3"), NOPASSWD),
        (said("sudo", "not-in-sudoers", USER="measure", WHAT="in the sudoers file"), NOPASSWD),
        (said("sudo", "not-in-sudoers", USER="measure", WHAT="allowed to run sudo on lab3"), NOPASSWD),
        (said("sudo", "sudo-rs-password"), NOPASSWD),
        (said("sudo", "sudo-rs-not-allowed", USER="measure", WHAT=EXECUTE, HOST="lab3"), NOPASSWD),
        (said("sudo", "command-missing", PATH="/usr/local/bin/tkperf"), "install tkperf"),
        (said("sudo", "sudo-rs-command-missing", PATH="/usr/local/bin/tkperf"), "install tkperf"),
        (said("ssh", "command-missing", SHELL="sh: 1: ", COMMAND="sudo", WORDS="not found"), "sudo is not installed"),
        (
            said("ssh", "command-missing", SHELL="bash: Zeile 1: ", COMMAND="sudo", WORDS="Kommando nicht gefunden."),
            "sudo is not installed",
        ),
        (said("ssh", "denied", USER="measure", HOST="lab3", METHODS="publickey"), "ssh-copy-id measure@lab3"),
        (said("ssh", "key-changed", HOST="lab3"), "ssh-keygen -R lab3"),
        (said("ssh", "key-unknown", STRICT=""), "not in known_hosts yet: ssh measure@lab3 once"),
        (said("ssh", "unreachable", HOST="lab3", PORT="22", WHY="No route to host"), "cannot be reached: ssh: connect"),
        (said("ssh", "no-such-host", HOST="lab3"), "cannot be reached: ssh: Could not resolve"),
    ],
)
def test_a_host_that_does_not_answer_is_explained(printed: Printed, says: str) -> None:
    """tkperf recognises the messages of each version of ssh, the remote shell, sudo and sudo-rs, and explains why a
    host does not answer.
    """
    assert says in str(SITE.explain(printed.stderr, printed.status))


def test_the_line_for_sudoers_names_the_user_of_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line that tkperf proposes for sudoers names the user of the SSH login. If the name of the host contains no
    user, tkperf reads the user from the configuration of ssh.
    """
    printed = said("ssh", "config", HOST="lab3", USER="measure")

    def run(argv: list[str], *, timeout_s: float) -> Completed:
        assert argv == ["ssh", "-G", "--", "lab3"]
        assert timeout_s > 0
        return Completed(exit_status=0, stdout=printed.stdout, stderr="")

    monkeypatch.setattr(ssh, "run_command", run)
    error = RemoteHost(host="lab3", tkperf="/usr/local/bin/tkperf").explain("sudo: a password is required", 1)
    assert NOPASSWD in str(error)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            said("sudo", "host-unknown", HOST="lab3").stderr + "Connection reset by peer",
            "cannot be reached: Connection reset",
        ),
        ("\x1b[2J", "cannot be reached"),
        ("", "ssh ended with 255"),
    ],
)
def test_words_that_explain_nothing_are_passed_on(words: str, says: str) -> None:
    """If tkperf does not recognise the output of ssh, the error contains the last line of this output without control
    characters. Warnings of sudo about host names are skipped. If ssh printed nothing, the error contains the exit
    status of ssh.
    """
    error: TkperfError = SITE.explain(words, 255)
    assert says in str(error)
    assert "\x1b" not in str(error)


def test_a_tkperf_without_the_command_is_to_be_updated() -> None:
    words = "Error: No such command 'on-host'."
    assert f"install tkperf {__version__} there" in str(SITE.explain(words, 2))


def test_one_host_under_two_names_is_found() -> None:
    def connected(host: str, boot_id: str) -> ConnectedHost:
        return ConnectedHost(host=host, tkperf="/x", boot_id=boot_id, fio_version=None, ahead_s=0, within_s=0)

    assert _find_twins([connected("a", "1"), connected("b", "2")]) is None
    assert "a and c are one host" in (
        _find_twins([connected("a", "1"), connected("b", "2"), connected("c", "1")]) or ""
    )


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
    # Each manufacturer assigns serial numbers independently.
    assert find_same({**numbers, "b": on("b", model="Y", serial="1")}) is None


def test_the_host_with_the_older_fio_is_to_be_updated() -> None:
    def connected(host: str, fio: str | None) -> ConnectedHost:
        return ConnectedHost(host=host, tkperf="/x", boot_id="", fio_version=fio, ahead_s=0, within_s=0)

    assert not list(_find_old_fio([connected("a", "fio-3.36"), connected("b", "fio-3.36"), connected("c", None)]))
    assert list(_find_old_fio([connected("a", "fio-3.9"), connected("b", "fio-3.36")])) == [
        "a has fio-3.9, and b has fio-3.36: update fio on a"
    ]
