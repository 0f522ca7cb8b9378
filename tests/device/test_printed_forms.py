"""Stand-ins print only the recorded forms of the texts that the real programs print. Each form has a source. A stand-in
adds no text of its own.
"""

from __future__ import annotations

import ast
import re
import subprocess

import pytest

from tests.device import fakes
from tests.printed_forms import FIELD, FORMS, Form, load_forms, programs
from tkperf.device.inspection import AtaSecurity, parse_identify
from tkperf.system.process import find_program

ALL_FORMS = [form for program in programs() for form in load_forms(program).values()]
SOURCE = re.compile(r"(output|code|manual|report): (\S.*?) (\S+), \S.*", re.DOTALL)
# The key is the name of a stand-in in fakes.py, and the value lists the programs with forms that this stand-in may
# print.
STAND_INS = {
    "HDPARM": ["hdparm"],
    "MDADM": ["mdadm"],
    "NVME": ["nvme"],
    "SG_OPCODES": ["sg_opcodes"],
    "SG_REQUESTS": ["sg_requests"],
    "STORCLI": ["storcli"],
}
# tkperf does not parse the output of these programs.
SILENT = {"SG_ERASE"}


@pytest.mark.parametrize("form", ALL_FORMS, ids=lambda form: f"{form.program}-{form.name}")
def test_each_form_has_a_source_and_a_pattern_for_each_field(form: Form) -> None:
    """Each form has a version and a source. Each part that varies has a regular expression, and no fixed part
    has one.
    """
    assert SOURCE.fullmatch(form.source), form.source
    assert all(re.fullmatch(r"\d+(\.\d+)*\S*", version) for version in form.versions)
    assert set(FIELD.findall(form.stdout + form.stderr)) == set(form.fields)
    for pattern in form.fields.values():
        re.compile(pattern)


def test_no_text_lies_about_unused() -> None:
    """In the folder of each program, an entry or a source names every file. The folder therefore contains no unused
    form.
    """
    for folder in (path for path in FORMS.iterdir() if path.is_dir()):
        entries = (FORMS / f"{folder.name}.toml").read_text()
        for file in folder.iterdir():
            assert f'"{file.name}"' in entries or f"{folder.name}/{file.name}" in entries, file


def test_a_value_that_no_program_prints_is_refused() -> None:
    """A stand-in can fill only a documented field of a form, and only with a value that matches the field's pattern."""
    form = load_forms("hdparm")["sanitize-status-in-process"]
    assert "Progress: 0x4000 (25%)" in form.fill(PROGRESS="4000", PERCENT=25).stdout
    with pytest.raises(AssertionError, match="PERCENT cannot be 'half'"):
        form.fill(PROGRESS="4000", PERCENT="half")
    with pytest.raises(AssertionError, match="hdparm sanitize-status-in-process"):
        form.fill(PROGRESS="4000")


@pytest.mark.parametrize("name", sorted(STAND_INS))
def test_a_stand_in_prints_forms_only(name: str) -> None:
    """A stand-in calls ``answer`` with the name of a form, and calls no other function that writes."""
    tree = ast.parse(getattr(fakes, name))
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        assert ast.unparse(call.func) not in ("print", "sys.stdout.write", "sys.stderr.write", "os.write")
    forms = {form for program in STAND_INS[name] for form in load_forms(program)}
    known = forms | {form.partition("@")[0] for form in forms}
    literals = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert literals & known, f"{name} prints none of the forms"
    named = {
        ast.unparse(call.args[0]).strip("'")
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("answer", "say", "answer_of_version")
        if isinstance(call.args[0], ast.Constant)
    }
    assert named <= known


def test_every_stand_in_is_checked() -> None:
    """Every stand-in is in the list of stand-ins whose forms are checked."""
    programs_of_fakes = {name for name, text in vars(fakes).items() if name.isupper() and isinstance(text, str)}
    assert programs_of_fakes - {"PROLOGUE"} == STAND_INS.keys() | SILENT


def print_identify(changes: dict[int, int]) -> str:
    """Return the output of hdparm for the identify data of ``hdparm/identify-words.txt`` with some words changed."""
    words = [int(word, 16) for word in (FORMS / "hdparm/identify-words.txt").read_text().split()]
    for number, word in changes.items():
        words[number] = word
    rest = sum((word & 0xFF) + (word >> 8) for word in words[:255]) + 0xA5
    words[255] = (-rest & 0xFF) << 8 | 0xA5
    program = find_program("hdparm")
    assert program is not None
    text = " ".join(f"{word:04x}" for word in words)
    done = subprocess.run([program, "--Istdin"], input=text, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.skipif(find_program("hdparm") is None, reason="hdparm is not installed")
@pytest.mark.parametrize(
    ("changes", "reads", "fields"),
    [
        (
            {128: 0x21, 59: 0x1110, 89: 1, 90: 2},
            AtaSecurity(supported=True, enhanced_erase=True, erase_minutes=2, enhanced_erase_minutes=4),
            {
                "SANITIZE": "\t   *\tSANITIZE feature set\n",
                "ENHANCED": "\t\t",
                "MINUTES": "2min for SECURITY ERASE UNIT. 4min for ENHANCED SECURITY ERASE UNIT.",
            },
        ),
        (
            {128: 0x0F, 59: 0xF110, 89: 0xFF, 90: 0},
            AtaSecurity(
                supported=True,
                enabled=True,
                locked=True,
                frozen=True,
                erase_minutes=508,
                sanitize=frozenset({"BLOCK_ERASE_EXT", "CRYPTO_SCRAMBLE_EXT", "OVERWRITE_EXT"}),
            ),
            {
                "SANITIZE": "\t   *\tSANITIZE feature set\n\t   *\tCRYPTO_SCRAMBLE_EXT command\n"
                "\t   *\tOVERWRITE_EXT command\n\t   *\tBLOCK_ERASE_EXT command\n",
                "ENABLED": "\t\t",
                "LOCKED": "\t\t",
                "FROZEN": "\t\t",
                "LEVEL": "\tSecurity level high\n",
                "MINUTES": "more than 508min for SECURITY ERASE UNIT.",
            },
        ),
        (
            {128: 0x103, 59: 0x110, 89: 0xFFFF, 90: 0x8010},
            AtaSecurity(supported=True, enabled=True, erase_minutes=65532, enhanced_erase_minutes=32),
            {
                "ENABLED": "\t\t",
                "LEVEL": "\tSecurity level maximum\n",
                "MINUTES": "more than 65532min for SECURITY ERASE UNIT. 32min for ENHANCED SECURITY ERASE UNIT.",
            },
        ),
        (
            {128: 0x20, 59: 0x110, 89: 1, 90: 0},
            AtaSecurity(supported=False, enhanced_erase=True, erase_minutes=2),
            {"SUPPORTED": "\t(?)\t", "ENHANCED": "\t\t", "MINUTES": "2min for SECURITY ERASE UNIT."},
        ),
    ],
)
def test_hdparm_prints_its_form(changes: dict[int, int], reads: AtaSecurity, fields: dict[str, str]) -> None:
    """The installed hdparm prints exactly the text of the form. From this text, tkperf parses the values that the
    drive's identify words contain.
    """
    printed = print_identify(changes)
    form = load_forms("hdparm")["identify"].fill(
        **{
            "SANITIZE": "",
            "SUPPORTED": "\t\t",
            "ENABLED": "\tnot\t",
            "LOCKED": "\tnot\t",
            "FROZEN": "\tnot\t",
            "ENHANCED": "\tnot\t",
            "LEVEL": "",
            **fields,
        }
    )
    assert printed.lstrip("\n") == form.stdout.removeprefix("\n/dev/sdx:\n\n")
    assert parse_identify(printed, path="/dev/sdx") == reads
