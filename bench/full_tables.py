"""Cases for hostile_files.py.

A case fills several tables at the same time, or fills one table as expensively as the limits permit.

At the usual size of 60 MB, each case exceeds a limit. ``hostile_files.py --below`` searches for the largest size that
tkperf still reads.
"""

from __future__ import annotations

import json
import sqlite3

import numpy as np
from enlarging import case, copy_rows, copy_steps, numbers, set_fact

from tkperf.model.histogram import BUCKETS
from tkperf.runfile.columns import SECOND_COLUMNS, pack_integers
from tkperf.runfile.limits import (
    MOST_CELLS,
    MOST_DRIVES,
    MOST_ROWS,
    MOST_SECONDS,
    MOST_SECTIONS,
    MOST_STEPS_TIMES_SECTIONS,
)

USUAL_BYTES = 60_000_000
# These numbers are 100 below the limits, because the base file already contains some sections and workloads.
CELLS, SECTIONS = MOST_CELLS - 100, MOST_SECTIONS - 100


def share(most: int, size: int) -> int:
    """Return a number that slightly exceeds a limit at the usual size of a file. For a smaller file, the number is
    proportionally smaller.
    """
    return max(1, int(1.1 * most * size / USUAL_BYTES))


def sparse_histogram(buckets: int) -> str:
    """Return SQL for a histogram with the given number of filled buckets."""
    counts = np.zeros(BUCKETS, dtype=np.int64)
    counts[np.linspace(200, BUCKETS - 200, buckets, dtype=np.int64)] = 1000
    return f"x'{pack_integers(counts).hex()}'"


def seconds_blob(seconds: int) -> bytes:
    """Return a blob of different seconds of writes, as a run file stores them."""
    rng = np.random.default_rng(1)
    table = np.zeros((len(SECOND_COLUMNS), seconds), dtype=np.int64)
    table[0], table[1] = 10**6 * np.arange(seconds), 10**6
    table[8] = table[10] = rng.integers(1, 200, seconds)
    table[9], table[11] = 4096 * table[8], 1000 * table[8]
    return pack_integers(table)


def copy_workloads(db: sqlite3.Connection, size: int, workloads: int, steps: int = 0, **changes: str) -> None:
    """Add a section with this number of workloads, each with as many rounds as the file can hold.

    Args:
        steps: number of steps at the usual size; 0 means the largest number that tkperf reads.
    """
    copy_steps(
        db,
        share(steps or MOST_ROWS["step"], size),
        number=f"1 + n / {workloads}",
        position=f"n % {workloads}",
        block_size_bytes=f"512 * (1 + n % {workloads})",
        **changes,
    )


def copy_grid(db: sqlite3.Connection, size: int, values: int) -> None:
    """Add a section with this number of block sizes and the same number of mixes, in all combinations."""
    copy_steps(
        db,
        share(MOST_ROWS["step"], size),
        number=f"1 + n / {values**2}",
        position=f"n % {values**2}",
        block_size_bytes=f"512 * (1 + n % {values})",
        read_percent=f"(n / {values}) % {values}",
    )


def copy_slices(db: sqlite3.Connection, size: int, workloads: int) -> None:
    """Add the given number of workloads in the slices of one stream."""
    copy_steps(
        db,
        share(MOST_ROWS["step"], size),
        kind="'continuous'",
        number="n",
        started_s="n",
        block_size_bytes=f"512 * (1 + n % {workloads})",
    )


@case
def full_workloads_in_rounds(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of workloads in one section that tkperf reads, each with as many rounds as the file can
    hold.
    """
    copy_workloads(db, size, CELLS)


@case
def full_workloads_in_three_dimensions(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of workloads that tkperf reads, with 54 block sizes and 54 mixes."""
    copy_grid(db, size, 54)


@case
def full_workloads_of_sections(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of sections that tkperf reads, each with three workloads."""
    copy_steps(
        db,
        share(MOST_ROWS["step"], size),
        number=f"1 + n / {3 * SECTIONS}",
        position=f"(n / {SECTIONS}) % 3",
        section=f"'s' || (n % {SECTIONS})",
        block_size_bytes=f"512 * (1 + (n / {SECTIONS}) % 3)",
    )


@case
def full_workloads_of_streams(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of workloads that tkperf reads, in the slices of one stream."""
    copy_slices(db, size, CELLS)


@case
def full_workloads_with_histograms(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of workloads that tkperf reads, and as many histograms of 400 buckets as the file can
    hold.
    """
    copy_workloads(db, size, CELLS, write_histogram=sparse_histogram(400))


@case
def full_histograms_of_streams(db: sqlite3.Connection, size: int) -> None:
    copy_steps(
        db,
        share(MOST_ROWS["step"], size),
        kind="'continuous'",
        section="'WS'",
        number="n",
        started_s="n",
        write_histogram=sparse_histogram(400),
        read_histogram=sparse_histogram(20),
    )


@case
def full_block_mixes(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of workloads that tkperf reads, each with a mix of 20 block sizes and three zones."""
    mix = json.dumps([[512 * n, 5] for n in range(1, 21)])
    zones = json.dumps([[50, 5], [30, 15], [20, 80]])
    copy_steps(
        db,
        share(MOST_ROWS["step"], size),
        number=f"1 + n / {CELLS}",
        position=f"n % {CELLS}",
        block_mix=f"'{mix}'",
        zones=f"'{zones}'",
        block_size_bytes="10240",
        io_depth=f"1 + n % {CELLS}",
    )


@case
def full_areas(db: sqlite3.Connection, size: int) -> None:
    """Add areas of a hard disk to a hundred sections. All areas have the same workload."""
    copy_steps(
        db,
        share(MOST_ROWS["step"], size),
        kind="'area'",
        number="1 + n / 100",
        section="'s' || (n % 100)",
        region_offset_bytes="1000000 * n",
        region_length_bytes="1000000",
    )


@case
def full_jobs(db: sqlite3.Connection, size: int) -> None:
    """Add steps, each with a job of 2,000 characters."""
    count = share(MOST_ROWS["step"], size)
    db.execute(numbers(count) + "INSERT INTO job SELECT 100000 + n, n || hex(zeroblob(999)) FROM c")
    copy_steps(db, count, job_id="100000 + n", number="n")


@case
def full_disturbances(db: sqlite3.Connection, size: int) -> None:
    """Add a thousand disturbances to each step, with all codes and different texts."""
    copy_steps(db, 220, number="n", watched="1", host_use="'{}'")
    db.execute(
        numbers(900) + "INSERT INTO disturbance SELECT step.sequence, 100 + n, CASE n % 4 WHEN 0 THEN 'foreign-io' "
        "WHEN 1 THEN 'host-cpu' WHEN 2 THEN 'steal' ELSE 'idle-inside' END, 'text ' || n, n, 1, 0.5 "
        f"FROM (SELECT sequence FROM step ORDER BY sequence DESC LIMIT {share(200, size)}) step, c"
    )


@case
def full_readings_of_drives(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of drives that tkperf reads, each with as many readings as the file can hold."""
    drives = MOST_DRIVES - 10
    copy_rows(
        db,
        "telemetry",
        share(MOST_ROWS["telemetry"], size),
        at_s=f"n / {drives}",
        drive=f"'d' || (n % {drives})",
        source="'nvme'",
        percentage_used="1",
        host_written_bytes="1000000 * n",
        nand_written_bytes="2000000 * n",
        temperature_c="n % 90",
    )


@case
def full_heat(db: sqlite3.Connection, size: int) -> None:
    """Add many drives that were throttled during many steps."""
    count = share(400, size)
    copy_steps(db, 250, number="n", started_s="n", duration_s="1", section="'s' || (n % 50)")
    copy_rows(
        db,
        "telemetry",
        2 * count,
        at_s="(n % 2) * 1e6",
        drive="'d' || (n / 10)",
        source="'nvme'",
        percentage_used="1",
        thermal_1_s="n",
    )
    copy_rows(
        db,
        "telemetry",
        40 * count,
        at_s="n / 40.0",
        drive="'d' || (n % 40)",
        source="'nvme'",
        percentage_used="1",
        thermal_1_s="n",
    )


@case
def full_verdicts_of_sections(db: sqlite3.Connection, size: int) -> None:
    """Add verdicts in the largest number of sections that tkperf reads. Also add the steps of these sections."""
    copy_steps(
        db, share(MOST_ROWS["step"] // 2, size), number=f"1 + n / {SECTIONS}", section=f"'s' || (n % {SECTIONS})"
    )
    copy_rows(
        db,
        "verdict",
        share(MOST_ROWS["verdict"] // 2, size),
        sequence="10000000 + n",
        number=f"1 + n / {SECTIONS}",
        section=f"'s' || (n % {SECTIONS})",
    )


@case
def full_outcomes_of_sections(db: sqlite3.Connection, size: int) -> None:
    """Add outcomes of the largest number of sections that tkperf reads. Each section has rounds and more than one
    outcome.
    """
    copy_steps(
        db, share(MOST_ROWS["step"] // 2, size), number=f"1 + n / {SECTIONS}", section=f"'s' || (n % {SECTIONS})"
    )
    copy_rows(
        db, "outcome", share(MOST_ROWS["outcome"], size), sequence="10000000 + n", section=f"'s' || (n % {SECTIONS})"
    )


@case
def full_seconds_of_streams(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of seconds that tkperf reads, in ten streams with slices of an hour."""
    blob, seconds = seconds_blob(3600), 3600
    copy_steps(
        db,
        share(MOST_SECONDS // seconds, size),
        kind="'continuous'",
        section="'WS' || (n % 10)",
        number="1 + n / 10",
        started_s=f"n * {seconds}",
        duration_s=f"{seconds}",
    )
    db.execute("UPDATE step SET seconds = ? WHERE seconds IS NULL", (blob,))


@case
def full_seconds_of_rounds(db: sqlite3.Connection, size: int) -> None:
    """Add steps that last a minute each. The number of seconds in these steps and the number of workloads are the
    largest that tkperf reads.
    """
    blob = seconds_blob(60)
    copy_workloads(db, size, CELLS, MOST_SECONDS // 60, started_s="60 * n", duration_s="60")
    db.execute("UPDATE step SET seconds = ? WHERE seconds IS NULL", (blob,))


@case
def full_under_way(db: sqlite3.Connection, size: int) -> None:
    """Add an unfinished step with the largest number of minutes that tkperf reads. Each second has histograms of 40
    buckets.
    """
    seconds, buckets = 60, 40
    table = np.zeros((len(SECOND_COLUMNS), seconds), dtype=np.int64)
    table[1], table[[8, 10]] = 10**6, 1000 * buckets
    filled = np.concatenate((np.zeros(seconds, np.int64), np.full(seconds, buckets)))
    indices = np.tile(np.arange(200, 200 + buckets), seconds)
    packed = pack_integers(np.concatenate((filled, indices, np.full_like(indices, 1000))))
    names = [row[1] for row in db.execute("PRAGMA table_info(under_way)")]
    chosen = {name: name for name in names} | {"host_id": "1", "planned_bytes": "NULL"}
    db.execute(f"INSERT INTO under_way SELECT {', '.join(chosen[name] for name in names)} FROM step LIMIT 1")
    db.execute(
        numbers(share(MOST_ROWS["under_way_part"], size)) + "INSERT INTO under_way_part SELECT n, 1, ?, ? FROM c",
        (pack_integers(table), packed),
    )


@case
def full_texts(db: sqlite3.Connection, size: int) -> None:
    """Add warnings and notes, each with a different long text."""
    for table in ("warning", "note"):
        db.execute(
            numbers(share(4500, size))
            + f"INSERT INTO {table} SELECT 1000000 + n, 'c' || n, n || hex(zeroblob(2500)), 'iops', n FROM c"
        )


@case
def full_unreadable_steps(db: sqlite3.Connection, size: int) -> None:
    """Add steps that every reader must reject, in as many sections and rounds as the file can hold."""
    copy_steps(
        db,
        share(MOST_ROWS["step"], size),
        number=f"1 + n / {SECTIONS}",
        section=f"'s' || (n % {SECTIONS})",
        position=f"n % {SECTIONS}",
        read_ios="-1",
    )


@case
def full_unreadable_histograms(db: sqlite3.Connection, size: int) -> None:
    """Add steps whose histograms, CPU times and records of host use are unreadable."""
    copy_steps(
        db,
        share(15_000, size),
        number="n",
        read_histogram="x'00'",
        write_histogram="x'00'",
        cpu_busiest_thread_percent="-1",
        host_use="'x'",
    )


@case
def full_tests(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of tests that tkperf reads, each with its plan, ten sections and verdicts."""
    copy_rows(db, "test", 95, name="'t' || n")
    copy_steps(
        db, share(MOST_ROWS["step"], size), number="1 + n / 950", test_id="4 + n % 95", section="'s' || ((n / 95) % 10)"
    )
    copy_rows(
        db,
        "verdict",
        share(1000, size),
        sequence="10000000 + n",
        number="1 + n / 950",
        test_id="4 + n % 95",
        section="'s' || ((n / 95) % 10)",
    )


@case
def full_of_rows(db: sqlite3.Connection, size: int) -> None:
    """Fill every table up to the same share of its limit."""
    part = size // 2
    full_workloads_of_sections(db, part)
    full_readings_of_drives(db, part)
    full_disturbances(db, part)
    full_verdicts_of_sections(db, part // 4)
    full_outcomes_of_sections(db, part // 4)
    full_texts(db, part // 2)
    copy_rows(db, "purge", share(MOST_ROWS["purge"], part), sequence="20000000 + n")


@case
def full_of_seconds_and_workloads(db: sqlite3.Connection, size: int) -> None:
    """Add four kinds of rows: streams with their seconds, workloads with their histograms, readings that show
    throttling, and readings of further drives.
    """
    full_workloads_with_histograms(db, size // 3)
    full_seconds_of_streams(db, size)
    full_readings_of_drives(db, size // 2)
    full_heat(db, size // 2)


def with_long_texts(value: object, length: int) -> object:
    """Return a JSON value in which each text is about this many characters longer."""
    if isinstance(value, str):
        return value + " x" * (length // 2)
    if isinstance(value, list):
        return [with_long_texts(one, length) for one in value]
    if isinstance(value, dict):
        return {key: with_long_texts(one, length) for key, one in value.items()}
    return value


def count_texts(value: object) -> int:
    if isinstance(value, dict | list):
        return sum(map(count_texts, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str)


def lengthen_facts(db: sqlite3.Connection, share_of_limit: float, *keys: str) -> None:
    """Lengthen the texts in the facts about the run, so that each fact uses this share of its limit."""
    for key in keys:
        (text,) = db.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        value = json.loads(text)
        set_fact(db, key, with_long_texts(value, int(share_of_limit * 1_000_000 / max(1, count_texts(value)))))


@case
def full_run_name_in_sections(db: sqlite3.Connection, size: int) -> None:
    """Give the run a long name, and add the largest number of sections that tkperf reads."""
    full_workloads_of_sections(db, size // 3)
    lengthen_facts(db, size / USUAL_BYTES, "name")


@case
def full_run_texts(db: sqlite3.Connection, size: int) -> None:
    """Lengthen the texts about the run and its device."""
    lengthen_facts(
        db, size / USUAL_BYTES, "name", "suite", "tkperf_version", "ioengine", "command_line", "profile_name", "device"
    )


@case
def full_device_texts_in_sections(db: sqlite3.Connection, size: int) -> None:
    """Lengthen the texts about the device, and add the largest number of sections that tkperf reads."""
    full_workloads_of_sections(db, size // 3)
    lengthen_facts(db, size / USUAL_BYTES, "device", "options")


@case
def full_section_names(db: sqlite3.Connection, size: int) -> None:
    """Add sections, each with a long name."""
    copy_steps(db, share(6000, size), number="1 + n / 900", section="'s' || (n % 900) || hex(zeroblob(1990))")


@case
def full_workloads_of_a_long_name(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of workloads that tkperf reads, in one section with a long name."""
    copy_steps(
        db, share(CELLS, size), number="1", position="n", block_size_bytes="512 * n", section="hex(zeroblob(2000))"
    )


@case
def full_plan_texts(db: sqlite3.Connection, size: int) -> None:
    """Lengthen the texts in the plan of each test, and add many workloads to its first section."""
    plans = list(db.execute("SELECT id, plan FROM test"))
    for row, text in plans:
        plan = json.loads(text)
        length = int(size / USUAL_BYTES * 1_000_000 / count_texts(plan))
        plan["title"] = with_long_texts(plan["title"], length)
        for section in plan["sections"]:
            for figure in section["figures"]:
                figure |= {key: with_long_texts(figure[key], length) for key in ("title", "question") if key in figure}
        db.execute("UPDATE test SET plan = ? WHERE id = ?", (json.dumps(plan), row))
    copy_steps(db, share(1000, size), number="1", position="n", block_size_bytes="512 * n")


@case
def full_reasons(db: sqlite3.Connection, size: int) -> None:
    """Add verdicts of many sections, each with a long reason."""
    (text,) = db.execute("SELECT verdict FROM verdict ORDER BY sequence LIMIT 1").fetchone()
    verdict = json.loads(text)
    verdict["reason"] = "x " * 30_000
    copy_steps(db, 900, number="1 + n / 300", section="'s' || (n % 300)")
    copy_rows(
        db,
        "verdict",
        share(300, size),
        sequence="10000000 + n",
        number="1",
        section="'s' || n",
        verdict="'" + json.dumps(verdict).replace("'", "''") + "'",
    )


@case
def full_names_of_drives(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of drives that tkperf reads, with long names."""
    drives = MOST_DRIVES - 10
    copy_rows(
        db,
        "telemetry",
        share(12_000, size),
        at_s=f"n / {drives}",
        drive=f"'d' || (n % {drives}) || hex(zeroblob(1990))",
        source="'nvme'",
        percentage_used="1",
        host_written_bytes="1000000 * n",
        temperature_c="n % 90",
    )


@case
def full_names_of_tests(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of tests that tkperf reads, each with a long name and ten sections."""
    copy_rows(db, "test", 95, name="'t' || n || hex(zeroblob(1990))")
    copy_steps(db, share(6000, size), number="1 + n / 950", test_id="4 + n % 95", section="'s' || ((n / 95) % 10)")


def repeat_figures(db: sqlite3.Connection, times: int) -> None:
    """Repeat the figures of the section from which the cases of this module copy a step."""
    (row, section), (text,) = (
        db.execute("SELECT test_id, section FROM step WHERE kind = 'round' ORDER BY sequence").fetchone(),
        db.execute(
            "SELECT plan FROM test WHERE id = (SELECT test_id FROM step WHERE kind = 'round' ORDER BY sequence LIMIT 1)"
        ).fetchone(),
    )
    plan = json.loads(text)
    for one in plan["sections"]:
        if one["name"] == section:
            one["figures"] *= times
    db.execute("UPDATE test SET plan = ? WHERE id = ?", (json.dumps(plan), row))


@case
def full_figures_of_workloads(db: sqlite3.Connection, size: int) -> None:
    """Add a section with a thousand workloads and as many figures as tkperf reads."""
    copy_steps(db, 5000, number="1 + n / 1000", position="n % 1000", block_size_bytes="512 * (1 + n % 1000)")
    repeat_figures(db, share(200, size))


@case
def full_figures_of_rounds(db: sqlite3.Connection, size: int) -> None:
    """Add a section with thousands of rounds and as many figures as tkperf reads."""
    copy_steps(db, 50_000, number="1 + n / 10", position="n % 10", block_size_bytes="512 * (1 + n % 10)")
    repeat_figures(db, share(200, size))


@case
def full_figures(db: sqlite3.Connection, size: int) -> None:
    """Add as many figures as tkperf reads. Each figure has only few values."""
    repeat_figures(db, share(400, size))


@case
def full_steps_of_sections(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of steps that tkperf reads. The number of sections is the largest that a run with this
    number of steps may have.
    """
    sections = MOST_STEPS_TIMES_SECTIONS // MOST_ROWS["step"] - 10
    copy_steps(db, share(MOST_ROWS["step"], size), number=f"1 + n / {sections}", section=f"'s' || (n % {sections})")


@case
def full_steps_of_workloads(db: sqlite3.Connection, size: int) -> None:
    """Add the largest number of steps that tkperf reads. The number of workloads is the largest that a run with this
    number of steps may have.
    """
    copy_steps(
        db,
        share(MOST_ROWS["step"], size),
        number="1 + n / 484",
        position="n % 484",
        block_size_bytes="512 * (1 + n % 22)",
        read_percent="(n / 22) % 22",
    )


# The largest number of workloads for which a report contains charts, findings and details.
DRAWN = 1150


@case
def drawn_workloads_in_rounds(db: sqlite3.Connection, size: int) -> None:
    copy_workloads(db, size, DRAWN)


@case
def drawn_workloads_in_three_dimensions(db: sqlite3.Connection, size: int) -> None:
    """Add workloads with 33 block sizes and 33 mixes."""
    copy_grid(db, size, 33)


@case
def drawn_workloads_of_sections(db: sqlite3.Connection, size: int) -> None:
    """Add sections with one workload each."""
    copy_steps(db, share(MOST_ROWS["step"], size), number=f"1 + n / {SECTIONS}", section=f"'s' || (n % {SECTIONS})")


@case
def drawn_workloads_of_streams(db: sqlite3.Connection, size: int) -> None:
    """Add workloads in the slices of one stream."""
    copy_slices(db, size, DRAWN)


@case
def drawn_workloads_with_histograms(db: sqlite3.Connection, size: int) -> None:
    copy_workloads(db, size, DRAWN, write_histogram=sparse_histogram(400))
