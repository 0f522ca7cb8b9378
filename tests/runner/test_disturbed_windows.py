"""Disturbed steps. Unless the profile accepts disturbances, a window with a disturbed step of the tracked workload is
not steady. A strict run keeps no disturbed step except a fill.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.busy_host import BusyHost, run_beside
from tests.runner.test_runner import SpyEngine
from tkperf.model.errors import StepDisturbedError
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import LogEntry, Logged, RunStatus, StepKind, StepRecord, VerdictRecord
from tkperf.model.steady_state import SteadyStateVerdict, judge
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.procedures.profiles import Profile
from tkperf.runner.events import Event, Judged, PurgeEnded, RunEnded, SectionEnded, StepEnded, StepStarted, Warned
from tkperf.runner.replay import replay

IOPS = SSD_TESTS["iops"]
# Positions among the twelve steps of a round in the quick profile. The first is the tracked step, R/W 0/100 of 4 KiB,
# and the second is an earlier step.
TRACKED, UNTRACKED = 10, 9


def profile(*, accept: bool = False, max_rounds: int = 10) -> Profile:
    quick = load_profile("quick")
    rules = msgspec.structs.replace(quick.steady_state, accept_disturbed=accept, max_rounds=max_rounds)
    return quick.with_tables(rules)


def in_round(number: int, position: int) -> Callable[[StepStarted], bool]:
    return lambda step: (step.kind, step.number, step.position) == (StepKind.ROUND, number, position)


def outcome_of(events: list[Event]) -> SectionOutcome:
    return next(event.outcome for event in events if isinstance(event, SectionEnded))


def run(
    chosen: Callable[[StepStarted], bool], *, accept: bool = False, strict: bool = False
) -> tuple[list[Event], BusyHost]:
    events: list[Event] = []
    host = run_beside(SpyEngine(), [IOPS], profile(accept=accept), chosen, events.append, strict=strict)
    return events, host


def judged(*doubts: str | None, accept: bool = False) -> SteadyStateVerdict:
    rules = msgspec.structs.replace(load_profile("quick").steady_state, accept_disturbed=accept)
    numbers = range(1, len(doubts) + 1)
    return judge(numbers, [100.0] * len(doubts), tracking="t", unit="u", criteria=rules.criteria, doubts=doubts)


def test_a_window_with_a_doubtful_value_is_not_steady() -> None:
    """A window with a disturbed value is not steady, and the verdict names the rounds and the reasons. A value that has
    left the window does not count.
    """
    verdict = judged(None, "a", "b", "a", None)
    assert not verdict.reached
    assert verdict.disturbed_rounds == (2, 3, 4)
    assert verdict.reason == ("data and slope excursion are within their limits; not the device alone in 2, 4: a; 3: b")
    assert judged("a", None, None, None, None, None).reached
    assert judged(None, None, None, None, None).disturbed_rounds == ()


def test_a_doubtful_value_is_told_before_a_window_is_full() -> None:
    """A disturbed value is reported before the window is full, so that the user can react early and not only after
    hours.
    """
    assert judged("a").reason == "1 of the 5 rounds a window needs; not the device alone in 1: a"


def test_an_accepted_one_is_steady_and_says_so() -> None:
    """A window with an accepted disturbance is steady, and the verdict mentions the disturbance. The other limits of
    the rule still apply.
    """
    verdict = judged(None, None, "a", None, None, accept=True)
    assert verdict.reached
    assert verdict.disturbed_rounds == (3,)
    assert verdict.reason.endswith("; not the device alone in 3: a, accepted")
    with pytest.raises(ValueError, match="one value for each round"):
        judge([1, 2], [1.0, 1.0], tracking="t", unit="u", doubts=["a"])


def test_rounds_go_on_until_a_window_is_undisturbed() -> None:
    """If round 3 is disturbed in a test that is otherwise steady from the first round, the window consists of rounds 4
    to 8.
    """
    events, _ = run(in_round(3, TRACKED))
    outcome = outcome_of(events)
    assert outcome.window == (4, 5, 6, 7, 8)
    verdicts = [event.verdict for event in events if isinstance(event, Judged)]
    assert [verdict.reached for verdict in verdicts] == [False] * 7 + [True]
    assert verdicts[4].disturbed_rounds == (3,)
    assert "in 3: others on the CPUs that fio waited for" in verdicts[4].reason
    warned = [event.warning for event in events if isinstance(event, Warned)]
    assert [warning.code for warning in warned] == ["host-cpu", "window-disturbed"]
    assert "--accept-disturbed" in warned[1].text


@pytest.mark.parametrize(
    ("chosen", "accept"), [(in_round(3, UNTRACKED), False), (in_round(3, TRACKED), True), (lambda _: False, False)]
)
def test_what_is_not_tracked_or_accepted_keeps_no_window(chosen: Callable[[StepStarted], bool], accept: bool) -> None:
    """A disturbed step prevents a steady window only if its workload is tracked and the profile does not accept
    disturbances.
    """
    events, _ = run(chosen, accept=accept)
    assert outcome_of(events).window == (1, 2, 3, 4, 5)
    assert "window-disturbed" not in {e.warning.code for e in events if isinstance(e, Warned)}


def test_a_host_that_always_disturbs_ends_after_the_most_rounds() -> None:
    """On a host that disturbs every step, a section ends after the maximum number of rounds. The section is not steady,
    and the reason is reported.
    """
    events, _ = run(lambda _: True)
    outcome = outcome_of(events)
    assert outcome.window == (6, 7, 8, 9, 10)
    assert outcome.verdict is not None
    assert not outcome.verdict.reached
    assert "not the device alone in 6, 7, 8, 9, 10" in outcome.ended_because


def test_a_stream_goes_on_until_its_slices_are_undisturbed() -> None:
    """A stream continues until its judged slices are undisturbed. In this test, write saturation is disturbed in slice
    11. The window that ends with slice 21 contains this slice, so the stream ends only with the window of slices 16 to
    36.
    """
    test = SSD_TESTS["writesat"]
    assert test.table is not None
    key = test.table.key
    table = load_profile("quick").tables[key]
    longer = profile().with_tables(msgspec.structs.replace(table, max_slices=100, capacity_multiple=1000.0))
    events: list[Event] = []
    engine = SpyEngine()
    run_beside(
        engine, [test], longer, lambda step: (step.kind, step.number) == (StepKind.CONTINUOUS, 11), events.append
    )
    assert outcome_of(events).window == (16, 21, 26, 31, 36)


def test_a_replay_decides_the_same() -> None:
    """If a new object of the same procedure replays the log, the verdicts are the same as in the run, and the replay
    ends at the same step. If the profile of the replay accepts disturbances and the profile of the run did not, the
    replay reports an error.
    """
    events, _ = run(in_round(3, TRACKED))
    records: list[Logged] = []
    for event in events:
        if isinstance(event, StepEnded | PurgeEnded):
            records.append(event.record)
        elif isinstance(event, SectionEnded):
            records.append(event.outcome)
        elif isinstance(event, Judged):
            records.append(VerdictRecord(section=event.section, number=event.number, verdict=event.verdict))
    log = [LogEntry(sequence=number, test_id=1, record=record) for number, record in enumerate(records, start=1)]
    replayed = replay(IOPS.procedure(profile(), 1 << 30), log)
    assert replayed.statement_count == 8 + 1
    assert len(replayed.answers) == 2 + 8
    with pytest.raises(ValueError, match="is not the verdict that the test produces at this position"):
        replay(IOPS.procedure(profile(accept=True), 1 << 30), log)


def attempts(host: BusyHost, number: int, position: int) -> int:
    return sum(in_round(number, position)(step) for step in host.began)


def test_a_strict_run_measures_a_disturbed_step_again() -> None:
    """A strict run repeats a disturbed step immediately. The kept step is undisturbed, is marked as repeated, and
    belongs to a steady window.
    """
    wanted = in_round(2, TRACKED)
    seen: list[StepStarted] = []

    def first_time(step: StepStarted) -> bool:
        seen.extend([step] * wanted(step))
        return wanted(step) and len(seen) == 1

    events, host = run(first_time, strict=True)
    assert attempts(host, 2, TRACKED) == 2
    assert outcome_of(events).window == (1, 2, 3, 4, 5)
    steps = [event.record for event in events if isinstance(event, StepEnded)]
    (kept,) = [s for s in steps if (s.number, s.position, s.kind) == (2, TRACKED, StepKind.ROUND)]
    assert [found.code.value for found in kept.disturbances or ()] == ["repeated"]
    assert kept.answer.doubt is None
    assert kept.host is not None
    assert kept.host.others_cpu_percent == 0


def test_a_strict_run_ends_where_a_step_is_disturbed_each_time() -> None:
    """A strict run fails after three disturbed attempts of a step. The earlier steps are kept."""
    events: list[Event] = []
    with pytest.raises(StepDisturbedError, match=r"burner.*measured three times") as caught:
        run_beside(SpyEngine(), [IOPS], profile(), in_round(2, 0), events.append, strict=True)
    assert caught.value.exit_code == 5
    steps: list[StepRecord] = [e.record for e in events if isinstance(e, StepEnded)]
    assert len(steps) == 1 + 12
    last = events[-1]
    assert isinstance(last, RunEnded)
    assert last.status is RunStatus.FAILED


def test_a_strict_stream_ends_with_its_first_disturbed_slice() -> None:
    """A strict stream ends with its first disturbed slice, because no part of a stream can be repeated alone."""
    events: list[Event] = []
    with pytest.raises(StepDisturbedError, match="a stream cannot be measured again in part"):
        run_beside(
            SpyEngine(),
            [SSD_TESTS["writesat"]],
            profile(),
            lambda step: (step.kind, step.number) == (StepKind.CONTINUOUS, 4),
            events.append,
            strict=True,
        )
    assert sum(isinstance(event, StepEnded) for event in events) == 3


def test_a_strict_fill_may_be_slow() -> None:
    """A strict run keeps a fill that was disturbed, because the speed of preconditioning is not a result."""
    events, _ = run(lambda step: step.kind is StepKind.FILL, strict=True)
    assert outcome_of(events).window == (1, 2, 3, 4, 5)
