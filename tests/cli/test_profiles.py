"""``tkperf profiles`` lists the shipped profiles and explains a profile."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from tests.cli.test_bad_input import assert_clear, tkperf
from tkperf.model.choices import built_in_profiles
from tkperf.procedures import SUITES, load_profile, parse_profile
from tkperf.procedures.profiles import explain_keys

QUICK = (resources.files("tkperf.procedures.profiles") / "quick.toml").read_text()


def test_every_profile_is_listed_with_its_tests() -> None:
    """Every profile is listed with its name, its title, the tests of each suite, and the suites that use it by
    default.
    """
    lines = tkperf("profiles").stdout.splitlines()
    for name in built_in_profiles():
        (row,) = [line for line in lines if line.split()[:1] == [name]]
        assert load_profile(name).title in row
        assert row.rstrip().endswith("ssd, raid") is (name == "pts-e-1.1")
    listed = json.loads(tkperf("profiles", "--json").stdout)
    assert [each["name"] for each in listed] == list(built_in_profiles())
    assert next(each for each in listed if each["name"] == "pts-c-1.2") == {
        "name": "pts-c-1.2",
        "title": "SNIA PTS-C 1.2",
        "tests": {"ssd": ["iops", "lat", "tp"]},
        "default_of": [],
    }


def test_a_profile_is_explained_key_by_key() -> None:
    """The explanation of a profile contains each table with its source, each key with value and meaning, and each test
    with its procedure.
    """
    said = " ".join(tkperf("profiles", "show", "pts-2.0").stdout.split())
    profile = load_profile("pts-2.0")
    for key, table in profile.tables.items():
        assert f"[{key}] {table.source}" in said
        for each in explain_keys(type(table)):
            assert each.name == "source" or f"{each.name} " in said
            assert each.name == "source" or each.meaning in said
    assert "max_slices 360 maximum number of slices" in said
    assert "tkperf ssd: iops, IOPS" in said
    assert "Tracking variables, all steady in one window: IOPS of RND 0/100 4k, 65/35 64k" in said


def test_what_a_run_takes_is_said_before_anybody_tries() -> None:
    """The explanation of a profile states the requirements of its runs, such as a whole block device and root. The JSON
    contains the same words.
    """
    said = " ".join(tkperf("profiles", "show", "pts-c-1.2").stdout.split())
    assert "tests 16 GiB in 2,048 segments of 80 %, which requires a whole block device, root" in said
    document = json.loads(tkperf("profiles", "show", "pts-c-1.2", "--json").stdout)
    assert document["needs"].startswith("profile pts-c-1.2 tests 16 GiB in 2,048 segments")
    assert document["profile"]["active_range"]["segments"] == 2048
    assert document["keys"]["preconditioning"]["passes"].startswith("number of passes")
    assert document["tests"]["ssd"]["lat"][0] == "Purge"


def test_the_file_of_a_profile_is_printed() -> None:
    """With --toml, the command prints the file of a profile. tkperf reads the printed text as the same profile."""
    for name in built_in_profiles():
        done = tkperf("profiles", "show", name, "--toml")
        assert done.returncode == 0, done.stderr
        assert parse_profile(done.stdout, file="printed") == load_profile(name)
    assert_clear(tkperf("profiles", "show", "quick", "--toml", "--json"), 2, "Pass only one of these options")


def test_a_copy_of_a_profile_with_another_limit_is_a_profile(tmp_path: Path) -> None:
    """A user can copy a printed profile and change its name, its title and a number. The copy can be used with
    --profile. The file of a user's own profile is printed without any change.
    """
    path = tmp_path / "mine.toml"
    text = tkperf("profiles", "show", "quick", "--toml").stdout
    for old, new in (
        ('name = "quick"', 'name = "mine"'),
        (f'title = "{load_profile("quick").title}"', 'title = "mine"'),
        ("latency_limit_ms = 1", "latency_limit_ms = 0.5"),
    ):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    assert tkperf("profiles", "show", path, "--toml").stdout == text
    assert "99th percentile is at most 0.5 ms" in " ".join(tkperf("profiles", "show", path).stdout.split())


def test_an_own_profile_is_explained_and_its_mistakes_named(tmp_path: Path) -> None:
    """A user's own profile is explained if its path is given. A mistake in the profile leads to one clear line with the
    file and the key.
    """
    path = tmp_path / "mine.toml"
    path.write_text(QUICK.replace('name = "quick"', 'name = "mine"'))
    done = tkperf("profiles", "show", str(path))
    assert done.stdout.startswith("mine  quick look")
    assert "QUICK PROFILE" in done.stdout
    assert "tkperf hdd: tp" in done.stdout
    path.write_text(QUICK.replace("max_slices = 30", "max_slices = 0"))
    assert_clear(tkperf("profiles", "show", str(path)), 2, str(path), "write_saturation.max_slices")
    assert_clear(tkperf("profiles", "show", "pts-2"), 2, "did you mean pts-2.0?")
    assert_clear(tkperf("profiles", "list"), 2, "profile 'list': choose from")


def test_a_test_that_has_to_be_named_says_how() -> None:
    """The explanation of a profile names the option --test for each test that does not run by default."""
    said = tkperf("profiles", "show", "quick").stdout
    for suite, name in (("ssd", each) for each in SUITES["ssd"]):
        option = "" if SUITES[suite][name].by_default else f", with --test {name}"
        heading = f"tkperf {suite}: {name}, {SUITES[suite][name].title}{option}\n"
        assert (heading in said) is SUITES[suite][name].is_in(load_profile("quick"))
