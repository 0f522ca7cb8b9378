"""Guard in front of all pages: who may ask, from where, and what browsers may do with the answer."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "tkperf-token"
# Charts need no eval: Vega interprets its expressions. Styles in elements are the charts' own.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Access:
    """ASGI middleware that lets requests through, or answers them itself.

    Args:
        names: names in the Host header besides IP addresses and ``localhost``. No name of a stranger's page can be
            made to lead here (DNS rebinding): its Host is that name.
        token: each request needs it; None: whoever reaches the address may read.
    """

    def __init__(
        self, app: ASGIApp, *, names: Iterable[str] = (), token: str | None = None
    ) -> None:
        self._app = app
        self._names = {"localhost", *(name.lower().rstrip(".") for name in names)}
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-cache, private")
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer to a request that gets no page; None: it gets one."""
        if scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD"):
            return _refusal(
                405, "tkperf serve is read-only: use GET or HEAD", {"Allow": "GET, HEAD"}
            )
        headers = Headers(scope=scope)
        host = headers.getlist("host")
        if len(host) != 1 or not self._is_own(host[0]):
            return _refusal(
                421,
                "This address is not of tkperf serve: use the one that it printed when it started",
            )
        if not _is_own_page(headers, host[0]):
            return _refusal(
                403, "A page of another site may link here, but not read or embed pages"
            )
        if self._token is None:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        # Browsers send a host's cookies to all its ports.
        cookie = f"{COOKIE}-{(scope.get('server') or ('', None))[1]}"
        given = [value for name, value in query if name == "token"]
        if given and self._is_right(given[0]):
            rest = [pair for pair in query if pair[0] != "token"]
            return self._admit(cookie, scope["path"], rest)
        if self._is_right(_bearer(headers)) or self._is_right(
            HTTPConnection(scope).cookies.get(cookie)
        ):
            return None
        return _refusal(
            401,
            "tkperf serve needs its token: open the address that it printed when it started, or send "
            "'Authorization: Bearer TOKEN'",
            {"WWW-Authenticate": "Bearer"},
        )

    def _is_own(self, host: str) -> bool:
        name = host.lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if name.rstrip(".") in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _is_right(self, given: str | None) -> bool:
        return bool(given) and hmac.compare_digest(
            (given or "").encode(), (self._token or "").encode()
        )

    def _admit(self, cookie: str, path: str, query: list[tuple[str, str]]) -> Response:
        """Move the token from the address, which browsers keep and send on, to a cookie, which scripts cannot read."""
        # Two slashes would lead to another host.
        address = "/" + path.lstrip("/\\") + (f"?{urlencode(query)}" if query else "")
        answer = RedirectResponse(address, status_code=303)
        answer.set_cookie(cookie, self._token or "", httponly=True, samesite="lax", path="/")
        return answer


def _is_own_page(headers: Headers, host: str) -> bool:
    """Return whether a request is no other site's: its own pages', a typed or mailed address, a program.

    Another port of this host is another site here, though browsers call it the same.
    """
    origin = headers.get("origin")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return False
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    return (
        headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    )


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _refusal(status: int, words: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{words}.\n", status_code=status, headers=headers)
