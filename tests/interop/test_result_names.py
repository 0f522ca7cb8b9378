"""The names of files, folders and jobs determine which numbers count rounds and which differences separate series."""

from __future__ import annotations

import pytest

from tests.interop.fio_files import written
from tests.interop.test_fio_rounds import rounds_of, run_of, said
from tkperf.interop.imported import ImportedRun, family_of_file, family_of_folder, find_rounds


def numbers_of(run: ImportedRun) -> dict[str, list[int]]:
    """Return the numbers of each section's rounds."""
    found: dict[str, list[int]] = {}
    for step in run.tests[0].steps:
        found.setdefault(step.section, []).append(step.number)
    return found


NUMBERED = {
    "round": "wdpc_bs1024KB_read0_round{}.json",
    "capital": "R{}_4k.json",
    "padded": "tp-round-{:02d}.json",
    "at the end": "randwrite_4k_qd32_r{}.json",
    "camel case": "wdpcRound{}.json",
    "folder": "out/iteration_{}/bs-4k/output.json",
    "folder alone": "{}/result.json",
    "pass": "pass{}/qd32.json",
    "bare": "result{}.json",
    "dated": "2023-01-05_12-00-0{}_r{}.json",
}


@pytest.mark.parametrize("layout", NUMBERED)
def test_a_round_keeps_the_number_of_its_file(layout: str) -> None:
    """A round keeps the number in the name of its file. The position of this number in the name does not matter.

    If the number of a round is missing, the other rounds keep their numbers. A number that is a block size or a queue
    depth does not count rounds.
    """
    given = (3, 4, 6, 7, 8)
    files = [(NUMBERED[layout].format(each, each), written(1000 + each, 60.0 * each)) for each in given]
    assert list(numbers_of(run_of(*files)).values()) == [list(given)]


@pytest.mark.parametrize("first", [0, 1])
def test_rounds_begin_with_the_first_number(first: int) -> None:
    files = [(f"x_r{first + at}.json", written(1000 + at, 60.0 * at)) for at in range(5)]
    run = run_of(*files)
    assert numbers_of(run) == {"fio RND TC1/QD1": list(range(first, first + 5))}
    verdict = run.tests[0].outcomes[0].verdict
    assert verdict is not None
    assert verdict.reached


def test_a_single_file_keeps_its_number() -> None:
    run = run_of(("x_round12.json", written(5)))
    assert numbers_of(run) == {"fio RND TC1/QD1": [12]}


def test_cells_with_other_rounds_have_their_own_window() -> None:
    """Cells with different numbers of rounds keep their own round numbers. If one block size has 7 rounds and another
    has 5, each cell is judged by its own rounds.
    """
    files = [
        (
            f"wdpc_bs{size // 1024}KB_read0_round{each}.json",
            written(1000 + each, 1000.0 * at + 60 * each, block_bytes=size, options={"bs": str(size)}),
        )
        for at, (size, rounds) in enumerate(((1 << 20, 7), (4096, 5)))
        for each in range(1, rounds + 1)
    ]
    run = run_of(*files)
    assert numbers_of(run) == {
        "fio RND TC1/QD1": [1, 2, 3, 4, 5],
        "fio RND TC1/QD1, rounds 3\N{EN DASH}7": [1, 2, 3, 4, 5, 6, 7],
    }
    assert [(one.window, one.verdict is not None and one.verdict.reached) for one in run.tests[0].outcomes] == [
        ((1, 2, 3, 4, 5), True),
        ((3, 4, 5, 6, 7), True),
    ]


@pytest.mark.parametrize(
    ("given", "window", "says"),
    [
        ((1, 2, 3, 5, 6), (1, 2, 3), "round 4 is missing, and a window needs consecutive rounds"),
        ((1, 2, 3, 4, 5, 6, 9), (2, 3, 4, 5, 6), "rounds 7, 8 are missing"),
        ((1, 3, 5, 7, 9), (9,), "rounds 2, 4, 6, 8 are missing"),
        ((1, 2, 4, 8, 16), (1, 2), "rounds 3, 5, 6, 7, 9 and 6 more are missing"),
    ],
)
@pytest.mark.parametrize("word", ["r", "x_", ""])
def test_a_window_has_no_gap(given: tuple[int, ...], window: tuple[int, ...], says: str, word: str) -> None:
    """A window contains only consecutive rounds. Five results that are not consecutive rounds are not judged, and a
    warning gives the reason.
    """
    files = [(f"{word}{each}.json", written(1000 + each, 60.0 * each)) for each in given]
    (outcome,) = run_of(*files).tests[0].outcomes
    assert outcome.window == window
    assert says in outcome.ended_because
    assert outcome.verdict is not None
    assert outcome.verdict.judged is (len(window) == 5)


@pytest.mark.parametrize("copy", ["copy of r1.json", "r1 (1).json", "backup/r1.json", "a-r1-again.json"])
def test_a_copy_does_not_rename_a_round(copy: str) -> None:
    """If a file and a copy of it are given, the result counts once, with the shorter file name. The order of the files
    does not matter.
    """
    text = written(5, 60)
    run = run_of(("r1.json", text), (copy, text), ("r2.json", written(6, 120)))
    assert numbers_of(run) == {"fio RND TC1/QD1": [1, 2]}
    assert said(run)["given-twice"].startswith(f"{copy}: contains a result twice, or the same result")


def test_a_document_twice_in_a_file_counts_once() -> None:
    """If a file contains the same document twice, the document counts once, even if another document is between the two
    copies.
    """
    texts = [written(5, 60), written(6, 120), written(5, 60)]
    assert numbers_of(run_of(("all.json", "\n".join(texts)))) == {"fio RND TC1/QD1": [1, 2]}


def test_numbers_that_repeat_are_no_rounds() -> None:
    """If two results of one file have the same round number, tkperf numbers the results in their order, and a warning
    reports this numbering.
    """
    both = f"{written(1, 60)}\n{written(2, 120)}"
    run = run_of(("x_round1.json", both), ("x_round2.json", written(3, 180)))
    assert numbers_of(run) == {"fio RND TC1/QD1": [1, 2, 3]}
    assert said(run)["rounds-counted"].startswith("x_round1.json: some names")


DIFFER = {
    "drives by letters": ("sda-r{}.json", "sdb-r{}.json"),
    "drives by models": ("samsung980-r{}.json", "samsung990-r{}.json"),
    "drives by serial numbers": ("S5GXNX0T123456_r{}.json", "S5GXNX0T123457_r{}.json"),
    "drives by world-wide names": ("wwn-0x5002538d41_{}.json", "wwn-0x5002538d42_{}.json"),
    "drives by world-wide names alone": ("5002538d41a1b2c3_{}.json", "5002538d41a1b2c4_{}.json"),
    "drives by serial numbers with an R": ("S64FNE0R500001-r{}.json", "S64FNE0R500002-r{}.json"),
    "drives by PCI addresses": ("pci-0000:01:00.0-r{}.json", "pci-0000:02:00.0-r{}.json"),
    "drives by short PCI addresses": ("01:00.0-r{}.json", "02:00.0-r{}.json"),
    "drives by controllers": ("nvme0n1_{}.json", "nvme1n1_{}.json"),
    "drives counted": ("disk1/r{}.json", "disk2/r{}.json"),
    "drives of a rack": ("D3/r{}.json", "D4/r{}.json"),
    "formats": ("lbaf0/r{}.json", "lbaf2/r{}.json"),
    "formats in names": ("x-lbaf0-{}.json", "x-lbaf2-{}.json"),
    "folders": ("intel/r{}.json", "samsung/r{}.json"),
    "nested folders": ("a/fw1.0/r{}.json", "a/fw1.1/r{}.json"),
    "test names": ("iops_{}.json", "latency_{}.json"),
    "runs": ("run1/r{}.json", "run2/r{}.json"),
    "runs in names": ("run1_round{}.json", "run2_round{}.json"),
    "runs by numbers": ("x_1_{}.json", "x_2_{}.json"),
}


@pytest.mark.parametrize("how", DIFFER)
def test_names_that_differ_in_more_than_a_count_are_several_series(how: str) -> None:
    """If file names differ in more than a round number, the files are several series. For example, drives with 5,000
    and 9,000 IOPS are never combined into one drive with 7,000 IOPS.
    """
    files = [
        (layout.format(each), written(iops + each, 1000.0 * at + 60 * each))
        for at, (layout, iops) in enumerate(zip(DIFFER[how], (5000, 9000), strict=True))
        for each in range(1, 6)
    ]
    run = run_of(*files)
    assert sorted(rounds_of(run).values()) == [[iops + each for each in range(1, 6)] for iops in (5000, 9000)]
    assert all(outcome.verdict and outcome.verdict.reached for outcome in run.tests[0].outcomes)
    assert all(numbers == [1, 2, 3, 4, 5] for numbers in numbers_of(run).values())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5002538d41a1b2c3.json", "5002538d41a1b2c4.json"),
        ("0000:3b:00.0.json", "0000:5e:00.0.json"),
        ("dut1.json", "dut2.json"),
    ],
)
def test_two_drives_with_one_result_each_are_no_rounds(one: str, other: str) -> None:
    run = run_of((one, written(5000)), (other, written(9000, 60)))
    assert sorted(rounds_of(run).values()) == [[5000], [9000]]


def test_the_section_of_a_drive_names_its_pci_address_alone() -> None:
    files = [
        (f"pci-0000:{bus}:00.0-r{each}.json", written(1000 * at + each, 1000 * at + 60 * each))
        for at, bus in enumerate(("01", "02"))
        for each in (1, 2)
    ]
    assert list(numbers_of(run_of(*files))) == [
        "fio RND TC1/QD1, file 0000:01:00.0",
        "fio RND TC1/QD1, file 0000:02:00.0",
    ]


def test_a_serial_number_does_not_count_rounds() -> None:
    """A serial number does not count rounds, even if it contains an R and digits. The number of the round is the number
    after a word such as round.
    """
    files = [(f"S64FNE0R500001-r{each}.json", written(5000, 60.0 * each)) for each in (2, 3, 5)]
    assert numbers_of(run_of(*files)) == {"fio RND TC1/QD1": [2, 3, 5]}


@pytest.mark.parametrize(
    ("fill", "measure"),
    [
        ("run{}/fill.json", "run{}/r{}.json"),
        ("run{}_fill.json", "run{}_round{}.json"),
        ("{}/a/fill.json", "{}/b/r{}.json"),
    ],
)
def test_fills_of_several_runs_are_no_rounds(fill: str, measure: str) -> None:
    """Fills of several runs do not form a series of rounds. If each of two runs fills the drive once, each fill becomes
    a section with one result.
    """
    sequential = {"rw": "write", "size": "10g"}
    timed = {"runtime": "10", "time_based": "1"}
    files = [(fill.format(run), written(9000 + run, 2000.0 * run, options=sequential)) for run in (1, 2)]
    files += [
        (measure.format(run, each), written(1000 + each, 2000.0 * run + 60 * each, options=timed))
        for run in (1, 2)
        for each in range(1, 6)
    ]
    found = rounds_of(run_of(*files))
    assert sorted(values for values in found.values() if len(values) == 1) == [[9001], [9002]]
    assert [name for name, values in found.items() if len(values) > 1 and "SEQ" in name] == []
    assert len(found) == 4


@pytest.mark.parametrize("name", ["run{}/prefill.json", "{}/prefill.json", "run{}_prefill.json"])
def test_a_preparation_of_each_run_is_its_own(name: str) -> None:
    """The preparation of each run is a separate section, even if each run has a single round."""
    sequential = {"rw": "write", "size": "10g"}
    files = [(name.format(run), written(9000 + run, 2000.0 * run, options=sequential)) for run in (1, 2)]
    assert sorted(rounds_of(run_of(*files)).values()) == [[9001], [9002]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fio.0.31700", "fio.0.700"),
        ("tp-0-1520000977.json", "tp-0-1520001954.json"),
        ("28-03-2018.json", "1-04-2018.json"),
        ("2023-01-05T12:00:07.json", "2023-01-05T12:05:11.json"),
        ("fio-3fa9c1d2.json", "fio-77b0e4aa.json"),
        ("out.json", "out-1.json"),
        ("out.json", "out (2).json"),
        ("run-5-Jan.json", "run-6-Feb.json"),
        ("10:15:07.3.json", "10:16:08.4.json"),
        ("1764000000000001.json", "1764000000000002.json"),
    ],
)
def test_dates_and_ids_of_processes_separate_nothing(one: str, other: str) -> None:
    assert family_of_file(one) == family_of_file(other)


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("pass1", "pass2", True),
        ("1", "2", True),
        ("out/round-3/bs-128k", "out/round-4/bs-128k", True),
        ("run_20230105", "run_20230106", True),
        ("day0", "day1", True),
        ("lbaf_0", "lbaf_2", False),
        ("samsung980", "samsung990", False),
        ("qd1", "qd32", False),
        ("75%full", "50%full", False),
    ],
)
def test_folders_that_count_are_of_one_family(one: str, other: str, is_one: bool) -> None:
    assert (family_of_folder(one) == family_of_folder(other)) is is_one


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("wdpc_bs1024KB_read0_round12.json", [12]),
        ("a/R3.json", [3]),
        ("round-07.json", [7]),
        ("x_r3.json", [3]),
        ("ground3.json", []),
        ("rw50_bs4k_qd32.json", []),
        ("r4k.json", []),
        ("mix_r70_w30.json", []),
        ("run_20230105.json", []),
    ],
)
def test_words_before_the_number_of_a_round(name: str, expected: list[int]) -> None:
    assert list(find_rounds(name, "job").values()) == expected


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["r4_r{}.json"], [[3, 4, 5]]),
        (["r{}_r70.json"], [[3, 4, 5]]),
        (["r4_r{}.json", "r5_r{}.json"], [[3, 4, 5], [3, 4, 5]]),
    ],
)
def test_of_a_word_given_twice_the_number_that_counts_is_taken(names: list[str], numbers: list[list[int]]) -> None:
    """If a word or letter that can count rounds occurs twice in a file name, tkperf uses the number that really counts
    rounds. A letter such as r may also precede a mix or the name of a drive.
    """
    files = [name.format(each) for name in names for each in (3, 4, 5)]
    run = run_of(*((file, written(100 + at, 60 * at)) for at, file in enumerate(files)))
    assert list(numbers_of(run).values()) == numbers
    assert "rounds-counted" not in said(run)


@pytest.mark.parametrize("name", ["x-{}op-{}.json", "x_{}C_{}.json", "{}W-{}.json"])
def test_a_unit_after_a_number_makes_it_a_condition(name: str) -> None:
    """A number with a unit in a file name is a condition and does not count rounds. For example, spare areas of 7 % and
    28 % are two conditions, each with separate rounds.
    """
    files = [name.format(condition, each) for condition in (7, 28) for each in (1, 2, 3)]
    run = run_of(*((file, written(100 + at, 60 * at)) for at, file in enumerate(files)))
    assert list(numbers_of(run).values()) == [[1, 2, 3], [1, 2, 3]]
