"""Cases for hostile_files.py. Each case enlarges one table, one text or one blob of a run file."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import numpy as np
from enlarging import CASES, case, change_json, copy_rows, copy_steps, numbers, set_fact

from tkperf.model.histogram import BUCKETS
from tkperf.runfile.columns import SECOND_COLUMNS, compress_output, pack_integers

MB = 1_000_000


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


# The following cases enlarge the table run.


@case
def run_profile_keys(db: sqlite3.Connection, size: int) -> None:
    set_fact(db, "profile", {f"k{n}": n for n in range(size // 20)})


@case
def run_profile_rows(db: sqlite3.Connection, size: int) -> None:
    set_fact(db, "profile", {"iops": {"x": [[0]] * (size // 7)}})


@case
def run_profile_empty_tables(db: sqlite3.Connection, size: int) -> None:
    set_fact(db, "profile", {"iops": {"x": [{}] * (size // 4)}})


@case
def run_profile_text(db: sqlite3.Connection, size: int) -> None:
    set_fact(db, "profile", {"title": "x" * size})


@case
def run_deep_json(db: sqlite3.Connection, size: int) -> None:
    db.execute("UPDATE run SET value = ? WHERE key = 'profile'", (nested(size // 2),))


@case
def run_name(db: sqlite3.Connection, size: int) -> None:
    set_fact(db, "name", "x " * (size // 2))


@case
def run_name_of_controls(db: sqlite3.Connection, size: int) -> None:
    set_fact(db, "name", "\x1b" * (size // 6))


@case
def run_notices(db: sqlite3.Connection, size: int) -> None:
    set_fact(db, "notices", [f"n{n}" for n in range(size // 12)])


@case
def run_tests(db: sqlite3.Connection, size: int) -> None:
    set_fact(db, "tests", [f"t{n}" for n in range(size // 12)])


@case
def run_command_line(db: sqlite3.Connection, size: int) -> None:
    set_fact(db, "command_line", ["x"] * (size // 5))


@case
def run_options(db: sqlite3.Connection, size: int) -> None:
    set_fact(db, "options", {f"o{n}": "x" for n in range(size // 20)})


@case
def run_device_members(db: sqlite3.Connection, size: int) -> None:
    (text,) = db.execute("SELECT value FROM run WHERE key = 'device'").fetchone()
    set_fact(db, "device", json.loads(text) | {"members": [{"model": "m"}] * (size // 16)})


@case
def run_device_facts(db: sqlite3.Connection, size: int) -> None:
    (text,) = db.execute("SELECT value FROM run WHERE key = 'device'").fetchone()
    set_fact(db, "device", json.loads(text) | {f"f{n}": "x" for n in range(size // 20)})


@case
def run_facts(db: sqlite3.Connection, size: int) -> None:
    db.execute(numbers(size // 20) + "INSERT INTO run SELECT 'k' || n, '1' FROM c")


# The following cases enlarge the table host.


@case
def host_rows(db: sqlite3.Connection, size: int) -> None:
    db.execute(numbers(size // 20) + "INSERT INTO host SELECT n + 1, '{}' FROM c")


@case
def host_findings(db: sqlite3.Connection, size: int) -> None:
    one = {"key": "k", "title": "t", "state": "disturbs", "text": "x", "values": ["x"]}

    def change(facts: dict[str, Any]) -> None:
        facts["audit"] = {"findings": [one] * (size // 90)}

    change_json(db, "host", "facts", change)


@case
def host_facts(db: sqlite3.Connection, size: int) -> None:
    change_json(db, "host", "facts", lambda facts: facts.update({f"f{n}": "x" for n in range(size // 20)}))


# The following cases enlarge the table test.


@case
def test_plan_figures(db: sqlite3.Connection, size: int) -> None:
    def change(plan: dict[str, Any]) -> None:
        for section in plan["sections"]:
            section["figures"] = (section.get("figures") or []) * 1
            if section["figures"]:
                section["figures"] *= max(1, size // len(json.dumps(section["figures"])))
                return

    change_json(db, "test", "plan", change)


@case
def test_plan_quantities(db: sqlite3.Connection, size: int) -> None:
    def change(plan: dict[str, Any]) -> None:
        section = plan["sections"][0]
        for key, value in list(section.items()):
            if isinstance(value, list) and value and isinstance(value[0], str):
                section[key] = value * (size // len(json.dumps(value)))

    change_json(db, "test", "plan", change)


@case
def test_plan_sections(db: sqlite3.Connection, size: int) -> None:
    def change(plan: dict[str, Any]) -> None:
        one = plan["sections"][0]
        plan["sections"] = [{**one, "name": f"s{n}"} for n in range(size // len(json.dumps(one)))]

    change_json(db, "test", "plan", change)


@case
def test_plan_text(db: sqlite3.Connection, size: int) -> None:
    change_json(db, "test", "plan", lambda plan: plan.update(title="x " * (size // 2)))


@case
def test_names(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of tests that tkperf reads, with long names."""
    copy_rows(db, "test", 90, name=f"'t' || n || hex(zeroblob({size // 200}))", plan="NULL")


# The following cases enlarge the table purge.


@case
def purge_rows(db: sqlite3.Connection, size: int) -> None:
    copy_rows(db, "purge", size // 40, sequence="10000000 + n")


@case
def purge_notes(db: sqlite3.Connection, size: int) -> None:
    copy_rows(db, "purge", 100, sequence="10000000 + n", note=f"hex(zeroblob({size // 200}))")


# The following cases enlarge the tables job and step.


@case
def job_text(db: sqlite3.Connection, size: int) -> None:
    db.execute("UPDATE job SET text = hex(zeroblob(?)) WHERE id = 1", (size // 2,))


@case
def job_rows(db: sqlite3.Connection, size: int) -> None:
    """Add steps, each with a different job."""
    count = size // 1000
    db.execute(numbers(count) + "INSERT INTO job SELECT 100000 + n, n || hex(zeroblob(350)) FROM c")
    copy_steps(db, count, job_id="100000 + n", number="n")


@case
def step_rounds(db: sqlite3.Connection, size: int) -> None:
    """Add one cell with as many rounds as the file can hold."""
    copy_steps(db, size // 260, number="n")


@case
def step_one_round(db: sqlite3.Connection, size: int) -> None:
    """Add one round with as many steps of one workload as the file can hold."""
    copy_steps(db, size // 260, number="1", position="n")


@case
def step_workloads(db: sqlite3.Connection, size: int) -> None:
    """Add one round in which each step has a different workload."""
    copy_steps(
        db,
        size // 260,
        number="1",
        position="n",
        block_size_bytes="512 * (1 + n % 60000)",
        read_percent="n % 101",
        io_depth="1 + n % 60000",
    )


@case
def step_workloads_and_rounds(db: sqlite3.Connection, size: int) -> None:
    """Add 300 workloads, each with as many rounds as the file can hold."""
    copy_steps(db, size // 260, number="1 + n / 300", position="n % 300", block_size_bytes="512 * (1 + n % 300)")


@case
def step_sections(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of sections that tkperf reads."""
    copy_steps(db, size // 260, number="1 + n / 900", section="'s' || (n % 900)")


@case
def step_sections_of_tests(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of tests that tkperf reads, each with sections."""
    copy_rows(db, "test", 85, name="'t' || n")
    copy_steps(db, size // 260, number="1 + n / 900", test_id="2 + n % 85", section="'s' || (n % 10)")


@case
def step_slices(db: sqlite3.Connection, size: int) -> None:
    copy_steps(db, size // 260, kind="'continuous'", number="n", section="'WS'", started_s="n")


@case
def step_slices_of_sections(db: sqlite3.Connection, size: int) -> None:
    copy_steps(db, size // 260, kind="'continuous'", number="1 + n / 900", section="'s' || (n % 900)", started_s="n")


@case
def step_fills(db: sqlite3.Connection, size: int) -> None:
    copy_steps(db, size // 260, kind="'fill'", number="1", started_s="n")


@case
def step_areas(db: sqlite3.Connection, size: int) -> None:
    copy_steps(db, size // 260, kind="'area'", number="n", region_offset_bytes="n", region_length_bytes="1")


@case
def step_warm_ups(db: sqlite3.Connection, size: int) -> None:
    copy_steps(db, size // 260, kind="'warm-up'", number="n")


@case
def step_bad_rows(db: sqlite3.Connection, size: int) -> None:
    """Add rows that every reader must reject. tkperf has to name each of these rows."""
    copy_steps(db, size // 260, kind="'no kind'", number="n")


@case
def step_host_use(db: sqlite3.Connection, size: int) -> None:
    text = json.dumps({"seen_s": 1.0, "kernel_lines": ["x"] * 1000, "others": ["y"] * 1000})
    copy_steps(db, size // len(text), number="n", host_use=f"'{text}'")


@case
def step_one_host_use(db: sqlite3.Connection, size: int) -> None:
    text = json.dumps({"seen_s": 1.0, "kernel_lines": ["x"] * (size // 5)})
    copy_steps(db, 1, number="1", host_use=f"'{text}'")


@case
def step_block_mixes(db: sqlite3.Connection, size: int) -> None:
    mix = json.dumps([[512 * n, 1 if n < 50 else 51] for n in range(1, 51)])
    copy_steps(
        db,
        size // 800,
        number="1",
        position="n",
        block_mix=f"'{mix}'",
        block_size_bytes="25600",
        io_depth="1 + n % 60000",
    )


@case
def step_histograms(db: sqlite3.Connection, size: int) -> None:
    """Add full histograms, which compress to a few bytes."""
    blob = pack_integers(np.ones(BUCKETS, dtype=np.int64))
    copy_steps(db, size // 330, number="n", read_histogram="?1".replace("?1", f"x'{blob.hex()}'"))


@case
def step_seconds(db: sqlite3.Connection, size: int) -> None:
    """Add seconds that compress to a few bytes. Each step has the largest number of seconds that tkperf reads."""
    seconds = 100_000
    table = np.zeros((len(SECOND_COLUMNS), seconds), dtype=np.int64)
    table[0], table[1] = 10**6 * np.arange(seconds), 10**6
    table[[2, 4]] = 1
    blob = pack_integers(table)
    copy_steps(db, size // (len(blob) + 300), number="n")
    db.execute("UPDATE step SET seconds = ? WHERE seconds IS NULL", (blob,))


@case
def step_seconds_of_zeroes(db: sqlite3.Connection, size: int) -> None:
    table = np.zeros((len(SECOND_COLUMNS), 131_000), dtype=np.int64)
    table[1] = 1
    blob = pack_integers(table)
    copy_steps(db, size // (len(blob) + 300), number="n")
    db.execute("UPDATE step SET seconds = ? WHERE seconds IS NULL", (blob,))


@case
def step_seconds_of_a_stream(db: sqlite3.Connection, size: int) -> None:
    """Add one stream with as many different seconds as the file can hold."""
    rng = np.random.default_rng(1)
    seconds = 20_000
    table = np.zeros((len(SECOND_COLUMNS), seconds), dtype=np.int64)
    table[0], table[1] = 10**6 * np.arange(seconds), 10**6
    table[8], table[9] = rng.integers(1, 65536, seconds), 4096
    table[10] = table[8]
    table[11] = table[8] * 1000
    blob = pack_integers(table)
    copy_steps(
        db,
        size // (len(blob) + 300),
        kind="'continuous'",
        section="'WS'",
        number="n",
        started_s=f"n * {seconds}",
        duration_s=f"{seconds}",
    )
    db.execute("UPDATE step SET seconds = ? WHERE seconds IS NULL", (blob,))


@case
def step_fio_json(db: sqlite3.Connection, size: int) -> None:
    blob = compress_output(bytes(200 * MB)) or b""
    copy_steps(db, size // (len(blob) + 300), number="n")
    db.execute("UPDATE step SET fio_json = ? WHERE fio_json IS NULL", (blob,))


@case
def second_histograms(db: sqlite3.Connection, size: int) -> None:
    seconds = 1000
    table = np.zeros((len(SECOND_COLUMNS), seconds), dtype=np.int64)
    table[1], table[[2, 4, 8, 10]] = 1, BUCKETS
    filled = np.full(2 * seconds, BUCKETS)
    buckets = np.tile(np.arange(BUCKETS), 2 * seconds)
    packed = pack_integers(np.concatenate((filled, buckets, np.ones_like(buckets))))
    copy_steps(db, size // (len(packed) + 300), number="n")
    db.execute(
        "UPDATE step SET seconds = ?, second_histograms = ? WHERE seconds IS NULL", (pack_integers(table), packed)
    )


# The following cases enlarge the table disturbance.


@case
def disturbances_of_a_step(db: sqlite3.Connection, size: int) -> None:
    db.execute(
        numbers(size // 40) + "INSERT INTO disturbance SELECT (SELECT min(sequence) FROM step WHERE kind = 'round'), "
        "100 + n, 'foreign-io', 'x', 0, 1, NULL FROM c"
    )


@case
def disturbances_of_all_steps(db: sqlite3.Connection, size: int) -> None:
    (steps,) = db.execute("SELECT count(*) FROM step").fetchone()
    db.execute(
        numbers(size // 40 // steps)
        + "INSERT INTO disturbance SELECT sequence, 100 + n, 'foreign-io', 'x', 0, 1, NULL FROM step, c"
    )


@case
def disturbances_of_no_step(db: sqlite3.Connection, size: int) -> None:
    db.execute(
        numbers(size // 40) + "INSERT INTO disturbance SELECT 50000000 + n, n, 'foreign-io', 'x', 0, 1, NULL FROM c"
    )


@case
def disturbance_texts(db: sqlite3.Connection, size: int) -> None:
    db.execute(
        numbers(60) + "INSERT INTO disturbance SELECT (SELECT min(sequence) FROM step WHERE kind = 'round'), "
        f"100 + n, 'foreign-io', hex(zeroblob({size // 120})), 0, 1, NULL FROM c"
    )


# The following cases enlarge the tables verdict and outcome.


@case
def verdict_rows(db: sqlite3.Connection, size: int) -> None:
    (length,) = db.execute("SELECT length(verdict) FROM verdict LIMIT 1").fetchone()
    copy_rows(db, "verdict", size // (length + 40), sequence="10000000 + n", number="n")


@case
def verdict_values(db: sqlite3.Connection, size: int) -> None:
    def change(verdict: dict[str, Any]) -> None:
        count = size // 14
        verdict["values"], verdict["rounds"] = [1.5] * count, list(range(1, count + 1))

    change_json(db, "verdict", "verdict", change)


@case
def verdict_reason(db: sqlite3.Connection, size: int) -> None:
    change_json(db, "verdict", "verdict", lambda verdict: verdict.update(reason="x " * (size // 2)))


@case
def outcome_rows(db: sqlite3.Connection, size: int) -> None:
    (length,) = db.execute("SELECT length(outcome) FROM outcome LIMIT 1").fetchone()
    copy_rows(db, "outcome", size // (length + 40), sequence="10000000 + n")


@case
def outcome_window(db: sqlite3.Connection, size: int) -> None:
    change_json(db, "outcome", "outcome", lambda one: one.update(window=list(range(1, size // 9))))


@case
def outcome_verdicts(db: sqlite3.Connection, size: int) -> None:
    def change(outcome: dict[str, Any]) -> None:
        one = outcome["verdict"]
        outcome["verdicts"] = [one] * (size // len(json.dumps(one)))

    change_json(db, "outcome", "outcome", change)


# The following cases enlarge the tables telemetry, warning, note, resumption and under_way.


@case
def telemetry_rows(db: sqlite3.Connection, size: int) -> None:
    copy_rows(db, "telemetry", size // 90, at_s="n")


@case
def telemetry_drives(db: sqlite3.Connection, size: int) -> None:
    copy_rows(db, "telemetry", size // 90, at_s="n", drive="'d' || n")


@case
def telemetry_heat(db: sqlite3.Connection, size: int) -> None:
    """Add a reading for each second, and extend the steps. Each reading shows throttling, and each step is longer than
    the time that all readings cover.
    """
    copy_rows(db, "telemetry", size // 90, at_s="n", thermal_1_s="n", source="'nvme'", percentage_used="1")
    db.execute("UPDATE step SET started_s = 0, duration_s = 1e9")


@case
def telemetry_one_moment(db: sqlite3.Connection, size: int) -> None:
    copy_rows(db, "telemetry", size // 90, at_s="1", thermal_1_s="n", source="'nvme'")


@case
def warning_rows(db: sqlite3.Connection, size: int) -> None:
    db.execute(numbers(size // 25) + "INSERT INTO warning SELECT 1000000 + n, 'c', 'text', NULL, 1 FROM c")


@case
def warning_codes(db: sqlite3.Connection, size: int) -> None:
    db.execute(numbers(size // 35) + "INSERT INTO warning SELECT 1000000 + n, 'c' || n, 't' || n, 'iops', n FROM c")


@case
def warning_texts(db: sqlite3.Connection, size: int) -> None:
    db.execute(
        numbers(100) + f"INSERT INTO warning SELECT 1000000 + n, 'c', hex(zeroblob({size // 200})), NULL, 1 FROM c"
    )


@case
def warning_bad_rows(db: sqlite3.Connection, size: int) -> None:
    db.execute(numbers(size // 20) + "INSERT INTO warning SELECT 1000000 + n, 'c', x'ff', NULL, 1 FROM c")


@case
def note_rows(db: sqlite3.Connection, size: int) -> None:
    db.execute(numbers(size // 25) + "INSERT INTO note SELECT 1000000 + n, 'c', 'text', NULL, 1 FROM c")


RESUMPTION = (
    "INSERT INTO resumption (number, resumed_utc, stopped_s, resumed_s, status, goes_on, test_id, "
    "set_aside_from, set_aside_to, again, cut_off_written_bytes, repeated, repeated_ids, added, "
    "changes, command_line) SELECT {number}, '2026-01-01T00:00:00Z', n, n + 0.5, 'interrupted', "
    "'round', 1, {first}, {last}, '', 0, {repeated}, {ids}, '[]', {changes}, '[]' FROM c"
)


def add_resumptions(db: sqlite3.Connection, count: int, **values: str) -> None:
    usual = {
        "number": "n",
        "first": "900000000 + n",
        "last": "900000000 + n",
        "repeated": "'[]'",
        "ids": "'[]'",
        "changes": "'[]'",
    }
    db.execute(numbers(count) + RESUMPTION.format(**usual | values))


@case
def resumption_rows(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of resumptions that tkperf reads, and as many steps and readings as the file can hold."""
    add_resumptions(db, 1000)
    copy_steps(db, size // 520, number="n", test_id="1")
    copy_rows(db, "telemetry", size // 180, at_s="n", source="'nvme'", percentage_used="1")


@case
def resumption_changes(db: sqlite3.Connection, size: int) -> None:
    add_resumptions(db, 1, changes=f"'{json.dumps(['x'] * (size // 5))}'")


@case
def resumption_repeated(db: sqlite3.Connection, size: int) -> None:
    add_resumptions(db, 1, ids=f"'{json.dumps(list(range(100, 100 + size // 9)))}'")


@case
def under_way_parts(db: sqlite3.Connection, size: int) -> None:
    seconds = 100_000
    table = np.zeros((len(SECOND_COLUMNS), seconds), dtype=np.int64)
    table[1] = 1
    blob = pack_integers(table)
    packed = pack_integers(np.zeros(2 * seconds, dtype=np.int64))
    names = [row[1] for row in db.execute("PRAGMA table_info(under_way)")]
    chosen = {name: name for name in names} | {"host_id": "1", "planned_bytes": "NULL"}
    db.execute(f"INSERT INTO under_way SELECT {', '.join(chosen[name] for name in names)} FROM step LIMIT 1")
    count = size // (len(blob) + len(packed) + 50)
    db.execute(numbers(count) + "INSERT INTO under_way_part SELECT n, 1, ?, ? FROM c", (blob, packed))


# The following cases change the database itself.


@case
def schema_tables(db: sqlite3.Connection, size: int) -> None:
    for n in range(min(20_000, size // 1100)):
        db.execute(f"CREATE TABLE x{n} (a)")


@case
def schema_columns(db: sqlite3.Connection, size: int) -> None:
    for n in range(size // 300_000):
        columns = ", ".join(f"c{m}" for m in range(1900))
        db.execute(f"CREATE TABLE x{n} ({columns})")


@case
def schema_comment(db: sqlite3.Connection, size: int) -> None:
    db.execute(f"CREATE TABLE x (a /*{'x' * size}*/)")


@case
def unused_pages(db: sqlite3.Connection, size: int) -> None:
    db.execute("CREATE TABLE x (a)")
    db.execute("INSERT INTO x VALUES (zeroblob(?))", (size,))


# Each of the following cases enlarges more than one table.


@case
def a_little_of_all(db: sqlite3.Connection, size: int) -> None:
    """Enlarge every table to a tenth of the given size. Each table can be within its limit although all tables together
    are expensive to read.
    """
    part = size // 10
    for name in (
        "step-workloads-and-rounds",
        "disturbances-of-all-steps",
        "verdict-rows",
        "warning-codes",
        "telemetry-rows",
        "purge-rows",
        "note-rows",
        "step-seconds",
        "step-histograms",
    ):
        CASES[name](db, part)
