"""Curves are distinguishable. No two curves have the same colour and dash, and colours follow the order of the
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tests.builders import work
from tkperf.model.workload import Workload
from tkperf.page.chart import PALETTE
from tkperf.page.figures.curves import style_curves
from tkperf.page.naming import find_naming
from tkperf.render.charts.axes import log_axis


def styles(workloads: Sequence[Workload]) -> tuple[dict[str, str], dict[str, int]]:
    """Return two mappings with the name of each curve as the key. The first contains the colour of the curve, and the
    second contains its dash.
    """
    styled = style_curves(find_naming(workloads), workloads)
    return ({name: colour for name, (colour, _) in styled.items()}, {name: dash for name, (_, dash) in styled.items()})


def test_as_many_curves_as_colours_have_no_dashes() -> None:
    """If the number of curves does not exceed the number of colours, no curve is dashed. Queue depths that are powers
    of two have fixed colours, and the other depths use the remaining colours in order.
    """
    few = [work(io_depth=depth) for depth in range(len(PALETTE), 0, -1)]
    colours, dashes = styles(few)
    assert set(dashes.values()) == {0}
    assert list(colours) == [str(depth) for depth in range(1, len(PALETTE) + 1)]
    assert set(colours.values()) == set(PALETTE)
    of_powers, _ = styles(few[-2:])
    assert list(of_powers.values()) == list(colours.values())[:2]


def test_of_two_axes_one_has_the_colours_and_the_other_the_dashes() -> None:
    """If curves differ in two fields, one field determines the colour, and the other field determines the dash. Sixteen
    curves of eight depths and two mixes have eight colours, each of them solid and dashed.
    """
    depths = (128, 64, 32, 16, 8, 4, 2, 1)
    grid = [work(read_percent=mix, io_depth=depth) for mix in (100, 0) for depth in depths]
    colours, dashes = styles(grid)
    assert len({(colours[name], dashes[name]) for name in colours}) == 16
    for depth in depths:
        assert colours[f"R/W 100/0 QD{depth}"] == colours[f"R/W 0/100 QD{depth}"]
    assert len(set(colours.values())) == 8
    assert {dash for name, dash in dashes.items() if "100/0" in name} == {0}
    assert {dash for name, dash in dashes.items() if "0/100" in name} == {1}
    assert list(colours)[:8] == [f"R/W 100/0 QD{depth}" for depth in reversed(depths)]


def test_of_one_axis_neighbours_differ_in_both() -> None:
    colours, dashes = styles([work(io_depth=depth) for depth in range(40, 0, -1)])
    assert list(colours) == [str(depth) for depth in range(1, 41)]
    assert len(set(colours.values())) == 40
    assert all(dashes[one] != dashes[next_one] for one, next_one in pairwise(dashes))


def test_every_tick_of_a_logarithmic_axis_has_its_label() -> None:
    """Every tick of a logarithmic axis has a label. Without explicit settings, Vega would label only the powers of
    ten.
    """
    axis: Any = log_axis([62.0, 100.2])
    assert axis["axis"]["values"] == [60, 70, 80, 90, 100, 200]
    assert axis["axis"]["tickCount"] == 6
    assert axis["axis"]["labelExpr"] == "format(datum.value, ',.10~f')"
