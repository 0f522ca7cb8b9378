"""Pages that are rendered from templates, and the scripts and style sheets that these pages load from this server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from functools import cache
from http import HTTPStatus
from importlib import resources

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from tkperf.model.units import escape_controls, on_one_line
from tkperf.render.environment import make_environment
from tkperf.render.reports import render_styles
from tkperf.web.bounds import RETRY_AFTER_S

_FOLDER = resources.files("tkperf.web") / "static"
# The style sheet of reports. All pages use its fonts, colours and tables.
REPORT_STYLES = "report.css"
_PIECE_BYTES = 1 << 16
_KINDS = {".css": "text/css", ".js": "text/javascript"}


@cache
def _environment() -> Environment:
    environment = make_environment("tkperf.web")
    environment.globals["static"] = static_address
    # The name of a file can contain line ends, or characters that change the direction of text.
    environment.filters["one_line"] = on_one_line
    return environment


def render_page(template: str, *, status: int = 200, **content: object) -> HTMLResponse:
    """Return a page, rendered from a template in ``web/templates``. Every text from another source is escaped."""
    # A name in a run file can contain a single half of a surrogate pair.
    text = render_text(template, **content).encode(errors="replace")
    return HTMLResponse(text, status_code=status)


def render_text(template: str, **content: object) -> str:
    """Return a part of a page, rendered from a template."""
    return _environment().get_template(template).render(**content)


def render_error(request: Request, status: int, message: str, *, more: str = "") -> Response:
    """Return an error as a page for a browser, or as JSON for a program.

    Args:
        more: the address of a page of the library on which the reader can choose one of several files.
    """
    if request.url.path.startswith("/api/"):
        answer: Response = Response(encode_json({"error": message}), status_code=status, media_type="application/json")
    else:
        answer = render_page("error.html.j2", status=status, message=message, more=more)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        answer.headers["Retry-After"] = str(RETRY_AFTER_S)
    return answer


def encode_json(content: object) -> bytes:
    """Return a value as JSON. Bytes that are not UTF-8, which the name of a file can contain, are replaced."""
    text = json.dumps(content, ensure_ascii=False).encode(errors="replace").decode()
    return escape_controls(text).encode()


def static_address(name: str) -> str:
    """Return the address of a file in ``web/static``. The address changes with the content, so browsers are allowed to
    store the file.
    """
    return f"/static/{hashlib.sha256(read_static(name)).hexdigest()[:16]}/{name}"


@cache
def read_static(name: str) -> bytes:
    if name == REPORT_STYLES:
        return render_styles().encode()
    return (_FOLDER / name).read_bytes()


@cache
def _find_static_names() -> frozenset[str]:
    return frozenset({REPORT_STYLES, *(each.name for each in _FOLDER.iterdir())})


def serve_static(request: Request) -> Response:
    """Answer with a file in ``web/static``. Only the name of the file is used."""
    name = request.path_params["name"]
    if name not in _find_static_names():
        return render_error(request, 404, "There is no such file here")
    suffix = name[name.rfind(".") :]
    return answer_for_good(read_static(name), _KINDS.get(suffix, "application/octet-stream"))


def answer_for_good(content: bytes, media_type: str) -> Response:
    """Answer with content that never changes at its address."""
    answer = answer_in_pieces(content, media_type)
    answer.headers["Cache-Control"] = "private, max-age=31536000, immutable"
    return answer


def answer_in_pieces(content: bytes, media_type: str) -> Response:
    """Answer with content of any length.

    If the client reads slowly, only one piece of the content is copied at a time.
    """
    headers = {"Content-Length": str(len(content))}
    return StreamingResponse(_cut(content), media_type=media_type, headers=headers)


async def _cut(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), _PIECE_BYTES):
        yield content[at : at + _PIECE_BYTES]


def draw_course(values: Sequence[float | None], size: tuple[int, int]) -> str:
    """Return the points of a polyline in SVG. The vertical scale extends from 0 at the bottom to the greatest value.
    Values that were not measured are omitted.
    """
    width, height = size
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(known) == 1:
        known *= 2  # a line without length is drawn as a dot, because the ends of lines are round
    greatest = max((value for _, value in known), default=0.0) or 1.0
    step = width / max(1, len(values) - 1)
    room = height - 2
    return " ".join(f"{place * step:.1f},{1 + room - value / greatest * room:.1f}" for place, value in known)
