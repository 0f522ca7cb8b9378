"""tkperf batch: measure many drives. The user confirms all drives with one answer. Each drive has its own run and run
file. tkperf prints the results of all drives together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import click
from click.shell_completion import CompletionItem

from tkperf.cli.calling import Command, CommandGroup, offer
from tkperf.cli.commands.suites import hdd, ssd
from tkperf.cli.kinds import Device, InputFile, offer_files
from tkperf.cli.suite_options import SuiteCommand, common, on_mail, on_target, on_test
from tkperf.model.choices import NO_BATCH_OF_SETS

FILE = "BATCH.toml"
_GIVEN = f"{__name__}.file"
# Options of a run that do not exist for a batch, or that have another form. All other options apply to every drive of a
# batch.
_OF_ONE_RUN = ("name", "device", "force", "yes_destroy", "strict", "mail", "notify_command")
_OF_ALL = (
    common(
        "--parallel",
        metavar="auto|all|N",
        help="Number of drives to measure at the same time. Default: auto, limited by shared links.",
    ),
    on_test(
        "--stagger",
        metavar="TIME",
        help="Shortest time between the starts of two drives on one link, such as 30s or 5min. By default, tkperf "
        "starts these drives without a delay.",
    ),
    common("--claims", type=InputFile(".toml"), metavar="FILE", help="Check each drive against this claims file."),
    on_test(
        "--strict",
        is_flag=True,
        default=None,
        help="Refuse a host that would disturb the runs, and refuse drives that together overload a shared link. "
        "Measure a disturbed step again at once. If each attempt is disturbed, end the run of this drive.",
    ),
    on_test(
        "--no-compare-reads",
        "compare_reads",
        is_flag=True,
        flag_value=False,
        default=None,
        help="Omit the comparison before the first purge, in which tkperf reads from each drive alone and then from "
        "all drives together.",
    ),
    on_test(
        "--alone-again",
        is_flag=True,
        default=None,
        help="If other drives slow a drive down or overload its link, measure this drive a second time, alone.",
    ),
    on_test(
        "--share-cpus",
        "own_cpus",
        is_flag=True,
        flag_value=False,
        default=None,
        help="Let all drives share the CPUs. By default, each drive uses separate CPUs if the host has enough CPUs.",
    ),
    common(
        "--yes-destroy-file",
        metavar="FILE",
        type=InputFile(),
        help="Confirm the erasure in advance. FILE contains one line for each drive, with the serial number or the "
        "path of the drive.",
    ),
    on_mail(
        "-m",
        "--mail",
        metavar="ADDRESS",
        help="Mail the results to this address, in at most twelve lines, when the batch has ended.",
    ),
    on_mail(
        "--notify-command",
        metavar="COMMAND",
        help="Run this command when the batch has ended. In COMMAND, tkperf replaces {name} with NAME, {status} with "
        "the word complete or the number of drives that are done, and {run_file} with the path of NAME.batch.",
    ),
)

_HELP_OF_FILE = """{verb} the drives of a batch file. {loss}

    Options on the command line override options in the file.

    \b
    Examples:
      tkperf {run}batch rack7 rack7.toml
      tkperf {run}batch rack7 rack7.toml --parallel 4 --output results/

    \b
    Example of a batch file:
      suite = "ssd"
      tests = ["iops", "lat"]
      profile = "pts-e-1.1"
      claims = "data-sheet.toml"
      parallel = "auto"
      stagger = "30s"
      drives = [
        "PHYH850500YA960L",
        "/dev/disk/by-id/nvme-eui.0123456789abcdef",
        {{ drive = "/dev/sdd", slot = "bay 4", name = "rack7-spare" }},
      ]
      [options]
      jobs = 4
      io_depth = 32
    """
_HELP_OF_SUITE = """{verb} drives with the options of 'tkperf {suite}'. {loss}

    DEVICE is the path or serial number of a drive, a file (created with --size), or sim:PRESET. In a batch file, drives
    can have different options.

    \b
    Examples:
      tkperf {run}batch rack7 {suite} /dev/sdb PHYH850500YB {example} --claims data-sheet.toml
      tkperf {run}batch look {suite} ./a.img ./b.img --size 1GiB --profile quick
    """
_WORDS_OF_RUN = {"verb": "Measure", "loss": "Every drive is erased."}
_WORDS_OF_PLAN = {
    "verb": "Estimate the measurement of",
    "loss": "tkperf measures nothing, writes nothing and asks no question.",
}
_EXAMPLES = {"ssd": "-ssdt iops lat -iod 32", "hdd": "-hddt tp"}

Act = Callable[[str, str | None, dict[str, Any]], None]
"""A function that executes a call. Its arguments are the name of the batch, the suite (None for a batch file), and the
options.
"""


class BatchGroup(CommandGroup):
    """The group of words that can follow the NAME of a batch. Such a word is a suite, which is followed by its drives,
    or a batch file.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if len(args) == 1 and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(
                f"the drives of the batch are missing. After NAME, pass {FILE}, or a suite and its drives", ctx
            )
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word, name = args[0], ctx.params.get("name")
        if word in ctx.help_option_names or (word != FILE and word in self.commands):
            return super().resolve_command(ctx, args)
        if word == "raid":
            raise click.UsageError(NO_BATCH_OF_SETS, ctx)
        if word.startswith("-"):
            raise click.UsageError(
                f"the option {word[:40]} is in the wrong place. Pass options after {FILE} or after the suite", ctx
            )
        if name in self.commands and not word.endswith(".toml"):
            raise click.UsageError(f"NAME comes before {name}", ctx)
        ctx.meta[_GIVEN] = word
        return FILE, self.commands[FILE], args[1:]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        suites = [name for name in self.commands if name != FILE]
        return [*offer(suites, incomplete), *offer_files(incomplete, (".toml",))]


def make_group(act: Act, *, run: str, text: str, own: Sequence[click.Parameter] = ()) -> BatchGroup:
    """Return the group of words that can follow the NAME of a batch.

    Args:
        act: function that executes the call.
        run: the words of the command before ``batch``, such as ``plan ``.
        text: the help text.
        own: options that exist only for this command.
    """

    words = _WORDS_OF_RUN if run == "" else _WORDS_OF_PLAN

    def of(suite: str | None) -> Callable[..., None]:
        def call(**options: Any) -> None:
            ctx = click.get_current_context()
            assert ctx.parent is not None
            if suite is None:
                options["file"] = ctx.meta[_GIVEN]
            act(ctx.parent.params["name"], suite, options)

        return call

    group = BatchGroup(
        "batch", params=[click.Argument(["name"])], subcommand_metavar=f"{FILE}|SUITE DEVICE... [OPTIONS]", help=text
    )
    views = [param for param in _shared(ssd) if param.name in _OF_CALL]
    group.add_command(
        Command(
            FILE,
            params=[*_OF_ALL, *views, *own],
            callback=of(None),
            help=_HELP_OF_FILE.format(run=run, **words),
            short_help=f"{words['verb']} the drives of a batch file.",
        )
    )
    for suite in (ssd, hdd):
        name = str(suite.name)
        devices = click.Argument(["device"], nargs=-1, required=True, type=Device(), shell_complete=_complete_devices)
        group.add_command(
            type(suite)(
                name,
                params=[devices, *_OF_ALL, *_shared(suite), *own],
                callback=of(name),
                help=_HELP_OF_SUITE.format(run=run, **words, suite=name, example=_EXAMPLES[name]),
                short_help=f"{words['verb']} drives with the options of 'tkperf {name}'.",
            )
        )
    return group


# Help texts of options that have an additional meaning in a batch.
_HELP_OF_OPTIONS = {
    "folder": "Folder for all files. Default: current folder.",
    "no_report": "Do not write NAME.html or the reports of the drives when the batch has ended.",
    "detach": "Continue the batch in the background. 'tkperf attach' shows the progress.",
}
# Options of a suite that do not concern the measurement. A batch file therefore does not contain them.
_OF_CALL = (
    "rated",
    "warranty_years",
    "rate",
    "like",
    "folder",
    "description",
    "feature_matrix",
    "progress",
    "detach",
    "verbose",
    "no_report",
    "quiet",
    "debug",
    "mail_from",
    "smtp",
    "smtp_tls",
    "smtp_plain_login",
)


def _shared(suite: click.Command) -> list[click.Parameter]:
    """Return the options of a suite that apply to all drives of a batch. Their help texts describe the batch."""
    return [_reword(param) for param in suite.params if param.name not in _OF_ONE_RUN]


def _reword(param: click.Parameter) -> click.Parameter:
    words = _HELP_OF_OPTIONS.get(str(param.name))
    if words is None or not isinstance(param, click.Option):
        return param
    option = copy(param)
    option.help = words
    return option


def _complete_devices(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return completions for another drive, or for a list of tests that the user may continue."""
    assert isinstance(ctx.command, SuiteCommand)
    return [*ctx.command.complete_list(ctx, incomplete), *Device().shell_complete(ctx, param, incomplete)]


def _run(name: str, suite: str | None, options: dict[str, Any]) -> None:
    from tkperf.cli.batch_session import run_batch
    from tkperf.cli.run_options import read_batch

    draft, batch_options = read_batch(name, suite, options)
    request = draft.settle(name).require_sound()
    if batch_options.push is not None and not request.hosts:
        raise click.UsageError(
            "--push installs tkperf on other hosts, but the batch names no host. Omit --push, or name the hosts of "
            "the drives"
        )
    if request.hosts:
        from tkperf.cli.hosts_session import run_batch_on_hosts

        raise click.exceptions.Exit(run_batch_on_hosts(request, batch_options))
    raise click.exceptions.Exit(run_batch(request, batch_options))


batch = make_group(
    _run,
    run="",
    own=[
        on_target(
            "--push",
            metavar="ARCHIVE",
            type=InputFile(".gz"),
            help="Install tkperf from this archive on the hosts of the batch first. 'make archive' creates the "
            "archive.",
        )
    ],
    text="""Measure many drives of this host, or of the hosts that a batch file names, with one plan, one question and
    one page of results. tkperf erases all drives.

    Each drive has a separate process and run file. By default, drives run in groups that do not overload a link. Before
    you confirm, tkperf examines every drive and opens the drive exclusively. If tkperf finds a problem, it refuses the
    whole batch and touches no drive. After you have confirmed, a problem with one drive ends only the run of this
    drive.

    'tkperf plan batch' with the same arguments estimates time, writes and groups. The file NAME.batch
    records the batch, and 'tkperf status', 'attach', 'stop', 'resume', 'show' and 'report' accept this file. At the
    end, NAME.html contains the results.

    The exit code is 0 if all drives are done, and 1 if a claim is not met or not judged. Otherwise the exit code is
    the exit code of the drive with the most serious problem.

    \b
    Examples:
      tkperf batch rack7 rack7.toml
      tkperf batch rack7 rack7.toml --yes-destroy-file drives.txt --detach
      tkperf batch rack7 ssd /dev/sdb /dev/sdc /dev/sdd --claims data-sheet.toml
      tkperf batch look ssd sim:sata-ssd sim:client-tlc --profile quick
      tkperf batch rack7 ssd --help
    """,
)
