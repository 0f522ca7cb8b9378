"""The fio processes of all loads that may come next: they wait at their gates until one of them is let go."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress

from tkperf.engine import EngineLoad
from tkperf.engine.fio_process import FioProcess
from tkperf.model.errors import EngineError, LostAtGateError
from tkperf.model.workload import Step

# fio needs a third of a second from its start to the gate, and several times that on a host whose
# CPUs the current step keeps busy.
PREPARE_AHEAD_S = 3.0
# A slow machine needs more: so many times fio's recent time to come to its gate.
START_MARGIN = 2.0
# The interval of looking for threads that should already wait at their gate.
GATE_POLL_S = 0.005


def step_of(load: EngineLoad) -> Step:
    """Return the step that fio is started with: for a stream, one as long as the stream may last."""
    if isinstance(load, Step):
        return load
    return Step(workload=load.workload, duration_s=load.longest_s)


class Waiting:
    """The waiting processes: at most one for each load; at most one of them is let go at a time."""

    def __init__(self, start: Callable[[EngineLoad], FioProcess]) -> None:
        self._start = start
        self._prepared: dict[EngineLoad, FioProcess] = {}
        self._start_took_s = 0.0

    @property
    def ahead_s(self) -> float:
        """Return how long before the hand-over a load's fio is to be started."""
        return max(PREPARE_AHEAD_S, START_MARGIN * self._start_took_s)

    def note_start(self, process: FioProcess) -> None:
        """Learn the start time of a released process; a slow one is forgotten in a few steps."""
        self._start_took_s = max(process.start_took_s, self._start_took_s / 2)

    def __contains__(self, load: EngineLoad) -> bool:
        return load in self._prepared

    def __bool__(self) -> bool:
        return bool(self._prepared)

    @property
    def let_go_load(self) -> EngineLoad | None:
        """Return the load that was let go, if one was."""
        return next((load for load in self._prepared if self._is_let_go(load)), None)

    @property
    def let_go_s(self) -> float | None:
        """Return when a load was let go, on the monotonic clock; None if none was."""
        load = self.let_go_load
        return None if load is None else self._prepared[load].released_s

    def _is_let_go(self, load: EngineLoad) -> bool:
        return self._prepared[load].released_s is not None

    def prepare(self, load: EngineLoad) -> None:
        """Start the fio of a load, unless it waits already. A failed start is tried again later."""
        if load not in self._prepared:
            with suppress(EngineError):
                self._prepared[load] = self._start(load)

    def let_go(self, load: EngineLoad, keep_up: Callable[[float], bool]) -> None:
        """Let a load's I/O begin as soon as all its threads wait.

        The wait lasts at most ``ahead_s``, the time they had to come. If they come later, or are lost,
        the engine handles it when it is asked for the load.

        Args:
            keep_up: takes in the output of the current load until a moment; False: that load has ended.
        """
        process = self._prepared.get(load)
        if process is None or process.released_s is not None:
            return
        self.stop_io()
        until_s = time.monotonic() + self.ahead_s
        while not process.at_gate:
            now_s = time.monotonic()
            if now_s > until_s or process.lost_at_gate:
                return
            if not keep_up(now_s + GATE_POLL_S):
                time.sleep(GATE_POLL_S)
        with suppress(LostAtGateError):  # the engine starts it again
            process.release()

    def take(self, load: EngineLoad) -> FioProcess | None:
        """Return the process for a load, which waits or whose gate was opened. Other processes stay
        until ``discard``.
        """
        return self._prepared.pop(load, None)

    def discard(self, *, but: Collection[EngineLoad] = ()) -> None:
        """Stop the processes of all loads except those in ``but``, even a process whose gate was opened."""
        for load in [load for load in self._prepared if load not in but]:
            self._prepared.pop(load).stop()

    def stop_io(self) -> None:
        """Stop a process whose gate was opened because of a wrong guess; the other processes continue to wait."""
        for load in list(self._prepared):
            if self._is_let_go(load):
                self._prepared.pop(load).stop()
