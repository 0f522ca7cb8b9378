"""Pages from templates, and the files that they load from here: scripts, style sheets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from tkperf.render.environment import make_environment
from tkperf.render.reports import render_styles

_FOLDER = resources.files("tkperf.web") / "static"
# The style sheet of reports: all pages share its type, colours and tables.
REPORT_STYLES = "report.css"
_KINDS = {".css": "text/css", ".js": "text/javascript"}


@cache
def _environment() -> Environment:
    environment = make_environment("tkperf.web")
    environment.globals["static"] = static_address
    return environment


def render_page(template: str, *, status: int = 200, **content: object) -> HTMLResponse:
    """Return a page from a template of ``web/templates``; every text from outside is escaped."""
    # A name in a run file may have half a surrogate.
    text = render_text(template, **content).encode(errors="replace")
    return HTMLResponse(text, status_code=status)


def render_text(template: str, **content: object) -> str:
    """Return a part of a page from a template."""
    return _environment().get_template(template).render(**content)


def render_error(request: Request, status: int, message: str) -> Response:
    """Return an error as a page, or as JSON to a program."""
    if request.url.path.startswith("/api/"):
        return answer_json({"error": message}, status=status)
    return render_page("error.html.j2", status=status, message=message)


def answer_json(content: object, *, status: int = 200) -> Response:
    """Answer with JSON; the name of a file may have bytes that are not UTF-8."""
    text = json.dumps(content, ensure_ascii=False).encode(errors="replace")
    return Response(text, status_code=status, media_type="application/json")


def static_address(name: str) -> str:
    """Return the address of a file of ``web/static``; it changes with the content, so browsers may keep it."""
    return f"/static/{hashlib.sha256(read_static(name)).hexdigest()[:16]}/{name}"


@cache
def read_static(name: str) -> bytes:
    if name == REPORT_STYLES:
        return render_styles().encode()
    return (_FOLDER / name).read_bytes()


def serve_static(request: Request) -> Response:
    """Answer with a file of ``web/static``, by its name alone."""
    name = request.path_params["name"]
    known = {REPORT_STYLES, *(each.name for each in _FOLDER.iterdir())}
    if name not in known:
        return render_error(request, 404, "There is no such file here")
    suffix = name[name.rfind(".") :]
    return answer_for_good(read_static(name), _KINDS.get(suffix, "application/octet-stream"))


def answer_for_good(content: bytes, media_type: str) -> Response:
    """Answer with content that never changes at its address."""
    headers = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(content, media_type=media_type, headers=headers)


def draw_course(values: Sequence[float | None], size: tuple[int, int]) -> str:
    """Return values as points of SVG, from 0 at the bottom to the greatest; parts not measured are left out."""
    width, height = size
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(known) == 1:
        known *= 2  # its round ends make a dot of a line without length
    greatest = max((value for _, value in known), default=0.0) or 1.0
    step = width / max(1, len(values) - 1)
    room = height - 2
    return " ".join(
        f"{place * step:.1f},{1 + room - value / greatest * room:.1f}" for place, value in known
    )
