"""The thread that reads the logs of drives at intervals and on request. Other threads wait for this thread only for a
limited time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TypeVar

from tkperf.device.drive_log import DriveLog, UnreadError
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.model.telemetry.drive_reading import DriveFacts, Reading

# docs/explanation/telemetry.md describes how these readings affect the I/O, as measured with bench/telemetry.py.
TEMPERATURE_EVERY_S = 10.0
LOG_EVERY_S = 60.0
# The longest time for which a purge, or the end of a run, waits until the current reading has ended. A tool that does
# not end is killed earlier than this.
PAUSE_LIMIT_S = 20.0
FINISH_LIMIT_S = 15.0
# After this number of consecutive failures, tkperf stops reading the log of a drive.
MOST_FAILURES = 3

T = TypeVar("T")


@dataclass(slots=True)
class _Stop:
    """A request to stop reading. Reading continues after the event ``over``. If ``over`` is None, the thread
    must end.
    """

    reached: threading.Event = field(default_factory=threading.Event)
    over: threading.Event | None = field(default_factory=threading.Event)


class TelemetryWatch:
    """A reader of the logs of several drives, which works until it is closed. Its clock is ``time.monotonic``."""

    def __init__(
        self,
        drives: Sequence[DriveLog],
        *,
        temperature_every_s: float = TEMPERATURE_EVERY_S,
        log_every_s: float = LOG_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read each drive once in the calling thread. Then start the thread that reads repeatedly."""
        self._clock = clock
        self._every_s = (temperature_every_s, log_every_s)
        self._readings: deque[Reading] = deque()
        self._troubles: deque[str] = deque()
        self._failures: dict[str, int] = {}
        self._read_s = clock()
        self._drives = [drive for drive in drives if self._look_first(drive)]
        # The facts include the facts of drives whose logs cannot be read.
        self.facts = tuple(drive.facts for drive in drives)
        self._late = threading.Event()
        # A number in the queue is the time at which a reading was requested.
        self._orders: SimpleQueue[float | _Stop] = SimpleQueue()
        self._thread = threading.Thread(target=self._read_on, name="telemetry", daemon=True)
        if self._drives:
            self._thread.start()

    def take(self) -> Sequence[Reading]:
        return list(_emptied(self._readings))

    def take_troubles(self) -> Sequence[str]:
        return list(_emptied(self._troubles))

    def ask(self) -> None:
        self._orders.put(self._clock())

    @contextmanager
    def paused(self) -> Iterator[None]:
        stop = _Stop()
        self._orders.put(stop)
        if self._thread.is_alive() and not stop.reached.wait(PAUSE_LIMIT_S):
            self._late.set()
        try:
            yield
        finally:
            self._late.clear()
            if stop.over is not None:
                stop.over.set()

    def finish(self) -> None:
        self.ask()
        self._end(FINISH_LIMIT_S)

    def close(self) -> None:
        """Stop reading logs. The method does not wait for the current reading."""
        self._end(0.0)

    def _end(self, limit_s: float) -> None:
        stop = _Stop(over=None)
        self._orders.put(stop)
        if self._thread.is_alive():
            stop.reached.wait(limit_s)

    def _look_first(self, drive: DriveLog) -> bool:
        """Make the first reading of a drive. Return whether a part of the reading succeeded."""
        if drive.missing is not None:
            self._troubles.append(f"no log of {drive.name} is read: {drive.missing}")
        try:
            reading = drive.look_first(self._clock)
        except UnreadError as error:
            reading = None
            if not error.usual:
                self._troubles.append(f"no log of {drive.name} is read: {error}")
        if reading is not None:
            self._readings.append(reading)
        self._troubles.extend(f"{drive.name}: {each}" for each in drive.facts.contradictions)
        return not drive.is_silent

    def _read_on(self) -> None:
        """Read the logs until the thread receives the order to end. A defect in this thread does not end the run, but
        is reported.
        """
        try:
            self._go_on()
        except Exception as error:
            self._troubles.append(f"drives' logs are no longer read: {error!r}")

    def _go_on(self) -> None:
        temperature_every_s, log_every_s = self._every_s
        temperature_s = log_s = self._read_s
        while True:
            now_s = self._clock()
            due_s = min(temperature_s + temperature_every_s, log_s + log_every_s)
            try:
                order = self._orders.get(timeout=max(0.0, due_s - now_s))
            except Empty:
                order = None
            if isinstance(order, _Stop):
                order.reached.set()
                if order.over is None:
                    return
                order.over.wait()
                continue
            now_s = self._clock()
            # A reading answers all requests that were made before the reading began.
            wanted = order is not None and order > log_s
            if wanted or now_s >= log_s + log_every_s:
                log_s = temperature_s = now_s
                self._read_logs()
            elif now_s >= temperature_s + temperature_every_s:
                temperature_s = now_s
                self._read_temperatures(self._drives)

    def _read_logs(self) -> None:
        """Read the log of each drive. If a drive has no log, read its temperature."""
        for drive in self._drives:
            if self._late.is_set():
                return  # a purge has begun in the meantime, so do not read the other drives
            if not drive.has_log:
                self._read_temperatures([drive])
                continue
            try:
                self._readings.append(drive.read(self._clock))
                self._failures[drive.name] = 0
            except UnreadError as error:
                self._count_failure(drive, error)

    def _read_temperatures(self, drives: Sequence[DriveLog]) -> None:
        for drive in drives:
            reading = drive.read_temperature(self._clock)
            if reading is not None:
                self._readings.append(reading)

    def _count_failure(self, drive: DriveLog, error: UnreadError) -> None:
        """Report the first failure. After several consecutive failures, or after a permanent failure, stop using the
        tool of the drive.
        """
        before = self._failures.get(drive.name)
        self._failures[drive.name] = (before or 0) + 1
        if error.for_good or self._failures[drive.name] >= MOST_FAILURES:
            drive.give_up()
            text = "it is no longer read"
        elif before is None or before == 0:
            text = "it is tried again"
        else:
            return
        self._troubles.append(f"the log of {drive.name} cannot be read: {error}; {text}")


def _emptied(items: deque[T]) -> Iterator[T]:
    while items:
        yield items.popleft()


def open_logs(*identities: DeviceIdentity) -> list[DriveLog]:
    """Return the logs of the block devices. Files have no log."""
    return [DriveLog(identity) for identity in identities if identity.kind is TargetKind.BLOCK]


@contextmanager
def reading_logs(*identities: DeviceIdentity, wanted: bool = True) -> Iterator[TelemetryWatch]:
    """Yield a watch that reads the telemetry of the drives, and close the watch after the ``with`` block. If ``wanted``
    is false, no drive is read.
    """
    watch = TelemetryWatch(open_logs(*identities) if wanted else ())
    try:
        yield watch
    finally:
        watch.close()


def look_at_telemetry(identity: DeviceIdentity) -> tuple[DriveFacts | None, Reading | None]:
    """Return the facts that a run would read from a drive, and the first reading of the drive. For a file, both are
    None.
    """
    for drive in open_logs(identity):
        reading = None
        with suppress(UnreadError):  # the facts contain the reason as a gap
            reading = drive.look_first(time.monotonic)
        if reading is None:
            reading = drive.read_temperature(time.monotonic)
        return drive.facts, reading
    return None, None
