"""Programs that stand in for hdparm, nvme, sg3-utils and storcli where no such drive can be had.

Each keeps its drive's state in a JSON file and writes every call to a log, so that tests can check
what was commanded and in which order.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROLOGUE = """#!{python}
import json, subprocess, sys, time
from pathlib import Path
state_path = Path({state!r})
state = json.loads(state_path.read_text())
args = sys.argv[1:]
with Path({log!r}).open("a") as log:
    log.write(json.dumps([{name!r}, *args]) + chr(10))
def save():
    state_path.write_text(json.dumps(state))
def fill(byte):
    drive = Path(state["drive"])
    drive.write_bytes(bytes([byte]) * drive.stat().st_size)
"""

HDPARM = '''
SECURITY = """Security:
\tMaster password revision code = 65534
\t{}\tsupported
\t{}\tenabled
\t{}\tlocked
\t{}\tfrozen
\tnot\texpired: security count
\t{}\tsupported: enhanced erase
\t2min for SECURITY ERASE UNIT. 4min for ENHANCED SECURITY ERASE UNIT.
"""
def no(key):
    return "" if state.get(key) else "not"
if "-I" in args:
    if state.get("garbage"):
        print("\\x00 nonsense"); sys.exit(0)
    print("/dev/sdx:\\n\\nATA device, with non-removable media\\nCapabilities:\\n\\tLBA\\nCommands/features:\\n\\tEnabled\\tSupported:")
    for name in state.get("sanitize", []):
        print(f"\\t   *\\t{name} command")
    if state.get("supported"):
        print(SECURITY.format(*(no(key) for key in ("supported", "enabled", "locked", "frozen", "enhanced"))))
elif "--security-set-pass" in args:
    state["password"] = args[args.index("--security-set-pass") + 1]
    state["enabled"] = not state.get("deaf")
    save()
elif "--security-unlock" in args:
    if args[args.index("--security-unlock") + 1] == state["password"]:
        state["locked"] = False; save()
elif "--security-disable" in args:
    if args[args.index("--security-disable") + 1] == state["password"] and not state.get("locked"):
        state["enabled"] = False; save()
elif "--security-erase" in args or "--security-erase-enhanced" in args:
    if state.get("erase_fails"):
        print("SG_IO: bad/missing sense data", file=sys.stderr); sys.exit(5)
    time.sleep(state.get("erase_takes_s", 0))
    if state.get("erase_hangs"):
        time.sleep(60)
    fill(0); state["enabled"] = False; save()
elif "--sanitize-status" in args:
    left = state.get("polls", 0)
    state["polls"] = left - 1; save()
    if left > 0:
        print("Sanitize status:\\n    State:    SD2 Sanitize operation In Process\\n    Progress: 0x4000 (25%)")
    else:
        outcome = "Completed With Error" if state.get("fails") else "Completed Without Error"
        print(f"Sanitize status:\\n    State:    SD0 Sanitize Idle\\n    Last Sanitize Operation {outcome}")
elif any(arg.startswith("--sanitize-") for arg in args):
    fill(0xFF)
'''

NVME = """
if args[0] == "id-ctrl":
    print(json.dumps(state["controller"]))
elif args[0] == "id-ns":
    print(json.dumps(state["namespace"]))
elif args[0] == "sanitize-log":
    left = state.get("polls", 0)
    state["polls"] = left - 1; save()
    status = 2 if left > 0 else (3 if state.get("fails") else 1)
    print(json.dumps({"nvme0": {"sprog": 32768, "sstat": {"status": status}}} if state.get("nested")
                     else {"sprog": 32768, "sstat": status}))
elif args[0] in ("sanitize", "format"):
    fill(0)
"""

SCSI = """
if {name!r} == "sg_opcodes":
    action = int(args[args.index("--opcode") + 1].split(",")[1], 16)
    if action in state.get("sanitize", []):
        print("  Command supported [conforming to SCSI standard]")
    else:
        print("  Command not supported"); sys.exit(5)
elif {name!r} == "sg_requests":
    left = state.get("polls", 0)
    state["polls"] = left - 1; save()
    if left > 0:
        print("Progress indication: 40.5% done")
else:
    fill(0x5A)
"""


class FakeTools:
    """Programs in a folder at the front of PATH, one state for all."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        self._state = folder / "state.json"
        self._log = folder / "calls.log"
        self._monkeypatch = monkeypatch
        self._bin = folder / "bin"
        self._bin.mkdir()
        monkeypatch.setenv("PATH", str(self._bin), prepend=":")
        self.update(drive="")

    def install(self, name: str, body: str) -> None:
        prologue = PROLOGUE.format(
            python=sys.executable, state=str(self._state), log=str(self._log), name=name
        )
        program = self._bin / name
        program.write_text(prologue + body.replace("{name!r}", repr(name)))
        program.chmod(0o755)

    def update(self, **state: Any) -> None:
        self._state.write_text(json.dumps({**self.state, **state}))

    @property
    def state(self) -> dict[str, Any]:
        return json.loads(self._state.read_text()) if self._state.exists() else {}

    @property
    def calls(self) -> list[list[str]]:
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def commanded(self, *words: str) -> list[list[str]]:
        """Calls that have any of these words."""
        return [call for call in self.calls if set(call) & set(words)]


MakeTools = Callable[[], FakeTools]

# The layout of storcli's JSON as its reference manual documents it.
STORCLI = """
assert args[-1] == "J", args
where, words = args[0], args[1:-1]
def reply(data, ok=True, why=""):
    status = {"CLI Version": "007.1907", "Controller": 0, "Status": "Success" if ok else "Failure",
              "Description": why or "None"}
    print(json.dumps({"Controllers": [{"Command Status": status, "Response Data": data}]}))
    sys.exit(0 if ok else 1)
if state.get("garbage"):
    print("Segmentation fault"); sys.exit(139)
def run(key):
    subprocess.run(["sh", "-c", state.get(key, "true")], check=True)
def going(key):
    left = state.get(key, 0)
    state[key] = left - 1; save()
    return [{"Drive-ID": where, "Progress%": "25" if left > 0 else "-",
             "Status": "In progress" if left > 0 else "Not in progress"}]
if "/s" in where:
    address = where.split("/e")[1].replace("/s", ":")
    drive = state["drives"].get(address)
    if drive is None:
        reply({}, ok=False, why="No drive found!")
    if words == ["show", "all"]:
        reply({f"Drive {where}": [{"EID:Slt": address, "DID": 8, "State": drive["State"],
                                   "DG": drive.get("DG", "-"), "Size": "446.625 GB", "Intf": "SATA", "Med": "SSD",
                                   "Model": "INTEL SSDSC2KB480G8 "}],
               f"Drive {where} - Detailed Information":
                   {f"Drive {where} Device attributes": {"SN": f" {drive['SN']} "}}})
    if words[:2] == ["start", "erase"]:
        state["erase_polls"] = state.get("erase_takes_polls", 0)
        save(); reply({})
    if words == ["show", "erase"]:
        reply(going("erase_polls"))
elif where == "/c0/vall":
    if not state["vds"]:
        reply({}, ok=False, why="No VDs have been configured")
    data = {}
    for number, vd in state["vds"].items():
        data[f"/c0/v{number}"] = [{"DG/VD": f"0/{number}", "TYPE": "RAID1", "State": vd["State"]}]
        data[f"VD{number} Properties"] = {"OS Drive Name": vd["device"], "SCSI NAA Id": vd["naa"]}
        data[f"PDs for VD {number}"] = [{"EID:Slt": each} for each in vd["members"].split(",")]
    reply(data)
elif where == "/c0" and words[:2] == ["add", "vd"]:
    members = next(word for word in words if word.startswith("drives=")).partition("=")[2]
    for member in members.split(","):
        state["drives"][member]["State"] = "Onln"
    state["vds"]["3"] = {"State": state.get("vd_state", "Optl"), "device": state["device"],
                         "naa": state["naa"], "members": members}
    save(); run("on_add")
    if state.get("add_fails"):
        reply({}, ok=False, why="controller reset")
    reply({})
elif where == "/c0/v3" and words == ["start", "init", "full"]:
    reply({})
elif where == "/c0/v3" and words == ["show", "init"]:
    reply(going("init_polls"))
elif where == "/c0/v3" and words == ["delete", "force"]:
    for member in state["vds"].pop("3")["members"].split(","):
        state["drives"][member]["State"] = "UGood"
    save(); run("on_delete"); reply({})
else:
    reply({}, ok=False, why="syntax error, unexpected " + " ".join(args))
"""
