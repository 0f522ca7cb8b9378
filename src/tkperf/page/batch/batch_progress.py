"""Build the page of a running batch, with a line for each drive. Drives with problems are at the top."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from tkperf.analysis.batch_verdict import find_batch_remaining_s, is_simulated, judge_stages
from tkperf.model.batch_state import IN_TROUBLE, BatchState, DriveStage, DriveState
from tkperf.model.phases import Continuous, Fill, Idle, Purge, Round
from tkperf.model.units import (
    NOT_MEASURED,
    drop_controls,
    format_count,
    format_duration,
    format_durations,
    format_number,
    unit_for_people,
)
from tkperf.page.page import Cell, Column, Note, NotesView, ReportView, TableView, build_table
from tkperf.page.verdict_texts import NoteLevel, Verdict, word_verdict
from tkperf.pipeline.run_state import Brief, RunState

# The smallest number of characters of a serial number that the page shows.
_END_OF_SERIAL = 6
Runs = Mapping[int, RunState] | Mapping[int, Brief]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgressView:
    """The state of a running batch, with a row for each drive. Drives with problems are at the top.

    Attributes:
        verdict: the number of drives in each stage.
        alike: facts that all drives share, such as their model; empty if there are none.
        remaining: the time until all drives are done, in words.
        ends_s: the shortest and the longest time until all drives are done, in seconds. From these values, a view
            computes when the batch will end according to the clock of the host. None if the time is not known, or if
            the batch is simulated.
        table: the table of the drives. Each row is one line.
        widths: the fixed width of each column whose values change from second to second; None for the other columns.
        stages: the stage of each row.
        levels: the severity of each row. The first ``troubled`` rows show drives with problems.
        remarks: the remarks on the whole batch, followed by a remark on each drive with a problem whose reason is
            known.
    """

    name: str
    verdict: Verdict
    alike: str
    remaining: str
    ends_s: tuple[float, float] | None
    table: TableView
    widths: tuple[int | None, ...]
    stages: tuple[DriveStage, ...]
    levels: tuple[NoteLevel, ...]
    troubled: int
    remarks: tuple[Note, ...]

    @property
    def page(self) -> ReportView:
        """Return the same content as a page, for outputs that show the state only once and are not refreshed."""
        remarks = NotesView(title="To look at", notes=self.remarks)
        return ReportView(
            title=self.name,
            subtitle=", ".join(filter(None, (self.remaining, self.alike))),
            verdict=self.verdict,
            overview=(self.table, remarks) if self.remarks else (self.table,),
        )


@dataclass(frozen=True, slots=True)
class _Line:
    drive: DriveState
    run: Brief | None

    @property
    def rank(self) -> int:
        """Return the position of the drive in the order of display. Drives with problems are first. They are followed
        by the running drives, the waiting drives and the finished drives.
        """
        if self.drive.stage is DriveStage.RUNNING and self.doubts:
            return len(IN_TROUBLE)
        return _ORDER.index(self.drive.stage)

    @property
    def level(self) -> NoteLevel:
        return NoteLevel.CAUTION if self.doubts else level_of_stage(self.drive.stage)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return the reasons why a user should look at a running drive."""
        run = self.run
        if self.drive.stage is not DriveStage.RUNNING:
            return ()
        if run is None:
            return (self.drive.text,) if self.drive.text else ()
        found = (
            self.drive.text,
            "throttled for heat" * bool(run.throttled),
            f"{format_count(run.disturbed_steps, 'step')} disturbed" * bool(run.disturbed_steps),
        )
        return tuple(filter(None, found))

    @property
    def remaining_s(self) -> tuple[float, float] | None:
        return None if self.run is None else self.run.left_s


# None marks the position of running drives that a user should look at. These drives follow the drives with problems and
# precede all other running drives.
_ORDER: tuple[DriveStage | None, ...] = (*IN_TROUBLE, None, DriveStage.RUNNING, DriveStage.WAITING, DriveStage.DONE)


def build_batch_progress(state: BatchState, runs: Runs) -> BatchProgressView:
    """Return the content of the page of a running batch.

    Args:
        runs: the known states of the runs, with the numbers of the drives as the keys.
    """
    briefs = {number: run if isinstance(run, Brief) else brief_of(run) for number, run in runs.items()}
    lines = sorted(
        (_Line(drive, briefs.get(drive.shown.number)) for drive in state.drives),
        key=lambda line: (line.rank, line.drive.shown.number),
    )
    remaining_s = _find_remaining(lines) if state.is_under_way else None
    models = {line.drive.shown.model for line in lines}
    alike = len(models) == 1 and len(lines) > 1
    table = _build_table(lines, alike=alike)
    return BatchProgressView(
        name=drop_controls(state.name),
        verdict=describe_stages(state),
        alike=f"all {drop_controls(model)}" if alike and (model := next(iter(models))) else "",
        remaining="" if remaining_s is None else f"{format_durations(*remaining_s)} left",
        ends_s=None if is_simulated(state) else remaining_s,
        table=table,
        widths=tuple(map(_find_widths(lines).get, table.columns)),
        stages=tuple(line.drive.stage for line in lines),
        levels=tuple(line.level for line in lines),
        troubled=sum(line.rank <= len(IN_TROUBLE) for line in lines),
        remarks=tuple(_find_remarks(lines, state)),
    )


def describe_stages(state: BatchState) -> Verdict:
    """Return the progress of the drives in words: ``24 drives: 1 failed, 12 running, 8 waiting, 3 done``."""
    judged = judge_stages(state)
    counts = Counter(drive.stage for drive in state.drives)
    order = (*IN_TROUBLE, DriveStage.RUNNING, DriveStage.WAITING, DriveStage.DONE)
    texts = [", ".join(f"{counts[stage]} {name_stage(stage, counts[stage])}" for stage in order if counts[stage])]
    title = format_count(len(state.drives), "drive")
    return word_verdict(
        judged,
        (f"{len(reason.names)} {reason.code}" for reason in judged.reasons),
        title=f"SIMULATED. {title}" if judged.simulated else title,
        reasons=texts,
    )


def name_stage(stage: DriveStage, count: int) -> str:
    """Return a stage in a form that can follow the number or the names of the drives in this stage: ``1 failed``, ``2
    need your consent again``.
    """
    if stage is DriveStage.CONSENT_ENDED:
        return f"{'needs' if count == 1 else 'need'} your consent again"
    return stage.value


def level_of_stage(stage: DriveStage) -> NoteLevel:
    if stage in (DriveStage.FAILED, DriveStage.KILLED):
        return NoteLevel.FAILURE
    return NoteLevel.CAUTION if stage in IN_TROUBLE else NoteLevel.INFORMATION


def describe_round(run: RunState) -> str:
    """Return the progress within a section in a few characters: ``3 of 25``, ``fill 41 %``."""
    phase, at_most = run.progress.phase, run.progress.at_most
    of = "" if at_most is None else f" of {at_most:,}"
    match phase:
        case Purge():
            return "purge"
        case Idle():
            return "idle"
        case Fill():
            return "fill" if run.step_done is None else f"fill {run.step_done:.0%}"
        case Round(number=number, areas=areas, cells=cells):
            whole = areas or cells
            return f"{number:,} of {whole:,}" if whole else f"{number:,}{of}"
        case Continuous(number=number):
            return f"{number:,}{of}"
    return NOT_MEASURED


def _find_remaining(lines: Sequence[_Line]) -> tuple[float, float] | None:
    running = [line for line in lines if line.drive.stage is DriveStage.RUNNING]
    wholes = [
        (line.run.passed_s + left_s[0], line.run.passed_s + left_s[1])
        for line in running
        if line.run is not None and (left_s := line.remaining_s) is not None
    ]
    waiting = sum(line.drive.stage is DriveStage.WAITING for line in lines)
    return find_batch_remaining_s([line.remaining_s for line in running], waiting, wholes)


def _find_remarks(lines: Sequence[_Line], state: BatchState) -> Iterator[Note]:
    yield from (Note(text=drop_controls(note), level=NoteLevel.CAUTION) for note in state.notes)
    for line in lines:
        drive, name = line.drive, line.drive.shown.label
        if line.doubts:
            yield Note(text=f"{name}: {', '.join(line.doubts)}", level=line.level)
        elif drive.stage in IN_TROUBLE:
            yield Note(text=f"{name} {drive.outcome}", level=line.level)
    if not state.is_under_way and any(line.drive.stage is not DriveStage.DONE for line in lines):
        yield Note(text="Continue:", command=f"tkperf resume {quote(state.path)}")


def _build_table(lines: Sequence[_Line], *, alike: bool) -> TableView:
    """Return a table with a row for each line. A terminal with 80 columns has enough space for the columns with ranks
    up to 6.
    """
    has_slots = any(line.drive.shown.slot for line in lines)
    ends = dict(zip((line.drive.shown.number for line in lines), _shorten_serials(lines), strict=True))
    # If no slots are known, the table identifies drives with the serial number. If no serial numbers are known either,
    # the table uses the name of the run.
    serial_rank, run_rank = 6, 10
    if not has_slots and any(ends.values()):
        serial_rank = 0
    elif not has_slots:
        run_rank = 0
    columns: list[Column[_Line]] = [
        Column("slot" if has_slots else "drive", lambda line: line.drive.shown.slot or str(line.drive.shown.number)),
        Column("model", lambda line: line.drive.shown.model or NOT_MEASURED, _LAST if alike else 7),
        Column("serial", lambda line: drop_controls(ends[line.drive.shown.number]) or NOT_MEASURED, serial_rank),
        Column("run", lambda line: line.drive.shown.name, run_rank),
        Column("state", _describe_state),
        Column("test", _of_running(lambda run: run.test), 1),
        Column("round", _of_running(lambda run: run.round), 2),
        Column("load", _of_run(lambda run: run.load), 8),
        Column("newest", _of_run(lambda run: run.newest), 3),
        Column("heat", _of_run(lambda run: "" if run.hottest_c is None else f"{run.hottest_c:.0f} °C"), 5),
        Column("max left", _of_running(lambda run: format_duration(run.left_s[1]) if run.left_s else ""), 4),
        Column("others", _describe_others, 12),
        Column("doubts", lambda line: ", ".join(line.doubts) or NOT_MEASURED, 9),
    ]
    if any(line.drive.shown.host for line in lines):
        columns.insert(1, Column("host", lambda line: line.drive.shown.host or NOT_MEASURED, 5))
    table = build_table("", lines, columns)
    return replace(table, rows=tuple(tuple(map(drop_controls, row)) for row in table.rows))


def _describe_state(line: _Line) -> Cell:
    return line.drive.stage.value, None if line.level is NoteLevel.INFORMATION else line.level


def _find_widths(lines: Sequence[_Line]) -> Mapping[str, int]:
    """Return the widths of the columns whose values change while drives run. The widths do not depend on the present
    values.

    The only stage with a longer name than ``running`` is ``consent ended``. A drive in that stage does not change its
    stage again.
    """
    stages = (DriveStage.RUNNING, *(line.drive.stage for line in lines))
    return {**_WIDTHS, "state": max(map(len, stages))}


def _shorten_serials(lines: Sequence[_Line]) -> tuple[str, ...]:
    """Return the end of each serial number, with enough characters to distinguish the drives."""
    serials = [line.drive.shown.serial or "" for line in lines]
    longest, kinds = max(map(len, serials), default=0), len(set(serials))
    most = next(
        (many for many in range(_END_OF_SERIAL, longest) if len({one[-many:] for one in serials}) == kinds), longest
    )
    return tuple(one if len(one) <= most + 1 else f"\N{HORIZONTAL ELLIPSIS}{one[-most:]}" for one in serials)


def _of_run(of: Callable[[Brief], str | None]) -> Callable[[_Line], str]:
    """Return a function that builds the text of a table cell for a run. For a run that has not begun, the text is
    ``NOT_MEASURED``.
    """

    def cell(line: _Line) -> str:
        return NOT_MEASURED if line.run is None else of(line.run) or NOT_MEASURED

    return cell


def _of_running(of: Callable[[Brief], str | None]) -> Callable[[_Line], str]:
    about = _of_run(of)
    return lambda line: about(line) if line.drive.stage is DriveStage.RUNNING else NOT_MEASURED


def brief_of(run: RunState) -> Brief:
    """Return the state of a run in a short form that fits on one line."""
    newest = run.newest
    return Brief(
        test=run.progress.test or "",
        round=describe_round(run),
        load=newest.workload.mix_and_size if newest else "",
        newest=_describe_newest(run),
        hottest_c=max(run.temperatures_c.values(), default=None),
        throttled=bool(run.throttled),
        disturbed_steps=run.disturbed_steps,
        left_s=run.remaining_s,
        passed_s=run.at_s - run.stood_still_s,
    )


def _describe_newest(run: RunState) -> str:
    newest = run.newest
    if newest is None:
        return ""
    return f"{format_number(newest.value, newest.quantity.digits)} {unit_for_people(newest.quantity.unit)}".rstrip()


def _describe_others(line: _Line) -> str:
    return NOT_MEASURED if line.drive.place is None else str(line.drive.place.others)


# Nearly all values fit into these widths. On a terminal with 80 columns, a longer value would push the end of the line
# off the screen.
_WIDTHS = {"test": 5, "round": 12, "load": 12, "newest": 12, "heat": 5, "max left": 9, "others": 6, "doubts": 20}
_LAST = 11
