"""Charts as SVG, for print: drawn here, and by Vega where a specification asks for what is not known here.

Vega draws in a process of its own, which is started only when a chart needs it: vl-convert keeps Python from doing
anything else meanwhile. Run as a module, this is that process: specifications come in as JSON, drawings go out as JSON.
It knows only the fonts that the package and vl-convert bring: texts get the same room on every machine.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from tkperf.model.units import drop_controls
from tkperf.render.fonts import FOLDER
from tkperf.render.svg.chart import draw
from tkperf.render.svg.known import NotDrawnError
from tkperf.system.worker import Aside

Spec = dict[str, object]
_TWO_IN_VEGA = re.compile("[\U00010000-\U0010ffff]")


def draw_all(specs: Sequence[Spec]) -> list[str]:
    """The SVG of each chart."""
    drawn = [_draw_here(spec) for spec in specs]
    left = [spec for spec, svg in zip(specs, drawn, strict=True) if svg is None]
    by_vega = iter(ask_vega(left) if left else ())
    return [next(by_vega) if svg is None else svg for svg in drawn]


def _draw_here(spec: Spec) -> str | None:
    try:
        return draw(spec)
    except NotDrawnError:
        return None


def ask_vega(specs: Sequence[Spec]) -> list[str]:
    """Drawn by a process of its own; in this one if that fails, for whatever reason."""
    with Aside("tkperf.render.drawing") as process:
        process.send(json.dumps(specs).encode())
        answer = process.receive()
    if answer is None:
        return [_draw_by_vega(spec) for spec in specs]
    drawn: list[str] = json.loads(answer)
    return drawn


@cache
def _use_own_fonts() -> None:
    import vl_convert  # noqa: PLC0415 - it loads V8, which most reports do without

    vl_convert.register_font_directory(str(FOLDER))


def _draw_by_vega(spec: Spec) -> str:
    import vl_convert  # noqa: PLC0415 - as above

    _use_own_fonts()
    svg: str = vl_convert.vegalite_to_svg(_for_vega(spec))
    return svg


def draw_png(spec: Spec) -> bytes:
    """A chart as a picture for slides and web pages."""
    import vl_convert  # noqa: PLC0415 - as above

    _use_own_fonts()
    wide: Any = _for_vega(spec | {"width": 700})
    picture: bytes = vl_convert.vegalite_to_png(wide, scale=2.0)
    return picture


def _for_vega(value: object) -> Any:
    """Texts that vl-convert can draw.

    At a NUL in one of them it aborts the process. What JavaScript has as two characters Vega may cut in half, which
    vl-convert refuses; it has no letters for these, so they are spelled out.
    """
    if isinstance(value, str):
        return _TWO_IN_VEGA.sub(lambda found: f"U+{ord(found[0]):X}", drop_controls(value))
    if isinstance(value, dict):
        return {key: _for_vega(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_for_vega(item) for item in value]
    return value


if __name__ == "__main__":
    fonts = resources.files("tkperf.render") / "templates/no-system-fonts.conf"
    os.environ["FONTCONFIG_FILE"] = str(fonts)
    json.dump([_draw_by_vega(spec) for spec in json.load(sys.stdin)], sys.stdout)
