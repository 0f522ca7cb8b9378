"""Charts as SVG, for print: drawn here, and by Vega where a specification asks for what is not known here.

Vega draws in a process of its own, which is started only when a chart needs it: vl-convert keeps Python from doing
anything else meanwhile. Run as a module, this is that process: specifications come in as JSON, drawings go out as JSON.
It knows only the fonts that the package and vl-convert bring: texts get the same room on every machine.
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

from tkperf.process import Process, start_module
from tkperf.report.fonts import FOLDER
from tkperf.report.svg.chart import draw
from tkperf.report.svg.known import NotDrawnError

Spec = dict[str, object]


class Drawer:
    """Draws the charts of one document."""

    def __init__(self) -> None:
        self._drawn: list[str | None] = []
        self._left: list[Spec] = []
        self._helper: Process | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._helper is not None:
            self._helper.kill()
            self._helper.wait()
            for stream in (self._helper.stdin, self._helper.stdout):
                if stream is not None and not stream.closed:
                    stream.close()

    def start(self, specs: Sequence[Spec]) -> None:
        """Draw the charts; Vega begins with those that are left. To be called once."""
        self._drawn = [_draw_here(spec) for spec in specs]
        self._left = [spec for spec, svg in zip(specs, self._drawn, strict=True) if svg is None]
        if self._left:
            self._helper = _start_helper()
            _hand_over(self._helper, self._left)

    def finish(self) -> list[str]:
        """The SVG of each chart, in the order of ``start``.

        What the process failed to draw Vega draws in this one.
        """
        if not self._left:
            return [svg for svg in self._drawn if svg is not None]
        by_vega = iter(_read(self._helper) or [_draw_by_vega(spec) for spec in self._left])
        return [next(by_vega) if svg is None else svg for svg in self._drawn]


def _draw_here(spec: Spec) -> str | None:
    try:
        return draw(spec)
    except NotDrawnError:
        return None


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
    import vl_convert  # noqa: PLC0415 - it loads V8, which most reports do without

    vl_convert.register_font_directory(str(FOLDER))


def _draw_by_vega(spec: Spec) -> str:
    import vl_convert  # noqa: PLC0415 - as above

    _use_own_fonts()
    svg: str = vl_convert.vegalite_to_svg(spec)
    return svg


def draw_png(spec: Spec) -> bytes:
    """A chart as a picture for slides and web pages."""
    import vl_convert  # noqa: PLC0415 - as above

    _use_own_fonts()
    picture: bytes = vl_convert.vegalite_to_png(spec | {"width": 700}, scale=2.0)
    return picture


if __name__ == "__main__":
    fonts = resources.files("tkperf.report") / "templates/no-system-fonts.conf"
    os.environ["FONTCONFIG_FILE"] = str(fonts)
    json.dump([_draw_by_vega(spec) for spec in json.load(sys.stdin)], sys.stdout)
