"""The consent question on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace

import click
import pytest

from tkperf.cli import consent_prompt
from tkperf.model.errors import RefusedError
from tkperf.pipeline.consent import Consent, Question, obtain

QUESTION = Question(devices=("/dev/sdb", "/dev/sdc"), ids=("A1", "B2"), data=("ext4 'home' on /dev/sdb1",))


def test_the_question_names_devices_data_and_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is one line with devices, data and the text to type. The returned answer has no spaces around it."""
    asked: list[str] = []

    def prompt(text: str, **_: object) -> str:
        asked.append(text)
        return " A1,B2 "

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(click, "prompt", prompt)
    assert consent_prompt.ask_on_terminal(QUESTION) == "A1,B2"
    assert asked == [
        "ALL DATA on /dev/sdb, /dev/sdc will be destroyed. It holds: ext4 'home' on /dev/sdb1. "
        "Type its serial numbers (A1,B2) to continue"
    ]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return a function that simulates a user who types the given answers. The function returns a list that receives
    the questions.
    """

    def type_(*answers: str) -> list[str]:
        asked: list[str] = []
        given = iter(answers)

        def prompt(text: str, **_: object) -> str:
            asked.append(text)
            return next(given)

        monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
        monkeypatch.setattr(click, "prompt", prompt)
        return asked

    return type_


@pytest.mark.parametrize("answers", [("A1,B2",), ("A1", "A1,B2"), ("", "a1,b2", "A1, B2"), ("x", "", "A1,B2")])
def test_a_slip_is_asked_again_twice(typed: Callable[..., list[str]], answers: tuple[str, ...]) -> None:
    """A right answer is accepted at the first, second or third attempt. tkperf does not ask again after a right
    answer.
    """
    asked = typed(*answers)
    consenting = Consent(ask=consent_prompt.ask_on_terminal)
    assert obtain(QUESTION, consenting) == ("A1", "B2")
    assert len(asked) == len(answers)


def test_each_question_says_what_was_wrong(typed: Callable[..., list[str]]) -> None:
    """After a wrong answer, the next question quotes this answer and repeats the text to type and the way to cancel."""
    asked = typed("sdb", "", "A1,B2")
    consent_prompt.ask_on_terminal(QUESTION)
    assert asked[1:] == [
        "'sdb' does not confirm it. Type A1,B2 to continue, Ctrl-C to leave it",
        "nothing was typed. Type A1,B2 to continue, Ctrl-C to leave it",
    ]


def test_the_third_wrong_answer_is_refused(typed: Callable[..., list[str]]) -> None:
    """The third wrong answer ends the command with the exit code of a refusal, and no data is changed."""
    asked = typed("A1", "B2", "B2,A1", "A1,B2")
    with pytest.raises(RefusedError, match=r"'B2,A1' does not confirm .* Nothing was touched") as no:
        obtain(QUESTION, Consent(ask=consent_prompt.ask_on_terminal))
    assert no.value.exit_code == 3
    assert len(asked) == 3


def test_an_answer_given_beforehand_is_not_asked_again(typed: Callable[..., list[str]]) -> None:
    """A wrong value of ``--yes-destroy`` is refused without a question. Either the script contains a mistake, or the
    drive was swapped.
    """
    asked = typed("A1,B2")
    with pytest.raises(RefusedError, match="'WRONG' does not confirm"):
        obtain(QUESTION, Consent(confirm="WRONG", ask=consent_prompt.ask_on_terminal))
    assert asked == []


def test_the_path_as_it_was_given_is_no_slip(typed: Callable[..., list[str]]) -> None:
    """The answer ./x confirms the DEVICE ./x, although the question names the full path of the file."""
    file = Question(devices=("/tmp/x",), ids=("/tmp/x",), given_as="./x")
    asked = typed("./x")
    assert obtain(file, Consent(ask=consent_prompt.ask_on_terminal)) == ("/tmp/x",)
    assert len(asked) == 1


def test_without_a_terminal_the_way_to_confirm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal, the error names the option and the answer with which a script confirms the run."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    with pytest.raises(RefusedError, match=r"It holds: ext4 .* --yes-destroy A1,B2$"):
        consent_prompt.ask_on_terminal(QUESTION)


def test_ctrl_c_at_the_question_touches_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C at the question ends the command, and the message states that nothing was changed."""

    def prompt(*_: object, **__: object) -> str:
        raise click.Abort

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(click, "prompt", prompt)
    with pytest.raises(click.Abort):
        consent_prompt.ask_on_terminal(QUESTION)
    assert "/dev/sdb, /dev/sdc: nothing was touched" in capsys.readouterr().err
