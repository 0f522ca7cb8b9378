"""Render the report as a single HTML file. The file needs no network and can be attached to a mail."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from math import isfinite

import msgspec
from jinja2 import Environment
from markupsafe import Markup, escape

from tkperf.model.errors import UsageError
from tkperf.model.units import CONTROLS
from tkperf.page.facts import typeset
from tkperf.page.marking import describe_source, find_keywords, list_badges, list_stamp, name_pictures
from tkperf.page.page import ChartView, ReportView
from tkperf.page.verdict_texts import split_simulated
from tkperf.render.charts.draw import draw
from tkperf.render.charts.frame import BRIGHTER, find_colour
from tkperf.render.environment import make_environment
from tkperf.render.export_json import finite
from tkperf.render.paper import build_font_faces
from tkperf.system.output_files import find_cache_folder, replace_file

# The scripts are executed in this order. Each script can use the scripts before it.
SCRIPTS = ("charts", "pictures", "seconds", "views", "figures", "scopes", "dialog", "tables", "chapters", "page")

# A pattern that matches a number with its unit, a range, and the name of a drive such as 990-PRO. A line must not be
# broken inside these texts.
_FIGURE = re.compile(
    r"(?<![\w#.,-])(?:\d[\d.,]*(?:-\d+| (?:%|×|µs|ms|s|min|h|IOPS|[KMGT]i?B(?:/s)?|°C))"
    r"|[A-Z\d]{1,12}-[A-Z\d]{1,12})(?![\w/-])"
)
# The version of vl-convert is determined during the import, so that a missing package is reported before tkperf writes
# anything.
_VL_CONVERT = metadata.version("vl-convert-python")
# A cached file that does not end with this text is incomplete.
_END_OF_BUNDLE = "\n/* end of Vega */\n"
# Numbers in the data of charts have six digits. From this value on, numbers such as times in ms are rounded to whole
# numbers instead.
_DIGITS, _LARGE = 6, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFrame:
    """Parts that exist only in a page from a server: the address of the script that ``render_script()`` returns, and
    additional HTML.

    The server sends the content security policy of such a page in the headers.
    """

    script_address: str
    head: str = ""
    above: str = ""
    live: str = ""


def render_view(view: ReportView, frame: PageFrame | None = None) -> str:
    """Return the whole page. Every text from other sources is escaped, and all scripts come from the package.

    Args:
        frame: the parts of a page from a server; None if the page is a single file.
    """
    template = _environment().get_template("report.html.j2")
    simulated, verdict = split_simulated(view.verdict) if view.decision else ("", view.verdict)
    page = template.render(
        report=view,
        simulated=simulated,
        shown_verdict=verdict,
        cell_charts={name: draw(chart) for name, chart in (view.cell_charts or {}).items()},
        badges=list_badges(view.banners),
        stamp=list_stamp(view),
        keywords=find_keywords(view),
        picture_name=name_pictures(view),
        picture_source=describe_source(view),
        frame=frame,
        script=None if frame else render_script(with_charts=_has_charts(view)),
    )
    # Control characters are removed at the end, so that every text from other sources is covered, including JSON.
    return CONTROLS.sub("", page)


def _has_charts(view: ReportView) -> bool:
    """Return whether a page needs Vega. A page needs Vega if the page contains a chart, or a cell whose one-second
    samples are drawn after a click.
    """
    of_tests = (
        charts
        for test in view.tests
        for charts in (test.charts, test.events.charts, *(section.charts for section in test.sections))
    )
    return bool(
        view.opening_chart is not None or any((view.lead_charts, view.overview_charts, *of_tests)) or view.cells
    )


def load_templates() -> None:
    """Compile the templates before processes are forked, so that forked processes that render pages do not need to
    compile the templates again.
    """
    for name in _environment().list_templates(extensions=["j2"]):
        _environment().get_template(name)


def render_styles() -> str:
    """Return the style sheet of reports with its fonts, for other pages that have the same appearance."""
    return _environment().get_template("styles.css.j2").render(keywords="")


@cache
def _environment() -> Environment:
    environment = make_environment("tkperf.render")
    environment.filters["script_json"] = _script_json
    environment.filters["packed_json"] = pack_json
    environment.filters["cells_json"] = lambda cells: _script_json({cell.key: cell for cell in cells})
    environment.filters["drawn"] = _drawn
    environment.filters["css_text"] = _css_text
    environment.filters |= {"unbroken": _unbroken, "typeset": typeset, "colour": find_colour}
    environment.globals |= {"font_faces": build_font_faces(), "brighter": BRIGHTER}
    return environment


def _script_json(value: object) -> str:
    """Return a value as JSON that cannot end the script element in which it is placed. A value that JSON cannot express
    becomes null.
    """
    return _json(value).replace("<", "\\u003c").replace("&", "\\u0026")


def pack_json(value: object) -> str:
    """Return a value as a JSON string. The string contains the JSON text of the value, compressed with zlib and encoded
    in base 64. The function ``unzip`` in the script of the page unpacks the string.

    Control characters are removed here, because the step that later cleans the whole page cannot find them.
    """
    plain = CONTROLS.sub("", _json(value))
    return f'"{base64.b64encode(zlib.compress(plain.encode())).decode()}"'


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # A file from another source can contain a single half of a surrogate pair.
        plain = json.dumps(finite(msgspec.to_builtins(value)), ensure_ascii=False)
        return plain.encode(errors="backslashreplace").decode()


def _drawn(view: ChartView) -> list[dict[str, object]]:
    """Return the specification of each view of a chart. Its numbers are rounded to the digits that the page shows."""
    return [_shorten_data(draw(each.chart)) for each in view.views]


def _shorten_data(spec: Mapping[str, object]) -> dict[str, object]:
    return {**spec, "datasets": _shorten(spec["datasets"])} if "datasets" in spec else dict(spec)


_UNCHANGED = frozenset({str, int, type(None)})


def _shorten(value: object) -> object:
    """Return a value with its numbers rounded to six digits."""
    # The exact types are checked first for speed. A page has hundreds of thousands of values, and nearly all of them
    # have one of these types.
    kind = type(value)
    if kind in _UNCHANGED:
        return value
    if isinstance(value, float):
        return _shorten_number(value)
    if isinstance(value, dict):
        return {key: each if type(each) in _UNCHANGED else _shorten(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shorten(each) for each in value]
    return value


def _shorten_number(value: float) -> float:
    if value.is_integer():
        return int(value)
    if not isfinite(value):
        return value
    return round(value) if abs(value) >= _LARGE else float(f"{value:.{_DIGITS}g}")


def _unbroken(sentence: str) -> Markup:
    return Markup(_FIGURE.sub(r'<span class="figure">\g<0></span>', str(escape(typeset(sentence)))))  # noqa: S704  # escaped


def _css_text(text: str) -> str:
    """Return a text as a CSS string. Every character that could end the string or the style element is escaped."""
    return (
        '"'
        + "".join(
            character if character.isalnum() or character == " " else f"\\{ord(character):x} " for character in text
        )
        + '"'
    )


@cache
def render_script(*, with_charts: bool = True) -> str:
    """Return Vega, Vega-Lite and the scripts of the page as one script. If the page has no charts, return only the
    scripts of the page.
    """
    folder = resources.files("tkperf.render") / "templates/script"
    ours = "\n".join((folder / f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    vega = _vega_bundle() if with_charts else ""
    return (vega + ours).replace("</script", "<\\/script")


def _vega_bundle() -> str:
    """Return the libraries that vl-convert contains, so that no download is necessary.

    It takes about a second to join the libraries, so the result is stored in the cache folder of the user. A report can
    also be written without this cache.
    """
    cache = find_cache_folder()
    kept = None if cache is None else cache / f"vega-{_VL_CONVERT}.js"
    if kept is not None:
        with suppress(OSError, UnicodeDecodeError):
            bundle = kept.read_text("utf-8")
            if bundle.endswith(_END_OF_BUNDLE):
                return bundle
    import vl_convert  # noqa: PLC0415 - it loads V8

    bundle = vl_convert.javascript_bundle() + _END_OF_BUNDLE  # type: ignore[call-arg]  # the stub is too strict
    if kept is not None:
        with suppress(OSError, UsageError):
            replace_file(kept, [bundle.encode()])
    return bundle
