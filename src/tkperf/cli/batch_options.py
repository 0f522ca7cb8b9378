"""Options of a call of ``tkperf batch`` that are not the measurement's; the batch that a call asks for."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from tkperf.batch.batch_file import read_batch_file
from tkperf.batch.draft import BatchDraft, DraftedDrive
from tkperf.batch.request import BatchSettings, parse_parallel, parse_seconds
from tkperf.cli.run_options import CallOptions, RunOptions, rating_of
from tkperf.model.choices import BATCH_SUFFIX
from tkperf.model.errors import UsageError
from tkperf.model.user_facts import parse_facts
from tkperf.pipeline.estimate_run import parse_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions(CallOptions):
    """Options of a batch that are not the measurement's, with its consent.

    Attributes:
        push: archive of tkperf that is put on the hosts first.
        yes_destroy_file: file with a line for each drive, which confirms them all beforehand.
        description, feature_matrix: texts for the reports of all drives.
        like: earlier run of the same model, for estimates.
    """

    kind: ClassVar[str] = "batch"
    kept_in: ClassVar[str] = "batch"
    suffix: ClassVar[str] = BATCH_SUFFIX

    yes_destroy_file: Path | None = None
    push: Path | None = None

    def __post_init__(self) -> None:
        CallOptions.__post_init__(self)
        # A mistake in an estimate is this call's, and not one of each drive.
        rating_of(self)
        if self.rate is not None:
            parse_rate(self.rate)

    def of_run(self, name: str) -> RunOptions:
        """Return the options of the run on one drive: it has no terminal, and its report is written with
        the batch's.
        """
        return RunOptions(
            name=name,
            folder=self.folder,
            description=self.description,
            feature_matrix=self.feature_matrix,
            force=False,
            yes_destroy=None,
            progress="auto",
            quiet=True,
            debug=self.debug,
            no_report=True,
            detach=True,
            rated=self.rated,
            warranty_years=self.warranty_years,
            rate=self.rate,
            like=self.like,
            command_line=self.command_line,
        )


def read_batch(name: str, suite: str | None, options: dict[str, Any]) -> tuple[BatchDraft, BatchOptions]:
    """Return the batch that a call asks for, and the call's own options; drives are not looked for yet.

    Args:
        suite: None: the batch is in the file that ``options`` names.
        options: the command line's; what was given there prevails over a batch file.

    Raises:
        UsageError: the options contradict each other, or the batch file has a mistake.
        RefusedError: another user can have written the batch file.
    """
    own = {field.name for field in fields(BatchOptions)}
    call = {key: options.pop(key) for key in own & set(options)}
    batch_options = BatchOptions(name=name, command_line=tuple(sys.argv), **call)
    given, claims = _read_settings(options), options.pop("claims")
    if suite is None:
        draft = read_batch_file(Path(options["file"]))
    else:
        drives = tuple(DraftedDrive(drive=given) for given in options.pop("device"))
        options["facts"] = parse_facts(options["facts"], options.pop("fact_file") or "")
        draft = BatchDraft(common={"suite": suite, **options}, drives=drives)
    settings = msgspec.structs.replace(draft.settings, **given)
    claims_path = claims or draft.claims_path
    return replace(draft, settings=settings, claims_path=claims_path), batch_options


def _read_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Take the settings of the whole batch out of the options; return those that were given."""
    options["stagger_s"] = options.pop("stagger")
    given = {key: value for key in BatchSettings.__struct_fields__ if (value := options.pop(key)) is not None}
    for key, option, parse in (("parallel", "--parallel", parse_parallel), ("stagger_s", "--stagger", parse_seconds)):
        if key in given:
            try:
                given[key] = parse(given[key])
            except UsageError as error:
                raise UsageError(f"{option} {error}") from None
    return given
