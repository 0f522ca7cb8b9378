"""Options of the commands that run tests, in the groups that their help shows. The module also contains options that
several commands have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from tkperf.cli.calling import Command, Function, HeadedOption, Heading, headed, offer
from tkperf.cli.kinds import (
    OUTPUT_FILE,
    OUTPUT_FOLDER,
    RUN_FILE,
    Count,
    Device,
    Number,
    ProfileName,
    RunFolder,
    TextOf,
    offer_files,
)
from tkperf.model.choices import (
    ALL_TESTS,
    DEEPEST_QUEUE,
    FIO_IO_ENGINES,
    IO_ENGINES,
    LONGEST_STEP_S,
    MOST_JOBS,
    PURGES,
    WRITE_CACHE,
    built_in_profiles,
    tests_of,
)
from tkperf.model.errors import guess, not_known
from tkperf.model.input_files import is_toml_path

common = partial(headed, Heading.COMMON)
on_test = partial(headed, Heading.TEST)
on_target = partial(headed, Heading.TARGET)
_on_output = partial(headed, Heading.OUTPUT)
on_mail = partial(headed, Heading.MAIL)
_for_tkperf = partial(headed, Heading.TKPERF)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document for programs.")


def output_file(
    name: str, text: str, *others: str, heading: Heading = Heading.COMMON
) -> Callable[[Function], Function]:
    """Return the option ``--NAME FILE`` for an output. The value of the option is passed as the parameter
    ``NAME_file``.
    """
    names = (*others, f"--{name}", f"{name.replace('-', '_')}_file")
    return click.option(*names, cls=HeadedOption, heading=heading, type=OUTPUT_FILE, metavar="FILE", help=text)


def output_folder(name: str, text: str, *, heading: Heading = Heading.COMMON) -> Callable[[Function], Function]:
    """Return the option ``--NAME DIR`` for outputs. The value of the option is passed as the parameter
    ``NAME_folder``.
    """
    names = (f"--{name}", f"{name}_folder")
    return click.option(*names, cls=HeadedOption, heading=heading, type=OUTPUT_FOLDER, metavar="DIR", help=text)


RUN_ARGUMENTS = (click.Argument(["name"]), click.Argument(["device"], type=Device()))
SIZE = common("--size", metavar="SIZE", help="Create DEVICE as a scratch file of this size.")


def profile_option(default: str, names: Sequence[str] | None = None) -> HeadedOption:
    """Return the option --profile. ``names`` are the shipped profiles that the command can use. By default, these are
    all shipped profiles.
    """
    offered = names or built_in_profiles()
    return common(
        "--profile",
        default=default,
        show_default=True,
        metavar="NAME|FILE",
        type=ProfileName(offered),
        help=f"Profile with the numbers of the tests: {', '.join(offered)}, or your own TOML file ('tkperf profiles').",
    )


DEMAND = (
    common(
        "-nj",
        "--numjobs",
        "jobs",
        type=Count(1, MOST_JOBS),
        metavar="N",
        help="Thread count (TC) of tests for which the profile sets no thread count.",
    ),
    common(
        "-iod",
        "--iodepth",
        "io_depth",
        type=Count(1, DEEPEST_QUEUE),
        metavar="N",
        help="Queue depth (QD) of tests for which the profile sets no queue depth.",
    ),
)
AUTO_DEMAND = on_test(
    "--auto-demand",
    is_flag=True,
    help="Find TC and QD first: purge and precondition the device, measure several demands in short steps, and use "
    "the smallest demand whose IOPS are within 5 % of the best. The results contain all steps.",
)
# Options for the load. The options for the demand are not included.
LOAD = (
    on_test(
        "-rt",
        "--runtime",
        "step_s",
        metavar="SECONDS",
        type=Number(1, LONGEST_STEP_S),
        help="Length of each step, and of each slice of a stream. This option does not change the "
        "maximum duration of a stream. A stream has at most 20,000 slices.",
    ),
    on_test(
        "--active-range",
        metavar="SHARE|SIZE",
        help="Part of the device to use, such as 75% or 16GiB. Default: the value in the profile.",
    ),
    on_test(
        "--engine",
        "ioengine",
        type=click.Choice(IO_ENGINES),
        help="fio's I/O engine. Default: {} if the host supports it, otherwise {}.".format(*FIO_IO_ENGINES),
    ),
    _for_tkperf(
        "-rfb",
        "--refill-buffers",
        is_flag=True,
        expose_value=False,
        help="This option has no effect, because tkperf always writes new random data.",
    ),
    on_test(
        "--no-telemetry",
        "telemetry",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Do not read temperature and SMART / NVMe logs during the run.",
    ),
    on_target(
        "--write-cache",
        type=click.Choice(WRITE_CACHE),
        help="Setting of the drive's volatile write cache during the run. Default: the value in the profile.",
    ),
)
STRICT = on_test(
    "--strict",
    is_flag=True,
    help="Refuse a host that would disturb the run. Measure a disturbed step of a round again at once, at most twice. "
    "If each attempt is disturbed, end the run; 'tkperf resume' continues the run.",
)
# Options for hosts that would disturb a measurement. tkperf can refuse, accept or tune such a host.
TRUST = (
    STRICT,
    on_test(
        "--accept-disturbed",
        is_flag=True,
        help="Judge steady state even if something disturbed a measurement in the window, or if the host limited "
        "the measured value. Every result states this choice.",
    ),
    on_test(
        "--tune",
        is_flag=True,
        help="Change settings of the CPU governor and of DEVICE's queue for the run, and restore the previous settings "
        "at the end. 'tkperf tune DEVICE' shows the settings.",
    ),
)


def purge_command(text: str) -> HeadedOption:
    return on_target("--purge-command", metavar="COMMAND", help=text)


PURGE = (
    on_target(
        "--purge",
        "purge_method",
        type=click.Choice(PURGES),
        metavar="METHOD",
        help="Purge DEVICE with this method. Default: the first method that DEVICE supports. 'tkperf doctor DEVICE' "
        "lists the methods.",
    ),
    purge_command(
        "Purge DEVICE with this command, such as a vendor's tool. tkperf replaces {device} in COMMAND with the path "
        "of the device."
    ),
    on_target("--no-purge", is_flag=True, help="Do not purge DEVICE. Every result states that no purge was done."),
)
CONSENT = (
    on_target(
        "-ft",
        "--force-test",
        "--force",
        "force",
        is_flag=True,
        help="Skip the question if tkperf finds no data on the device or in the file. tkperf always checks that the "
        "device or file is not in use.",
    ),
    common(
        "--yes-destroy",
        metavar="ID",
        help="Confirm the erasure in advance. ID is the serial number or path of DEVICE, or the IDs of all members "
        "of a RAID set, separated by commas.",
    ),
)
# Facts about the device. Before a run, tkperf uses these facts to estimate the time and the amount written.
ENDURANCE = (
    common(
        "--rated",
        metavar="TBW|DWPD",
        help="Show which share of the endurance the run uses. The rating is, for example, 600TBW or 1DWPD.",
    ),
    on_target(
        "--warranty-years",
        type=Number(0.5, 20),
        metavar="YEARS",
        help="Number of years for which a rating in DWPD applies. Default: 5.",
    ),
    on_target(
        "--rate",
        metavar="RATE",
        help="Rate at which DEVICE writes large blocks, such as 530MB/s. By default, 'tkperf plan' reads DEVICE for "
        "10 s to estimate the rate, and all other commands assume 500MB/s.",
    ),
    on_target(
        "--like",
        type=RUN_FILE,
        metavar="RUN_FILE",
        help="Estimate times from the rates of this earlier run on a drive of the same model.",
    ),
)
PROGRESS = _on_output(
    "--progress",
    type=click.Choice(["auto", "live", "plain", "json"]),
    default="auto",
    show_default=True,
    help="Show a live view, plain lines, or one JSON event on each line of stdout.",
)
VERBOSE = _on_output(
    "-v", "--verbose", is_flag=True, help="Print a line for every step and every second in plain progress."
)
# Options for the views of a run, and for the notification at the end of a run.
VIEWS = (
    PROGRESS,
    on_mail(
        "-m",
        "--mail",
        metavar="ADDRESS",
        help="Mail the results, the report and the run file to this address at the end of the run.",
    ),
    on_mail("--mail-from", metavar="ADDRESS", help="Address of the sender of the mail."),
    on_mail(
        "-s",
        "--smtp",
        metavar="HOST[:PORT]",
        default="localhost",
        show_default=True,
        help="Mail server. The environment variables TKPERF_SMTP_USER and TKPERF_SMTP_PASSWORD set the user and the "
        "password.",
    ),
    on_mail(
        "--smtp-tls",
        type=click.Choice(["none", "starttls", "tls"]),
        default="none",
        show_default=True,
        help="Encryption of the connection to the mail server.",
    ),
    on_mail(
        "--smtp-plain-login",
        is_flag=True,
        help="Send user and password without encryption, although anyone on the network path can then read both.",
    ),
    on_mail(
        "--notify-command",
        metavar="COMMAND",
        help="Run this command at the end of the run. tkperf replaces {name}, {status} and {run_file} in COMMAND.",
    ),
    common("--detach", is_flag=True, help="Continue the run in the background. 'tkperf attach' shows the progress."),
    VERBOSE,
    _on_output("--no-report", is_flag=True, help="Do not write the report NAME.html at the end of the run."),
    _on_output(
        "-q",
        "--quiet",
        is_flag=True,
        help="Print only the question, serious warnings, results and errors, but no plan and no progress.",
    ),
    _on_output("-d", "--debug", is_flag=True, help="Write every fio job file to the log file."),
)
FACT: dict[str, Any] = {
    "multiple": True,
    "metavar": "NAME=TEXT",
    "help": "Add to the HTML and PDF a fact that tkperf cannot read from the device or the host. You can repeat "
    "this option. NAME is one of: "
    "Test sponsor, Reference test platform, Manufacturer, NAND type, Form factor, Motherboard, Note.",
}
FACT_FILE: dict[str, Any] = {
    "type": TextOf("the facts"),
    "metavar": "FILE",
    "help": "File that contains one fact (NAME=TEXT) on each line. --fact overrides the file.",
}
# Options for the output folder, for the texts of the report, and for the views.
RESULT = (
    common(
        "--output",
        "folder",
        type=RunFolder(),
        default=Path(),
        metavar="DIR",
        help="Folder for all files. Default: current folder.",
    ),
    _on_output(
        "-dsc",
        "--description",
        metavar="FILE",
        type=TextOf("the description"),
        help="File with a text about the device for the report.",
    ),
    _on_output(
        "-fm",
        "--feature-matrix",
        metavar="FILE",
        type=TextOf("the feature matrix"),
        help="File with the feature matrix of the device for the report.",
    ),
    _on_output("--fact", "facts", **FACT),
    _on_output("--fact-file", **FACT_FILE),
    _for_tkperf(
        "-i",
        "--interface",
        metavar="NAME",
        expose_value=False,
        help="This option has no effect, because tkperf detects the interface of the device.",
    ),
    *VIEWS,
)

_LIST_GOES_ON = f"{__name__}.list_goes_on"


class SuiteCommand(Command):
    """A command that accepts both TKperf's form ``-ssdt iops lat`` and the form ``-ssdt iops,lat``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        flags, names = self._tests()
        words = expand_lists(args, flags, names)
        # This value tells the completion that the last word belongs to a list that the user may continue.
        ctx.meta[_LIST_GOES_ON] = len(words) > 1 and words[-2] in flags
        return super().parse_args(ctx, words)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return super().shell_complete(ctx, incomplete) + self.complete_list(ctx, incomplete)

    def complete_list(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return completions for a list of tests that the user may continue. If the previous words are not such a list,
        return no completions.
        """
        if not ctx.meta.get(_LIST_GOES_ON) or incomplete.startswith("-"):
            return []
        return _complete_tests(self._tests()[1], incomplete, ctx.params.get("tests") or ())

    def describe_excess(self, words: Sequence[str]) -> str:
        hints = [guess(word, self._tests()[1]) for word in words]
        return super().describe_excess(words) + next(filter(None, hints), "")

    def _tests(self) -> tuple[Collection[str], Collection[str]]:
        """Return the flags of the option that selects the tests to run, and the names that the option accepts."""
        option = next(param for param in self.params if isinstance(param.type, _TestNames))
        assert isinstance(option.type, _TestNames)
        return option.opts, option.type.names


class _TestNames(click.ParamType[tuple[str, ...]]):
    """The names of the tests of a suite and the paths of workload files, separated by commas."""

    name = "tests"

    def __init__(self, suite: str) -> None:
        self.names = (*tests_of(suite), ALL_TESTS)

    def convert(self, value: str, param: object, ctx: object) -> tuple[str, ...]:
        names = tuple(name.strip() for name in value.split(",") if name.strip())
        for name in names or ("",):
            if name not in self.names and not is_toml_path(name):
                raise not_known("test", name, self.names)
        return names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _complete_tests(self.names, incomplete)


def _complete_tests(names: Collection[str], incomplete: str, given: Collection[str] = ()) -> list[CompletionItem]:
    """Return completions: the tests that the list does not contain yet. If no test matches, return workload files."""
    before, comma, begun = incomplete.rpartition(",")
    taken = {*given, *before.split(",")}
    left = [name for name in names if name not in taken]
    named = [CompletionItem(f"{before}{comma}{item.value}") for item in offer(left, begun)]
    return named if named or comma else offer_files(begun, (".toml",))


def tests_option(suite: str, *flags: str) -> HeadedOption:
    """Return the option that selects the tests to run. Its help lists the tests of the suite."""
    tests = tests_of(suite)
    by_default = [name for name, test in tests.items() if test.by_default]
    others = [name for name in tests if name not in by_default]
    choices = f"{', '.join(by_default)} by default"
    if others:
        choices += f"; also {', '.join(others)}"
    return common(
        *flags,
        "tests",
        type=_TestNames(suite),
        multiple=True,
        metavar="NAME|FILE,...",
        callback=lambda _ctx, _param, given: tuple(name for names in given for name in names),
        help=f"Tests to run: {choices}. The word {ALL_TESTS} means every test of the profile. FILE is your own "
        f"workload file "
        f"('tkperf workload').",
    )


def expand_lists(args: Sequence[str], flags: Collection[str], words: Collection[str]) -> list[str]:
    """Return the words of a call in which ``-ssdt iops lat`` is expanded to ``-ssdt iops -ssdt lat``. Lists with commas
    are also expanded. Workload files are recognised by their suffix.
    """
    expanded: list[str] = []
    flag = ""
    for index, word in enumerate(args):
        follows_flag = index > 0 and args[index - 1] in flags
        if word in flags:
            flag = word
        elif flag and not follows_flag and _names_tests(word, words):
            expanded.append(flag)
        elif not follows_flag:
            flag = ""
        expanded.append(word)
    return expanded


def _names_tests(word: str, words: Collection[str]) -> bool:
    return all(name in words or name.endswith(".toml") for name in word.split(",") if name)
