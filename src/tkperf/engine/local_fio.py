"""fio on this host: started behind a gate, on devices that permits hold, inheriting their locks.

This module has all that is local about the fio engine: an engine that reaches fio on other hosts needs
a replacement for this module only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.permit import ErasePermit
from tkperf.engine.fio_job import count_threads
from tkperf.engine.fio_process import FioProcess
from tkperf.engine.gate import Gate
from tkperf.engine.work_folder import WorkFolder

# Makes the job file from the paths of the written devices and the gate's command.
Render = Callable[[Sequence[str], str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A mapping of a drive that is measured instead of the drive. Fills precondition the part of the drive they name.

    ``path`` is the name of the mapping, whichever node it has just now.
    """

    drive: ErasePermit
    path: str


class LocalFio:
    """A starter of fio processes, each on its way to its gate."""

    def __init__(self, permit: ErasePermit, fill_permits: Sequence[ErasePermit] = ()) -> None:
        """Take the permits. ``fill_permits`` are for the devices to precondition instead of the permit's device."""
        self._permit = permit
        self._fill_permits = tuple(fill_permits) or (permit,)
        self._folder = WorkFolder()
        self._started = 0

    def start(self, render: Render) -> FioProcess:
        """Start fio on the measured device.

        Raises:
            RefusedError: the permit is not in use.
            EngineError: fio cannot be started, or its job cannot be written anywhere.
        """
        return self._start((self._permit,), render)

    def start_fill(self, render: Render) -> FioProcess:
        """Start fio on the devices to precondition. Raises as ``start`` does."""
        return self._start(self._fill_permits, render)

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
