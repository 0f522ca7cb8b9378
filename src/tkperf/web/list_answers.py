"""Answers that are made from the whole list of runs.

A thread makes them one at a time, and once for all requests that ask for the same answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tkperf.web.bounds import MOST_FOR_LISTS
from tkperf.web.library import Listing
from tkperf.web.workers import BusyError

# Number of answers that are kept for one listing. A page with 50 runs has about 150 kB, /api/runs
# about 1 kB for each run.
_MOST_KEPT = 32
_MOST_KEPT_BYTES = 32 << 20


class ListAnswers:
    """Answers by question, kept as long as the listing does not change.

    The time for an answer grows with the number of runs, so the event loop must not wait for it.
    """

    def __init__(self) -> None:
        self._listing: Listing | None = None
        self._kept: dict[object, bytes] = {}
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def get(self, listing: Listing, key: object, make: Callable[[], bytes]) -> bytes:
        """Return the answer to a question about a listing.

        Raises:
            BusyError: too many other requests wait.
        """
        if (kept := self._find(listing, key)) is not None:
            return kept
        if self._waiting >= MOST_FOR_LISTS:
            raise BusyError(f"{self._waiting} other requests wait for the list of runs: ask again later")
        self._waiting += 1
        try:
            async with self._turn:
                if (kept := self._find(listing, key)) is not None:
                    return kept
                content = await asyncio.to_thread(make)
                self._keep(listing, key, content)
                return content
        finally:
            self._waiting -= 1

    def _find(self, listing: Listing, key: object) -> bytes | None:
        return self._kept.get(key) if listing is self._listing else None

    def _keep(self, listing: Listing, key: object, content: bytes) -> None:
        if listing is not self._listing:
            self._listing, self._kept = listing, {}
        self._kept[key] = content
        while self._kept and (len(self._kept) > _MOST_KEPT or sum(map(len, self._kept.values())) > _MOST_KEPT_BYTES):
            del self._kept[next(iter(self._kept))]
