"""The state of runs at one look: from their files and locks alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.record import LogEntry, RunRecord, RunStatus
from tkperf.pipeline.following import find_clock_s, look_first, outline_first
from tkperf.runfile.run_rows import ENDED_BY_KILL
from tkperf.runfile.writers import Writer, find_running, find_writer
from tkperf.runner.progress import Progress, describe_place, find_progress

# The state of a run whose process was killed, so that its file says nothing of an end.
KILLED_STATE = "killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
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

    @property
    def remaining_s(self) -> tuple[float, float] | None:
        """The shortest and the longest remaining time; None: not known."""
        if self.remaining_shortest_s is None or self.remaining_longest_s is None:
            return None
        return self.remaining_shortest_s, self.remaining_longest_s

    @property
    def state_in_words(self) -> str:
        if self.state == RunStatus.RUNNING:
            who = "a process not seen from here" if self.pid is None else f"process {self.pid}"
            return f"running, {who}"
        if self.state == KILLED_STATE:
            return f"{KILLED_STATE}: {ENDED_BY_KILL}"
        return f"{self.state}: {self.because}" if self.because else self.state

    @property
    def place_in_words(self) -> str:
        if self.test is None or self.state == RunStatus.COMPLETE:
            return "-" if not self.tests else f"{self.tests} of {self.tests} tests"
        share = "" if self.fill_done is None else f" {self.fill_done:.0%}"
        place = f": {self.place}{share}" if self.place else ""
        return f"test {self.test_number} of {self.tests}, {self.test}{place}"


def read_overview(path: Path) -> RunOverview:
    """Return the progress of the run in a file.

    Raises:
        RunFileError: see RunFile.
    """
    outline = outline_first(path)
    record, log = outline.record, tuple[LogEntry, ...]()
    if record.status is not RunStatus.COMPLETE:
        # The log gives the place of the run, but takes long to read.
        delta = look_first(path)
        record, log = delta.record, delta.log
    running = record.status is RunStatus.RUNNING
    writer = _find(path) if running else None
    progress = find_progress(record, log)
    now_s = find_clock_s(record) if running else None
    remaining = None if now_s is None else progress.remaining_s(now_s)
    return RunOverview(
        run_file=str(path),
        name=record.info.name,
        device=_device_of(record),
        state=_state_of(record),
        because=record.ended_because,
        pid=None if writer is None else writer.pid,
        user=None if writer is None else writer.user,
        test=progress.test,
        test_number=progress.number or None,
        tests=progress.tests,
        place=describe_place(progress) or None,
        fill_done=_fill_done(record, progress),
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


def find_run_files() -> tuple[list[Path], list[Writer]]:
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
        return KILLED_STATE
    return record.status.value


def _device_of(record: RunRecord) -> str | None:
    facts = record.info.device
    words = [facts.get("model"), facts.get("serial"), facts.get("path")]
    return ", ".join(str(word) for word in words if word) or None


def _fill_done(record: RunRecord, progress: Progress) -> float | None:
    """Return the share of a fill under way that is written, by its last kept minute."""
    for test in record.tests:
        step = test.under_way
        if step is not None and test.name == progress.test and step.planned_bytes:
            return min(1.0, step.measured_so_far.write.bytes / step.planned_bytes)
    return None


def _ended_s(record: RunRecord) -> float | None:
    return max((test.ended_s for test in record.tests if test.ended_s is not None), default=None)
