"""RAID sets: the configuration file, and MegaRAID. A stand-in for storcli prints the documented JSON."""

from __future__ import annotations

import dis
import json
import sys
import threading
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from tests.device.fakes import MDADM, STORCLI, FakeTools
from tkperf.device.hold import Handle
from tkperf.device.permit import ControllerPermit, grant_controller_permit
from tkperf.device.purge import PurgeWatch
from tkperf.device.raid import storcli
from tkperf.device.raid import target as raid_target
from tkperf.device.raid.config import load_raid_config
from tkperf.device.raid.mdadm import MdadmSet
from tkperf.device.raid.storcli import StorcliSet
from tkperf.model.errors import DeviceError, RefusedError, UsageError

CONFIG: dict[str, Any] = {
    "devices": ["252:0", "252:1"],
    "raidlevel": 1,
    "type": "hw_lsi",
    "readpolicy": "nora",
    "writepolicy": "wt",
    "stripsize": "256",
}


def write(folder: Path, **changes: object) -> Path:
    path = folder / "raid.json"
    path.write_text(json.dumps({**CONFIG, **changes}))
    return path


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"raidlevel": 4}, "key raidlevel: 4 is not one of 0, 1, 5, 6, 10"),
        ({"raidlevel": "five"}, "raidlevel"),
        ({"devices": ["252:0"]}, "key devices: 1 for RAID 1, it takes 2 or more"),
        ({"devices": ["252:0", "252:0"]}, "are the same device"),
        ({"raidlevel": 10, "devices": ["1:0", "1:1", "1:2", "1:3", "1:4"]}, "an even number"),
        ({"type": "hw_adaptec"}, "key type"),
        ({"writepolicy": "fast"}, "key writepolicy"),
        ({"stripsize": "big"}, "key stripsize"),
        ({"stripsize": ""}, 'key stripsize: "" is not a size'),
        ({"stripsize": "²"}, "key stripsize"),
        ({"stripsize": "\u0666\u0664"}, "key stripsize"),
        ({"stripsize": "9" * 5000}, "key stripsize"),
        ({"stripsize": 10**30}, "key stripsize: a number that large"),
        ({"stripsize": 0}, "key stripsize: 0 is not a size"),
        ({"stripsize": "0"}, "key stripsize"),
        ({"stripsize": -64}, "key stripsize"),
        ({"stripsize": True}, "key stripsize"),
        ({"raidlevel": "\u0665"}, "key raidlevel"),
        ({"raidlevel": True}, "key raidlevel"),
        ({"raidlevel": 10**30}, "key raidlevel: a number that large"),
        ({"devices": ["", "252:0"]}, 'key devices: "" is no name of a device'),
        ({"devices": ["252:0\n", "252:1"]}, "is no name of a device"),
        ({"devices": ["252:0", "--zero-superblock"]}, "is no name of a device"),
        ({"devices": ["/dev/sd\0", "/dev/sdc"], "type": "sw_mdadm"}, "is no name of a device"),
        ({"devices": ["252:0", "252:00"]}, "are the same device"),
        ({"devices": [f"252:{n}" for n in range(385)]}, "key devices: 385, no set has more"),
        ({"devices": [f"252:{n}" for n in range(100_000)]}, "it is larger than"),
        ({"raidlvl": 1}, "raidlvl"),
    ],
)
def test_a_bad_configuration_names_file_key_and_reason(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    """An error about a mistake in raid.json names the file and the key, and states the reason."""
    with pytest.raises(UsageError, match=r"raid\.json") as raised:
        load_raid_config(write(tmp_path, **changes))
    assert says in str(raised.value)


def test_a_missing_or_broken_configuration(tmp_path: Path) -> None:
    """A missing or invalid configuration is an error. If the file is missing, the error contains an example of a
    configuration.
    """
    with pytest.raises(UsageError, match=r"there is no RAID configuration file .* An example"):
        load_raid_config(tmp_path / "raid.json")
    (tmp_path / "raid.json").write_text("{")
    with pytest.raises(UsageError, match="not valid JSON"):
        load_raid_config(tmp_path / "raid.json")


def test_one_device_by_two_names(tmp_path: Path) -> None:
    """A device and a link to it count as the same device, so a set cannot contain both as members."""
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    devices = [str(tmp_path / "a"), str(tmp_path / "b")]
    with pytest.raises(UsageError, match="are the same device"):
        load_raid_config(write(tmp_path, devices=devices, type="sw_mdadm"))


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    monkeypatch.setattr(storcli, "_POLL_S", 0.0)
    made = FakeTools(tmp_path / "tools", monkeypatch)
    made.install("storcli64", STORCLI)
    drives = {f"252:{slot}": {"State": "UGood", "SN": f"SERIAL{slot}"} for slot in range(4)}
    made.update(drives=drives, vds={}, device="/dev/sdx", naa="600605b00abc", init_polls=2, erase_takes_polls=2)
    return made


def make_set(folder: Path, **changes: object) -> StorcliSet:
    return StorcliSet(Path("/dev/sdx"), load_raid_config(write(folder, **changes)))


def permit_for(raid: StorcliSet) -> ControllerPermit:
    return grant_controller_permit(raid.serials(), confirmed_id="SERIAL0,SERIAL1")


def test_a_set_is_made_initialised_and_deleted(tools: FakeTools, tmp_path: Path) -> None:
    """The commands that create and later delete a set are exactly the expected commands, in this order."""
    raid = make_set(tmp_path)
    permit = permit_for(raid)
    assert raid.purge_drives(permit, lambda _: None) == "MegaRAID drive erase, simple: overwritten once"
    raid.create(permit)
    seen: list[float | None] = []
    raid.initialise(seen.append)
    assert seen == [0.25, 0.25]
    assert raid.virtual_drive().naa == "600605b00abc"
    raid.remove()
    assert tools.state["vds"] == {}
    changing = [" ".join(call[1:-1]) for call in tools.calls if "show" not in call]
    assert changing == [
        "/c0/e252/s0 start erase simple",
        "/c0/e252/s1 start erase simple",
        "/c0 add vd type=raid1 drives=252:0,252:1 wt nora strip=256",
        "/c0/v3 start init full",
        "/c0/v3 delete force",
    ]


def test_an_operation_that_is_not_seen_is_no_end(
    tools: FakeTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an operation never begins, or if its state is not known, tkperf reports an error and does not assume that the
    operation has ended.
    """
    monkeypatch.setattr(storcli, "BEGIN_LIMIT_S", 0.0)
    tools.update(erase_takes_polls=0)
    raid = make_set(tmp_path)
    with pytest.raises(DeviceError, match=r"erase of /c0/e252/s0.* does not report it in progress"):
        raid.purge_drives(permit_for(raid), lambda _: None)
    raid.create(permit_for(raid))
    monkeypatch.setattr(raid, "_call", lambda *_: {})
    with pytest.raises(DeviceError, match="does not report the state of the init"):
        raid.initialise(lambda _: None)
    monkeypatch.setattr(raid, "_call", lambda *_: {storcli.VD_OPERATIONS: [{"Status": "Paused"}]})
    with pytest.raises(DeviceError, match="the init of /c0/v3 is 'Paused'"):
        raid.initialise(lambda _: None)


def test_why_a_controller_refuses_is_passed_on(tools: FakeTools, tmp_path: Path) -> None:
    """If a controller refuses an erase, the error contains the reason that storcli prints in the detailed status of the
    drive.
    """
    tools.update(erase_refused=True)
    raid = make_set(tmp_path)
    with pytest.raises(DeviceError, match="state doesn't support requested command"):
        raid.purge_drives(permit_for(raid), lambda _: None)


def test_raid_10_says_how_mirrors_are_made(tools: FakeTools, tmp_path: Path) -> None:
    """For RAID 10, tkperf passes the number of drives in each mirror, because storcli needs this number."""
    devices = ["252:0", "252:1", "252:2", "252:3"]
    raid = make_set(tmp_path, raidlevel=10, devices=devices)
    everything = ",".join(f"SERIAL{slot}" for slot in range(4))
    raid.create(grant_controller_permit(raid.serials(), confirmed_id=everything))
    (add,) = tools.commanded("add")
    assert "pdperarray=2" in add


def test_a_drive_in_use_is_refused(tools: FakeTools, tmp_path: Path) -> None:
    """tkperf accepts only drives in the state "unconfigured good" as members of a set. If a drive is in another state,
    the error contains this state.
    """
    drives = tools.state["drives"]
    drives["252:1"]["State"] = "JBOD"
    tools.update(drives=drives)
    raid = make_set(tmp_path)
    with pytest.raises(RefusedError, match=r"252:1 .*SERIAL1.* its state is 'JBOD'"):
        raid.refuse_used_drives()
    with pytest.raises(RefusedError):
        raid.create(permit_for(raid))
    assert not tools.commanded("add", "start")


@pytest.mark.parametrize(
    ("change", "says"), [({"DG": "F"}, "belongs to drive group F"), ({"DG": "0"}, "belongs to drive group 0")]
)
def test_a_drive_of_another_set_is_refused(tools: FakeTools, tmp_path: Path, change: dict[str, str], says: str) -> None:
    """A drive of another set is refused as a member. A foreign drive is also "unconfigured good", but it may contain
    data of another set.
    """
    drives = tools.state["drives"]
    drives["252:0"] |= change
    tools.update(drives=drives)
    with pytest.raises(RefusedError, match=says):
        make_set(tmp_path).refuse_used_drives()


def test_a_drive_still_being_erased_is_refused(tools: FakeTools, tmp_path: Path) -> None:
    """A drive that the controller is still erasing is refused, even if the tkperf process that began the erase has
    ended.
    """
    tools.update(erase_polls=1)
    with pytest.raises(RefusedError, match=r"is being erased \(25% done\)"):
        make_set(tmp_path).refuse_used_drives()


def test_a_node_that_is_taken_is_refused_before_anything_is_made(tools: FakeTools, tmp_path: Path) -> None:
    """DEVICE is the name that the new virtual drive will have. If a disk with this name already exists, tkperf refuses
    the set before it creates the virtual drive.
    """
    raid = StorcliSet(Path("/dev/null"), load_raid_config(write(tmp_path)))
    with pytest.raises(RefusedError, match="exists already"):
        raid.refuse_taken_node()
    assert not tools.commanded("add")


@pytest.mark.parametrize("fault", [{"device": "/dev/sdq"}, {"add_fails": True}])
def test_what_was_made_in_vain_is_taken_away_again(tools: FakeTools, tmp_path: Path, fault: dict[str, object]) -> None:
    """If the virtual drive has a name other than DEVICE, or if storcli fails after it has created the virtual drive,
    tkperf removes the virtual drive again.
    """
    tools.update(**fault)
    raid = make_set(tmp_path)
    with pytest.raises(DeviceError):
        raid.create(permit_for(raid))
    raid.remove()
    assert tools.state["vds"] == {}


def test_the_drives_must_be_those_confirmed(tools: FakeTools, tmp_path: Path) -> None:
    """The user must confirm the serial numbers of the drives in order. If a drive is exchanged in its slot after
    consent, the set is neither purged nor created.
    """
    raid = make_set(tmp_path)
    with pytest.raises(RefusedError, match="The expected answer is 'SERIAL0,SERIAL1'"):
        grant_controller_permit(raid.serials(), confirmed_id="SERIAL1,SERIAL0")
    permit = permit_for(raid)
    drives = tools.state["drives"]
    drives["252:1"]["SN"] = "OTHER"
    tools.update(drives=drives)
    for act in (raid.create, lambda granted: raid.purge_drives(granted, lambda _: None)):
        with pytest.raises(DeviceError, match="not the drives that you confirmed"):
            act(permit)
    assert not tools.commanded("add", "start")


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"vd_state": "Dgrd"}, "is 'Dgrd'"),
        ({"device": "/dev/sdz"}, "is /dev/sdz, not /dev/sdx. Pass the name of the virtual drive as DEVICE"),
    ],
)
def test_a_set_that_is_not_as_wanted(tools: FakeTools, tmp_path: Path, state: dict[str, str], says: str) -> None:
    """A degraded set, and a set that appears under a name other than DEVICE, lead to an error."""
    tools.update(**state)
    raid = make_set(tmp_path)

    def make() -> None:
        raid.create(permit_for(raid))
        raid.initialise(lambda _: None)

    with pytest.raises(DeviceError, match=says):
        make()


def test_rubbish_and_failures_of_storcli(tools: FakeTools, tmp_path: Path) -> None:
    """Invalid output of storcli leads to an error, and the error for a failed command contains the reason that storcli
    prints.
    """
    raid = make_set(tmp_path, devices=["252:0", "252:9"])
    with pytest.raises(DeviceError, match="No drive found"):
        raid.drives()
    tools.update(garbage=True)
    with pytest.raises(DeviceError, match="did not print JSON of the expected form"):
        raid.drives()


@pytest.mark.parametrize("new", [False, True])
def test_a_set_of_mdadm_is_made_and_removed(
    tools: FakeTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: bool
) -> None:
    """tkperf understands the messages of mdadm 4.2 and 4.4.

    If udev has the set open, tkperf tries again to stop the set. A member without a superblock is not an error.
    """
    tools.install("mdadm", MDADM)
    tools.update(new=new, busy=2, blank=["/members/b"])
    monkeypatch.setattr(MdadmSet, "exists", lambda _: tools.state.get("exists", False))
    monkeypatch.setattr("tkperf.device.raid.mdadm.time.sleep", lambda _: None)
    devices = ["/members/a", "/members/b"]
    config = load_raid_config(write(tmp_path, devices=devices, type="sw_mdadm"))
    members = [Handle(name=device, path=device) for device in devices]
    made = MdadmSet(Path("/dev/md98"), config)
    made.create(members)
    made.remove(members)
    (create, *rest) = [call[1:] for call in tools.calls]
    assert create[-2:] == devices
    assert rest == [["--stop", "/dev/md98"]] * 3 + [["--zero-superblock", each] for each in devices]


def test_why_mdadm_makes_no_set_is_passed_on(tools: FakeTools, tmp_path: Path) -> None:
    """If mdadm fails, the error contains mdadm's reason, and names the member as the user named it."""
    tools.install("mdadm", MDADM)
    tools.update(missing=True)
    devices = ["/members/a", "/members/b"]
    config = load_raid_config(write(tmp_path, devices=devices, type="sw_mdadm"))
    members = [Handle(name=f"/dev/sd{name}", path=f"/members/{name}") for name in "ab"]
    with pytest.raises(DeviceError, match="cannot open /dev/sdb: No such file"):
        MdadmSet(Path("/dev/md98"), config).create(members)


def test_addresses_must_be_enclosure_and_slot(tools: FakeTools, tmp_path: Path) -> None:
    """A block device cannot be a member of a controller's set, because the members of such a set are named
    ENCLOSURE:SLOT.
    """
    with pytest.raises(UsageError, match="does not have the form ENCLOSURE:SLOT"):
        make_set(tmp_path, devices=["/dev/sda", "252:1"])


@pytest.mark.parametrize("kept", [True, False])
def test_members_are_purged_at_once_with_their_notes_on_record(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All members are purged at the same time. The note about each member is written before this member is purged. If a
    note cannot be written, only the purge of this member is stopped.
    """
    both_there, erased, reports = threading.Barrier(2, timeout=30), [], []

    def run_purge(permit: Any, _: object, *, watch: PurgeWatch) -> str:
        both_there.wait()
        watch.note("password", permit.identity.path)
        erased.append(permit.identity.path)
        watch.progress(1.0)
        return "verified"

    def on_note(_: str, text: str) -> None:
        reports.append((text, threading.current_thread() is threading.main_thread()))
        if not kept and text == "/dev/sdb":
            raise OSError("no space")

    monkeypatch.setattr(raid_target, "run_purge", run_purge)
    members: Any = [
        SimpleNamespace(permit=SimpleNamespace(identity=SimpleNamespace(path=path)), method="purge")
        for path in ("/dev/sdb", "/dev/sdc")
    ]
    if kept:
        done = raid_target._purge_in_parallel(members, lambda _: None, on_note)
        assert done == ["verified", "verified"]
    else:
        with pytest.raises(OSError, match="no space"):
            raid_target._purge_in_parallel(members, lambda _: None, on_note)
    assert sorted(reports) == [("/dev/sdb", True), ("/dev/sdc", True)]
    assert sorted(erased) == (["/dev/sdb", "/dev/sdc"] if kept else ["/dev/sdc"])


def test_an_interruption_at_any_moment_of_a_parallel_purge_takes_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C takes effect at any moment of a parallel purge, even while a thread waits for the confirmation that its
    note was written. No thread waits forever.
    """
    under_way: set[str] = set()

    def run_purge(permit: Any, _: object, *, watch: PurgeWatch) -> str:
        under_way.add(permit.identity.path)
        try:
            watch.note("set", permit.identity.path)
            watch.progress(0.5)
            watch.note("cleared", permit.identity.path)
        finally:
            under_way.remove(permit.identity.path)
        return "verified"

    def purge(interrupt: tuple[str, int, int] | None) -> set[tuple[str, int, int]]:
        """Purge the set, and raise KeyboardInterrupt at the given place in the code. Return all places at which Python
        can handle a signal.
        """
        places = set()

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code.co_filename != raid_target.__file__:
                return None
            frame.f_trace_opcodes = True
            operation = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if event == "opcode" and operation.startswith(("CALL", "JUMP_BACKWARD")):
                place = (frame.f_code.co_name, frame.f_code.co_firstlineno, frame.f_lasti)
                places.add(place)
                if place == interrupt:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            raid_target._purge_in_parallel(members, lambda _: None, lambda _code, _text: None)
        finally:
            sys.settrace(None)
        return places

    monkeypatch.setattr(raid_target, "run_purge", run_purge)
    monkeypatch.setattr(raid_target, "POLL_S", 0.001)
    members: Any = [
        SimpleNamespace(permit=SimpleNamespace(identity=SimpleNamespace(path=path)), method="purge")
        for path in ("/dev/sdb", "/dev/sdc")
    ]
    places = purge(None)
    if sys.version_info[:2] == (3, 12) and not places:
        pytest.skip("this version of Python reports no single operations if a trace function asks for them")
    assert len(places) > 20
    for place in sorted(places):
        with pytest.raises(KeyboardInterrupt):
            purge(place)
        assert not under_way
