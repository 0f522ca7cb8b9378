"""``tkperf tune`` and the audit on the command line. Findings are shown and recorded, and lead to a refusal with
``--strict``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import tkperf
from tests.conftest import why_no_loop_devices
from tkperf.cli.main import cli
from tkperf.host.audit import Audit, AuditLevel, AuditResult
from tkperf.host.tuning import release_settings
from tkperf.model.errors import DeviceError, RefusedError, UsageError
from tkperf.pipeline.host_check import audit_for, describe_host, prepared_host

BUSY = AuditResult(subject="CPU pressure", level=AuditLevel.DISTURBS, found="50 %", why="it waits", otherwise="end it")
SLOW = AuditResult(
    subject="CPU governor", level=AuditLevel.DISTURBS, found="powersave", why="slow", command="echo performance"
)
SWAP = AuditResult(subject="swap", level=AuditLevel.ADVICE, found="1 GB", why="slow")


def finding_of(monkeypatch: pytest.MonkeyPatch, *findings: AuditResult) -> None:
    monkeypatch.setattr("tkperf.pipeline.run_plan.audit_for", lambda *_, **__: Audit(findings))


def test_strict_refuses_and_names_each_command(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --strict, tkperf refuses a run with exit code 3 if the audit finds a condition that would disturb the
    measurement. tkperf refuses the run before it asks a question or writes a file, and the message names the command
    that corrects each such condition. A condition that only may disturb the measurement does not lead to a refusal.
    """
    finding_of(monkeypatch, BUSY, SLOW, SWAP)
    with pytest.raises(RefusedError) as caught:
        tkperf.make_plan("ssd", str(scratch), profile="quick", strict=True)
    assert str(caught.value) == (
        "with --strict, a run does not begin while something on this host would disturb it: CPU pressure: 50 % "
        "(end it); CPU governor: powersave (echo performance)"
    )
    assert caught.value.exit_code == 3
    finding_of(monkeypatch, SWAP)
    assert tkperf.make_plan("ssd", str(scratch), profile="quick", strict=True).warnings == ()


def test_what_the_run_sets_itself_is_no_reason_to_refuse(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding_of(monkeypatch, SLOW)
    plan = tkperf.make_plan("ssd", str(scratch), profile="quick", strict=True, tune=True)
    assert plan.audit.findings == (SLOW,)


def test_without_strict_it_is_a_warning(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding_of(monkeypatch, BUSY, SWAP)
    (warning,) = tkperf.make_plan("ssd", str(scratch), profile="quick").warnings
    assert (warning.code, warning.text) == ("host-disturbs", "CPU pressure: 50 %; it waits")


def test_one_line_before_the_question() -> None:
    assert describe_host(Audit((BUSY, SLOW, SWAP)), "/dev/sdb") == (
        "2 things would disturb this run (CPU pressure, CPU governor), 1 thing may disturb this run "
        "(swap); 'tkperf tune /dev/sdb' shows more"
    )
    assert describe_host(Audit(), "/dev/sdb") is None


def test_tuning_needs_root_and_a_device(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuning without root and tuning for a simulated drive are refused before tkperf asks any question."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(DeviceError, match=r"--tune changes settings of .*\. Run tkperf as root"):
        tkperf.make_plan("ssd", str(scratch), profile="quick", tune=True)
    with pytest.raises(UsageError, match=r"it depends on no setting of the host\. Omit --tune"):
        tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick", tune=True)


@pytest.mark.audited
def test_a_simulated_drive_is_measured_on_no_host() -> None:
    """The plan for a simulated drive contains no findings about the host, so the plan prints no warnings."""
    assert tkperf.make_plan("ssd", "sim:sata-ssd", profile="quick").audit == Audit()


@pytest.mark.audited
def test_this_machine_can_be_audited(scratch: Path) -> None:
    """Any machine can be audited. The audit contains the expected subjects, and each finding has a reason. The JSON
    output also contains the reasons.
    """
    audited = tkperf.make_plan("ssd", str(scratch), profile="quick").audit
    subjects = {finding.subject for finding in audited.findings}
    assert subjects >= {
        "CPU governor",
        "CPU pressure",
        "swap",
        "virtual machine",
        "io_uring",
        "limits of the process",
        "timers due within the run",
    }
    json.dumps(audited.as_plain_data())
    done = CliRunner().invoke(cli, ["tune", str(scratch), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["changed"] == []
    done = CliRunner().invoke(cli, ["tune", str(scratch)])
    assert done.output.startswith("Nothing to ") or "nothing was set" in done.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "pass a DEVICE, or --restore"),
        (["--restore", "--apply"], "--restore restores all settings"),
        (["/dev/null", "--restore"], "--restore restores all settings"),
    ],
)
def test_wrong_use_is_named(words: list[str], says: str) -> None:
    done = CliRunner().invoke(cli, ["tune", *words])
    assert isinstance(done.exception, UsageError)
    assert says in str(done.exception)


@pytest.mark.root
@pytest.mark.skipif(why_no_loop_devices() is not None, reason=str(why_no_loop_devices()))
def test_a_loop_device_is_tuned_and_put_back(loop_device: Callable[..., Path]) -> None:
    """``tkperf tune --apply`` changes the kernel's settings of a loop device, and tkperf can restore the old
    settings.
    """
    device = loop_device()
    queue = Path("/sys/block", device.name, "queue")
    others = ("scheduler", "rq_affinity", "wbt_lat_usec", "nr_requests")
    try:
        (queue / "scheduler").write_text("kyber")
        (queue / "rq_affinity").write_text("1")
    except OSError as error:
        pytest.skip(f"this kernel does not let a loop device be set: {error.strerror}")
    before = {name: (queue / name).read_text() for name in others if (queue / name).exists()}
    applied = CliRunner().invoke(cli, ["tune", str(device), "--apply"])
    assert applied.exit_code == 0, applied.output
    try:
        assert "[none]" in (queue / "scheduler").read_text()
        assert (queue / "rq_affinity").read_text() == "2\n"
    finally:
        restored = CliRunner().invoke(cli, ["tune", "--restore"])
    assert restored.exit_code == 0, restored.output
    assert {name: (queue / name).read_text() for name in before} == before


@pytest.mark.root
@pytest.mark.skipif(why_no_loop_devices() is not None, reason=str(why_no_loop_devices()))
def test_a_run_has_its_settings_and_puts_them_back(loop_device: Callable[..., Path]) -> None:
    """A run with --tune restores the changed settings at its end. The run file records the changes, and the audit
    describes the host with the changed settings.
    """
    device = loop_device()
    scheduler = Path("/sys/block", device.name, "queue/scheduler")
    scheduler.write_text("kyber")
    plan = tkperf.make_plan("ssd", str(device), profile="quick")
    audit = audit_for(plan.dut.drives, lasts_s=60)
    with prepared_host(audit, plan.dut.drives, tune=True, lasts_s=60, workloads=plan.fitted.workloads) as state:
        assert f"/sys/block/{device.name}/queue/scheduler: kyber -> none" in state.changes
        kept = [one for one in state.audit.findings if one.subject == "I/O scheduler"]
        assert [one.found for one in kept] == ["none"]
        assert list(state.changes) == state.facts()["tuned"]
        assert state.device_facts() == {"scheduler": "none"}
    assert "[kyber]" in scheduler.read_text()
    assert release_settings().put_back == ()
