"""Readers of profiles: shipped profiles, profiles of the user, and profiles in run files."""

import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tkperf.model.choices import built_in_profiles, profiles_folder
from tkperf.model.decoding import convert
from tkperf.model.errors import ProfileError, UsageError, not_known
from tkperf.model.input_files import SETTINGS_BYTES, is_toml_path, read_text_input
from tkperf.model.strict import decode_strictly, shallow
from tkperf.procedures.forecast import find_excess
from tkperf.procedures.offered_tests import TABLES, TESTS
from tkperf.procedures.own_workloads.workload_file import table_types
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.options_and_ranges import resolve_range
from tkperf.procedures.profiles.profile_tables import SHARED_TABLES, find_fault

_ProfileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]


def load_profile(name_or_path: str) -> Profile:
    """Return a shipped profile by its name, or a profile of the user by its path.

    Raises:
        UsageError: there is no such profile.
        ProfileError: the file is not a valid profile. The message contains the file, the key and the reason.
    """
    return _read_profile(name_or_path)[0]


def read_profile_text(name_or_path: str) -> str:
    """Return the TOML text of a shipped profile or of a profile of the user, with all comments.

    Raises:
        UsageError: there is no such profile.
        ProfileError: the file is not a valid profile. The message contains the file, the key and the reason.
    """
    return _read_profile(name_or_path)[1]


def _read_profile(name_or_path: str) -> tuple[Profile, str]:
    """Return a profile and the text of its file."""
    if is_toml_path(name_or_path):
        path = Path(name_or_path)
        text = read_text_input(path, what="profile", limit_bytes=SETTINGS_BYTES, error=ProfileError)
        profile = parse_profile(text, file=str(path))
        _require_own_name(profile, file=str(path))
        return profile, text
    shipped = built_in_profiles()
    if name_or_path not in shipped:
        error = str(not_known("profile", name_or_path, shipped))
        own = "own profile is given as a path to its .toml file"
        raise UsageError(f"{error} An {own}" if error.endswith("?") else f"{error}; an {own}")
    # The shipped profiles were checked before the release. The check of all tests is omitted, because it takes time.
    file = profiles_folder() / f"{name_or_path}.toml"
    text = file.read_text(encoding="utf-8")
    return _decode_profile(text, file=str(file)), text


def _require_own_name(own: Profile, *, file: str) -> None:
    """Refuse a profile that has the name of a specification but other numbers, because every result would present these
    numbers as those of the specification.
    """
    shipped = find_shipped_namesake(own)
    if shipped is not None:
        key = "name" if own.name == shipped.name else "title"
        raise ProfileError(
            f"profile {file}, key {key}: '{getattr(own, key)}' belongs to a built-in profile with other numbers. Give "
            f"your profile another {key}"
        )


def find_shipped_namesake(own: Profile) -> Profile | None:
    """Return the shipped profile that has the same name or title but other numbers. None means that there is no such
    profile.

    The sources of the tables are not compared. The profile may lack tables, for example tables of tests that were added
    to the shipped profile later.
    """
    for shipped in map(load_profile, built_in_profiles()):
        if own.name == shipped.name or own.title == shipped.title:
            numbers, others = (
                {key: msgspec.structs.replace(table, source="") for key, table in profile.tables.items()}
                for profile in (own, shipped)
            )
            if any(table != others.get(key) for key, table in numbers.items()):
                return shipped
    return None


def parse_profile(text: str, *, file: str) -> Profile:
    """Return the profile in a TOML text, with the tables of all tests. Error messages contain the name ``file``.

    Decoding is strict. An unknown key, a missing key or an impossible value causes an error that names the file, the
    key and the reason.
    """
    profile = _decode_profile(text, file=file)
    if excess := find_excess(TESTS, profile):
        raise ProfileError(f"profile {file}, key {excess}")
    return profile


# When tkperf starts, it decodes each shipped profile several times. Users have few profiles of their own.
@lru_cache(maxsize=32)
def _decode_profile(text: str, *, file: str) -> Profile:
    document: Any = decode_strictly(
        lambda: tomllib.loads(shallow(text)),
        _document_type(),
        what=f"profile {file}",
        language="TOML",
        error=ProfileError,
    )
    tables = {type_.key: getattr(document, type_.key) for type_ in (*SHARED_TABLES, *TABLES)}
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
def _document_type() -> type[msgspec.Struct]:
    """Return the type of a profile's TOML file. Every shared table is required, and every table of a test is
    optional.
    """
    return msgspec.defstruct(
        "Profile",
        [
            ("name", _ProfileName),
            ("title", str),
            ("notice", str),
            *((type_.key, type_) for type_ in SHARED_TABLES),
            *((type_.key, type_ | None, None) for type_ in TABLES),
        ],
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def read_stored_profile(data: Mapping[str, object]) -> Profile:
    """Return those parts of the profile in a run file that this version of tkperf can decode.

    Each table is decoded separately. Unknown keys are ignored. An incomplete table, for example in an imported run, is
    omitted and does not affect the other tables.
    """
    tables = {}
    for type_ in dict.fromkeys((*SHARED_TABLES, *TABLES, *table_types(data))):
        stored = data.get(type_.key)
        if isinstance(stored, dict):
            values = {key: stored[key] for key in type_.__struct_fields__ if key in stored}
            try:
                tables[type_.key] = convert(values, type_)
            except msgspec.ValidationError:
                continue
    name, title, notice = (str(data.get(key) or "") for key in ("name", "title", "notice"))
    return Profile(name=name, title=title, notice=notice, tables=tables)
