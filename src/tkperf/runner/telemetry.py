"""A run's telemetry on its way to the observers: asked for around tests, kept off purges, judged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from tkperf.model.record import RunWarning
from tkperf.model.telemetry.log import TelemetryLog
from tkperf.model.telemetry.reading import Telemetry
from tkperf.runner.events import Event, TelemetrySeen, Warned

# Code of the warnings about logs that cannot be read.
UNREAD = "telemetry"


@dataclass(slots=True)
class RunTelemetry:
    """Told by the runner what happens. ``source`` None: there is none. Its times count from ``origin_s``."""

    source: Telemetry | None
    origin_s: float
    emit: Callable[[Event], None]
    _log: TelemetryLog = field(default_factory=TelemetryLog)
    _test: str | None = None

    def test_begins(self, test: str) -> None:
        """What the drive counts is read as it begins, and with that as the one before ended."""
        self._test = test
        self._log.test_begins()
        self._ask()

    def test_ends(self) -> None:
        self._ask()

    def look(self) -> None:
        """Hand on what was read since; it takes no time worth speaking of."""
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
        """Nothing is read in the block: a drive that erases itself is left alone."""
        return nullcontext() if self.source is None else self.source.paused()

    def finish(self) -> None:
        """The last reading of the run."""
        if self.source is not None:
            self.source.finish()
            self.look()

    def _ask(self) -> None:
        if self.source is not None:
            self.source.ask()
