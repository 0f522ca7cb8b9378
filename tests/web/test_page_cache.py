"""A page is created once and shared by all requests. The size of the cache is limited. If no request waits for a page,
its creation is stopped.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import BinaryIO

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from tkperf.web.page_cache import PageCache


class Browser:
    """A browser that waits for its page until the test makes the browser leave."""

    def __init__(self) -> None:
        self._left = asyncio.Event()
        self.request = Request({"type": "http"}, self._receive)

    def leave(self) -> None:
        self._left.set()

    async def _receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}


class Maker:
    """A function that makes a page and ends when the test permits it."""

    def __init__(self, content: bytes = b"page") -> None:
        self.content = content
        self.begun = 0
        self.given_up = 0
        self.may_end = asyncio.Event()

    async def make(self, file: BinaryIO) -> None:
        self.begun += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        file.write(self.content)
        file.flush()


async def get(kept: PageCache, key: str, maker: Maker, browser: Browser | None = None) -> bytes:
    with await kept.get((browser or Browser()).request, (key,), maker.make) as file:
        return os.pread(file.fileno(), 1 << 20, 0)


def test_a_page_is_made_once_for_all_who_wait(tmp_path: Path) -> None:
    async def run() -> None:
        kept, maker = PageCache(tmp_path), Maker()
        waiting = [asyncio.create_task(get(kept, "key", maker)) for _ in range(5)]
        await asyncio.sleep(0)
        maker.may_end.set()
        assert await asyncio.gather(*waiting) == [b"page"] * 5
        assert await get(kept, "key", maker) == b"page"
        assert await get(PageCache(tmp_path), "key", maker) == b"page"
        assert maker.begun == 1
        assert await get(kept, "another key", maker) == b"page"
        assert maker.begun == 2

    asyncio.run(run())


def test_it_is_given_up_when_the_last_browser_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        kept, maker = PageCache(tmp_path), Maker()
        first, second = Browser(), Browser()
        waiting = [asyncio.create_task(get(kept, "key", maker, browser)) for browser in (first, second)]
        await asyncio.sleep(0.01)
        first.leave()
        with pytest.raises(HTTPException):
            await waiting[0]
        assert maker.given_up == 0
        second.leave()
        with pytest.raises(HTTPException):
            await waiting[1]
        await asyncio.sleep(0)
        counts = [maker.given_up]
        assert counts == [1]
        assert list(tmp_path.iterdir()) == []

    asyncio.run(run())


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    async def run() -> None:
        kept, maker = PageCache(tmp_path), Maker()

        async def fail(_: BinaryIO) -> None:
            raise ValueError("damaged")

        with pytest.raises(ValueError, match="damaged"):
            await kept.get(Browser().request, ("key",), fail)
        assert list(tmp_path.iterdir()) == []
        maker.may_end.set()
        assert await get(kept, "key", maker) == b"page"

    asyncio.run(run())


def test_the_folder_is_bounded(tmp_path: Path) -> None:
    """The folder of the page cache has a size limit. If the limit is exceeded, the pages that were used least recently
    are removed.
    """

    async def run() -> None:
        kept = PageCache(tmp_path, most_bytes=2500)
        maker = Maker(b"x" * 1000)
        maker.may_end.set()
        for key in ("first", "second"):
            await get(kept, key, maker)
        for path in tmp_path.iterdir():
            os.utime(path, (0, 0))
        for key in ("first", "third", "first"):
            await get(kept, key, maker)
        assert maker.begun == 3
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2500

    asyncio.run(run())


def test_a_disk_that_is_nearly_full_is_left_alone(tmp_path: Path) -> None:
    async def run() -> None:
        maker = Maker()
        maker.may_end.set()
        assert await get(PageCache(tmp_path, most_bytes=1 << 60), "key", maker) == b"page"
        assert list(tmp_path.iterdir()) == []

    asyncio.run(run())


def test_without_a_folder_nothing_is_kept() -> None:
    async def run() -> None:
        for kept in (PageCache(None), PageCache(Path("/nowhere/at/all"))):
            maker = Maker()
            maker.may_end.set()
            assert await get(kept, "key", maker) == b"page"
            assert await get(kept, "key", maker) == b"page"
            assert maker.begun == 2

    asyncio.run(run())
