"""The entry point of the command line, with the group of all commands. Every error becomes one line and an exit
code.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click
from click.shell_completion import CompletionItem

from tkperf.cli.calling import ASKED_TO_COMPLETE, CommandGroup, usage_of
from tkperf.cli.standard_streams import complain, let_go, prepare_streams
from tkperf.model.errors import ExitCode, TkperfError, UsageError, reason_of
from tkperf.model.version import __version__

# The commands, grouped under the headings of the help. Each entry contains the module and the help text. The help can
# therefore be shown without loading the module of a command.
COMMAND_GROUPS = {
    "Before a run": {
        "doctor": ("doctor", "Check whether DEVICE can be tested and what is missing here."),
        "plan": ("plan", "Estimate the time and the writes of a run before you start it."),
        "tune": ("tune", "Show, set and restore host settings for measuring DEVICE."),
        "profiles": ("profiles", "List the profiles, or explain one."),
        "workload": ("workload_files", "Explain a workload file, or convert a fio job file into one."),
        "completion": ("completion", "Print the completion script of a shell."),
    },
    "Measure": {
        "ssd": ("suites", "Run the SSD tests on DEVICE, which is erased."),
        "hdd": ("suites", "Measure a hard disk in areas. The disk is overwritten."),
        "raid": ("suites", "Create a RAID set from whole drives, and measure the set."),
        "sweep": ("sweep", "Measure every combination of given values. DEVICE is erased."),
        "batch": ("batch", "Measure many drives of this host or of several hosts."),
    },
    "During a run": {
        "status": ("status", "List the runs in progress, and the runs in this folder."),
        "attach": ("status", "Watch the run in RUN_FILE. Ctrl-C does not end the run."),
        "stop": ("status", "End the run in RUN_FILE cleanly, as Ctrl-C does."),
        "resume": ("resume", "Resume the interrupted run in RUN_FILE."),
    },
    "Results": {
        "show": ("report", "Show the results in RUN_FILE, even while the run continues."),
        "report": ("report", "Write the results in RUN_FILE as HTML, PDF or data files."),
        "compare": ("compare", "Compare runs, a cohort of drives, or a drive over time."),
        "rank": ("rank", "Rank the drives of many runs by one figure."),
        "export": ("export", "Write the tables of many runs as one data set."),
        "check": ("check", "Check runs against a data sheet or an earlier run."),
        "serve": ("serve", "Show the run files of folders in a browser."),
        "import": ("import_", "Import results of TKperf (XML) or fio (JSON) as run files."),
    },
}
COMMANDS = {name: entry for group in COMMAND_GROUPS.values() for name, entry in group.items()}

# The command on-host is intended for programs: tkperf on another host calls it.
HIDDEN = {"on-host": ("on_host", "Take part in a batch that is conducted by another host.")}

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(CommandGroup):
    """The group that contains the commands of ``COMMANDS`` in the same order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = COMMANDS.get(cmd_name) or HIDDEN.get(cmd_name)
        if found is None:
            return None
        name, summary = found
        module = import_module(f"tkperf.cli.commands.{name}")
        command = getattr(module, f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        command.short_help = summary
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, group in COMMAND_GROUPS.items():
            with formatter.section(heading):
                width = max(map(len, COMMANDS))
                rows = [(name.ljust(width), summary) for name, (_, summary) in group.items()]
                formatter.write_dl(rows)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The help lists the commands first. A group of click would list the commands after its options.
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands = [
            CompletionItem(name, help=summary) for name, (_, summary) in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        with _output_trouble():  # click prints the texts of --help and --version here
            return super().make_context(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        with _output_trouble():
            return super().invoke(ctx)


@contextmanager
def _output_trouble() -> Iterator[None]:
    """Handle output errors before click handles them. If the program that reads the output has ended, click would exit
    with 1, which would mean "claims not met".
    """
    try:
        yield
    except KeyboardInterrupt:
        # click would first print a line end, which fails if the command ended because its terminal was lost.
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
    """Measure SSDs, hard disks and RAID sets according to SNIA's Performance Test Specification.

    \b
    Examples:
      tkperf ssd look ./scratch.img --size 1GiB --profile quick    try it on a file
      tkperf doctor /dev/nvme1n1                                   can it be tested?
      tkperf plan ssd D7-P5520 /dev/nvme1n1                        hours and writes
      tkperf ssd D7-P5520 /dev/nvme1n1 --detach                    a day or more
      tkperf report D7-P5520.tkperf                                one HTML file
    """


def describe_exit_codes() -> str:
    """Return ``Exit codes: 0 done, 1 claims not met, ...``, in lines that click does not change."""
    codes = ", ".join(f"{code.value} {code.meaning}" for code in ExitCode)
    return "\b\n" + textwrap.fill(f"Exit codes: {codes}.", width=76)


cli.epilog = describe_exit_codes()


def main() -> None:
    """Run the command line and exit."""
    prepare_streams()
    # The parent process may ignore SIGCHLD, and tkperf inherits this setting. With this setting, every program would
    # seem to succeed.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if ASKED_TO_COMPLETE in os.environ:
        import_module("tkperf.cli.commands.completion")
    exit_code: int = ExitCode.DONE
    try:
        # A command returns nothing. click returns the code of click.exceptions.Exit, also for --help. With --detach,
        # this code may be 128 + n if signal n killed the process of the run before the run began.
        exit_code = cli.main(standalone_mode=False, prog_name="tkperf") or ExitCode.DONE
    except TkperfError as error:
        exit_code = _fail(str(error), error.exit_code, getattr(error, "__notes__", ()))
    except click.exceptions.Abort:
        # If the user presses Ctrl-C a second time, the message must not be interrupted.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
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

        # The exit code must not be 1, because 1 means that claims are not met.
        complain(format_exc().rstrip())
        exit_code = _fail("this is a defect of tkperf: please report it with the lines above", ExitCode.DEFECT)
    finally:
        let_go(sys.stdout)
        let_go(sys.stderr)
    gc.freeze()  # without this call, Python would search all objects for garbage when it exits
    sys.exit(exit_code)


def _fail(message: str, exit_code: ExitCode, usage: Iterable[str] = ()) -> ExitCode:
    complain("tkperf: " + " ".join(message.splitlines()))
    for line in usage:
        complain(line)
    return exit_code
