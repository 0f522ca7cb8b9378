"""A terminal emulator that executes the control sequences of the live view."""

from __future__ import annotations

import io
import re

_PIECE = re.compile(r"\x1b\[(\??\d*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class Screen(io.StringIO):
    """Rows of text on a terminal. An unknown control sequence raises an AssertionError."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[str] = [""]
        self.row = self.column = 0

    def write(self, text: str) -> int:
        at = 0
        for piece in _PIECE.finditer(text):
            assert piece.start() == at, f"not understood: {text[at : piece.start()]!r}"
            at = piece.end()
            self._obey(*piece.groups())
        assert at == len(text), f"not understood: {text[at:]!r}"
        return len(text)

    def _obey(self, number: str | None, command: str | None, end: str | None, words: str | None) -> None:
        if words is not None:
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + words + row[self.column + len(words) :]
            self.column += len(words)
        elif end == "\r":
            self.column = 0
        elif end == "\n":
            self.row += 1
            self.rows += [""] * (self.row + 1 - len(self.rows))
        elif command == "A":
            self.row -= int(number or 1)
            assert self.row >= 0, "above the screen"
        elif command == "K":
            self.rows[self.row] = self.rows[self.row][: self.column]
        elif command == "J":
            self.rows[self.row] = self.rows[self.row][: self.column]
            del self.rows[self.row + 1 :]
        else:
            assert command == "m", f"not understood: {number}{command}"
