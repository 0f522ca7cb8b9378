"""The telemetry of a run on its way to the observers: read around tests, kept off purges, judged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from tkperf.model.record import RunWarning
from tkperf.model.telemetry.log import TelemetryLog
from tkperf.model.telemetry.reading import Telemetry
from tkperf.runner.events import Event, TelemetrySeen, Warned

# Code of the warnings about unreadable logs.
UNREAD = "telemetry"


@dataclass(slots=True)
class RunTelemetry:
    """The telemetry of a run. ``source`` None: there is none. Its times count from ``origin_s``."""

    source: Telemetry | None
    origin_s: float
    emit: Callable[[Event], None]
    _log: TelemetryLog = field(default_factory=TelemetryLog)
    _test: str | None = None

    def test_begins(self, test: str) -> None:
        """Read the drive's counters at the beginning of a test. The reading also ends the test before."""
        self._test = test
        self._log.test_begins()
        self._ask()

    def test_ends(self) -> None:
        self._ask()

    def look(self) -> None:
        """Hand on the new readings; it takes no time worth mentioning."""
        if self.source is None:
            return
        for text in self.source.take_troubles():
            warning = RunWarning(code=UNREAD, text=text, test=self._test)
            self.emit(Warned(warning=warning))
        for reading in self.source.take():
            reading = replace(reading, at_s=reading.at_s - self.origin_s)  # noqa: PLW2901 - on the run's clock
            if self._log.is_news(reading):
                self.emit(TelemetrySeen(reading=reading))
            for code, text in self._log.find_warnings(reading):
                warning = RunWarning(code=code, text=text, test=self._test, at_s=reading.at_s)
                self.emit(Warned(warning=warning))

    def paused(self) -> AbstractContextManager[None]:
        """Return a context in which nothing is read: a drive that erases itself is left alone."""
        return nullcontext() if self.source is None else self.source.paused()

    def finish(self) -> None:
        """Take the last reading of the run."""
        if self.source is not None:
            self.source.finish()
            self.look()

    def _ask(self) -> None:
        if self.source is not None:
            self.source.ask()
