"""Pages about a device or the host in the terminal, as tkperf doctor and tkperf tune print them."""

from __future__ import annotations

import textwrap

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tkperf.model.units import drop_controls
from tkperf.page.doctor import HostPage, ItemList
from tkperf.page.page import TableView
from tkperf.render.terminal.console import LEVEL_STYLES, plain, print_verdict

_INDENT = 2
_HANGING = 4


def print_host_page(page: HostPage, console: Console) -> None:
    """Print the verdict, then each block that is not empty."""
    print_verdict(page.verdict, console)
    for block in page.blocks:
        if isinstance(block, ItemList) and block.items:
            _print_list(block, console)
        elif isinstance(block, TableView) and block.rows:
            _print_table(block, console)


def _print_list(block: ItemList, console: Console) -> None:
    console.print(f"\n[bold]{plain(block.title)}[/bold]", highlight=False)
    for item in block.items:
        style = LEVEL_STYLES[item.level]
        lines = _wrap(item.text, console.width, _INDENT)
        for detail in item.details:
            lines += _wrap(detail, console.width, _INDENT + _HANGING)
        for line in lines:
            console.print(plain(line), style=style, highlight=False)
        indent = _INDENT + _HANGING * bool(item.text)
        for line in _in_lines(item.command, console.width - indent):
            indented = f"{'':{indent}}{drop_controls(line)}"
            console.print(indented, markup=False, highlight=False, soft_wrap=True)


def _wrap(text: str, width: int, indent: int) -> list[str]:
    """Return a text in lines of whole words, the first of which stands out."""
    return textwrap.wrap(
        drop_controls(text), width, break_on_hyphens=False,
        initial_indent=" " * indent, subsequent_indent=" " * (indent + _HANGING),
    )  # fmt: skip


def _in_lines(command: str, width: int) -> list[str]:
    """Return a command in lines of whole words that a shell takes as one."""
    if len(command) <= width:
        return [command] if command else []
    lines = textwrap.wrap(command, width - 2, break_long_words=False, break_on_hyphens=False)
    return [*(f"{line} \\" for line in lines[:-1]), *lines[-1:]]


def _print_table(block: TableView, console: Console) -> None:
    console.print(f"\n[bold]{plain(block.title)}[/bold]", highlight=False)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in block.columns:
        table.add_column(plain(name), overflow="fold")
    for row in block.rows:
        table.add_row(*map(plain, row))
    console.print(table, highlight=False)
