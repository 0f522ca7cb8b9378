"""Text from outside in a terminal."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tkperf.cli.output import plain


@given(st.one_of(st.text(), st.text(alphabet="[]/\\ab:=#@\n")))
def test_text_from_outside_is_printed_as_it_is(text: str) -> None:
    """Any text: what is printable, and line ends, nothing else; no markup is obeyed, none fails."""
    printable = "".join(each for each in text if each.isprintable() or each == "\n")
    file = io.StringIO()
    Console(file=file, width=100_000).print(plain(text), emoji=False, end="", soft_wrap=True)
    # rich adds a backslash to one at the end, and takes one from a bracket that opens no tag.
    assert file.getvalue().replace("\\", "") == printable.replace("\\", "")


def test_control_and_direction_characters_are_dropped() -> None:
    """Escape sequences, bells, carriage returns and right-to-left overrides; lines stay lines."""
    assert plain("a\x1b[31mb\x07\r\u202e\u2066\x9bc\nd") == "a[31mbc\nd"
    assert plain("[red]") == "\\[red]"
    assert plain(7) == "7"
