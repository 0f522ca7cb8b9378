"""tkperf measures block devices by the SNIA Performance Test Specification.

From Python, ``tkperf.make_plan`` and ``tkperf.run`` measure, ``tkperf.load`` reads results;
``tkperf.headlines`` and ``tkperf.findings`` say what a report opens with; docs/python-api.md has examples.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tkperf.model.errors import TkperfError
from tkperf.model.version import __version__

if TYPE_CHECKING:
    from tkperf.page.findings import findings, headlines
    from tkperf.pipeline.api import load, make_plan, open_run, run

__all__ = ["TkperfError", "__version__", "findings", "headlines", "load", "make_plan", "open_run", "run"]
_OF_PAGES = ("findings", "headlines")


def __getattr__(name: str) -> object:
    """Load the Python API when it is first used: the command line starts faster without it."""
    if name in __all__:
        home = "tkperf.page.findings" if name in _OF_PAGES else "tkperf.pipeline.api"
        return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
