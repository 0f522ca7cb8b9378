"""Command classes of the command line. The help of a command lists options under headings. If a call is wrong, the
message ends with the usage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tkperf.model.choices import SIMULATED
from tkperf.model.errors import InputFileError, UsageError, guess

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# The environment variable that the scripts of 'tkperf completion' set.
ASKED_TO_COMPLETE = "_TKPERF_COMPLETE"
# The smallest similarity at which a word counts as a misspelt option with one dash. A less similar word counts as
# several short options: -ssd is a misspelt -ssdt, but -qd means -q -d.
_SLIP = 0.8
# If a command has no more options than this number, its help lists all of them as common options.
_FEW = 8
# The greatest width of the column of options in the help. The limit of click is 30. With a smaller width, the texts
# need fewer lines.
_WIDEST = 24


Function = TypeVar("Function", bound=Callable[..., object])


class Heading(StrEnum):
    """The headings under which the help lists options, in this order. The common options are first, so that they fit on
    the first screen.
    """

    COMMON = "Options"
    CONTENT = "Content of the report"
    FORMATS = "Other formats"
    TEST = "Test"
    TARGET = "Target and safety"
    OUTPUT = "Output"
    MAIL = "Mail and notification"
    TKPERF = "Accepted for compatibility with TKperf"


class HeadedOption(click.Option):
    """An option with a heading. The help lists the option under this heading."""

    def __init__(self, names: Sequence[str], *, heading: Heading, **settings: Any) -> None:
        super().__init__(names, **settings)
        self.heading = heading


def headed(heading: Heading, *names: str, **settings: Any) -> HeadedOption:
    """Return an option under ``heading``. The other arguments are those of ``click.option``."""
    return HeadedOption(names, heading=heading, **settings)


class Command(click.Command):
    """A command with headings in its help. If a call contains an unknown option, the message names the option that the
    user may have meant.
    """

    # Store ``describe_excess``, a function that describes superfluous arguments.
    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = tuple(args)
        with _with_usage(ctx, given):
            if not ctx.resilient_parsing:
                _refuse_slips(ctx, given)
            try:
                super().parse_args(ctx, args)
            except click.MissingParameter as error:
                _refuse_device_as_name(self, ctx, given, error)
                raise
            if ctx.args and not ctx.resilient_parsing:
                raise click.UsageError(self.describe_excess(ctx.args), ctx)
        return ctx.args

    def invoke(self, ctx: click.Context) -> Any:
        with _with_usage(ctx):
            return super().invoke(ctx)

    def describe_excess(self, words: Sequence[str]) -> str:
        """Return the message about superfluous arguments."""
        listed = ", ".join(f"'{word[:40]}'" for word in words)
        return f"{listed}: more than this command takes"

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, records in options_by_heading(self, ctx).items():
            with formatter.section(title):
                # The names are padded so that all sections have the same width, because click determines the width of
                # each section separately.
                padded = [(name.ljust(_WIDEST), text) for name, text in records]
                formatter.write_dl(padded, col_max=_WIDEST)


class CommandGroup(click.Group):
    """A group of commands. If a call contains an unknown command, the message names the command that the user may have
    meant.
    """

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _with_usage(ctx, tuple(args)):
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_option = name.startswith("-")
        if is_option or ctx.resilient_parsing or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        raise click.UsageError(self.describe_unknown(ctx, name), ctx)

    def describe_unknown(self, ctx: click.Context, name: str) -> str:
        """Return the message about an unknown word that was given instead of a command."""
        return f"there is no command {name[:40]}{guess(name, self.list_commands(ctx))}"


def options_by_heading(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the flags and the meaning of each option. The headings are the keys. Options without a heading are common
    options.
    """
    sections: dict[str, list[tuple[str, str]]] = {heading.value: [] for heading in Heading}
    listed: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        # Newer versions of click list the arguments too. The arguments are omitted, because the text of the help
        # already explains them.
        if record is None or isinstance(param, click.Argument):
            continue
        heading = param.heading if isinstance(param, HeadedOption) else Heading.COMMON
        sections[heading].append(record)
        listed.append(record)
    if len(listed) <= _FEW:
        return {Heading.COMMON.value: listed}
    return {title: records for title, records in sections.items() if records}


def usage_of(ctx: click.Context) -> tuple[str, str]:
    """Return the usage of a command, and the call that shows the help of the command."""
    pieces = ctx.command.collect_usage_pieces(ctx)
    return (f"usage: {' '.join((ctx.command_path, *pieces))}", f"help:  {ctx.command_path} --help")


@contextmanager
def _with_usage(ctx: click.Context, given: Sequence[str] = ()) -> Iterator[None]:
    """Add the usage to the error about a wrong call. For an unknown option, also name the option that the user may have
    meant.
    """
    try:
        yield
    except click.NoSuchOption as error:
        where = error.ctx or ctx
        # For a wrong option such as -nj, click reports only -n, the first letter that is not an option.
        typed = (word.partition("=")[0] for word in given if word.startswith(error.option_name))
        name = next(typed, error.option_name)
        text = f"there is no option {name[:40]}{guess(name, _options_of(where))}"
        raise click.UsageError(text, where) from error
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise
    except UsageError as error:
        if not isinstance(error, InputFileError) and not getattr(error, "__notes__", ()):
            for line in usage_of(ctx):
                error.add_note(line)
        raise


def _options_of(ctx: click.Context) -> dict[str, click.Option]:
    return {
        name: param
        for param in ctx.command.get_params(ctx)
        if isinstance(param, click.Option)
        for name in (*param.opts, *param.secondary_opts)
    }


def _refuse_slips(ctx: click.Context, words: Sequence[str]) -> None:
    """Refuse misspelt options with one dash. Otherwise, click would interpret ``-ssd iops`` as ``-s sd``, which sets a
    mail server.
    """
    known = _options_of(ctx)
    spelled_with_one = [name for name in known if len(name) > 2 and name[1] != "-"]
    for word in words:
        name = word.partition("=")[0]
        if word == "--":
            return
        if len(name) < 3 or name[0] != "-" or name[1] == "-" or name in known:
            continue
        from difflib import get_close_matches  # noqa: PLC0415  # only mistakes need it

        if get_close_matches(name, spelled_with_one, n=1, cutoff=_SLIP):
            raise click.NoSuchOption(name, ctx=ctx)


def _refuse_device_as_name(
    command: click.Command, ctx: click.Context, given: Sequence[str], error: click.MissingParameter
) -> None:
    """Raise an error that NAME is missing if the only argument is a device. Without this check, click would use the
    device as NAME, and would report that DEVICE is missing.
    """
    if error.param is None or error.param.name != "device":
        return
    words, _, _ = command.make_parser(ctx).parse_args(list(given))
    device = words.get("name")
    if isinstance(device, str) and (device.startswith(SIMULATED) or "/" in device):
        example = f"{ctx.command_path} my-drive {device[:80]}"
        raise click.UsageError(
            f"NAME is missing before {device[:80]}. Choose a name for the run, for example: {example}", ctx
        )


def offer(names: Sequence[str], begun: str) -> list[CompletionItem]:
    """Return completions for a word: the names that begin with ``begun``."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415  # only completion needs it

    return [CompletionItem(name) for name in names if name.startswith(begun)]
