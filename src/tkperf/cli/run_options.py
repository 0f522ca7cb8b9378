"""The options of a call as the user gave them. An object of these classes can only be created with valid options.
``RunRequest`` contains the options of the measurement.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass, fields, replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from tkperf.analysis.estimates import Rates, RunEstimate
from tkperf.batch.draft import BatchDraft, DraftedDrive, read_batch_file
from tkperf.batch.request import BatchSettings, parse_parallel, parse_seconds
from tkperf.device.raid.config import load_raid_config
from tkperf.model.choices import BATCH_SUFFIX, RUN_FILE_SUFFIX
from tkperf.model.errors import UsageError
from tkperf.model.run_info import parse_facts
from tkperf.pipeline.estimate_run import ASSUMED, Rating, estimate_run, parse_rate, parse_rating, read_rates
from tkperf.pipeline.run_plan import RunPlan
from tkperf.pipeline.run_request import RunRequest, require_name
from tkperf.system.process import find_program


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """Options of a call that measures a run or a batch. They concern the folder, the views, the estimate and the steps
    at the end.

    Raises:
        UsageError: NAME cannot be a file name, options contradict each other, or the requested notification is not
            possible.
    """

    kind: ClassVar[str] = "run"
    kept_in: ClassVar[str] = "run file"
    suffix: ClassVar[str] = RUN_FILE_SUFFIX

    name: str
    folder: Path
    description: str | None = None
    feature_matrix: str | None = None
    progress: str = "auto"
    quiet: bool = False
    debug: bool = False
    verbose: bool = False
    no_report: bool = False
    detach: bool = False
    mail: str | None = None
    mail_from: str | None = None
    smtp: str = "localhost"
    smtp_tls: str = "none"
    smtp_plain_login: bool = False
    notify_command: str | None = None
    rated: str | None = None
    warranty_years: float | None = None
    rate: str | None = None
    like: Path | None = None
    command_line: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_name(self.name)
        if self.detach and self.progress != "auto":
            raise UsageError(
                f"with --detach, the {self.kind} continues without a terminal, so --progress "
                f"{self.progress} has no terminal to write to. Omit --progress, and watch the {self.kind} "
                f"with 'tkperf attach {self.path} --progress {self.progress}'"
            )
        _check_notification(self)
        if self.rate is not None and self.like is not None:
            raise UsageError("--rate and --like exclude each other. Pass only one of them")
        if self.warranty_years is not None and "DWPD" not in (self.rated or "").upper():
            raise UsageError(
                "--warranty-years is useful only with a rating in DWPD. Also pass --rated with such a rating"
            )

    @property
    def path(self) -> Path:
        """The file that stores the measurement: the run file, or the ledger of the batch."""
        return self.folder / f"{self.name}{self.suffix}"

    @property
    def report_path(self) -> Path:
        return self.folder / f"{self.name}.html"

    @property
    def log_path(self) -> Path:
        return self.folder / f"{self.name}.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(CallOptions):
    """Options of a run that do not concern the measurement, such as the options for consent."""

    force: bool
    yes_destroy: str | None

    @property
    def run_path(self) -> Path:
        return self.path


def _check_notification(options: CallOptions) -> None:
    """Check the options of the notification before the run. Otherwise the user would notice a mistake only after 30
    hours.
    """
    for option, address in (("--mail", options.mail), ("--mail-from", options.mail_from)):
        if address is not None and not _is_mail_address(address):
            raise UsageError(f"{option} '{address}' is not a mail address")
    if not _is_server(options.smtp):
        raise UsageError(f"--smtp '{options.smtp}' does not have the form HOST or HOST:PORT")
    in_clear = options.smtp_tls == "none" and not options.smtp_plain_login
    if options.mail is not None and in_clear and smtp_login() is not None:
        raise UsageError(
            "TKPERF_SMTP_PASSWORD would be sent without encryption. Pass --smtp-tls starttls or "
            "--smtp-tls tls, or allow a login without encryption with --smtp-plain-login"
        )
    if options.notify_command is not None:
        try:
            words = shlex.split(options.notify_command)
        except ValueError as error:
            raise UsageError(f"--notify-command '{options.notify_command}': {error}") from None
        if not words or find_program(words[0]) is None:
            raise UsageError(
                f"--notify-command '{options.notify_command}': this program is not installed. Check the name and the "
                "PATH"
            )


def read_options(suite: str, options: dict[str, Any]) -> tuple[RunRequest, RunOptions]:
    """Return the request and the other options of the call. ``options`` contains the options of the command line, with
    the names of the fields as the keys.
    """
    own = {field.name for field in fields(RunOptions)}
    call = {name: value for name, value in options.items() if name in own}
    asked = {name: value for name, value in options.items() if name not in own}
    run_options = RunOptions(**call, command_line=tuple(sys.argv))
    if (config := asked.get("raid")) is not None:
        asked["raid"] = load_raid_config(config)
    asked["facts"] = parse_facts(asked["facts"], asked.pop("fact_file") or "")
    return RunRequest(suite=suite, **asked), run_options


def rating_of(options: CallOptions) -> Rating | None:
    """Return the endurance rating of the drive from the options. None means that the options contain no rating."""
    return None if options.rated is None else parse_rating(options.rated, options.warranty_years)


def given_rates(options: RunOptions, plan: RunPlan) -> Rates | None:
    """Return the speed of the device from the options, or None if the options do not contain the speed."""
    if options.rate is not None:
        return parse_rate(options.rate)
    return None if options.like is None else read_rates(options.like, plan.dut)


def estimate_of(options: RunOptions, plan: RunPlan) -> RunEstimate:
    """Return the estimate of a plan. The estimate is based on the speed in the options or, if the options contain no
    speed, on an assumed speed. Nothing is read from the device.
    """
    return estimate_run(plan, given_rates(options, plan) or ASSUMED, rating_of(options))


def smtp_login() -> tuple[str, str] | None:
    """Return the user and the password for the mail server if both are set. Otherwise return None."""
    user, password = (os.environ.get(f"TKPERF_SMTP_{key}") for key in ("USER", "PASSWORD"))
    return (user, password) if user and password else None


def _is_mail_address(text: str) -> bool:
    """Return whether a text is exactly one address in the form in which the header of a mail contains it."""
    if not re.fullmatch(r"[^@\s,;]+@[^@\s,;]+", text):
        return False
    message = EmailMessage()
    try:
        message["To"] = text
        addresses = [address.addr_spec for address in message["To"].addresses]
    except Exception:  # the parser raises several kinds of errors, including AttributeError
        return False
    return addresses == [text]


def _is_server(text: str) -> bool:
    """Return whether a text has the form HOST or HOST:PORT, with a valid host name and a valid port."""
    if not re.fullmatch(r"[^:\s]+(:\d{1,5})?", text):
        return False
    host, _, port = text.partition(":")
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return not port or 0 < int(port) < 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions(CallOptions):
    """Options of a batch that do not concern the measurement, such as the options for consent.

    Attributes:
        push: archive of tkperf that is installed on the hosts before the batch begins.
        yes_destroy_file: file with a line for each drive, which confirms all drives in advance.
        description, feature_matrix: texts for the reports of all drives.
        like: earlier run of the same drive model, which is used for estimates.
    """

    kind: ClassVar[str] = "batch"
    kept_in: ClassVar[str] = "batch"
    suffix: ClassVar[str] = BATCH_SUFFIX

    yes_destroy_file: Path | None = None
    push: Path | None = None

    def __post_init__(self) -> None:
        CallOptions.__post_init__(self)
        # A mistake in the options of the estimate concerns the whole call, and not single drives.
        rating_of(self)
        if self.rate is not None:
            parse_rate(self.rate)

    def of_run(self, name: str) -> RunOptions:
        """Return the options for the run on one drive. The run has no terminal. The batch writes the report of the run
        together with the report of the batch.
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
    """Return the batch that a call requests, and the other options of the call. The function does not search for
    drives.

    Args:
        suite: the suite. None means that the file named in ``options`` describes the batch.
        options: the options of the command line. They replace settings of the batch file.

    Raises:
        UsageError: the options contradict each other, or the batch file has a mistake.
        RefusedError: another user may have changed the batch file.
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
    """Remove the settings of the whole batch from the options. Return those settings that the user gave."""
    options["stagger_s"] = options.pop("stagger")
    given = {key: value for key in BatchSettings.__struct_fields__ if (value := options.pop(key)) is not None}
    for key, option, parse in (("parallel", "--parallel", parse_parallel), ("stagger_s", "--stagger", parse_seconds)):
        if key in given:
            try:
                given[key] = parse(given[key])
            except UsageError as error:
                raise UsageError(f"{option} {error}") from None
    return given
