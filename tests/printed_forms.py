"""The forms in which external programs print their output, with the source of each form.
``tests/golden/tools/README.md`` explains the keys.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FORMS = Path(__file__).parent / "golden/tools"
FIELD = re.compile(r"\{\{([A-Z0-9_]+)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """The output of a program and its exit status."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The output of a program in one situation, for all versions from the first to the last in ``versions``.

    ``fields`` contains regular expressions for the variable parts, which are written as ``{{NAME}}`` in the texts.
    """

    program: str
    name: str
    versions: tuple[str, str]
    source: str
    status: int
    stdout: str
    stderr: str
    fields: Mapping[str, str]

    def fill(self, **values: object) -> Printed:
        """Return the output with a value for each variable field."""
        texts = {name: str(value) for name, value in values.items()}
        assert texts.keys() == self.fields.keys(), f"{self.program} {self.name}: {self.fields}"
        for name, text in texts.items():
            assert re.fullmatch(self.fields[name], text), f"{self.program} {self.name}: {name} cannot be {text!r}"
        stdout, stderr = (FIELD.sub(lambda match: texts[match[1]], text) for text in (self.stdout, self.stderr))
        return Printed(status=self.status, stdout=stdout, stderr=stderr)


def programs() -> tuple[str, ...]:
    """Return the programs for which forms exist."""
    return tuple(sorted(path.stem for path in FORMS.glob("*.toml")))


@cache
def load_forms(program: str) -> Mapping[str, Form]:
    """Return the forms of a program by their names."""
    entries = tomllib.loads((FORMS / f"{program}.toml").read_text())
    return {name: _form(program, name, entry) for name, entry in entries.items()}


def find_form(program: str, situation: str, version: str) -> Form:
    """Return the form that a version of the program prints in a situation. The name of such a form is
    ``SITUATION@VERSION``.
    """
    for name, form in load_forms(program).items():
        first, last = (_as_numbers(each) for each in form.versions)
        if name.partition("@")[0] == situation and first <= _as_numbers(version) <= last:
            return form
    raise AssertionError(f"{program} {version}: there is no form of {situation}")


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split("."))


def _form(program: str, name: str, entry: dict[str, Any]) -> Form:
    stdout = entry.pop("stdout", "")
    if "stdout_file" in entry:
        stdout = (FORMS / program / entry.pop("stdout_file")).read_text()
    first, last = entry.pop("versions")
    form = Form(
        program=program,
        name=name,
        versions=(first, last),
        source=entry.pop("source"),
        status=entry.pop("status", 0),
        stdout=stdout,
        stderr=entry.pop("stderr", ""),
        fields=entry.pop("fields", {}),
    )
    assert not entry, f"{program}.toml, {name}: unknown keys {sorted(entry)}"
    return form
