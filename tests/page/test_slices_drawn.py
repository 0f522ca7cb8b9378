"""The number of slices that the chart of a stream shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import tkperf
from tkperf.analysis.run_results import analyse
from tkperf.model.quantity import IOPS
from tkperf.page.figures import curves
from tkperf.page.figures.curves import draw_stream, over_time
from tkperf.runfile.reader import read_run

LOADS = """
format = 1
name = "own"
title = "Own"
[loads.reader]
access = "random"
read_percent = 100
block_size_kib = 4
jobs = 1
io_depth = 1
[loads.writer]
access = "random"
read_percent = 0
block_size_kib = 4
jobs = 1
flush_every = 4
[[phases]]
kind = "stream"
section = "Own"
slice_s = 0.1
longest_s = 4
"""


def points_of(folder: Path, phase: str) -> list[int]:
    """Return the number of points in the chart of each load, its streams and its flushes."""
    folder.mkdir()
    file = folder / "own.toml"
    file.write_text(f"{LOADS}{phase}\n", encoding="utf-8")
    plan = tkperf.make_plan("ssd", "sim:nvme-4kn", tests=[str(file)])
    tkperf.run(plan, "n", folder=folder)
    (section,) = analyse(read_run(folder / "n.tkperf")).tests[0].sections
    assert len(section.slices) == 40
    axis = over_time(section.slices[-1].end_s)
    charts = [
        draw_stream(section, (IOPS,), "", axis, workload=cell.workload).curves for cell in section.slices[0].cells
    ]
    return [len(curve.points) for drawn in charts for curve in drawn]


def test_a_chart_of_a_stream_shows_fewer_slices_than_the_chart_of_a_single_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chart of a single load shows all minutes of a day. A combination has a chart for each stream, each flush and
    the total, so each of these charts shows only the extremes of neighbouring slices.
    """
    monkeypatch.setattr(curves, "_MOST_SLICES_OF_STREAM", 12)
    assert points_of(tmp_path / "alone", 'load = "writer"') == [40, 40]
    together = points_of(tmp_path / "together", 'together = ["reader", "writer"]')
    assert len(together) == 4
    assert all(6 < points <= 12 for points in together)
