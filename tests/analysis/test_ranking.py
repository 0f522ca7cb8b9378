"""Ranking of many runs. Only runs with equal conditions are ranked, each other run has a reason, and models are never
ranked among drives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest

from tests.analysis.made_up import made_up_run
from tests.analysis.test_decision import READ, SINGLE, section_of
from tkperf.analysis.comparing.decision import Standing, Unranked
from tkperf.analysis.comparing.ranking import Differing, Ranking, rank_runs
from tkperf.analysis.comparing.run_figures import MEASURES, RunFigures, build_run_figures
from tkperf.model.choices import FIGURES
from tkperf.model.decoding import make_msgpack_decoder
from tkperf.model.run_info import FORM_FACTOR, SIMULATED_NOTICE
from tkperf.page.comparison.ranking_page import build_ranking_page, describe_unranked
from tkperf.page.matrix import FIGURE_NAMES, Sign

DEVICE = {"kind": "block device", "model": "M", "capacity_bytes": 1 << 30, "interface": "NVMe"}


def run_of(
    name: str,
    value: float = 100.0,
    *,
    work: object = READ,
    steady: bool = True,
    device: Mapping[str, object] = {},
    **info: object,
) -> RunFigures:
    """Return a run of a separate drive. Its random reads have the given value."""
    facts = {"ioengine": "io_uring", "device": {**DEVICE, "serial": f"S-{name}", **device}, **info}
    section = section_of({work: value}, steady=steady)  # type: ignore[dict-item]
    return build_run_figures(made_up_run(name, {"iops": [section]}, **facts))  # type: ignore[arg-type]


def places_of(ranking: Ranking) -> dict[str, int | None]:
    return {one.run.name: one.place for one in ranking.runs}


def reasons_of(ranking: Ranking) -> dict[str, Unranked | None]:
    return {one.run.name: one.cell.unranked for one in ranking.others}


def test_drives_rank_by_the_direction_of_the_figure() -> None:
    """Drives whose difference is not certain share a rank. The next rank counts all drives before it."""
    reads = rank_runs([run_of("A"), run_of("B", 200.0), run_of("C", 200.5), run_of("D", 50.0)], "random_read")
    assert places_of(reads) == {"C": 1, "B": 1, "A": 3, "D": 4}
    single = rank_runs([run_of("A", work=SINGLE), run_of("B", 200.0, work=SINGLE)], "single_read")
    assert places_of(single) == {"A": 1, "B": 2}
    assert [one.cell.standing for one in single.ranked] == [Standing.BEST, Standing.WORST]


def test_names_of_figures_are_those_of_a_comparison() -> None:
    """The command line offers exactly the figures of a comparison, in the same order."""
    assert [name.replace("-", "_") for name in FIGURES] == list(MEASURES) == list(FIGURE_NAMES)


@pytest.mark.parametrize(
    ("changes", "condition"),
    [
        ({"work": replace(READ, io_depth=8)}, "load"),
        ({"active_range_length_bytes": 1 << 29}, "active range"),
        ({"ioengine": "libaio"}, "I/O engine"),
        ({"profile": {"title": "t", "steady_state": {"max_rounds": 3}}}, "steady_state.max_rounds"),
        ({"device": {"write_cache_in_run": "off, as found"}}, "write cache"),
        ({"device": {"kind": "file"}}, "kind of target"),
    ],
)
def test_other_conditions_are_not_ranked(changes: Mapping[str, object], condition: str) -> None:
    """Runs are ranked under the conditions that most drives share. The reason for an unranked run names the condition
    that differs.
    """
    odd = run_of("odd", 900.0, **changes)  # type: ignore[arg-type]
    ranking = rank_runs([odd, run_of("A"), run_of("B", 200.0)], "random_read")
    assert places_of(ranking) == {"B": 1, "A": 2, "odd": None}
    (other,) = ranking.others
    assert other.cell.unranked is Unranked.OTHER_CONDITIONS
    assert [each.name for each in other.differing] == [condition]
    assert describe_unranked(other).startswith(f"other conditions: {condition} ")


def test_a_reason_is_not_longer_than_it_has_to_be() -> None:
    """A reason is as short as possible. It omits the parts in which two values are equal, and does not list conditions
    that follow from another reason.
    """
    unsteady = run_of("C", steady=False, active_range_length_bytes=1 << 29)
    (other,) = rank_runs([run_of("A"), run_of("B"), unsteady], "random_read").others
    assert describe_unranked(other) == "not steady, other conditions: active range 50 %, not 100 %"
    differing = Differing(name="preconditioning", value="1.0 × the range, SEQ 128k", ranked="2.0 × the range, SEQ 128k")
    shown = describe_unranked(replace(other, differing=(differing,)))
    assert shown == "not steady, other conditions: preconditioning 1.0 × the range, not 2.0 × the range"


def test_harmless_differences_rank() -> None:
    """The properties of the drive itself, the host and the date may differ between ranked runs, because they are not
    conditions of the measurement.
    """
    other = run_of(
        "B",
        200.0,
        device={"interface": "SATA", "model": "N", "firmware": "2"},
        hosts=({"hostname": "h2"},),
        started_utc="2027-01-01T00:00:00+00:00",
    )
    assert places_of(rank_runs([run_of("A"), other], "random_read")) == {"B": 1, "A": 2}


def test_sectors_of_4_kib_are_no_other_condition() -> None:
    """A drive with sectors of 4 KiB does not measure the block size of 0.5 KiB. This difference does not count as a
    different condition.
    """
    runs = [
        run_of(name, profile={"title": "t", "iops": {"block_sizes_kib": sizes}})
        for name, sizes in (("A", [4, 0.5]), ("B", [4]), ("C", [8, 4]))
    ]
    assert reasons_of(rank_runs(runs, "random_read")) == {"C": Unranked.OTHER_CONDITIONS}


def test_models_never_rank_among_drives() -> None:
    """Models are listed as SIMULATED if at least one drive is among the runs. Models alone are ranked, and the page
    then carries the notice SIMULATED.
    """
    models = [run_of(name, value, ioengine="simulated") for name, value in (("A", 100.0), ("B", 900.0))]
    mixed = rank_runs([*models, run_of("C"), run_of("D", 50.0)], "random_read")
    assert places_of(mixed) == {"C": 1, "D": 2, "A": None, "B": None}
    assert set(reasons_of(mixed).values()) == {Unranked.SIMULATED}
    page = build_ranking_page(mixed)
    assert page.decision is not None
    assert [row.cells[0].words for row in page.decision.rows[2:]] == [
        "SIMULATED, other conditions: I/O engine simulated, not io_uring"
    ] * 2
    assert SIMULATED_NOTICE not in page.banners
    alone = build_ranking_page(rank_runs(models, "random_read"))
    assert SIMULATED_NOTICE in alone.banners
    assert alone.verdict.title.startswith("SIMULATED. 2 of 2 runs ranked")


def test_a_single_drive_excludes_all_models() -> None:
    """A single drive excludes all models from the ranking, even if the value of this drive cannot be ranked."""
    runs = [run_of("A", ioengine="simulated"), run_of("B", ioengine="simulated"), run_of("C", steady=False)]
    ranking = rank_runs(runs, "random_read")
    assert ranking.ranked == ()
    assert reasons_of(ranking) == {"A": Unranked.SIMULATED, "B": Unranked.SIMULATED, "C": Unranked.NOT_STEADY}


def test_what_is_not_steady_or_measured_is_marked() -> None:
    """A value that is not steady is shown with the sign for unranked values. Runs without steady values do not
    influence the choice of the conditions under which runs are ranked.
    """
    unsteady = [
        run_of(f"U{number}", 900.0, steady=False, work=replace(READ, io_depth=1, jobs=2)) for number in range(3)
    ]
    page = build_ranking_page(
        rank_runs([*unsteady, run_of("A"), run_of("B", 50.0), run_of("N", work=SINGLE)], "random_read")
    )
    assert page.decision is not None
    cells = {row.name: row.cells[0] for row in page.decision.rows}
    assert (cells["1. A"].sign, cells["U1"].sign, cells["U1"].text) == (Sign.BEST, Sign.UNRANKED, "900")
    assert cells["U1"].words.startswith("not steady")


def test_a_drive_counts_once() -> None:
    """A drive counts only once, with its newest run that can be ranked. Another file of the same run counts as
    a copy.
    """
    uuid = "12345678-1234-5678-1234-567812345678"
    drive: dict[str, object] = {"device": {"serial": "X"}}
    runs = [
        run_of("old", 300.0, started_utc="2026-01-01T00:00:00+00:00", **drive),  # type: ignore[arg-type]
        run_of("new", 200.0, started_utc="2026-02-01T00:00:00+00:00", uuid=uuid, **drive),  # type: ignore[arg-type]
        run_of("copy", 200.0, started_utc="2026-02-01T00:00:00+00:00", uuid=uuid, **drive),  # type: ignore[arg-type]
        run_of("newest", 200.0, started_utc="2026-03-01T00:00:00+00:00", steady=False, **drive),  # type: ignore[arg-type]
        run_of("other"),
    ]
    ranking = rank_runs(runs, "random_read")
    assert places_of(ranking) == {"new": 1, "other": 2, "copy": None, "old": None, "newest": None}
    assert reasons_of(ranking) == {"old": Unranked.OLDER, "copy": Unranked.COPY, "newest": Unranked.NOT_STEADY}


def test_nothing_to_rank_is_said() -> None:
    """If no run contains the figure, or only one drive does, the title of the ranking states that nothing can be
    ranked.
    """
    assert build_ranking_page(rank_runs([run_of("A")], "kept_rate")).title == "No drives can be ranked by kept rate"
    assert (
        build_ranking_page(rank_runs([run_of("A")], "random_read")).title
        == "Only one drive can be ranked by random reads"
    )


def test_figures_of_a_run_can_be_kept() -> None:
    """The figures of a run can be stored and read back unchanged, including the form factor that the operator
    stated.
    """
    made = run_of("A", options={"facts": {FORM_FACTOR: "U.2"}})
    assert made.device["form_factor"] == "U.2"
    assert make_msgpack_decoder(RunFigures).decode(msgspec.msgpack.encode(made)) == made
