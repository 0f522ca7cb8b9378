"""The execution of a run. Every event of the run is stored in its run file."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.identity import TargetKind
from tkperf.device.kernel_watch import KernelLog
from tkperf.host.audit.audited_host import DAY_S
from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import (
    EngineError,
    Interrupted,
    RunFileError,
    TkperfError,
    UsageError,
    is_lack_of_resources,
    reason_of,
)
from tkperf.model.host_use import HostLooks
from tkperf.model.record import RunNote
from tkperf.model.run_info import RunInfo
from tkperf.model.units import format_capacity
from tkperf.pipeline.device_under_test import Equipment
from tkperf.pipeline.fitted_profile import FittedProfile
from tkperf.pipeline.host_check import HostState, prepared_host
from tkperf.pipeline.resume_plan import ResumePlan, build_resumed
from tkperf.pipeline.run_disclosure import RunTitle, build_run_info
from tkperf.pipeline.run_plan import RunPlan
from tkperf.pipeline.run_request import require_name
from tkperf.pipeline.simulation import relive
from tkperf.runfile.writer import RunFileWriter, describe_existing
from tkperf.runfile.writers import SQLITE_ENDINGS
from tkperf.runner.events import Event, Observer
from tkperf.runner.replay import Resumed
from tkperf.runner.runner import RunParts, execute_run
from tkperf.system.host_looks import ProcHostLooks
from tkperf.system.output_files import make_folder

# The facts about a run, its warnings, and the part of the run before an interruption.
_Beginning = tuple[RunInfo, Sequence[RunNote], Resumed | None]

# On a simulated drive, a day of a stream needed 9.1 MB for its seconds, and a day of a mix 13.8 MB
# (bench/three_days.py). Steps of a minute, each with histograms and the report of fio, need the same amount again. The
# sum is rounded up.
RUN_FILE_BYTES_A_DAY = 30_000_000
# Each further load that runs at the same time needs at most as much as a stream of reads or writes, or as a stream of
# writes with flushes. A day of four loads needed 39 MB in total.
STREAM_BYTES_A_DAY = 18_000_000
LEAST_FREE_BYTES = 4_000_000

# A function that opens the observers of all events. Its argument is an additional observer, which receives notes about
# events that the opened observers could not show.
OpenViews = Callable[[Observer], AbstractContextManager[Sequence[Observer]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The place of a run file: ``NAME.tkperf`` in a folder. ``other_files`` are the paths of all other files that the
    run writes.

    Raises:
        UsageError: the name cannot be the name of a file.
    """

    name: str
    folder: Path
    other_files: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        require_name(self.name)

    @property
    def run_path(self) -> Path:
        return self.folder / f"{self.name}{RUN_FILE_SUFFIX}"

    def require_free(self, device: str) -> None:
        """Check that results can be stored. Call this method before any other step of a run. The output folder is
        created if it does not exist.

        Raises:
            RunFileError: the name is in use, the folder cannot be written to, or the device is a file that the results
                would overwrite.
        """
        try:
            if os.path.lexists(self.run_path):
                raise RunFileError(describe_existing(self.run_path))
            self._refuse_side_files(device)
            make_folder(self.folder)
            probe = self.folder / f".tkperf-{secrets.token_hex(8)}.probe"
            probe.touch(exist_ok=False)
            probe.unlink()
        except UsageError as error:
            raise RunFileError(f"tkperf cannot write to the output folder: {error}") from error
        except OSError as error:
            raise RunFileError(
                f"tkperf cannot write to the output folder {self.folder}: {reason_of(error)}. Choose another folder "
                "with --output"
            ) from error

    def _refuse_side_files(self, device: str) -> None:
        """Refuse to begin if files already exist that SQLite would use together with the run file. Also refuse a device
        that is one of the files of the run.
        """
        sides = [Path(f"{self.run_path}{ending}") for ending in SQLITE_ENDINGS]
        for path in sides:
            if os.path.lexists(path):
                raise RunFileError(
                    f"{path} exists without its run file and may contain the last steps of an earlier run, "
                    f"{self.name}. Move this file away, or choose another NAME"
                )
        target = Path(os.path.realpath(device))
        for path in (self.run_path, *self.other_files, *sides):
            if Path(os.path.realpath(path)) == target:
                raise RunFileError(
                    f"tkperf would write results to {device}, which is the file to be measured. Choose another NAME"
                )

    def require_space(self, fitted: FittedProfile) -> None:
        """Check that the folder has space for the run file, even if the run takes as long as possible.

        Raises:
            RunFileError: there is too little free space. A file system that does not report its free space passes the
                check.
        """
        require_space(self.folder, [find_file_bytes(fitted)])


def find_file_bytes(fitted: FittedProfile) -> int:
    """Return the size of the run file if the run takes as long as possible."""
    grown_bytes = sum(
        test.longest_s / DAY_S * (RUN_FILE_BYTES_A_DAY + (test.most_streams - 1) * STREAM_BYTES_A_DAY)
        for test in fitted.tests
    )
    return LEAST_FREE_BYTES + round(grown_bytes)


def require_space(folder: Path, files_bytes: Sequence[int]) -> None:
    """Check that a folder has space for run files of these sizes.

    Raises:
        RunFileError: there is too little free space. A file system that does not report its free space passes the
            check.
    """
    needed_bytes = sum(files_bytes)
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError:
        return
    if free_bytes < needed_bytes:
        count = len(files_bytes)
        files, runs = ("the run file", "the run takes") if count == 1 else (f"the {count} run files", "the runs take")
        raise RunFileError(
            f"{folder} has only {format_capacity(free_bytes)} of free space, but {files} may need "
            f"{format_capacity(needed_bytes)} if {runs} as long as possible. Make room on the disk, or choose another "
            "folder with --output"
        )


def run_to_file(
    plan: RunPlan,
    equipment: Equipment,
    destination: Destination,
    title: RunTitle,
    *,
    watch: OpenViews,
    began: Callable[[], None] = lambda: None,
    ended: Callable[[], None] = lambda: None,
) -> None:
    """Execute a run with open equipment, and store every event in the run file.

    Args:
        began: a function that is called once, before the first I/O, when the run file contains the beginning of the
            run. The call is later if the file could not be written at first.
        ended: a function that is called after the run file was closed, even after an error.

    Raises:
        TkperfError: an error ended the run early. The run file contains everything that was measured before the error.
    """

    def begin(host: HostState) -> _Beginning:
        info = build_run_info(plan.request, title, equipment, host)
        return info, (*plan.warnings, *equipment.warnings), None

    _keep(plan, begin, equipment, destination, watch=watch, began=began, ended=ended)


def resume_to_file(
    plan: ResumePlan,
    equipment: Equipment,
    destination: Destination,
    command_line: tuple[str, ...] = (),
    *,
    watch: OpenViews,
    began: Callable[[], None] = lambda: None,
    ended: Callable[[], None] = lambda: None,
) -> None:
    """Continue a run with open equipment, and store every event in its run file.

    Raises:
        RunFileError: another process changed the run file after it was read, or the file cannot be written to.
        TkperfError: an error ended the run early. The run file contains everything that was measured before the error.
    """

    def go_on(host: HostState) -> _Beginning:
        plan.require_unchanged()
        relive(equipment.engine, plan.log, equipment.fitted)
        resumptions = len(plan.record.resumptions) + 1
        equipment.go_on_with_seed(plan.info.seed, resumptions=resumptions)
        return plan.info, plan.warnings, build_resumed(plan, equipment, host, command_line)

    _keep(plan.plan, go_on, equipment, destination, watch=watch, began=began, ended=ended, appends=True)


def _keep(
    plan: RunPlan,
    begin: Callable[[HostState], _Beginning],
    equipment: Equipment,
    destination: Destination,
    *,
    watch: OpenViews,
    began: Callable[[], None],
    ended: Callable[[], None],
    appends: bool = False,
) -> None:
    """Execute a run. ``begin`` is called when the host is prepared and the run file is open, and returns the beginning
    of the run file.
    """
    destination.require_space(equipment.fitted)
    request = plan.request
    with prepared_host(
        plan.audit, plan.dut.drives, tune=request.tune, lasts_s=plan.longest_s, workloads=plan.fitted.workloads
    ) as host:
        views: list[Observer] = []

        def show(event: Event) -> None:
            for view in views:
                view(event)

        writer = RunFileWriter(destination.run_path, observer=show, appends=appends)
        has_event = is_announced = False

        def announce_beginning(_: Event) -> None:
            nonlocal has_event, is_announced
            has_event = True
            if not is_announced and writer.keeps_up:
                is_announced = True
                began()

        equipment.began = True
        try:
            with _say_what_is_kept(destination, writer):
                info, warnings, resumed = begin(host)
                with watch(writer) as opened, _looking_at_host(equipment) as looks:
                    views += opened
                    execute_run(
                        RunParts(
                            info=info,
                            tests=tuple(test.test for test in equipment.fitted.tests),
                            profile=equipment.fitted.profile,
                            engine=equipment.engine,
                            target=equipment.target,
                            observers=(writer, announce_beginning, *views),
                            clock=equipment.clock,
                            warnings=warnings,
                            counters=equipment.counters,
                            fill_counters=equipment.fill_counters,
                            host=looks,
                            strict=request.strict,
                            resumed=resumed,
                            telemetry=equipment.telemetry,
                        )
                    )
        except KeyboardInterrupt:
            if has_event or appends:
                raise
            # A file in which no run has begun would look like a run that was killed.
            destination.run_path.unlink(missing_ok=True)
            raise Interrupted("stopped by the user before the run began; nothing was kept") from None
        finally:
            writer.close()
            ended()


@contextmanager
def _looking_at_host(equipment: Equipment) -> Iterator[HostLooks | None]:
    """Yield a source of readings of the host and of its kernel log about the device. For a simulated drive,
    yield None.
    """
    identity = equipment.fitted.identity
    if identity.kind is TargetKind.SIMULATED:
        yield None
        return
    log = KernelLog([identity.major_minor] if identity.major_minor else [])
    looks = ProcHostLooks(log.read, siblings=equipment.siblings)
    try:
        yield looks
    finally:
        looks.close()
        log.close()


@contextmanager
def _naming_lack() -> Iterator[None]:
    """Raise EngineError if this process or host lacks descriptors or memory. Such a failure can occur at any point of a
    run.
    """
    try:
        yield
    except OSError as error:
        if not is_lack_of_resources(error):
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        raise EngineError(f"the run cannot continue: {where}{reason_of(error)}") from error


@contextmanager
def _say_what_is_kept(destination: Destination, writer: RunFileWriter) -> Iterator[None]:
    """Add two texts to an error that ends a run: which data could not be stored, and how to see the stored data."""
    try:
        with _naming_lack():
            yield
    except TkperfError as error:
        text = str(error)
        if writer.lost is not None and writer.lost not in text:
            text += f"; {writer.lost}"
        path = destination.run_path
        hint = f"see the results: tkperf show {path}, continue: tkperf resume {path}"
        if not path.exists():
            hint = f"{path} no longer exists: if it was moved, give tkperf resume its new name"
        raise type(error)(f"{text}; {hint}") from error
