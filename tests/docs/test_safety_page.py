"""docs/explanation/safety.md says what the code refuses and what it could not see: all of it, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from tests.device.refusals import BLANK, objections, refusals
from tkperf.cli.main import COMMANDS, cli
from tkperf.device.safety import DM_OWNERS, Reason
from tkperf.device.survey import BlindSpotCode

PAGE = (Path(__file__).parents[2] / "docs/explanation/safety.md").read_text(encoding="utf-8")


def table(heading: str, first: str) -> list[list[str]]:
    """Cells of the rows of the table below a heading whose first column is called so."""
    section = PAGE.split(f"\n{heading}\n")[1].split("\n## ")[0]
    rows = section.split(f"\n| {first} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def quoted(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def blanked(text: str) -> str:
    """Blanks side by side as one."""
    return re.sub(rf"{BLANK}( ?{BLANK})+", BLANK, text)


def test_the_reasons_are_those_of_the_code() -> None:
    """Every code with every sentence that it comes with; a sentence that is gone is on no page."""
    said = {code.strip("` "): quoted(message) for code, message, _ in table("## Refusals", "code")}
    assert said.keys() == {str(reason) for reason in Reason}
    made_elsewhere = {"holder", "system-disk", "open", "mapped", "running"}
    for name, texts in objections().items():
        code = str(Reason[name])
        known = {blanked(text) for text in texts} - {BLANK, f"{BLANK} {BLANK}"}
        shown = {blanked(text) for text in said[code]}
        assert known <= shown, code
        if code not in made_elsewhere:
            assert shown == known, code


def test_the_sentences_made_of_parts_are_those_of_the_code() -> None:
    """What is put together elsewhere than where it is told: holders, the system's disks, processes."""
    said = {code.strip("` "): quoted(message) for code, message, _ in table("## Refusals", "code")}
    source = Path(__file__).parents[2] / "src/tkperf/device"
    safety = (source / "safety.py").read_text(encoding="utf-8")
    disks = (source / "usage/mounts.py").read_text(encoding="utf-8")
    assert said["holder"] == {"… is used by … (…)"}
    assert 'f"{node.name} is used by {holder.name} ({kind})"' in safety
    for text in said["system-disk"]:
        assert text.split(BLANK)[0] in disks
    ways = {
        "open": ("is open for writing in", "is open in"),
        "running": ("is running as",),
        "mapped": ("is mapped into memory by", "is registered with io_uring in"),
    }
    for code, phrases in ways.items():
        assert {f"… {phrase} …" for phrase in phrases} <= said[code]
        assert all(f'"{phrase}"' in safety for phrase in phrases)
    assert "TKPERF-" in DM_OWNERS, "the page tells of segments of another tkperf"


def test_the_other_refusals_are_those_of_the_code() -> None:
    """Every message that ends with exit code 3, and none that the code does not have."""
    listed = PAGE.split("Other refusals")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", listed, re.MULTILINE)
    shown = {blanked(text) for row in rows for text in quoted(row)}
    assert shown == {blanked(text) for text in refusals()}


def test_the_blind_spots_are_those_of_the_code() -> None:
    """Each code of what tkperf could not look at."""
    codes = [quoted(row[0]) for row in table("## Blind spots", "code")]
    assert set().union(*codes) == {str(code) for code in BlindSpotCode}


def test_the_options_and_commands_are_there() -> None:
    """An option that is renamed would be promised for nothing."""
    runner = CliRunner()
    helps = " ".join(runner.invoke(cli, [name, "--help"]).output for name in ("ssd", "raid"))
    for row in table("## Limits of options", "option"):
        for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", row[0]):
            assert option in helps, option
    for name in re.findall(r"(?:`|^    )tkperf ([a-z]+)", PAGE, re.MULTILINE):
        assert name in COMMANDS, name
