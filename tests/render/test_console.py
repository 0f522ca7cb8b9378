"""Width of what is printed without a terminal."""

import pytest

from tkperf.render.terminal.console import open_console


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("0", 160), ("wide", 160), ("", 160)])
def test_piped_output_is_as_wide_as_columns_asks(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.stdout.isatty", lambda: False)

    assert open_console().width == width
