"""Rounds of the PTS in the file layouts of scripts that run fio. Each round is imported as a round, even if the names
of the files differ in form.

The layouts are those of public scripts for the PTS. The names and numbers are invented.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import tkperf
from tests.interop.fio_files import document, job, written
from tests.interop.test_fio_rounds import rounds_of, run_of, said
from tkperf.analysis.claim_results import ClaimState
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import parse_claims
from tkperf.analysis.comparing.comparison import compare
from tkperf.cli.main import cli
from tkperf.model.choices import prepares
from tkperf.model.errors import UsageError
from tkperf.model.quantity import IOPS
from tkperf.page.comparison.ratio_texts import describe_loads
from tkperf.page.findings import findings, headlines
from tkperf.page.view import build_view
from tkperf.render.export_markdown import render_markdown

SIZE_BYTES = 400 << 30
ROUNDS = 7
# The read percentage and the block size of the two cells of a throughput test.
CELLS = ((100, 131_072), (0, 131_072))


def throughput_round(number: int, read_percent: int, block_bytes: int, **more: Any) -> str:
    """Return a minute of sequential I/O. The round begins at the address where the previous round ended. At the end of
    the device, it continues at the start.
    """
    iops = 3000 + number + read_percent
    begins = (number - 1) * 60 * iops * block_bytes % SIZE_BYTES
    options = {
        "rw": "read" if read_percent else "write",
        "bs": f"{block_bytes // 1024}k",
        "offset": str(begins),
        "runtime": "60s",
        "time_based": "1",
        "numjobs": "1",
        "iodepth": "32",
    }
    ios = iops * 60
    of_job = job(
        runtime_ms=60_000,
        block_bytes=block_bytes,
        options=options,
        depth=32,
        reads=ios if read_percent else 0,
        writes=0 if read_percent else ios,
        **more,
    )
    at_s = 130.0 * number + (65 if read_percent else 0)
    return json.dumps(document(of_job, at_s=at_s))


LAYOUTS: dict[str, Callable[[int, int], str]] = {
    "wdpc, round at the end": lambda each, mix: f"tp/wdpc_bs128k_read{mix}_round{each}.json",
    "padded": lambda each, mix: f"tp-{mix}-round{each:02d}.json",
    "short": lambda each, mix: f"r{each}_{mix}.json",
    "between underscores": lambda each, mix: f"tp_{each}_rw{mix}_128k.json",
    "a folder each": lambda each, mix: f"out/round-{each}/rr-{mix}/bs-128k/wdpc/output.json",
    "times": lambda each, mix: f"tp-{mix}-{1_520_000_000 + 977 * each}.json",
    "days first": lambda each, mix: f"{27 + each if each < 5 else each - 4}-0{3 if each < 5 else 4}-2018-{mix}.json",
    "process ids": lambda each, mix: f"fio.{mix}.{(31_000 + 700 * each) % 32_768}.json",
    "counted down": lambda each, mix: f"left{ROUNDS - each}_at{100 + each}_{mix}.json",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rounds_of_throughput_are_one_series(layout: str) -> None:
    """The rounds of a throughput test are one series although their start offset increases. Each cell contains all
    rounds in order, and no warning is printed.
    """
    files = [
        (LAYOUTS[layout](each, mix), throughput_round(each, mix, block_bytes, name="wdpc"))
        for each in range(1, ROUNDS + 1)
        for mix, block_bytes in CELLS
    ]
    run = run_of(*sorted(files))
    (outcome,) = run.tests[0].outcomes
    assert outcome.section == "fio SEQ TC1/QD32"
    assert outcome.verdict is not None
    assert outcome.verdict.reached
    for mix, _ in CELLS:
        steps = [step for step in run.tests[0].steps if step.workload.read_percent == mix]
        assert [step.number for step in steps] == list(range(1, ROUNDS + 1))
        assert [round(step.measurement.iops) for step in steps] == [3000 + each + mix for each in range(1, ROUNDS + 1)]
    assert run.warnings == ()


@pytest.mark.parametrize("how", ["one after the other", "an array", "text around"])
def test_all_rounds_in_one_file(how: str) -> None:
    """If all rounds are in one file, they are imported in the order of the file. The form in which the documents are
    joined does not matter.
    """
    texts = [throughput_round(each, 0, 131_072) for each in range(1, ROUNDS + 1)]
    joined = {
        "one after the other": "\n".join(texts),
        "an array": f"[{','.join(texts)}]",
        "text around": "".join(f"=== round\nfio: note\n{text}\ndone\n" for text in texts),
    }[how]
    run = run_of(("all.json", joined))
    assert rounds_of(run) == {"fio SEQ TC1/QD32": [3000 + each for each in range(1, ROUNDS + 1)]}
    assert run.warnings == ()


@given(st.lists(st.integers(0, 1 << 40), min_size=2, max_size=9, unique=True))
def test_where_a_sequential_round_begins_changes_nothing(starts: list[int]) -> None:
    """The start address of a sequential round does not matter: rounds with different start addresses are one series."""
    files = [
        (f"r{each}.json", written(1000 + each, 60.0 * each, options={"rw": "write", "offset": str(start)}))
        for each, start in enumerate(starts)
    ]
    assert list(rounds_of(run_of(*files)).values()) == [[1000 + each for each in range(len(starts))]]


def test_places_of_a_device_are_no_rounds() -> None:
    """Different positions on a device lead to separate series. Examples are a range that is a share of the device, an
    address at which all rounds begin, and random loads with different offsets.
    """

    def sections(rw: str, *offsets: str) -> int:
        files = [
            (f"r{at}.json", written(1000 + at, 60.0 * at, options={"rw": rw, "offset": offset}))
            for at, offset in enumerate(offsets)
        ]
        return len(rounds_of(run_of(*files)))

    assert sections("write", "0%", "50%") == 2
    assert sections("write", "0", "100g", "0", "100g") == 2
    assert sections("write", "0", "100g", "200g") == 1
    assert sections("randwrite", "0", "100g") == 2


def test_a_word_in_a_jobs_name_counts_rounds() -> None:
    """A number in the name of a job counts rounds only if it follows a word such as round or pass. After another word,
    the number may count drives.
    """
    for name, expected in (("iops-round{}", 1), ("pass_{}-4k", 1), ("disk{}", 3), ("ground{}", 3)):
        files = [(f"f{each}.json", written(each, 60.0 * each, name=name.format(each))) for each in (1, 2, 3)]
        assert len(rounds_of(run_of(*files))) == expected, name


def test_folders_with_rounds_of_the_same_names_are_runs() -> None:
    """Two folders with the same round names are two series, each in the order of its times, and no warning is printed.
    In this test, run 2 was measured before run 1.
    """
    files = [
        (f"iops/{run}/wdpc_round{each}.json", written(10 * run + each, -1000.0 * run + 60 * each))
        for run in (1, 2)
        for each in range(1, 6)
    ]
    run = run_of(*files)
    assert rounds_of(run) == {
        "fio RND TC1/QD1, in iops/1": [11, 12, 13, 14, 15],
        "fio RND TC1/QD1, in iops/2": [21, 22, 23, 24, 25],
    }
    assert run.warnings == ()
    # If the round numbers continue in a second folder, this folder belongs to the same series.
    on = [(f"day{each // 4}/r{each}.json", written(each, 60.0 * each)) for each in range(1, 8)]
    assert rounds_of(run_of(*on)) == {"fio RND TC1/QD1": list(range(1, 8))}


def test_rounds_counted_in_another_order_than_their_times_are_in_doubt() -> None:
    """If the numbers of rounds contradict their times, either the numbers or the clock may be wrong. A round then keeps
    its number, and a warning reports the contradiction.
    """
    files = [(f"bs4k_round{each}.json", written(each, 60.0 * at)) for at, each in enumerate((1, 2, 4, 3, 5))]
    run = run_of(*files)
    assert rounds_of(run) == {"fio RND TC1/QD1": [1, 2, 3, 4, 5]}
    assert said(run)["order-conflict"].startswith("bs4k_round4.json: the numbers")


# Preconditioning

PREPARES = ("wipc", "pre-conditioning", "workload-independent", "prefill", "seqfill", "fill_2x", "warmup")
MEASURES = ("wdpc", "preconditioned", "pre-conditioning.wdpc", "workload-dependent-pre-condition", "filled", "4k")


def sequential_fill(name: str, **options: str) -> str:
    """Return a sequential fill that writes the device twice. The fill is much faster than any round."""
    of_job = job(
        name=name,
        writes=40_000,
        runtime_ms=1000,
        block_bytes=131_072,
        options={"rw": "write", "bs": "128k", "iodepth": "32"} | options,
    )
    return json.dumps(document(of_job, at_s=-500.0))


def imported(tmp_path: Path, *files: tuple[str, str]) -> Any:
    for name, text in files:
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert import_(tmp_path / "in", tmp_path / "out").exit_code == 0
    (path,) = (tmp_path / "out").glob("*.tkperf")
    return tkperf.load(path)


def import_(*paths: Path, name: str | None = None) -> Result:
    *given, folder = map(str, paths)
    words = ["import", *given, "--output", folder, *(["--name", name] if name else [])]
    return CliRunner().invoke(cli, words)


@pytest.mark.parametrize("name", [*PREPARES, *MEASURES])
@pytest.mark.parametrize("place", ["job", "file"])
def test_what_prepares_is_no_headline(tmp_path: Path, name: str, place: str) -> None:
    """If the name of a job or a file indicates that the job prepares the drive, the section of this job leads to
    neither a headline nor a finding. Rounds of workload-dependent preconditioning (WDPC), which run until steady state,
    are measurements.
    """
    of_file = f"{name}_bs128k.json" if place == "file" else "x_bs128k.json"
    fill = sequential_fill(name if place == "job" else "job")
    rounds = [(f"r{each}.json", written(1000 + each, 60.0 * each)) for each in range(1, 6)]
    run = imported(tmp_path, (of_file, fill), *rounds)
    told = {one.section for one in headlines(run)} | {one.section for one in findings(run)}
    is_preparing = name in PREPARES
    (section,) = [one for one in run.tests[0].sections if one.name.startswith("fio SEQ")]
    assert (section.name in told) is not is_preparing
    assert section.plan.prepares is is_preparing
    assert (section.verdict is None) is is_preparing
    assert "fio RND TC1/QD1" in told
    compared = {one.section for one in compare([run, run]).headlines}
    assert compared == {"fio RND TC1/QD1"} if is_preparing else len(compared) > 0
    assert [cell.value(IOPS) for cell in section.cells] == [40_000]


TIMED = {"runtime": "10", "time_based": "1"}


@pytest.mark.parametrize(
    ("times", "amount", "rounds", "prepares_by_amount"),
    [
        (1, {"io_size": "10g"}, TIMED, True),
        (1, {"size": "100%", "loops": "2"}, TIMED, True),
        (1, {"size": "10g"}, {}, False),  # each load ran until it had transferred a fixed amount
        (1, {"size": "10g", **TIMED}, TIMED, False),
        (5, {"size": "10g"}, TIMED, False),  # the fill was repeated, so its results are a series of rounds
    ],
)
def test_a_fill_without_a_telling_name_is_no_headline(
    tmp_path: Path, times: int, amount: dict[str, str], rounds: dict[str, str], prepares_by_amount: bool
) -> None:
    """A sequential write of a fixed amount counts as a preparation and has no headline if it ran once and all other
    loads ran for a fixed time. The name of the write does not matter.
    """
    fills = [
        (f"f{each}.json", written(4000, -900.0 + 20 * each, name="job1", options={"rw": "write", **amount}))
        for each in range(times)
    ]
    timed = [(f"r{each}.json", written(1000 + each, 60.0 * each, options=rounds)) for each in range(1, 6)]
    run = imported(tmp_path, *fills, *timed)
    (section,) = [one for one in run.tests[0].sections if one.name.startswith("fio SEQ")]
    assert section.plan.prepares is prepares_by_amount
    assert ("fill by amount" in section.name) is prepares_by_amount
    told = {headline.section for headline in headlines(run)}
    assert (section.name in told) is not prepares_by_amount
    assert "fio RND TC1/QD1" in told


@pytest.mark.parametrize("name", ["randwrite-after-precond", "post-fill", "no_trim", "after wipc"])
def test_what_came_before_a_load_is_not_its_purpose(name: str) -> None:
    """If a name states what happened before the load, such as "after precond", the load is still judged as a
    measurement. The name distinguishes its section from other sections.
    """
    files = [(f"{each}.json", written(1000 + each, 60.0 * each, name=name)) for each in range(6)]
    (outcome,) = run_of(*files).tests[0].outcomes
    assert outcome.verdict is not None


def test_what_only_reads_fills_nothing() -> None:
    """A job that only reads is never a fill, even if its name contains a fill level, such as "fill80". A warm-up may
    consist of reads.
    """
    assert not prepares("fill80-randread", writes=False)
    assert not prepares("fill80-randwrite")
    assert not prepares("read-warm")
    assert not prepares("steady-trim")
    assert prepares("seq-fill")
    assert prepares("warmup", writes=False)
    reads = {"rw": "randread", "bs": "4k"}
    files = [
        (f"{each}.json", json.dumps(document(job(name="fill80", reads=9000, options=reads), at_s=60.0 * each)))
        for each in range(6)
    ]
    (outcome,) = run_of(*files).tests[0].outcomes
    assert outcome.verdict is not None


@pytest.mark.parametrize("section", ["", 'section = "fio SEQ TC1/QD32, fill"\n'])
def test_claims_never_judge_what_prepares(tmp_path: Path, section: str) -> None:
    """Claims never apply to a section that prepares the drive. If a fill has the same load as some rounds, a claim
    about the rounds remains unambiguous.
    """
    fill = ("fill.json", sequential_fill("fill", io_size="10g"))
    text = f"""[[claim]]\ntest = "fio"\n{section}read_percent = 0\nblock_size = "128k"
metric = "iops"\nat_least = 1\n"""

    def check(run: Any) -> Any:
        claims = parse_claims(text, file="c")
        (found,) = check_claims(claims, run, load=tkperf.load, folder=tmp_path).claim_results
        return found

    alone = check(imported(tmp_path / "1", fill))
    assert (alone.state, alone.note) == (ClaimState.NOT_MEASURED, "preconditioning, not judged")
    rounds = ("wdpc.json", sequential_fill("wdpc"))
    both = check(imported(tmp_path / "2", fill, rounds))
    assert both.state is (ClaimState.NOT_MEASURED if section else ClaimState.MET)


@pytest.mark.parametrize(
    ("rw", "size", "key"),
    [("write", "128k", "megabytes_per_s"), ("write", "64k", "iops"), ("randwrite", "128k", "iops")],
)
def test_large_sequential_blocks_are_told_in_throughput(tmp_path: Path, rw: str, size: str, key: str) -> None:
    """The headline for large sequential blocks is a throughput, and the headline for other loads is IOPS, as in
    tkperf's own tests.
    """
    block_bytes = 1024 * int(size[:-1])
    of_job = job(writes=40_000, block_bytes=block_bytes, options={"rw": rw, "bs": size})
    run = imported(tmp_path, ("x.json", json.dumps(document(of_job))))
    assert headlines(run)[0].key == key


def test_a_folder_that_says_only_its_purpose() -> None:
    """The name of a folder marks the files in it as a preparation only if the whole name is a word for a preparation.
    Folders are also named after drives and conditions.
    """
    purpose = {
        "a/wipc/output.json": True,
        "a/precondition/output.json": True,
        "75%seqfill/output.json": False,
        "wipc/wdpc/output.json": False,
    }
    for name, expected in purpose.items():
        (outcome,) = run_of((name, written(5))).tests[0].outcomes
        assert ("precondition" in outcome.section) is expected, name


# Clones and demands


@pytest.mark.parametrize("grouped", [False, True])
def test_clones_that_ended_apart_mark_their_cell(tmp_path: Path, grouped: bool) -> None:
    """If the clones of a job ended at different times, the cell is marked with ! and a description. The other cells are
    not marked.
    """
    known = {"rw": "randwrite", "bs": "4k", "numjobs": "2"}
    clones = [
        job(writes=60_000, runtime_ms=60_000, options=known, name="a"),
        job(writes=30_000, runtime_ms=30_000, options=known, name="a"),
    ]
    if grouped:
        clones = [job(writes=90_000, runtime_ms=60_000, options=known, job_runtime=90_000)]
    even = [job(reads=60_000, options=known | {"rw": "randread"}) for _ in range(2)]
    run = imported(
        tmp_path, ("w.json", json.dumps(document(*clones))), ("r.json", json.dumps(document(*even, at_s=100.0)))
    )
    (section,) = run.tests[0].sections
    marked = {cell.workload.read_percent: cell.disturbances for cell in section.cells}
    assert marked == {0: ("uneven-clones",), 100: None}
    text = render_markdown(build_view(run))
    assert "| 1,500\\! | 12,000 |" in text
    assert "clones that ended at different times" in text
    assert "others influenced" not in text
    assert "not compared" not in text


def test_a_figure_of_several_demands_names_its_own(tmp_path: Path) -> None:
    """If each demand of an import has its own section, the headline is the highest figure of these sections and names
    its demand.
    """
    files = []
    for at, (threads, depth, iops) in enumerate([(1, 1, 900), (4, 32, 5000), (8, 32, 4800)]):
        options = {"numjobs": str(threads), "iodepth": str(depth)}
        files += [
            (
                f"t{threads}q{depth}_r{each}.json",
                written(iops + each, 600.0 * at + 20 * each, options=options, depth=depth),
            )
            for each in range(1, 6)
        ]
    run = imported(tmp_path, *files)
    labels = [one.label for one in headlines(run)]
    assert labels[0] == "4 KiB random write, highest, at TC4 QD32"
    assert all(label.endswith("at TC4 QD32") for label in labels)
    loads = set(describe_loads(compare([run, run])).values())
    assert loads
    assert all("TC" in load and "QD" in load for load in loads)


# Folders


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    """An import of a folder reads all JSON and XML files below it, except hidden files. The run receives the name of
    the folder.
    """
    drive = tmp_path / "D3-S4510"
    names = ["r1.json", "a/r2.JSON", "a/b/r3.json.3", ".r4.json", ".git/r5.json", "r6.log"]
    for at, name in enumerate(names):
        (drive / name).parent.mkdir(parents=True, exist_ok=True)
        (drive / name).write_text(written(1 + at, 60.0 * at))
    (drive / "notes.txt").write_text("no result")
    ran = import_(drive, tmp_path / "out")
    assert ran.exit_code == 0, ran.exception
    assert ran.stdout == f"{tmp_path / 'out/D3-S4510.tkperf'}\n"
    assert ran.stderr == "imported 3 files: 3 rounds in 3 sections; 0 files left out\n"
    run = tkperf.load(tmp_path / "out/D3-S4510.tkperf")
    assert [section.cells[0].value(IOPS) for section in run.tests[0].sections] == [1, 2, 3]


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    """If a folder contains no result files, the error states which files an import reads and what the user can do."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/r1.txt").write_text(written(1))
    ran = import_(tmp_path / "in", tmp_path / "out")
    assert isinstance(ran.exception, UsageError)
    assert "named .json or .xml; name the files" in str(ran.exception)
