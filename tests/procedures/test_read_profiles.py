"""Profiles are checked strictly when they are read. The message about a mistake contains the file, the key and the
reason.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from tkperf.model.choices import built_in_profiles
from tkperf.model.errors import ProfileError, UsageError
from tkperf.model.quantity import QUANTITIES
from tkperf.model.units import GIB
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
from tkperf.procedures.disk_areas import HardDiskTable
from tkperf.procedures.forecast import Case, find_excess, forecast
from tkperf.procedures.iops import IopsTable
from tkperf.procedures.latency import LatencyTable
from tkperf.procedures.own_workloads.parts import FillPhase, IdlePhase, Load, PurgePhase, RoundsPhase, StreamPhase
from tkperf.procedures.profiles import Profile, apply_options, explain_keys, resolve_range, show_value
from tkperf.procedures.profiles.profile_tables import SHARED_TABLES, ProfileTable
from tkperf.procedures.throughput import ThroughputTable
from tkperf.procedures.write_saturation import WriteSaturationTable

SHARED_KEYS = tuple(each.key for each in SHARED_TABLES)
TEXT = (resources.files("tkperf.procedures.profiles") / "pts-e-1.1.toml").read_text()


@pytest.mark.parametrize("name", built_in_profiles())
def test_shipped_profiles_are_valid_and_name_their_sources(name: str) -> None:
    """Every table of a shipped profile names the source of its numbers."""
    profile = load_profile(name)
    assert profile.name == name
    for key, value in profile.as_plain_data().items():
        if isinstance(value, dict):
            assert value["source"], f"{name}.{key} has no source"


def test_the_default_profile_has_the_numbers_of_pts_e_1_1() -> None:
    """The default profile contains the numbers of PTS-E 1.1. docs/explanation/method.md names their sources."""
    profile = load_profile("pts-e-1.1")
    assert profile.steady_state.max_rounds == 25
    assert profile.table(ThroughputTable).block_sizes_kib == (1024, 128)
    assert profile.table(LatencyTable).histogram_s == 20 * 60
    saturation = profile.table(WriteSaturationTable)
    assert (saturation.max_slices * saturation.slice_s, saturation.capacity_multiple) == (86400, 4)


@pytest.mark.parametrize(
    ("old", "new", "key", "reason"),
    [
        ("step_s = 60\ntracking_read", "step_s = -1\ntracking_read", "iops.step_s", "0.1 to"),
        ("[latency]", "[latencyy]", "", "key latencyy: choose from name"),
        ("jobs = 4", 'jobs = "4"', "demand.jobs", '"4" is not allowed, it takes a whole number'),
        ("jobs = 4", "jobs = 0", "demand.jobs", "1 to 1,024"),
        ("io_depth = 32", "io_dept = 32", "demand", "io_dept"),
        ("16, 8, 4, 0.5]\nstep", "16, 8, 4, 2.9296875]\nstep", "iops.block_sizes_kib", "3000 bytes"),
        ("max_rounds = 25", "max_rounds = 4", "steady_state.max_rounds", "fewer than window"),
        ('length = "100%"', 'length = "150%"', "active_range.length", "not a share"),
        (
            "tracking_block_size_kib = 4\n\n[thr",
            "tracking_block_size_kib = 2\n\n[thr",
            "iops.tracking_block_size_kib",
            "not one of",
        ),
        ("[100, 95, 65", "[100, 100, 65", "iops.read_percents", "twice"),
        ("passes = 2", "passes = 2 2", "", "not valid TOML"),
        ('name = "pts-e-1.1"', 'name = "../x"', "name", "letters, digits"),
        ("jobs = 4", "jobs = " + "[" * 5000, "", "nested too deeply"),
        ("jobs = 4", "jobs = " + "{a = " * 5000, "", "nested too deeply"),
        ("jobs = 4", "jobs = " + "9" * 5000, "", "not valid TOML: Exceeds the limit"),
        ("jobs = 4", "jobs = 0x" + "f" * 20_000, "demand.jobs", "1 to 1,024"),
        (
            "step_s = 60\ntracking_read",
            "step_s = inf\ntracking_read",
            "iops.step_s",
            "is not allowed, it takes a number",
        ),
        ('length = "100%"', 'length = "' + "9" * 1_000_002 + '"', "active_range.length", "not a size"),
        # These values make no sense, but they are valid: a run would really last as long as they require.
        ("max_rounds = 25", "max_rounds = 100000000", "steady_state.max_rounds", "1 to 10,000"),
        ("window_rounds = 5", "window_rounds = 1000", "steady_state.window_rounds", "2 to 100"),
        ("max_slices = 1440", "max_slices = 100000000", "write_saturation.max_slices", "to 20,000"),
        ("slice_s = 60", "slice_s = 1e9", "write_saturation.slice_s", "0.1 to 2,592,000"),
        ("slice_s = 60", "slice_s = 2e5", "write_saturation", "longer than a year"),
        ("round_every_slices = 30", "round_every_slices = 99999", "round_every_slices", "to 20,000"),
        ("step_s = 60\ntracking_read", "step_s = 1e-9\ntracking_read", "iops.step_s", "0.1 to"),
        (
            "step_s = 60\ntracking_read",
            "step_s = 1e300\ntracking_read",
            "iops.step_s",
            "is not allowed, it takes a number",
        ),
        ("step_s = 60\ntracking_read", "step_s = nan\ntracking_read", "iops.step_s", "nan is not allowed"),
        ("capacity_multiple = 4", "capacity_multiple = nan", "capacity_multiple", "nan is not allowed"),
        ("capacity_multiple = 4", "capacity_multiple = inf", "capacity_multiple", "is not allowed, it takes a number"),
        ("data_excursion_percent = 20", "data_excursion_percent = nan", "data_excursion_percent", "nan is not allowed"),
        ("data_excursion_percent = 20", "data_excursion_percent = inf", "data_excursion_percent", "at most 1,000,000"),
        (
            "slope_excursion_percent = 10",
            "slope_excursion_percent = inf",
            "slope_excursion_percent",
            "at most 1,000,000",
        ),
        ("[1024, 128]", str([n / 2 for n in range(1, 66)]), "throughput.block_sizes_kib", "a list of 1 to 64"),
        ("[1024, 128]", str([1] * 80_000), "throughput.block_sizes_kib", "a list of 1 to 64"),
        ("max_rounds = 25", "max_rounds = 10000", "demand_search", "more than 200,000 steps in all"),
        ("passes = 2", "passes = 2000000000", "preconditioning.passes", "1 to 1,000"),
        ("io_depth = 32", "io_depth = 2000000000", "demand.io_depth", "1 to 65,536"),
        ('length = "100%"', 'length = "100%"\nsegments = 8', "active_range.segments", "need an amount"),
        (
            'length = "100%"',
            'length = "100%"\namount = "8GiB"\nsegments = 3000',
            "active_range.segments",
            "8GiB cannot be cut into 3,000 equal pieces of whole sectors",
        ),
        ('length = "100%"', 'length = "100%"\namount = "50%"\nsegments = 8', "active_range.amount", "not a size"),
        ('length = "100%"', 'length = "100%"\namount = "x"', "active_range.amount", "not a size"),
        ("passes = 2", 'passes = 2\nlength = "120%"', "preconditioning.length", "not a share"),
        (
            "[throughput]",
            "also_tracked = [{ read_percent = 65, block_size_kib = 3 }]\n\n[throughput]",
            "iops.also_tracked",
            "65/35 3k is no cell of the test",
        ),
        (
            "[throughput]",
            "also_tracked = [{ read_percent = 0, block_size_kib = 4 }]\n\n[throughput]",
            "iops.also_tracked",
            "0/100 4k is tracked twice",
        ),
        (
            "[throughput]",
            "also_tracked = [{ read_percent = 0, block_size = 4 }]\n\n[throughput]",
            "iops.also_tracked",
            "block_size",
        ),
    ],
)
def test_a_mistake_is_named_with_file_key_and_reason(old: str, new: str, key: str, reason: str) -> None:
    """A typing error or an impossible value in a profile is refused immediately. The message contains the file, the key
    and the reason.
    """
    assert old in TEXT
    with pytest.raises(ProfileError) as caught:
        parse_profile(TEXT.replace(old, new, 1), file="mine.toml")
    assert "mine.toml" in str(caught.value)
    assert key in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "key"), [("passes = 2", "passes = 1", "name"), ('name = "pts-e-1.1"', 'name = "mine"', "title")]
)
def test_other_numbers_have_a_name_of_their_own(tmp_path: Path, old: str, new: str, key: str) -> None:
    """A copy of a shipped profile with other numbers must have another name, so that it cannot be mistaken for the
    specification.
    """
    path = tmp_path / "mine.toml"
    for copied in (TEXT, without("latency"), TEXT.replace('source = "', 'source = "see ')):
        path.write_text(copied)
        assert load_profile(str(path)).name == "pts-e-1.1"
    path.write_text(TEXT.replace("passes = 2", "passes = 1").replace(old, new))
    with pytest.raises(ProfileError) as caught:
        load_profile(str(path))
    assert str(caught.value).startswith(f"profile {path}, key {key}: '")
    path.write_text(
        TEXT.replace("passes = 2", "passes = 1")
        .replace('name = "pts-e-1.1"', 'name = "mine"')
        .replace('title = "SNIA', 'title = "as SNIA')
    )
    assert load_profile(str(path)).preconditioning.passes == 1


@pytest.fixture(scope="module")
def largest_profile() -> Profile:
    """Return a profile in which each number is at its limit. The fixture reads the profile only once, because tkperf
    examines all phases of all tests when it reads a profile.
    """
    text = (resources.files("tkperf.procedures.profiles") / "quick.toml").read_text()
    for old, new in (
        ("max_rounds = 6", "max_rounds = 10000"),
        ("window_rounds = 5", "window_rounds = 100"),
        ("max_slices = 30", "max_slices = 20000"),
        ("areas = 8", "areas = 4096"),
        ("most_levels = 10", "most_levels = 1000"),
        ("rounds = 10\n", "rounds = 10000\n"),
        ("bursts = 3", "bursts = 9995"),
        ("slices = 10 }", "slices = 19980 }"),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    return parse_profile(text, file="large.toml")


@pytest.mark.parametrize(
    ("suite", "test", "phases"), [("ssd", "hir", 89_000), ("ssd", "cbw", 40_000), ("hdd", "tp", 8192)]
)
def test_the_largest_profile_that_is_taken_can_be_looked_ahead_of(
    suite: str, test: str, phases: int, largest_profile: Profile
) -> None:
    """If all numbers of a profile are as large as permitted, the forecast can still visit every remaining phase. When
    tkperf reads the profile, it visits the phases of all tests in the same way.
    """
    procedure = SUITES[suite][test].procedure(largest_profile, GIB << 6)
    assert len(forecast(procedure, (), Case.WORST, active_range_bytes=GIB)) >= phases


def test_an_own_profile_is_given_by_path(tmp_path: Path) -> None:
    """A profile name with a slash or with the ending .toml is a file. A missing file and an unknown name cause clear
    errors.
    """
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace('name = "pts-e-1.1"', 'name = "mine"'))
    assert load_profile(str(path)).name == "mine"
    with pytest.raises(ProfileError, match="cannot read profile"):
        load_profile(str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"profile 'pts': choose from .*pts-e-1.1, quick, tkperf-2.2.*given as a path"):
        load_profile("pts")


def test_options_of_the_command_line_reach_every_test() -> None:
    """The options ``-nj`` and ``-iod`` set the thread count and the queue depth, and ``-rt`` sets the length of every
    step. The latency test keeps a demand of 1/1.
    """
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
)
def test_the_active_range_is_a_share_or_a_size_in_whole_blocks(text: str, length: int) -> None:
    """An active range that is given as a share of the device is rounded down to whole sectors. A size above the
    capacity means the whole device.
    """
    found = resolve_range(text, 960_197_124_096, 4096)
    assert (found.offset_bytes, found.length_bytes) == (0, length)
    assert found.length_bytes % 4096 == 0


@pytest.mark.parametrize("text", ["0%", "101%", "-5%", "x", "", "12 parsecs", "1"])
def test_an_impossible_active_range_is_refused(text: str) -> None:
    """A text that is neither a share nor a size is refused as an active range."""
    with pytest.raises(UsageError):
        resolve_range(text, 10**9, 512)


def test_a_device_whose_sector_no_block_size_fits_is_refused() -> None:
    """A device with sectors of 64 KiB is refused, because no tracked cell remains."""
    with pytest.raises(UsageError, match="logical sector of 65536"):
        fit_to_sector(load_profile("pts-e-1.1"), 65536, choose_tests(load_profile("pts-e-1.1"), "ssd"))


def test_a_block_size_is_left_out_only_of_the_tests_to_run() -> None:
    """Block sizes are left out only from the selected tests. A hard disk run with 4 KiB sectors loses no block size.
    The block sizes of the profile's SSD tests do not matter.
    """
    hdd = tuple(HDD_TESTS.values())
    profile = load_profile("quick")
    fitted, warnings = fit_to_sector(profile, 4096, hdd)
    assert not warnings
    assert fitted.table(IopsTable) == profile.table(IopsTable)
    _, warnings = fit_to_sector(profile, 4096, (SSD_TESTS["lat"],))
    assert list(warnings) == ["lat"]
    # Only the throughput test is selected, which has a block size that fits a sector of 64 KiB. The IOPS test, which
    # tracks 4 KiB, is not selected.
    _, warnings = fit_to_sector(profile, 65536, (SSD_TESTS["tp"],))
    assert not warnings
    small = msgspec.structs.replace(profile.table(HardDiskTable), iops_block_sizes_kib=(4, 0.5))
    _, warnings = fit_to_sector(profile.with_tables(small), 4096, hdd)
    assert list(warnings) == ["iops"]


def test_the_step_length_leaves_the_times_of_write_saturation() -> None:
    """The option for the step length does not change the times of write saturation. Write saturation still lasts 24 h,
    and a slice is judged every 30 minutes.
    """
    for step_s, longest_s in ((120.0, 86400), (60.0, 86400), (5.0, 86400), (1.0, 20_000)):
        profile = apply_options(load_profile("pts-e-1.1"), step_s=step_s)
        table = profile.table(WriteSaturationTable)
        assert table.slice_s == step_s
        assert table.slice_s * table.max_slices == longest_s, "only as many as can be looked ahead of"
        assert table.slice_s * table.round_every_slices == 1800
        data = apply_options(load_profile("quick"), step_s=step_s).as_plain_data()
        text = json.dumps(data["write_saturation"]).encode()
        msgspec.json.decode(text, type=WriteSaturationTable)


def without(table: str, text: str = TEXT) -> str:
    """Return the text of a profile without one of its tables."""
    before, _, after = text.partition(f"[{table}]\n")
    return before + after[after.index("\n[") + 1 :]


def test_a_profile_may_leave_out_tests() -> None:
    """If a profile lacks the table of a test, the test is not offered. If a user requests such a test, the message
    names the profiles that define it.
    """
    profile = parse_profile(without("latency"), file="mine.toml")
    assert [test.name for test in choose_tests(profile, "ssd")] == ["iops", "tp", "writesat"]
    assert [test.name for test in choose_tests(profile, "ssd", ("tp", "iops"))] == ["iops", "tp"]
    with pytest.raises(UsageError, match=r"no table latency.* test lat .*pts-e-1.1 or quick or"):
        choose_tests(profile, "ssd", ("lat",))
    with pytest.raises(UsageError, match=r"no table hard_disk.*quick or tkperf-2.2, or use your own profile"):
        choose_tests(load_profile("pts-e-1.1"), "hdd")
    with pytest.raises(ProfileError, match="required key demand is missing"):
        parse_profile(without("demand"), file="mine.toml")


def test_a_table_of_no_test_is_a_mistake() -> None:
    """A table that belongs to no test is refused. Otherwise a typing error in the name of a table would make a test
    disappear.
    """
    with pytest.raises(ProfileError, match=r"mine.toml, key latencyy: choose from name"):
        parse_profile(TEXT.replace("[latency]", "[latencyy]"), file="mine.toml")


def test_a_stored_profile_is_read_table_by_table() -> None:
    """A stored profile is read table by table. If one table contains a missing or additional key, as from another
    version, all other tables remain readable.
    """
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
    """Each test has a descriptor that contains its name on the command line and the document that defines the test."""
    by_default = {suite: [name for name, test in tests.items() if test.by_default] for suite, tests in SUITES.items()}
    basic = ["iops", "lat", "tp", "writesat"]
    assert by_default == {"ssd": basic, "hdd": ["iops", "tp"], "raid": basic}
    assert SUITES["raid"] == SUITES["ssd"], "a RAID set is tested like one large SSD"
    for test in TESTS:
        assert test.source
        (table,) = test.tables
        assert set(test.not_used) < set(table.__struct_fields__)
        assert set(test.tracked) <= set(QUANTITIES)


def tables_of(page: str) -> list[list[list[str]]]:
    """Return every table of a page in docs/ as rows of cells. The header is the first row."""
    found: list[list[list[str]]] = []
    before = ""
    for line in (Path(__file__).parents[2] / "docs" / page).read_text("utf-8").splitlines():
        if line.startswith("|"):
            if not before.startswith("|"):
                found.append([])
            if not line.startswith("|---"):
                found[-1].append([cell.strip() for cell in line.strip().strip("|").split(" | ")])
        before = line
    return found


def numbers(name: str) -> dict[str, str]:
    """Return every number of a profile with its key ``table.key``, in the form that users read."""
    return {
        f"{table}.{key}": show_value(value)
        for table, keys in load_profile(name).as_plain_data().items()
        if isinstance(keys, dict)
        for key, value in keys.items()
        if key != "source"
    }


def test_the_record_of_sources_has_every_table_of_every_profile() -> None:
    """The table of sources in the documentation has exactly one row for each table of a profile."""
    (sources,) = (table for table in tables_of("adr/0048-what-the-sources-leave-open.md") if table[0][0] == "table")
    named = {name.strip("` ") for row in sources[1:] for name in row[0].split(",")}
    assert named == {key.partition(".")[0] for name in built_in_profiles() for key in numbers(name)}


def test_the_page_on_profiles_names_every_profile() -> None:
    named = {name.strip("` ") for row in tables_of("reference/profiles.md")[0][1:] for name in row[0].split(",")}
    assert named == set(built_in_profiles())


@pytest.mark.parametrize("table", [*SHARED_TABLES, *(test.table for test in TESTS)])
def test_an_optional_key_says_what_is_taken_without_it(table: type[ProfileTable]) -> None:
    """The explanation of an optional key contains its default. The explanation of a required key has no default."""
    for field in msgspec.structs.fields(table):
        (key,) = (each for each in explain_keys(table) if each.name == field.name)
        assert key.meaning, "every key says what it means: give its type a means(...)"
        assert ("default: " in key.meaning) is not field.required, key


def test_keys_are_explained_with_the_values_that_they_take() -> None:
    """Keys are explained with the values that they accept: limits, alternatives, lists and defaults."""
    throughput = {each.name: each for each in explain_keys(ThroughputTable)}
    assert throughput["jobs"].values == "1 to 1,024"
    assert throughput["fill_block_size"].values == '"own" or "shared"'
    assert throughput["fill_block_size"].meaning.endswith("; default: shared")
    assert throughput["block_sizes_kib"].values == "list of 1 to 64 values: more than 0, at most 16,384"
    also = {each.name: each for each in explain_keys(IopsTable)}["also_tracked"]
    assert also.values == "list of 0 to 8 values: { read_percent, block_size_kib }"


@pytest.mark.parametrize(
    ("name", "demand", "length", "cache"),
    [
        ("pts-2.0", (4, 32), "100%", "off"),
        ("pts-2.0-client", (2, 16), "75%", "on"),
        ("pts-c-1.2", (2, 16), "80%", "on"),
    ],
)
def test_the_other_specifications_have_their_numbers(
    name: str, demand: tuple[int, int], length: str, cache: str
) -> None:
    """The profiles of the other specifications contain the demand, the active range and the write cache setting of
    these specifications. docs/explanation/method.md names the sources.
    """
    profile = load_profile(name)
    assert (profile.demand.jobs, profile.demand.io_depth) == demand
    assert profile.active_range.length == length
    assert profile.write_cache.setting == cache


def test_all_is_every_test_that_the_profile_defines() -> None:
    """The word "all" selects every test that the profile defines, even together with the name of a test. If a profile
    has no default test and no test is named, all of its tests run.
    """

    def chosen(profile: Profile, *names: str, suite: str = "ssd") -> list[str]:
        return [test.name for test in choose_tests(profile, suite, names)]

    client = load_profile("pts-c-1.2")
    assert chosen(client, "all") == chosen(client) == ["iops", "lat", "tp"]
    assert chosen(client, "lat", "all") == ["iops", "lat", "tp"]
    assert chosen(load_profile("quick"), "all", suite="hdd") == ["iops", "tp"]
    with pytest.raises(UsageError, match=r"To run test writesat with tkperf ssd, use --profile pts-2.0"):
        chosen(client, "writesat")
    with pytest.raises(UsageError, match=r"To run any test with tkperf hdd, use --profile quick or tkperf-2.2"):
        chosen(client, "all", suite="hdd")


def test_tests_beside_the_default_ones_run_where_there_are_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Optional tests run without ``--test`` if the profile contains no other tests. If the profile contains default
    tests, the user must name optional tests.
    """
    optional = {name: dataclasses.replace(test, by_default=name != "lat") for name, test in SSD_TESTS.items()}
    monkeypatch.setitem(SUITES, "ssd", optional)
    profile = load_profile("pts-c-1.2")
    assert [test.name for test in choose_tests(profile, "ssd")] == ["iops", "tp"]
    alone = dataclasses.replace(profile, tables={key: profile.tables[key] for key in ("latency", *SHARED_KEYS)})
    assert [test.name for test in choose_tests(alone, "ssd")] == ["lat"]


@pytest.mark.parametrize("name", built_in_profiles())
def test_no_shipped_profile_asks_for_more_than_can_be_run(name: str) -> None:
    """No shipped profile exceeds the limits of a run. tkperf does not check these limits when it loads a shipped
    profile.
    """
    assert find_excess(TESTS, load_profile(name)) is None


def unbounded(type_: inspect.Type, path: str) -> Iterator[str]:
    """Yield the paths at which a type accepts real numbers without a lower or an upper bound."""
    match type_:
        case inspect.Metadata():
            yield from unbounded(type_.type, path)
        case inspect.FloatType():
            least = type_.ge if type_.gt is None else type_.gt
            greatest = type_.le if type_.lt is None else type_.lt
            if least is None or greatest is None:
                yield path
        case inspect.StructType():
            for field in type_.fields:
                yield from unbounded(field.type, f"{path}.{field.name}")
        case inspect.UnionType():
            yield from (found for each in type_.types for found in unbounded(each, path))
        case inspect.VarTupleType():
            yield from unbounded(type_.item_type, path)
        case inspect.TupleType():
            yield from (found for each in type_.item_types for found in unbounded(each, path))
        case inspect.DictType():
            yield from unbounded(type_.value_type, path)


def test_no_number_can_be_infinite() -> None:
    """Every number of a profile or workload file has a lower and an upper bound. These bounds exclude TOML's inf and
    nan.
    """
    types: list[type] = [*SHARED_TABLES, *(test.table for test in TESTS if test.table)]
    types += [PurgePhase, FillPhase, IdlePhase, RoundsPhase, StreamPhase, Load]
    found = {place for type_ in types for place in unbounded(inspect.type_info(type_), type_.__name__)}
    # These numbers are read as values of a key of a load, and this key has bounds.
    assert found == {"RoundsPhase.loops.values", "RoundsPhase.tracked.at"}
