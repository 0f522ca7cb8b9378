"""The live view: what an eye has to tell apart."""

from __future__ import annotations

import io

from rich.console import Console

from tkperf.cli.live import LiveView
from tkperf.events import Warned
from tkperf.record import RunWarning


def test_warnings_are_told_apart_and_earlier_ones_are_counted() -> None:
    """Two paragraphs of the same colour read as one; a third would push the figures away."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=40)
    with LiveView(console) as view:
        for text in ("one", "two", "three", "four"):
            view.take(Warned(warning=RunWarning(code="telemetry", text=text)))
        view.draw()
        assert isinstance(console.file, io.StringIO)
        shown = console.file.getvalue()
    assert "2 earlier warnings in the log" in shown
    assert "warning: three" in shown
    assert "warning: four" in shown
    assert "warning: two" not in shown
