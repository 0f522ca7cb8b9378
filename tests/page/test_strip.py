"""Values on one line: the positions of dots, ticks and limits."""

from __future__ import annotations

import pytest

from tkperf.page.strip import Dot, Limit, TickKind, build_dot_strip
from tkperf.page.verdict_texts import NoteLevel


@pytest.mark.parametrize(
    ("limit", "is_off_scale", "share"), [(500.0, True, 0.0), (5200.0, True, 1.0), (5145.0, False, None)]
)
def test_a_limit_far_from_the_values_is_marked_at_the_end(
    limit: float, is_off_scale: bool, share: float | None
) -> None:
    """A limit within the scale is marked at its position. A limit outside the scale is written at the end of the
    line.
    """
    values = [(value, Dot(share=0.0)) for value in (5140.0, 5142.0, 5148.0, 5150.0)]
    strip = build_dot_strip(values, "", cohort=None, limit=Limit(value=limit, is_least=True, text="≥ x"))
    (tick,) = (tick for tick in strip.ticks if tick.kind is TickKind.CLAIM)
    assert tick.is_off_scale is is_off_scale
    if share is None:
        assert 0.0 < tick.share < 1.0
    else:
        assert tick.share == pytest.approx(share)
        assert tick.text == ("claim ≥ x ▸" if share else "◂ claim ≥ x")


def test_no_name_covers_another_name_or_dot() -> None:
    """If a name would cover another named dot, the name is omitted, but its dot remains."""
    near = (
        (98.0, "bay 14", NoteLevel.CAUTION),
        (99.0, "bay 17", NoteLevel.FAILURE),
        (10.0, "bay 9", NoteLevel.CAUTION),
    )
    values = [(value, Dot(share=0.0, level=level, name=name)) for value, name, level in near]
    strip = build_dot_strip([*values, (100.0, Dot(share=0.0))], "", cohort=None)
    assert {dot.name for dot in strip.named} == {"bay 9", "bay 14", "bay 17"}
    assert [dot.name for dot in strip.labelled] == ["bay 9"]
    alone = build_dot_strip([values[1], values[2], (100.0, Dot(share=0.0))], "", cohort=None)
    assert [dot.name for dot in alone.labelled] == ["bay 17", "bay 9"]
