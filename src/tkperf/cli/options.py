"""What the user asked of tkperf ssd, hdd or raid: the options, and the flags they come from."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from tkperf.device.purge import METHOD_NAMES
from tkperf.engine.fio_setup import IO_ENGINES
from tkperf.errors import UsageError, not_known
from tkperf.input_files import TEXT_BYTES, is_toml_path, read_input
from tkperf.pipeline.names import require_name
from tkperf.procedures import ALL_TESTS, SUITES
from tkperf.process import find_program
from tkperf.profiles import Profile, built_in_profiles
from tkperf.profiles.tables import DEEPEST_QUEUE, MOST_JOBS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of one run, as given; None where the profile or a default decides.

    Raises:
        UsageError: NAME cannot be a file name, or nobody could be notified as asked.
    """

    suite: str
    name: str
    device: str
    jobs: int | None
    io_depth: int | None
    auto_demand: bool = False
    step_s: float | None
    tests: tuple[str, ...]
    profile: str | Profile
    active_range: str | None
    size: str | None = None
    folder: Path
    ioengine: str | None
    description: str | None
    feature_matrix: str | None
    force: bool
    yes_destroy: str | None
    purge_method: str | None = None
    purge_command: str | None = None
    no_purge: bool = False
    no_telemetry: bool = False
    write_cache: str | None
    strict: bool = False
    accept_disturbed: bool = False
    tune: bool = False
    raid_config: Path | None = None
    remove_set: bool = False
    progress: str
    quiet: bool
    debug: bool
    detach: bool = False
    mail: str | None = None
    mail_from: str | None = None
    smtp: str | None = None
    smtp_tls: str = "none"
    smtp_plain_login: bool = False
    notify_command: str | None = None
    rated: str | None = None
    warranty_years: float | None = None
    rate: str | None = None
    like: Path | None = None
    command_line: tuple[str, ...]

    def __post_init__(self) -> None:
        require_name(self.name)
        self._check_views()
        self._check_notification()
        if self.rate is not None and self.like is not None:
            raise UsageError("--rate and --like exclude each other: give one of them")
        if self.warranty_years is not None and "DWPD" not in (self.rated or "").upper():
            raise UsageError("--warranty-years says how long --rated in DWPD holds: give both")

    def _check_views(self) -> None:
        if self.detach and self.progress != "auto":
            raise UsageError(
                f"--detach leaves the terminal, so --progress {self.progress} has nowhere to go: "
                f"follow the run with tkperf attach {self.run_path} --progress {self.progress}"
            )

    def _check_notification(self) -> None:
        """A mistake here must not show only after 30 hours."""
        for option, address in (("--mail", self.mail), ("--mail-from", self.mail_from)):
            if address is not None and not _is_mail_address(address):
                raise UsageError(f"{option} '{address}' is not a mail address")
        if self.smtp is not None and not _is_server(self.smtp):
            raise UsageError(f"--smtp '{self.smtp}' is not HOST or HOST:PORT")
        in_clear = self.smtp_tls == "none" and not self.smtp_plain_login
        if self.mail is not None and in_clear and smtp_login() is not None:
            raise UsageError(
                "TKPERF_SMTP_PASSWORD would be sent in clear: give --smtp-tls starttls or tls, or "
                "--smtp-plain-login if it may be"
            )
        if self.notify_command is not None:
            try:
                words = shlex.split(self.notify_command)
            except ValueError as error:
                raise UsageError(f"--notify-command '{self.notify_command}': {error}") from None
            if not words or find_program(words[0]) is None:
                raise UsageError(f"--notify-command '{self.notify_command}': no such program")

    @property
    def run_path(self) -> Path:
        return self.folder / f"{self.name}.tkperf"

    @property
    def log_path(self) -> Path:
        return self.folder / f"{self.name}.log"


def smtp_login() -> tuple[str, str] | None:
    """User and password for the mail server, if both are given."""
    user, password = (os.environ.get(f"TKPERF_SMTP_{key}") for key in ("USER", "PASSWORD"))
    return (user, password) if user and password else None


def _is_mail_address(text: str) -> bool:
    """One address that the mail's header takes, too."""
    if not re.fullmatch(r"[^@\s,;]+@[^@\s,;]+", text):
        return False
    try:
        EmailMessage()["To"] = text
    except Exception:  # the parser has several, AttributeError among them
        return False
    return True


def _is_server(text: str) -> bool:
    """HOST or HOST:PORT that a connection can be made to."""
    if not re.fullmatch(r"[^:\s]+(:\d{1,5})?", text):
        return False
    host, _, port = text.partition(":")
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return not port or 0 < int(port) < 2**16


class _TextOf(click.ParamType[str]):
    """The text of a file, read at once: that it cannot be read must not show after the purge."""

    name = "file"

    def __init__(self, what: str) -> None:
        self._what = what

    def convert(self, value: str, param: object, ctx: object) -> str:
        content = read_input(Path(value), what=self._what, limit_bytes=TEXT_BYTES)
        return content.decode(errors="replace")


Function = TypeVar("Function", bound=Callable[..., object])


def suite_command(suite: str, flags: tuple[str, ...]) -> type[click.Command]:
    """A command that takes TKperf's ``-ssdt iops lat`` beside ``-ssdt iops -ssdt lat``."""

    class SuiteCommand(click.Command):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            names = (*SUITES[suite], ALL_TESTS)
            return super().parse_args(ctx, expand_lists(args, flags, names))

    return SuiteCommand


class _TestNames(click.ParamType[tuple[str, ...]]):
    """Names of a suite's tests and workload files, with commas between them."""

    name = "tests"

    def __init__(self, suite: str) -> None:
        self._names = (*SUITES[suite], ALL_TESTS)

    def convert(self, value: str, param: object, ctx: object) -> tuple[str, ...]:
        names = tuple(name.strip() for name in value.split(","))
        for name in names:
            if name not in self._names and not is_toml_path(name):
                raise not_known("test", name, self._names)
        return names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        before, comma, begun = incomplete.rpartition(",")
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in self._names
            if name.startswith(begun)
        ]


def tests_option(suite: str, flags: tuple[str, ...]) -> Callable[[Function], Function]:
    """Which tests of the suite to run; what there are, the suite says."""
    tests = SUITES[suite]
    by_default = [name for name, test in tests.items() if test.by_default]
    others = [name for name in tests if name not in by_default]
    choices = f"{', '.join(by_default)} by default"
    if others:
        choices += f"; also {', '.join(others)}"
    return click.option(
        *flags,
        "tests",
        type=_TestNames(suite),
        multiple=True,
        metavar="NAME|FILE,...",
        callback=lambda _ctx, _param, given: tuple(name for names in given for name in names),
        help=f"Tests to run: {choices}, or {ALL_TESTS} that the profile defines; a workload file of "
        "your own ('tkperf workload show FILE' explains it).",
    )


def complete_profile(_ctx: object, _param: object, begun: str) -> list[CompletionItem]:
    """The shipped profiles that begin so, or the user's files."""
    completions = [CompletionItem(name) for name in built_in_profiles() if name.startswith(begun)]
    return completions or [CompletionItem(begun, type="file")]


def profile_option(default: str) -> Callable[[Function], Function]:
    return click.option(
        "--profile",
        default=default,
        show_default=True,
        metavar="NAME|FILE",
        shell_complete=complete_profile,
        help=f"Which specification: {', '.join(built_in_profiles())}, or an own TOML file; "
        "'tkperf profiles' lists and explains them.",
    )


def demand_options(function: Function) -> Function:
    """How much is asked of the device at once."""
    return _apply(
        function,
        click.option(
            "-nj",
            "--numjobs",
            "jobs",
            type=click.IntRange(1, MOST_JOBS),
            metavar="N",
            help="Threads (TC) of every test to which the profile gives none of its own.",
        ),
        click.option(
            "-iod",
            "--iodepth",
            "io_depth",
            type=click.IntRange(1, DEEPEST_QUEUE),
            metavar="N",
            help="Outstanding I/Os of each thread (QD), likewise.",
        ),
    )


auto_demand_option = click.option(
    "--auto-demand",
    is_flag=True,
    help="Find TC and QD first: purge, precondition, try demands in short steps, take the least that "
    "comes within 5 % of the best IOPS. The result has all that was measured.",
)


def load_options(function: Function) -> Function:
    """What load is put on the device, how much at once apart."""
    return _apply(
        function,
        click.option(
            "-rt",
            "--runtime",
            "step_s",
            metavar="SECONDS",
            type=click.FloatRange(min=1, max=86400),
            help="Length of each step and of each slice of a stream, whose longest time stays "
            "(in 20,000 slices at most).",
        ),
        click.option(
            "--active-range",
            metavar="SHARE|SIZE",
            help="Part of the device to use, e.g. 75% or 16GiB; default: the profile's.",
        ),
        click.option(
            "--engine",
            "ioengine",
            type=click.Choice(IO_ENGINES),
            help="fio's I/O engine; default io_uring where it works, else libaio.",
        ),
        click.option(
            "-rfb",
            "--refill-buffers",
            is_flag=True,
            expose_value=False,
            help="Fresh random data for every write; always on, accepted for TKperf's sake.",
        ),
        click.option(
            "--no-telemetry",
            is_flag=True,
            help="Do not read temperature and SMART / NVMe logs during the run.",
        ),
        click.option(
            "--write-cache",
            type=click.Choice(["on", "off", "keep"]),
            help="The drive's volatile write cache during the run; default: the profile's.",
        ),
    )


strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Refuse a host that is not fit to measure on; measure a step that was disturbed again at once, "
    "and end the run, which can be resumed, if it is disturbed each time.",
)


def trust_options(function: Function) -> Function:
    """What becomes of results that something else than the device had a part in."""
    return _apply(
        function,
        strict_option,
        click.option(
            "--accept-disturbed",
            is_flag=True,
            help="Let a window be steady although a tracked value in it was disturbed or limited by the "
            "host; every result will say so.",
        ),
        click.option(
            "--tune",
            is_flag=True,
            help="Set CPU governor and DEVICE's queue for the run and put them back in the end; 'tkperf "
            "tune DEVICE' shows what.",
        ),
    )


def purge_options(function: Function) -> Function:
    """How the device is put in as-new state."""
    return _apply(
        function,
        click.option(
            "--purge",
            "purge_method",
            type=click.Choice(METHOD_NAMES),
            metavar="METHOD",
            help="Purge by this method, not by the first the device offers; 'tkperf doctor "
            "DEVICE' lists what it offers.",
        ),
        click.option(
            "--purge-command",
            metavar="COMMAND",
            help="Purge by a vendor's tool; {device} in it becomes the device.",
        ),
        click.option("--no-purge", is_flag=True, help="Skip purging; every result will say so."),
    )


def consent_options(function: Function) -> Function:
    return _apply(
        function,
        click.option(
            "-ft",
            "--force-test",
            "--force",
            "force",
            is_flag=True,
            help="Do not ask before erasing a device without recognisable data, or a file of which no "
            "byte was written. Never skips the check that it is unused.",
        ),
        click.option(
            "--yes-destroy",
            metavar="ID",
            help="Confirm beforehand: the serial number, or the path of a file, partition or loop device; "
            "for a RAID set those of all its members, with commas.",
        ),
    )


def outlook_options(function: Function) -> Function:
    """What is known beforehand of the device: for the time and amount that are told before a run."""
    return _apply(
        function,
        click.option(
            "--rated",
            metavar="TBW|DWPD",
            help="The drive's endurance, as 600TBW or 1DWPD: the run's share of it is told before.",
        ),
        click.option(
            "--warranty-years",
            type=click.FloatRange(min=0.5, max=20),
            metavar="YEARS",
            help="How long a rating in DWPD holds; default 5.",
        ),
        click.option(
            "--rate",
            metavar="RATE",
            help="How fast it writes large blocks, as 530MB/s; default: assumed, 500MB/s.",
        ),
        click.option(
            "--like",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="RUN_FILE",
            help="As fast as this earlier run of the same model was.",
        ),
    )


def result_options(function: Function) -> Function:
    """Where results go, what they say besides, and what is shown meanwhile."""
    return _apply(
        view_options(function),
        click.option(
            "--output",
            "folder",
            type=click.Path(path_type=Path),
            default=Path(),
            metavar="DIR",
            help="Folder for NAME.tkperf and NAME.log; default: here.",
        ),
        click.option(
            "-dsc",
            "--description",
            metavar="FILE",
            type=_TextOf("the description"),
            help="Text about the device for the report.",
        ),
        click.option(
            "-fm",
            "--feature-matrix",
            metavar="FILE",
            type=_TextOf("the feature matrix"),
            help="Feature matrix of the device for the report.",
        ),
        click.option(
            "-i",
            "--interface",
            metavar="NAME",
            expose_value=False,
            help="The device's interface; found out by tkperf, accepted for TKperf's sake.",
        ),
    )


def view_options(function: Function) -> Function:
    """What is shown of a run, and who is told of its end."""
    return _apply(
        function,
        click.option(
            "--progress",
            type=click.Choice(["auto", "live", "plain", "json"]),
            default="auto",
            show_default=True,
            help="Live view, plain lines, or one JSON event a line on stdout.",
        ),
        click.option(
            "-m",
            "--mail",
            metavar="ADDRESS",
            help="Mail results, report and run file there when the run has ended.",
        ),
        click.option("--mail-from", metavar="ADDRESS", help="Sender of the mail."),
        click.option(
            "-s",
            "--smtp",
            metavar="HOST[:PORT]",
            help="Mail server; default localhost. User and password: TKPERF_SMTP_USER, "
            "TKPERF_SMTP_PASSWORD in the environment.",
        ),
        click.option(
            "--smtp-tls",
            type=click.Choice(["none", "starttls", "tls"]),
            default="none",
            show_default=True,
            help="How the connection to the mail server is encrypted.",
        ),
        click.option(
            "--smtp-plain-login",
            is_flag=True,
            help="Send user and password without encryption, for all on the way to read.",
        ),
        click.option(
            "--notify-command",
            metavar="COMMAND",
            help="Run this when the run has ended; {name}, {status}, {run_file} are filled in.",
        ),
        click.option(
            "--detach",
            is_flag=True,
            help="Leave the terminal once everything is confirmed and the run has begun; it then goes "
            "on without it. 'tkperf attach', 'status' and 'stop' reach it.",
        ),
        click.option("-q", "--quiet", is_flag=True, help="No progress, only results."),
        click.option("-d", "--debug", is_flag=True, help="Every fio job in the log file."),
    )


def _apply(function: Function, *options: Callable[[Function], Function]) -> Function:
    """Decorate so that the help lists the options in the order given."""
    for option in reversed(options):
        function = option(function)
    return function


def expand_lists(args: Sequence[str], flags: Collection[str], words: Collection[str]) -> list[str]:
    """``-ssdt iops lat`` as ``-ssdt iops -ssdt lat``; files of workloads, by their suffix, likewise."""
    expanded: list[str] = []
    flag = ""
    for index, word in enumerate(args):
        follows_flag = index > 0 and args[index - 1] in flags
        if word in flags:
            flag = word
        elif flag and (word in words or word.endswith(".toml")) and not follows_flag:
            expanded.append(flag)
        elif not follows_flag:
            flag = ""
        expanded.append(word)
    return expanded
