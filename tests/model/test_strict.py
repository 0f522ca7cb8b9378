"""Messages about mistakes in users' files use tkperf's own words. They contain the position, the value and the
permitted values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tkperf.analysis.claims_file import parse_claims
from tkperf.device.raid.config import load_raid_config
from tkperf.model.errors import InputFileError
from tkperf.model.strict import convert_strictly
from tkperf.procedures import parse_profile
from tkperf.procedures.own_workloads import parse_workload_file

CLAIM = '[[claim]]\ntest = "iops"\nmetric = "iops"\nblock_size = "4k"\nat_least = 1\n'
RAID = '{"devices": ["/dev/sdb", "/dev/sdc"], "raidlevel": 1, "type": "sw_mdadm"}'


def claims(text: str, _folder: object) -> object:
    return parse_claims(text, file="x")


def profile(text: str, _folder: object) -> object:
    return parse_profile(text, file="x")


def workload(text: str, _folder: object) -> object:
    return parse_workload_file(text, file="x")


def raid(text: str, folder: object) -> object:
    path = folder / "raid.json"  # type: ignore[operator]
    path.write_text(text)
    return load_raid_config(path)


@pytest.mark.parametrize(
    ("read", "text", "told"),
    [
        (claims, CLAIM + "read_percent = 101", ("claim 1", "read_percent", "101", "0 to 100")),
        (claims, CLAIM + CLAIM + "acess = 1", ("claim 2", "acess", "did you mean access?")),
        (claims, CLAIM + 'access = "rnd"', ("access", "'rnd'", "random, sequential")),
        (claims, '[[claim]]\nmetric = "iops"', ("claim 1", "required key test is missing")),
        (claims, CLAIM.replace("1\n", '"1"\n'), ("at_least", '"1"', "takes a number")),
        (claims, '[[claim]]\ntest = ""\nmetric = "iops"', ("test", '""', "not empty")),
        (claims, "[[clam]]", ("clam", "claim, quantiles, baseline", "did you mean claim?")),
        (claims, "claim = 3", ("claim", "3 is not allowed", "a list")),
        (profile, "naem = 1", ("naem", "did you mean name?")),
        (workload, "format = 1\nloads = {}\nphases = []", ("loads", "a table of 0", "a table of 1 to")),
        (raid, RAID.replace("sw_mdadm", "mdadm"), ("type 'mdadm'", "choose from hw_lsi, sw_mdadm")),
        (raid, RAID.replace("raidlevel", "level"), ("level", "did you mean raidlevel?")),
        (raid, RAID.replace('"/dev/sdc"', "5"), ("devices", "5 is not allowed", "text")),
        (raid, "[]", ("a list of 0", "{ devices, raidlevel, type, ")),
    ],
)
def test_a_mistake_names_its_place_and_what_may_be(
    read: Callable[[str, object], object], text: str, told: tuple[str, ...], tmp_path: object
) -> None:
    """The message about a mistake contains its position and the permitted values. It contains no word of the library
    that found the mistake.
    """
    with pytest.raises(InputFileError) as raised:
        read(text, tmp_path)
    for fact in told:
        assert fact in str(raised.value)
    for word in ("Expected", "Object", "Invalid", "$", "`", "array"):
        assert word not in str(raised.value)


class _Row(msgspec.Struct):
    ios: int


def test_a_type_is_examined_once_for_all_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A type is examined only once for all mistakes. Otherwise a report with 50,000 unreadable steps would take
    17 s.
    """
    type_info, examined = msgspec.inspect.type_info, []

    def count(type_: Any) -> msgspec.inspect.Type:
        examined.append(type_)
        return type_info(type_)

    monkeypatch.setattr(msgspec.inspect, "type_info", count)
    for number in range(3):
        with pytest.raises(InputFileError, match=f"x{number}"):
            convert_strictly({"ios": f"x{number}"}, _Row, what="row")
    assert examined == [_Row]
