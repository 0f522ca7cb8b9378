r"""Generate man pages from the definition of the command line: one page for tkperf, and one page for each command.

    python scripts/man_pages.py FOLDER

The script runs in any Python that contains tkperf. click-man (0.6) is not suitable. It does not escape text that roff
would interpret as a command, does not support click's ``\\b`` blocks, and does not find commands that are loaded only
when a user calls them.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from tkperf import __version__
from tkperf.cli.calling import options_by_heading
from tkperf.cli.main import cli

# Input lines of roff have at most 80 characters. This limit leaves room for escapes.
LINE = 72
ESCAPES = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
FILES = (
    ("NAME.tkperf", "The run: everything that was measured, kept step by step. One SQLite file."),
    ("NAME.log", "The log beside it."),
)


def build_pages() -> dict[str, str]:
    """Return the text of every page, with the name of its file as the key."""
    context = click.Context(cli, info_name="tkperf", **cli.context_settings)
    pages = {"tkperf.1": _page(cli, context, others=cli.list_commands(context))}
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        own = click.Context(command, info_name=name, parent=context, **command.context_settings)
        pages[f"tkperf-{name}.1"] = _page(command, own, others=())
    return pages


def _page(command: click.Command, context: click.Context, *, others: list[str] | tuple[()]) -> str:
    title = context.command_path.replace(" ", "-")
    prose, examples, exit_codes = parts_of_help(command)
    summary = prose[0] if others else command.get_short_help_str(limit=1000)
    lines = [
        # The page contains no date, because a date would differ from build to build.
        f'.TH {title.upper()} 1 "" "tkperf {__version__}"',
        ".SH NAME",
        f"{_escaped(title)} \\- {_escaped(summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f"\\fB{_escaped(context.command_path)}\\fR " + _escaped(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *_paragraphs(prose),
    ]
    if others:
        lines += [".SH COMMANDS", *_commands(command, context, others)]
    lines += [".SH OPTIONS", *_options(command, context)]
    if exit_codes:
        lines += [".SH EXIT STATUS", *_exit_status(exit_codes)]
    if others:
        lines += [".SH FILES"]
        for name, what in FILES:
            lines += [".TP", f"\\fI{_escaped(name)}\\fR", *_wrapped(what)]
    if examples:
        lines += [".SH EXAMPLES", ".EX", *(_escaped(line) for line in examples), ".EE"]
    return "\n".join([*lines, ".SH SEE ALSO", _see_also(others)]) + "\n"


def parts_of_help(command: click.Command) -> tuple[list[str], list[str], str]:
    r"""Return the paragraphs, the lines of examples, and the sentence about exit codes.

    The author of a help text can tell click not to wrap a block (``\\b``). Such a block contains examples, exit codes,
    or a paragraph that keeps its lines. In the result, a paragraph that keeps its lines still begins with ``\\b``.
    """
    prose: list[str] = []
    examples: list[str] = []
    exit_codes = ""
    texts = (inspect.cleandoc(text).strip() for text in (command.help, command.epilog) if text)
    for block in "\n\n".join(texts).split("\n\n"):
        as_it_stands, body = block.startswith("\b"), block.removeprefix("\b").lstrip("\n")
        if body.startswith("Example"):
            lines = textwrap.dedent("\n".join(body.split("\n")[1:])).split("\n")
            examples += ["", *lines] if examples else lines
        elif body.startswith("Exit codes:"):
            exit_codes = " ".join(body.removeprefix("Exit codes:").split())
        else:
            prose.append("\b" + body if as_it_stands else " ".join(body.split()))
    return prose, examples, exit_codes


def _paragraphs(prose: list[str]) -> Iterator[str]:
    for number, text in enumerate(prose):
        if number:
            yield ".PP"
        if text.startswith("\b"):
            yield from (".EX", *(_escaped(line) for line in text[1:].split("\n")), ".EE")
        else:
            yield from _wrapped(text)


def _commands(group: click.Command, context: click.Context, names: list[str]) -> Iterator[str]:
    assert isinstance(group, click.Group)
    for name in names:
        command = group.get_command(context, name)
        assert command is not None
        yield from (".TP", _reference(f"tkperf-{name}"))
        yield from _wrapped(command.get_short_help_str(limit=1000))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    sections = options_by_heading(command, context)
    for heading, records in sections.items():
        if len(sections) > 1:
            yield f".SS {_escaped(heading)}"
        for flags, meaning in records:
            # A flag is printed as the user types it. The words after a flag are placeholders.
            *first, last = flags.split(", ")
            last, _, value = last.partition(" ")
            line = ", ".join(f"\\fB{_escaped(flag)}\\fR" for flag in [*first, last])
            yield from (".TP", f"{line} \\fI{_escaped(value)}\\fR" if value else line)
            yield from _wrapped(meaning)


def _exit_status(codes: str) -> Iterator[str]:
    for code, meaning in re.findall(r"(\d+) ([^,]+?)(?:,|\.?$)", codes):
        yield from (".TP", f"\\fB{code}\\fR", *_wrapped(meaning))


def _see_also(others: list[str] | tuple[()]) -> str:
    names = [f"tkperf-{name}" for name in others] or ["tkperf"]
    return ",\n".join(_reference(name) for name in [*names, "fio"])


def _reference(page: str) -> str:
    return f"\\fB{_escaped(page)}\\fR(1)"


def _wrapped(text: str) -> list[str]:
    lines = textwrap.wrap(text, LINE, break_long_words=False, break_on_hyphens=False)
    return [_escaped(line) for line in lines]


def _escaped(text: str) -> str:
    """Return text that roff prints unchanged. A reader can search for its hyphens and copy them."""
    escaped = "".join(ESCAPES.get(letter, letter if letter.isascii() else f"\\[u{ord(letter):04X}]") for letter in text)
    # At the beginning of a line, roff would interpret a point or an apostrophe as a request.
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python scripts/man_pages.py FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in build_pages().items():
        (folder / name).write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
