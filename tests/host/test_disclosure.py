"""The findings of the audit that a run stores, and the outputs that show them."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

from rich.console import Console

from tests.builders import run_info, simulate
from tests.host.fake_host import NVME, SATA, audit, make_host
from tkperf.analysis.host_conditions import found_settings, host_findings
from tkperf.analysis.results import RunResult
from tkperf.host.audit.audited_host import AuditLevel
from tkperf.page.disclosure import build_disclosure
from tkperf.page.view import build_view
from tkperf.pipeline.host_check import HostState
from tkperf.render.export_json import render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.terminal.page_text import print_page

TUNED = "/sys/block/nvme0n1/queue/scheduler: bfq -> none"


def printed(result: RunResult) -> str:
    console = Console(file=io.StringIO(), width=2000)
    print_page(build_view(result), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_run_shows_all_that_was_found_in_its_order(tmp_path: Path) -> None:
    """All findings of the audit are shown in their order. The findings are part of the set-up in every output,
    including JSON.
    """
    bad = {"proc/pressure/cpu": "some avg10=50.0", f"{NVME}/queue/wbt_lat_usec": None}
    audited = audit(make_host(tmp_path / "host", bad))
    state = HostState(audit=audited, changes=(TUNED,))
    result = simulate(tmp_path, run_info(hosts=(state.facts(),)))
    facts = dict(build_disclosure(result))["Host before the run"]
    assert facts[0] == ("Set for the run", TUNED)
    titles = [title.lower() for title, _ in facts[1:]]
    known = [one for one in audited.findings if one.level is not AuditLevel.NOT_KNOWN]
    assert titles == [finding.subject.lower() for finding in known]
    shown = dict(facts)
    assert shown["I/O scheduler"] == "none"
    assert shown["CPU pressure"] == "tasks waited for 50 % of the last 10 s (would disturb)"
    assert "Writeback throttling" not in shown
    ((_, unknown),) = dict(build_disclosure(result))["Not known"]
    assert "Writeback throttling" in unknown.split(", ")
    text = printed(result)
    assert re.search(f"Set for the run +{re.escape(TUNED)}", text)
    assert re.search("CPU pressure +tasks waited for 50 %", text)
    markdown = render_markdown(build_view(result))
    assert "| Set for the run | /sys/block/nvme0n1" in markdown
    assert "| CPU pressure | tasks waited for 50 %" in markdown
    (host,) = json.loads(render_json(result))["info"]["hosts"]
    assert host["audit"] == audited.as_plain_data()


def test_older_runs_are_not_called_audited(tmp_path: Path) -> None:
    """A run of an older version contains no findings of an audit. The description of its set-up has no block of
    findings, and the audit is listed as not known.
    """
    result = simulate(tmp_path, run_info())
    assert "Host before the run" not in dict(build_disclosure(result))
    ((_, unknown),) = dict(build_disclosure(result))["Not known"]
    assert "Host audit" in unknown.split(", ")


def test_several_drives_are_told_apart() -> None:
    """Findings about several drives contain the name of the drive. Meaningless entries in a file are skipped."""
    rows = [{"subject": "link", "device": f"/dev/sd{name}", "found": "x"} for name in "ab"]
    host: dict[str, object] = {"audit": [*rows, 3, {"level": "ok"}]}
    assert [one.title for one in host_findings(host)] == ["link of /dev/sda", "link of /dev/sdb"]
    assert [one.title for one in host_findings({"audit": rows[:1]})] == ["link"]
    assert host_findings({"audit": "rubbish"}) == ()


def test_what_was_set_can_be_compared(tmp_path: Path) -> None:
    """The settings of the host can be compared after an interruption. The current load of the host does not count as a
    setting.
    """
    host = make_host(tmp_path)
    before = found_settings({"audit": audit(host, disk=SATA).as_plain_data()})
    make_host(tmp_path, {f"{SATA}/queue/scheduler": "none [bfq]", "proc/pressure/cpu": "rubbish"})
    after = found_settings({"audit": audit(host, disk=SATA).as_plain_data()})
    assert {title for title in before if before[title] != after.get(title)} == {"I/O scheduler"}
