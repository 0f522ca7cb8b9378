"""Read a batch file strictly from its TOML (docs/batches.md)."""

from __future__ import annotations

import tomllib
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec

from tkperf.batch.draft import BatchDraft, DraftedDrive, Text
from tkperf.batch.drive_finder import MOST_DRIVES
from tkperf.batch.request import DEFAULT_TKPERF, BatchSettings, parse_seconds
from tkperf.model.choices import NO_BATCH_OF_SETS
from tkperf.model.errors import InputFileError, UsageError
from tkperf.model.input_files import SETTINGS_BYTES, read_text_input
from tkperf.model.strict import convert_strictly, decode_strictly, shallow
from tkperf.pipeline.run_request import RunRequest
from tkperf.runfile.writers import require_own_input

# Fields of a run that a batch file has elsewhere, or that are of sets.
_NOT_OPTIONS = ("suite", "device", "tests", "profile", "raid", "remove_set")


class BatchFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a batch file; ``options`` are fields of ``RunRequest``."""

    suite: Literal["ssd", "hdd"]
    drives: Annotated[tuple[DraftedDrive, ...], msgspec.Meta(min_length=1, max_length=MOST_DRIVES)]
    tests: tuple[Text, ...] = ()
    profile: Text | None = None
    claims: Text | None = None
    parallel: Literal["auto", "all"] | Annotated[int, msgspec.Meta(ge=1, le=MOST_DRIVES)] = "auto"
    stagger: Text | Annotated[float, msgspec.Meta(ge=0)] = 0.0
    strict: bool = False
    compare_reads: bool = True
    alone_again: bool = False
    own_cpus: bool = True
    tkperf: Text = DEFAULT_TKPERF
    options: dict[str, Any] = {}


def read_batch_file(path: Path) -> BatchDraft:
    """Read a batch file that only root and the effective user can have written.

    Raises:
        InputFileError: it cannot be read or has a mistake; the message names the file and the key.
        RefusedError: another user can have written it.
    """
    require = partial(require_own_input, path)
    text = read_text_input(path, what="batch", limit_bytes=SETTINGS_BYTES, check=require)
    return parse_batch_file(text, path)


def parse_batch_file(text: str, path: Path) -> BatchDraft:
    """Decode a batch file; errors name ``path``, in whose folder relative paths begin.

    Raises:
        InputFileError: the text is not TOML, has a typo or an impossible value.
    """
    source = f"batch {path}"

    def parse() -> object:
        return _with_tables(tomllib.loads(shallow(text)), source)

    file = decode_strictly(parse, BatchFile, what=source, language="TOML")
    options = convert_strictly(file.options, _options_type(), what=f"{source}, options")
    common = {"suite": file.suite, "tests": file.tests, "profile": file.profile}
    common |= {key: getattr(options, key) for key in file.options}
    _require_possible(common, source)
    stagger = file.stagger
    try:
        stagger_s = parse_seconds(stagger) if isinstance(stagger, str) else stagger
    except UsageError as error:
        raise InputFileError(f"{source}, key stagger: {error}") from None
    return BatchDraft(
        source=source,
        folder=path.parent,
        common=common,
        drives=file.drives,
        settings=BatchSettings(
            parallel=file.parallel,
            stagger_s=stagger_s,
            strict=file.strict,
            compare_reads=file.compare_reads,
            alone_again=file.alone_again,
            own_cpus=file.own_cpus,
        ),
        claims_path=None if file.claims is None else path.parent / file.claims,
        tkperf=file.tkperf,
    )


def _with_tables(data: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the data with a table for each drive.

    Raises:
        InputFileError: something that a batch does not do at all.
    """
    if data.get("suite") == "raid":
        raise InputFileError(f"{source}, key suite: {NO_BATCH_OF_SETS}")
    drives = data.get("drives")
    if isinstance(drives, list):
        data["drives"] = [{"drive": one} if isinstance(one, str) else one for one in drives]
    return data


@cache
def _options_type() -> type[msgspec.Struct]:
    """Return the type of the table ``options``: the fields of a run that no other key has."""
    hints = get_type_hints(RunRequest)
    fields = [
        (field.name, hints[field.name], msgspec.field(default=None))
        for field in msgspec.structs.fields(RunRequest)
        if field.name not in _NOT_OPTIONS
    ]
    return msgspec.defstruct("Options", fields, frozen=True, kw_only=True, forbid_unknown_fields=True)


def _require_possible(common: dict[str, Any], source: str) -> None:
    """Raise InputFileError with the key of a value that no run can have."""
    device = "sim:"
    try:
        RunRequest(device=device, **common)
    except UsageError as error:
        whole = str(error)
    else:
        return
    suite = common["suite"]
    for key, value in common.items():
        try:
            RunRequest(**{"suite": suite, "device": device, key: value})
        except UsageError as error:
            name = key if key in _NOT_OPTIONS else f"options.{key}"
            raise InputFileError(f"{source}, key {name}: {error}") from None
    raise InputFileError(f"{source}: {whole}")
