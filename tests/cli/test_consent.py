"""The question on the terminal."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import click
import pytest

from tkperf.cli import consent
from tkperf.errors import RefusedError
from tkperf.pipeline.consent import Question

QUESTION = Question(
    devices=("/dev/sdb", "/dev/sdc"), ids=("A1", "B2"), data=("ext4 'home' on /dev/sdb1",)
)


def test_the_question_names_devices_data_and_what_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of it in one line; what was typed comes back without the spaces around it."""
    asked: list[str] = []

    def prompt(text: str, **_: object) -> str:
        asked.append(text)
        return " A1,B2 "

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(click, "prompt", prompt)
    assert consent.ask_on_terminal(QUESTION) == "A1,B2"
    assert asked == [
        "ALL DATA on /dev/sdb, /dev/sdc will be destroyed. It holds: ext4 'home' on /dev/sdb1. "
        "Type its serial numbers (A1,B2) to go on"
    ]


def test_without_a_terminal_the_way_to_confirm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script learns what to give."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    with pytest.raises(RefusedError, match=r"It holds: ext4 .* --yes-destroy A1,B2$"):
        consent.ask_on_terminal(QUESTION)


def test_ctrl_c_at_the_question_touches_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says so."""

    def prompt(*_: object, **__: object) -> str:
        raise click.Abort

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(click, "prompt", prompt)
    with pytest.raises(click.Abort):
        consent.ask_on_terminal(QUESTION)
    assert "/dev/sdb, /dev/sdc: nothing was touched" in capsys.readouterr().err
