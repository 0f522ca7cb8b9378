"""RAID sets. tkperf detects every mistake that can be detected while the members still contain their data."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tkperf
from tests.device.fakes import STORCLI, FakeTools
from tkperf.cli.main import cli
from tkperf.device import permit
from tkperf.device.identity import read_identity
from tkperf.device.permit import SetPermit
from tkperf.device.raid import storcli
from tkperf.device.raid.config import RaidConfig, load_raid_config
from tkperf.device.raid.mdadm import MdadmSet
from tkperf.device.raid.storcli import StorcliSet
from tkperf.model.errors import DeviceError, RefusedError, TkperfError
from tkperf.model.units import GIB, MIB
from tkperf.pipeline import raid
from tkperf.pipeline.consent import Consent, permit_controller_drives
from tkperf.pipeline.run_plan import RunPlan
from tkperf.pipeline.run_request import RunRequest

# This stand-in for mdadm refuses every command. The test only checks whether tkperf calls it.
MDADM = 'print("mdadm: no", file=sys.stderr); sys.exit(1)'
# In these tests, each of these mistakes makes the run impossible on any device. tkperf detects each mistake in a
# different part of the code.
WRONG = [
    (["--active-range", "12 parsecs"], "'12 parsecs' is not a size"),
    (["--active-range", "120%"], "is not a share"),
    (["-ssdt", "tp", "-nj", "1024"], "too small for 1,024 jobs"),
    (["--profile", "nowhere.toml"], "cannot read profile nowhere.toml"),
    (["--profile", "pts"], "profile 'pts': choose from"),
    (["--no-purge", "--purge", "discard"], "exclude each other"),
]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    monkeypatch.setattr(storcli, "_POLL_S", 0.0)
    made = FakeTools(tmp_path / "tools", monkeypatch)
    made.install("mdadm", MDADM)
    made.install("storcli64", STORCLI)
    drives = {f"252:{slot}": {"State": "UGood", "SN": f"SERIAL{slot}"} for slot in range(2)}
    made.update(drives=drives, vds={}, device="/dev/sdnone", naa="600605b00abc")
    return made


Tkperf = Callable[..., Result]


@pytest.fixture
def tkperf_raid(tmp_path: Path) -> Tkperf:
    """Return a function that runs ``tkperf raid`` in this process."""

    def run(device: str, config: dict[str, Any], *options: str) -> Result:
        path = tmp_path / "raid.json"
        path.write_text(json.dumps(config))
        argv = ["raid", "n", device, "-c", str(path), "--output", str(tmp_path / "out"), *options]
        return CliRunner().invoke(cli, argv)

    return run


@pytest.mark.root
@pytest.mark.fio
@pytest.mark.parametrize(("options", "says"), [*WRONG, ([], "'mdadm --create' failed")])
def test_a_mistake_costs_no_member_of_a_software_raid_its_data(
    tools: FakeTools, tkperf_raid: Tkperf, loop_device: Callable[..., Path], options: list[str], says: str
) -> None:
    """A mistake never destroys the data on the members of a software RAID. mdadm is not called, although the user
    confirmed all members. Without a mistake, mdadm is called.
    """
    members = [loop_device(), loop_device()]
    before = [member.read_bytes() for member in members]
    config = {"devices": list(map(str, members)), "raidlevel": 1, "type": "sw_mdadm"}
    consent = ["--yes-destroy", ",".join(map(str, members))]
    if "--no-purge" not in options:
        consent.append("--no-purge")
    ended = tkperf_raid("/dev/md_tkperf_test", config, *options, *consent)
    assert isinstance(ended.exception, TkperfError), ended.output
    assert says in str(ended.exception)
    assert bool(tools.commanded("--create")) is (not options)
    if options:
        assert tools.calls == []
        assert [member.read_bytes() for member in members] == before


CONFIG = RaidConfig(devices=("/dev/sdb", "/dev/sdc"), raidlevel=1, type="sw_mdadm")
MEGARAID = {"devices": ["252:0", "252:1"], "raidlevel": 1, "type": "hw_lsi"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        *[(options, says) for options, says in WRONG if "1024" not in options],
        (["-ssdt", "tp", "-nj", "1024", "--active-range", "64MiB"], "too small for 1,024 jobs"),
        (["--purge", "discard"], "the controller erases its drives"),
        (["--write-cache", "off"], "writepolicy in raid.json"),
        ([], "not known to the kernel"),
    ],
)
def test_a_mistake_makes_no_virtual_drive(
    tools: FakeTools, tkperf_raid: Tkperf, monkeypatch: pytest.MonkeyPatch, options: list[str], says: str
) -> None:
    """After a mistake, tkperf creates no virtual drive and only queries the controller. Without a mistake, tkperf
    creates the virtual drive and removes it again.
    """
    monkeypatch.setattr(storcli, "APPEAR_LIMIT_S", 0.0)
    tools.update(device=None)
    ended = tkperf_raid("/dev/sdnone", MEGARAID, *options, "--yes-destroy", "SERIAL0,SERIAL1")
    assert isinstance(ended.exception, TkperfError), ended.output
    assert says in str(ended.exception)
    changing = tools.commanded("add", "start", "delete")
    assert bool(changing) is (not options)
    assert tools.state["vds"] == {}


def test_no_room_for_the_run_file_makes_no_virtual_drive(
    tools: FakeTools, tkperf_raid: Tkperf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk has too little space for the run file, tkperf stops before the consent question and creates no
    virtual drive.
    """
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    ended = tkperf_raid("/dev/sdnone", MEGARAID, "--yes-destroy", "SERIAL0,SERIAL1")
    assert "has only 1.0 MB of free space, but the run file may need" in str(ended.exception)
    assert not tools.commanded("add", "start", "delete")


def test_nobody_confirmed_behind_a_controller(tools: FakeTools, tkperf_raid: Tkperf) -> None:
    """The force option does not confirm the drives behind a controller, because tkperf cannot see their data."""
    ended = tkperf_raid("/dev/sdnone", MEGARAID, "-ft")
    assert "tkperf cannot ask for consent, because there is no terminal" in str(ended.exception)
    assert "It holds: data that cannot be seen" in str(ended.exception)
    assert "--yes-destroy SERIAL0,SERIAL1" in str(ended.exception)
    assert not tools.commanded("add", "start", "delete")


def test_what_is_left_out_of_raid_json_is_as_in_tkperf(tools: FakeTools, tmp_path: Path) -> None:
    """If raid.json omits keys, TKperf's values are used: no read-ahead, write-through and 256 KiB. tkperf prints these
    values.
    """
    path = tmp_path / "raid.json"
    path.write_text(json.dumps({**MEGARAID, "writepolicy": "wb"}))
    raid = StorcliSet(Path("/dev/sdx"), load_raid_config(path))
    assert raid.title == "MegaRAID RAID 1 over 2 drives, nora, wb, strip 256 KiB"
    assert raid.write_policy == "wb"
    tools.update(device="/dev/sdx")
    raid.create(permit_controller_drives("set", raid.serials(), Consent(confirm="SERIAL0,SERIAL1")))
    (add,) = tools.commanded("add")
    assert add[-4:-1] == ["wb", "nora", "strip=256"]


def plan_megaraid(*tests: str, **wishes: Any) -> RunPlan:
    config = RaidConfig(devices=("252:0", "252:1"), raidlevel=1, type="hw_lsi")
    return tkperf.make_plan("raid", "/dev/sdnone", raid=config, tests=tests, **wishes)


@pytest.mark.usefixtures("tools")
def test_a_set_that_was_overwritten_is_not_as_new() -> None:
    """If the purge of a set overwrote the set, the set does not count as new in write saturation, because that test
    begins with the set as the purge left it. The other tests fill the set first.
    """
    (warning,) = plan_megaraid("iops", "writesat").warnings
    assert (warning.code, warning.test) == ("not-as-new", "writesat")
    assert "overwritten once" in warning.text
    assert plan_megaraid("iops", "lat", "tp").warnings == ()
    assert plan_megaraid("writesat", no_purge=True).warnings == ()


@pytest.mark.usefixtures("tools")
def test_the_members_behind_a_controller_are_known() -> None:
    """The plan lists the members behind a controller with address, model, serial number and size. The set itself is
    filled, and not its members.
    """
    plan = plan_megaraid("iops")
    facts = plan.dut.facts.values
    assert facts["preconditioned"] == "set"
    assert facts["members"] == [
        {"path": f"252:{slot}", "model": "INTEL SSDSC2KB480G8", "serial": f"SERIAL{slot}", "size": "446.625 GB"}
        for slot in range(2)
    ]
    assert plan.confirm_id == "SERIAL0,SERIAL1"
    # The controller prints binary units with decimal names, and reserves some capacity for its own data.
    assert 0.9 * 446.625 * GIB < plan.active_range.length_bytes < 446.625 * GIB
    assert plan.filled_bytes == 2 * plan.active_range.length_bytes


@pytest.mark.parametrize(
    ("level", "members", "least", "most"),
    [
        (0, [64 * MIB, 128 * MIB], 175 * MIB, 192 * MIB),
        (1, [64 * MIB, 64 * MIB], 56 * MIB, 63 * MIB),
        (5, [64 * GIB] * 3, 127 * GIB, 128 * GIB),
        (6, [64 * GIB] * 4, 127 * GIB, 128 * GIB),
        (10, [64 * GIB] * 4, 127 * GIB, 128 * GIB),
    ],
)
def test_what_a_set_will_hold_is_never_said_too_high(level: int, members: list[int], least: int, most: int) -> None:
    """The capacity that tkperf states before it creates a set never exceeds the real capacity. tkperf computes the
    stated capacity from the sizes of the members.
    """
    names = tuple(f"/dev/sd{letter}" for letter in "bcde"[: len(members)])
    config = RaidConfig(devices=names, raidlevel=level, type="sw_mdadm")
    assert least <= MdadmSet(Path("/dev/md0"), config).least_capacity_bytes(members) <= most


def test_a_member_too_small_for_a_set() -> None:
    """A member that is too small for a set is refused before the set is created."""
    config = RaidConfig(devices=("/dev/sdb", "/dev/sdc"), raidlevel=1, type="sw_mdadm")
    with pytest.raises(DeviceError, match=r"too small for a RAID set\. Use a larger device\. Nothing was touched"):
        MdadmSet(Path("/dev/md0"), config).least_capacity_bytes([8 * MIB, GIB])


PROFILE = str(Path(__file__).parents[1] / "short.toml")


@pytest.mark.root
@pytest.mark.fio
def test_a_software_raid_from_plan_to_results(
    tools: FakeTools,
    tkperf_raid: Tkperf,
    loop_device: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A software RAID is measured from the plan to the results. A third loop device replaces the set that mdadm would
    create from two members.
    """
    members, stand_in = [loop_device(), loop_device()], loop_device()
    made: list[str] = []

    class StandInSet(MdadmSet):
        def create(self, members: object) -> None:
            made.append("create")

        def wait_until_ready(self, on_progress: object) -> None:
            made.append("in sync")

        def remove(self, members: object) -> None:
            made.append("remove")

    def granted(*_: object) -> SetPermit:
        return SetPermit(lambda: read_identity(stand_in), made_by=permit._MADE_HERE)

    monkeypatch.setattr(raid, "MdadmSet", StandInSet)
    monkeypatch.setattr(raid, "grant_set_permit", granted)
    config = {"devices": list(map(str, members)), "raidlevel": 1, "type": "sw_mdadm"}
    ended = tkperf_raid(
        "/dev/md_tkperf_test",
        config,
        "-ssdt",
        "lat",
        "--profile",
        PROFILE,
        "--no-purge",
        "--yes-destroy",
        ",".join(map(str, members)),
        "--remove-set",
        "-rt",
        "2",
    )
    assert ended.exception is None, ended.output
    assert made == ["create", "remove", "create", "in sync", "remove"]
    result = tkperf.load(tmp_path / "out/n.tkperf")
    assert result.info.device["path"] == str(stand_in)
    assert result.info.device["preconditioned"] == "members"
    assert result.info.alterations == ("runtime 1 s -> 2 s", "purge -> none")
    (section, _) = result.tests[0].sections
    assert section.filled_bytes == 2 * 2 * 64 * MIB
    assert all(set(member.read_bytes()) != {0xA5} for member in members)
    assert tools.calls == []


@pytest.mark.root
@pytest.mark.fio
def test_sigterm_right_after_a_set_was_made_takes_it_away_again(
    tools: FakeTools, tkperf_raid: Tkperf, loop_device: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If SIGTERM arrives after a set was created but before the run has begun, the set is removed."""
    members, made = [loop_device(), loop_device()], []

    class StandInSet(MdadmSet):
        def create(self, members: object) -> None:
            made.append("create")
            os.kill(os.getpid(), signal.SIGTERM)

        def remove(self, members: object) -> None:
            made.append("remove")

    def stop_unheard(*_: object) -> None:
        made.append("unheard")
        raise SystemExit

    monkeypatch.setattr(raid, "MdadmSet", StandInSet)
    config = {"devices": list(map(str, members)), "raidlevel": 1, "type": "sw_mdadm"}
    before = signal.signal(signal.SIGTERM, stop_unheard)
    try:
        ended = tkperf_raid("/dev/md_tkperf_test", config, "--no-purge", "--yes-destroy", ",".join(map(str, members)))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert made == ["create", "remove"]
    assert ended.exit_code != 0
    assert tools.calls == []


@pytest.mark.root
@pytest.mark.fio
def test_a_controllers_set_from_plan_to_results(
    tools: FakeTools,
    tkperf_raid: Tkperf,
    loop_device: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A set of a controller is measured from the plan to the results. A loop device appears and disappears under
    another name, as a virtual drive does.
    """
    node, loop = tmp_path / "vd", loop_device()

    def granted(path: str, _: object) -> SetPermit:
        return SetPermit(lambda: read_identity(path), made_by=permit._MADE_HERE)

    monkeypatch.setattr(raid, "grant_virtual_drive_permit", granted)
    tools.update(device=str(node), on_add=f"ln -s {loop} {node}", on_delete=f"rm {node}")
    ended = tkperf_raid(
        str(node),
        MEGARAID,
        "-ssdt",
        "writesat",
        "--profile",
        PROFILE,
        "--remove-set",
        "--yes-destroy",
        "SERIAL0,SERIAL1",
    )
    assert ended.exception is None, ended.output
    changing = [" ".join(call[1:-1]) for call in tools.calls if "show" not in call]
    make = "/c0 add vd type=raid1 drives=252:0,252:1 wt nora strip=256"
    erase = [f"/c0/e252/s{slot} start erase simple" for slot in range(2)]
    remove = "/c0/v3 delete force"
    assert changing == [make, remove, *erase, make, "/c0/v3 start init full", remove]
    result = tkperf.load(tmp_path / "out/n.tkperf")
    assert result.info.device["write_cache_in_run"] == "controller: wt"
    assert result.info.device["preconditioned"] == "set"
    (section,) = result.tests[0].sections
    assert section.purge is not None
    assert "written, not in as-new state" in (section.purge.note or "")
    assert "not-as-new" in [warning.code for warning in result.warnings]


@pytest.mark.parametrize("taken_when", ["before", "while asked"])
def test_somebody_elses_set_is_neither_made_nor_stopped(
    tools: FakeTools, monkeypatch: pytest.MonkeyPatch, taken_when: str
) -> None:
    """If another user has created a set, tkperf neither creates nor stops it, even if the set appeared while the
    consent question was on the screen.
    """
    config = RaidConfig(devices=("/dev/sdb", "/dev/sdc"), raidlevel=1, type="sw_mdadm")
    made = MdadmSet(Path("/dev/md_tkperf_test"), config)
    if taken_when == "while asked":
        made.refuse_taken_node()
    monkeypatch.setattr(MdadmSet, "exists", lambda _: True)
    with pytest.raises(RefusedError, match="is already a RAID set, so tkperf does not touch it"):
        made.create([])
    made.remove([])
    assert tools.calls == []


@pytest.mark.root
def test_a_controllers_keys_mean_nothing_to_mdadm(loop_device: Callable[..., Path], tools: FakeTools) -> None:
    """The keys for a controller have no effect with mdadm, and a warning states this. TKperf's example contains these
    keys for both types of sets.
    """
    members = (str(loop_device()), str(loop_device()))
    config = RaidConfig(devices=members, raidlevel=1, type="sw_mdadm", readpolicy="nora", writepolicy="wb")
    plan = tkperf.make_plan("raid", "/dev/md_tkperf_test", raid=config, no_purge=True)
    assert any("readpolicy and writepolicy" in warning.text for warning in plan.warnings)
    assert plan.filled_bytes == 4 * 2 * 2 * 64 * MIB
    assert 50 * MIB < plan.active_range.length_bytes < 64 * MIB
    assert plan.confirm_id == ",".join(members)
    assert tools.calls == []


@pytest.mark.parametrize("began", [True, False])
@pytest.mark.parametrize("remove_set", [True, False])
@pytest.mark.parametrize("stuck", [True, False])
@pytest.mark.parametrize(
    ("error", "says"), [(DeviceError, "lost"), (KeyboardInterrupt, "stopped by the user"), (None, "")]
)
def test_what_becomes_of_a_set_in_the_end(
    began: bool, remove_set: bool, stuck: bool, error: type[BaseException] | None, says: str
) -> None:
    """At the end, a set is removed if the user requested this or if no run has begun. tkperf first reports the error
    that ended the run, and then all later errors.
    """
    request = RunRequest(suite="raid", device="/dev/md0", raid=CONFIG, remove_set=remove_set)
    opened: Any = [SimpleNamespace(began=began)]
    removed: list[bool] = []

    def remove() -> None:
        removed.append(True)
        if stuck:
            raise DeviceError("it is busy")

    def use() -> str:
        try:
            with raid._cleared_away(request, opened, remove):
                if error is not None:
                    raise error("lost" if error is DeviceError else "stopped by the user")
        except (TkperfError, KeyboardInterrupt) as raised:
            return str(raised)
        return ""

    said = use()
    is_to_go = remove_set or not began
    assert bool(removed) is is_to_go
    assert said.startswith(says)
    assert ("it is busy" in said) is (stuck and is_to_go)
