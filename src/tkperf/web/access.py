"""The access check before all pages. It checks who sends a request and from which site, and it limits what browsers are
allowed to do with the answer.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tkperf.web.bounds import MOST_REQUESTS, RETRY_AFTER_S, find_excess, parse_query_string

COOKIE = "tkperf-token"
# Charts do not need eval, because Vega interprets its expressions. Style attributes of elements are allowed, because
# the charts use them.
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
# A pattern for a name, an IPv4 address, or an IPv6 address in brackets. A port may follow.
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z._-]+))(?::([0-9]{1,5}))?", re.ASCII)
_MOST_PORT = 65535


class AccessGuard:
    """ASGI middleware that passes requests on, or answers them itself.

    Args:
        names: names that the Host header can contain in addition to IP addresses and ``localhost``. A page of an
            attacker can use a host name that resolves to this host (DNS rebinding). This page cannot reach the server,
            because its Host header contains the attacker's name.
        token: the token that each request needs. None means that everybody who can reach the address is allowed to
            read.
    """

    def __init__(self, app: ASGIApp, *, names: Iterable[str] = (), token: str | None = None) -> None:
        self._app = app
        self._names = {"localhost", *(name.lower().removesuffix(".") for name in names)}
        self._token = token
        self._under_way = 0

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
        if answer is not None:
            await answer(scope, receive, send_guarded)
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, send_guarded)
        finally:
            self._under_way -= 1

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer to a request that receives no page. None means that the request receives a page."""
        if scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD"):
            return _refusal(
                405,
                "tkperf serve is read-only: use GET or HEAD",
                # the connection is closed, because the body of the request is not read
                {"Allow": "GET, HEAD", "Connection": "close"},
            )
        if (excess := find_excess(scope)) is not None:
            # The connection is closed, because no further data are read after such a request.
            return _refusal(excess.status, excess.words, {"Connection": "close"})
        headers = Headers(scope=scope)
        host = headers.getlist("host")
        if len(host) != 1 or not self._is_own(host[0]):
            return _refusal(421, "This address is not of tkperf serve: use the one that it printed when it started")
        if not _is_own_page(headers, host[0]):
            return _refusal(403, "A page of another site may link here, but not read or embed pages")
        if self._token is not None:
            answer = self._ask_for_token(scope, headers)
            if answer is not None:
                return answer
        if self._under_way >= MOST_REQUESTS:
            return _refusal(
                503,
                f"tkperf serve answers {MOST_REQUESTS} other requests now: try again in {RETRY_AFTER_S} seconds",
                {"Retry-After": str(RETRY_AFTER_S)},
            )
        return None

    def _ask_for_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to a request without the token, or with the token in its address. None means that the
        cookie of the request contains the token.
        """
        # Browsers send the cookies of a host to all ports of this host.
        cookie = f"{COOKIE}-{(scope.get('server') or ('', None))[1]}"
        query = parse_query_string(scope["query_string"])
        given = [value for name, value in query if name == "token"]
        if given and self._is_right(given[0]):
            rest = [pair for pair in query if pair[0] != "token"]
            return self._admit(cookie, scope["path"], rest)
        if self._is_right(_bearer(headers)) or any(self._is_right(value) for value in _find_cookies(headers, cookie)):
            return None
        return _refusal(
            401,
            "tkperf serve needs its token: open the address that it printed when it started, or send "
            "'Authorization: Bearer TOKEN'",
            {"WWW-Authenticate": "Bearer"},
        )

    def _is_own(self, host: str) -> bool:
        name = parse_host(host)
        return name is not None and (name in self._names or _is_address(name))

    def _is_right(self, given: str | None) -> bool:
        return bool(given) and hmac.compare_digest((given or "").encode(), (self._token or "").encode())

    def _admit(self, cookie: str, path: str, query: list[tuple[str, str]]) -> Response:
        """Return an answer that moves the token from the address to a cookie. The token is safer in a cookie, because
        browsers store and forward addresses, while scripts cannot read this cookie.
        """
        # Two slashes at the beginning would lead to another host.
        address = "/" + path.lstrip("/\\") + (f"?{urlencode(query)}" if query else "")
        answer = RedirectResponse(address, status_code=303)
        answer.set_cookie(cookie, self._token or "", httponly=True, samesite="lax", path="/")
        return answer


def parse_host(host: str) -> str | None:
    """Return the name or address in a Host header, in lower case and without a final dot. None means that the header is
    not valid.

    An IPv6 address has brackets and no zone. Only a port may follow the name or address.
    """
    found = _HOST.fullmatch(host.lower()) if host.isascii() else None
    if found is None:
        return None
    in_brackets, name, port = found.groups()
    if port is not None and int(port) > _MOST_PORT:
        return None
    if in_brackets is None:
        name = str(name)
        undotted = name.removesuffix(".")
        return None if undotted != name and _is_address(undotted) else undotted
    try:
        return str(ipaddress.IPv6Address(in_brackets))
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _find_cookies(headers: Headers, name: str) -> Iterator[str]:
    """Yield the values of a cookie. A token contains no characters that would have to be quoted in a cookie."""
    for header in headers.getlist("cookie"):
        for pair in header.split(";"):
            key, _, value = pair.partition("=")
            if key.strip() == name:
                yield value.strip()


def _is_own_page(headers: Headers, host: str) -> bool:
    """Return True if a request comes from a page of this server, from an address that the user typed or received by
    mail, or from a program. Return False if the request comes from another site.

    Another port of this host counts as another site, although browsers treat all ports of a host as the same site.
    """
    origin = headers.get("origin")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return False
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _refusal(status: int, words: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{words}.\n", status_code=status, headers=headers)
