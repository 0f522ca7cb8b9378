"""What stand-ins print is what programs print: each form has a source, and a stand-in has no words of its own."""

from __future__ import annotations

import ast
import re

import pytest

from tests.device import fakes
from tests.printed_forms import FIELD, FORMS, Form, load_forms, programs

ALL_FORMS = [form for program in programs() for form in load_forms(program).values()]
SOURCE = re.compile(r"(output|code|manual|report): (\S.*?) (\S+), \S.*", re.DOTALL)
# Programs of one package, whose forms are kept together or apart, by the name in `source`.
STAND_INS = {"HDPARM": ["hdparm"]}
# These still print texts of their own.
WITHOUT_FORMS = {"NVME", "SCSI", "STORCLI"}


@pytest.mark.parametrize("form", ALL_FORMS, ids=lambda form: f"{form.program}-{form.name}")
def test_each_form_has_a_source_and_a_pattern_for_each_field(form: Form) -> None:
    """A version and a place of origin; exactly the parts that vary have a regular expression."""
    assert SOURCE.fullmatch(form.source), form.source
    assert all(re.fullmatch(r"\d+(\.\d+)*\S*", version) for version in form.versions)
    assert set(FIELD.findall(form.stdout + form.stderr)) == set(form.fields)
    for pattern in form.fields.values():
        re.compile(pattern)


def test_no_text_lies_about_unused() -> None:
    """Each file in the folder of a program is named by one of its entries, or by a source."""
    for folder in (path for path in FORMS.iterdir() if path.is_dir()):
        entries = (FORMS / f"{folder.name}.toml").read_text()
        for file in folder.iterdir():
            assert f'"{file.name}"' in entries or f"{folder.name}/{file.name}" in entries, file


def test_a_value_that_no_program_prints_is_refused() -> None:
    """A stand-in can fill a documented part only, and only as its pattern allows."""
    form = load_forms("hdparm")["sanitize-status-in-process"]
    assert "Progress: 0x4000 (25%)" in form.fill(PROGRESS="4000", PERCENT=25).stdout
    with pytest.raises(AssertionError, match="PERCENT cannot be 'half'"):
        form.fill(PROGRESS="4000", PERCENT="half")
    with pytest.raises(AssertionError, match="hdparm sanitize-status-in-process"):
        form.fill(PROGRESS="4000")


@pytest.mark.parametrize("name", sorted(STAND_INS))
def test_a_stand_in_prints_forms_only(name: str) -> None:
    """It calls ``answer`` with the name of a form, and nothing else that writes."""
    tree = ast.parse(getattr(fakes, name))
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        assert ast.unparse(call.func) not in (
            "print",
            "sys.stdout.write",
            "sys.stderr.write",
            "os.write",
        )
    known = {form for program in STAND_INS[name] for form in load_forms(program)}
    literals = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert literals & known, f"{name} prints none of the forms"
    named = {
        ast.unparse(call.args[0]).strip("'")
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "answer"
        if isinstance(call.args[0], ast.Constant)
    }
    assert named <= known


def test_every_stand_in_is_checked() -> None:
    """A new one needs forms with a source; the list of those without only gets shorter."""
    programs_of_fakes = {
        name for name, text in vars(fakes).items() if name.isupper() and isinstance(text, str)
    }
    assert programs_of_fakes - {"PROLOGUE"} == STAND_INS.keys() | WITHOUT_FORMS
