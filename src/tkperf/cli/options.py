"""Options of the commands that run tests, in the groups in which their help lists them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from tkperf.device.purge import METHOD_NAMES
from tkperf.engine.fio_setup import IO_ENGINES
from tkperf.input_files import TEXT_BYTES, read_input
from tkperf.profiles import built_in_profiles
from tkperf.profiles.tables import DEEPEST_QUEUE, MOST_JOBS


class _TextOf(click.ParamType[str]):
    """The text of a file, read at once: that it cannot be read must not show after the purge."""

    name = "file"

    def __init__(self, what: str) -> None:
        self._what = what

    def convert(self, value: str, param: object, ctx: object) -> str:
        content = read_input(Path(value), what=self._what, limit_bytes=TEXT_BYTES)
        return content.decode(errors="replace")


Function = TypeVar("Function", bound=Callable[..., object])


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
