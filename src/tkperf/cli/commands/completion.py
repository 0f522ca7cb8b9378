"""tkperf completion: print the script with which a shell completes the words of tkperf, and answer bash each time the
user presses Tab.
"""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from tkperf.cli.calling import Command


@click.command(cls=Command)
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


# click's script passes the words into which bash divides the line. bash also divides words at colons, so tkperf would
# receive ``sim:sa`` as three words. The script in this module passes the line itself, and then removes the part before
# the colon. It also marks file names, so that bash quotes them. Without quotes, a blank would divide a name, and bash
# would execute ``$(...)`` or ``;`` in the name of a file that another user created.
_SCRIPT = """\
%(complete_func)s() {
    local type value word kept
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
            path) compopt -o filenames 2>/dev/null; COMPREPLY+=("$value") ;;
        esac
    done < <(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" %(complete_var)s=bash_complete "$1")
    word=${COMP_LINE:0:COMP_POINT}
    word=${word##*[[:space:]]}
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        kept=${word%%"${word##*:}"}
        COMPREPLY=("${COMPREPLY[@]#"$kept"}")
    fi
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class LineComplete(BashComplete):
    """The completion for bash that receives the whole line instead of single words."""

    name = "bash"
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)
        incomplete = "" if line[-1:].isspace() or not words else words.pop()
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return f"path,{item.value}" if item.is_path else super().format_completion(item)
