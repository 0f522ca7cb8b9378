"""What bash asks at each Tab: loaded only then, and to print its script.

click's script hands over words as bash has cut them, which it does at colons, too: ``sim:sa`` would come as three.
This one hands over the line itself, and takes what is before the colon off again. It also says what is a file's name, for
bash to quote: else a blank in it cuts it in two, and ``$(...)`` or ``;`` in a stranger's file's name would be run.
"""

from __future__ import annotations

import os
from typing import Any

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    split_arg_string,
)

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
    """bash, by its line."""

    name = "bash"
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)
        incomplete = "" if line[-1:].isspace() or not words else words.pop()
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return f"path,{item.value}" if item.is_path else super().format_completion(item)
