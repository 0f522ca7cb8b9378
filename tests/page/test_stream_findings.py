"""Texts on a page about loads that ran at the same time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import work
from tkperf.model.workload import ActiveRange, Stream, Workload, combine
from tkperf.page.findings.stream_findings import describe_trimmed

RANGE_BYTES = 1_000_000


def part(begin_percent: int, end_percent: int) -> ActiveRange:
    """Return a region, which is a part of the active range."""
    of_percent = RANGE_BYTES // 100
    return ActiveRange(offset_bytes=begin_percent * of_percent, length_bytes=(end_percent - begin_percent) * of_percent)


def beside_trimmers(region: ActiveRange | None, *trimmed: ActiveRange | None) -> Workload:
    """Return a reader of a region, together with loads that trim. Each of these loads trims one of the other
    regions.
    """
    reader = Stream(name="reader", workload=replace(work(100), region=region))
    trims = replace(work(), trims=True)
    trimmers = (Stream(name=f"t{n}", workload=replace(trims, region=each)) for n, each in enumerate(trimmed, start=1))
    return combine((reader, *trimmers))


@pytest.mark.parametrize(
    ("region", "trimmed", "text"),
    [
        (None, (part(40, 60),), "t1 covers 20.0 % of the region of reader"),
        (part(50, 100), (part(40, 60),), "t1 covers 20.0 % of the region of reader"),
        (part(40, 60), (None,), "t1 covers 100.0 % of the region of reader"),
        (None, (part(20, 40), part(30, 50)), "t1 and t2 cover 30.0 % of the region of reader"),
        (None, (part(20, 50), part(30, 40)), "t1 and t2 cover 30.0 % of the region of reader"),
        (part(0, 50), (part(50, 100),), None),
        (part(0, 50), (part(50, 100), part(40, 60)), "t2 covers 20.0 % of the region of reader"),
    ],
)
def test_the_trimmed_share_of_a_readers_region(
    region: ActiveRange | None, trimmed: tuple[ActiveRange | None, ...], text: str | None
) -> None:
    """The trimmed share of a reader's region counts bytes that several loads trim only once. A load that trims no part
    of the region is not mentioned.
    """
    found = list(describe_trimmed([beside_trimmers(region, *trimmed)], RANGE_BYTES))
    assert [each.partition(":")[0] for each in found] == ([] if text is None else [text])


def test_the_share_of_an_unknown_range_is_not_invented() -> None:
    """If the active range is not known, as in an imported run, and the reader or a trimming load uses the whole range,
    the trimmed share is not stated.
    """
    assert not list(describe_trimmed([beside_trimmers(None, part(40, 60))], None))
    assert list(describe_trimmed([beside_trimmers(part(0, 50), part(40, 60))], None))
