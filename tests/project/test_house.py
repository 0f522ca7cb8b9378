"""A test is referred to by its name in only two parts of the code: the module of the test, and the code that reads and
writes the format of TKperf.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tkperf
from tkperf.interop import FIO_TEST
from tkperf.model.quantity import QUANTITIES
from tkperf.model.units import GIB
from tkperf.procedures import TESTS, load_profile
from tkperf.procedures.forecast import section_names

SOURCE = Path(tkperf.__file__).parent
PROFILE = load_profile("quick")
NAMES = {test.name for test in TESTS} | {FIO_TEST}
TITLES = {test.title for test in TESTS} - {each.label for each in QUANTITIES.values()}
TABLES = {table.key for test in TESTS for table in test.tables}
SECTIONS = {
    name for test in TESTS for name in section_names(test.procedure(PROFILE, GIB), active_range_bytes=GIB)
} - NAMES
# Titles of tests or sections that are also titles of quantities.
QUANTITY_WORDS = {*QUANTITIES, *(each.label for each in QUANTITIES.values())}
ALLOWED = (
    "procedures/",
    # This module contains the names that the command line offers without loading the tests. tests/model/test_choices.py
    # compares these names with the tests.
    "model/choices.py",
    # This code reads or writes the format of TKperf, in which the test of a value is an XML element.
    "render/export_tkperf.py",
    "interop/tkperf_xml.py",
    "interop/__init__.py",
    "page/comparison/build_page.py",
)
# These words occur with another meaning: keys in the output of fio, programs, commands, quantities and charts.
OTHER_MEANINGS = {
    ("interop/fio_result.py", "lat"),
    ("pipeline/diagnosis.py", "fio"),
    ("analysis/readiness.py", "fio"),
    ("cli/main.py", "sweep"),
    ("cli/lines.py", "iops"),
    ("system/process.py", "fio"),
    ("page/doctor.py", "fio"),
    ("page/words/conditions.py", "fio"),
    ("page/comparison/build_page.py", "fio"),
    ("page/cell_dialog.py", "latency"),
    ("page/cell_dialog.py", "Response time histogram"),
    ("page/figures/curves.py", "Response time histogram"),
    ("page/figures/interference_charts.py", "neighbours"),
    ("interop/fio_json.py", "demand"),
}


def strings(node: ast.AST | None) -> Iterator[str]:
    """Yield the string that an expression contains, or the strings in a list of expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for each in node.elts:
            yield from strings(each)


def deciding(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings that the code compares or matches with a value, and the strings with which it looks up a
    value.
    """
    for node in ast.walk(tree):
        found: list[ast.AST | None] = []
        match node:
            case ast.Compare():
                found = [node.left, *node.comparators]
            case ast.MatchValue():
                found = [node.value]
            case ast.Dict():
                found = [*node.keys]
            case ast.Subscript():
                found = [node.slice]
            case ast.Call(func=ast.Attribute()):
                found = [*node.args]
        for each in found:
            for word in strings(each):
                yield getattr(node, "lineno", 0) or getattr(each, "lineno", 0), word


def documentation(tree: ast.AST) -> set[int]:
    """Return the ids of the nodes that are docstrings."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }


def find_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each place that refers to a test, a section or the table of a test by its name."""
    tree = ast.parse(text)
    docs = documentation(tree)
    unmistakable = (NAMES | SECTIONS | TABLES) - QUANTITY_WORDS - {FIO_TEST}
    for node in ast.walk(tree):
        for word in strings(node):
            if word in unmistakable and id(node) not in docs:
                yield node.lineno, word  # type: ignore[attr-defined]
    for line, word in deciding(tree):
        if word in (NAMES | TITLES) - unmistakable:
            yield line, word


def places() -> list[str]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if not name.startswith(ALLOWED):
            found += [
                f"{name}:{line}: {word}"
                for line, word in sorted(set(find_names(path.read_text())))
                if (name, word) not in OTHER_MEANINGS
            ]
    return found


def test_no_other_module_knows_a_tests_name() -> None:
    """No other module contains the name of a test. All facts about a test are in its descriptor, and all results are in
    the records.
    """
    assert places() == []


def test_every_other_meaning_is_there() -> None:
    """Each listed word with another meaning still occurs in its module. An outdated entry in the list could hide a new
    use of the word.
    """
    for name, word in OTHER_MEANINGS:
        assert word in {each for _, each in find_names((SOURCE / name).read_text())}


@pytest.mark.parametrize(
    "code",
    [
        'if test.name == "iops": pass',
        'if test.name in ("lat", "tp"): pass',
        '{"iops": 1}.get(test)',
        'match test:\n    case "tp": pass',
        'sections["Write Saturation"]',
        'info.demand("iops")',
        'info.table("hard_disk")',
        'DEFAULT = "writesat"',
        'counted = test.name == "fio"',
        'section.name.startswith("Throughput")',
    ],
)
def test_a_branch_by_a_tests_name_is_found(code: str) -> None:
    """The check finds every form in which code could branch according to the name of a test."""
    assert list(find_names(code))


def test_a_quantity_is_not_a_test() -> None:
    """The check does not mistake the key of a quantity for the name of a test, even if both are the same word."""
    assert not list(find_names('"""About iops."""\nmatrices = ("iops", "latency_mean_us")'))
