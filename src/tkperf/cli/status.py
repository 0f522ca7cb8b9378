"""tkperf status: show the progress of runs, from their files and locks alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tkperf.cli.following import find_clock_s, look_first, outline_first
from tkperf.cli.streams import complain
from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import RunFileError
from tkperf.model.record import LogEntry, RunRecord, RunStatus
from tkperf.model.units import format_duration, format_durations
from tkperf.render.terminal.console import open_console, plain
from tkperf.runfile.run_rows import ENDED_BY_KILL
from tkperf.runfile.writers import Writer, find_running, find_writer
from tkperf.runner.progress import Standing, describe_place, find_standing

KILLED = "killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Progress of one run. Fields are the keys of ``--json``; null means not known, or not so."""

    run_file: str
    name: str
    device: str | None
    state: str
    because: str | None
    pid: int | None
    user: str | None
    test: str | None
    test_number: int | None
    tests: int
    place: str | None
    fill_done: float | None
    elapsed_s: float | None
    remaining_shortest_s: float | None
    remaining_longest_s: float | None
    warnings: int
    disturbed_steps: int | None


def status(run_files: tuple[Path, ...], as_json: bool) -> None:
    """Show the progress of runs."""
    states: list[RunState] = []
    failed: list[RunFileError] = []
    unseen: list[Writer] = []
    paths = list(run_files)
    if not paths:
        paths, unseen = _find_all()
    for path in paths:
        try:
            states.append(read_state(path))
        except RunFileError as error:
            failed.append(error)
    if as_json:
        click.echo(json.dumps(_as_json(states, unseen), indent=2))
    elif states:
        open_console().print(_table(states))
    for writer in unseen:
        why = (
            "only that user and root see which run that is"
            if writer.path is None
            else f"its run file {writer.path} cannot be reached from here"
        )
        complain(
            f"tkperf: process {writer.pid} of user {writer.user or 'not known'} runs tkperf, too; {why}"
        )
    # Damage to one file does not hide the others.
    for damage in failed[:-1] if run_files else failed:
        complain(f"tkperf: {damage}")
    if failed and run_files:
        raise failed[-1]
    if not (states or failed or unseen or as_json):
        complain("tkperf: no run is under way, and there is no run file in this folder")


def read_state(path: Path) -> RunState:
    """Return the progress of the run in a file.

    Raises:
        RunFileError: see RunFile.
    """
    outline = outline_first(path)
    record, log = outline.record, tuple[LogEntry, ...]()
    if record.status is not RunStatus.COMPLETE:
        # The log gives the place of the run, but takes long to read.
        growth = look_first(path)
        record, log = growth.record, growth.log
    running = record.status is RunStatus.RUNNING
    writer = _find(path) if running else None
    standing = find_standing(record, log)
    now_s = find_clock_s(record) if running else None
    remaining = None if now_s is None else standing.remaining_s(now_s)
    return RunState(
        run_file=str(path),
        name=record.info.name,
        device=_device_of(record),
        state=_state_of(record),
        because=record.ended_because,
        pid=None if writer is None else writer.pid,
        user=None if writer is None else writer.user,
        test=standing.test,
        test_number=standing.number or None,
        tests=standing.tests,
        place=describe_place(standing) or None,
        fill_done=_fill_done(record, standing),
        elapsed_s=now_s if running else _ended_s(record),
        remaining_shortest_s=None if remaining is None else remaining[0],
        remaining_longest_s=None if remaining is None else remaining[1],
        warnings=len(record.warnings),
        disturbed_steps=outline.disturbed_steps,
    )


def _find(path: Path) -> Writer | None:
    try:
        return find_writer(path)
    except OSError:
        return None


def _find_all() -> tuple[list[Path], list[Writer]]:
    """Return the run files under way and in this folder, and the writers whose run file is out of reach."""
    paths, unseen = [], []
    for writer in find_running():
        if writer.path is not None and writer.path.is_file():
            in_here = writer.path.parent == Path.cwd()
            paths.append(Path(writer.path.name) if in_here else writer.path)
        else:
            unseen.append(writer)
    here = sorted(path for path in Path().glob(f"*{RUN_FILE_SUFFIX}") if path.is_file())
    running = {path.resolve() for path in paths}
    return (
        [*sorted(paths), *(path for path in here if path.resolve() not in running)],
        unseen,
    )


def _state_of(record: RunRecord) -> str:
    if record.info.imported:
        return "imported"
    if record.status is RunStatus.INTERRUPTED and record.ended_utc is None:
        return KILLED
    return record.status.value


def _device_of(record: RunRecord) -> str | None:
    facts = record.info.device
    words = [facts.get("model"), facts.get("serial"), facts.get("path")]
    return ", ".join(str(word) for word in words if word) or None


def _fill_done(record: RunRecord, standing: Standing) -> float | None:
    """Return the share of a fill under way that is written, by its last kept minute."""
    for test in record.tests:
        step = test.under_way
        if step is not None and test.name == standing.test and step.planned_bytes:
            return min(1.0, step.measured_so_far.write.bytes / step.planned_bytes)
    return None


def _ended_s(record: RunRecord) -> float | None:
    return max((test.ended_s for test in record.tests if test.ended_s is not None), default=None)


def _as_json(states: Sequence[RunState], unseen: Sequence[Writer]) -> dict[str, object]:
    return {
        "runs": [asdict(state) for state in states],
        "not_visible": [{"pid": writer.pid, "user": writer.user} for writer in unseen],
    }


def _table(states: Sequence[RunState]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("device", overflow="fold")
    table.add_column("state", overflow="fold")
    table.add_column("at", overflow="fold")
    for name in ("elapsed", "remaining"):
        table.add_column(name)
    for name in ("warnings", "disturbed steps"):
        table.add_column(name, justify="right")
    for state in states:
        table.add_row(
            plain(state.run_file),
            plain(state.device or "not known"),
            plain(_describe_state(state)),
            plain(_describe_place(state)),
            "-" if state.elapsed_s is None else format_duration(state.elapsed_s),
            _describe_remaining(state),
            str(state.warnings),
            "-" if state.disturbed_steps is None else str(state.disturbed_steps),
        )
    return table


def _describe_state(state: RunState) -> str:
    if state.state == RunStatus.RUNNING:
        who = "a process not seen from here" if state.pid is None else f"process {state.pid}"
        return f"running, {who}"
    if state.state == KILLED:
        return f"{KILLED}: {ENDED_BY_KILL}"
    return f"{state.state}: {state.because}" if state.because else state.state


def _describe_place(state: RunState) -> str:
    if state.test is None or state.state == RunStatus.COMPLETE:
        return "-" if not state.tests else f"{state.tests} of {state.tests} tests"
    share = "" if state.fill_done is None else f" {state.fill_done:.0%}"
    place = f": {state.place}{share}" if state.place else ""
    return f"test {state.test_number} of {state.tests}, {state.test}{place}"


def _describe_remaining(state: RunState) -> str:
    if state.remaining_shortest_s is None or state.remaining_longest_s is None:
        return "-"
    return format_durations(state.remaining_shortest_s, state.remaining_longest_s)
