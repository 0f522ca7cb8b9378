"""Parts that the pages share."""

from __future__ import annotations

from dataclasses import dataclass

from tkperf.web.kept import Kept
from tkperf.web.library import Library
from tkperf.web.workers import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Parts that every page may use."""

    library: Library
    workers: Workers
    kept: Kept
