"""Lines of text: where they end, where they are cut off, and how SVG has them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tkperf.model.units import drop_controls
from tkperf.render.svg.boxes import Box, round_half_up
from tkperf.render.svg.known import NotDrawnError
from tkperf.render.svg.type_metrics import measure_text

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
ANCHORS = {"left": "start", "center": "middle", "right": "end"}
# How far below its place a line's letters stand, in parts of their size.
BASELINES = {"top": 0.79, "middle": 0.3, "bottom": -0.21, "alphabetic": 0.0}
# How far above that they begin.
_ABOVE = 0.8
_LINE_GAP_PX = 2
WEIGHTS = ("normal", "bold")
_MARKUP = {ord(each): f"&#{ord(each)};" for each in "&<>\"'"}


class Style(Struct, frozen=True, kw_only=True):
    """What texts of one kind share. Sizes in pixels; a limit of 0 is none."""

    colour: str
    px: float
    weight: str = "normal"
    limit: float = 0.0

    def __post_init__(self) -> None:
        if self.weight not in WEIGHTS:
            raise NotDrawnError(f"a weight of type {self.weight!r}")

    def width(self, text: str) -> float:
        """Of all of a line, whatever the limit."""
        return self.px * measure_text(drop_controls(text), self.weight == "bold")

    def cut(self, text: str) -> str:
        """As much of it as the limit has room for, as Vega cuts it."""
        text = drop_controls(text).strip()
        if not self.limit or not text or self.width(text) < self.limit:
            return text
        room = self.limit - self.width(ELLIPSIS)
        low, high = 0, len(text)
        while low < high:
            middle = 1 + (low + high) // 2
            if self.width(text[:middle]) < room:
                low = middle
            else:
                high = middle - 1
        return text[:low] + ELLIPSIS

    def attributes(self) -> str:
        weight = ' font-weight="bold"' if self.weight == "bold" else ""
        return f'font-size="{write(self.px)}px"{weight} fill="{escape(self.colour)}"'


class Text(Struct, frozen=True, kw_only=True):
    """Lines at a place, in degrees from it."""

    x: float
    y: float
    lines: Sequence[str]
    style: Style
    align: str = "center"
    baseline: str = "middle"
    angle: float = 0.0
    dx: float = 0.0
    dy: float = 0.0

    def __post_init__(self) -> None:
        if self.align not in ANCHORS or self.baseline not in BASELINES:
            raise NotDrawnError(f"text at the {self.align!r} {self.baseline!r}")

    @property
    def _down(self) -> float:
        return self.dy + round_half_up(BASELINES[self.baseline] * self.style.px)

    def box(self) -> Box:
        px = self.style.px
        width = max(self.style.width(line) for line in self.lines)
        width = min(width, self.style.limit or width)
        share = {"left": 0.0, "center": 0.5, "right": 1.0}[self.align]
        x1 = self.x + self.dx - share * width
        y1 = self.y + self._down - round_half_up(_ABOVE * px)
        height = px + (len(self.lines) - 1) * (px + _LINE_GAP_PX)
        return Box(x1, y1, x1 + width, y1 + height).turned(self.angle, self.x, self.y)

    def svg(self) -> str:
        """Without what its style has, but for its anchor."""
        shown = [escape(self.style.cut(line)) for line in self.lines]
        if not any(shown):
            return ""
        down = self._down
        if self.angle:
            place = (
                f'transform="translate({write(self.x)},{write(self.y)}) rotate({write(self.angle)})'
            )
            away = f" translate({write(self.dx)},{write(down)})" if self.dx or down else ""
            place, x = f'{place}{away}"', "0"
        else:
            x = write(self.x + self.dx)
            place = f'x="{x}" y="{write(self.y + down)}"'
        first, *others = shown
        step = write(self.style.px + _LINE_GAP_PX)
        rest = "".join(f'<tspan x="{x}" dy="{step}">{line}</tspan>' for line in others)
        anchor = "" if self.align == "left" else f' text-anchor="{ANCHORS[self.align]}"'
        return f"<text {place}{anchor}>{first}{rest}</text>"


def write_texts(texts: Sequence[Text]) -> str:
    """Texts of one style."""
    drawn = "".join(text.svg() for text in texts)
    return f"<g {texts[0].style.attributes()}>{drawn}</g>" if drawn else ""


def escape(text: str) -> str:
    """As SVG takes it, within quotes too."""
    return text.translate(_MARKUP)


def write(value: float) -> str:
    """A number of pixels, to a thousandth."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
