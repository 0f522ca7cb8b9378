"""Profiles are read strictly: a mistake is named by file, key and reason."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from tkperf.errors import ProfileError, UsageError
from tkperf.plan import Case, forecast
from tkperf.procedures import (
    HDD_TESTS,
    SSD_TESTS,
    SUITES,
    TESTS,
    choose_tests,
    fit_to_sector,
    load_profile,
    parse_profile,
    read_stored_profile,
)
from tkperf.procedures.hard_disk import HardDiskTable
from tkperf.procedures.iops import IopsTable
from tkperf.procedures.latency import LatencyTable
from tkperf.procedures.throughput import ThroughputTable
from tkperf.procedures.write_saturation import WriteSaturationTable
from tkperf.profiles import apply_options, built_in_profiles, resolve_active_range
from tkperf.quantity import QUANTITIES
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
    """The numbers that results are compared by (docs/method.md has their sources)."""
    profile = load_profile("pts-e-1.1")
    assert profile.steady_state.max_rounds == 25
    assert profile.table(ThroughputTable).block_sizes_kib == (1024, 128)
    assert profile.table(LatencyTable).histogram_s == 20 * 60
    saturation = profile.table(WriteSaturationTable)
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
        ("max_rounds = 25", "max_rounds = 10000", "iops", "more than 200,000 steps in all"),
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
        ("most_levels = 10", "most_levels = 1000"),
        ("rounds = 10\n", "rounds = 10000\n"),
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
    with pytest.raises(UsageError, match=r"shipped are .*pts-e-1.1, quick, tkperf-2.2"):
        load_profile("pts")


def test_options_of_the_command_line_reach_every_test() -> None:
    """-nj and -iod set TC and QD; -rt sets every step; latency stays at 1/1."""
    profile = apply_options(load_profile("pts-e-1.1"), jobs=2, io_depth=8, step_s=5.0)
    assert (profile.demand.jobs, profile.demand.io_depth) == (2, 8)
    latency = profile.table(LatencyTable)
    assert (latency.jobs, latency.io_depth) == (1, 1)
    steps = (profile.table(IopsTable).step_s, latency.step_s, profile.table(ThroughputTable).step_s)
    assert steps == (5.0, 5.0, 5.0)
    assert profile.table(WriteSaturationTable).slice_s == 5.0


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


def test_a_device_whose_sector_no_block_size_fits_is_refused() -> None:
    """A sector of 64 KiB leaves no tracked cell."""
    with pytest.raises(UsageError, match="logical sector is 65536"):
        fit_to_sector(
            load_profile("pts-e-1.1"), 65536, choose_tests(load_profile("pts-e-1.1"), "ssd")
        )


def test_a_block_size_is_left_out_only_of_the_tests_to_run() -> None:
    """A 4Kn hard disk has no block size to lose, whatever the SSD tests of the profile issue."""
    hdd = tuple(HDD_TESTS.values())
    profile = load_profile("quick")
    fitted, warnings = fit_to_sector(profile, 4096, hdd)
    assert not warnings
    assert fitted.table(IopsTable) == profile.table(IopsTable)
    _, warnings = fit_to_sector(profile, 4096, (SSD_TESTS["lat"],))
    assert list(warnings) == ["lat"]
    # Throughput has a size that fits 64 KiB; the IOPS test, which tracks 4 KiB, is not asked for.
    _, warnings = fit_to_sector(profile, 65536, (SSD_TESTS["tp"],))
    assert not warnings
    small = msgspec.structs.replace(profile.table(HardDiskTable), iops_block_sizes_kib=(4, 0.5))
    _, warnings = fit_to_sector(profile.with_tables(small), 4096, hdd)
    assert list(warnings) == ["iops"]


def test_the_step_length_leaves_the_times_of_write_saturation() -> None:
    """24 h, and a slice judged every 30 minutes, at any length of a slice."""
    for step_s, longest_s in ((120.0, 86400), (60.0, 86400), (5.0, 86400), (1.0, 20_000)):
        profile = apply_options(load_profile("pts-e-1.1"), step_s=step_s)
        table = profile.table(WriteSaturationTable)
        assert table.slice_s == step_s
        assert table.slice_s * table.max_slices == longest_s, (
            "only as many as can be looked ahead of"
        )
        assert table.slice_s * table.round_every_slices == 1800
        data = apply_options(load_profile("quick"), step_s=step_s).as_plain_data()
        text = json.dumps(data["write_saturation"]).encode()
        msgspec.json.decode(text, type=WriteSaturationTable)


def without(table: str, text: str = TEXT) -> str:
    """A profile's text without one of its tables."""
    before, _, after = text.partition(f"[{table}]\n")
    return before + after[after.index("\n[") + 1 :]


def test_a_profile_may_leave_out_tests() -> None:
    """A test without a table is not offered, and asking for it names the profiles that have it."""
    profile = parse_profile(without("latency"), file="mine.toml")
    assert [test.name for test in choose_tests(profile, "ssd")] == ["iops", "tp", "writesat"]
    assert [test.name for test in choose_tests(profile, "ssd", ("tp", "iops"))] == ["iops", "tp"]
    with pytest.raises(UsageError, match=r"no table latency.* test lat .*pts-e-1.1 or quick or"):
        choose_tests(profile, "ssd", ("lat",))
    with pytest.raises(UsageError, match=r"no table hard_disk.*quick or tkperf-2.2, or an own"):
        choose_tests(load_profile("pts-e-1.1"), "hdd")
    with pytest.raises(ProfileError, match="missing required field `demand`"):
        parse_profile(without("demand"), file="mine.toml")


def test_a_table_of_no_test_is_a_mistake() -> None:
    """A typo must not make a test disappear."""
    with pytest.raises(ProfileError, match=r"mine.toml: .*unknown field `latencyy`"):
        parse_profile(TEXT.replace("[latency]", "[latencyy]"), file="mine.toml")


def test_a_stored_profile_is_read_table_by_table() -> None:
    """A key more or less in one table, as of another version, takes no other table with it."""
    stored = load_profile("quick").as_plain_data()
    whole = read_stored_profile(stored)
    assert whole == load_profile("quick")
    iops, latency = dict(stored["iops"]), dict(stored["latency"])  # type: ignore[call-overload]
    iops["from_the_future"] = 1
    del latency["step_s"]
    read = read_stored_profile(stored | {"iops": iops, "latency": latency, "hir": {"wait_s": 5}})
    assert read.table(IopsTable) == whole.table(IopsTable)
    assert not read.has(LatencyTable)
    assert read.table(WriteSaturationTable) == whole.table(WriteSaturationTable)
    assert read_stored_profile({"title": "imported", "latency": 5}).tables == {}


def test_each_test_has_a_descriptor_of_its_own() -> None:
    """Names are those of the command line; every test says which document defines it."""
    assert {name: list(tests) for name, tests in SUITES.items()} == {
        "ssd": ["iops", "lat", "tp", "writesat", "demand", "qos"],
        "hdd": ["iops", "tp"],
        "raid": ["iops", "lat", "tp", "writesat", "demand", "qos"],
    }
    for test in TESTS:
        assert test.source
        (table,) = test.tables
        assert set(test.not_used) < set(table.__struct_fields__)
        assert set(test.tracked) <= set(QUANTITIES)


def test_the_page_on_method_has_every_number_of_every_profile() -> None:
    """Key for key, as the profiles have them: a number changed without its source does not pass."""
    page = Path(__file__).parents[1] / "docs/method.md"
    lines = [
        line.strip("| ").split(" | ")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    names = ("pts-e-1.1", "tkperf-2.2", "quick", "myce")
    assert ["key", *(f"`{name}`" for name in names)] in [line[:5] for line in lines]
    written = {line[0].strip("`"): line[1:5] for line in lines if line[0].startswith("`")}
    found: dict[str, list[str]] = {}
    for place, name in enumerate(names):
        for table, keys in load_profile(name).as_plain_data().items():
            for key, value in keys.items() if isinstance(keys, dict) else ():
                if key != "source":
                    found.setdefault(f"{table}.{key}", ["-"] * 4)[place] = shown(value)
    assert set(names) == set(built_in_profiles())
    assert written == found


def shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return f"{value:g}" if isinstance(value, int | float) else str(value)
