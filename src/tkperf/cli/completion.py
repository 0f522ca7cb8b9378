"""Shell completion."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      tkperf completion bash > ~/.local/share/bash-completion/completions/tkperf
      tkperf completion fish > ~/.config/fish/completions/tkperf.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "tkperf", "_TKPERF_COMPLETE").source())
