"""Charts as SVG, for print, drawn by processes of their own.

vl-convert draws one chart at a time, keeps Python from doing anything else meanwhile, and needs most
of its time for measuring texts. So two processes share the charts, and both get ready while the
results are still being read. Run as a module, this is such a process: specifications come in as
JSON, drawings go out as JSON. It knows only the fonts that the package and vl-convert bring: texts get the
same room on every machine, and a third less time is spent on looking for fonts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from types import TracebackType
from typing import Self

import vl_convert

from tkperf.process import Process, start_module
from tkperf.report.fonts import FOLDER

Spec = dict[str, object]

PROCESSES = 2
_SHARES = [slice(number, None, PROCESSES) for number in range(PROCESSES)]

_SMALLEST_CHART: Spec = {"data": {"values": [{}]}, "mark": "point"}


class Drawer:
    """Draws the charts of one document. Make it early: it gets ready in the background."""

    def __init__(self) -> None:
        self._helpers: list[Process | None] = [_start_helper() for _ in range(PROCESSES)]
        self._specs: Sequence[Spec] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for helper in self._helpers:
            if helper is not None:
                helper.kill()
                helper.wait()
                for stream in (helper.stdin, helper.stdout):
                    if stream is not None and not stream.closed:
                        stream.close()

    def start(self, specs: Sequence[Spec]) -> None:
        """Begin with the charts. To be called once."""
        self._specs = specs
        for helper, share in zip(self._helpers, _SHARES, strict=True):
            _hand_over(helper, specs[share])

    def finish(self) -> list[str]:
        """The SVG of each chart, in the order of ``start``.

        What a process failed to draw is drawn here.
        """
        drawn = [""] * len(self._specs)
        for helper, share in zip(self._helpers, _SHARES, strict=True):
            drawn[share] = _read(helper) or [_draw(spec) for spec in self._specs[share]]
        return drawn


def _start_helper() -> Process | None:
    try:
        return start_module("tkperf.report.drawing")
    except OSError:
        return None


def _hand_over(helper: Process | None, specs: Sequence[Spec]) -> None:
    if helper is None or helper.stdin is None:
        return
    with suppress(BrokenPipeError):  # it ended early; what it answers tells
        helper.stdin.write(json.dumps(specs).encode())
    with suppress(BrokenPipeError):
        helper.stdin.close()


def _read(helper: Process | None) -> list[str] | None:
    """What a helper drew; None if it failed, for whatever reason."""
    if helper is None or helper.stdout is None:
        return None
    answer = helper.stdout.read()
    if helper.wait() != 0:
        return None
    drawn: list[str] = json.loads(answer)
    return drawn


@cache
def _use_own_fonts() -> None:
    vl_convert.register_font_directory(str(FOLDER))


def _draw(spec: Spec) -> str:
    _use_own_fonts()
    svg: str = vl_convert.vegalite_to_svg(spec)
    return svg


def draw_png(spec: Spec) -> bytes:
    """A chart as a picture for slides and web pages."""
    _use_own_fonts()
    picture: bytes = vl_convert.vegalite_to_png(spec | {"width": 700}, scale=2.0)
    return picture


if __name__ == "__main__":
    fonts = resources.files("tkperf.report") / "templates/no-system-fonts.conf"
    os.environ["FONTCONFIG_FILE"] = str(fonts)
    _draw(_SMALLEST_CHART)  # the first drawing of a process takes much longer than all others
    json.dump([_draw(spec) for spec in json.load(sys.stdin)], sys.stdout)
