"""The example files for CI measure a drive, check the result and renew the baseline. If the check refuses a version of
the drive's firmware, the baseline remains the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/examples/ci"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Return a folder with a copy of the example. In this copy, the limits are so low that a run with the short profile
    meets them.
    """
    shutil.copytree(EXAMPLE, tmp_path / "ci")
    set_least_reads(tmp_path, "75000", "60000")
    return tmp_path


def set_least_reads(lab: Path, old: str, new: str) -> None:
    claims = lab / "ci/claims.toml"
    text = claims.read_text()
    assert f"at_least = {old}\n" in text
    claims.write_text(text.replace(f"at_least = {old}\n", f"at_least = {new}\n"))


def run_gate(lab: Path, version: str, **variables: str) -> int:
    settings = {
        "RESULTS": str(lab / "results"),
        "PROFILE": str(ROOT / "tests/short.toml"),
        "AS_ROOT": "",
        "TKPERF": str(Path(sys.executable).with_name("tkperf")),
        **variables,
    }
    call = ["sh", str(lab / "ci/gate.sh"), "sim:sata-ssd", "SERIAL", version]
    return subprocess.run(call, env=os.environ | settings, stdout=subprocess.DEVNULL, check=False).returncode


def find_baseline(lab: Path) -> str:
    """Return the version of the run that is currently the baseline."""
    return os.readlink(lab / "results/baseline.tkperf").split("-")[0]


def test_an_accepted_run_becomes_the_baseline_and_a_refused_one_does_not(lab: Path) -> None:
    """An accepted run becomes the baseline, and a refused run does not. The first job runs without a baseline."""
    assert run_gate(lab, "1.0") == 0
    assert find_baseline(lab) == "1.0"
    assert "[baseline]" not in (lab / "results/gate.toml").read_text()
    assert run_gate(lab, "1.1", KEEP="1") == 0
    assert find_baseline(lab) == "1.1"
    assert 'run = "baseline.tkperf"' in (lab / "results/gate.toml").read_text()
    kept = [path.name.split("-")[0] for path in (lab / "results").glob("*-*.tkperf")]
    assert kept == ["1.1"], "KEEP=1 leaves the baseline alone"
    set_least_reads(lab, "60000", "900000")
    assert run_gate(lab, "1.2") == 1
    assert find_baseline(lab) == "1.1"
    assert "<failure" in (lab / "results/gate.xml").read_text()


def test_an_error_of_the_set_up_is_no_judgement(lab: Path) -> None:
    """If the set-up is wrong, the script ends with tkperf's own exit code before it checks any result."""
    assert run_gate(lab, "1.0", PROFILE="no-such-profile") == 2
    assert not (lab / "results/gate.toml").exists()


@pytest.mark.parametrize("name", ["gitlab-ci.yml", "github-actions.yml"])
def test_the_jobs_call_the_script_with_its_three_arguments(name: str) -> None:
    (line,) = [each for each in (EXAMPLE / name).read_text().splitlines() if "gate.sh" in each]
    words = line.split("gate.sh ")[1].split()
    assert len(words) == 3
    assert words[0].startswith("/dev/disk/by-id/")
