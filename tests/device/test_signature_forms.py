"""tkperf finds the signatures in every output format of wipefs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.printed_forms import Printed, load_forms
from tkperf.device import content
from tkperf.device.content import describe_unknown_data, find_signatures
from tkperf.model.errors import DeviceError
from tkperf.system.process import Completed


def said(form: str, **fields: str) -> Printed:
    return load_forms("wipefs")[form].fill(**fields)


def find(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    def run(argv: Sequence[str], *, timeout_s: float) -> Completed:
        assert argv[:3] == ["wipefs", "--json", "--no-act"]
        assert timeout_s > 0
        return Completed(exit_status=printed.status, stdout=printed.stdout, stderr=printed.stderr)

    monkeypatch.setattr(content, "run_command", run)
    return [str(each) for each in find_signatures({"/dev/sdx": "/proc/self/fd/9"})]


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        (said("none"), []),
        (said("none-of-debian-11"), []),
        (
            said("file-system", OFFSET="438", TYPE="ext2", UUID='"a2d52782"', LABEL=r'"la\"bel"'),
            ["ext2 'la\"bel' on /dev/sdx"],
        ),
        (said("file-system", OFFSET="ff6", TYPE="swap", UUID='"d1f9"', LABEL="null"), ["swap on /dev/sdx"]),
        (
            said("file-system", OFFSET="1000", TYPE="linux_raid_member", UUID='"0c67"', LABEL='"any:9"'),
            ["MD RAID member 'any:9' on /dev/sdx"],
        ),
        (said("partition-table"), ["gpt on /dev/sdx", "PMBR on /dev/sdx"]),
    ],
)
def test_signatures_are_read_from_each_form(
    printed: Printed, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """tkperf finds the signatures in each form. The two signatures of a partition table count once, because they have
    the same kind. A signature may have no label.
    """
    assert find(printed, monkeypatch) == found


def test_a_device_that_wipefs_cannot_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """If wipefs cannot read a device, tkperf reports an error. An unreadable device never counts as a device without
    data.

    The error contains the name of the device that the user gave.
    """
    printed = said("unreadable", PATH="/proc/self/fd/x", WHY="Input/output error")
    with pytest.raises(DeviceError, match="tkperf cannot check whether /dev/sdx contains data: wipefs: error"):
        find(printed, monkeypatch)


def test_a_question_quotes_only_short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The consent question quotes labels and titles as short lines without control characters, because other users may
    have written these texts.

    The question may be shown on another host, to a user who is not allowed to read the file.
    """
    label = r'"a\u001b[31m' + "\u202e" + r"b\nc" + "x" * 300 + '"'
    (found,) = find(said("file-system", OFFSET="438", TYPE="ext2", UUID='"a2"', LABEL=label), monkeypatch)
    assert found == f"ext2 'a[31mb c{'x' * 192}' on /dev/sdx"
    title = "Microsoft Word\x1b]0;x\x07, Title: a\r\n\tb" + "x" * 300 + "\n"

    def run(_: Sequence[str], *, timeout_s: float) -> Completed:
        assert timeout_s > 0
        return Completed(exit_status=0, stdout=title, stderr="")

    monkeypatch.setattr(content, "find_program", lambda name: name)
    monkeypatch.setattr(content, "run_command", run)
    (unknown,) = describe_unknown_data("/root/a", "/proc/self/fd/9")
    quoted = "Microsoft Word]0;x, Title: a b"
    assert unknown.kind == f"data that looks like {quoted}{'x' * (200 - len(quoted))}"
