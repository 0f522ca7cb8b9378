"""Parts that the commands ssd, hdd and raid share: the tests to run, listed in TKperf's form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import click
from click.shell_completion import CompletionItem

from tkperf.cli.calling import Command, Function, Heading, offer, option_about
from tkperf.cli.kinds import offer_files
from tkperf.model.choices import ALL_TESTS, tests_of
from tkperf.model.errors import guess, not_known
from tkperf.model.input_files import is_toml_path

_LIST_GOES_ON = f"{__name__}.list_goes_on"


def suite_command(suite: str, flags: tuple[str, ...]) -> type[click.Command]:
    """Return a command that takes TKperf's ``-ssdt iops lat`` as well as ``-ssdt iops,lat``."""

    names = (*tests_of(suite), ALL_TESTS)

    class SuiteCommand(Command):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            words = expand_lists(args, flags, names)
            # For completion: the last word belongs to a list that may go on.
            ctx.meta[_LIST_GOES_ON] = len(words) > 1 and words[-2] in flags
            return super().parse_args(ctx, words)

        def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
            offered = super().shell_complete(ctx, incomplete)
            if ctx.meta.get(_LIST_GOES_ON) and not incomplete.startswith("-"):
                offered += _complete_tests(names, incomplete, ctx.params.get("tests") or ())
            return offered

        def describe_excess(self, words: Sequence[str]) -> str:
            hints = [guess(word, tests_of(suite)) for word in words]
            return super().describe_excess(words) + next(filter(None, hints), "")

    return SuiteCommand


class _TestNames(click.ParamType[tuple[str, ...]]):
    """Names of a suite's tests and workload files, with commas between them."""

    name = "tests"

    def __init__(self, suite: str) -> None:
        self._names = (*tests_of(suite), ALL_TESTS)

    def convert(self, value: str, param: object, ctx: object) -> tuple[str, ...]:
        names = tuple(name.strip() for name in value.split(",") if name.strip())
        for name in names or ("",):
            if name not in self._names and not is_toml_path(name):
                raise not_known("test", name, self._names)
        return names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return _complete_tests(self._names, incomplete)


def _complete_tests(
    names: Collection[str], incomplete: str, given: Collection[str] = ()
) -> list[CompletionItem]:
    """Return completions: tests that the list does not have yet, else workload files."""
    before, comma, begun = incomplete.rpartition(",")
    taken = {*given, *before.split(",")}
    left = [name for name in names if name not in taken]
    named = [CompletionItem(f"{before}{comma}{item.value}") for item in offer(left, begun)]
    return named if named or comma else offer_files(begun, (".toml",))


def tests_option(suite: str, flags: tuple[str, ...]) -> Callable[[Function], Function]:
    """Return the option for the tests to run, with the suite's tests in its help."""
    tests = tests_of(suite)
    by_default = [name for name, test in tests.items() if test.by_default]
    others = [name for name in tests if name not in by_default]
    choices = f"{', '.join(by_default)} by default"
    if others:
        choices += f"; also {', '.join(others)}"
    return option_about(Heading.TEST)(
        *flags,
        "tests",
        type=_TestNames(suite),
        multiple=True,
        metavar="NAME|FILE,...",
        callback=lambda _ctx, _param, given: tuple(name for names in given for name in names),
        help=f"Tests to run: {choices}, or {ALL_TESTS} that the profile defines; a workload file of "
        "your own ('tkperf workload show FILE' explains it).",
    )


def expand_lists(args: Sequence[str], flags: Collection[str], words: Collection[str]) -> list[str]:
    """Expand ``-ssdt iops lat`` to ``-ssdt iops -ssdt lat``, also with commas, and with workload files by suffix."""
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
