"""A report that is opened in a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

DRAWN = "body[data-drawn]"
# On a busy host, drawing all charts of a report may take longer than the default limits, which are 5 s and 30 s.
LONGEST_WAIT_MS = 120_000
expect.set_options(timeout=LONGEST_WAIT_MS)
SCRIPTS_OF_CHARTS = re.compile(r'<script type="application/json" data-key[^>]*>(.*?)</script>')


def unpack_spec(script: str) -> dict[str, Any]:
    """Return the specification of a chart from the text of its script."""
    spec: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(json.loads(script))))
    return spec


def find_specs(page: str) -> list[dict[str, Any]]:
    """Return the specifications of all views of all charts on a page."""
    return [unpack_spec(script) for script in SCRIPTS_OF_CHARTS.findall(page)]


def new_page(
    browser: Browser,
    width: int = 1280,
    height: int = 720,
    scheme: Literal["light", "dark"] = "light",
    *,
    reduced_motion: Literal["reduce"] | None = None,
) -> Page:
    """Return a page in the context that the fixture ``browser`` keeps open.

    All pages of this context share a process of Chromium, which has compiled the scripts of reports after the first
    page. A separate context would start a separate process for each page, which takes a second of CPU time.
    """
    page = browser.contexts[0].new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme, reduced_motion=reduced_motion)
    return page


def find_violations(page: Page) -> list[str]:
    """Return the violations that axe-core finds with all its rules, each with its first element.

    axe-core applies all rules to all elements, but describes only the elements with violations. The description of the
    thousands of other elements would take as much CPU time as the rules.
    """
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]


@dataclass
class Visit:
    """A report that is opened in a browser, with the console messages and the requests of the page."""

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
