"""Purging with the drives' own commands. Stand-ins replace the tools, because no emulator supports these commands."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.device.fakes import HDPARM, NVME, SG_ERASE, SG_OPCODES, SG_REQUESTS, FakeTools
from tests.printed_forms import find_form, load_forms
from tkperf.device.hold import Handle
from tkperf.device.identity import DeviceIdentity, TargetKind, read_identity
from tkperf.device.inspection import AtaSecurity, parse_identify
from tkperf.device.permit import ErasePermit, grant_permit, hold_target
from tkperf.device.purge import (
    PurgePlan,
    PurgeWatch,
    ata,
    base,
    nvme,
    plan_purge,
    purge_plan,
    refuse_purge_under_way,
    run_purge,
    scsi,
)
from tkperf.device.purge.base import NO_WATCH, Offer, PurgeMethod, PurgeRefusal
from tkperf.device.purge.sense import parse_sense
from tkperf.device.safety import Reason
from tkperf.model.errors import DeviceError, EngineError, RefusedError, UsageError
from tkperf.model.units import MIB
from tkperf.pipeline.diagnosis import _find_erase


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    """Install the stand-ins, and remove the waiting time between two status requests."""
    monkeypatch.setattr(base, "_POLL_S", 0.0)
    made = FakeTools(tmp_path / "tools", monkeypatch)
    made.install("hdparm", HDPARM)
    made.install("nvme", NVME)
    made.install("sg_opcodes", SG_OPCODES)
    made.install("sg_requests", SG_REQUESTS)
    for name in ("sg_sanitize", "sg_format"):
        made.install(name, SG_ERASE)
    return made


@pytest.fixture
def drive(tmp_path: Path, tools: FakeTools) -> DeviceIdentity:
    """Return the identity of a file that is full of data. In the tests, the file stands for a SATA drive."""
    path = tmp_path / "drive"
    path.write_bytes(bytes(range(1, 256)) * 8224)
    tools.update(drive=str(path))
    return replace(read_identity(path), interface="SATA")


@pytest.fixture
def permit(drive: DeviceIdentity) -> Iterator[ErasePermit]:
    granted = grant_permit(hold_target(drive), confirmed_id=drive.confirm_id).redeem()
    yield granted
    granted.release()


def by_name(offers: tuple[Offer, ...]) -> dict[str, Offer]:
    return {offer.name: offer for offer in offers}


def because(offer: Offer) -> str:
    assert isinstance(offer, PurgeRefusal)
    return offer.because


def method(offer: Offer) -> PurgeMethod:
    assert isinstance(offer, PurgeMethod)
    return offer


def chosen(offers: tuple[Offer, ...], name: str | None = None) -> PurgeMethod:
    plan = PurgePlan(
        methods=tuple(each for each in offers if isinstance(each, PurgeMethod)),
        refusals=tuple(each for each in offers if isinstance(each, PurgeRefusal)),
    )
    return plan.choose(name, device="/dev/sdx")


# ATA Security


def test_security_erase_leaves_no_password(tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit) -> None:
    """Security erase uses the enhanced form if the drive reports support for it. tkperf records the password before it
    sets the password, and clears the password after the erase.
    """
    tools.update(supported=True, enhanced=True)
    notes: list[tuple[str, int]] = []

    def note(code: str, _text: str) -> None:
        notes.append((code, len(tools.commanded("--security-set-pass"))))

    best = chosen(ata.offer_ata(drive))
    assert best.name == "ata-security-erase-enhanced"
    found = run_purge(permit, best, watch=PurgeWatch(note=note))
    assert found == "verified: all 128 samples read as zeros"
    assert notes == [("ata-password-set", 0), ("ata-password-cleared", 1)]
    assert not tools.state["enabled"]
    assert len(tools.commanded("--security-erase-enhanced")) == 1


def test_a_failed_erase_takes_the_password_away(tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit) -> None:
    """If the drive refuses to erase, tkperf clears the password and ends the test, so that the drive does not remain
    locked.
    """
    tools.update(supported=True, erase_fails=True)
    with pytest.raises(DeviceError, match="ended with status 5: SECURITY_ERASE: Input/output error"):
        run_purge(permit, chosen(ata.offer_ata(drive)))
    assert not tools.state["enabled"]
    assert tools.commanded("--security-disable")


def test_an_erase_that_hangs_is_given_up(
    tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an erase does not end, tkperf stops waiting after a time limit and then removes the password."""
    monkeypatch.setattr(ata, "LEAST_ERASE_LIMIT_S", 0.5)
    monkeypatch.setattr(ata, "ERASE_LIMIT_FACTOR", 0)
    tools.update(supported=True, erase_hangs=True)
    with pytest.raises(DeviceError, match="did not end within"):
        run_purge(permit, chosen(ata.offer_ata(drive)))
    assert not tools.state["enabled"]


@pytest.mark.parametrize(("minutes", "limit_s"), [(None, 1800.0), (2, 1800.0), (480, 4 * 8 * 3600.0)])
def test_the_time_for_an_erase_follows_from_the_drives_estimate(
    minutes: int | None, limit_s: float, permit: ErasePermit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit of an erase is four times the drive's estimate, and at least half an hour. An interrupted erase
    would leave the drive locked.
    """
    limits: list[float] = []

    def erase(_device: Handle, _watch: PurgeWatch, *, enhanced: bool, limit_s: float) -> None:
        assert not enhanced
        limits.append(limit_s)

    monkeypatch.setattr(ata, "_security_erase", erase)
    monkeypatch.setattr(ata, "read_security", lambda _path: AtaSecurity(supported=True, erase_minutes=minutes))
    method(by_name(ata.offer_ata(permit.identity))["ata-security-erase"]).act(permit, PurgeWatch())
    assert limits == [limit_s]


def test_a_drive_that_ignores_the_password_is_not_believed(
    tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit
) -> None:
    """After tkperf has set the password, it reads the identify data, because some drives ignore the password although
    hdparm ends with status 0. If no password is set, the erase is refused.
    """
    tools.update(supported=True, deaf=True)
    with pytest.raises(DeviceError, match="but did not set it"):
        run_purge(permit, chosen(ata.offer_ata(drive)))
    assert not tools.commanded("--security-erase")


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"supported": True, "frozen": True}, "froze its security state"),
        ({"supported": True, "enabled": True, "locked": True}, "doctor --unlock"),
        ({"supported": True, "enabled": True}, "protected by a password"),
        ({}, "claims no security feature set"),
        ({"garbage": True}, "no identify data"),
    ],
)
def test_security_states_that_rule_it_out(
    tools: FakeTools, drive: DeviceIdentity, state: dict[str, object], says: str
) -> None:
    """Security erase is not offered if the drive is frozen, locked or already protected with a password, or if the
    drive does not support the feature. It is also not offered if the state of the drive cannot be read.
    """
    tools.update(**state)
    assert says in because(by_name(ata.offer_ata(drive))["ata-security-erase"])


def test_the_next_start_can_unlock(tools: FakeTools, drive: DeviceIdentity) -> None:
    """If a run was killed between setting the password and the end of the erase, tkperf unlocks the drive at its next
    start.
    """
    tools.update(supported=True, enabled=True, locked=True, password=ata.PASSWORD)
    assert ata.clear_password(Handle(name=drive.path, path=drive.path))
    assert not tools.state["enabled"]
    assert not ata.clear_password(Handle(name=drive.path, path=drive.path))


def test_somebody_elses_password_is_reported(tools: FakeTools, drive: DeviceIdentity) -> None:
    """If the password of a drive was not set by tkperf, tkperf cannot clear this password. The error states that the
    password is not the password of tkperf.
    """
    tools.update(supported=True, enabled=True, locked=True, password="secret")
    with pytest.raises(DeviceError, match="is not the password of tkperf"):
        ata.clear_password(Handle(name=drive.path, path=drive.path))


def test_identify_data_of_another_program_are_refused() -> None:
    """Unusable identify data leads to an error, and never counts as "not supported"."""
    with pytest.raises(EngineError, match="no identify data"):
        parse_identify("hello", path="/dev/sdx")


# ATA Sanitize


def test_sanitize_is_preferred_and_watched(tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit) -> None:
    """If the drive reports support for ATA Sanitize with block erase, tkperf prefers sanitize to security erase,
    because sanitize needs no password. tkperf reports the progress of the sanitize.
    """
    tools.update(supported=True, sanitize=["BLOCK_ERASE_EXT"], sanitize_takes_polls=2)
    seen: list[float | None] = []
    best = chosen(ata.offer_ata(drive))
    assert best.name == "ata-sanitize-block"
    found = run_purge(permit, best, watch=PurgeWatch(progress=seen.append))
    assert found == "verified: none of 128 samples holds its former data"
    assert seen == [0.25, 0.25]
    assert tools.commanded(ata.CONSENT)


def test_a_failed_sanitize_ends_the_test(tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit) -> None:
    """A failed sanitize ends the test. A drive in state SD3 (sanitize operation failed) aborts even the command that
    reads this state. hdparm then prints the reason and ends with status 5.
    """
    tools.update(sanitize=["BLOCK_ERASE_EXT"], sanitize_takes_polls=1, sanitize_fails=True)
    with pytest.raises(DeviceError, match=r"the last sanitize of \S+ failed \(state SD3\)"):
        run_purge(permit, chosen(ata.offer_ata(drive)))


def test_a_sanitize_that_reports_no_success_is_not_believed(
    tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a drive is idle but does not report "Completed Without Error", the purge fails. Such a drive was not
    sanitized, or has lost the state of its sanitize.
    """
    tools.update(sanitize=["BLOCK_ERASE_EXT"])
    method = chosen(ata.offer_ata(drive))
    monkeypatch.setattr(ata, "run_tool", lambda *_, **__: None)
    with pytest.raises(DeviceError, match="ended its sanitize without reporting success"):
        run_purge(permit, method)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"sanitize_frozen": True}, "frozen until its power is switched off and on"),
        ({"registers_missing": True}, "could not see when a sanitize has ended"),
    ],
)
def test_a_sanitize_whose_start_or_end_is_hidden_is_not_offered(
    tools: FakeTools, drive: DeviceIdentity, state: dict[str, object], says: str
) -> None:
    """Sanitize is not offered if the drive is in the sanitize frozen state, or if the adapter returns no registers.
    tkperf then chooses the next method.
    """
    tools.update(supported=True, sanitize=["BLOCK_ERASE_EXT", "CRYPTO_SCRAMBLE_EXT"], **state)
    offers = by_name(ata.offer_ata(drive))
    assert says in because(offers["ata-sanitize-block"])
    assert says in because(offers["ata-sanitize-crypto"])
    assert chosen(ata.offer_ata(drive)).name == "ata-security-erase"


@pytest.mark.parametrize("state", [{"sanitized": True}, {"fails": True}, {}])
def test_a_sanitize_is_offered_after_any_end_of_the_last(
    tools: FakeTools, drive: DeviceIdentity, state: dict[str, object]
) -> None:
    """tkperf offers sanitize whether the last sanitize succeeded, failed or never ran, because a successful sanitize
    ends a failure state.
    """
    tools.update(sanitize=["BLOCK_ERASE_EXT"], **state)
    assert chosen(ata.offer_ata(drive)).name == "ata-sanitize-block"


def test_a_drive_whose_sanitize_failed_is_refused(tools: FakeTools, drive: DeviceIdentity) -> None:
    """A drive whose last sanitize failed is refused, because it would fail every read and write. The error contains the
    command that makes the drive usable again.
    """
    tools.update(sanitize=["BLOCK_ERASE_EXT"], fails=True)
    with pytest.raises(DeviceError, match="--sanitize-block-erase"):
        ata.find_ata_sanitize(drive.path)


def test_overwriting_is_never_chosen_by_itself(tools: FakeTools, drive: DeviceIdentity) -> None:
    """tkperf overwrites a drive only if the user selects this method, because overwriting wears flash."""
    tools.update(sanitize=["OVERWRITE_EXT"])
    with pytest.raises(DeviceError, match="offers no purge method"):
        chosen(ata.offer_ata(drive))
    assert chosen(ata.offer_ata(drive), "ata-sanitize-overwrite")
    with pytest.raises(UsageError, match="claims no sanitize by block erase"):
        chosen(ata.offer_ata(drive), "ata-sanitize-block")


@pytest.mark.parametrize(("version", "title", "passes"), [("9.65", "1 pass", True), ("9.60", "16 passes", False)])
def test_a_drive_is_overwritten_once_if_hdparm_can_ask_for_it(
    tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit, version: str, title: str, passes: bool
) -> None:
    """tkperf requests a single overwrite pass if hdparm has an option for it. Otherwise the drive makes 16 passes. The
    title of the method contains the number of passes.
    """
    tools.update(sanitize=["OVERWRITE_EXT"], version=version)
    method = chosen(ata.offer_ata(drive), "ata-sanitize-overwrite")
    assert method.title == f"ATA Sanitize, overwrite, {title}"
    run_purge(permit, method)
    (call,) = tools.commanded("--sanitize-overwrite")
    assert ("--sanitize-overwrite-passes" in call) is passes
    assert call[-2:] == ["hex:00000000", permit.path]


# NVMe


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return the sysfs folder of the only namespace of an NVMe controller."""
    controller = tmp_path / "sys/nvme0"
    (controller / "nvme0n1/queue").mkdir(parents=True)
    (controller / "nvme0n1/dev").write_text("259:0\n")
    (controller / "transport").write_text("pcie\n")
    (controller / "nvme0n1/device").symlink_to(controller)
    return controller / "nvme0n1"


def add_sibling(disk: Path) -> None:
    (disk.parent / "nvme0n2/queue").mkdir(parents=True)
    (disk.parent / "nvme0n2/dev").write_text("259:1\n")


NVME_CLI = ("1.16", "2.0", "2.3", "2.5", "2.8", "2.11", "2.13", "2.16", "3.0-rc1")


@pytest.mark.parametrize(("version", "erased"), [("1.16", 0), ("2.3", 1), ("2.8", 0), ("2.13", 1), ("3.0-rc1", 0)])
def test_nvme_sanitize(
    tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit, disk: Path, version: str, erased: int
) -> None:
    """With every version of nvme-cli, tkperf offers sanitize according to the capabilities of the controller, and
    watches the sanitize until it ends.

    Only the status in the sanitize log determines whether the sanitize succeeded.
    """
    tools.update(controller={"sanicap": 2}, namespace={"dlfeat": 1}, polls=2, version=version, erased=erased)
    best = chosen(nvme.offer_nvme(drive, disk))
    assert best.name == "nvme-sanitize-block"
    seen: list[float | None] = []
    found = run_purge(permit, best, watch=PurgeWatch(progress=seen.append))
    assert found == "verified: all 128 samples read as zeros"
    assert seen == [0.5, 0.5]
    assert "--sanact=2" in tools.commanded("sanitize")[0]


@pytest.mark.parametrize("name", ["nvme-format", "nvme-sanitize-block"])
def test_nvme_commands_get_the_name_of_the_kernel(
    tools: FakeTools, disk: Path, loop_device: Callable[..., Path], tmp_path: Path, name: str
) -> None:
    """nvme commands receive the kernel's name of the held device, because nvme-cli 3.0 opens only names in /dev. When
    tkperf calls nvme, the name that the user gave may already refer to another device.
    """
    first, second = loop_device(size=MIB), loop_device(size=MIB)
    node = tmp_path / "disk"
    os.mknod(node, 0o600 | stat.S_IFBLK, first.stat().st_rdev)
    identity = read_identity(node)
    tools.update(drive=str(first), controller={"oacs": 2, "sanicap": 2}, namespace={}, polls=1)
    offers = nvme.offer_nvme(identity, disk)
    permit = grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem()
    node.unlink()
    os.mknod(node, 0o600 | stat.S_IFBLK, second.stat().st_rdev)
    chosen(offers, name).act(permit, NO_WATCH)
    permit.release()
    command = name.split("-")[1]
    assert tools.commanded(command)[0][2] == str(first)
    asked = {call[-1] for call in tools.commanded("sanitize-log")}
    assert asked <= {str(first)}
    assert asked or command != "sanitize"


@pytest.mark.parametrize(
    ("version", "ends", "says"),
    [
        ("1.16", 3, "--sanact=1"),
        ("2.3", 3, "--sanact=1"),
        ("2.8", 3, "--sanact=1"),
        ("2.13", 3, "--sanact=1"),
        ("2.8", 0, "never sanitized"),
        ("2.3", 5, "does not know the status"),
        ("3.0-rc1", 7, "does not know the status"),
    ],
)
def test_nvme_sanitize_that_fails(
    tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit, disk: Path, version: str, ends: int, says: str
) -> None:
    """If the sanitize log reports a failure, the purge fails. The exit status of the command does not matter.

    A reserved status in the log does not count as success.
    """
    tools.update(controller={"sanicap": 2}, namespace={}, polls=1, ends=ends, version=version)
    with pytest.raises(DeviceError, match=says):
        run_purge(permit, chosen(nvme.offer_nvme(drive, disk)))
    assert len(tools.commanded("sanitize-log")) == 2


@pytest.mark.parametrize("version", NVME_CLI)
def test_nvme_sanitize_states_before_a_run(version: str, monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    """With every version of nvme-cli, tkperf detects before a run that a sanitize is in progress.

    A drive with a failed sanitize is refused, unless the log shows that the drive has left the failure state, or tkperf
    can read the drive. A drive in the failure state aborts all reads.
    """
    form = find_form("nvme", "sanitize-log", version)
    words = re.findall(r"\(?\\\((\d)\\\) ([^|]*)", form.fields["STATUS"])
    assert len(words) == 8
    for number, text in ((int(each[0]), each[1].replace("\\", "")) for each in words):
        for erased in (0, 1):
            values = {
                "KEY": text if version in ("2.7.1", "2.8") else "status",
                "SPROG": 32768,
                "STATUS": f"({number}) {text}",
                "ERASED": erased,
                "PASSES": 0,
                "STATE": "(0) Idle state",
                "FAILURE": "",
            }
            printed = form.fill(**{name: values[name] for name in form.fields})
            log = json.loads(printed.stdout)
            monkeypatch.setattr(nvme, "_query", lambda *_, log=log: log)
            if number > 4:
                with pytest.raises(DeviceError, match="does not know the status"):
                    nvme.find_nvme_sanitize("/dev/nvme0n1")
            elif number == 3 and "STATE" not in form.fields:
                with pytest.raises(DeviceError, match=r"the last sanitize of \S+ failed"):
                    nvme.find_nvme_sanitize("/nowhere/nvme0n1")
                assert nvme.find_nvme_sanitize(str(scratch)) is None
            else:
                share = nvme.find_nvme_sanitize("/dev/nvme0n1")
                assert share == (0.5 if number == 2 else None)


@pytest.mark.parametrize("version", ["1.16", "2.3", "2.8", "3.0-rc1"])
def test_an_nvme_drive_that_refuses_its_sanitize_log(tools: FakeTools, version: str) -> None:
    """If a drive answers the request for its sanitize log with "Sanitize In Progress", tkperf treats the drive as
    erasing.

    A drive without this log does not support sanitize.
    """
    tools.update(version=version, says="sanitize-log-unsupported")
    with pytest.raises(EngineError, match=r"(?i)invalid.log.page"):
        nvme.find_nvme_sanitize("/dev/nvme0n1")
    tools.update(says="sanitize-log-in-progress")
    assert nvme.find_nvme_sanitize("/dev/nvme0n1") == 0.0


def test_a_drive_that_refuses_its_sanitize_log_is_waited_for(
    tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit, disk: Path
) -> None:
    """If a drive refuses its sanitize log during a sanitize, tkperf waits until the drive answers again. Until then,
    the progress is not known.
    """
    tools.update(controller={"sanicap": 2}, namespace={}, says="sanitize-log-in-progress")
    seen: list[float | None] = []

    def answer_next_time(share: float | None) -> None:
        seen.append(share)
        tools.update(says="")

    best = chosen(nvme.offer_nvme(drive, disk))
    run_purge(permit, best, watch=PurgeWatch(progress=answer_next_time))
    assert seen == [None]


@pytest.mark.parametrize("state", ["(2) Restricted Failure State", "(4) Unrestricted Failure State"])
def test_an_nvme_drive_in_a_failure_state_is_refused(tools: FakeTools, state: str, scratch: Path) -> None:
    """An NVMe drive in a failure state is refused. nvme-cli reports this state since version 2.12. The message contains
    the commands that end the state.
    """
    tools.update(ends=3, state=state)
    with pytest.raises(DeviceError, match=r"the last sanitize of \S+ failed") as refused:
        nvme.find_nvme_sanitize(str(scratch))
    assert f"nvme sanitize --sanact=2 {scratch}" in str(refused.value)
    assert f"nvme sanitize --sanact=1 {scratch}" in str(refused.value)


@pytest.mark.parametrize("wrong", ["no file", "an error", "too short"])
def test_a_drive_that_cannot_be_read_has_not_left_its_failure_state(
    tools: FakeTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """A drive with a failed sanitize is refused if any part of the drive cannot be read. nvme-cli before 2.12 does not
    report the failure state, so only a complete read shows that the drive is usable.
    """
    tools.update(ends=3, version="2.3")
    drive = tmp_path / "drive"
    if wrong != "no file":
        drive.write_bytes(bytes(4095 if wrong == "too short" else 8192))
    if wrong == "an error":

        def fail(*_: object) -> int:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr("tkperf.device.content.os.preadv", fail)
    with pytest.raises(DeviceError, match=r"the last sanitize of \S+ failed"):
        nvme.find_nvme_sanitize(str(drive))


@pytest.mark.parametrize(
    "log",
    [
        {},
        {"sstat": 2},
        {"sstat": {"global_erased": 1}},
        {"sstat": {"status": "Sanitize in Progress."}},
        {"sstat": {"a": "(1) one", "b": "(2) two"}},
        {"sstat": {"status": 1}},
    ],
)
def test_an_unknown_form_of_the_sanitize_log_is_refused(log: dict[str, object]) -> None:
    """A sanitize log in a form that no known version prints is refused, because any number in it could have another
    meaning.
    """
    with pytest.raises(DeviceError, match="does not know the status"):
        nvme._parse_status(log, "/dev/nvme0n1")


@pytest.mark.parametrize("version", ["1.16", "2.13"])
def test_nvme_commands_that_the_drive_refuses(
    tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit, disk: Path, version: str
) -> None:
    """If an NVMe drive rejects Format or Sanitize, the error contains the drive's reason."""
    tools.update(controller={"oacs": 2, "sanicap": 2}, namespace={}, refuses=True, version=version)
    offers = nvme.offer_nvme(drive, disk)
    with pytest.raises(DeviceError, match="a sanitize operation is in progress"):
        run_purge(permit, chosen(offers, "nvme-format"))
    with pytest.raises(DeviceError, match=r"(?i)invalid.field"):
        run_purge(permit, chosen(offers, "nvme-sanitize-block"))


@pytest.mark.parametrize(
    ("capabilities", "siblings", "first"),
    [
        ({"oacs": 2}, False, "nvme-format"),
        ({"oacs": 2}, True, "nvme-format"),
        ({"oacs": 2, "fna": 4, "sanicap": 3}, False, "nvme-format"),
        ({"sanicap": 1}, False, "nvme-sanitize-crypto"),
    ],
)
def test_nvme_methods_by_capability(
    tools: FakeTools, drive: DeviceIdentity, disk: Path, capabilities: dict[str, int], siblings: bool, first: str
) -> None:
    """The capabilities of an NVMe controller determine its purge method. Format with user data erase is preferred to
    sanitize, and sanitize is preferred to crypto erase.
    """
    tools.update(controller=capabilities, namespace={})
    if siblings:
        add_sibling(disk)
    assert chosen(nvme.offer_nvme(drive, disk)).name == first


def test_a_partition_is_offered_no_command_of_its_drive(
    tools: FakeTools, drive: DeviceIdentity, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a partition, tkperf offers no erase command of the drive, because such a command would erase the other
    partitions.
    """
    tools.update(controller={"oacs": 2, "sanicap": 3}, namespace={})
    (disk / "nvme0n1p1").mkdir()
    monkeypatch.setattr(purge_plan, "find_node", lambda _: disk / "nvme0n1p1")
    monkeypatch.setattr(purge_plan, "find_disk", lambda _: disk)
    whole = replace(drive, kind=TargetKind.BLOCK, major_minor="259:0", interface="NVMe")
    assert [offer.name for offer in plan_purge(replace(whole, partition=1)).methods] == ["write-zeroes"]
    assert "nvme-format" in [offer.name for offer in plan_purge(whole).methods]


@pytest.mark.parametrize("attributes", [1, 2])
def test_nvme_format_of_all_namespaces_is_refused(
    tools: FakeTools, drive: DeviceIdentity, disk: Path, attributes: int
) -> None:
    """Format is refused if the controller formats all namespaces together. Format would then also erase namespaces that
    the user did not confirm.
    """
    tools.update(controller={"oacs": 2, "fna": attributes, "sanicap": 2}, namespace={})
    add_sibling(disk)
    offers = by_name(nvme.offer_nvme(drive, disk))
    assert "other namespaces too: nvme0n2" in because(offers["nvme-format"])
    assert "other namespaces too: nvme0n2" in because(offers["nvme-sanitize-block"])


def test_nvme_format_keeps_format_and_protection(
    tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit, disk: Path
) -> None:
    """Format NVM does not change the LBA format (number 17 in this test, which needs the upper bits of the format
    index), the position of the metadata or the protection information. tkperf passes the time limit of six hours in ms.
    """
    tools.update(controller={"oacs": 2}, namespace={"flbas": 0b0110001 | 1 << 4, "dps": 0b1001, "dlfeat": 0})
    run_purge(permit, chosen(nvme.offer_nvme(drive, disk)))
    (call,) = tools.commanded("format")
    assert {"--lbaf=17", "--ms=1", "--pi=1", "--pil=1", "--ses=1", "--timeout=21600000", "--force"} <= set(call)


# SCSI


def test_scsi_sanitize(tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit) -> None:
    """A SAS SSD that supports block erase is sanitized with block erase. tkperf reports the progress indication of the
    drive.
    """
    sas = replace(drive, interface="SAS", rotational=False)
    tools.update(sanitize=[2], erase_takes_polls=2)
    best = chosen(scsi.offer_scsi(sas))
    assert best.name == "scsi-sanitize-block"
    seen: list[float | None] = []
    found = run_purge(permit, best, watch=PurgeWatch(progress=seen.append))
    assert found == "verified: none of 128 samples holds its former data"
    assert seen == [pytest.approx(0.405, abs=1e-4)] * 2


@pytest.mark.parametrize(
    ("sense", "says"),
    [
        ([3, 0x31, 0x03], "format or sanitize of .* failed"),
        ([3, 0x31, 0x01], "format or sanitize of .* failed"),
        ([4, 0x44, 0x00], "sense key 4h, additional sense 44h/00h"),
        ([2, 0x3A, 0x00], "sense key 2h, additional sense 3ah/00h"),
        ([2, 0x04, 0x02], "sense key 2h, additional sense 04h/02h"),
        ([5, 0x24, 0x00], "sense key 5h"),
    ],
)
def test_an_erase_that_fails_is_no_end(
    tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit, sense: list[int], says: str
) -> None:
    """If an erase failed, the purge fails. The device then indicates no progress, and sg_requests --progress ends with
    status 0, but neither counts as success.
    """
    tools.update(sanitize=[2], erase_takes_polls=1, sense_after=sense)
    with pytest.raises(DeviceError, match=says):
        run_purge(permit, chosen(scsi.offer_scsi(replace(drive, interface="SAS"))))


def test_an_erase_ends_when_the_device_is_ready(tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit) -> None:
    """An erase has ended only when the device is ready. A device that is not ready and indicates no progress may, for
    example, be spinning up, so the erase does not count as ended.
    """
    tools.update(sanitize=[2], erase_takes_polls=2, erase=[0x01])
    seen: list[float | None] = []
    method = chosen(scsi.offer_scsi(replace(drive, interface="SAS")))
    run_purge(permit, method, watch=PurgeWatch(progress=seen.append))
    assert seen == [None, None]


def test_an_erase_whose_end_is_hidden_is_not_offered(tools: FakeTools, drive: DeviceIdentity) -> None:
    """If an adapter returns no sense data, no erase is offered. Without sense data, tkperf would conclude immediately
    that the erase had ended.
    """
    tools.update(sanitize=[2], silent=True)
    offers = by_name(scsi.offer_scsi(replace(drive, interface="SAS")))
    assert "could not see" in because(offers["scsi-sanitize-block"])
    assert "could not see" in because(offers["scsi-format"])


@pytest.mark.parametrize(
    "state",
    [
        {"sanitize": [1]},
        {"sanitize": [], "support": "supported [in a vendor specific manner]"},
        {"sanitize": [], "support": "not currently available"},
        {"no_opcodes": True},
    ],
)
def test_only_the_standards_sanitize_is_offered(tools: FakeTools, drive: DeviceIdentity, state: dict[str, Any]) -> None:
    """Only the SANITIZE command of the SCSI standard is offered, because a vendor-specific command with the same code
    may have any effect.
    """
    tools.update(**state)
    offers = by_name(scsi.offer_scsi(replace(drive, interface="SAS")))
    assert "no sanitize by block erase" in because(offers["scsi-sanitize-block"])


@pytest.mark.parametrize(
    ("protection", "options"),
    [("0", set()), ("1", {"--fmtpinfo=2"}), ("2", {"--fmtpinfo=3", "--pfu=0"}), ("3", {"--fmtpinfo=3", "--pfu=1"})],
)
def test_scsi_format_keeps_protection_information(
    tools: FakeTools,
    drive: DeviceIdentity,
    permit: ErasePermit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    protection: str,
    options: set[str],
) -> None:
    """SCSI Format keeps the protection information of a device. Without additional options, sg_format would remove the
    protection information.
    """
    disk = tmp_path / "disk/device/scsi_disk/0:0:0:0"
    disk.mkdir(parents=True)
    (disk / "protection_type").write_text(protection + "\n")
    monkeypatch.setattr(scsi, "find_disk", lambda _: tmp_path / "disk")
    sas = replace(drive, interface="SAS", rotational=False, major_minor="8:0")
    run_purge(permit, chosen(scsi.offer_scsi(sas), "scsi-format"))
    (call,) = tools.commanded("--format")
    assert {word for word in call if word.startswith(("--fmtpinfo", "--pfu"))} >= options
    assert ("--fmtpinfo" in " ".join(call)) is bool(options)


@pytest.mark.parametrize(
    ("dump", "reads"),
    [
        # These dumps have the descriptor format. The first dump describes a sanitize in progress with a sense key
        # specific descriptor. The second dump contains another kind of progress indication.
        (" 00     72 02 04 1b 00 00 00 08  02 06 00 00 80 80 00 00\n", (2, 0x04, 0x1B, 0.5)),
        (" 00     72 00 04 04 00 00 00 08  0a 06 00 04 04 00 40 00\n", (0, 0x04, 0x04, 0.25)),
        (" 00     72 00 00 00 00 00 00 00\n", (0, 0, 0, None)),
        # These dumps have the fixed format. With another sense key, the same bytes do not indicate progress.
        (" 00     70 00 02 00 00 00 00 0a  00 00 00 00 04 1b 00 80\n 10     40 00\n", (2, 0x04, 0x1B, 0.25)),
        (" 00     70 00 05 00 00 00 00 0a  00 00 00 00 24 00 00 c0\n 10     00 02\n", (5, 0x24, 0, None)),
        (load_forms("sg_requests")["sense-with-padding"].stdout, (0, 0, 0, None)),
        (load_forms("sg_requests")["nothing"].stdout, None),
        (load_forms("sg_requests")["not-ready"].stdout, None),
        (" 00     00 00 00 00 00 00 00 00\n", None),
    ],
)
def test_sense_data_of_both_formats(dump: str, reads: tuple[int, int, int, float | None] | None) -> None:
    """tkperf parses the layouts of sense data that SPC defines, and accepts no other text as sense data."""
    sense = parse_sense(dump)
    found = None if sense is None else (sense.key, sense.code, sense.qualifier, sense.progress)
    assert found == reads


def test_scsi_format_by_kind_of_drive(tools: FakeTools, drive: DeviceIdentity) -> None:
    """A SAS SSD can be purged with Format Unit. tkperf never sends SCSI erase commands through a USB bridge."""
    assert chosen(scsi.offer_scsi(replace(drive, interface="SAS", rotational=False))).name == ("scsi-format")
    usb = by_name(scsi.offer_scsi(replace(drive, interface="USB")))
    assert all("bridges" in because(offer) for offer in usb.values())


def test_missing_tools_are_named_with_their_package(
    drive: DeviceIdentity, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nvme-cli is missing, tkperf offers no erase command, and the reason names the package with nvme-cli."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("tkperf.system.process.SYSTEM_FOLDERS", ())
    offers = nvme.offer_nvme(drive, disk)
    assert "apt-get install nvme-cli" in because(offers[0])


def test_an_interruption_waits_for_the_erase(tools: FakeTools, drive: DeviceIdentity, permit: ErasePermit) -> None:
    """Ctrl-C while the drive erases takes effect only after the erase has ended, and no password remains on the
    drive.
    """
    tools.update(supported=True, erase_takes_s=1.5)

    def interrupt(_share: float | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_purge(permit, chosen(ata.offer_ata(drive)), watch=PurgeWatch(progress=interrupt))
    assert not tools.state["enabled"]
    assert set(Path(drive.path).read_bytes()) == {0}


def test_a_left_password_is_cleared_at_the_next_start(tools: FakeTools, drive: DeviceIdentity) -> None:
    """A SATA drive that an interrupted purge left locked is unlocked at the next start. tkperf sends no unlock command
    to other drives.
    """
    tools.update(supported=True, enabled=True, locked=True, password=ata.PASSWORD)
    assert not ata.clear_left_password(replace(drive, interface="SAS"))
    assert not tools.calls
    assert ata.clear_left_password(drive)
    assert not tools.state["enabled"]


@pytest.mark.parametrize(
    ("bus", "marker", "done"),
    [("NVMe", "device/transport", "50%"), ("SATA", "device/scsi_level", "25%"), ("SAS", "device/scsi_level", "40%")],
)
def test_a_drive_that_still_erases_itself_is_refused(
    bus: str,
    marker: str,
    done: str,
    drive: DeviceIdentity,
    tools: FakeTools,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A drive that is erasing itself is refused until the erase has ended, even if tkperf did not start the erase.

    This rule also applies to doctor and to a partition. If the tool that shows the state of the erase is missing,
    tkperf does not refuse the run.
    """
    disk = tmp_path / "disk"
    (disk / marker).parent.mkdir(parents=True)
    (disk / marker).write_text("pcie\n")
    monkeypatch.setattr(purge_plan, "find_node", lambda _: disk)
    whole = replace(drive, interface=bus, major_minor="8:0")
    tools.update(polls=1, sanitize=["BLOCK_ERASE_EXT"] if bus == "SATA" else [])
    monkeypatch.setattr(purge_plan, "find_interface", lambda _: bus)
    with pytest.raises(RefusedError, match=r"/dev/disk is erasing itself"):
        refuse_purge_under_way(replace(whole, partition=1))
    tools.update(polls=1)
    with pytest.raises(RefusedError, match=rf"is erasing itself \({done} done\).*Nothing was touched"):
        refuse_purge_under_way(whole)
    assert _find_erase(whole) == ()
    tools.update(polls=1)
    (objection,) = _find_erase(whole)
    assert (objection.reason, "is erasing itself" in objection.text) == (Reason.ERASING, True)
    refuse_purge_under_way(whole)
    (tmp_path / "volume/slaves").mkdir(parents=True)
    (tmp_path / "volume/slaves/disk").symlink_to(disk)
    with monkeypatch.context() as changed:
        changed.setattr(purge_plan, "find_node", lambda _: tmp_path / "volume")
        refuse_purge_under_way(replace(whole, interface="device mapper"))
        tools.update(polls=1)
        with pytest.raises(RefusedError, match=r"/dev/disk is erasing itself"):
            refuse_purge_under_way(replace(whole, interface="device mapper"))
    if bus == "SAS":
        # A self-test also reports progress, but it does not erase the drive.
        tools.update(polls=1, erase=[0x09, 26542])
        refuse_purge_under_way(whole)
    tools.update(polls=1)
    monkeypatch.setattr("tkperf.system.process.SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    refuse_purge_under_way(whole)


DATA, OTHER, ZEROS = b"data", b"other", base._ZEROS


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ([DATA, DATA], [OTHER, ZEROS], "verified: none of 2 samples holds its former data"),
        ([DATA, None], [ZEROS, ZEROS], "verified: all 2 samples read as zeros"),
        ([ZEROS, None], [OTHER, ZEROS], "not verifiable: there was nothing but zeros before"),
        ([DATA, DATA], [OTHER, None], "not verified: 1 of 2 samples could not be read"),
        ([DATA, ZEROS], [None, None], "not verified: 2 of 2 samples could not be read"),
        ([DATA, None], [ZEROS, OTHER], "not verified: 1 of 2 samples could not be read"),
    ],
)
def test_samples_that_cannot_be_read_verify_nothing(
    before: list[bytes | None], after: list[bytes | None], says: str
) -> None:
    """An erasure counts as verified in two cases. Either the samples read as zeros, or the samples were read before the
    purge and have changed since.
    """
    looks = [base.SampledContent("/dev/sdx", dict(enumerate(each))) for each in (before, after)]
    assert looks[0].compare(looks[1], method="Format", reads_zero=False) == says


def test_one_sample_that_holds_its_data_is_enough() -> None:
    """If a single sample still contains its data, the purge has failed, because only a part of the device was
    erased.
    """
    before = base.SampledContent("/dev/sdx", {0: ZEROS, 1: DATA, 2: DATA})
    after = base.SampledContent("/dev/sdx", {0: ZEROS, 1: ZEROS, 2: DATA})
    with pytest.raises(DeviceError, match="1 of 2 samples are unchanged, the first at byte 2"):
        before.compare(after, method="Format", reads_zero=False)


def test_zeros_that_are_promised_must_be_readable() -> None:
    """If a device guarantees zeros after a purge, a read error means that the purge failed, just as remaining data
    does.
    """
    before = base.SampledContent("/dev/sdx", {0: DATA, 1: DATA})
    after = base.SampledContent("/dev/sdx", {0: ZEROS, 1: None})
    with pytest.raises(DeviceError, match="1 of 2 samples are not zero"):
        before.compare(after, method="Format", reads_zero=True)


def test_a_device_that_cannot_be_read_after_a_purge(permit: ErasePermit, monkeypatch: pytest.MonkeyPatch) -> None:
    """If samples of the device cannot be read after a purge, the result states that nothing was verified."""
    erased = []
    act = PurgeMethod(name="fake", title="fake", reads_zero=False, act=lambda *_: erased.append(True))
    preadv = os.preadv

    def read(descriptor: int, pages: list[Any], offset: int) -> int:
        if erased and offset == 0:
            raise OSError("Input/output error")
        got = preadv(descriptor, pages, offset)
        return 512 if erased else got

    monkeypatch.setattr(os, "preadv", read)
    assert run_purge(permit, act) == "not verified: 128 of 128 samples could not be read"
