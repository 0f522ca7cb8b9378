"""Entry point: the command group, and every error turned into one line and an exit code."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import cleandoc
from traceback import format_exc
from typing import Any

import click

from tkperf import __version__
from tkperf.cli.console import complain, let_go, prepare_streams
from tkperf.errors import ExitCode, TkperfError, UsageError

# Each command by its name, with module and function: a command loads what it needs when it is called.
COMMANDS = {
    "ssd": ("tkperf.cli.ssd", "ssd"),
    "hdd": ("tkperf.cli.hdd", "hdd"),
    "raid": ("tkperf.cli.raid", "raid"),
    "plan": ("tkperf.cli.plan", "plan"),
    "sweep": ("tkperf.cli.sweep", "sweep"),
    "resume": ("tkperf.cli.resume", "resume"),
    "attach": ("tkperf.cli.attach", "attach"),
    "status": ("tkperf.cli.status", "status"),
    "stop": ("tkperf.cli.stop", "stop"),
    "show": ("tkperf.cli.show", "show"),
    "report": ("tkperf.cli.report", "report"),
    "compare": ("tkperf.cli.compare", "compare_runs"),
    "check": ("tkperf.cli.check", "check"),
    "import": ("tkperf.cli.import_", "import_results"),
    "workload": ("tkperf.cli.workload", "workload"),
    "profiles": ("tkperf.cli.profiles", "profiles"),
    "doctor": ("tkperf.cli.doctor", "doctor"),
    "tune": ("tkperf.cli.tune", "tune"),
    "completion": ("tkperf.cli.completion", "completion"),
}

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """The commands of ``COMMANDS``, in that order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        with _output_trouble():  # --help and --version print here
            return super().make_context(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        with _output_trouble():
            return super().invoke(ctx)


@contextmanager
def _output_trouble() -> Iterator[None]:
    """Before click, which ends with 1 where a reader is gone: that would be "claims not met"."""
    try:
        yield
    except KeyboardInterrupt:
        # click would begin a line first, which fails where a lost terminal is what ended it.
        complain("")
        raise click.exceptions.Abort from None
    except BrokenPipeError:
        sys.exit(ExitCode.READER_GONE)
    except OSError as error:
        what = "cannot write the output" if error.filename is None else error.filename
        raise UsageError(f"{what}: {error.strerror}") from error


@click.group(cls=_Commands, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="tkperf")
def cli() -> None:
    """Measure SSDs, hard disks and RAID sets by the SNIA Performance Test Specification.

    \b
    Examples:
      tkperf ssd look ./scratch.img --size 1GiB --profile quick   no root, no spare drive
      tkperf ssd D3-S4510 /dev/sdb -nj 4 -iod 32                  four tests, a day or more
      tkperf profiles show pts-2.0                                what it would do, and why
      tkperf plan ssd D3-S4510 /dev/sdb --rated 1DWPD             how long, how much is written
      tkperf resume D3-S4510.tkperf                               go on after a kill or a power cut
      tkperf status                                               what runs, how far, how long yet
      tkperf doctor /dev/sdb                                      could it be tested, and how
      tkperf tune /dev/sdb                                        settings of the host, for measuring
      tkperf show D3-S4510.tkperf                                 results again
      tkperf report D3-S4510.tkperf                               results as one HTML file
      tkperf compare D3-S4510.tkperf D7-P5520.tkperf              two drives beside each other
    """


def describe_exit_codes() -> str:
    """``Exit codes: 0 done, 1 claims not met, ...``, in lines that click leaves as they are."""
    codes = ", ".join(f"{code.value} {code.meaning}" for code in ExitCode)
    return "\b\n" + textwrap.fill(f"Exit codes: {codes}.", width=95)


cli.help = f"{cleandoc(cli.help or '')}\n\n{describe_exit_codes()}"


def main() -> None:
    """Run the command line and exit."""
    prepare_streams()
    exit_code: int = ExitCode.DONE
    try:
        # A command returns nothing; click.exceptions.Exit, of --help too, becomes what is returned.
        # That of --detach may be 128 + n, of a signal that killed the run before it began.
        exit_code = cli.main(standalone_mode=False) or ExitCode.DONE
    except TkperfError as error:
        exit_code = _fail(str(error), error.exit_code)
    except click.exceptions.Abort:
        exit_code = _fail("stopped by the user", ExitCode.STOPPED)
    except click.exceptions.NoArgsIsHelpError as error:
        complain(error.format_message())
        exit_code = ExitCode.WRONG_USE
    except click.UsageError as error:
        called = "tkperf" if error.ctx is None else error.ctx.command_path
        exit_code = _fail(f"{error.format_message()} See '{called} --help'", ExitCode.WRONG_USE)
    except click.ClickException as error:
        exit_code = _fail(error.format_message(), ExitCode.WRONG_USE)
    except Exception:
        # Not 1, which says that claims are not met.
        complain(format_exc().rstrip())
        exit_code = _fail(
            "this is a defect of tkperf: please report it with the lines above", ExitCode.DEFECT
        )
    finally:
        let_go(sys.stdout)
        let_go(sys.stderr)
    sys.exit(exit_code)


def _fail(message: str, exit_code: ExitCode) -> ExitCode:
    complain("tkperf: " + " ".join(message.splitlines()))
    return exit_code
