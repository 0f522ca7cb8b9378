"""A host with a simulated drive. A test selects steps in which another program uses the CPUs of the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.builders import FreeTarget, run_info
from tkperf.engine.simulated import SimulatedEngine
from tkperf.model.host_use import CpuTimes, HostLook, Program
from tkperf.procedures import Test
from tkperf.procedures.profiles import Profile
from tkperf.runner.events import Event, Observer, StepStarted
from tkperf.runner.runner import RunParts, execute_run


@dataclass
class BusyHost:
    """A host with two CPUs. In selected steps, another program uses one of the CPUs, and fio waits for a CPU half of
    the time.
    """

    clock: Callable[[], float]
    chosen: Callable[[StepStarted], bool]
    burnt_s: float = 0.0
    waited_s: float = 0.0
    seen_s: float = 0.0
    busy: bool = False
    began: list[StepStarted] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        """Observe an event. When a step begins, decide whether the host is busy during this step."""
        if isinstance(event, StepStarted):
            self._pass()
            self.began.append(event)
            self.busy = self.chosen(event)

    def _pass(self) -> None:
        now_s = self.clock()
        if self.busy:
            self.burnt_s += now_s - self.seen_s
            self.waited_s += (now_s - self.seen_s) / 2
        self.seen_s = now_s

    def look(self) -> HostLook:
        self._pass()
        times = CpuTimes(
            cpus=2,
            user_s=self.burnt_s,
            system_s=0,
            interrupts_s=0,
            idle_s=2 * self.seen_s - self.burnt_s,
            iowait_s=0,
            steal_s=0,
        )
        burner = Program(name="burner", with_children_s=self.burnt_s)
        return HostLook(
            at_s=self.seen_s,
            cpus=times,
            allowed_cpus=times,
            own_cpu_s=0.0,
            own_user_s=0.0,
            processes={7: burner},
            threads={8: (self.seen_s, self.waited_s)},
        )

    look_at_threads = look


def run_beside(
    engine: SimulatedEngine,
    tests: Sequence[Test],
    profile: Profile,
    chosen: Callable[[StepStarted], bool],
    *observers: Observer,
    strict: bool = False,
    active_range_bytes: int = 1 << 30,
) -> BusyHost:
    """Run tests of tkperf on a host with two CPUs. In selected steps, another program uses one of the CPUs."""
    host = BusyHost(engine.clock, chosen)
    execute_run(
        RunParts(
            info=run_info(suite=tests[0].suites[0], active_range_length_bytes=active_range_bytes),
            tests=tests,
            profile=profile,
            engine=engine,
            target=FreeTarget(),
            observers=(host, *observers),
            clock=engine.clock,
            host=host,
            strict=strict,
        )
    )
    return host
