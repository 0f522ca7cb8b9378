"""docs/explanation/safety.md and docs/reference/refusals.md list the refusals of the code and its blind spots."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from tkperf.cli.main import COMMANDS, cli
from tkperf.device.safety import DM_OWNERS
from tkperf.device.survey import BlindSpotCode

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/safety.md").read_text(encoding="utf-8")


def load_script(name: str) -> ModuleType:
    """Import a script of scripts/ in such a way that it finds the modules in its folder."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(ROOT / "scripts"))


refusal_messages = load_script("refusal_messages")


def table(heading: str, first: str) -> list[list[str]]:
    """Return the cells of a table below a heading. The first column of the table has the given title."""
    section = PAGE.split(f"\n{heading}\n")[1].split("\n## ")[0]
    rows = section.split(f"\n| {first} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def quoted(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def test_the_sentences_made_of_parts_are_those_of_the_code() -> None:
    """The reference contains the sentences that the code composes from parts. These sentences are about holders, system
    disks and processes.
    """
    composed = {str(reason): set(entry.composed) for reason, entry in refusal_messages.REASONS.items()}
    source = ROOT / "src/tkperf/device"
    safety = (source / "safety.py").read_text(encoding="utf-8")
    disks = (source / "usage/mounts.py").read_text(encoding="utf-8")
    assert composed["holder"] == {"… is used by … (…)"}
    assert 'f"{node.name} is used by {holder.name} ({kind})"' in safety
    for text in composed["system-disk"]:
        assert text.split("…")[0] in disks
    ways = {
        "open": ("is open for writing in", "is open in"),
        "running": ("is running as",),
        "mapped": ("is mapped into memory by", "is registered with io_uring in"),
    }
    for code, phrases in ways.items():
        assert composed[code] == {f"… {phrase} …" for phrase in phrases}
        assert all(f'"{phrase}"' in safety for phrase in phrases)
    assert "TKPERF-" in DM_OWNERS, "the page tells of segments of another tkperf"


def test_every_refusal_of_the_code_has_advice_and_no_advice_is_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every refusal in the code has advice, and each piece of advice has a refusal. Otherwise the script ends with an
    error.
    """
    list(refusal_messages.build_page())
    said = refusal_messages.refusals()
    monkeypatch.setattr(refusal_messages, "refusals", lambda: {*said, "a new message"})
    with pytest.raises(LookupError, match="a new message"):
        list(refusal_messages.build_page())
    monkeypatch.setattr(
        refusal_messages, "refusals", lambda: said - {"the other machine sent a message that is not a request"}
    )
    with pytest.raises(LookupError, match="the other machine sent a message that is not a request"):
        list(refusal_messages.build_page())
    known = refusal_messages.objections()
    monkeypatch.setattr(refusal_messages, "refusals", lambda: said)
    monkeypatch.setattr(refusal_messages, "objections", lambda: {name: known[name] for name in known if name != "SWAP"})
    with pytest.raises(LookupError, match="swap"):
        list(refusal_messages.build_page())


def test_the_blind_spots_are_those_of_the_code() -> None:
    """The page lists exactly the codes of the blind spots that the program defines."""
    codes = [quoted(row[0]) for row in table("## Blind spots", "code")]
    assert set().union(*codes) == {str(code) for code in BlindSpotCode}


def test_the_options_and_commands_are_there() -> None:
    """The options and commands on the page exist, so the page names no outdated option."""
    runner = CliRunner()
    helps = " ".join(runner.invoke(cli, [name, "--help"]).output for name in ("ssd", "raid"))
    for row in table("## Limits of options", "option"):
        for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", row[0]):
            assert option in helps, option
    for name in re.findall(r"(?:`|^    )tkperf ([a-z]+)", PAGE, re.MULTILINE):
        assert name in COMMANDS, name
