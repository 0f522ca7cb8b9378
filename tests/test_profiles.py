"""Profiles are read strictly: a mistake is named by file, key and reason."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from tkperf.errors import ProfileError, UsageError
from tkperf.plan import Case, forecast
from tkperf.procedures import SUITES
from tkperf.profiles import (
    apply_options,
    built_in_profiles,
    fit_to_sector,
    load_profile,
    parse_profile,
    resolve_active_range,
)
from tkperf.units import GIB

TEXT = (resources.files("tkperf.profiles") / "pts-e-1.1.toml").read_text()


@pytest.mark.parametrize("name", built_in_profiles())
def test_shipped_profiles_are_valid_and_name_their_sources(name: str) -> None:
    """Every table of a shipped profile says where its numbers come from."""
    profile = load_profile(name)
    assert profile.name == name
    for key, value in profile.as_plain_data().items():
        if isinstance(value, dict):
            assert value["source"], f"{name}.{key} has no source"


def test_the_default_profile_has_the_numbers_of_pts_e_1_1() -> None:
    """PTS.md 3.1-3.4: the numbers that results are compared by."""
    profile = load_profile("pts-e-1.1")
    assert profile.steady_state.max_rounds == 25
    assert profile.throughput.block_sizes_kib == (1024, 128)
    assert profile.latency.histogram_s == 20 * 60
    saturation = profile.write_saturation
    assert (saturation.max_slices * saturation.slice_s, saturation.capacity_multiple) == (86400, 4)


@pytest.mark.parametrize(
    ("old", "new", "key", "reason"),
    [
        ("step_s = 60\ntracking_read", "step_s = -1\ntracking_read", "iops.step_s", ">= 0.1"),
        ("[latency]", "[latencyy]", "", "unknown field `latencyy`"),
        ("jobs = 4", 'jobs = "4"', "demand.jobs", "got `str`"),
        ("jobs = 4", "jobs = 0", "demand.jobs", ">= 1"),
        ("io_depth = 32", "io_dept = 32", "demand", "io_dept"),
        ("16, 8, 4, 0.5]\nstep", "16, 8, 4, 2.9296875]\nstep", "iops.block_sizes_kib", "3000 bytes"),
        ("max_rounds = 25", "max_rounds = 4", "steady_state.max_rounds", "fewer than window"),
        ('length = "100%"', 'length = "150%"', "active_range.length", "not a share"),
        ("tracking_block_size_kib = 4\n\n[thr", "tracking_block_size_kib = 2\n\n[thr",
         "iops.tracking_block_size_kib", "not one of"),
        ("[100, 95, 65", "[100, 100, 65", "iops.read_percents", "twice"),
        ("passes = 2", "passes = 2 2", "", "not valid TOML"),
        ('name = "pts-e-1.1"', 'name = "../x"', "name", "match"),
        ("jobs = 4", "jobs = " + "[" * 5000, "", "nested too deeply"),
        ("jobs = 4", "jobs = " + "{a = " * 5000, "", "nested too deeply"),
        ("jobs = 4", "jobs = " + "9" * 5000, "", "not valid TOML: Exceeds the limit"),
        ("jobs = 4", "jobs = 0x" + "f" * 20_000, "demand.jobs", "<= 1024"),
        ("step_s = 60\ntracking_read", "step_s = inf\ntracking_read", "iops.step_s", "<="),
        ('length = "100%"', 'length = "' + "9" * 1_000_002 + '"', "active_range.length", "not a size"),
        # Values that nobody means, and that would take the time that they say.
        ("max_rounds = 25", "max_rounds = 100000000", "steady_state.max_rounds", "<= 10000"),
        ("window_rounds = 5", "window_rounds = 1000", "steady_state.window_rounds", "<= 100"),
        ("max_slices = 1440", "max_slices = 100000000", "write_saturation.max_slices", "<= 20000"),
        ("slice_s = 60", "slice_s = 1e9", "write_saturation.slice_s", "<= 2592000"),
        ("slice_s = 60", "slice_s = 2e5", "write_saturation", "longer than a year"),
        ("round_every_slices = 30", "round_every_slices = 99999", "round_every_slices", "<= 20000"),
        ("step_s = 60\ntracking_read", "step_s = 1e-9\ntracking_read", "iops.step_s", ">= 0.1"),
        ("step_s = 60\ntracking_read", "step_s = 1e300\ntracking_read", "iops.step_s", "<="),
        ("step_s = 60\ntracking_read", "step_s = nan\ntracking_read", "iops.step_s", "Expected `float`"),
        ("capacity_multiple = 4", "capacity_multiple = nan", "capacity_multiple", "Expected `float`"),
        ("capacity_multiple = 4", "capacity_multiple = inf", "capacity_multiple", "<="),
        ("data_excursion_percent = 20", "data_excursion_percent = nan", "data_excursion_percent",
         "Expected `float`"),
        ("[1024, 128]", str([n / 2 for n in range(1, 66)]), "throughput.block_sizes_kib",
         "length <= 64"),
        ("[1024, 128]", str([1] * 80_000), "throughput.block_sizes_kib", "length <= 64"),
        ("max_rounds = 25", "max_rounds = 10000", "iops", "560,000 steps in all"),
        ("passes = 2", "passes = 2000000000", "preconditioning.passes", "<= 1000"),
        ("io_depth = 32", "io_depth = 2000000000", "demand.io_depth", "<= 65536"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_key_and_reason(
    old: str, new: str, key: str, reason: str
) -> None:
    """A typo or an impossible value never runs, and is found at once."""
    assert old in TEXT
    with pytest.raises(ProfileError) as caught:
        parse_profile(TEXT.replace(old, new, 1), file="mine.toml")
    assert "mine.toml" in str(caught.value)
    assert key in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize("suite", ["ssd", "hdd"])
def test_the_largest_profile_that_is_taken_is_looked_ahead_of_at_once(suite: str) -> None:
    """Every phase to come is gone through; at the limits that still is no more than they say."""
    text = (resources.files("tkperf.profiles") / "quick.toml").read_text()
    for old, new in (
        ("max_rounds = 6", "max_rounds = 10000"),
        ("window_rounds = 5", "window_rounds = 100"),
        ("max_slices = 30", "max_slices = 20000"),
        ("areas = 8", "areas = 4096"),
    ):
        text = text.replace(old, new, 1)
    profile = parse_profile(text, file="large.toml")
    for test in SUITES[suite].values():
        procedure = test.procedure(profile, GIB << 6)
        assert forecast(procedure, (), Case.WORST, active_range_bytes=GIB).phases >= 4096


def test_an_own_profile_is_given_by_path(tmp_path: Path) -> None:
    """Anything with a slash or .toml is a file; a missing one is a clear error."""
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace('name = "pts-e-1.1"', 'name = "mine"'))
    assert load_profile(str(path)).name == "mine"
    with pytest.raises(ProfileError, match="cannot read profile"):
        load_profile(str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"shipped are pts-e-1.1, quick, tkperf-2.2"):
        load_profile("pts")


def test_options_of_the_command_line_reach_every_test() -> None:
    """-nj and -iod set TC and QD; -rt sets every step; latency stays at 1/1."""
    profile = apply_options(load_profile("pts-e-1.1"), jobs=2, io_depth=8, step_s=5.0)
    assert (profile.demand.jobs, profile.demand.io_depth) == (2, 8)
    assert (profile.latency.jobs, profile.latency.io_depth) == (1, 1)
    steps = (profile.iops.step_s, profile.latency.step_s, profile.throughput.step_s)
    assert steps == (5.0, 5.0, 5.0)
    assert profile.write_saturation.slice_s == 5.0


@pytest.mark.parametrize(
    ("text", "length"),
    [("100%", 960_197_124_096), ("75%", 720_147_841_024), ("16GiB", 16 << 30), ("9TB", 960_197_124_096)],
)  # fmt: skip
def test_the_active_range_is_a_share_or_a_size_in_whole_blocks(text: str, length: int) -> None:
    """A share is rounded down to whole sectors; a size above the device means all of it."""
    found = resolve_active_range(text, 960_197_124_096, 4096)
    assert (found.offset_bytes, found.length_bytes) == (0, length)
    assert found.length_bytes % 4096 == 0


@pytest.mark.parametrize("text", ["0%", "101%", "-5%", "x", "", "12 parsecs", "1"])
def test_an_impossible_active_range_is_refused(text: str) -> None:
    """Nonsense never becomes a range."""
    with pytest.raises(UsageError):
        resolve_active_range(text, 10**9, 512)


def test_tracked_sizes_and_the_last_of_a_list_are_not_left_out() -> None:
    """Whether a test can run without them shows in its phases."""
    profile = fit_to_sector(load_profile("pts-e-1.1"), 1 << 21)
    assert profile.iops.block_sizes_kib == (4,)
    assert profile.throughput.block_sizes_kib == (1024, 128)


@pytest.mark.parametrize("step_s", [10.0, 30.0, 120.0])
def test_write_saturation_keeps_its_times_in_slices_of_another_length(step_s: float) -> None:
    """-rt cuts the same 24 hours, and the same half hours between judged slices, differently."""
    table = apply_options(load_profile("pts-e-1.1"), step_s=step_s).write_saturation
    assert table.slice_s == step_s
    assert table.max_slices * table.slice_s == 24 * 3600
    assert table.round_every_slices * table.slice_s == 30 * 60


def test_slices_too_short_to_be_counted_end_sooner() -> None:
    """A day of seconds is more slices than a profile may have."""
    table = apply_options(load_profile("pts-e-1.1"), step_s=1.0).write_saturation
    assert (table.max_slices, table.round_every_slices) == (20_000, 1800)
    assert (
        apply_options(load_profile("tkperf-2.2"), step_s=1.0).write_saturation.round_every_slices
        == 0
    )
