"""The rule that decides when data may be destroyed. The rule is the same for all kinds of devices: plan -> show ->
permit.

A question names the devices to erase and the data that would be lost, and asks for the identifier of each device. The
user can give the answer in advance or after the question. ``force`` replaces the answer only if no data can be lost.
When a permit is granted, the answer is compared with the device once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tkperf.device.content import describe_change
from tkperf.device.hold import Hold
from tkperf.device.identity import DeviceIdentity
from tkperf.device.permit import (
    ControllerPermit,
    ErasePermit,
    grant_controller_permit,
    grant_permit,
    hold_target,
    refuse_written,
)
from tkperf.model.errors import RefusedError

UNSEEN_DATA = "data that cannot be seen behind the controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that is asked before devices are erased.

    Attributes:
        devices: the names of the devices, as the question shows them.
        ids: the text that confirms each device, in the order of ``devices``.
        data: descriptions of the data that tkperf recognised on the devices, or of data that tkperf cannot see. If
            there is no such data, ``data`` is empty.
        empty: whether the devices were just created. In this case, no data can be lost and the question is not asked.
        given_as: the DEVICE argument of the user. This text also confirms a device that is confirmed by its path.
        shares_serial: whether another disk of this host reports the serial number of a device, so that the serial
            number alone does not confirm the device.
    """

    devices: tuple[str, ...]
    ids: tuple[str, ...]
    data: tuple[str, ...] = ()
    empty: bool = False
    given_as: str = ""
    shares_serial: bool = False

    @property
    def expected(self) -> str:
        """The answer that confirms the erasure of the devices."""
        return ",".join(self.ids)

    @property
    def what(self) -> str:
        """The kind of the expected answer, in words."""
        serial = not set(self.ids) & set(self.devices)
        return ("serial number" if serial else "path") + "s" * (len(self.ids) > 1)

    @property
    def where(self) -> str:
        return ", ".join(self.devices)

    @property
    def loss(self) -> str:
        """A sentence about the data, with a space before it. The text is empty if no data was recognised."""
        return f" It holds: {', '.join(self.data)}." if self.data else ""

    @property
    def why_more(self) -> str:
        """A sentence that explains why the serial number alone is not sufficient, with a space before it."""
        if not self.shares_serial:
            return ""
        return " Other disks of this host report the same serial number, so the answer must name one disk."


Ask = Callable[[Question], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """The consent of a user to the loss of data.

    Attributes:
        confirm: the answer that was given in advance.
        force: whether to ask no question if no data can be lost. No check is skipped.
        ask: a function that asks the user. None means that there is no user to ask.
        way: the option that gives the answer in advance, for messages.
    """

    confirm: str | None = None
    force: bool = False
    ask: Ask | None = None
    way: str = "confirm="


def obtain(question: Question, consent: Consent) -> tuple[str, ...]:
    """Obtain the answer to a question, and return the part of the answer that confirms each device.

    Raises:
        RefusedError: there is no user to ask, or the answer does not confirm every device.
    """
    given = consent.confirm
    if given is None and (question.empty or (consent.force and not question.data)):
        given = question.expected
    if given is None:
        if consent.ask is None:
            raise nobody_to_ask(question, consent.way)
        given = consent.ask(question)
    answers = confirmed_by(question, given)
    if answers is None:
        raise RefusedError(
            f"'{given}' does not confirm {question.where}. The expected answer is "
            f"'{question.expected}'.{question.why_more} Nothing was touched"
        )
    return answers


def confirmed_by(question: Question, given: str) -> tuple[str, ...] | None:
    """Return the identifier that confirms each device. None means that the answer does not confirm the devices."""
    if question.given_as and given == question.given_as and question.ids == question.devices:
        return question.ids
    answers = (given,) if len(question.ids) == 1 else tuple(map(str.strip, given.split(",")))
    return answers if answers == question.ids else None


def ask_again(expected: str, answer: str) -> str:
    """Return the question that is asked after an answer that does not confirm the devices."""
    given = f"'{answer[:40]}' does not confirm it" if answer else "nothing was typed"
    return f"{given}. Type {expected} to continue, Ctrl-C to leave it"


def nobody_to_ask(question: Question, way: str) -> RefusedError:
    """Return the error that refuses to erase without an answer. The error names the option that gives the answer in
    advance.
    """
    space = "" if way.endswith("=") else " "
    expected = repr(question.expected) if way.endswith("=") else question.expected
    return RefusedError(
        f"tkperf would destroy all data on {question.where}. tkperf cannot ask for consent, because there is no "
        f"terminal.{question.loss}{question.why_more} Confirm with {way}{space}{expected}"
    )


@contextmanager
def permitted(
    identities: Sequence[DeviceIdentity], consent: Consent, *, empty: bool = False, given_as: str = ""
) -> Iterator[tuple[ErasePermit, ...]]:
    """Hold devices exclusively, and yield their redeemed permits. The devices are held before the question is asked,
    and until the ``with`` block ends.

    Raises:
        RefusedError: a device is in use, the answer is wrong, or there is no user to ask.
        DeviceError: a device disappeared, or is now a different device.
    """
    with ExitStack() as held:
        holds = []
        for identity in identities:
            holds.append(hold_target(identity))
            held.callback(holds[-1].release)
        answers = obtain(ask_about(holds, empty=empty, given_as=given_as), consent)
        if consent.confirm is None and not empty:
            _require_same_data(holds)
        permits = tuple(grant_permit(hold, confirmed_id=answer) for hold, answer in zip(holds, answers, strict=True))
        # A permit and its hold are the same object. A second release is harmless.
        yield tuple(permit.redeem() for permit in permits)


def _require_same_data(holds: Sequence[Hold]) -> None:
    """Check that the data on the devices has not changed, because hours may have passed before the user answered.

    Unrecognised data also counts: samples of the content, the kernel's counters of writes, and the times of a file must
    be the same as before the question.

    Raises:
        RefusedError: a device was written to after tkperf showed its content to the user.
    """
    for hold in holds:
        now = hold.find_data()
        if now != hold.data:
            found = ", ".join(map(str, now)) or "no data"
            refuse_written(hold.identity, f"it now contains {found}")
        if hold.content is not None:
            refuse_written(hold.identity, describe_change(hold.content, hold.read_content()))


def ask_about(holds: Sequence[Hold], *, empty: bool = False, given_as: str = "") -> Question:
    """Return the question about held devices, with the data found on them."""
    identities = [hold.identity for hold in holds]
    return Question(
        devices=tuple(identity.path for identity in identities),
        ids=tuple(identity.confirm_id for identity in identities),
        data=() if empty else tuple(str(content) for hold in holds for content in hold.data),
        empty=empty,
        given_as=given_as,
        shares_serial=any(identity.distinction for identity in identities),
    )


def permit_controller_drives(title: str, serials: dict[str, str | None], consent: Consent) -> ControllerPermit:
    """Return the permit for drives that only a RAID controller can see. The user confirms them by their serial
    numbers.

    tkperf cannot read these drives, so it always assumes that data can be lost.

    Raises:
        RefusedError: a drive reports no serial number, the answer is wrong, or there is no user to ask.
    """
    silent = [address for address, serial in serials.items() if not serial]
    if silent:
        raise RefusedError(
            f"drive {', '.join(silent)} behind the controller reports no serial number, so tkperf cannot confirm it. "
            "Use another drive. Nothing was touched"
        )
    question = Question(
        devices=(title,), ids=tuple(serial for serial in serials.values() if serial), data=(UNSEEN_DATA,)
    )
    answers = obtain(question, consent)
    return grant_controller_permit(serials, confirmed_id=",".join(answers))
