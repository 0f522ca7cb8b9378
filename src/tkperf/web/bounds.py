"""Limits for the content of a request, and for the numbers of simultaneous requests, connections and jobs.

``find_excess`` checks a request before any other code examines it. docs/how-to/serve.md lists the numbers.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple
from urllib.parse import parse_qsl

from starlette.types import Scope

from tkperf.model.units import GIB, format_count

MOST_COMPARED = 200
"""The greatest number of runs in a comparison."""

# Section: a request.
MOST_REQUEST_BYTES = 1 << 16
MOST_PATH_BYTES = 1 << 10
MOST_QUERY_BYTES = 1 << 15
MOST_PARAMETERS = 512
MOST_HEADERS = 100
REQUEST_WITHIN_S = 30.0
"""The time, in s, within which a request must arrive completely."""
TAKEN_WITHIN_S = 60.0
"""The time, in s, within which a browser must read the data that are ready for it. The server has no more than 256 KiB
ready at once.
"""


class Bound(NamedTuple):
    """The limits of a parameter: how often an address can contain the parameter, and how many characters each value can
    have.
    """

    values: int
    characters: int


_OF_A_FACET = Bound(50, 200)
PARAMETERS = {
    "run": Bound(MOST_COMPARED, 64),
    "q": Bound(1, 200),
    "model": _OF_A_FACET,
    "firmware": _OF_A_FACET,
    "capacity": _OF_A_FACET,
    "interface": _OF_A_FACET,
    "form": _OF_A_FACET,
    "test": _OF_A_FACET,
    "verdict": _OF_A_FACET,
    "host": _OF_A_FACET,
    "month": _OF_A_FACET,
    "by": Bound(1, 24),
    "sort": Bound(1, 16),
    "page": Bound(1, 6),
    "without": Bound(1, 210),
    "as": Bound(1, 16),
    "report": Bound(1, 16),
    "token": Bound(1, 64),
}
OTHER_PARAMETER = Bound(1, 200)
"""The limit of a parameter that the server does not use, for example a parameter that a mail program adds."""
MOST_WORDS = 16
"""The greatest number of words in a search. Further words are ignored."""

# Section: the server.
MOST_CONNECTIONS = 1024
MOST_REQUESTS = 512
"""The greatest number of requests that are being answered at the same time, including event streams."""
MOST_STREAMS = 256
MOST_FOR_A_PAGE = 256
"""The greatest number of requests that wait for the same page."""
MOST_FOR_LISTS = 64
"""The greatest number of requests that wait for the list of runs, ``/api/runs`` or ``/metrics``."""
RETRY_AFTER_S = 10

# Limits for jobs. Two jobs run at the same time, so that a page does not need to wait for the index. More jobs would
# use CPU time that other work on this host needs.
AT_ONCE = 2
MOST_WAITING = 32
MOST_FOLLOWED = 16
"""The greatest number of continuous jobs at the same time. A continuous job runs until it is stopped."""
LIMIT_S = 60.0
LIMIT_BYTES = 2 * GIB
# The greatest size of the result of a job. The results that the server itself keeps in memory are much smaller.
MOST_RESULT_BYTES = 64 << 20
MOST_MESSAGE_BYTES = 4 << 20
"""The greatest size of the part of a page that shows the state of a run in progress."""
MOST_SENT_BYTES = 64 << 20
"""The greatest total size of the states of runs in progress that browsers have not read yet. The limit covers all
browsers together.
"""

# Limits for the library and its pages.
MOST_FILES = 20_000
MOST_ENTRIES = 500_000
PAGE_ITEMS = 50
PAGE_RUNS = 300
"""The greatest number of runs in the rows of one page of the list. A single row with more runs has a page of its
own.
"""
MOST_CHOICES = 200
"""The greatest number of values of a facet that a page offers."""
MOST_NAMED = 10
"""The greatest number of copies that a page names for one file."""
MOST_UNREADABLE = 200

# If a file could not be read for a temporary reason, the library reads the file again later.
LISTED_WITHIN_S = 1.0
"""The time, in s, for which the library waits for the lock of another program. A run locks its file for less than 0.1
s.
"""
AGAIN_AFTER_S = 60.0
"""The pause, in s, before a file is read again if it was locked or not readable, or if a run is writing to it."""
AGAIN_AFTER_LATE_S = 600.0
"""The pause, in s, after a job that exceeded its time limit. The pause doubles after each further job that exceeds the
limit.
"""


class Excess(NamedTuple):
    """An answer to a request that exceeds a limit. It consists of the HTTP status, and a text about what the sender can
    do.
    """

    status: int
    words: str


def find_excess(scope: Scope) -> Excess | None:
    """Return the answer to a request that exceeds a limit, or None if the request is within all limits.

    The time for this check depends only on the length of the request.
    """
    path: bytes = scope.get("raw_path") or scope["path"].encode(errors="replace")
    if len(path) > MOST_PATH_BYTES:
        return Excess(414, f"The path of the address has {len(path):,} bytes, but the limit is {MOST_PATH_BYTES:,}")
    if not path.startswith(b"/"):
        return Excess(400, "The address in a request must begin with a slash")
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    if len(headers) > MOST_HEADERS:
        return Excess(431, f"The request has {len(headers)} headers, but the limit is {MOST_HEADERS}")
    # uvicorn limits the length of a request only if the request arrives in several pieces.
    if (length := sum(len(name) + len(value) for name, value in headers)) > MOST_REQUEST_BYTES:
        return Excess(431, f"The headers have {length:,} bytes, but the limit is {MOST_REQUEST_BYTES:,}")
    for name, value in headers:
        if name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0")):
            return Excess(413, "tkperf serve accepts no body in a request: use GET without a body")
    return _find_excess_of_query(scope["query_string"])


def _find_excess_of_query(query: bytes) -> Excess | None:
    if len(query) > MOST_QUERY_BYTES:
        return Excess(
            414,
            f"The address has {len(query):,} bytes after the '?', but the limit is "
            f"{MOST_QUERY_BYTES:,}: tick fewer "
            "runs or values",
        )
    if (parameters := query.count(b"&") + 1) > MOST_PARAMETERS:
        return Excess(
            400,
            f"The address has {parameters:,} parameters, but the limit is {MOST_PARAMETERS}: tick fewer runs or values",
        )
    counts: Counter[str] = Counter()
    for name, value in parse_query_string(query):
        counts[name] += 1
        bound = PARAMETERS.get(name, OTHER_PARAMETER)
        shown = f"'{name}'" if name in PARAMETERS else "that tkperf does not know"
        longest = max(len(name), len(value))
        if name == "run" and counts[name] > bound.values:
            return Excess(400, f"A page compares at most {MOST_COMPARED} runs, but the address names more")
        if counts[name] > bound.values:
            most = format_count(bound.values, "time")
            return Excess(400, f"The address may have the parameter {shown} at most {most}")
        if longest > bound.characters:
            return Excess(
                400,
                f"The address has a parameter {shown} with {longest:,} characters, but the limit is {bound.characters}",
            )
    return None


def parse_query_string(query: bytes) -> list[tuple[str, str]]:
    """Return the parameters of an address, in order."""
    return parse_qsl(query.decode("latin-1"), keep_blank_values=True)
