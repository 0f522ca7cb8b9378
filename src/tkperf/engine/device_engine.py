"""The interface of an engine for real devices. It covers the choice of a kernel interface before a run, and the start
on a device for which a permit exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tkperf.engine import PROBE_S, ChosenEngine, Engine, RequiredIo, RunSeeds
from tkperf.model.workload import ActiveRange

if TYPE_CHECKING:
    from tkperf.device.permit import ErasePermit


@dataclass(frozen=True, slots=True, kw_only=True)
class PermittedDevice:
    """A device, file or RAID set that a run measures, with the permits for all devices that the run writes.

    Attributes:
        permit: the permit for the measured device.
        ioengine: the result of ``choose_ioengine``.
        member_permits: the permits for the members of a set. A fill writes each member completely instead of the set.
        drive_permit: the permit for the drive below a mapping of segments. A fill writes this drive instead of the
            mapping.
        shown_path: the stable name of the mapping, which does not depend on the current device node. The job texts that
            users see contain this name. None means that the job texts contain the path of the measured device.
    """

    permit: ErasePermit
    ioengine: ChosenEngine
    active_range: ActiveRange
    member_permits: tuple[ErasePermit, ...] = ()
    drive_permit: ErasePermit | None = None
    shown_path: str | None = None

    @property
    def fill_permits(self) -> tuple[ErasePermit, ...]:
        """Return the permits of the devices that a fill writes."""
        return ((self.drive_permit,) if self.drive_permit is not None else self.member_permits) or (self.permit,)


class DeviceEngine(Protocol):
    """An engine for real devices before a run: the programs that it needs on this host, and the function that starts
    the engine.

    Attributes:
        name: the engine's name in messages, which is also the name of its program.
        programs: the programs without which the engine cannot measure, with their purpose.
        ioengines: the interfaces to the kernel, with the preferred interface first. The name of an interface in a
            request also selects the engine, so no two engines may have the same interface.
        variable: the environment variable that contains the user's choice of the engine's program.
    """

    name: str
    programs: Mapping[str, str]
    ioengines: tuple[str, ...]
    variable: str

    def find_named_program(self) -> str | None:
        """Return the program that the user chose with the environment variable ``variable``. None means that there is
        no choice.
        """
        ...

    def find_version(self) -> str:
        """Return the version of the installed program.

        Raises:
            EngineError: the program is missing, too old, or reports no version.
        """
        ...

    def find_limits(self) -> tuple[str, ...]:
        """Return sentences about the functions that the installed version lacks. The subject of each sentence is the
        engine.

        Raises:
            EngineError: the same errors as for ``find_version``.
        """
        ...

    def choose_ioengine(
        self,
        path: str,
        block_bytes: int,
        wanted: str | None,
        io: RequiredIo,
        *,
        shown_path: str | None = None,
        direct: bool = True,
    ) -> ChosenEngine:
        """Return the first interface to the kernel with which the engine can read the device.

        Args:
            shown_path: the name of the device in messages. None means ``path``.
            direct: whether to bypass the page cache, as runs do.

        Raises:
            UsageError: the engine has no interface ``wanted``.
            EngineError: no interface works. The message contains the reasons.
        """
        ...

    def refuse_io(self, wanted: str | None, io: RequiredIo) -> None:
        """Check whether the installed version can do the I/O. The check needs no device.

        Raises:
            UsageError: the same error as for ``choose_ioengine``.
            EngineError: the version cannot do the I/O on any device, or the program cannot run.
        """
        ...

    def find_readable_file(self) -> str | None:
        """Return a file on which ``choose_ioengine`` can be tried without a device. None means that there is no such
        file.
        """
        ...

    def find_rounding(self) -> str | None:
        """Return the version of the installed program if this version rounds queue depths up. None means that this
        version does not round queue depths up.

        Raises:
            EngineError: the same errors as for ``find_version``.
        """
        ...

    def read_bytes_per_s(self, path: str, capacity_bytes: int, *, seconds: int = PROBE_S) -> float:
        """Return the rate of sequential reads from the start of the device, in bytes per second.

        Raises:
            EngineError: the engine cannot read the device. The message contains the reason.
        """
        ...

    def start(self, device: PermittedDevice, *, version: str) -> tuple[Engine, RunSeeds | None]:
        """Return the engine for a permitted device, and the seeds of the engine. The engine does not start any
        I/O yet.

        The seeds are None if the engine draws no random numbers.

        Args:
            version: the result of ``find_version``.
        """
        ...
