"""The guard checks each request before any page of tkperf serve answers it."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from tkperf.web.access import POLICY, AccessGuard

TOKEN = "a-token-of-32-letters-or-more-in-it"


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(f"secret {Request(scope).url.query}")(scope, receive, send)


def client(*, token: str | None = None, names: tuple[str, ...] = ()) -> TestClient:
    guarded = AccessGuard(page, names=names, token=token)
    return TestClient(guarded, base_url="http://127.0.0.1:8757", follow_redirects=False)


@pytest.fixture(scope="module")
def local() -> TestClient:
    return client()


@pytest.fixture
def remote() -> TestClient:
    return client(token=TOKEN, names=("testhost",))


def is_served(answer: Response) -> bool:
    return answer.status_code == 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8757", "LOCALHOST:9", "192.0.2.1", "localhost."])
def test_addresses_are_answered(local: TestClient, host: str) -> None:
    assert local.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8757", "", "testhost"]
)
def test_a_name_of_a_strangers_is_refused(local: TestClient, host: str) -> None:
    """A request with an unknown host name is refused. If the owner of such a name lets the name refer to the address of
    the server, a browser would treat a foreign page with this name as a page of the server (DNS rebinding).
    """
    answer = local.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "secret" not in answer.text


def test_the_hosts_own_name_is_answered_where_others_reach_it(remote: TestClient) -> None:
    headers = {"host": "testhost:8757", "authorization": f"Bearer {TOKEN}"}
    assert remote.get("/", headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_nothing_but_reading_is_answered(local: TestClient, method: str) -> None:
    answer = local.request(method, "/")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_is_answered_without_a_body(local: TestClient) -> None:
    assert local.head("/").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
        for site in ("cross-site", "same-site")
        for mode, dest in (
            ("cors", "empty"),
            ("no-cors", "image"),
            ("no-cors", "script"),
            ("navigate", "iframe"),
            ("navigate", "embed"),
            ("navigate", "object"),
            ("websocket", "websocket"),
        )
    ]
    + [{"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}, {"origin": "null"}]
    + [{"origin": "http://127.0.0.1:9999"}],
)
def test_requests_of_other_sites_are_refused(local: TestClient, headers: dict[str, str]) -> None:
    """Requests from other sites are refused. Another port of the same host counts as another site."""
    assert local.get("/", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        {"origin": "http://127.0.0.1:8757"},
    ],
)
def test_own_pages_links_and_programs_are_answered(local: TestClient, headers: dict[str, str]) -> None:
    """Requests from the server's own pages, from programs and from links are answered. A link in a mail counts as a
    navigation from another site.
    """
    assert local.get("/", headers=headers).status_code == 200


def test_no_page_may_be_read_or_embedded_elsewhere(local: TestClient) -> None:
    for path, host in (("/", "localhost"), ("/", "evil.example")):
        headers = local.get(path, headers={"host": host}).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in headers if name.startswith("access-control")]


def test_scripts_come_from_here_alone() -> None:
    """The policy of the server permits only the server's own scripts. Neither a script in a text of a run file nor eval
    can run.
    """
    scripts = dict(part.strip().split(" ", 1) for part in POLICY.split(";"))["script-src"]
    assert scripts == "'self'"
    assert POLICY.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in POLICY


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer "},
        {"cookie": "tkperf-token-8757=wrong"},
        {"cookie": f"other={TOKEN}"},
        {"cookie": "\x01="},
    ],
)
def test_without_the_token_nothing_is_shown(remote: TestClient, headers: dict[str, str]) -> None:
    answer = remote.get("/", headers=headers)
    assert answer.status_code == 401
    assert "secret" not in answer.text
    assert TOKEN not in answer.text + str(answer.headers)


@pytest.mark.parametrize("address", ["/?token=wrong", "/?token=", "/?Token=" + TOKEN, "/?token=%ff"])
def test_a_wrong_token_in_the_address_is_none(remote: TestClient, address: str) -> None:
    assert remote.get(address).status_code == 401


def test_the_tokens_address_becomes_a_cookie(remote: TestClient) -> None:
    """A request for the address with the token is redirected to an address without the token, and the token becomes a
    cookie. Scripts and forms of other sites cannot use this cookie.
    """
    answer = remote.get(f"/runs/x?token={TOKEN}&test=iops")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/runs/x?test=iops"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert remote.get("/runs/x").status_code == 200


def test_the_tokens_address_leads_to_no_other_host(remote: TestClient) -> None:
    for path in ("//evil.example/", "/\\evil.example/", "///evil.example"):
        answer = remote.get(f"http://127.0.0.1:8757{path}?token={TOKEN}")
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/evil.example")


def test_programs_send_the_token_in_a_header(remote: TestClient) -> None:
    answer = remote.get("/api/runs", headers={"authorization": f"bearer {TOKEN}"})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers


def test_a_cookie_is_of_one_port(remote: TestClient) -> None:
    """The name of the cookie contains the port, because browsers send the cookies of a host to all its ports. Otherwise
    each of two servers would receive the cookie of the other.
    """
    answer = remote.get(f"/?token={TOKEN}")
    assert answer.headers["set-cookie"].startswith("tkperf-token-8757=")


@pytest.mark.parametrize("other", ['x={"a":1}', "odd", 'a"b{=1', "path=1", "caf\xe9=\xe9", "a=b=c"])
def test_cookies_of_other_programs_do_not_matter(remote: TestClient, other: str) -> None:
    """Cookies of other programs do not prevent the login. Browsers send the cookies of all ports of a host, and many
    cookies do not follow RFC 6265.
    """
    for cookie in (f"{other}; tkperf-token-8757={TOKEN}", f"tkperf-token-8757={TOKEN}; {other}"):
        assert remote.get("/", headers={b"cookie": cookie.encode("latin-1")}).status_code == 200


def test_websockets_are_closed(local: TestClient) -> None:
    with pytest.raises(Exception), local.websocket_connect("/"):  # noqa: B017, PT011
        pass
