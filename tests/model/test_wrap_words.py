"""Text is wrapped between whole words. A quoted command is never broken, regardless of its position in a sentence."""

from __future__ import annotations

import pytest

from tkperf.model.units import wrap_words

TEXT = (
    "2 things may disturb this run (swap, timers); 'tkperf tune /dev/nvme0n1' shows more, 'sudo tkperf tune "
    "--restore' puts it back"
)


@pytest.mark.parametrize("width", range(30, 120, 7))
def test_a_command_stays_whole_if_a_line_has_room_for_it(width: int) -> None:
    lines = wrap_words(TEXT, width, hanging=2)
    assert max(map(len, lines)) <= width
    assert " ".join(line.strip() for line in lines) == TEXT
    for command in ("'tkperf tune /dev/nvme0n1'", "'sudo tkperf tune --restore'"):
        assert any(command in line for line in lines)


def test_a_command_that_is_too_long_is_broken_between_its_words() -> None:
    assert wrap_words("see 'tkperf report a b c d'", 14) == ["see 'tkperf", "report a b c", "d'"]
