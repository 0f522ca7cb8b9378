"""A reader of workload files. The reader returns the test that a file describes.

The TOML file is decoded strictly. Each mistake causes a one-line error that names the file, the key and the reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tkperf.model.errors import InputFileError, closest, not_known
from tkperf.model.input_files import SETTINGS_BYTES, read_text_input
from tkperf.model.strict import convert_strictly, decode_strictly, shallow
from tkperf.model.units import drop_controls
from tkperf.procedures.descriptor import Test
from tkperf.procedures.own_workloads.own_procedure import course
from tkperf.procedures.own_workloads.parts import (
    FillPhase,
    IdlePhase,
    Load,
    OwnPhase,
    PurgePhase,
    RoundsPhase,
    StreamPhase,
)
from tkperf.procedures.own_workloads.workload_file import OwnWorkloadTable, table_type
from tkperf.procedures.own_workloads.workload_texts import describe, plan_section
from tkperf.procedures.profiles.profile_tables import PreconditioningTable, SteadyStateTable


def test_of(table: OwnWorkloadTable) -> Test:
    """Return the test that a workload file describes. The profile of the run supplies the numbers that the file does
    not contain.
    """
    type_ = type(table)
    fills = any(isinstance(phase, FillPhase) for phase in table.phases)
    shared = (SteadyStateTable,) if table.tracked_quantities else ()
    return Test(
        name=table.name,
        title=table.title,
        source=table.source,
        suites=("ssd", "hdd", "raid"),
        by_default=False,
        own=True,
        table=type_,
        procedure=partial(course, type_),
        describe=lambda profile, circumstances: describe(profile.table(type_), profile, circumstances),
        section_plan=partial(plan_section, table),
        tracked=table.tracked_quantities,
        shared=(*shared, PreconditioningTable) if fills else shared,
    )


WHAT = "workload file"


_PHASES: tuple[type[Any], ...] = (PurgePhase, FillPhase, IdlePhase, RoundsPhase, StreamPhase)


_KINDS = {str(kind.__struct_config__.tag): kind for kind in _PHASES}


def read_workload_file(path: str | Path) -> OwnWorkloadTable:
    """Read a workload file, and return the content as the table of a test."""
    text = read_text_input(Path(path), what=WHAT, limit_bytes=SETTINGS_BYTES)
    try:
        return parse_workload_file(text, file=str(path))
    except InputFileError as error:
        if Path(path).suffix != ".fio":
            raise
        raise InputFileError(
            f"{error}. A job file of fio is not a workload file. To convert {path}, use: tkperf workload from-fio "
            f"{path} -o FILE.toml"
        ) from error


def parse_workload_file(text: str, *, file: str) -> OwnWorkloadTable:
    """Return the content of a workload file. Error messages contain the name ``file``. Rules that depend on a profile
    are not checked here.

    Raises:
        InputFileError: the text is not TOML, or contains an unknown key or an impossible value.
    """
    what = f"{WHAT} {file}"
    document = decode_strictly(lambda: tomllib.loads(shallow(text)), dict[str, Any], what=what, language="TOML")
    parts = {
        "loads": {
            name: convert_strictly(load, Load, what=f"{what}, load {_short(name)}")
            for name, load in _tables(document, "loads", dict, what).items()
        },
        "phases": tuple(
            _convert_phase(phase, f"{what}, phase {number}")
            for number, phase in enumerate(_tables(document, "phases", list, what), start=1)
        ),
    }
    name = document.get("name")
    type_ = table_type(name if isinstance(name, str) else "")
    table = convert_strictly(document | msgspec.to_builtins(parts), type_, what=what)
    texts = (
        ("title", table.title),
        ("source", table.source),
        *(("loads", name) for name in table.loads),
        *(("section", phase.section) for phase in table.measuring),
    )
    for key, words in texts:
        # tkperf shows each text on a separate line before the question for consent. A text must not look like another
        # line.
        if words != drop_controls(words).replace("\n", " ") or not words.strip():
            raise InputFileError(f"{what}, key {key}: the text is empty, or contains characters that cannot be printed")
    return table


def _tables(document: Mapping[str, Any], key: str, kind: type, what: str) -> Any:
    value = document.get(key)
    if value is None:
        raise InputFileError(f"{what}: required key {key} is missing{_guess_slip(key, document)}")
    if not isinstance(value, kind):
        spelled = "[[phases]]" if kind is list else f"[{key}.NAME]"
        raise InputFileError(f"{what}, key {key}: the value must consist of tables, so write {spelled}")
    return value


def _guess_slip(missing: str, table: Iterable[str]) -> str:
    """Return a suggestion such as ``; did you write knid for kind?``, or an empty string if no key of the table is
    similar.
    """
    written = closest(missing, table)
    return "" if written in (None, missing) else f"; did you write {written} for {missing}?"


def _convert_phase(phase: object, what: str) -> OwnPhase:
    kind = phase.get("kind") if isinstance(phase, dict) else None
    if not isinstance(kind, str):
        slip = _guess_slip("kind", phase) if isinstance(phase, dict) else ""
        raise InputFileError(f"{what}: the key 'kind' is missing. Set 'kind' to one of {', '.join(_KINDS)}{slip}")
    if kind not in _KINDS:
        raise InputFileError(f"{what}, key kind: {not_known('kind', _short(kind), _KINDS)}")
    converted: OwnPhase = convert_strictly(phase, _KINDS[kind], what=f"{what} ({kind})")
    return converted


def _short(name: str) -> str:
    return drop_controls(name)[:40]
