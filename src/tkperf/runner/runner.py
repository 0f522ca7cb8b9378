"""The whole flow of a run: ask each procedure for phases, perform the phases, and return the answers. Parts of the run
that were completed before an interruption are skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from tkperf.model.errors import EngineError, Interrupted, TkperfError
from tkperf.model.phases import Answer, Phase, Procedure, SectionOutcome, Statement
from tkperf.model.record import GoesOn, RunStatus
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.procedures import Test
from tkperf.procedures.forecast import drive, section_names
from tkperf.runner.ahead import Ahead
from tkperf.runner.events import (
    Event,
    Judged,
    RunEnded,
    RunResumed,
    RunStarted,
    SectionEnded,
    TestEnded,
    TestStarted,
    Warned,
)
from tkperf.runner.performer import Performer, RunParts, RunTarget
from tkperf.runner.replay import NOTHING, Replay, at_found_demand
from tkperf.runner.run_watch import RunTelemetry, RunWatch

__all__ = ["RunParts", "RunTarget", "execute_run"]


def execute_run(run: RunParts) -> None:
    """Run all tests in order. When the run ends for any reason, stop the engine and record the end.

    Raises:
        TkperfError: the error that ended the run early. The observers received all earlier events.
    """
    resumed = run.resumed
    origin_s = run.clock() - (0.0 if resumed is None else resumed.resumption.resumed_s)
    watch = RunWatch(origin_s, run.counters, run.fill_counters, run.host, run.strict)
    telemetry = RunTelemetry(run.telemetry, origin_s, run.emit)
    try:
        _report_beginning(run)
        for warning in run.warnings:
            run.emit(Warned(warning=warning))
        telemetry.look()
        profile = run.profile
        for position, test in enumerate(run.tests):
            outcomes = None if resumed is None else resumed.done.get(test.name)
            if outcomes is None:
                replayed = NOTHING if resumed is None else resumed.replay_of(test.name)
                later = tuple(_missing(run, position + 1))
                ahead = Ahead(test, later, profile, run.active_range_bytes, [*replayed.answers])
                outcomes = _TestRun(Performer(run, ahead, origin_s, watch, telemetry), replayed).execute()
            profile = at_found_demand(profile, outcomes)
        _end(run, RunStatus.COMPLETE, None, telemetry)
    except KeyboardInterrupt:
        _end(run, RunStatus.INTERRUPTED, "stopped by the user", telemetry)
        raise Interrupted("stopped by the user; everything measured so far is kept") from None
    except TkperfError as error:
        _end(run, RunStatus.FAILED, str(error), telemetry)
        raise
    except BaseException as error:
        _end(run, RunStatus.FAILED, f"internal error: {error!r}", telemetry)
        raise


def _report_beginning(run: RunParts) -> None:
    tests = tuple(test.name for test in run.tests)
    if run.resumed is None:
        run.emit(RunStarted(info=run.info, tests=tests))
    else:
        resumption = run.resumed.resumption
        run.emit(RunResumed(info=run.info, tests=tests, resumption=resumption))


def _missing(run: RunParts, position: int) -> Iterator[Test]:
    """Return the tests that must still be run, beginning with the test at this position."""
    done = () if run.resumed is None else run.resumed.done
    return (test for test in run.tests[position:] if test.name not in done)


def _end(run: RunParts, status: RunStatus, because: str | None, telemetry: RunTelemetry) -> None:
    """Stop the engine, read the drives' logs once more, and report the end to every observer."""
    run.engine.close()
    # If an observer fails during this call, every observer still receives the end of the run. If a tool that reads a
    # drive's log does not answer, the user can end the wait with Ctrl-C.
    with suppress(TkperfError, KeyboardInterrupt):
        telemetry.finish()
    event = RunEnded(status=status, because=because, ended_utc=datetime.now(UTC).isoformat(timespec="seconds"))
    _report_end(run, status, event)


def _report_end(run: RunParts, status: RunStatus, event: Event) -> None:
    """Report the end to every observer, even if an observer fails. If an earlier error ended the run, this error takes
    precedence.
    """
    failed: TkperfError | None = None
    for observer in run.observers:
        try:
            observer(event)
        except TkperfError as error:
            failed = failed or error
    if failed is not None and status is RunStatus.COMPLETE:
        raise failed


@dataclass(slots=True)
class _TestRun:
    """A running test. ``replayed`` contains the answers that the test received before the interruption."""

    performer: Performer
    replayed: Replay = NOTHING
    _warned: bool = False

    @property
    def run(self) -> RunParts:
        return self.performer.run

    @property
    def ahead(self) -> Ahead:
        return self.performer.ahead

    @property
    def test(self) -> Test:
        return self.ahead.test

    def execute(self) -> tuple[SectionOutcome, ...]:
        """Run the test and return the outcomes of its sections."""
        resumed = self.run.resumed
        goes_on = resumed is not None and resumed.resumption.test == self.test.name
        self.performer.watch.test_begins()
        if resumed is not None and self.replayed.goes_on is GoesOn.WHERE_IT_STOPPED:
            self.performer.watch.resumed(resumed.resumption.stopped_s, self.run.clock())
        names = section_names(self.ahead.procedure(), active_range_bytes=self.run.active_range_bytes)
        self.run.emit(
            TestStarted(test=self.test.name, at_s=self.performer.now_s(), plan=self.test.plan(names), goes_on=goes_on)
        )
        self.performer.telemetry.test_begins(self.test.name)
        status = RunStatus.FAILED
        try:
            outcomes = self._follow(self.ahead.procedure())
            status = RunStatus.COMPLETE
        except KeyboardInterrupt:
            status = RunStatus.INTERRUPTED
            raise
        except EngineError:
            # The check of the target reports a missing or replaced device, which explains the failure better than the
            # message of fio.
            self.performer.recheck()
            raise
        finally:
            self._end(status)
        return outcomes

    def _end(self, status: RunStatus) -> None:
        """Report the end of the test, then the warnings about the whole test."""
        ended_s = self.performer.now_s()
        ended = TestEnded(test=self.test.name, status=status, at_s=ended_s)
        _report_end(self.run, status, ended)
        self.performer.telemetry.test_ends()
        for warning in self.performer.watch.final_warnings(self.test.name, ended_s):
            _report_end(self.run, status, Warned(warning=warning))

    def _follow(self, procedure: Procedure) -> tuple[SectionOutcome, ...]:
        """Run the procedure to its end. First use the answers from the log, then perform the remaining phases."""
        answers = deque(self.replayed.answers)
        in_log = self.replayed.statement_count
        section, number = "", 0
        outcomes: list[SectionOutcome] = []

        def answer(phase: Phase, following: Sequence[Phase]) -> Answer:
            return answers.popleft() if answers else self.performer.answer(phase, following)

        for asked in drive(procedure, answer):
            if not isinstance(asked, Statement):
                section, number = asked.section, getattr(asked, "number", 1)
                continue
            if isinstance(asked, SectionOutcome):
                outcomes.append(asked)
            if in_log:
                in_log -= 1
            else:
                self._state(asked, section, number)
        if self.ahead.first_of_next_test() is None:
            self.performer.rest()
        return tuple(outcomes)

    def _state(self, statement: Statement, section: str, number: int) -> None:
        """Report a verdict on this round of a section, or the outcome of a section, to the observers."""
        name = self.test.name
        if isinstance(statement, SectionOutcome):
            self.run.emit(SectionEnded(test=name, outcome=statement))
        else:
            self.run.emit(Judged(test=name, section=section, number=number, verdict=statement))
            self._warn_of_doubt(statement)

    def _warn_of_doubt(self, verdict: SteadyStateVerdict) -> None:
        """Warn about a disturbed window immediately, but only once in each test. The user can then stop the run before
        further rounds, each of which takes minutes.
        """
        rules = self.run.profile.steady_state
        is_disturbed = verdict.rounds[-1] in verdict.disturbed_rounds
        if self._warned or rules.accept_disturbed or not is_disturbed:
            return
        self._warned = True
        text = (
            f"{verdict.tracking}: {verdict.reason}. Such values do not count toward steady "
            "state: the test continues until a window is undisturbed, or to its end. If this host "
            "is always like that, --accept-disturbed accepts such windows, and every result "
            "says so"
        )
        self.performer.warn("window-disturbed", text)
