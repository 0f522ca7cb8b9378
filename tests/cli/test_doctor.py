"""``tkperf doctor`` prints first a verdict and then the facts. For a file, doctor omits all rows that apply only to
drives.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from tkperf.cli.main import cli
from tkperf.device.safety import Objection, Reason
from tkperf.engine.registry import find_engine
from tkperf.host.audit import Audit, AuditLevel, AuditResult
from tkperf.model.errors import UsageError
from tkperf.page.doctor import build_device_page, build_host_page, build_restored_page, build_tune_page
from tkperf.page.page import ReportView
from tkperf.page.verdict_texts import NoteLevel
from tkperf.pipeline import diagnosis
from tkperf.pipeline.diagnosis import TOOLS, HostDiagnosis
from tkperf.render.export_json import build_verdict
from tkperf.render.terminal.page_text import print_page
from tkperf.system.installation import Gap, Installation, Way

OK = AuditResult(subject="CPU governor", level=AuditLevel.OK, found="performance", why="clocks")
ADVICE = AuditResult(subject="idle states", level=AuditLevel.ADVICE, found="C6", why="sleep", command="x")
DISTURBS = AuditResult(subject="link", level=AuditLevel.DISTURBS, found="x1", why="narrow", otherwise="move")
UNKNOWN = AuditResult(subject="turbo", level=AuditLevel.NOT_KNOWN, found="not known: no file", why="clocks")
INSTALLED = Installation(
    way=Way.MAKE_INSTALL,
    place=Path("/usr/local/lib/tkperf/tree-1"),
    program=Path("/usr/local/bin/tkperf"),
    in_container=False,
    gaps=(),
)
HOST = HostDiagnosis(
    host={},
    engine="fio-3.33",
    could_measure=True,
    missing=(),
    packages=(),
    remarks=(),
    audit=Audit(),
    installation=INSTALLED,
)


def drawn(page: ReportView, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_page(page, console, titled=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def a_device(*findings: AuditResult, **more: Any) -> dict[str, Any]:
    facts = {"path": "/dev/sdb", "kind": "block device", "link_downgraded": None, "serial": None}
    return {
        "facts": facts | {"sources": {"path": "kernel"}, "gaps": []},
        "objections": [],
        "data": [],
        "purge_methods": [],
        "purge_refusals": [],
        "confirm_id": "S1",
        "host": Audit(findings).as_plain_data(),
        "telemetry": {"facts": None, "reading": None},
    } | more


def test_a_file_is_not_asked_for_what_only_drives_have(tmp_path: Path) -> None:
    """The output for a file has no empty row. doctor does not mention ``--purge``, because a file has only one purge
    method.
    """
    file = tmp_path / "scratch.img"
    file.write_bytes(bytes(8192))
    done = CliRunner().invoke(cli, ["doctor", str(file)])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].startswith("Can be tested")
    of_device, title, _ = done.output.partition("Purge methods")
    assert title
    assert "not known" not in of_device
    assert "8,192 bytes" in done.output
    assert "hole-punching" in done.output
    assert "--purge" not in done.output


def test_a_simulated_drive_is_called_one() -> None:
    """doctor describes a simulated drive as a model that can be tested. Such a drive has no host settings to tune."""
    done = CliRunner().invoke(cli, ["doctor", "sim:client-tlc"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("SIMULATED. Can be tested: a model, no device; ")
    found = json.loads(CliRunner().invoke(cli, ["doctor", "sim:client-tlc", "--json"]).output)
    assert (found["could_be_tested"], found["facts"]["kind"]) == (True, "simulated drive")
    for words in (["tune"], ["doctor", "--unlock"]):
        done = CliRunner().invoke(cli, [*words, "sim:client-tlc"])
        assert isinstance(done.exception, UsageError)
        assert str(done.exception).startswith("sim:client-tlc is a simulated drive, which has no device")
    done = CliRunner().invoke(cli, ["doctor", "sim:nothing"])
    assert isinstance(done.exception, UsageError)


def test_what_disturbs_stands_first_and_nothing_is_left_out() -> None:
    """Findings about conditions that affect a measurement are printed first, with reason and remedy. Each finding that
    requires no action takes one line.
    """
    text = drawn(build_device_page(a_device(OK, UNKNOWN, ADVICE, DISTURBS)))
    assert 0 < text.index("link: would disturb, x1") < text.index("idle states: advice, C6")
    assert text.index("why: narrow") < text.index("do:  move") < text.index("why: sleep")
    assert text.endswith("  CPU governor: ok, performance\n  turbo: not known: no file\n")


@pytest.mark.parametrize(
    ("device", "says", "level"),
    [
        (a_device(OK), "Can be tested: no disturbance was found", NoteLevel.INFORMATION),
        (a_device(ADVICE), "Can be tested: 1 thing may disturb a run (idle states)", NoteLevel.INFORMATION),
        (
            a_device(ADVICE, DISTURBS, data=["ext4"]),
            "Can be tested with cautions: it holds ext4; 1 thing would disturb a run (link); 1 thing may "
            "disturb a run (idle states)",
            NoteLevel.CAUTION,
        ),
        (
            a_device(objections=[{"reason": "mounted", "text": "/dev/sdb is mounted at /mnt"}]),
            "Cannot be tested: /dev/sdb is mounted at /mnt",
            NoteLevel.FAILURE,
        ),
        (
            a_device(objections=[{"reason": "mounted", "text": f"mounted at {n}"} for n in (1, 2)]),
            "Cannot be tested: 2 objections",
            NoteLevel.FAILURE,
        ),
    ],
)
def test_a_device_has_a_verdict(device: dict[str, Any], says: str, level: NoteLevel) -> None:
    """The page of a device names each objection in its verdict or below the verdict. The line that explains how to give
    consent appears only if the device can be tested.
    """
    page = build_device_page(device)
    assert (page.verdict.text, page.verdict.level) == (says, level)
    text = drawn(page, 200)
    assert text.startswith(says)
    assert all(objection["text"] in text for objection in device["objections"])
    assert ("--yes-destroy S1" in text) is (level is not NoteLevel.FAILURE)


@pytest.mark.parametrize(
    ("host", "says", "level"),
    [
        (HOST, "Can measure: nothing is missing, and no disturbance was found", NoteLevel.INFORMATION),
        (
            replace(HOST, missing=("nvme",), packages=("nvme-cli",)),
            "Can measure with cautions: nvme is missing",
            NoteLevel.CAUTION,
        ),
        (
            replace(HOST, audit=Audit((DISTURBS,))),
            "Can measure with cautions: 1 thing would disturb a run (link)",
            NoteLevel.CAUTION,
        ),
        (
            replace(HOST, missing=("fio", "flock"), could_measure=False),
            "Cannot measure: fio, flock are missing",
            NoteLevel.FAILURE,
        ),
        (
            replace(HOST, engine="fio-3.1 is too old", could_measure=False),
            "Cannot measure: fio-3.1 is too old",
            NoteLevel.FAILURE,
        ),
    ],
)
def test_a_host_has_a_verdict(host: HostDiagnosis, says: str, level: NoteLevel) -> None:
    page = build_host_page(host.as_plain_data())
    assert (page.verdict.text, page.verdict.level) == (says, level)
    text = drawn(page, 200)
    assert all(name in text for name in TOOLS)
    assert text.count("MISSING") == len(host.missing)
    assert ("sudo apt-get install nvme-cli" in text) is (host.packages == ("nvme-cli",))


def a_setting(**changed: Any) -> dict[str, Any]:
    return {
        "subject": "CPU governor",
        "path": "/sys/0",
        "now": "powersave",
        "wanted": "performance",
        "why": "clocks",
        "offered": True,
        "drive": None,
    } | changed


def test_settings_have_a_verdict() -> None:
    """The page lists the settings that would be changed, were changed, or remain unchanged. A setting that tkperf tunes
    is not listed among the settings that the user must change.
    """
    stays, alike = a_setting(now="performance"), a_setting(path="/sys/1")
    document: dict[str, Any] = {
        "settings": [a_setting(), alike, a_setting(subject="x", offered=False), a_setting(wanted=None)],
        "changed": [],
        "host": Audit((replace(DISTURBS, subject="CPU governor"), ADVICE)).as_plain_data(),
    }
    page = build_tune_page(document, applied=False, is_file=False)
    assert page.verdict.text == (
        "2 settings would be changed, nothing was set: 1 thing may disturb a run (idle states)"
    )
    assert page.verdict.level is NoteLevel.CAUTION
    text = drawn(page)
    assert "CPU governor: powersave -> performance" in text
    assert "/sys/0 and 1 more" in text
    assert "x: powersave, stays (performance is not offered)" in text
    applied = build_tune_page(document | {"changed": ["/sys/0: powersave -> performance"]}, applied=True, is_file=False)
    assert applied.verdict.title == "1 setting changed and verified"
    assert "sudo tkperf tune --restore" in drawn(applied)
    fine = build_tune_page(document | {"settings": [stays]}, applied=False, is_file=True)
    assert (fine.verdict.title, fine.verdict.level) == ("Nothing to change", NoteLevel.INFORMATION)
    assert "the queue of the drive below a file is not changed" in drawn(fine)
    restored = {"put_back": [], "left": [], "failed": [], "kept_for": [], "rebooted": False}
    for changed, says, level in (
        ({}, "Nothing to put back", NoteLevel.INFORMATION),
        ({"put_back": ["a", "b"]}, "2 settings put back", NoteLevel.INFORMATION),
        ({"left": ["a"]}, "Nothing put back", NoteLevel.CAUTION),
        ({"failed": ["a"]}, "Nothing put back", NoteLevel.FAILURE),
    ):
        verdict = build_restored_page(restored | changed).verdict
        assert (verdict.text, verdict.level) == (says, level)


def test_lines_have_whole_words_and_commands_can_be_copied() -> None:
    """Lines break between words at 80 columns. A long command is broken with a backslash, so that a shell reads the
    lines as one command.
    """
    command = f"echo performance | sudo tee /sys/{'devices/' * 6}scaling_governor"
    words = "a word next to another word " * 8
    finding = replace(DISTURBS, found=words, why=words, command=command, otherwise=None)
    lines = drawn(build_device_page(a_device(finding))).splitlines()
    assert max(map(len, lines)) <= 80
    known = {*words.split(), "link:", "would", "disturb,", "why:"}
    begun = next(number for number, line in enumerate(lines) if "link: would disturb" in line)
    ended = next(number for number, line in enumerate(lines) if "sudo tee" in line)
    assert {word for line in lines[begun:ended] for word in line.split()} <= known
    assert lines[ended].endswith(" \\")
    joined = lines[ended].removesuffix("\\") + lines[ended + 1]
    assert joined.split() == command.split()


@pytest.mark.parametrize(
    ("call", "state"),
    [
        (["doctor", "sim:client-tlc"], "can be tested"),
        (["plan", "ssd", "x", "sim:client-tlc"], "can run"),
        (["status"], "valid"),
    ],
)
def test_each_document_has_its_verdict(
    call: list[str], state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each JSON document contains the findings of the command under the key ``verdict``, with the same parts as the
    verdict of a run.
    """
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, [*call, "--json"])
    assert done.exit_code == 0, done.output
    verdict = json.loads(done.stdout)["verdict"]
    assert set(verdict) == {"state", "simulated", "text", "reasons"}
    assert verdict["state"] == state or call == ["status"]


def test_reasons_have_codes() -> None:
    """In the JSON verdict on a device, each reason has a code and the names to which the reason applies."""
    page = build_device_page(a_device(ADVICE, DISTURBS, data=["ext4"]))
    verdict = build_verdict(page.verdict)
    assert verdict["state"] == "can be tested with cautions"
    assert [(one["code"], one["names"]) for one in verdict["reasons"]] == [
        ("holds-data", ("ext4",)),
        ("would-disturb", ("link",)),
        ("may-disturb", ("idle states",)),
    ]


@pytest.mark.parametrize("names", [1, 2])
def test_fio_reads_no_device_that_cannot_be_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: int) -> None:
    """If another program uses or measures a drive, doctor does not read the drive, because reads would disturb that
    program.
    """
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 16))
    for number in range(1, names):
        (tmp_path / f"name-{number}").hardlink_to(image)
    read: list[bool] = []

    def audit_for(_: object, *, lasts_s: float, read_device: bool) -> Audit:
        read.append(read_device)
        return Audit()

    monkeypatch.setattr(diagnosis, "audit_for", audit_for)
    assert bool(diagnosis.diagnose_device(str(image)).objections) is (names > 1)
    assert read == [names == 1]


def test_the_page_states_how_tkperf_was_installed() -> None:
    """The page about the host states how tkperf was installed. It also lists each missing component with its remedy."""
    gap = Gap(text="sudo does not find tkperf", command="sudo /home/a/.local/bin/tkperf")
    installed = replace(INSTALLED, way=Way.PIPX, in_container=True, gaps=(gap, Gap(text="no Parquet")))
    page = drawn(build_host_page(replace(HOST, installation=installed).as_plain_data()), width=200)
    assert "installed as pipx install in /usr/local/lib/tkperf/tree-1, in a container" in page
    for words in (gap.text, gap.command, "no Parquet"):
        assert words is not None
        assert words in page


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((3, 33), ["rounds a queue depth up", "flushes too often", "does not report when its jobs began"]),
        ((3, 36), ["rounds a queue depth up", "flushes too often"]),
        ((3, 38), ["rounds a queue depth up"]),
        ((3, 39), []),
        ((3, 42), []),
    ],
)
def test_the_limits_of_a_version_of_fio(
    monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, int], words: list[str]
) -> None:
    """doctor lists what the installed version of fio cannot do. The limits do not change the verdict."""
    version = f"fio-{numbers[0]}.{numbers[1]}"
    monkeypatch.setattr("tkperf.engine.fio_setup._read_version", lambda: (version, numbers))
    limits = find_engine().find_limits()
    assert [word in sentence for word, sentence in zip(words, limits, strict=True)] == [True] * len(words)
    page = drawn(build_host_page(replace(HOST, engine=version, engine_limits=limits).as_plain_data()), width=400)
    assert (f"What {version} cannot do" in page) is bool(words)
    assert all(sentence in page for sentence in limits)
    assert page.startswith("Can measure: ")


def test_a_container_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, doctor states that block devices cannot be tested, and lists the targets that can be tested."""
    objection = Objection(Reason.NARROW_VIEW, "from a container, tkperf sees little")
    monkeypatch.setattr(diagnosis, "find_view_objections", lambda: iter([objection]))
    monkeypatch.setattr(diagnosis, "audit_for", lambda *_, **__: Audit())
    says = "block devices cannot be tested from here, files and sim: can: from a container, tkperf sees little"
    assert says in diagnosis.diagnose_host().remarks
