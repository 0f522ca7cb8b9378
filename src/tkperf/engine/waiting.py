"""The fio processes of all loads that may be next. The processes wait at their gates until tkperf releases one
of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress

from tkperf.engine import EngineLoad
from tkperf.engine.fio_process import FioProcess
from tkperf.model.errors import EngineError, LostAtGateError
from tkperf.model.workload import Step

# The time, in s, before the start of a load at which its fio process is started. fio needs a third of a second from its
# start to the gate. If the current step keeps the CPUs busy, fio needs several times as long.
PREPARE_AHEAD_S = 3.0
# On a slow machine, fio is started earlier. The time before the load is this factor times the time that fio recently
# needed from its start to the gate.
START_MARGIN = 2.0
# The interval at which tkperf checks whether all threads have reached their gate.
GATE_POLL_S = 0.005


def step_of(load: EngineLoad) -> Step:
    """Return the step with which fio is started. For a stream, the step lasts as long as the stream may last."""
    if isinstance(load, Step):
        return load
    return Step(workload=load.workload, duration_s=load.longest_s)


class Waiting:
    """The waiting processes, no more than one for each load. No more than one of these processes is released at
    a time.
    """

    def __init__(self, start: Callable[[EngineLoad], FioProcess]) -> None:
        self._start = start
        self._prepared: dict[EngineLoad, FioProcess] = {}
        self._start_took_s = 0.0

    @property
    def ahead_s(self) -> float:
        """Return how many seconds before the start of a load its fio process should be started."""
        return max(PREPARE_AHEAD_S, START_MARGIN * self._start_took_s)

    def note_start(self, process: FioProcess) -> None:
        """Record how long the start of a released process took. A slow start affects only the next few steps."""
        self._start_took_s = max(process.start_took_s, self._start_took_s / 2)

    def __contains__(self, load: EngineLoad) -> bool:
        return load in self._prepared

    def __bool__(self) -> bool:
        return bool(self._prepared)

    @property
    def let_go_load(self) -> EngineLoad | None:
        """Return the load that was released. None means that no load was released."""
        return next((load for load in self._prepared if self._is_let_go(load)), None)

    @property
    def let_go_s(self) -> float | None:
        """Return the time at which a load was released, on the monotonic clock. None means that no load was
        released.
        """
        load = self.let_go_load
        return None if load is None else self._prepared[load].released_s

    def _is_let_go(self, load: EngineLoad) -> bool:
        return self._prepared[load].released_s is not None

    def prepare(self, load: EngineLoad) -> None:
        """Start the fio process of a load, unless the process is already waiting. If the start fails, a later call
        repeats it.
        """
        if load not in self._prepared:
            with suppress(EngineError):
                self._prepared[load] = self._start(load)

    def let_go(self, load: EngineLoad, keep_up: Callable[[float], bool]) -> None:
        """Release the I/O of a load as soon as all its threads wait at the gate.

        The method waits no longer than ``ahead_s``, the time in which the threads should have arrived. If the threads
        arrive later, or are lost, the engine handles this case when it requests the load.

        Args:
            keep_up: a function that accepts the output of the current load until a moment on the monotonic clock. The
                function returns False if the load has ended.
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
        with suppress(LostAtGateError):  # the engine starts the lost process again later
            process.release()

    def take(self, load: EngineLoad) -> FioProcess | None:
        """Return the process for a load. The process waits at its gate, or its gate is open. Other processes continue
        to wait until ``discard`` is called.
        """
        return self._prepared.pop(load, None)

    def discard(self, *, but: Collection[EngineLoad] = ()) -> None:
        """Stop the processes of all loads except those in ``but``, including a process whose gate was opened."""
        for load in [load for load in self._prepared if load not in but]:
            self._prepared.pop(load).stop()

    def stop_io(self) -> None:
        """Stop the process whose gate was opened because of a wrong prediction. The other processes continue to
        wait.
        """
        for load in list(self._prepared):
            if self._is_let_go(load):
                self._prepared.pop(load).stop()
