"""One run from the command line: prepare, show the plan, ask, execute, show the results."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from tkperf import __version__
from tkperf.analysis.results import analyse
from tkperf.cli.options import SsdOptions
from tkperf.cli.preparation import Preparation, prepare
from tkperf.cli.progress import open_observers
from tkperf.cli.tables import describe_device, print_results
from tkperf.device.identity import TargetKind
from tkperf.device.permit import ErasePermit, grant_permit
from tkperf.device.purge import purge
from tkperf.device.safety import find_objections
from tkperf.engine import Engine
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_setup import choose_ioengine, find_fio_version
from tkperf.engine.simulated import SimulatedEngine, find_preset
from tkperf.errors import RefusedError, RunFileError, TkperfError
from tkperf.host import read_host
from tkperf.plan import Case, forecast
from tkperf.record import RunInfo, RunWarning
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner import PurgeResult, Run, Target, execute
from tkperf.units import format_capacity, format_duration

FILE_NOTICE = (
    "FILE TARGET: measured through a file system on a scratch file, not on a device of its own"
)
SIMULATED_NOTICE = "SIMULATED: these numbers come from a model, no device was measured"
NO_PURGE_NOTICE = "NOT PURGED: the device was not put in as-new state before each test (--no-purge)"


def run_session(options: SsdOptions) -> None:
    """The whole of ``tkperf ssd``."""
    console = Console(stderr=True)
    _require_free_name(options)
    preparation = prepare(options)
    try:
        _show_plan(options, preparation, console)
        _execute(options, preparation)
    finally:
        # A scratch file that holds no result is of no use to anybody.
        if preparation.created and not options.run_path.exists():
            Path(preparation.identity.path).unlink(missing_ok=True)
    if options.progress != "json":
        print_results(analyse(read_run(options.run_path)), Console())
        console.print(
            f"\nrun file: {options.run_path}\nreport:   tkperf report {options.run_path}",
            highlight=False,
            soft_wrap=True,
        )


def _require_free_name(options: SsdOptions) -> None:
    """Find out before anything else that results could not be kept."""
    if options.run_path.exists():
        raise RunFileError(
            f"{options.run_path} exists already and is not overwritten: choose another NAME or "
            "another --output folder"
        )
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        probe = options.folder / f".{options.name}.{os.getpid()}.probe"
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise RunFileError(
            f"cannot write to the output folder {options.folder}: {error.strerror}"
        ) from error


def _show_plan(options: SsdOptions, preparation: Preparation, console: Console) -> None:
    """What is about to happen, on stderr, before the question."""
    if options.quiet or options.progress == "json":
        return
    length_bytes = preparation.active_range.length_bytes
    shortest_s, longest_s = (
        sum(
            forecast(
                test.procedure(preparation.profile, length_bytes),
                (),
                case,
                active_range_bytes=length_bytes,
            ).duration_s
            for test in preparation.tests
        )
        for case in (Case.BEST, Case.WORST)
    )
    demand = preparation.profile.demand
    lines = [
        f"[bold]device[/bold]   {describe_device(preparation.identity.facts())}",
        f"[bold]profile[/bold]  {preparation.profile.title}, TC{demand.jobs}/QD{demand.io_depth}, "
        f"active range {format_capacity(length_bytes)}",
        f"[bold]tests[/bold]    {', '.join(test.title for test in preparation.tests)}: "
        f"{format_duration(shortest_s)} to {format_duration(longest_s)}, without purging",
        *(f"[yellow]warning[/yellow]  {warning}" for warning in preparation.warnings),
    ]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _confirmed_id(options: SsdOptions, preparation: Preparation) -> str:
    """The name of the device that the user agrees to have erased."""
    identity = preparation.identity
    if options.yes_destroy is not None:
        return options.yes_destroy
    # A scratch file that tkperf has just made holds nothing that could be lost.
    if options.force or preparation.created:
        return identity.confirm_id
    what = "serial number" if identity.serial else "path"
    if not sys.stdin.isatty():
        raise RefusedError(
            f"all data on {identity.path} will be destroyed and nobody is there to ask: "
            f"confirm with --yes-destroy {identity.confirm_id}"
        )
    return str(
        click.prompt(
            f"ALL DATA on {identity.path} will be destroyed. Type its {what} "
            f"({identity.confirm_id}) to go on",
            err=True,
            default="",
            show_default=False,
        )
    ).strip()


def _execute(options: SsdOptions, preparation: Preparation) -> None:
    identity, active_range = preparation.identity, preparation.active_range
    if identity.kind is TargetKind.SIMULATED:
        model = find_preset(identity.path.removeprefix("sim:"))
        simulated = SimulatedEngine(model, active_range.length_bytes)
        rehearsal = _SimulatedTarget(simulated, options.no_purge)
        _run(options, preparation, simulated, rehearsal, ioengine="simulated")
        return
    version = find_fio_version()
    permit = _ask_permit(options, preparation)
    try:
        ioengine = choose_ioengine(
            identity.path,
            identity.logical_block_bytes,
            options.ioengine,
            jobs=preparation.profile.demand.jobs,
            io_depth=preparation.profile.demand.io_depth,
        )
        engine = FioEngine(
            permit.redeem(),
            ioengine=ioengine,
            active_range=active_range,
            version=version,
            cpus=len(os.sched_getaffinity(0)),
        )
        target = _PermittedTarget(permit, options.no_purge)
        _run(options, preparation, engine, target, ioengine)
    finally:
        permit.release()


def _ask_permit(options: SsdOptions, preparation: Preparation) -> ErasePermit:
    """Refuse what must be refused before asking; ask; then let the check make the permit."""
    objections = find_objections(preparation.identity)
    confirmed = _confirmed_id(options, preparation) if not objections else ""
    return grant_permit(preparation.identity, confirmed_id=confirmed)


def _run(
    options: SsdOptions,
    preparation: Preparation,
    engine: Engine,
    target: Target,
    ioengine: str,
) -> None:
    writer = RunFileWriter(options.run_path)
    try:
        with _say_what_is_kept(options), _stop_signals(), open_observers(options) as observers:
            execute(
                Run(
                    info=_run_info(options, preparation, engine, ioengine),
                    tests=preparation.tests,
                    profile=preparation.profile,
                    engine=engine,
                    target=target,
                    observers=(writer, *observers),
                    clock=engine.clock if isinstance(engine, SimulatedEngine) else time.monotonic,
                    warnings=tuple(
                        RunWarning(code="block-size-left-out", text=text)
                        for text in preparation.warnings
                    ),
                )
            )
    finally:
        writer.close()


def _run_info(
    options: SsdOptions, preparation: Preparation, engine: Engine, ioengine: str
) -> RunInfo:
    identity = preparation.identity
    notices = []
    if identity.kind is TargetKind.SIMULATED:
        notices.append(SIMULATED_NOTICE)
    if identity.kind is TargetKind.FILE:
        notices.append(FILE_NOTICE)
    if preparation.profile.notice:
        notices.append(preparation.profile.notice)
    if options.no_purge:
        notices.append(NO_PURGE_NOTICE)
    return RunInfo(
        name=options.name,
        suite="ssd",
        tkperf_version=__version__,
        fio_version=engine.version,
        engine=ioengine,
        command_line=options.command_line,
        started_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        profile_name=preparation.profile.name,
        profile=preparation.profile.as_plain_data(),
        options={
            "jobs": options.jobs,
            "io_depth": options.io_depth,
            "step_s": options.step_s,
            "active_range": options.active_range,
            "no_purge": options.no_purge,
        },
        device=identity.facts(),
        host=read_host(),
        active_range_offset_bytes=preparation.active_range.offset_bytes,
        active_range_length_bytes=preparation.active_range.length_bytes,
        device_description=_read_text(options.description),
        feature_matrix=_read_text(options.feature_matrix),
        notices=tuple(notices),
    )


def _read_text(path: Path | None) -> str | None:
    return None if path is None else path.read_text(encoding="utf-8", errors="replace")


class _PermittedTarget:
    """A device under its permit."""

    def __init__(self, permit: ErasePermit, no_purge: bool) -> None:
        self._permit = permit
        self._no_purge = no_purge

    def recheck(self) -> None:
        self._permit.recheck()

    def purge(self) -> PurgeResult:
        if self._no_purge:
            return PurgeResult(method="none", note="--no-purge")
        return PurgeResult(method=purge(self._permit))


class _SimulatedTarget:
    def __init__(self, engine: SimulatedEngine, no_purge: bool) -> None:
        self._engine = engine
        self._no_purge = no_purge

    def recheck(self) -> None:
        """Nothing can change."""

    def purge(self) -> PurgeResult:
        if self._no_purge:
            return PurgeResult(method="none", note="--no-purge")
        self._engine.purge()
        return PurgeResult(method="simulated")


@contextmanager
def _say_what_is_kept(options: SsdOptions) -> Iterator[None]:
    """An error that ends a run also says how to see what was measured before."""
    try:
        yield
    except TkperfError as error:
        raise type(error)(
            f"{error}; see what was measured: tkperf show {options.run_path}"
        ) from error


@contextmanager
def _stop_signals() -> Iterator[None]:
    """End the run in order on Ctrl-C, SIGTERM or a lost terminal; further ones are ignored."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(*_: object) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
