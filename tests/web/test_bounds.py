"""Limits for requests to tkperf serve. If a request exceeds a limit, the server refuses it before doing any work, and
states the reason.
"""

from __future__ import annotations

import asyncio
import re
import threading
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from tests.web.listed import a_batch, a_row, list_rows
from tkperf.web import access, bounds
from tkperf.web.access import AccessGuard
from tkperf.web.bounds import (
    MOST_CHOICES,
    MOST_COMPARED,
    MOST_HEADERS,
    MOST_PARAMETERS,
    MOST_PATH_BYTES,
    MOST_QUERY_BYTES,
    PARAMETERS,
    RETRY_AFTER_S,
    find_excess,
)
from tkperf.web.library_page import render_library
from tkperf.web.library_search import FACETS, Query, parse_query, select
from tkperf.web.server_state import ListAnswers
from tkperf.web.workers import BusyError


class Page:
    """A page that counts its requests, and answers when the test permits it."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer: asyncio.Event | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        if self.may_answer is not None:
            await self.may_answer.wait()
        await PlainTextResponse("page")(scope, receive, send)


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
def client(page: Page) -> TestClient:
    return TestClient(AccessGuard(page), base_url="http://localhost", follow_redirects=False)


def ask(app: AccessGuard, target: str, headers: dict[str, str] | None = None) -> tuple[int, str, dict[str, str]]:
    """Return the status, the text and the headers of the answer to a request. The request can have any length."""
    path, _, query = target.partition("?")
    named = {"host": "localhost", **(headers or {})}
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("no body is read")

    asyncio.run(app(scope, receive, send))
    text = b"".join(message.get("body", b"") for message in sent).decode()
    return (sent[0]["status"], text, {name.decode(): value.decode() for name, value in sent[0]["headers"]})


def run_ids(count: int) -> str:
    return urlencode([("run", f"{number:032x}-{number:016x}") for number in range(count)])


@pytest.mark.parametrize(
    "address",
    [
        "/?" + urlencode([(facet.key, str(number)) for facet in FACETS for number in range(50)]),
        f"/compare?{run_ids(MOST_COMPARED)}&as=cohort",
        "/?q=" + "x" * 200,
        "/?page=999999&sort=-verdict",
        "/?utm_source=mail&fbclid=" + "x" * 100,
        "/runs/" + "x" * 200 + "?report",
        "/?" + urlencode({"model": "\U0001f4a9" * 160}),
    ],
)
def test_what_people_ask_for_is_answered(client: TestClient, address: str) -> None:
    assert client.get(address).status_code == 200


@pytest.mark.parametrize(
    ("address", "status"),
    [
        *(
            ("/?" + urlencode([(facet.key, str(number)) for number in range(count)]), status)
            for facet in FACETS
            for count, status in ((51, 400), (500, 400), (4_000, 414))
        ),
        (f"/compare?{run_ids(MOST_COMPARED + 1)}", 400),
        (f"/compare?{run_ids(300)}", 400),
        ("/?" + "run=x&" * (MOST_COMPARED + 1), 400),
        ("/?" + "q=x&q=y", 400),
        ("/?page=1&page=2", 400),
        ("/?page=1234567", 400),
        ("/?q=" + "x" * 201, 400),
        ("/?q=" + "%C3%BC" * 201, 400),
        ("/?model=" + "x" * 201, 400),
        ("/?run=" + "x" * 65, 400),
        ("/?" + "x" * 201, 400),
        ("/?" + "&" * MOST_PARAMETERS, 400),
        ("/?" + "x=&" * 100, 400),
        ("/?" + "model=x&" * 90_000, 414),
        ("/?" + "%71=a&" * 2, 400),
        ("/?" + "x" * (MOST_QUERY_BYTES + 1), 414),
        ("/runs/" + "x" * MOST_PATH_BYTES, 414),
        ("/runs/" + "%41" * MOST_PATH_BYTES, 414),
        ("/" * (MOST_PATH_BYTES + 1), 414),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_over_a_bound_is_refused_before_any_work(page: Page, address: str, status: int) -> None:
    """A request that exceeds a limit is refused before any work, and the answer contains a sentence with the reason."""
    got, text, headers = ask(AccessGuard(page), address)
    assert got == status
    assert text.rstrip().endswith(".")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert page.asked == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({f"x-{number}": "" for number in range(MOST_HEADERS + 1)}, 431),
        ({"cookie": "x" * 70_000}, 431),
        ({"content-length": "10"}, 413),
        ({"transfer-encoding": "chunked"}, 413),
    ],
)
def test_headers_and_bodies_have_bounds(client: TestClient, page: Page, headers: dict[str, str], status: int) -> None:
    assert client.get("/", headers=headers).status_code == status
    assert client.get("/", headers={"content-length": "0"}).status_code == 200
    assert page.asked == 1


def test_each_facet_has_a_bound() -> None:
    assert PARAMETERS.keys() >= {facet.key for facet in FACETS}


def test_a_query_is_parsed_once_it_is_known_to_be_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number and the length of the parameters are checked before the query is parsed."""

    def fail(_: bytes) -> list[tuple[str, str]]:
        raise AssertionError("parsed")

    monkeypatch.setattr(bounds, "parse_query_string", fail)
    for query in (b"x" * (MOST_QUERY_BYTES + 1), b"&" * MOST_PARAMETERS):
        scope: Scope = {"raw_path": b"/", "path": "/", "headers": [], "query_string": query}
        assert find_excess(scope) is not None


@given(st.lists(st.tuples(st.sampled_from([*PARAMETERS, "x", ""]), st.text(max_size=300)), max_size=80))
def test_what_passes_the_bounds_has_a_short_page(pairs: list[tuple[str, str]]) -> None:
    """If a query is within the limits, the page that answers the query is longer than the address by at most a fixed
    factor.
    """
    query_string = urlencode(pairs).encode()
    scope: Scope = {"raw_path": b"/", "path": "/", "headers": [], "query_string": query_string}
    if find_excess(scope) is None:
        content = bytes(render_library(list_rows({}), parse_query(pairs)).body)
        assert len(content) < 10_000 + 60 * len(query_string)


def test_the_page_of_a_query_grows_no_faster_than_the_query() -> None:
    """Even without the limits, twice as many values in a query make the page at most about twice as long."""

    def measure(values: int) -> int:
        pairs = [(facet.key, f"{number:08}") for number in range(values) for facet in FACETS]
        return len(bytes(render_library(list_rows({"a": a_row()}), parse_query(pairs)).body))

    first, second, third = (measure(values) for values in (100, 200, 400))
    assert third - second < 2.2 * (second - first)


def test_the_work_for_a_query_grows_no_faster_than_the_query() -> None:
    """The work for a query grows in proportion to the number of its values. The test counts comparisons. Parsing the
    query and choosing the runs each compare a value a fixed number of times.
    """

    class Value(str):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Value.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    def count(values: int) -> int:
        Value.compared = 0
        query = parse_query([("model", Value(number)) for number in range(values)])
        select(list_rows({"a": a_row(1), "b": a_row(2)}), query)
        return Value.compared

    assert count(4_000) < 10 * 4_000


def test_a_page_is_bounded_however_large_the_library_is() -> None:
    """The length of a page is limited, even if the library is large. The page limits the values of facets, the copies
    of a file, and the runs of a batch.
    """
    rows: dict[str, Any] = {
        f"{number}.tkperf": a_row(number, host=f"host-{number:04}", model=f"model-{number:04}")
        for number in range(1000)
    }
    rows |= {f"copies/{number}.tkperf": a_row(5000) for number in range(1000)}
    rows["x/rack7.batch"] = a_batch(*(f"{number}.tkperf" for number in range(2000, 3000)))
    rows |= {f"x/{number}.tkperf": a_row(number) for number in range(2000, 3000)}
    listing = list_rows(rows)
    selected = select(listing, Query())
    assert all(len(choices) <= MOST_CHOICES for _, choices in selected.facets)
    for number in (1, 2, selected.pages):
        page = bytes(render_library(listing, Query(page=number)).body).decode()
        assert len(page) < 1_500_000
        assert page.count("copies/") <= bounds.MOST_NAMED
    # The page contains a chosen value even if only few runs have this value.
    rare = Query(chosen={"host": ("host-0999", "host-0000")})
    hosts = {facet.key: choices for facet, choices in select(listing, rare).facets}["host"]
    assert {"host-0999", "host-0000"} <= {choice.value for choice in hosts}


def test_a_chosen_value_is_taken_away_by_one_click() -> None:
    """Each chosen value has a button in the form. The button sends the value that is to be removed."""
    query = parse_query([("q", "a b"), ("model", "x=1&"), ("model", "y"), ("run", "1")])
    page = bytes(render_library(list_rows({"a": a_row()}), query).body).decode()
    assert 'name="without" value="model=x=1&amp;"' in page
    assert query.without("model", "x=1&") == "/?q=a+b&model=y&run=1"
    assert query.without("q", "") == "/?model=x%3D1%26&model=y&run=1"
    assert query.without("host", "none") == query.address()


def test_too_many_requests_get_a_time_to_come_back(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """If too many requests run at the same time, the next request is refused, and the answer states when to try again.
    As soon as another request has ended, a request is answered.
    """
    monkeypatch.setattr(access, "MOST_REQUESTS", 3)
    app = AccessGuard(page)

    async def ask() -> tuple[int, dict[bytes, bytes]]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            raise AssertionError("not asked for")

        headers = [(b"host", b"localhost")]
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "headers": headers,
        }
        await app(scope, receive, send)
        return sent[0]["status"], dict(sent[0]["headers"])

    async def run() -> None:
        page.may_answer = asyncio.Event()
        waiting = [asyncio.create_task(ask()) for _ in range(3)]
        await asyncio.sleep(0)
        status, headers = await ask()
        assert status == 503
        assert headers[b"retry-after"] == str(RETRY_AFTER_S).encode()
        page.may_answer.set()
        assert {status for status, _ in await asyncio.gather(*waiting)} == {200}
        assert (await ask())[0] == 200

    asyncio.run(run())
    assert page.asked == 4


def test_lists_are_made_one_at_a_time_and_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """If several requests ask for the same list, the list is created only once. Different lists are created one after
    the other.

    Requests beyond the limit are refused.
    """
    monkeypatch.setattr("tkperf.web.server_state.MOST_FOR_LISTS", 5)
    listing = list_rows({"a": a_row()})
    made: list[str] = []
    refused = threading.Event()

    async def run() -> None:
        answers = ListAnswers()

        def ask(key: str) -> asyncio.Task[bytes]:
            def make() -> bytes:
                assert refused.wait(timeout=60)
                made.append(key)
                return key.encode()

            return asyncio.create_task(answers.get(listing, key, make))

        waiting = [ask(key) for key in ("a", "b", "a", "b", "a")]
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await ask("c")
        refused.set()
        assert await asyncio.gather(*waiting) == [b"a", b"b", b"a", b"b", b"a"]
        assert await ask("c") == b"c"

    asyncio.run(run())
    assert made == ["a", "b", "c"]


addresses = st.one_of(
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
    st.sampled_from(["localhost", "LOCALHOST", "localhost.", "testhost"]),
)
ports = st.one_of(st.just(""), st.integers(0, 65535).map(lambda port: f":{port}"))


@given(addresses, ports)
def test_a_host_header_of_this_server_is_known(address: str, port: str) -> None:
    """A host header with an address or a name of this server is accepted with any port, because ssh may forward another
    port. Upper and lower case do not matter.
    """
    guard = AccessGuard(Page(), names=["TestHost."])
    assert guard._is_own(address + port)
    assert guard._is_own((address + port).upper())


@given(addresses, ports, st.text(min_size=1, max_size=20), st.sampled_from(["before", "name", "after"]))
def test_anything_more_in_a_host_header_is_refused(address: str, port: str, more: str, place: str) -> None:
    """A host header with any additional text is refused, unless the whole text is another address that the server may
    have.
    """
    guard = AccessGuard(Page(), names=["testhost"])
    text = {"before": more + address + port, "name": address + more + port, "after": address + port + more}[place]
    if guard._is_own(text):
        host = re.sub(r":[0-9]{1,5}$", "", text).lower()
        if host.startswith("["):
            assert IPv6Address(host[1:-1]).scope_id is None
        elif host.removesuffix(".") not in ("localhost", "testhost"):
            IPv4Address(host)


@pytest.mark.parametrize(
    "host",
    [
        "[::1]evil.com",
        "[::1].evil.com",
        "evil.com[::1]",
        "[::1]:80evil.com",
        "[::1]:",
        "[::1]:80:80",
        "[::1",
        "::1]",
        "::1",
        "[]",
        "[evil.com]",
        "[127.0.0.1]",
        "[::1%lo]",
        "[::1%25lo]",
        "[::1%evil.com]",
        "[::1 ]",
        "[v1.x]",
        "localhost:",
        "localhost:x",
        "localhost:99999",
        "localhost:-1",
        "localhost:\u0663",
        "localhost:80:80",
        "localhost..",
        "user@localhost",
        "localhost@evil.com",
        "user:pass@localhost:80",
        "evil.com:80@localhost",
        "localhost/",
        "localhost?x",
        "localhost#x",
        "localhost\\",
        "local host",
        "localhost,evil.com",
        "localhost evil.com",
        " localhost",
        "localhost\t",
        "127.0.0.1.",
        "127.0.0.1.evil.com",
        "127.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "2130706433",
        "127.0.0.01",
        "1.2.3.4.5",
        "l\u043ecalhost",
        "\uff4cocalhost",
        "xn--localhost-",
        "localhost\u2024",
        "%6cocalhost",
        "",
        ".",
        "-",
        "*",
        "http://localhost",
    ],
)
def test_a_host_header_is_parsed_strictly(host: str) -> None:
    """The host header is parsed strictly. A lenient parser could accept a name as this server although it belongs to a
    foreign page.
    """
    assert not AccessGuard(Page(), names=["testhost"])._is_own(host)


def test_other_headers_name_no_host(client: TestClient) -> None:
    for name in ("x-forwarded-host", "forwarded", "x-host", "x-original-host"):
        assert client.get("/", headers={"host": "evil.com", name: "localhost"}).status_code == 421
        assert client.get("/", headers={name: "host=evil.com"}).status_code == 200


def test_a_cookie_costs_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quoted cookie is never parsed with http.cookies. In Python 3.11, the time that http.cookies needs grew with the
    square of the length.
    """

    def fail(_: str) -> str:
        raise AssertionError("parsed by http.cookies")

    monkeypatch.setattr("http.cookies._unquote", fail)
    token = "x" * 32
    client = TestClient(AccessGuard(Page(), token=token), base_url="http://localhost:80")
    hostile = '"' + "\\" * 30_000 + '"'
    refused = {"cookie": f"tkperf-token-80={hostile}; a={hostile}"}
    assert client.get("/", headers=refused).status_code == 401
    admitted = {"cookie": f"a={hostile}; tkperf-token-80={token}"}
    assert client.get("/", headers=admitted).status_code == 200
