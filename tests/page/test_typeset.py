"""Typography of texts that readers see. These texts contain minus signs and superscript powers. Texts that users copy
contain neither of them.
"""

from __future__ import annotations

import pytest

from tkperf.page.facts import bind_units, typeset


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-3.1 %", "\N{MINUS SIGN}3.1 %"),
        ("not met -3.1 %", "not met \N{MINUS SIGN}3.1 %"),
        ("11,104 × round - 3,954.54", "11,104 × round \N{MINUS SIGN} 3,954.54"),
        ("Data excursion (max - min)", "Data excursion (max \N{MINUS SIGN} min)"),
        ("(-0.2)", "(\N{MINUS SIGN}0.2)"),
        ("1 MB = 10^6 bytes, in 1 of 10^12 cases", "1 MB = 10⁶ bytes, in 1 of 10¹² cases"),
        ("-", "-"),
        ("2026-11-24 08:24, fio-3.33, S4510-17", "2026-11-24 08:24, fio-3.33, S4510-17"),
        ("tkperf ssd n /dev/sdb -rt 1 --iodepth=-1", "tkperf ssd n /dev/sdb -rt 1 --iodepth=-1"),
    ],
)
def test_readers_get_signs_and_commands_keep_theirs(text: str, says: str) -> None:
    assert typeset(text) == says


def test_a_figure_stays_with_its_unit() -> None:
    assert bind_units("4 KiB random write, 99.9 %") == "4\u00a0KiB random write, 99.9\u00a0%"
