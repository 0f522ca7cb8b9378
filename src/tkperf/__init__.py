"""tkperf measures block devices according to the SNIA Performance Test Specification.

From Python, ``tkperf.make_plan`` and ``tkperf.run`` measure, and ``tkperf.load`` reads results. ``tkperf.headlines``
and ``tkperf.findings`` return the figures and the findings at the top of a report. docs/reference/python-api.md
contains examples. Only the names in this module are public; modules below it may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tkperf.model.errors import (
    DeviceError,
    EngineError,
    Interrupted,
    RefusedError,
    RunFileError,
    TkperfError,
    UsageError,
)
from tkperf.model.version import __version__

if TYPE_CHECKING:
    from tkperf.analysis.results import RunResult
    from tkperf.device.raid.config import RaidConfig
    from tkperf.model.quantity import IOPS, QUANTITIES, Direction
    from tkperf.page.findings import findings, headlines
    from tkperf.pipeline.api import load, make_plan, open_run, run
    from tkperf.pipeline.consent import Question
    from tkperf.pipeline.estimate_run import estimate_run, parse_rate, parse_rating
    from tkperf.pipeline.run_request import RunRequest
    from tkperf.procedures.profiles.profile_tables import Profile
    from tkperf.runner.events import Event, Judged, StepEnded

# The module that defines each public name.
_HOMES = {
    "RunResult": "tkperf.analysis.results",
    "RaidConfig": "tkperf.device.raid.config",
    "IOPS": "tkperf.model.quantity",
    "QUANTITIES": "tkperf.model.quantity",
    "Direction": "tkperf.model.quantity",
    "findings": "tkperf.page.findings",
    "headlines": "tkperf.page.findings",
    "load": "tkperf.pipeline.api",
    "make_plan": "tkperf.pipeline.api",
    "open_run": "tkperf.pipeline.api",
    "run": "tkperf.pipeline.api",
    "Question": "tkperf.pipeline.consent",
    "estimate_run": "tkperf.pipeline.estimate_run",
    "parse_rate": "tkperf.pipeline.estimate_run",
    "parse_rating": "tkperf.pipeline.estimate_run",
    "RunRequest": "tkperf.pipeline.run_request",
    "Profile": "tkperf.procedures.profiles.profile_tables",
    "Event": "tkperf.runner.events",
    "Judged": "tkperf.runner.events",
    "StepEnded": "tkperf.runner.events",
}
__all__ = [
    "IOPS",
    "QUANTITIES",
    "DeviceError",
    "Direction",
    "EngineError",
    "Event",
    "Interrupted",
    "Judged",
    "Profile",
    "Question",
    "RaidConfig",
    "RefusedError",
    "RunFileError",
    "RunRequest",
    "RunResult",
    "StepEnded",
    "TkperfError",
    "UsageError",
    "__version__",
    "estimate_run",
    "findings",
    "headlines",
    "load",
    "make_plan",
    "open_run",
    "parse_rate",
    "parse_rating",
    "run",
]


def __getattr__(name: str) -> object:
    """Load a name of the Python API when the name is first used. The command line starts faster without the API."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
