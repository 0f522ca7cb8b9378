"""tkperf completion: print the script that lets a shell complete tkperf's words."""

from __future__ import annotations

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import OneOf


@click.command(cls=Command)
@click.argument("shell", type=OneOf(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      tkperf completion bash > ~/.local/share/bash-completion/completions/tkperf
      tkperf completion fish > ~/.config/fish/completions/tkperf.fish
    """
    from click.shell_completion import get_completion_class

    import tkperf.cli.completion  # noqa: F401  # has our own for bash

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "tkperf", "_TKPERF_COMPLETE").source())
