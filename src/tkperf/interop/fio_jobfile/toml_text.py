"""The workload file that a job file becomes, with what came from where, and the account, as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from textwrap import wrap

import msgspec

from tkperf.interop.fio_jobfile.account import Account
from tkperf.interop.fio_jobfile.sequence import NamedPhase
from tkperf.model.units import on_one_line
from tkperf.procedures.own_workloads.parts import LONGEST_TITLE

WIDTH = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def name_of_test(stem: str, taken: Sequence[str]) -> str:
    """What the test is called, from the name of the job file."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:56] or "job"
    return f"{name}-fio" if name in taken else name


def render_toml(*, name: str, file: str, phases: Sequence[NamedPhase], account: Account) -> str:
    """The text of the workload file; ``file`` is the job file as the user named it."""
    shown = on_one_line(file)
    title = f"fio job file {shown.rpartition('/')[2]}"
    lines = [
        *_comment(
            f"From fio's job file {shown}, by tkperf workload from-fio. What became of its options:"
        ),
        "#",
        *(f"# {entry}" for entry in account.entries()),
        "",
        "format = 1",
        f"name = {_string(name)}",
        f"title = {_string(title[:LONGEST_TITLE])}",
        f"source = {_string(_source(shown, account))}",
    ]
    for named in phases:
        lines += ["", *_comment(_origin(named)), f"[loads.{_key(named.name)}]"]
        lines += _pairs(named.load)
    for named in phases:
        lines += ["", "[[phases]]", f'kind = "{named.phase.__struct_config__.tag}"']
        lines += _pairs(named.phase)
    return "\n".join(lines) + "\n"


def _source(shown: str, account: Account) -> str:
    text = f"fio's job file {shown.rpartition('/')[2]}, converted by tkperf workload from-fio"
    if account.given_up:
        text += f"; given up of it: {', '.join(map(on_one_line, account.given_up.values()))}"
    return text


def _origin(named: NamedPhase) -> str:
    places = (f"[{on_one_line(job.name)}] of line {job.line}" for job in named.jobs)
    together = " (at the same time: the same load)" if len(named.jobs) > 1 else ""
    return f"From {', '.join(places)}{together}"


def _comment(text: str) -> Iterator[str]:
    return (f"# {line}" for line in wrap(text, WIDTH))


def _pairs(part: msgspec.Struct) -> Iterator[str]:
    for key, value in msgspec.to_builtins(part).items():
        if key != "kind":
            yield f"{key} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _string(text: str) -> str:
    # What is left are characters that TOML and JSON write alike.
    return json.dumps(on_one_line(text), ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)
