"""The fio jobs of steps and fills on one device, or on a set and its members: their text, and their start.

fio runs on this host, behind a gate, on devices that permits hold, and inherits their locks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from tkperf.device.permit import ErasePermit
from tkperf.engine.fio_job import FioTarget, count_threads, render_fill_job, render_step_job
from tkperf.engine.fio_process import FioProcess
from tkperf.engine.gate import Gate
from tkperf.engine.work_folder import WorkFolder
from tkperf.model.phases import Fill
from tkperf.model.workload import ActiveRange, Step

# Makes the job file from the paths of the written devices and the gate's command.
Render = Callable[[Sequence[str], str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A mapping of a drive that is measured instead of the drive. Fills precondition the part of the drive they name.

    ``path`` is the name of the mapping, whichever node it has just now.
    """

    drive: ErasePermit
    path: str


class DeviceJobs:
    """The fio jobs of one device or set.

    Texts name the devices so that anyone can run them again; fio itself gets the paths that the permits hold.
    """

    def __init__(
        self,
        permit: ErasePermit,
        *,
        ioengine: str,
        active_range: ActiveRange,
        fill_permits: Sequence[ErasePermit] = (),
        mapped: Mapped | None = None,
        clocksource: str | None = None,
    ) -> None:
        """Prepare the targets.

        Args:
            fill_permits: the devices to precondition instead, each of them whole: the members of a set.
        """
        self._permit = permit
        self._fill_permits = ((mapped.drive,) if mapped else tuple(fill_permits)) or (permit,)
        self._folder = WorkFolder()
        self._started = 0
        self._target = FioTarget(
            path=mapped.path if mapped else permit.identity.path,
            ioengine=ioengine,
            active_range=active_range,
            clocksource=clocksource,
        )
        self._fill_path = mapped.drive.identity.path if mapped else self._target.path
        self._members = tuple(
            FioTarget(
                path=member.identity.path,
                ioengine=ioengine,
                active_range=ActiveRange(
                    offset_bytes=0, length_bytes=member.identity.capacity_bytes
                ),
                clocksource=clocksource,
            )
            for member in fill_permits
        )

    @property
    def active_range(self) -> ActiveRange:
        return self._target.active_range

    @property
    def fills_members(self) -> bool:
        """Return whether fills precondition the members instead of the measured device."""
        return bool(self._members)

    def fill_bytes(self, phase: Fill) -> int:
        """Return the bytes that a fill writes, all passes and targets together."""
        targets = self._fill_targets(phase)
        return phase.passes * sum(target.active_range.length_bytes for target in targets)

    def fill_text(self, phase: Fill, seed: int) -> str:
        return render_fill_job(phase.workload, phase.passes, self._fill_targets(phase), seed=seed)

    def step_text(self, step: Step, seed: int, starts_bytes: tuple[int, ...] = ()) -> str:
        return render_step_job(step, self._target, starts_bytes=starts_bytes, seed=seed)

    def start_fill(self, phase: Fill, seed: int) -> FioProcess:
        """Start the fio of a fill, on its way to its gate. Raises as ``start_step`` does."""

        def render(paths: Sequence[str], prerun: str) -> str:
            targets = [
                replace(target, path=path)
                for target, path in zip(self._fill_targets(phase), paths, strict=True)
            ]
            return render_fill_job(phase.workload, phase.passes, targets, prerun=prerun, seed=seed)

        return self._start(self._fill_permits, render)

    def start_step(self, step: Step, seed: int, starts_bytes: tuple[int, ...] = ()) -> FioProcess:
        """Start the fio of a step, on its way to its gate.

        Raises:
            RefusedError: the permit is not in use.
            EngineError: fio cannot be started, or its job cannot be written anywhere.
        """

        def render(paths: Sequence[str], prerun: str) -> str:
            target = replace(self._target, path=paths[0])
            return render_step_job(
                step, target, starts_bytes=starts_bytes, prerun=prerun, seed=seed
            )

        return self._start((self._permit,), render)

    def impatient(self) -> AbstractContextManager[None]:
        """Return a context in which nothing waits for room for a job file: there will be another try."""
        return self._folder.impatient()

    def close(self) -> None:
        self._folder.close()

    def _start(self, permits: Sequence[ErasePermit], render: Render) -> FioProcess:
        self._started += 1
        name = f"{self._started:05d}"
        # The very devices that the permits hold, even if their names come to mean others.
        paths = [permit.path for permit in permits]
        held = {id(permit): permit for permit in (self._permit, *self._fill_permits)}
        inherit = [lock for permit in held.values() for lock in permit.locks]

        def start_in(work: Path) -> FioProcess:
            folder = work / name
            folder.mkdir(exist_ok=True)
            gate = Gate(folder, "gate")
            try:
                job_text = render(paths, gate.command)
                return FioProcess(
                    job_text,
                    folder,
                    gate,
                    self._permit.identity.path,
                    threads=count_threads(job_text),
                    inherit=inherit,
                )
            except BaseException:
                gate.close()
                raise

        return self._folder.write(start_in)

    def _fill_targets(self, phase: Fill) -> tuple[FioTarget, ...]:
        if self._members or phase.length_bytes is None:
            return self._members or (self._target,)
        filled = ActiveRange(offset_bytes=0, length_bytes=phase.length_bytes)
        return (replace(self._target, path=self._fill_path, active_range=filled),)
