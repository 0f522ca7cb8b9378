"""Host settings for a measurement. tkperf determines, changes and verifies them, and always restores them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.fake_host import NVME, POLICY, SATA_TWO, drive_of, make_host, site_of
from tkperf.host import tuning
from tkperf.host.audit.audited_host import AuditedDrive
from tkperf.host.settings import Setting, find_settings
from tkperf.host.tuning import StateFile, apply_settings, find_left_behind, own_name, release_settings, tuned
from tkperf.model.errors import DeviceError, UsageError

UNTUNED = {
    **{f"{POLICY}{n}/scaling_governor": "powersave" for n in (0, 1)},
    **{f"{POLICY}{n}/energy_performance_preference": "default" for n in (0, 1)},
    f"{NVME}/queue/scheduler": "none",  # a file of the simulated host accepts any text, unlike a file of the kernel
}
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
WBT, AFFINITY = ("/sys/block/nvme0n1/queue/wbt_lat_usec", "/sys/block/nvme0n1/queue/rq_affinity")


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return make_host(tmp_path, UNTUNED)


def settings_of(host: Path, drive: AuditedDrive | None = None) -> tuple[Setting, ...]:
    return find_settings(site_of(host), [drive or drive_of(host)])


def values(host: Path) -> dict[str, str]:
    """Return the contents of all files below sys by path."""
    return {
        str(path.relative_to(host)): path.read_text().strip()
        for path in sorted((host / "sys").rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def test_what_is_wanted_of_an_nvme_drive(host: Path) -> None:
    """For an NVMe drive, tkperf changes the governor and the energy preference of each CPU policy, and the settings of
    the drive's own queue. The settings of other drives are not changed.
    """
    wanted = [(s.path, s.now, s.wanted) for s in settings_of(host) if s.is_changed]
    policies = "/sys/devices/system/cpu/cpufreq/policy"
    assert wanted == [
        (f"{policies}0/scaling_governor", "powersave", "performance"),
        (f"{policies}1/scaling_governor", "powersave", "performance"),
        (f"{policies}0/energy_performance_preference", "default", "performance"),
        (f"{policies}1/energy_performance_preference", "default", "performance"),
        (AFFINITY, "1", "2"),
        (WBT, "2000", "0"),
    ]


@pytest.mark.parametrize(
    ("now", "disk", "wanted"),
    [
        ("none [mq-deadline] kyber", NVME, "none"),
        ("none [mq-deadline] kyber", SATA_TWO, None),  # the disk rotates, so its usual scheduler is kept
        ("none mq-deadline [bfq]", SATA_TWO, "none"),
        ("mq-deadline [bfq]", NVME, None),  # the kernel offers no better scheduler
    ],
)
def test_the_scheduler_that_is_wanted(now: str, disk: str, wanted: str | None, host: Path) -> None:
    """The preferred scheduler is ``none`` if the kernel offers it. A hard disk may keep mq-deadline."""
    make_host(host, {f"{disk}/queue/scheduler": now})
    settings = settings_of(host, drive_of(host, disk))
    (scheduler,) = [s for s in settings if s.path.endswith("/scheduler")]
    assert (scheduler.wanted if scheduler.is_changed else None) == wanted


def test_of_a_file_only_the_cpus_are_set(host: Path) -> None:
    """For a file, only CPU settings are changed, because the drive below the file also serves other users."""
    settings = settings_of(host, replace(drive_of(host), is_file=True))
    assert {s.subject for s in settings} == {"CPU governor", "energy preference"}


def test_set_verified_and_put_back(host: Path) -> None:
    """Settings are changed, verified and restored. Afterwards, every file contains its original value and no record
    remains.
    """
    before = values(host)
    changes = apply_settings(settings_of(host), root=host)
    assert f"{GOVERNOR}: powersave -> performance" in changes
    assert len(changes) == 6
    changed = {name for name, value in values(host).items() if before[name] != value}
    assert len(changed) == 6
    restored = release_settings(root=host)
    assert len(restored.put_back) == 6
    assert values(host) == before
    assert not StateFile(host).path.exists()
    assert release_settings(root=host) == tuning.Restored()


def test_applied_twice_the_first_values_come_back(host: Path) -> None:
    before = values(host)
    apply_settings(settings_of(host), root=host)
    assert apply_settings(settings_of(host), root=host) == ()
    release_settings(root=host)
    assert values(host) == before


def test_what_was_is_on_record_before_anything_is_changed(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The original values are recorded before any setting is changed. If the process is killed between two writes, the
    record therefore contains all values that must be restored.
    """
    before = values(host)
    real, writes = tuning._set, 0

    def killed(root: Path, name: str, value: str) -> str | None:
        nonlocal writes
        writes += 1
        if writes == 3:
            raise KeyboardInterrupt
        return real(root, name, value)

    monkeypatch.setattr(tuning, "_set", killed)
    with pytest.raises(KeyboardInterrupt):
        apply_settings(settings_of(host), root=host)
    assert values(host) != before
    monkeypatch.setattr(tuning, "_set", real)
    assert len(release_settings(root=host).put_back) == 2
    assert values(host) == before


HOME = Path(__file__).parents[2]
KILLED = """
import os, signal, sys
from pathlib import Path
from tests.host.fake_host import drive_of, site_of
from tkperf.host.tuning import tuned
from tkperf.host.settings import find_settings
host = Path(sys.argv[1])
with tuned(find_settings(site_of(host), [drive_of(host)]), root=host):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_restore_puts_back(host: Path) -> None:
    """After a kill, ``restore`` finds the settings that the killed run changed, and restores them."""
    before = values(host)
    done = subprocess.run([sys.executable, "-c", KILLED, host], check=False, cwd=HOME)
    assert done.returncode == -signal.SIGKILL
    assert values(host) != before
    assert find_left_behind(host) == 6
    assert len(release_settings(root=host).put_back) == 6
    assert values(host) == before
    assert find_left_behind(host) == 0


@pytest.mark.parametrize("end", [None, DeviceError("gone"), KeyboardInterrupt()])
def test_a_run_puts_back_whatever_ends_it(end: BaseException | None, host: Path) -> None:
    before = values(host)
    (host / f"proc/{os.getpid()}").mkdir()
    (host / f"proc/{os.getpid()}/stat").write_text(f"{os.getpid()} (py) S " + " ".join(["1"] * 30))
    with nullcontext() if end is None else pytest.raises(type(end)), tuned(settings_of(host), root=host) as changes:
        assert len(changes) == 6
        if end is not None:
            raise end
    assert values(host) == before


def test_settings_stay_for_whoever_still_wants_them(host: Path) -> None:
    """If two runs need the same settings, the run that ends first does not restore a setting that the other run still
    uses.
    """
    before = values(host)
    process = host / f"proc/{os.getpid()}"
    process.mkdir()
    (process / "stat").write_text(f"{os.getpid()} (py) S " + " ".join(["1"] * 30))
    run = own_name(host)
    apply_settings(settings_of(host), run, root=host)
    apply_settings(settings_of(host), root=host)
    restored = release_settings(root=host)
    assert (len(restored.kept_for), restored.put_back) == (6, ())
    assert values(host) != before
    release_settings(run, root=host)
    assert values(host) == before


def test_what_somebody_changed_meanwhile_is_left(host: Path) -> None:
    apply_settings(settings_of(host), root=host)
    (host / WBT[1:]).write_text("75")
    restored = release_settings(root=host)
    assert restored.left == (f"{WBT}: it was set to 75 since, it was 2000 before",)
    assert (host / WBT[1:]).read_text() == "75"


def test_another_drive_by_that_name_is_not_touched(host: Path) -> None:
    """Settings of another drive that now has the same name are not restored. Drives are distinguished by the kernel's
    sequence number.
    """
    apply_settings(settings_of(host), root=host)
    (host / NVME / "diskseq").write_text("8")
    restored = release_settings(root=host)
    assert [text.partition(": ")[2] for text in restored.left] == ["another drive has that name now"] * 2
    assert (host / WBT[1:]).read_text() == "0\n"


def test_after_a_reboot_there_is_nothing_to_put_back(host: Path) -> None:
    apply_settings(settings_of(host), root=host)
    make_host(host, {**UNTUNED, "proc/sys/kernel/random/boot_id": "boot-2"})
    before = values(host)
    assert release_settings(root=host).rebooted
    assert values(host) == before
    assert not StateFile(host).path.exists()


def test_what_the_kernel_does_not_take_is_named(host: Path) -> None:
    """A setting that the kernel refuses is named in the message. All other settings are changed and restored."""
    before = values(host)
    settings = settings_of(host)
    (host / GOVERNOR[1:]).unlink()
    (host / GOVERNOR[1:]).mkdir()
    with pytest.raises(DeviceError, match=f"{GOVERNOR} does not take performance: Is a directory"):
        apply_settings(settings, root=host)
    assert (host / WBT[1:]).read_text() == "0\n"
    (host / GOVERNOR[1:]).rmdir()
    make_host(host, {GOVERNOR[1:]: "powersave"})
    release_settings(root=host)
    assert values(host)[f"{NVME}/queue/wbt_lat_usec"] == before[f"{NVME}/queue/wbt_lat_usec"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "tune.json cannot be read: Input data was truncated"),
        ('{"boot": "x", "schema": "tkperf-tune/1"}', "schema: 'tkperf-tune/1' is not tkperf-tune-state/1"),
        ('{"boot": "x", "settings": 3}', "Expected `array`, got `int` - at `$.settings`"),
        ("/etc/passwd", "tkperf does not change the setting"),
        ("/sys/block/../../etc/queue/scheduler", "tkperf does not change the setting"),
    ],
)
def test_a_damaged_record_is_refused(content: str, says: str, host: Path) -> None:
    """A damaged record of changed settings is refused. As root, tkperf writes only to settings that it supports."""
    if content.startswith("/"):
        kept = {"path": content, "before": "x", "changed_to": "y", "owners": []}
        content = json.dumps({"boot": "boot-1", "settings": [kept]})
    file = StateFile(host)
    file.folder.mkdir(parents=True)
    file.path.write_text(content)
    with pytest.raises(UsageError, match=r"tune\.json") as caught:
        release_settings(root=host)
    assert says in str(caught.value)
