"""Entry point: the command group. Every error becomes one line and an exit code."""

from __future__ import annotations

import gc
import os
import signal
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import cleandoc
from keyword import iskeyword
from typing import Any

import click
from click.shell_completion import CompletionItem

from tkperf.cli.calling import ASKED_TO_COMPLETE, CommandGroup, usage_of
from tkperf.cli.streams import complain, let_go, prepare_streams
from tkperf.model.errors import ExitCode, TkperfError, UsageError, reason_of
from tkperf.model.version import __version__

# Each command with its module and its text in this list, which loads none of them.
COMMANDS = {
    "ssd": ("suites", "Run the SSD tests on DEVICE, which is erased."),
    "hdd": ("suites", "Measure a hard disk area by area; it is overwritten."),
    "raid": ("suites", "Make a RAID set of whole drives and measure it."),
    "batch": ("batch", "Measure many drives of this host, all at once or in turn."),
    "plan": ("plan", "Estimate the time of a run and its writes; nothing is run."),
    "sweep": ("sweep", "Sweep over demands, block sizes, mixes on DEVICE, which is erased."),
    "resume": ("resume", "Resume the interrupted run in RUN_FILE."),
    "attach": ("under_way", "Watch the run in RUN_FILE; leaving does not end it."),
    "status": ("under_way", "List runs under way, and those of this folder."),
    "stop": ("under_way", "End the run in RUN_FILE in order, as Ctrl-C does."),
    "show": ("report", "Show the results in RUN_FILE, also during its run."),
    "report": ("report", "Write the report of RUN_FILE as HTML or PDF, or its data."),
    "compare": ("compare", "Compare runs, a cohort of drives, or a drive over time."),
    "check": ("check", "Check a data sheet's or an earlier run's numbers."),
    "serve": ("serve", "Show the run files of folders in a browser."),
    "import": ("import_", "Import results of TKperf (XML) or fio (JSON) as run files."),
    "workload": ("workload", "Tests of your own: explain a workload file, make one of a fio job."),
    "profiles": ("profiles", "List the profiles, or explain one."),
    "doctor": ("host", "Check whether DEVICE can be tested and what is missing here."),
    "tune": ("host", "Show, set and restore host settings for measuring DEVICE."),
    "completion": ("completion", "Shell completion."),
}  # fmt: skip

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(CommandGroup):
    """The commands of ``COMMANDS``, in that order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name, summary = COMMANDS[cmd_name]
        module = import_module(f"tkperf.cli.commands.{name}")
        command = getattr(module, f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name)
        assert isinstance(command, click.Command)
        command.short_help = summary
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        with _output_trouble():  # --help and --version print here
            return super().make_context(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        with _output_trouble():
            return super().invoke(ctx)


@contextmanager
def _output_trouble() -> Iterator[None]:
    """Handle errors of the output before click, which ends with 1 if a reader is gone: "claims not met"."""
    try:
        yield
    except KeyboardInterrupt:
        # click would begin a line first, which fails if a lost terminal ended the command.
        complain("")
        raise click.exceptions.Abort from None
    except BrokenPipeError:
        sys.exit(ExitCode.READER_GONE)
    except OSError as error:
        what = "cannot write the output" if error.filename is None else error.filename
        raise UsageError(f"{what}: {reason_of(error)}") from error


@click.group(cls=_Commands, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="tkperf")
def cli() -> None:
    """Measure SSDs, hard disks and RAID sets by the SNIA Performance Test Specification.

    \b
    Examples:
      tkperf ssd look ./scratch.img --size 1GiB --profile quick   no root, no spare drive
      tkperf ssd D3-S4510 /dev/sdb -nj 4 -iod 32                  four tests, a day or more
      tkperf batch rack7 rack7.toml                               many drives, one answer
      tkperf profiles show pts-2.0                                the specification, explained
      tkperf plan ssd D3-S4510 /dev/sdb --rated 1DWPD             time and writes, estimated
      tkperf resume D3-S4510.tkperf                               resume after a kill or a power cut
      tkperf status                                               runs under way, and their progress
      tkperf doctor /dev/sdb                                      check whether it can be tested
      tkperf tune /dev/sdb                                        host settings for measuring it
      tkperf show D3-S4510.tkperf                                 results, also during the run
      tkperf report D3-S4510.tkperf                               results as one HTML file
      tkperf compare D3-S4510.tkperf D7-P5520.tkperf              two drives side by side
    """


def describe_exit_codes() -> str:
    """Return ``Exit codes: 0 done, 1 claims not met, ...``, in lines that click leaves as they are."""
    codes = ", ".join(f"{code.value} {code.meaning}" for code in ExitCode)
    return "\b\n" + textwrap.fill(f"Exit codes: {codes}.", width=95)


cli.help = f"{cleandoc(cli.help or '')}\n\n{describe_exit_codes()}"


def main() -> None:
    """Run the command line and exit."""
    prepare_streams()
    # The parent process may ignore SIGCHLD, and tkperf inherits that: then every program seems to end well.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if ASKED_TO_COMPLETE in os.environ:
        import_module("tkperf.cli.commands.completion")
    exit_code: int = ExitCode.DONE
    try:
        # A command returns nothing; click returns the code of click.exceptions.Exit, also for --help.
        # With --detach it may be 128 + n, if signal n killed the run before it began.
        exit_code = cli.main(standalone_mode=False, prog_name="tkperf") or ExitCode.DONE
    except TkperfError as error:
        exit_code = _fail(str(error), error.exit_code, getattr(error, "__notes__", ()))
    except click.exceptions.Abort:
        exit_code = _fail("stopped by the user", ExitCode.STOPPED)
    except click.exceptions.NoArgsIsHelpError as error:
        complain(error.format_message())
        exit_code = ExitCode.WRONG_USE
    except click.UsageError as error:
        usage = () if error.ctx is None else usage_of(error.ctx)
        exit_code = _fail(error.format_message(), ExitCode.WRONG_USE, usage)
    except click.ClickException as error:
        exit_code = _fail(error.format_message(), ExitCode.WRONG_USE)
    except Exception:
        from traceback import format_exc  # noqa: PLC0415  # only a defect needs it

        # Not 1, which says that claims are not met.
        complain(format_exc().rstrip())
        exit_code = _fail(
            "this is a defect of tkperf: please report it with the lines above", ExitCode.DEFECT
        )
    finally:
        let_go(sys.stdout)
        let_go(sys.stderr)
    gc.freeze()  # else Python would search all that a long run left, at its end
    sys.exit(exit_code)


def _fail(message: str, exit_code: ExitCode, usage: Iterable[str] = ()) -> ExitCode:
    complain("tkperf: " + " ".join(message.splitlines()))
    for line in usage:
        complain(line)
    return exit_code
