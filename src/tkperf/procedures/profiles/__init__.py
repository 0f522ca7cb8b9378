"""Profiles: the numbers of a specification as named data, each table with its source.

A profile is a TOML file. tkperf ships the profiles in this folder; a user may give a file of their own.
Reading is strict: an unknown key, a missing key or an impossible value is an error that names file, key and
reason. ``tkperf.procedures`` lists the tables of tests.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tkperf.model.choices import built_in_profiles, profiles_folder
from tkperf.model.errors import ProfileError, UsageError, not_known
from tkperf.model.input_files import SETTINGS_BYTES, is_toml_path, read_text_input
from tkperf.model.strict import decode_strictly, describe_values, shallow
from tkperf.procedures.profiles.ranges import resolve_range
from tkperf.procedures.profiles.tables import SHARED_TABLES, TestTable, find_fault
from tkperf.procedures.profiles.tables import Profile as Profile

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]


def load_profile(name_or_path: str, tests: Iterable[type[TestTable]]) -> Profile:
    """Return a shipped profile by name, or a user's own by path.

    Args:
        tests: the tables that it may have in addition to the shared ones.

    Raises:
        UsageError: no such profile.
        ProfileError: the file is not a valid profile; the message names file, key and reason.
    """
    if is_toml_path(name_or_path):
        path = Path(name_or_path)
        text = read_text_input(path, what="profile", limit_bytes=SETTINGS_BYTES, error=ProfileError)
        profile = parse_profile(text, tests, file=str(path))
        _require_own_name(profile, tests, file=str(path))
        return profile
    shipped = built_in_profiles()
    if name_or_path not in shipped:
        error = str(not_known("profile", name_or_path, shipped))
        own = "own profile is given as a path to its .toml file"
        raise UsageError(f"{error} An {own}" if error.endswith("?") else f"{error}; an {own}")
    file = profiles_folder() / f"{name_or_path}.toml"
    return parse_profile(file.read_text(encoding="utf-8"), tests, file=str(file))


def _require_own_name(own: Profile, tests: Iterable[type[TestTable]], *, file: str) -> None:
    """Refuse other numbers under a specification's name: they would pass for its own in every result.

    Raises:
        ProfileError: the file has the name or title of a shipped profile, and other numbers.
    """
    shipped = find_shipped_namesake(own, tests)
    if shipped is not None:
        key = "name" if own.name == shipped.name else "title"
        raise ProfileError(
            f"profile {file}, key {key}: '{getattr(own, key)}' is the shipped profile's, whose "
            f"numbers are others: give it a {key} of its own"
        )


def find_shipped_namesake(own: Profile, tests: Iterable[type[TestTable]]) -> Profile | None:
    """Return the shipped profile of the same name or title, if its numbers differ."""
    types = tuple(tests)
    for name in built_in_profiles():
        shipped = load_profile(name, types)
        same = own.name == shipped.name or own.title == shipped.title
        if same and not _agrees(own, shipped):
            return shipped
    return None


def _agrees(own: Profile, shipped: Profile) -> bool:
    """Return whether each table has the shipped numbers, without regard to its source.

    A profile may lack tables, such as those of tests added to the shipped profile later.
    """
    theirs = {
        key: msgspec.structs.replace(table, source="") for key, table in shipped.tables.items()
    }
    return all(
        msgspec.structs.replace(table, source="") == theirs.get(key)
        for key, table in own.tables.items()
    )


def parse_profile(text: str, tests: Iterable[type[TestTable]], *, file: str) -> Profile:
    """Decode a profile; ``file`` is named in errors.

    Args:
        tests: the tables that it may have in addition to the shared ones.

    Raises:
        ProfileError: not TOML, a typo, or an impossible value.
    """
    types = tuple(dict.fromkeys(tests))
    document: Any = decode_strictly(
        lambda: tomllib.loads(shallow(text)),
        _document_type(types),
        what=f"profile {file}",
        language="TOML",
        error=ProfileError,
    )
    tables = {type_.key: getattr(document, type_.key) for type_ in (*SHARED_TABLES, *types)}
    profile = Profile(
        name=document.name,
        title=document.title,
        notice=document.notice,
        tables={key: table for key, table in tables.items() if table is not None},
    )
    fault = find_fault(profile)
    for key, length in (
        ("active_range.length", profile.active_range.length),
        ("active_range.amount", profile.active_range.amount),
        ("preconditioning.length", profile.preconditioning.length),
    ):
        try:
            resolve_range("100%" if length is None else length, 2**40, 4096)
        except UsageError as error:
            fault = fault or f"{key}: {error}"
    if fault:
        raise ProfileError(f"profile {file}, key {fault}")
    return profile


@cache
def _document_type(tests: tuple[type[TestTable], ...]) -> type[msgspec.Struct]:
    """Return the type of a TOML file: every shared table is required, every table of a test is optional."""
    return msgspec.defstruct(
        "Profile",
        [
            ("name", Name),
            ("title", str),
            ("notice", str),
            *((type_.key, type_) for type_ in SHARED_TABLES),
            *((type_.key, type_ | None, None) for type_ in tests),
        ],
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def read_stored_profile(data: Mapping[str, object], tests: Iterable[type[TestTable]]) -> Profile:
    """Return the profile in a run file, as far as this version understands it.

    Each table is decoded on its own. Unknown keys are skipped. An incomplete table, such as that of an imported
    run, is left out and does not affect the others.
    """
    tables = {}
    for type_ in dict.fromkeys((*SHARED_TABLES, *tests)):
        stored = data.get(type_.key)
        if isinstance(stored, dict):
            values = {key: stored[key] for key in type_.__struct_fields__ if key in stored}
            try:
                tables[type_.key] = msgspec.convert(values, type_)
            except msgspec.ValidationError:
                continue
    name, title, notice = (str(data.get(key) or "") for key in ("name", "title", "notice"))
    return Profile(name=name, title=title, notice=notice, tables=tables)


def apply_options(
    profile: Profile,
    *,
    jobs: int | None = None,
    io_depth: int | None = None,
    searched: bool | None = None,
    step_s: float | None = None,
    write_cache: str | None = None,
    active_range: str | None = None,
    accept_disturbed: bool = False,
) -> Profile:
    """Return the profile with the user's options (-nj, -iod, -rt ...) in place.

    ``active_range`` is used in one piece, even if the profile has an amount and segments. ``step_s`` is the
    length of each step and of each slice of write saturation. Write saturation keeps its times: see
    ``WriteSaturationTable.scaled``.
    """
    demand = msgspec.structs.replace(
        profile.demand,
        jobs=jobs or profile.demand.jobs,
        io_depth=io_depth or profile.demand.io_depth,
        searched=profile.demand.searched if searched is None else searched,
    )
    cache = msgspec.structs.replace(
        profile.write_cache, setting=write_cache or profile.write_cache.setting
    )
    used = profile.active_range
    if active_range is not None:
        used = msgspec.structs.replace(used, length=active_range, amount=None, segments=1)
    steady_state = profile.steady_state
    if accept_disturbed:
        steady_state = msgspec.structs.replace(steady_state, accept_disturbed=True)
    profile = profile.with_tables(demand, cache, used, steady_state)
    if step_s is None:
        return profile
    tests = (table for table in profile.tables.values() if isinstance(table, TestTable))
    return profile.with_tables(*(table.scaled(step_s) for table in tests))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExplained:
    """A key of a table: its possible values and its meaning, both in words."""

    name: str
    values: str
    meaning: str


def explain_keys(table: type[msgspec.Struct]) -> tuple[KeyExplained, ...]:
    """Return all keys of a table in their order."""
    info = msgspec.inspect.type_info(table)
    assert isinstance(info, msgspec.inspect.StructType)
    return tuple(
        KeyExplained(name=field.name, values=describe_values(field.type), meaning=_meaning(field))
        for field in info.fields
    )


def show_value(value: object) -> str:
    """Return a value for people: ``5``, ``yes``, ``100, 65, 0``; a cell as ``65/64``."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(f"{name} {show_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        joint = "; " if any(isinstance(item, dict | list | tuple) for item in value) else ", "
        return joint.join(map(show_value, value)) or "none"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _meaning(field: msgspec.inspect.Field) -> str:
    """Return the meaning of a key. Adds the default of an optional key, unless its text names it."""
    if not isinstance(field.type, msgspec.inspect.Metadata):
        return ""
    meaning = str((field.type.extra_json_schema or {}).get("description", ""))
    if field.required or "left out" in meaning:
        return meaning
    return f"{meaning}; left out: {show_value(field.default)}"
