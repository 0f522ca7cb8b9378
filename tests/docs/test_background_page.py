"""docs/how-to/background.md and its unit file name only options, keys and commands that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from tkperf.analysis.run_overview import RunOverview
from tkperf.cli.commands.status import MOST_JUDGED
from tkperf.cli.commands.suites import ssd

DOCS = Path(__file__).parents[2] / "docs"
UNIT = DOCS / "examples/tkperf@.service"


def read_unit() -> dict[str, str]:
    lines = UNIT.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))


def test_the_keys_of_status_are_all_explained() -> None:
    """The page explains all keys of ``tkperf status`` in the order in which they are written."""
    text = (DOCS / "how-to/background.md").read_text()
    table = text[text.index("| key | meaning |") : text.index("## Stop")]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert re.findall(r"`(\w+)`", " ".join(rows)) == [each.name for each in fields(RunOverview)]


def test_the_unit_calls_tkperf_as_it_is() -> None:
    """The unit file calls tkperf with existing options. With these options, tkperf never asks a question."""
    words = read_unit()["ExecStart"].split()
    assert words[0].endswith("/bin/tkperf")
    assert words[1] == ssd.name
    options = {option for each in ssd.params for option in each.opts}
    assert [word for word in words if word.startswith("-") and word not in options] == []
    assert "--yes-destroy" in words


def test_the_unit_ends_runs_in_order_and_begins_none_by_itself() -> None:
    """The systemd unit stops runs in an orderly way and starts no run by itself, as the page states."""
    unit = read_unit()
    assert (unit["KillSignal"], unit["KillMode"], unit["Restart"]) == ("SIGINT", "mixed", "no")
    assert {unit[f"Private{each}"] for each in ("Devices", "Tmp", "Mounts")} == {"no"}
    assert "[Install]" not in UNIT.read_text()
    page = (DOCS / "how-to/background.md").read_text()
    for setting in ("KillSignal=SIGINT", "KillMode=mixed", "TimeoutStopSec=2h", "Restart=no"):
        assert setting in UNIT.read_text()
        assert f"`{setting}`" in page


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """systemd accepts the unit file. For this test, the path of tkperf in the unit file is replaced with the path of an
    existing program.
    """
    unit = tmp_path / "tkperf@try.service"
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/tkperf", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    about_it = [line for line in done.stderr.splitlines() if "tkperf" in line]
    assert (done.returncode, about_it) == (0, [])


def test_the_number_of_runs_that_status_judges_is_right() -> None:
    """The page names the number of runs above which ``tkperf status`` judges only runs that the user names."""
    text = (DOCS / "how-to/background.md").read_text()
    assert re.findall(r"If more than (\d+) runs exist", text) == [str(MOST_JUDGED)]
