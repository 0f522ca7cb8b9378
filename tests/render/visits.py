"""A report opened in a browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Page

DRAWN = "body[data-drawn]"


@dataclass
class Visit:
    """A report opened in a browser, and what it said and asked for."""

    page: Page
    path: Path
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, fragment: str = "") -> None:
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(self.path.as_uri() + fragment)
        self.page.wait_for_selector(DRAWN)

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def wait_for_part(self, cell: str, part: str = "") -> None:
        of = f"[data-part='{part}']" if part else ""
        self.page.wait_for_selector(f"dialog[data-shown='{cell}']{of}")
