"""Numbers, options, presets and scripts on the pages agree with the program."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.docs.test_docs_commands import PAGES, open_command
from tkperf.analysis import characteristics_search
from tkperf.analysis.comparing.arrangements import OUTLIER_SCORE
from tkperf.analysis.sharing.groups import TOLERATED_LOSS
from tkperf.analysis.timeline import levels, spikes
from tkperf.batch import batch_watch, conductor
from tkperf.batch import drive_finder as batch_drives
from tkperf.batch.hosts import host_thread, messages
from tkperf.cli.ending import MOST_ATTACHED_BYTES
from tkperf.cli.main import COMMANDS, cli
from tkperf.device import telemetry_watch
from tkperf.device.content import READ_LIMIT_BYTES
from tkperf.device.drive_log import DRIVE_LOG_LIMIT_S
from tkperf.engine.simulation.models import PRESET_MODELS, DiskModel, FlashModel
from tkperf.host.audit import WATCH_S, activity, audited_host, cpus, drives, system
from tkperf.interop import fio_arrangement, fio_documents, fio_json, fio_result, fio_rounds, tkperf_xml
from tkperf.interop.fio_series import WHOLE
from tkperf.interop.imported import LARGEST_DEMAND, MOST_WARNINGS
from tkperf.model.choices import DEFAULT_PROFILES, PRESETS, built_in_profiles
from tkperf.model.disturbance import host_activity as of_host
from tkperf.model.disturbance import io as of_io
from tkperf.model.input_files import RESULTS_BYTES
from tkperf.model.reported_percentiles import LEAST_IOS_BEYOND
from tkperf.model.run_info import LONGEST_FACT
from tkperf.model.throttling import LEAST_UNITS
from tkperf.page.batch.batch_verdict_texts import MOST_MAIL_LINES
from tkperf.page.findings.headlines import MOST
from tkperf.pipeline import result_cache
from tkperf.pipeline.estimate_run import DEFAULT_WARRANTY_YEARS
from tkperf.procedures import load_profile
from tkperf.procedures.forecast import ASSUMED_FILL_BYTES_PER_S, MOST_STEPS
from tkperf.runfile import limits
from tkperf.web import bounds, library, page_cache

ROOT = Path(__file__).parents[2]
EVERY_PAGE = (
    *PAGES,
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs/examples").glob("**/*.md")),
)
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_PTS = load_profile("pts-e-1.1")
_TABLES: dict[str, Any] = dict(_PTS.tables)
_IOPS, _LATENCY = _TABLES["iops"], _TABLES["latency"]


def read(page: str) -> str:
    """Return a page as one line, so that a search finds a sentence that spans several lines."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


# Each entry contains a page, a sentence of the page, and the numbers of the sentence in order.
NUMBERS = [
    # Sentences about imports.
    (
        "docs/how-to/import.md",
        r"A file may contain at most (\d+) MiB, and an XML file of TKperf at most (\d+) MiB",
        (RESULTS_BYTES / MIB, tkperf_xml.MOST_BYTES / MIB),
    ),
    ("docs/how-to/import.md", r"All files together may contain at most ([\d,]+) results", (fio_json.MOST_RESULTS,)),
    (
        "docs/how-to/import.md",
        r"does not apply to a file that needs at most (\d+) MiB",
        (fio_documents.ALWAYS_BYTES / MIB,),
    ),
    ("docs/how-to/import.md", r"as many latency bins as fio has \(([\d,]+)\)", (fio_result._FIO_BINS,)),
    ("docs/how-to/import.md", r"such as more than ([\d,]+) threads", (LARGEST_DEMAND,)),
    ("docs/how-to/import.md", r"A run file may contain at most ([\d,]+) sections", (fio_json.MOST_SECTIONS,)),
    ("docs/how-to/import.md", r"ran for less than (\d+) % of its `runtime`", (100 * WHOLE,)),
    ("docs/how-to/import.md", r"at most (\d+) kinds of warnings", (MOST_WARNINGS,)),
    ("docs/how-to/import.md", r"mix \(rounded to a multiple of (\d+) %\)", (fio_result.USUAL_MIX_STEP,)),
    ("docs/how-to/import.md", r"sequential blocks of (\d+) KiB and more", (fio_rounds.LARGE_BLOCK_BYTES / KIB,)),
    # Sentences about ``tkperf serve``.
    (
        "docs/how-to/serve.md",
        r"(\d+) KiB, (\d+) headers, complete within (\d+) s",
        (bounds.MOST_REQUEST_BYTES / KIB, bounds.MOST_HEADERS, bounds.REQUEST_WITHIN_S),
    ),
    (
        "docs/how-to/serve.md",
        r"path of an address \| (\d+) KiB \| 414 \| \| part of an address after the `\?` \| (\d+) KiB",
        (bounds.MOST_PATH_BYTES / KIB, bounds.MOST_QUERY_BYTES / KIB),
    ),
    ("docs/how-to/serve.md", r"parameters of an address \| (\d+)", (bounds.MOST_PARAMETERS,)),
    ("docs/how-to/serve.md", r"`run` \| (\d+) values of (\d+) characters", bounds.PARAMETERS["run"]),
    ("docs/how-to/serve.md", r"`month` \| (\d+) values of (\d+) characters each", bounds.PARAMETERS["month"]),
    (
        "docs/how-to/serve.md",
        r"`q` \| (\d+) characters; the server uses the first (\d+) words",
        (bounds.PARAMETERS["q"].characters, bounds.MOST_WORDS),
    ),
    ("docs/how-to/serve.md", r"any other parameter \| once, (\d+) characters", (bounds.OTHER_PARAMETER.characters,)),
    (
        "docs/how-to/serve.md",
        r"connections at the same time \| ([\d,]+) \| 503 \| "
        r"\| requests that the server answers at the same time \| (\d+)",
        (bounds.MOST_CONNECTIONS, bounds.MOST_REQUESTS),
    ),
    ("docs/how-to/serve.md", r"\(256 KiB or less\) \| (\d+) s", (bounds.TAKEN_WITHIN_S,)),
    (
        "docs/how-to/serve.md",
        r"browsers that watch runs or batches \| (\d+) \| 503 \| \| runs and batches that browsers watch \| (\d+)",
        (bounds.MOST_STREAMS, bounds.MOST_FOLLOWED),
    ),
    ("docs/how-to/serve.md", r"requests that wait for the same page \| (\d+)", (bounds.MOST_FOR_A_PAGE,)),
    ("docs/how-to/serve.md", r"requests that wait for lists and metrics \| (\d+)", (bounds.MOST_FOR_LISTS,)),
    ("docs/how-to/serve.md", r"jobs that read run files at the same time \| (\d+)", (bounds.AT_ONCE,)),
    ("docs/how-to/serve.md", r"jobs that wait \| (\d+)", (bounds.MOST_WAITING,)),
    ("docs/how-to/serve.md", r"a job \| (\d+) s, ([\d.]+) GB", (bounds.LIMIT_S, round(bounds.LIMIT_BYTES / 1e9, 1))),
    ("docs/how-to/serve.md", r"`Retry-After: (\d+)`", (bounds.RETRY_AFTER_S,)),
    (
        "docs/how-to/serve.md",
        r"A page lists (\d+) rows. If a page contains batches, the page has fewer rows, so that it shows at "
        r"most (\d+) runs. A facet shows its (\d+) most",
        (bounds.PAGE_ITEMS, bounds.PAGE_RUNS, bounds.MOST_CHOICES),
    ),
    ("docs/how-to/serve.md", r"The server lists at most ([\d,]+) run files", (bounds.MOST_FILES,)),
    ("docs/how-to/serve.md", r"The stored pages use at most (\d+) MB", (page_cache.MOST_BYTES >> 20,)),
    ("docs/how-to/serve.md", r"searches the folders every (\d+) seconds", (library.LOOK_EVERY_S,)),
    # Sentences about run files.
    ("docs/reference/run-file.md", r"apply to files of up to (\d+) MB", (limits.USUAL_FILE_BYTES / 1e6,)),
    ("docs/reference/run-file.md", r"size of the file \| (\d+) GiB", (limits.MOST_FILE_BYTES / GIB,)),
    ("docs/reference/run-file.md", r"rows of `step`, `job` \| ([\d,]+)", (limits.MOST_ROWS["step"],)),
    (
        "docs/reference/run-file.md",
        r"rows of `disturbance` \| ([\d,]+); ([\d,]+) of one step",
        (limits.MOST_ROWS["disturbance"], limits.MOST_DISTURBANCES_OF_A_STEP),
    ),
    (
        "docs/reference/run-file.md",
        r"rows of `telemetry` \| ([\d,]+); of (\d+) drives",
        (limits.MOST_ROWS["telemetry"], limits.MOST_DRIVES),
    ),
    ("docs/reference/run-file.md", r"rows of `verdict`, `note`, `warning` \| ([\d,]+)", (limits.MOST_ROWS["verdict"],)),
    ("docs/reference/run-file.md", r"different workloads[^|]+\| ([\d,]+)", (limits.MOST_CELLS,)),
    ("docs/reference/run-file.md", r"steps times sections \| (\d+) million", (limits.MOST_STEPS_TIMES_SECTIONS / 1e6,)),
    (
        "docs/reference/run-file.md",
        r"steps times workloads \| (\d+) million",
        (limits.MOST_STEPS_TIMES_WORKLOADS / 1e6,),
    ),
    (
        "docs/how-to/import.md",
        r"number of\s+sections\s+is\s+at\s+most\s+(\d+) million",
        (limits.MOST_STEPS_TIMES_SECTIONS / 1e6,),
    ),
    (
        "docs/how-to/import.md",
        r"number of\s+workloads\s+is\s+at\s+most\s+(\d+) million",
        (limits.MOST_STEPS_TIMES_WORKLOADS / 1e6,),
    ),
    ("docs/reference/run-file.md", r"seconds of all steps \| (\d+) million", (limits.MOST_SECONDS / 1e6,)),
    (
        "docs/reference/run-file.md",
        r"memory for all rows together \| (\d+) MB, counted as ([\d,]+) bytes for a step, (\d+) for",
        (limits.MEMORY_BYTES / 1e6, limits.ROW_BYTES["step"], limits.ROW_BYTES["telemetry"]),
    ),
    (
        "docs/reference/run-file.md",
        r"The limit is ([\d.]+) % of fio's bytes in the step \(at least (\d+) KiB\), or (\d+) % of fio's bytes in one "
        r"second \(at least (\d+) MiB\)",
        (
            100 * of_io.FOREIGN_SHARE,
            of_io.LEAST_FOREIGN_BYTES / KIB,
            100 * of_io.BURST_SHARE,
            of_io.LEAST_BURST_BYTES / MIB,
        ),
    ),
    (
        "docs/reference/run-file.md",
        r"idle for more than (\d+) % of the step, in periods of at least ([\d.]+) s",
        (100 * of_host.IDLE_SHARE, of_host.LEAST_IDLE_S),
    ),
    (
        "docs/reference/run-file.md",
        r"other programs used (\d+) % or more of the CPUs that fio may use, and at the same time fio's threads waited "
        r"for a CPU for (\d+) %",
        (of_host.OTHERS_PERCENT, of_host.WAIT_PERCENT),
    ),
    ("docs/reference/run-file.md", r"or a parent of this cgroup, for (\d+) % or more", (of_host.THROTTLED_PERCENT,)),
    ("docs/reference/run-file.md", r"the hypervisor gave (\d+) %", (of_host.STEAL_PERCENT,)),
    ("docs/reference/run-file.md", r"waited for memory for (\d+) %", (of_host.MEMORY_PERCENT,)),
    # Sentences about the host.
    (
        "docs/how-to/host.md",
        r"watches the I/O of other drives on the same link for ([\d.]+) s. If a tool does not answer within (\d+) s",
        (WATCH_S, audited_host.ADVICE_LIMIT_S),
    ),
    ("docs/how-to/host.md", r"\*advice\* if a CPU needs (\d+) us or longer", (cpus.DEEP_IDLE_US,)),
    ("docs/how-to/host.md", r"below (\d+) KiB", (drives.LARGEST_IO_KIB,)),
    (
        "docs/how-to/host.md",
        r"\*would disturb\* if they do at least (\d+) IOPS or (\d+) MB/s",
        (drives.BUSY_IOPS, drives.BUSY_MB_S),
    ),
    (
        "docs/how-to/host.md",
        r"a limit of memory below (\d+) GB, or fewer than (\d+) tasks",
        (system.NEEDED_MEMORY_BYTES / 1e9, system.NEEDED_PIDS),
    ),
    ("docs/how-to/host.md", r"may open fewer than (\d+) files", (system.NEEDED_FILES,)),
    *(
        (
            "docs/how-to/host.md",
            rf"\| {words} pressure \|[^|]*\| \*would disturb\* if the pressure is at least (\d+) %, "
            r"\*advice\* if it is at least ([\d.]+) %",
            activity._PRESSURES[name][:0:-1],
        )
        for name, words in (("cpu", "CPU"), ("memory", "memory"), ("io", "I/O"))
    ),
    ("docs/how-to/host.md", r"less than (\d+) % of memory is available", (100 * activity._LITTLE_MEMORY,)),
    ("docs/how-to/host.md", r"if at least ([\d.]+) % of the time since boot was stolen", (system.STOLEN_PCT,)),
    # Sentences about batches, reports, mail and tests.
    ("docs/how-to/batches.md", r"`drives` \| (\d+) to (\d+)", (1, batch_drives.MOST_DRIVES)),
    ("docs/how-to/batches.md", r"start at least ([\d.]+) s apart", (conductor.APART_S,)),
    ("docs/how-to/background.md", r"The attachments are limited to (\d+) MB in total", (MOST_ATTACHED_BYTES / 1e6,)),
    ("docs/reference/reports.md", r"at most (\d+) MiB. You can delete both", (result_cache.MOST_BYTES / MIB,)),
    ("docs/reference/reports.md", r"Note \(at most ([\d,]+) characters each\)", (LONGEST_FACT,)),
    (
        "docs/reference/reports.md",
        r"p50 needs (\d+) I/Os, p90 (\d+), p95 (\d+), p99 ([\d,]+), p99.9 ([\d,]+), p99.99 ([\d,]+) and p99.999 "
        r"([\d,]+)\.",
        tuple(round(LEAST_IOS_BEYOND / (1 - p / 100)) for p in (50, 90, 95, 99, 99.9, 99.99, 99.999)),
    ),
    ("docs/reference/own-workloads.md", r"a test of more than ([\d,]+) steps", (MOST_STEPS,)),
    (
        "docs/reference/profiles.md",
        r"The ([\d,]+) segments of this profile",
        (load_profile("pts-c-1.2").active_range.segments,),
    ),
    (
        "docs/how-to/tkperf-2.2.md",
        r"(\d+) jobs and depth (\d+) in `pts-e-1.1`",
        (_PTS.demand.jobs, _PTS.demand.io_depth),
    ),
    (
        "docs/how-to/reading-a-report.md",
        r"the range \(maximum minus minimum\) is at most (\d+) % of the mean, and the trend rises or falls by at most "
        r"(\d+) %",
        (_PTS.steady_state.max_data_excursion_percent, _PTS.steady_state.max_slope_excursion_percent),
    ),
    # Sentences about the method.
    (
        "docs/explanation/method.md",
        r"stay within (\d+) % of the median of the last quarter, or within (\d+) standard deviations",
        (100 * levels.BAND, levels.LEVEL_NOISE_SIGMAS),
    ),
    (
        "docs/explanation/method.md",
        r"the fitted change over the last quarter of the time is at most (\d+) %, or within noise. The fitted change "
        r"over the whole settled part is at most (\d+) %",
        (100 * levels.MOST_CHANGE_AT_END, 100 * levels.MOST_CHANGE),
    ),
    ("docs/explanation/method.md", r"Up to (\d+) % of the values may lie outside", (100 * levels.MOST_OUTSIDE,)),
    (
        "docs/explanation/method.md",
        r"as long as they stay within (\d+) % of their median or within (\d+) standard deviations",
        (100 * levels.HELD_BAND, levels.HELD_NOISE_SIGMAS),
    ),
    (
        "docs/explanation/method.md",
        r"must differ from the last level by more than (\d+) %",
        (100 * levels.OTHER_LEVEL,),
    ),
    (
        "docs/explanation/method.md",
        r"the level before a drop is the median of (\d+) values",
        (levels.NEIGHBOURS_OF_DROP,),
    ),
    (
        "docs/explanation/method.md",
        r"it is at least (\d+) standard deviations lower, and it lasts for at least (\d+) values",
        (levels.NOISE_SIGMAS, levels.LASTING),
    ),
    (
        "docs/explanation/method.md",
        r"the value is at most (\d+) % of the level before the fall, it is at least (\d+) standard deviations below "
        r"this level, and the fall is at least (\d+) times as large as any rise",
        (100 * levels.NEARLY_NOTHING, levels.STALL_SIGMAS, levels.DEEPER_THAN_RISES),
    ),
    (
        "docs/explanation/method.md",
        r"peaks of at least ([\d.]+) times the median of the surrounding (\d+) values",
        (spikes.LEAST_HEIGHT, spikes.NEIGHBOURS),
    ),
    (
        "docs/explanation/method.md",
        r"the product is below 1 in ([\d,]+), the pattern contains at least (\d+) spikes, and at least (\d+) % of the "
        r"expected positions",
        (1 / spikes.MOST_CHANCE, spikes.LEAST_SPIKES, 100 * spikes.LEAST_SHARE),
    ),
    (
        "docs/explanation/method.md",
        r"The device completed at least (\d+) % of the offered I/Os",
        (100 * characteristics_search.LEAST_DONE,),
    ),
    (
        "docs/explanation/method.md",
        r"number of I/Os offered in (\d+) ms\.",
        (1000 * characteristics_search.LEAST_BEHIND_S,),
    ),
    (
        "docs/explanation/method.md",
        r"the first slice whose rate is at most (\d+) % below the median of the earlier stream's slices",
        (100 * characteristics_search.RECOVERED_WITHIN,),
    ),
    (
        "docs/explanation/method.md",
        r"the tolerance is (\d+) of these standard deviations",
        (characteristics_search.RECOVERED_SIGMAS,),
    ),
    ("docs/explanation/method.md", r"abs\(M\) > ([\d.]+)\.", (OUTLIER_SCORE,)),
    (
        "docs/explanation/method.md",
        r"exceed both ([\d.]+) % of fio's bytes and (\d+) KiB",
        (100 * of_io.FOREIGN_SHARE, of_io.LEAST_FOREIGN_BYTES / KIB),
    ),
    ("docs/explanation/method.md", r"the plan assumes ([\d,]+) MB/s\.", (ASSUMED_FILL_BYTES_PER_S / 1e6,)),
    ("docs/explanation/method.md", r"years of warranty \(default: (\d+)\)", (DEFAULT_WARRANTY_YEARS,)),
    # Sentences about telemetry, purges and searches for data.
    (
        "docs/explanation/telemetry.md",
        r"log, every (\d+) s, and before and after each test \| temperature, every (\d+) s",
        (telemetry_watch.LOG_EVERY_S, telemetry_watch.TEMPERATURE_EVERY_S),
    ),
    ("docs/explanation/telemetry.md", r"tkperf kills it after (\d+) s", (DRIVE_LOG_LIMIT_S,)),
    (
        "docs/explanation/telemetry.md",
        r"A purge waits at most (\d+) s for a reading under way, and the end of a run waits at most (\d+) s",
        (telemetry_watch.PAUSE_LIMIT_S, telemetry_watch.FINISH_LIMIT_S),
    ),
    ("docs/explanation/telemetry.md", r"advanced by at least (\d+) increments", (LEAST_UNITS,)),
    ("docs/explanation/safety.md", r"tkperf reads at most ([\d.]+) GB of zeros", (round(READ_LIMIT_BYTES / 1e9, 1),)),
    ("docs/how-to/fleet.md", r"no message from your machine for (\d+) seconds", (messages.SILENCE_LIMIT_S,)),
    (
        "docs/how-to/fleet.md",
        r"run file of a drive to your machine every (\d+) minutes",
        (host_thread.SNAPSHOT_EVERY_S / 60,),
    ),
    (
        "docs/how-to/batches.md",
        r"A drive counts as \*slowed\* if its read rate falls by more than (\d+) %",
        (100 * TOLERATED_LOSS,),
    ),
    ("docs/how-to/batches.md", r"With `--no-probe`, tkperf assumes (\d+) MB/s", (ASSUMED_FILL_BYTES_PER_S / 1e6,)),
]


@pytest.mark.parametrize(
    ("page", "sentence", "numbers"), NUMBERS, ids=[f"{page}: {sentence[:40]}" for page, sentence, _ in NUMBERS]
)
def test_a_number_of_a_page_is_that_of_the_program(page: str, sentence: str, numbers: tuple[float, ...]) -> None:
    found = re.findall(sentence, read(page))
    assert len(found) == 1, "the page no longer has this sentence once: correct this test, too"
    given = found[0] if isinstance(found[0], tuple) else found
    assert [float(number.replace(",", "")) for number in given] == [pytest.approx(number) for number in numbers]


# Sentences that state the shortest and the longest time, amount or share of a plan.
PLANS = [
    (
        "docs/tutorial/first-report.md",
        r"a drive of 240 GB take (\d+) to (\d+) h",
        ["sim:sata-ssd"],
        ("shortest_s", "longest_s"),
        3600,
    ),
    (
        "docs/how-to/ci-gate.md",
        r"take (\d+) to (\d+) h on a drive of 240 GB",
        ["sim:sata-ssd", "--test", "iops,lat"],
        ("shortest_s", "longest_s"),
        3600,
    ),
    (
        "docs/how-to/endurance.md",
        r"writes the capacity of the drive (\d+) to (\d+) times \(calculated for a drive of 240 GB with a write rate "
        r"of 500 MB/s\)",
        ["sim:sata-ssd", "--rate", "500MB/s"],
        ("least_written_bytes", "most_written_bytes"),
        240e9,
    ),
    ("README.md", r"(\d+) to (\d+) hours on a drive of 240 GB", ["sim:sata-ssd"], ("shortest_s", "longest_s"), 3600),
    *(
        (
            page,
            r"writes? (?:\*\*)?(\d+) to (\d+) GB to the disk that contains",
            ["./scratch.img", "--size", "1GiB", "--profile", "quick"],
            ("least_written_bytes", "most_written_bytes"),
            1e9,
        )
        for page in ("README.md", "docs/index.md", "docs/tutorial/first-report.md")
    ),
]


@pytest.mark.parametrize(("page", "sentence", "words", "keys", "unit"), PLANS)
def test_a_duration_or_an_amount_of_a_page_is_that_of_its_plan(
    page: str,
    sentence: str,
    words: list[str],
    keys: tuple[str, str],
    unit: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        cli, ["plan", "ssd", "n", *words, "--json"], standalone_mode=False, catch_exceptions=False
    )
    plan = json.loads(done.stdout)
    named = re.search(sentence, read(page))
    assert named is not None
    assert [int(number) for number in named.groups()] == [round(plan[key] / unit) for key in keys]


def test_the_simulated_drives_are_those_of_the_table() -> None:
    """The table on the page lists the simulated drives with their sizes, sectors and faults, in the order of the
    choices.
    """
    rows = dict(
        re.findall(
            r"^\| `([\w-]+)` \| (.*) \|$", (ROOT / "docs/explanation/simulated-drive.md").read_text(), re.MULTILINE
        )
    )
    assert tuple(rows) == PRESETS == tuple(PRESET_MODELS)
    for name, row in rows.items():
        model = PRESET_MODELS[name]
        if size := re.search(r"(\d+) (GB|TB)", row):
            bytes_ = int(size[1]) * {"GB": 1e9, "TB": 1e12}[size[2]]
            assert model.capacity_bytes == pytest.approx(bytes_, rel=0.01), name
        assert ("sectors of 4 KiB" in row) is (model.logical_block_bytes == 4096)
        if isinstance(model, DiskModel):
            assert f"{model.turns_per_minute:,.0f} turns per minute" in row
        if isinstance(model, FlashModel):
            assert (model.slc_bytes > 0) is name.startswith("client")
    half, sata = PRESET_MODELS["unsteady"], PRESET_MODELS["sata-ssd"]
    assert "half of the capacity" in rows["unsteady"]
    assert half.capacity_bytes == pytest.approx(sata.capacity_bytes / 2, rel=0.01)
    cliffs = PRESET_MODELS["cliffs"].misbehaviour
    assert "to a third for six minutes, every 45 minutes" in rows["cliffs"]
    assert (cliffs.cliff_lasts_s, cliffs.cliff_every_s) == (360, 2700)
    assert cliffs.cliff_share == pytest.approx(1 / 3, abs=0.01)
    spikes = PRESET_MODELS["spikes-13min"].misbehaviour
    assert "no I/O for 0.4 s every 13 minutes" in rows["spikes-13min"]
    assert (spikes.stall_s, spikes.stall_every_s) == (0.4, 13 * 60)
    dying = PRESET_MODELS["dying"].misbehaviour
    assert "loses 30 % of its rate each time its whole capacity is written" in rows["dying"]
    assert "after six times the capacity is written" in rows["dying"]
    assert (dying.weaker_per_fill, dying.fails_after_fills) == (0.3, 6)


def test_the_shipped_profiles_are_those_of_the_pages() -> None:
    """The table in profiles.md, README and the changelog each name every shipped profile. The table in profiles.md also
    states the default profile of each command.
    """
    page = (ROOT / "docs/reference/profiles.md").read_text(encoding="utf-8")
    table = page[: page.index("`tkperf profiles` lists the profiles")]
    named = [
        name for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)
    ]
    assert sorted(named) == sorted(built_in_profiles())
    for name in built_in_profiles():
        assert f"`{name}`" in read("README.md")
    (listed,) = re.findall(r"(`pts-e-1\.1` \(default\).*?`quick`)", read("CHANGELOG.md"))
    assert sorted(re.findall(r"`([^`]+)`", listed)) == sorted(built_in_profiles())
    rows = dict(re.findall(r"^\| (`[^|]*) \| (.*) \|$", table, re.MULTILINE))
    assert "default of `tkperf ssd`, `tkperf raid` and `tkperf sweep`" in rows["`pts-e-1.1`"]
    assert "default of `tkperf hdd`" in rows["`tkperf-2.2`"]
    assert DEFAULT_PROFILES == {"ssd": "pts-e-1.1", "hdd": "tkperf-2.2", "raid": "pts-e-1.1"}
    sweep = next(param for param in open_command(["sweep"])[0].params if param.name == "profile")
    assert sweep.default == "pts-e-1.1"


def all_commands() -> list[click.Command]:
    return [open_command([name])[0] for name in (*COMMANDS, "on-host")]


def options_of(command: click.Command) -> set[str]:
    """Return the options of a command. The options of a group, such as ``batch NAME``, also belong to its commands."""
    own = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    if isinstance(command, click.Group):
        context = click.Context(command)
        below = (command.get_command(context, name) for name in command.list_commands(context))
        own = own.union(*(options_of(one) for one in below if one is not None))
    return own


# Options of other programs that the pages mention, for example fio, setpriv, Prometheus, TKperf 2.2 and tkperf-cmp. The
# list also contains the suffixes of SQLite's files.
_OF_OTHERS = {
    "--client",
    "--part",
    "--pdeathsig",
    "--status-interval",
    "--storage.tsdb.retention.time",
    "-g",
    "-l",
    "-xml",
    "-wal",
    "-shm",
    "-f",
    "-z",
}
_OF_SCRIPTS = {"--files", "--browsers", "--loads", "--pace-s"}


def test_every_option_that_a_page_names_exists() -> None:
    """Every option in backticks belongs to a command of tkperf, or to another program that is listed here.

    The page about devices is not checked, because it describes options of other programs.
    """
    known = {"--help", "--version"}.union(*(options_of(command) for command in all_commands()))
    unknown = {
        (page.name, option)
        for page in EVERY_PAGE
        if page.name != "devices.md"
        for span in re.findall(r"`(--?[a-z][^`\n]*)`", page.read_text(encoding="utf-8"))
        for option in re.findall(r"^--?[a-z][\w.*-]*", span)
        if option not in known | _OF_OTHERS | _OF_SCRIPTS and not option.endswith("*")
    }
    assert unknown == set()


def find_command(words: list[str]) -> tuple[click.Command | None, list[str]]:
    """Return the command that the first words name, and the remaining words. The command may be nested. If no such
    command exists, return None in place of the command.
    """
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        below = command.get_command(click.Context(command), words[0])
        if below is None:
            break
        command, words = below, words[1:]
    return None if command is cli else command, words


def test_every_command_in_a_sentence_is_accepted() -> None:
    """Every command in backticks exists and has the options that are named with it. The scripts and the targets of make
    also exist. A quoted message contains an ellipsis and is no command.
    """
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in EVERY_PAGE:
        for span in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")):
            if re.match(r"(?:sudo )?tkperf [a-z]", span) and "ssd|hdd" not in span and "…" not in span:
                command, rest = find_command(span.removeprefix("sudo ").split()[1:])
                assert command is not None, f"{page.name}: {span}"
                own = options_of(command)
                options = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(rest)))
                assert options <= own | {"--help", "--version"}, f"{page.name}: {span}"
            elif target := re.match(r"(?:sudo )?make ([a-z-]+)$", span):
                assert re.search(rf"^{target[1]}:", makefile, re.MULTILINE), f"{page.name}: {span}"
            elif script := re.match(r"(?:\S*python |sh |sudo sh )?((?:bench|scripts)/\S+)(.*)", span):
                path = ROOT / script[1]
                assert path.exists(), f"{page.name}: {span}"
                text = path.read_text(encoding="utf-8") if path.is_file() else ""
                for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", script[2]):
                    assert f'"{option}"' in text, f"{page.name}: {span}"


def test_every_simulated_drive_that_a_page_names_exists() -> None:
    named = {
        name for page in EVERY_PAGE for name in re.findall(r"\bsim:([a-z][\w-]*)", page.read_text(encoding="utf-8"))
    }
    assert named <= set(PRESETS)


def test_short_numbers_of_the_readme_are_those_of_the_measured_figures() -> None:
    """The figures in README are the figures in docs/explanation/accuracy.md after rounding."""
    readme, accuracy = read("README.md"), read("docs/explanation/accuracy.md")
    (day, mix) = map(float, re.findall(r"size of the run file after 24 h[^|]*\| ([\d.]+) MB; ([\d.]+) MB", accuracy)[0])
    (pause,) = re.findall(r"between two steps of a round[^|]*\|[^|]*\|[^|]*\| median ([\d.]+) ms", accuracy)
    (idle,) = re.findall(r"consecutive fio calls[^|]*\| median (\d+) ms", accuracy)
    megabytes = [int(number) for number in re.findall(r"(\d+) MB\b", readme[: readme.index("make demo")])]
    milliseconds = [int(number) for number in re.findall(r"(\d+) ms\b", readme[: readme.index("make demo")])]
    assert megabytes == [pytest.approx(day, abs=1), pytest.approx(mix, abs=1)]
    assert milliseconds == [pytest.approx(float(pause), abs=1), int(idle)]


def test_the_numbers_of_the_tests_in_readme_are_those_of_the_default_profile() -> None:
    """Each row of the table in README contains the numbers of its test in the default profile, in the same order."""
    rows = dict(re.findall(r"^\| `(\w+)` \|(.*)\|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    rounds, saturation = _PTS.steady_state.max_rounds, _TABLES["write_saturation"]
    tracked_kib = _IOPS.tracking_block_size_kib
    cells = len(_LATENCY.read_percents) * len(_LATENCY.block_sizes_kib)
    wanted = {
        "iops": [len(_IOPS.read_percents), len(_IOPS.block_sizes_kib), tracked_kib, rounds],
        "lat": [cells, _LATENCY.histogram_s / 60, rounds],
        "tp": [*_TABLES["throughput"].block_sizes_kib, rounds],
        "writesat": [saturation.block_size_kib, saturation.capacity_multiple, saturation.max_slices / 60],
    }
    assert {name: [float(number) for number in re.findall(r"\d+", row)] for name, row in rows.items()} == wanted


def test_other_words_of_numbers() -> None:
    """Numbers that the pages state in words agree with the code."""
    assert MOST == 6
    assert "the report shows up to six figures of the tests in the run instead of the tiles" in " ".join(
        read("docs/reference/reports.md").split()
    )
    assert MOST_MAIL_LINES == 12
    assert "in at most twelve lines" in read("docs/how-to/batches.md")
    assert (batch_watch.EACH_EVERY_S, batch_watch.LOOKS_A_SECOND) == (2, 4)
    assert (
        "every two seconds, but at most four run files a second. If 24 drives are measured, the figures of a drive are "
        "therefore up to six seconds old" in read("docs/how-to/batches.md")
    )
    assert fio_arrangement._LARGEST_COUNTER == fio_documents.MOST_PER_BYTE == 10
    assert "at most ten times the number of files" in read("docs/how-to/import.md")
    assert "more than ten times the size of the file in memory" in read("docs/how-to/import.md")
