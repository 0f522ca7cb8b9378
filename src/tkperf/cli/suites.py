"""What ssd, hdd and raid share as commands: which of their tests to run, listed as TKperf lists them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import click
from click.shell_completion import CompletionItem

from tkperf.cli.options import Function
from tkperf.errors import not_known
from tkperf.input_files import is_toml_path
from tkperf.procedures import ALL_TESTS, SUITES


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
