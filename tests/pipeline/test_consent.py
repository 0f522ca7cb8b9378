"""The consent rule is the same for every kind of target. tkperf permits only the actions to which the user agreed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import tkperf
from tkperf.device import permit
from tkperf.device.content import Signature
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.model.errors import RefusedError
from tkperf.pipeline import consent
from tkperf.pipeline.consent import Consent, Question, permit_controller_drives, permitted

DATA = Signature(device="/dev/x", kind="ext4", label=None, member=None)


@dataclass
class StandIn:
    """A stand-in for a device that tkperf holds. No real device exists."""

    identity: DeviceIdentity
    data: tuple[Signature, ...]
    is_open: bool = True

    anchor: int = field(default=-1)
    content: None = None

    def require_same(self) -> None:
        """Do no work, because this device never changes."""

    def find_data(self) -> tuple[Signature, ...]:
        """Return the data that tkperf found when it first held the target."""
        return self.data

    def release(self) -> None:
        self.is_open = False


def block(
    path: str, serial: str | None = None, partition: int | None = None, distinction: str | None = None
) -> DeviceIdentity:
    return DeviceIdentity(
        path=path,
        kind=TargetKind.BLOCK,
        capacity_bytes=1 << 30,
        logical_block_bytes=512,
        serial=serial,
        partition=partition,
        distinction=distinction,
        interface="loop" if "loop" in path else None,
    )


def file(path: str) -> DeviceIdentity:
    return DeviceIdentity(path=path, kind=TargetKind.FILE, capacity_bytes=1 << 30, logical_block_bytes=512)


@dataclass(frozen=True)
class Kind:
    """A kind of target, with its devices and the answer that confirms it. The answer is None if no confirmation is
    needed.
    """

    expected: str | None
    identities: tuple[DeviceIdentity, ...] = ()
    serials: dict[str, str | None] | None = None


KINDS = {
    "whole disk": Kind("SERIAL", (block("/dev/sdb", "SERIAL"),)),
    "one of several disks with the same serial number": Kind(
        "SERIAL/namespace-2", (block("/dev/nvme0n2", "SERIAL", distinction="namespace-2"),)
    ),
    # The serial number of the drive would not identify the partition.
    "partition": Kind("/dev/sdb1", (block("/dev/sdb1", "SERIAL", 1),)),
    "loop device": Kind("/dev/loop7", (block("/dev/loop7"),)),
    "file": Kind("/tmp/scratch", (file("/tmp/scratch"),)),
    "MD set": Kind("A1,B2", (block("/dev/sdb", "A1"), block("/dev/sdc", "B2"))),
    "MegaRAID set": Kind("A1,B2", serials={"252:0": "A1", "252:1": "B2"}),
    "simulated": Kind(None),
}
HELD: list[StandIn] = []


@pytest.fixture
def opening(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[str, bool, Consent], AbstractContextManager[object]]]:
    """Return a function that opens a target. Its arguments are the kind of the target, whether the target contains
    recognised data, and the consent.
    """
    monkeypatch.setattr(permit, "refuse_objections", lambda *_, **__: None)
    HELD.clear()

    def opened(name: str, data: bool, given: Consent) -> AbstractContextManager[object]:
        def hold(identity: DeviceIdentity) -> StandIn:
            HELD.append(StandIn(identity, (DATA,) if data else ()))
            return HELD[-1]

        monkeypatch.setattr(consent, "hold_target", hold)
        return open_target(KINDS[name], given)

    yield opened
    assert not any(each.is_open for each in HELD)


@contextmanager
def open_target(kind: Kind, given: Consent) -> Iterator[object]:
    if kind.serials is not None:
        yield permit_controller_drives("MegaRAID RAID 1", kind.serials, given)
    elif kind.identities:
        with permitted(kind.identities, given) as permits:
            yield permits
    else:
        plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick")
        with plan.dut.open(plan.fitted, given) as equipment:
            yield equipment


Opening = Callable[[str, bool, Consent], AbstractContextManager[object]]


def mistyped(question: Question) -> str:
    return question.expected.lower() + "x"


@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Consent(), "tkperf cannot ask for consent, because there is no terminal"),
        (Consent(confirm="WRONG"), "does not confirm"),
        (Consent(confirm=""), "does not confirm"),
        (Consent(confirm="WRONG", force=True), "does not confirm"),
        (Consent(ask=mistyped), "does not confirm"),
        (Consent(ask=mistyped, force=True), "does not confirm"),
        (Consent(force=True), "tkperf cannot ask for consent, because there is no terminal"),
    ],
)
def test_without_consent_nothing_is_permitted(
    opening: Opening, name: str, data: bool, given: Consent, says: str
) -> None:
    """No action is permitted without consent or with a wrong answer. If data could be lost, the force option alone is
    not enough. The refusal names the expected answer.
    """
    kind = KINDS[name]
    only_forced = given.force and given.confirm is None
    free = kind.expected is None or (only_forced and not data and kind.serials is None)
    if free:
        with opening(name, data, given):
            return
    with pytest.raises(RefusedError, match=says) as refused, opening(name, data, given):
        pass
    assert str(kind.expected) in str(refused.value)
    if says.startswith("tkperf cannot ask"):
        assert ("It holds: " in str(refused.value)) == (data or kind.serials is not None)


@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_the_right_answer_permits(opening: Opening, name: str, data: bool) -> None:
    """The right answer permits the run, whether the user gave it beforehand or typed it after the question."""
    kind = KINDS[name]
    asked: list[Question] = []

    def type_it(question: Question) -> str:
        asked.append(question)
        return question.expected

    with opening(name, data, Consent(confirm=kind.expected)):
        assert not asked
    with opening(name, data, Consent(ask=type_it)):
        assert len(asked) == (kind.expected is not None)
    for question in asked:
        assert question.expected == kind.expected
        assert bool(question.data) == (data or kind.serials is not None)


def test_an_answer_for_fewer_members_than_there_are(opening: Opening) -> None:
    """For every kind of set, an answer that names fewer members than the set contains is refused."""
    for name in ("MD set", "MegaRAID set"):
        with (
            pytest.raises(RefusedError, match="The expected answer is 'A1,B2'"),
            opening(name, False, Consent(confirm="A1")),
        ):
            pass


def test_a_drive_without_a_number_cannot_be_confirmed() -> None:
    """If a drive behind a controller has no serial number, the drive cannot be confirmed. An empty word in the answer
    would confirm any drive in that slot.
    """
    with pytest.raises(RefusedError, match=r"252:1 .*reports no serial number"):
        permit_controller_drives("set", {"252:0": "A1", "252:1": None}, Consent(confirm="A1,"))


def test_the_path_that_was_given_confirms_where_paths_do(opening: Opening) -> None:
    """If a target is confirmed by its path, the user may also type the link that was given as DEVICE. If a serial
    number is required, a link is not accepted.
    """
    question = Question(devices=("/tmp/scratch",), ids=("/tmp/scratch",), given_as="./link")
    assert consent.obtain(question, Consent(confirm="./link")) == ("/tmp/scratch",)
    drive = Question(devices=("/dev/sdb",), ids=("SERIAL",), given_as="/dev/disk/x")
    with pytest.raises(RefusedError, match="The expected answer is 'SERIAL'"):
        consent.obtain(drive, Consent(confirm="/dev/disk/x"))


def test_the_page_says_what_is_asked(opening: Opening) -> None:
    """Each row of the table in docs/explanation/safety.md names the answer that a kind of target needs, and states
    whether tkperf also asks with the force option. The rows agree with the code.
    """
    page = (Path(__file__).parents[2] / "docs/explanation/safety.md").read_text(encoding="utf-8")
    section = page.split("## Confirmation")[1].split("\n## ")[0]
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in section.splitlines()
        if line.startswith("| ")
    ][1:]
    assert [name for name, *_ in rows] == list(KINDS)
    for name, answer, *by_force in rows:
        kind = KINDS[name]
        words = "none" if kind.expected is None else _in_words(kind)
        assert answer.startswith(words), name
        for data, said in zip((False, True), by_force, strict=True):
            asked: list[Question] = []

            def type_it(question: Question, asked: list[Question] = asked) -> str:
                asked.append(question)
                return question.expected

            with opening(name, data, Consent(force=True, ask=type_it)):
                assert said == ("asked" if asked else "not asked"), name


def _in_words(kind: Kind) -> str:
    if kind.serials is not None or len(kind.identities) > 1:
        return "the serial numbers of all"
    identity = kind.identities[0]
    if identity.distinction:
        return "its serial number, a slash, and"
    return "its serial number" if kind.expected == identity.serial else "its path"


@pytest.mark.parametrize("given", [Consent(ask=lambda question: question.expected), Consent(force=True)])
def test_a_device_that_was_written_to_while_the_question_was_open_is_not_permitted(
    monkeypatch: pytest.MonkeyPatch, opening: Opening, given: Consent
) -> None:
    monkeypatch.setattr(StandIn, "find_data", lambda _: (DATA,))
    with (
        pytest.raises(RefusedError, match=r"written to .* since tkperf showed it.*Nothing was touched"),
        opening("whole disk", False, given),
    ):
        pass
