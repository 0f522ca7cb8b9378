"""The choice of the I/O engine, and the recorded reason if the preferred engine does not work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tkperf.engine import ChosenEngine, RequiredIo, fio_setup
from tkperf.engine.fio_setup import ChosenClock, choose_clock, choose_ioengine
from tkperf.model.errors import EngineError
from tkperf.system.process import Completed, run_command

GOOD = Completed(exit_status=0, stdout='{"jobs": [{"error": 0}]}', stderr="")
FAILURES = {
    "its error, in words": (
        Completed(exit_status=1, stdout='{\n"jobs": [{"error": 1}]}', stderr=""),
        "Operation not permitted",
    ),
    "what it said on stderr": (
        Completed(exit_status=1, stdout='{\n"jobs": [{"error": 12}]}', stderr="\nfio: io_queue_init\n"),
        "Cannot allocate memory: fio: io_queue_init",
    ),
    "what it said before its JSON": (
        Completed(exit_status=1, stdout='fio: not loadable\n{\n"jobs": []}', stderr=""),
        "fio: not loadable",
    ),
    "its exit status": (Completed(exit_status=3, stdout="{\n", stderr=""), "exit status 3"),
    "nothing": (Completed(exit_status=0, stdout="", stderr=""), "it printed no result"),
    "a huge error": (Completed(exit_status=1, stdout='{"jobs": [{"error": 1e300}]}', stderr=""), "exit status 1"),
}


def answers(monkeypatch: pytest.MonkeyPatch, version: str = "fio-3.33", **by_engine: Completed) -> None:
    def run(argv: list[str], **_: object) -> Completed:
        if argv == ["fio", "--version"]:
            return Completed(exit_status=0, stdout=f"{version}\n", stderr="")
        (ioengine,) = [word.removeprefix("--ioengine=") for word in argv if "ioengine=" in word]
        return by_engine[ioengine]

    monkeypatch.setattr(fio_setup, "run_command", run)


@pytest.mark.parametrize(("failure", "reason"), FAILURES.values(), ids=FAILURES)
def test_the_reason_why_io_uring_is_not_used_is_told(
    monkeypatch: pytest.MonkeyPatch, failure: Completed, reason: str
) -> None:
    """The reason why io_uring is not used is recorded in words, because results with different I/O engines cannot be
    compared.
    """
    answers(monkeypatch, io_uring=failure, libaio=GOOD)
    chosen = choose_ioengine("/dev/x", 512, None, RequiredIo())
    assert chosen == ChosenEngine(name="libaio", instead_of=f"io_uring: {reason}")


def test_what_works_needs_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, io_uring=GOOD)
    assert choose_ioengine("/dev/x", 512, None, RequiredIo()) == ChosenEngine(name="io_uring")


@pytest.mark.parametrize(
    ("version", "io_depths", "name"),
    [
        ("fio-3.33", {1, 2, 4, 32}, "io_uring"),
        ("fio-3.33", {4, 6}, "libaio"),
        ("fio-3.38", {20}, "libaio"),
        ("fio-3.39", {6, 20}, "io_uring"),
        ("fio-3.42-17-gabcdef", {6}, "io_uring"),
    ],
)
def test_an_engine_that_does_not_keep_a_queue_depth_is_not_used(
    monkeypatch: pytest.MonkeyPatch, version: str, io_depths: set[int], name: str
) -> None:
    """An I/O engine that does not keep a queue depth is not used. With io_uring, fio before 3.39 keeps 8 I/Os
    outstanding for a depth of 6, so the cell would have another queue depth.
    """
    answers(monkeypatch, version, io_uring=GOOD, libaio=GOOD)
    for depths in (io_depths, ()):
        io_depth = 1 if depths else max(io_depths)  # if io_depths is missing, io_depth alone decides
        chosen = choose_ioengine("/dev/x", 512, None, RequiredIo(io_depth=io_depth, io_depths=frozenset(depths)))
        if name == "io_uring":
            assert chosen == ChosenEngine(name="io_uring")
        else:
            assert chosen.name == "libaio"
            assert "I/Os outstanding at a queue depth of" in (chosen.instead_of or "")
    if name == "libaio":
        with pytest.raises(EngineError, match=r"fio 3\.39 and newer keep"):
            choose_ioengine("/dev/x", 512, "io_uring", RequiredIo(io_depths=frozenset(io_depths)))


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("fio-3.33", r"io_uring: fio-3\.33 would flush too often .* libaio: it does not complete other I/Os .* flush"),
        ("fio-3.37", r"io_uring: fio-3\.37 would flush too often"),
        ("fio-3.38", None),
        ("fio-3.42", None),
    ],
)
def test_flushes_from_a_queue_need_a_fio_that_counts_them_right(
    monkeypatch: pytest.MonkeyPatch, version: str, reason: str | None
) -> None:
    """Flushes at a queue depth above 1 need a fio that counts them correctly. At a depth of 8, fio 3.33 issued 20,927
    flushes in place of 5,656. With libaio, fio waits for each flush.
    """
    answers(monkeypatch, version, io_uring=GOOD, libaio=GOOD)
    if reason is None:
        chosen = choose_ioengine("/dev/x", 512, None, RequiredIo(io_depth=8, flushes_from_queue=True))
        assert chosen == ChosenEngine(name="io_uring")
    else:
        with pytest.raises(EngineError, match=reason):
            choose_ioengine("/dev/x", 512, None, RequiredIo(io_depth=8, flushes_from_queue=True))


@pytest.mark.parametrize("wanted", [None, "libaio"])
def test_flushes_between_reads_need_a_fio_that_counts_them_right(
    monkeypatch: pytest.MonkeyPatch, wanted: str | None
) -> None:
    """A load that reads, writes and flushes needs fio 3.38 or newer with every I/O engine. With 90 % reads, fio 3.33
    issued 554 flushes instead of 63, because it repeats the flush after each read.
    """
    answers(monkeypatch, "fio-3.38", io_uring=GOOD, libaio=GOOD)
    chosen = choose_ioengine("/dev/x", 512, wanted, RequiredIo(flushes_between_reads=True))
    assert chosen.instead_of is None
    answers(monkeypatch, "fio-3.37", io_uring=GOOD, libaio=GOOD)
    with pytest.raises(EngineError, match=r"fio-3\.37 would flush again after each read .* one load for the reads"):
        choose_ioengine("/dev/x", 512, wanted, RequiredIo(flushes_between_reads=True))


@pytest.mark.parametrize(
    ("version", "wanted", "io", "reason"),
    [
        ("fio-3.37", None, RequiredIo(flushes_between_reads=True), r"fio-3\.37 would flush again after each read"),
        ("fio-3.38", None, RequiredIo(flushes_between_reads=True), None),
        ("fio-3.37", None, RequiredIo(flushes_from_queue=True), r"io_uring: fio-3\.37 would .* libaio: it does not"),
        ("fio-3.38", None, RequiredIo(flushes_from_queue=True), None),
        ("fio-3.38", "libaio", RequiredIo(flushes_from_queue=True), r"\(libaio: it does not complete"),
        ("fio-3.38", "io_uring", RequiredIo(io_depth=6), r"\(io_uring: fio-3\.38 would keep 8"),
        ("fio-3.38", None, RequiredIo(io_depth=6), None),
        (
            "fio-3.38",
            None,
            RequiredIo(random_arrivals_iops=frozenset({12.5})),
            r"at 12\.5 IOPS .* would become 12 IOPS",
        ),
        ("fio-3.38", None, RequiredIo(random_arrivals_iops=frozenset({1, 12, 50.5, 20_000})), None),
    ],
)
def test_what_no_device_could_do_is_refused_without_a_device(
    monkeypatch: pytest.MonkeyPatch, version: str, wanted: str | None, io: RequiredIo, reason: str | None
) -> None:
    """If the installed fio cannot do the requested I/O on any device, tkperf refuses the I/O without accessing a
    device. tkperf also refuses this I/O when it chooses an I/O engine for a device.
    """
    answers(monkeypatch, version)  # each attempt to read would fail with a KeyError
    if reason is None:
        fio_setup.refuse_io(wanted, io)
        return
    with pytest.raises(EngineError, match=reason):
        fio_setup.refuse_io(wanted, io)
    with pytest.raises(EngineError, match=reason):
        choose_ioengine("/dev/x", 512, wanted, io)


def test_a_refusal_names_the_device_as_the_user_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal names the path that the user typed, even where the refusal quotes fio. The path through which tkperf
    opened the device has no meaning outside the process.
    """
    path = "/proc/123/fd/4"
    refused = Completed(exit_status=1, stdout='{"jobs": []}', stderr=f"fio: blocksize too large for {path}\n")
    answers(monkeypatch, io_uring=refused, libaio=refused)
    with pytest.raises(EngineError, match=r"run on /dev/disk/by-id/x \(.*too large for /dev/disk/by-id/x") as error:
        choose_ioengine(path, 512, None, RequiredIo(), shown_path="/dev/disk/by-id/x")
    assert path not in str(error.value)


@pytest.mark.fio
@pytest.mark.parametrize("io_depth", [3, 20])
def test_the_chosen_engine_keeps_the_queue_depth(scratch: Path, io_depth: int) -> None:
    """With the chosen I/O engine, fio's own numbers show the requested queue depth. According to Little's law, the mean
    number of outstanding I/Os is the mean latency times the IOPS.
    """
    chosen = choose_ioengine(str(scratch), 512, None, RequiredIo(io_depth=io_depth))
    done = run_command(
        [
            "fio",
            "--name=a",
            f"--filename={scratch}",
            f"--ioengine={chosen.name}",
            f"--iodepth={io_depth}",
            "--rw=randread",
            "--direct=1",
            "--thread=1",
            "--number_ios=5000",
            "--output-format=json",
        ],
        timeout_s=60,
    )
    read = json.loads(done.stdout)["jobs"][0]["read"]
    assert read["iops"] * read["lat_ns"]["mean"] / 1e9 < 1.1 * io_depth


def test_if_none_works_every_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    failure, reason = FAILURES["its error, in words"]
    answers(monkeypatch, io_uring=failure, libaio=failure)
    with pytest.raises(EngineError, match=rf"io_uring: {reason}; libaio: {reason}"):
        choose_ioengine("/dev/x", 512, None, RequiredIo())


PASSED = Completed(exit_status=0, stdout="cs: reliable_tsc: yes\ncs: Pass!\n", stderr="")
TESTED_ONCE = ChosenClock(words="the CPU's (TSC), tested before the run", clocksource="cpu")
NOT_RELIABLE = ChosenClock(words="clock_gettime, because fio finds the CPU's clock unreliable")


@pytest.mark.parametrize(
    ("source", "answer", "chosen"),
    [
        ("tsc\n", PASSED, TESTED_ONCE),
        (
            "kvm-clock\n",
            PASSED,
            ChosenClock(words="the CPU's, tested by fio at each start, as the kernel's is kvm-clock"),
        ),
        (None, PASSED, ChosenClock(words="the CPU's, tested by fio at each start, as the kernel's is not known")),
        ("tsc\n", Completed(exit_status=1, stdout="cs: reliable_tsc: yes\ncs: Fail\n", stderr=""), NOT_RELIABLE),
        ("tsc\n", Completed(exit_status=0, stdout="cs: reliable_tsc: no\ncs: Pass!\n", stderr=""), NOT_RELIABLE),
        ("tsc\n", EngineError("'fio' does not end"), ChosenClock(words="chosen by fio at each start")),
    ],
)
def test_fio_is_spared_its_clock_test_only_where_kernel_and_fio_trust_the_tsc(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str | None,
    answer: Completed | EngineError,
    chosen: ChosenClock,
) -> None:
    """fio skips its clock test only if both the kernel and fio trust the TSC. A clock that differs between CPUs would
    lead to wrong latencies.
    """

    def run(argv: list[str], **_: object) -> Completed:
        assert argv == ["fio", "--cpuclock-test"]
        if isinstance(answer, EngineError):
            raise answer
        return answer

    monkeypatch.setattr(fio_setup, "run_command", run)
    if source is not None:
        file = tmp_path / "sys/devices/system/clocksource/clocksource0/current_clocksource"
        file.parent.mkdir(parents=True)
        file.write_text(source)
    assert choose_clock(tmp_path) == chosen


@pytest.mark.fio
def test_a_path_that_is_not_there_is_told_in_fios_words(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="No such file or directory"):
        choose_ioengine(str(tmp_path / "gone"), 512, None, RequiredIo())
