"""What waits at its gate: the fio processes of all that may come next, until one of them is let go."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from tkperf.engine import Load
from tkperf.engine.fio_process import FioProcess
from tkperf.model.errors import EngineError, LostAtGateError
from tkperf.model.workload import Step

# fio needs a third of a second from its start to the gate, and several times that on a host whose
# CPUs the step under way keeps busy.
PREPARE_AHEAD_S = 3.0
# A slow machine needs more: so many times as long as fio took to come to its gate of late.
START_MARGIN = 2.0
# How often threads that should wait at their gate by now are looked for.
GATE_POLL_S = 0.005


@dataclass(slots=True)
class Prepared:
    """A fio for a load. ``starts_bytes``: where its sequential jobs start; empty for a random one."""

    load: Load
    seed: int
    starts_bytes: tuple[int, ...]
    process: FioProcess


def step_of(load: Load) -> Step:
    """The step that fio is started with: a stream is one that lasts as long as the stream may."""
    if isinstance(load, Step):
        return load
    return Step(workload=load.workload, duration_s=load.longest_s)


class Waiting:
    """At most one process for each load; at most one of them is let go at a time."""

    def __init__(self, start: Callable[[Load], Prepared]) -> None:
        self._start = start
        self._prepared: dict[Load, Prepared] = {}
        self._start_took_s = 0.0

    @property
    def ahead_s(self) -> float:
        """How long before it may be let go a load's fio is to be started."""
        return max(PREPARE_AHEAD_S, START_MARGIN * self._start_took_s)

    def note_start(self, process: FioProcess) -> None:
        """Learn from one that was released; what was slow once is forgotten in a few steps."""
        self._start_took_s = max(process.start_took_s, self._start_took_s / 2)

    def __contains__(self, load: Load) -> bool:
        return load in self._prepared

    def __bool__(self) -> bool:
        return bool(self._prepared)

    @property
    def let_go_load(self) -> Load | None:
        """The one that was let go, if one was."""
        return next(
            (
                load
                for load, prepared in self._prepared.items()
                if prepared.process.released_s is not None
            ),
            None,
        )

    @property
    def let_go_s(self) -> float | None:
        """When one of them was let go, on the monotonic clock."""
        load = self.let_go_load
        return None if load is None else self._prepared[load].process.released_s

    def prepare(self, load: Load) -> None:
        """Start its fio, unless it waits already; what fails now is tried again in its time."""
        if load not in self._prepared:
            with suppress(EngineError):
                self._prepared[load] = self._start(load)

    def let_go(self, load: Load, keep_up: Callable[[float], bool]) -> None:
        """Let its I/O begin as soon as all its threads wait.

        That is waited for as long as they had to come, ``ahead_s``; should they come later, or be lost,
        the engine sees to it when asked for the load.

        Args:
            keep_up: takes in the output of what is under way until a moment; False: it has ended.
        """
        prepared = self._prepared.get(load)
        if prepared is None or prepared.process.released_s is not None:
            return
        self.stop_io()
        until_s = time.monotonic() + self.ahead_s
        while not prepared.process.at_gate:
            now_s = time.monotonic()
            if now_s > until_s or prepared.process.lost_at_gate:
                return
            if not keep_up(now_s + GATE_POLL_S):
                time.sleep(GATE_POLL_S)
        with suppress(LostAtGateError):  # the engine starts it again
            prepared.process.release()

    def take(self, load: Load) -> Prepared | None:
        """Hand out what waits, or was let go, for a load. The others stay until ``discard``."""
        return self._prepared.pop(load, None)

    def discard(self, *, but: Collection[Load] = ()) -> None:
        """Stop all of them, also one that was let go, except those that may be needed."""
        for load in [load for load in self._prepared if load not in but]:
            self._prepared.pop(load).process.stop()

    def stop_io(self) -> None:
        """End what was let go, by a guess that turned out wrong; what waits goes on waiting."""
        for load, prepared in list(self._prepared.items()):
            if prepared.process.released_s is not None:
                prepared.process.stop()
                del self._prepared[load]
