"""What the code says when it refuses a device, read from the code itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/tkperf"
BLANK = "…"


def template(node: ast.expr) -> str:
    """A text with its blanks: ``f"{path} is locked by {who}"`` is ``… is locked by …``."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(template(part) if isinstance(part, ast.Constant) else BLANK for part in parts)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return template(left) + template(right)
        case _:
            return BLANK


def refusals() -> set[str]:
    """The messages of all that refuses (exit code 3)."""
    return {
        template(call.args[0])
        for path in SOURCE.rglob("*.py")
        for call in calls(ast.parse(path.read_text(encoding="utf-8")), "RefusedError")
    }


def objections() -> dict[str, set[str]]:
    """The reasons that speak against erasing a device, with the messages of each."""
    found: dict[str, set[str]] = {}
    tree = ast.parse((SOURCE / "device/safety.py").read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            said, told_until = sentences(function), 0
            for call in calls(function, "Objection"):
                reason, text = call.args
                texts = [template(text)]
                if isinstance(text, ast.Name):
                    # Both where a branch chooses one.
                    texts = [each for line, each in said if told_until < line < call.lineno]
                told_until = call.lineno
                for name in reasons(reason):
                    found.setdefault(name, set()).update(texts)
    return found


def sentences(function: ast.FunctionDef) -> list[tuple[int, str]]:
    return sorted(
        (node.lineno, template(node.value))
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "sentence"
    )


def reasons(node: ast.expr) -> Iterator[str]:
    """Names of ``Reason``; a table of them stands for all that it has."""
    if isinstance(node, ast.Attribute):
        yield node.attr
    else:
        yield from ("OPEN", "RUNNING", "MAPPED")


def calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    """In the order of their lines."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == name]
    yield from sorted(found, key=lambda call: call.lineno)
