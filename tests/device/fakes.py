"""Stand-ins for hdparm, nvme, sg3-utils and storcli. The tests need the stand-ins because they have no real drives that
support the commands of these programs.

The stand-ins print only the forms in ``tests/golden/tools``. Each of these forms has a source.

Each stand-in stores the state of its drive in a JSON file and writes every call to a log, so that tests can check which
commands tkperf sent, and in which order.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.printed_forms import FORMS

PROLOGUE = """#!{python}
import json, subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from tests.printed_forms import find_form, load_forms
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
def say(form, **fields):
    # Print one of the forms of this program, which all have a source.
    printed = load_forms({forms!r})[form].fill(**fields)
    sys.stdout.write(printed.stdout)
    sys.stderr.write(printed.stderr)
    return printed.status
def answer(form, **fields):
    sys.exit(say(form, **fields))
def answer_of_version(situation, **fields):
    # Print what the version in the state prints in a situation. Give values for the fields of this version only.
    form = find_form({forms!r}, situation, state["version"])
    answer(form.name, **{{key: text for key, text in fields.items() if key in form.fields}})
"""

HDPARM = r"""
COMMANDS = {
    "--security-set-pass": "SECURITY_SET_PASS", "--security-unlock": "SECURITY_UNLOCK",
    "--security-disable": "SECURITY_DISABLE",
    "--security-erase": "SECURITY_ERASE", "--security-erase-enhanced": "SECURITY_ERASE",
    "--sanitize-block-erase": "SANITIZE_BLOCK_ERASE", "--sanitize-crypto-scramble": "SANITIZE_CRYPTO_SCRAMBLE",
    "--sanitize-overwrite": "SANITIZE_OVERWRITE"}
option = next((arg for arg in args if arg in COMMANDS), args[0])
def flag(key):
    return "\t\t" if state.get(key) else "\tnot\t"
def security(form):
    command = COMMANDS[option]
    mode = ", mode=high" if command == "SECURITY_SET_PASS" else ""
    answer(form, COMMAND=command, PASSWORD=args[args.index(option) + 1], MODE=mode)
def sanitize_lines():
    names = state.get("sanitize", [])
    # In the order of the bits of word 59; the feature set itself is bit 12.
    lines = [each + " command" for each in ("CRYPTO_SCRAMBLE_EXT", "OVERWRITE_EXT", "BLOCK_ERASE_EXT") if each in names]
    return "".join("\t   *\t" + line + "\n" for line in (["SANITIZE feature set", *lines] if names else []))
if option == "-V":
    answer("version", VERSION=state.get("version", "9.65"))
if option == "-I":
    if state.get("garbage"):
        answer("identify-of-zeros")
    if not state.get("supported"):
        answer("identify-no-security", SANITIZE=sanitize_lines())
    answer("identify", SANITIZE=sanitize_lines(), SUPPORTED="\t\t", ENABLED=flag("enabled"), LOCKED=flag("locked"),
           FROZEN=flag("frozen"), ENHANCED=flag("enhanced"),
           LEVEL="\tSecurity level high\n" if state.get("enabled") else "",
           MINUTES="2min for SECURITY ERASE UNIT. 4min for ENHANCED SECURITY ERASE UNIT.")
elif option == "--security-set-pass":
    state["password"] = args[args.index(option) + 1]
    state["enabled"] = not state.get("deaf")
    save(); security("security-done")
elif option == "--security-unlock":
    if args[args.index(option) + 1] != state["password"]:
        security("security-aborted")
    state["locked"] = False
    save(); security("security-done")
elif option == "--security-disable":
    if args[args.index(option) + 1] != state["password"] or state.get("locked"):
        security("security-aborted")
    state["enabled"] = False
    save(); security("security-done")
elif option in ("--security-erase", "--security-erase-enhanced"):
    if state.get("erase_fails"):
        security("security-aborted")
    time.sleep(state.get("erase_takes_s", 0))
    if state.get("erase_hangs"):
        time.sleep(60)
    fill(0); state["enabled"] = False; save(); security("security-done")
elif option == "--sanitize-status":
    if not state.get("sanitize"):
        answer("sanitize-not-supported")
    left = state.get("polls", 0)
    state["polls"] = left - 1; save()
    if left > 0:
        answer("sanitize-status-in-process", PROGRESS="4000", PERCENT=25)
    elif state.get("fails"):
        answer("sanitize-status-failed")
    elif state.get("sanitize_frozen"):
        answer("sanitize-status-frozen", SUCCEEDED="")
    elif state.get("registers_missing"):
        answer("sanitize-status-without-registers", SENSE=" ".join(["70 00 01", *["00"] * 29]))
    elif state.get("sanitized"):
        answer("sanitize-status-succeeded", ANTIFREEZE="")
    answer("sanitize-status-idle")
elif option in COMMANDS:
    if "--yes-i-know-what-i-am-doing" not in args:
        answer("consent-missing")
    if state.get("sanitize_frozen"):
        answer("sanitize-aborted", COMMAND=COMMANDS[option], REASON="Device in FROZEN state")
    fill(0xFF); state["sanitized"] = True
    state["polls"] = state.get("sanitize_takes_polls", 0); state["fails"] = state.get("sanitize_fails", False)
    save(); answer("sanitize-started", COMMAND=COMMANDS[option])
"""

NVME = """
WORDS = ["NVM Subsystem has never been sanitized.", "Most Recent Sanitize Command Completed Successfully.",
         "Sanitize in Progress.", "Most Recent Sanitize Command Failed.",
         "Most Recent Sanitize Command (No-Deallocate After Sanitize) Completed Successfully.",
         "Unknown", "Unknown", "Unknown"]
def sanitize_log(status):
    words = WORDS[status]
    # Versions 2.7 and 2.8 print the words as the key, too.
    answer_of_version("sanitize-log", KEY=words if state["version"] in ("2.7.1", "2.8") else "status",
                      STATUS=f"({status}) {words}", SPROG=32768 if status == 2 else 65535,
                      ERASED=state.get("erased", 0), PASSES=0, STATE=state.get("state", "(0) Idle state"),
                      FAILURE=state.get("failure", ""))
if args[0] == "id-ctrl":
    claims = {"oacs": 0, "fna": 0, "sanicap": 0} | state["controller"]
    answer_of_version("id-ctrl", **{key.upper(): number for key, number in claims.items()})
elif args[0] == "id-ns":
    claims = {"flbas": 0, "dps": 0, "dlfeat": 0} | state["namespace"]
    answer_of_version("id-ns", **{key.upper(): number for key, number in claims.items()})
elif args[0] == "sanitize-log":
    if state.get("says"):
        answer_of_version(state["says"])
    left = state.get("polls", 0)
    state["polls"] = left - 1; save()
    sanitize_log(2 if left > 0 else state.get("ends", 1))
elif args[0] == "sanitize":
    action = next(word for word in args if word.startswith("--sanact=")).partition("=")[2]
    if not action.isdigit():
        answer_of_version("sanitize-by-name")
    if state.get("refuses"):
        answer_of_version("sanitize-refused")
    fill(0); answer_of_version("sanitize")
elif args[0] == "format":
    if state.get("refuses"):
        answer_of_version("format-while-sanitizing")
    fill(0); answer_of_version("format")
"""

SG_OPCODES = r"""
NAMES = {1: "overwrite", 2: "block erase", 3: "cryptographic erase"}
action = int(args[args.index("--opcode") + 1].split(",")[1], 16)
if state.get("no_opcodes"):
    answer("not-reported")
if action in state.get("sanitize", []):
    answer("command-supported", ACTION=f"{action:04x}", NAME=NAMES[action], MASK="9f")
answer("command", ACTION=f"{action:04x}", NAME=NAMES[action], SUPPORT=state.get("support", "NOT supported"))
"""

SG_REQUESTS = r"""
def sense(key, code, qualifier, parts=None):
    data = bytearray(18)
    data[0], data[2], data[7], data[12], data[13] = 0x70, key, 10, code, qualifier
    if parts is not None:
        data[15], data[16], data[17] = 0x80, parts >> 8, parts & 0xFF
    dump = data.hex(" ")
    answer("sense", FIRST_EIGHT=dump[:23], NEXT_EIGHT=dump[24:47], LAST_TWO=dump[48:])
left = state.get("polls", 0)
state["polls"] = left - 1; save()
if state.get("silent"):
    answer("nothing")
if left > 0:
    sense(2, 4, *state.get("erase", [0x1B, 26542]))
sense(*state.get("sense", [0, 0, 0]))
"""

SG_ERASE = r"""
fill(0x5A)
state["polls"] = state.get("erase_takes_polls", 0)
state["sense"] = state.get("sense_after", [0, 0, 0])
save()
"""


MDADM = r"""
new = "-on-stdout" if state.get("new") else ""
if args[0] == "--create":
    if state.get("missing"):
        answer("member-missing", MEMBER=args[-2], MISSING=args[-1])
    state["exists"] = True
    save(); answer("started" + new, SET=args[1])
if args[0] == "--stop":
    if state.get("busy", 0) > 0:
        state["busy"] -= 1
        save(); answer("stop-busy", SET=args[1])
    state["exists"] = False
    save(); answer("stopped" + new, SET=args[1])
if args[0] == "--zero-superblock":
    if args[1] in state.get("blank", []):
        answer("no-member", MEMBER=args[1])
    answer("erased")
"""


class FakeTools:
    """Programs in a folder at the front of PATH. All programs share one state."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        self._state = folder / "state.json"
        self._log = folder / "calls.log"
        self._monkeypatch = monkeypatch
        self._bin = folder / "bin"
        self._bin.mkdir()
        monkeypatch.setenv("PATH", str(self._bin), prepend=":")
        self.update(drive="", version="2.13")

    def install(self, name: str, body: str) -> None:
        prologue = PROLOGUE.format(
            python=sys.executable,
            tests=str(FORMS.parents[2]),
            state=str(self._state),
            log=str(self._log),
            name=name,
            # The program storcli64 is the same program as storcli and prints the same output.
            forms=name.removesuffix("64"),
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
        """Return the recorded calls that contain at least one of these words."""
        return [call for call in self.calls if set(call) & set(words)]


MakeTools = Callable[[], FakeTools]

STORCLI = r"""
assert args[-1] == "J", args
where, words = args[0], args[1:-1]
if state.get("garbage"):
    answer("crashed")
def run(key):
    subprocess.run(["sh", "-c", state.get(key, "true")], check=True)
def under_way(key, form, **fields):
    left = state.get(key, 0)
    state[key] = left - 1; save()
    if left > 0:
        answer(form, PROGRESS=25, STATUS="In progress", LEFT="5 Minutes", **fields)
    answer(form, PROGRESS='"-"', STATUS=state.get("idle", "Not in progress"), LEFT="-", **fields)
if "/s" in where:
    address = where.split("/e")[1].replace("/s", ":")
    drive = state["drives"].get(address)
    if drive is None:
        answer("failure", WHY="No drive found!")
    if words == ["show", "all"]:
        group = drive.get("DG", "-")
        answer("drive", WHERE=where, ADDRESS=address, STATE=drive["State"],
               DG=group if group.isdigit() else json.dumps(group),
               SIZE="446.625 GB", SECTOR="512B", SERIAL=f" {drive['SN']} ")
    if words[:2] == ["start", "erase"]:
        if state.get("erase_refused"):
            answer("failure-of-drive", WHAT="Start Drive Erase Failed.", WHERE=where, CODE=50,
                   WHY="device state doesn't support requested command")
        state["erase_polls of " + address] = state.get("erase_takes_polls", 1)
        save(); answer("done", WHAT="Start Drive Erase Succeeded.")
    if words == ["show", "erase"]:
        of_drive = "erase_polls of " + address
        under_way(of_drive if of_drive in state else "erase_polls", "erase", WHERE=where)
elif where == "/c0/vall":
    if not state["vds"]:
        answer("no-virtual-drives")
    say("virtual-drives-begin")
    for index, (number, vd) in enumerate(state["vds"].items()):
        rows = [f'\t\t\t{{ "EID:Slt" : "{each}", "State" : "Onln" }}\n' for each in vd["members"].split(",")]
        node = "" if vd["device"] is None else f'\t\t\t"OS Drive Name" : "{vd["device"]}",\n'
        say("virtual-drive", COMMA=",\n" if index else "", NUMBER=number, STATE=vd["State"], NAA=vd["naa"], NODE=node,
            ROWS=",".join(rows))
    answer("virtual-drives-end")
elif where == "/c0" and words[:2] == ["add", "vd"]:
    members = next(word for word in words if word.startswith("drives=")).partition("=")[2]
    for member in members.split(","):
        state["drives"][member]["State"] = "Onln"
    state["vds"]["3"] = {"State": state.get("vd_state", "Optl"), "device": state["device"],
                         "naa": state["naa"], "members": members}
    save(); run("on_add")
    if state.get("add_fails"):
        answer("failure", WHY="controller reset")
    answer("done", WHAT="Add VD Succeeded.")
elif where == "/c0/v3" and words == ["start", "init", "full"]:
    state["init_polls"] = state.get("init_polls", 1)
    save(); answer("done", WHAT="Start INIT Operation Success")
elif where == "/c0/v3" and words == ["show", "init"]:
    under_way("init_polls", "operation-of-virtual-drive", NUMBER=3)
elif where == "/c0/v3" and words == ["delete", "force"]:
    for member in state["vds"].pop("3")["members"].split(","):
        state["drives"][member]["State"] = "UGood"
    save(); run("on_delete"); answer("done", WHAT="Delete VD succeeded")
answer("failure", WHY="syntax error, unexpected " + " ".join(args))
"""
