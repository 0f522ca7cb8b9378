"""The estimate of a run: time, bytes written, and share of the drive's life. It results from a simulation of the phases
of all tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tkperf.analysis.estimates import PURGE, Rates, RateSource, RunEstimate, Stage
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.engine import PROBE_S
from tkperf.engine.registry import find_engine
from tkperf.model.errors import EngineError, RunFileError, UsageError
from tkperf.model.phases import Continuous, Fill, Idle, Phase, Purge, Round
from tkperf.model.record import RunNote, RunRecord, StepKind
from tkperf.model.units import format_capacity, format_count, parse_size_bytes
from tkperf.model.workload import Access, Workload
from tkperf.pipeline.device_under_test import DeviceUnderTest
from tkperf.pipeline.fitted_profile import TestPhases
from tkperf.pipeline.host_check import describe_host
from tkperf.pipeline.run_plan import RunPlan
from tkperf.procedures.forecast import ASSUMED_FILL_BYTES_PER_S, Case, phases_ahead
from tkperf.procedures.profiles.profile_tables import DemandTable
from tkperf.runfile.reader import read_run

DEFAULT_WARRANTY_YEARS = 5.0
DAYS_A_YEAR = 365
_FACTORS = {"GBW": 10**9, "TBW": 10**12, "PBW": 10**15}
# The limit of plausible ratings. The most durable drives have ratings of 100 drive writes a day.
_MOST_DWPD = 1000.0
_Walked = list[tuple[Phase, float]]
# The key consists of the section, the kind of phase, and the number of earlier rows of this section and kind.
_WalkedByRow = dict[tuple[str, type[Phase], int], _Walked]

_FASTEST_BYTES_PER_S = 10**12
# tkperf warns about streams that offer more writes than the device can complete. tkperf warns only if the offered rate
# of writes exceeds the estimated rate of the device by more than the rounding of the estimate, which is 0.5 %.
_LEAST_EXCESS = 1.005


ASSUMED = Rates(
    bytes_per_s=ASSUMED_FILL_BYTES_PER_S, source=RateSource.ASSUMED, note="assumed: about what a SATA SSD writes"
)


def parse_rate(text: str) -> Rates:
    """Return the rates for a text such as ``530MB/s``.

    Raises:
        UsageError: the text is not a rate, or the rate is 0 or faster than any drive.
    """
    amount = re.sub(r"/s$", "", text.strip())
    try:
        bytes_per_s = parse_size_bytes(amount)
    except UsageError:
        bytes_per_s = 0
    if not 0 < bytes_per_s <= _FASTEST_BYTES_PER_S:
        raise UsageError(
            f"--rate '{text[:40]}' is not a valid rate. Write, for example, 530MB/s. The rate must be more than 0 and "
            "at most 1 TB/s"
        )
    return Rates(bytes_per_s=bytes_per_s, source=RateSource.GIVEN, note="given by --rate")


def probe_rates(dut: DeviceUnderTest) -> Rates:
    """Read the device for ten seconds, and return its rates. The device is opened only for reading. The function writes
    nothing and asks no question.

    For a device that cannot be read, the result is the assumed rate with the reason.
    """
    identity = dut.identity
    nothing = identity.kind is TargetKind.SIMULATED or _is_to_be_made(identity)
    if nothing or "raid" in dut.facts.values:
        return replace(ASSUMED, note=f"{ASSUMED.note}; there is nothing yet to read from")
    try:
        bytes_per_s = find_engine().read_bytes_per_s(identity.path, identity.capacity_bytes)
    except EngineError as error:
        return replace(ASSUMED, note=f"{ASSUMED.note}; it could not be read: {error}")
    return Rates(
        bytes_per_s=bytes_per_s,
        source=RateSource.PROBE,
        note=f"an estimate: read in {PROBE_S} s; writes are mostly slower, and empty drives read faster",
    )


def probe_each_model() -> Callable[[DeviceUnderTest], Rates]:
    """Return a function that finds the rates of a device. The function reads only the first device of each model and
    capacity, and uses the result for the other devices of this model and capacity. If the model of a device is not
    known, the device itself is read.
    """
    found: dict[tuple[str | None, int], Rates] = {}

    def probe(dut: DeviceUnderTest) -> Rates:
        identity = dut.identity
        model = identity.model, identity.capacity_bytes
        if identity.model is None or model not in found:
            found[model] = probe_rates(dut)
        return found[model]

    return probe


def _is_to_be_made(identity: DeviceIdentity) -> bool:
    """Return whether the device is a file that the run would create."""
    return identity.kind is TargetKind.FILE and identity.inode is None


def read_rates(path: Path, dut: DeviceUnderTest) -> Rates:
    """Return the rates that an earlier run measured on a device of the same model.

    Raises:
        UsageError: the run measured another model, or contains no measurement.
        RunFileError: the run file cannot be read.
    """
    try:
        record = read_run(path)
    except RunFileError as error:
        raise RunFileError(f"--like: {error}") from error
    before, now = (_model(facts) for facts in (record.info.device, dut.facts.values))
    if before != now:
        raise UsageError(
            f"--like {path}: this run measured {before}, but the device is {now}. Pass the run file "
            "of a drive of the same model"
        )
    measured = _measured(record)
    if not measured:
        raise UsageError(f"--like {path}: this run finished no step, so its rate is not known. Name another run")
    writes = [rate for load, rate in measured.items() if load.access is Access.SEQUENTIAL and load.read_percent == 0]
    if not writes:
        writes = [rate for load, rate in measured.items() if load.read_percent < 100] or [ASSUMED_FILL_BYTES_PER_S]
    return Rates(bytes_per_s=max(writes), source=RateSource.RUN, note=f"as measured in {path}", measured=measured)


def _model(facts: Mapping[str, object]) -> str:
    return str(facts.get("model") or facts.get("kind") or "a device that is not known")


def _measured(record: RunRecord) -> dict[Workload, float]:
    """Return the mean rate of every workload, in bytes per second. The mean covers all steps of the workload except
    warm-ups.
    """
    sums: dict[Workload, tuple[int, float]] = {}
    for test in record.tests:
        for step in test.steps:
            measurement = step.measurement
            if step.kind is StepKind.WARM_UP or not measurement.rates_known or not measurement.bytes:
                continue
            load = replace(step.workload, region=None)
            total_bytes, total_s = sums.get(load, (0, 0.0))
            sums[load] = total_bytes + measurement.bytes, total_s + measurement.duration_s
    return {load: total_bytes / total_s for load, (total_bytes, total_s) in sums.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """An endurance rating in the form that the user wrote. ``unit`` is the unit of ``amount``, for example TBW."""

    text: str
    amount: float
    unit: str
    warranty_years: float

    def bytes_of(self, capacity_bytes: int) -> float:
        """Return the total bytes that may be written to the drive."""
        if self.unit == "DWPD":
            return self.amount * capacity_bytes * DAYS_A_YEAR * self.warranty_years
        rated_bytes = self.amount * _FACTORS[self.unit]
        writes_a_day = rated_bytes / capacity_bytes / DAYS_A_YEAR / self.warranty_years
        if rated_bytes < capacity_bytes or writes_a_day > _MOST_DWPD:
            raise UsageError(
                f"--rated {self.text} is impossible for a drive of {format_capacity(capacity_bytes)}, because the "
                f"whole drive would be written {rated_bytes / capacity_bytes:,.3g} times in total. Check the rating "
                "in the data sheet"
            )
        return rated_bytes

    def describe(self, capacity_bytes: int) -> str:
        """Return the rating in words, such as ``1DWPD over 5 years, 876.0 TB``."""
        whole = format_capacity(self.bytes_of(capacity_bytes))
        if self.unit == "DWPD":
            return f"{self.text} over {self.warranty_years:g} years, {whole}"
        return f"{self.text}, {whole}"


def parse_rating(text: str, warranty_years: float | None = None) -> Rating:
    """Return the rating for a text such as ``600TBW``, ``1.2PBW`` or ``1DWPD``.

    Raises:
        UsageError: the text has another form, or no drive has such a rating.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    if match is None or match[2].upper() not in (*_FACTORS, "DWPD"):
        raise UsageError(f"--rated '{text[:40]}' is not a rating. Write, for example, 600TBW, 1.2PBW or 1DWPD")
    amount, unit = float(match[1]), match[2].upper()
    if not 0 < amount < 1e9 or (unit == "DWPD" and amount > _MOST_DWPD):
        raise UsageError(f"--rated '{text[:40]}': no drive has such a rating. Check the rating in the data sheet")
    return Rating(
        text=f"{match[1]}{unit}", amount=amount, unit=unit, warranty_years=warranty_years or DEFAULT_WARRANTY_YEARS
    )


def estimate_run(plan: RunPlan, rates: Rates, rating: Rating | None = None) -> RunEstimate:
    """Return an estimate of every test of a plan at these rates.

    Raises:
        UsageError: a device of this capacity cannot have this rating.
    """
    identity = plan.dut.identity
    members = plan.dut.facts.values.get("members")
    drives = len(members) if isinstance(members, list | tuple) and members else 1
    drive_bytes = identity.capacity_bytes
    if plan.dut.filled_bytes is not None and drives > 1:
        drive_bytes = plan.dut.filled_bytes // drives
    rated_bytes = None if rating is None else rating.bytes_of(drive_bytes) * drives
    rated_as = None if rating is None else rating.describe(drive_bytes)
    if rated_as is not None and drives > 1:
        rated_as += f" of each of {drives} drives, parity and mirrors not counted"
    host = describe_host(plan.audit, plan.request.device)
    best = {test.test.name: _walk(plan, test, rates, Case.BEST) for test in plan.tests}
    return RunEstimate(
        target=plan.request.device,
        device=plan.dut.facts.values,
        profile=plan.profile,
        tests=tuple(test.test for test in plan.tests),
        active_range_bytes=plan.active_range.length_bytes,
        choices=plan.changes.choices,
        alterations=plan.alterations,
        purges_first=not plan.request.no_purge,
        conditions=(*plan.dut.lines, *((("host", host),) if host else ())),
        warnings=(*plan.warnings, *_find_excessive_offers(best, rates)),
        asks=plan.confirm_id is not None and not _is_to_be_made(identity),
        stages=tuple(stage for test in plan.tests for stage in _stages(plan, test, rates, best[test.test.name])),
        uses_demand=any(_uses_demand(plan.profile.demand, rows) for rows in best.values()),
        rates=rates,
        capacity_bytes=identity.capacity_bytes,
        rated_bytes=rated_bytes,
        rated_as=rated_as,
        simulated=identity.kind is TargetKind.SIMULATED,
    )


def _stages(plan: RunPlan, test: TestPhases, rates: Rates, best: _WalkedByRow) -> Iterator[Stage]:
    rates_known = rates.source is RateSource.RUN and all(map(rates.knows, test.workloads))
    unsteady = _walk(plan, test, rates, Case.UNSTEADY)
    # If the rates are only upper limits, the writes of a run may never reach a given amount, so the worst case is
    # simulated.
    longest = unsteady if rates_known else _walk(plan, test, rates, Case.WORST)
    for key, phases in longest.items():
        most, least = unsteady.get(key, phases), best.get(key, [])
        written = [_written(plan, group, rates) for group in (least, most)]
        if not rates_known and key[1] is not Fill:
            written[0] = 0.0
        yield Stage(
            test=test.test.title,
            section=key[0],
            what=_describe(plan, least, phases),
            shortest_s=sum(duration_s for _, duration_s in least),
            longest_s=sum(duration_s for _, duration_s in phases),
            least_bytes=written[0],
            most_bytes=max(written),
        )


def _walk(plan: RunPlan, test: TestPhases, rates: Rates, case: Case) -> _WalkedByRow:
    """Simulate the phases of a test, and return them as rows of consecutive phases of one kind. The key of a row is its
    section, its kind, and the number of earlier rows of this section and kind.

    A pause belongs to the preceding phase, so thousands of bursts and pauses form one row.
    """
    length_bytes = plan.active_range.length_bytes
    procedure = test.test.procedure(plan.profile, length_bytes)
    walked = phases_ahead(procedure, case, active_range_bytes=length_bytes, pace=rates.rate_of)
    groups: _WalkedByRow = {}
    before: tuple[str, type[Phase], int] | None = None
    for phase, duration_s in walked:
        pauses = isinstance(phase, Idle) and before is not None and before[0] == phase.section
        if not pauses and (before is None or before[:2] != (phase.section, type(phase))):
            count = sum(key[:2] == (phase.section, type(phase)) for key in groups)
            before = phase.section, type(phase), count
        assert before is not None, "a row has begun"
        groups.setdefault(before, []).append((phase, duration_s))
    return groups


def _written(plan: RunPlan, walked: _Walked, rates: Rates) -> float:
    whole = 0.0
    for phase, duration_s in walked:
        match phase:
            case Fill():
                whole += phase.passes * plan.pass_bytes(phase)
            case Continuous():
                whole += _written_bytes_per_s(phase.workload, rates) * duration_s
            case Round():
                whole += sum(_written_bytes_per_s(step.workload, rates) * step.duration_s for step in phase.steps)
            case Purge() | Idle():
                pass
    return whole


def _written_bytes_per_s(workload: Workload, rates: Rates) -> float:
    """Return the bytes that a load writes in a second. The rate of the device limits the sum of all streams.

    The offered rate of a stream is an upper limit of its writes.
    """
    if not workload.is_combination:
        return 0.0 if workload.trims else (1 - workload.read_percent / 100) * rates.rate_of(workload)
    written = 0.0
    for stream in workload.together:
        load = stream.workload
        most = rates.rate_of(load)
        if load.offered_iops is not None:
            most = min(most, load.offered_iops * load.mean_block_bytes)
        written += 0.0 if load.trims else (1 - load.read_percent / 100) * most
    return min(written, rates.bytes_per_s)


def _find_excessive_offers(best: Mapping[str, _WalkedByRow], rates: Rates) -> Iterator[RunNote]:
    """Yield a warning for each section whose streams together offer more writes than the device can complete.

    An assumed rate is no information about the device, so such a rate causes no warning. An excess within the rounding
    of the rates causes no warning either, because tkperf's own tests offer shares of a measured rate.

    Args:
        best: the phases of each test. The name of the test is the key.
    """
    if rates.source is RateSource.ASSUMED:
        return
    for test, rows in best.items():
        offers: dict[str, float] = {}
        for (section, *_), phases in rows.items():
            offered = (_offered_bytes_per_s(load) for phase, _ in phases for load in _list_loads(phase))
            offers[section] = max(offers.get(section, 0.0), *offered, 0.0)
        for section, offered_bytes_per_s in offers.items():
            if offered_bytes_per_s > _LEAST_EXCESS * rates.bytes_per_s:
                text = (
                    f"test {test}, section '{section}': its streams together offer "
                    f"{format_capacity(offered_bytes_per_s)}/s of writes, more than the "
                    f"{format_capacity(rates.bytes_per_s)}/s of large sequential writes ({rates.note}); a device that "
                    "is no faster does less than is offered"
                )
                yield RunNote(code="offer-above-rate", text=text, test=test)


def _uses_demand(demand: DemandTable, rows: _WalkedByRow) -> bool:
    """Return whether a test uses the demand of the profile. If a search determines the demand, the result is true."""
    if demand.searched:
        return True
    loads = (load for phases in rows.values() for phase, _ in phases for load in _list_loads(phase))
    return any((load.jobs, load.io_depth) == (demand.jobs, demand.io_depth) for load in loads)


def _list_loads(phase: Phase) -> tuple[Workload, ...]:
    if isinstance(phase, Round):
        return tuple(step.workload for step in phase.steps)
    return (phase.workload,) if isinstance(phase, Continuous) else ()


def _offered_bytes_per_s(workload: Workload) -> float:
    """Return the bytes that the streams of a combination should write in a second. For a load alone, the result
    is 0.
    """
    loads = [stream.workload for stream in workload.together]
    return sum(
        (1 - load.read_percent / 100) * (load.offered_iops or 0.0) * load.mean_block_bytes
        for load in loads
        if not load.trims
    )


def _describe_rounds(least: Sequence[Phase], most: Sequence[Phase]) -> str:
    """Return a description of rounds: ``5 to 25 rounds of 56 steps``, ``120 rounds of 1 step, each after a
    warm-up``.
    """
    shortest, longest = ([one for one in phases if isinstance(one, Round)] for phases in (least, most))
    counted = [one for one in longest if not one.warm_up]
    warm_ups = len(longest) - len(counted)
    steps = format_count(len((counted or longest)[0].steps), "step")
    if not counted:
        return f"{format_count(warm_ups, 'warm-up')} of {steps}"
    rounds = format_count(len(counted), "round")
    fewest = sum(not one.warm_up for one in shortest)
    text = f"{rounds if fewest == len(counted) else f'{fewest} to {rounds}'} of {steps}"
    if not warm_ups:
        return text
    each = "each " if len(counted) > 1 else ""
    return (
        f"{text}, {each}after a warm-up" if warm_ups == len(counted) else f"{text}, {format_count(warm_ups, 'warm-up')}"
    )


def _describe(plan: RunPlan, least: _Walked, most: _Walked) -> str:
    """Return a description of a row. If the row contains pauses, the text contains their number and the phases between
    them.
    """
    pauses = sum(isinstance(phase, Idle) for phase, _ in most)
    if 0 < pauses < len(most):
        least = [entry for entry in least if not isinstance(entry[0], Idle)]
        most = [entry for entry in most if not isinstance(entry[0], Idle)]
        between = _describe(plan, least, most)
        if isinstance(most[0][0], Continuous):
            between = f"{len(most):,} times a {between}"
        return f"{between}, with {format_count(pauses, 'pause')}"
    first = most[0][0]
    match first:
        case Purge():
            return PURGE
        case Idle():
            return "idle"
        case Fill():
            times = sum(phase.passes for phase, _ in most if isinstance(phase, Fill))
            return f"fill {times} × {format_capacity(plan.pass_bytes(first))}"
        case Round():
            if first.areas is not None:
                return f"{format_count(len(most), 'area')} of {format_count(len(first.steps), 'step')}"
            return _describe_rounds([phase for phase, _ in least], [phase for phase, _ in most])
        case Continuous():
            return f"stream of {first.workload}"
