"""The queries in docs/how-to/many-runs.md answer questions about a fleet of drives. In the tests, DuckDB runs the
queries over 400 runs.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from tests.builders import run_info, simulate
from tkperf.analysis.comparing.ranking import rank_runs
from tkperf.analysis.comparing.run_figures import FigureValue, RunFigures, build_run_figures
from tkperf.analysis.results import RunResult
from tkperf.procedures import SSD_TESTS
from tkperf.render.dataset import Dataset, ExportedRun, build_dataset_tables, open_dataset

PAGE = Path(__file__).parents[2] / "docs/how-to/many-runs.md"
RUNS = 400
MODELS = ("Alpha", "Beta", "Gamma", "Delta")
MONTHS = 10
# The queries on the page have to find these drives, this firmware and this model.
OUTLIER, SLOW_FIRMWARE, AGEING = 40, "F2", "Gamma"


def factor_of(number: int, key: str) -> float:
    """Return the factor by which a figure of the run with this number differs from the same figure of the simulated
    run. All runs are derived from this simulated run.
    """
    model, firmware, month = MODELS[number % 4], f"F{number // 4 % 3}", number * MONTHS // RUNS
    factor = (1.0, 1.5, 2.0, 0.5)[number % 4] * (1 + 0.001 * (number * 7 % 11))
    if key == "random_write" and (model, firmware) == ("Beta", SLOW_FIRMWARE):
        factor *= 0.8
    if key == "single_write" and model == AGEING:
        factor *= 1 + 0.1 * month
    if key == "large_read" and number == OUTLIER:
        factor *= 0.5
    return factor


def vary(figures: RunFigures, number: int) -> RunFigures:
    return replace(
        figures,
        name=f"run-{number}",
        started_utc=f"2026-{1 + number * MONTHS // RUNS:02d}-01T00:{number % 60:02d}:00+00:00",
        uuid=str(UUID(int=number + 1)),
        is_simulated=False,
        device={
            **figures.device,
            "kind": "block device",
            "model": MODELS[number % 4],
            "firmware": f"F{number // 4 % 3}",
            "serial": f"S{number}",
        },
        values=tuple(scale(value, factor_of(number, value.key)) for value in figures.values),
    )


def scale(value: FigureValue, factor: float) -> FigureValue:
    assert value.entry.value is not None
    return replace(value, entry=replace(value.entry, value=factor * value.entry.value, uncertainty=None))


def result_of(result: RunResult, figures: RunFigures) -> RunResult:
    info = replace(
        result.info,
        name=figures.name,
        uuid=figures.uuid,
        started_utc=figures.started_utc,
        ioengine="io_uring",
        device={**result.info.device, **figures.device},
    )
    return replace(result, info=info)


def put(dataset: Dataset, result: RunResult, figures: RunFigures) -> None:
    assert figures.uuid is not None
    run = ExportedRun(
        run_id=UUID(figures.uuid).hex,
        file=f"{figures.name}.tkperf",
        stamp=(0, 0, 0, 0),
        digest="",
        entries=1,
        made_by="",
        files={},
    )
    dataset.put(run, tuple(build_dataset_tables(result_of(result, figures), figures)))


class Fleet:
    """A data set of runs, and the answer to each query on the page. The key of an answer is the heading of the
    query.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "fleet"
        result = simulate(
            folder, run_info(name="source"), suite={name: SSD_TESTS[name] for name in ("iops", "lat", "tp")}
        )
        figures = build_run_figures(result)
        self.figures = [vary(figures, number) for number in range(RUNS)]
        with open_dataset(self.folder) as dataset:
            for one in self.figures:
                put(dataset, result, one)
        self.database = duckdb.connect()
        self.answers = dict(self._ask())

    def _ask(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        for heading, sql in find_queries():
            answer = self.database.execute(sql.replace("/srv/fleet", str(self.folder)))
            names = [column[0] for column in answer.description or ()]
            yield heading, [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def find_queries() -> Iterator[tuple[str, str]]:
    """Yield each query of the page with the heading above the query."""
    for section in re.split(r"^#+ ", PAGE.read_text(encoding="utf-8"), flags=re.M):
        for block in re.findall(r"```sql\n(.*?)```", section, re.S):
            for sql in filter(str.strip, block.split(";")):
                yield section.partition("\n")[0], sql


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return Fleet(tmp_path_factory.mktemp("fleet"))


def test_the_best_drives_are_those_of_the_ranking(fleet: Fleet) -> None:
    """The query for the best drives returns the same order as ``tkperf rank``, which does not need a data set."""
    rows = fleet.answers["Which drives are the best?"]
    ranking = rank_runs(fleet.figures, "random_read")
    assert len(ranking.ranked) == RUNS
    values = [one.cell.entry.value for one in ranking.ranked]
    assert [row["value"] for row in rows] == values[:20]
    assert {row["model"] for row in rows} == {"Gamma"}
    assert rows[0]["place"] == 1


def test_the_outlier_is_found(fleet: Fleet) -> None:
    """If one drive is half as fast as its model, the query for outliers returns this drive as the first outlier."""
    rows = [
        row
        for row in fleet.answers["Which drives are unlike the others of their model?"]
        if row["figure"] == "large_read"
    ]
    assert [row["serial"] for row in rows] == [f"S{OUTLIER}"]
    assert rows[0]["score"] > 3.5


def test_the_slow_firmware_is_found(fleet: Fleet) -> None:
    """The first row of the query for firmware contains the figure that differs most between the firmware versions of a
    model.
    """
    first = fleet.answers["Did a firmware change anything?"][0]
    assert (first["model"], first["firmware"], first["figure"]) == ("Beta", SLOW_FIRMWARE, "random_write")
    assert -21 < first["percent_from_model"] < -19


def test_the_write_latency_over_the_months(fleet: Fleet) -> None:
    """The query over months shows that the write latency of one model increases from month to month, and that it does
    not change for the other models.
    """
    rows = fleet.answers["How did the p99.9 write latency develop over the months?"]
    assert len(rows) == len(MODELS) * MONTHS
    courses = {model: [row["p99_9_us"] for row in rows if row["model"] == model] for model in MODELS}
    assert courses[AGEING] == sorted(courses[AGEING])
    assert courses[AGEING][-1] > 1.8 * courses[AGEING][0]
    assert max(courses["Alpha"]) < 1.02 * min(courses["Alpha"])


def test_each_value_has_a_state(fleet: Fleet) -> None:
    """For each figure, the query for states counts every run."""
    rows = fleet.answers["How many values cannot be ranked, and why?"]
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["figure"]] = counts.get(row["figure"], 0) + row["runs"]
    assert set(counts.values()) == {RUNS}
    assert {"random_read", "random_write", "large_read", "single_write"} <= counts.keys()


def test_every_query_of_the_page_was_asked(fleet: Fleet) -> None:
    """Each heading with a question on the page has a query, and each query returns an answer."""
    questions = re.findall(r"^### (.*\?)$", PAGE.read_text(encoding="utf-8"), re.M)
    assert set(questions) <= fleet.answers.keys()
    assert all(fleet.answers[question] for question in questions)


def test_a_run_of_an_older_version_hides_no_column(fleet: Fleet, tmp_path: Path) -> None:
    """If an older version of tkperf exported a run, the views contain null in the columns that the tables of this run
    lack. These tables do not hide columns of the views.
    """
    older, newer = sorted(fleet.folder.glob("run_id=*"))[:2]
    for folder in (older, newer):
        shutil.copytree(folder, tmp_path / folder.name)
    for table in ("runs", "figures"):
        file = tmp_path / older.name / f"{table}.parquet"
        pq.write_table(
            pq.read_table(file, partitioning=None).drop_columns(["unit" if table == "figures" else "host"]), file
        )
    database = duckdb.connect()
    for _, sql in find_queries():
        database.execute(sql.replace("/srv/fleet", str(tmp_path)))
    hosts = database.execute("SELECT count(*), count(host) FROM runs").fetchone()
    assert hosts is not None
    assert hosts[0] == 2
    units = database.execute("SELECT run_id, count(unit) FROM figures GROUP BY run_id ORDER BY run_id").fetchall()
    assert [str(run_id) for run_id, count in units if count] == [newer.name.removeprefix("run_id=")]


def test_other_readers_find_the_run_of_each_row(fleet: Fleet) -> None:
    """Other readers also find the run of each row. PyArrow and Spark read the id of the run as a text from the name of
    the folder.
    """
    files = sorted(map(str, fleet.folder.glob("run_id=*/runs.parquet")))
    table = pyarrow.dataset.dataset(files, partitioning="hive").to_table()
    ids = table.column("run_id").to_pylist()
    assert len(set(ids)) == RUNS
    assert set(table.column("uuid").to_pylist()) == set(map(str, ids))
