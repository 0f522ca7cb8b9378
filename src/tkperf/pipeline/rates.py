"""Expected speed of a device, and the source of the number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from tkperf.device.identity import TargetKind
from tkperf.engine.fio_setup import PROBE_S, read_bytes_per_s
from tkperf.model.errors import EngineError, RunFileError, UsageError
from tkperf.model.record import RunRecord, StepKind
from tkperf.model.units import format_capacity, parse_size_bytes
from tkperf.model.workload import Access, Workload
from tkperf.pipeline.subject import RunSubject
from tkperf.procedures.plan import ASSUMED_FILL_BYTES_PER_S
from tkperf.runfile.reader import read_run

_FASTEST_BYTES_PER_S = 10**12


class RateSource(StrEnum):
    ASSUMED = "assumed"
    GIVEN = "given"
    PROBE = "read probe"
    RUN = "earlier run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates in bytes a second: of large sequential writes, and of each workload measured before.

    ``note`` names the source in words, and the reason for having no better one.
    """

    bytes_per_s: float
    source: RateSource
    note: str
    measured: Mapping[Workload, float] = field(default_factory=dict)

    def of(self, workload: Workload) -> float:
        """Return the rate of a workload; if never measured, of large sequential writes: it is no faster."""
        return self.measured.get(replace(workload, region=None), self.bytes_per_s)

    def knows(self, workload: Workload) -> bool:
        """Return whether the workload was measured."""
        return replace(workload, region=None) in self.measured

    def __str__(self) -> str:
        return f"{format_capacity(self.bytes_per_s)}/s, {self.note}"


ASSUMED = Rates(
    bytes_per_s=ASSUMED_FILL_BYTES_PER_S,
    source=RateSource.ASSUMED,
    note="assumed: about what a SATA SSD writes",
)


def parse_rate(text: str) -> Rates:
    """Parse a rate as ``530MB/s``.

    Raises:
        UsageError: the text is no rate, 0, or faster than any drive.
    """
    amount = re.sub(r"/s$", "", text.strip())
    try:
        bytes_per_s = parse_size_bytes(amount)
    except UsageError:
        bytes_per_s = 0
    if not 0 < bytes_per_s <= _FASTEST_BYTES_PER_S:
        raise UsageError(
            f"--rate '{text[:40]}': write for example 530MB/s, more than 0 and at most 1 TB/s"
        )
    return Rates(bytes_per_s=bytes_per_s, source=RateSource.GIVEN, note="given by --rate")


def probe_rates(subject: RunSubject) -> Rates:
    """Read the device for ten seconds. Opens it to read only; writes and asks nothing.

    A device that cannot be read gets the assumed rate, and the reason.
    """
    identity = subject.identity
    there = identity.kind is TargetKind.BLOCK or identity.inode is not None
    if identity.kind is TargetKind.SIMULATED or not there or "raid" in subject.facts.values:
        return replace(ASSUMED, note=f"{ASSUMED.note}; there is nothing yet to read from")
    try:
        bytes_per_s = read_bytes_per_s(identity.path, identity.capacity_bytes)
    except EngineError as error:
        return replace(ASSUMED, note=f"{ASSUMED.note}; it could not be read: {error}")
    return Rates(
        bytes_per_s=bytes_per_s,
        source=RateSource.PROBE,
        note=f"an estimate: read in {PROBE_S} s; writes are mostly slower, and empty drives read faster",
    )


def read_rates(path: Path, subject: RunSubject) -> Rates:
    """Return the rates that an earlier run measured on a device of the same model.

    Raises:
        UsageError: the run is of another model, or measured nothing.
        RunFileError: the run file cannot be read.
    """
    try:
        record = read_run(path)
    except RunFileError as error:
        raise RunFileError(f"--like: {error}") from error
    before, now = (_model(facts) for facts in (record.info.device, subject.facts.values))
    if before != now:
        raise UsageError(f"--like {path}: it is a run of {before}, and this device is {now}")
    measured = _measured(record)
    if not measured:
        raise UsageError(f"--like {path}: no step of it was finished, so it gives no rate")
    writes = [
        rate
        for load, rate in measured.items()
        if load.access is Access.SEQUENTIAL and load.read_percent == 0
    ]
    if not writes:
        writes = [rate for load, rate in measured.items() if load.read_percent < 100] or [
            ASSUMED_FILL_BYTES_PER_S
        ]
    return Rates(
        bytes_per_s=max(writes),
        source=RateSource.RUN,
        note=f"as measured in {path}",
        measured=measured,
    )


def _model(facts: Mapping[str, object]) -> str:
    return str(facts.get("model") or facts.get("kind") or "a device that is not known")


def _measured(record: RunRecord) -> dict[Workload, float]:
    """Return the bytes a second of every workload over all its steps, without warm-ups."""
    sums: dict[Workload, tuple[int, float]] = {}
    for test in record.tests:
        for step in test.steps:
            measurement = step.measurement
            if (
                step.kind is StepKind.WARM_UP
                or not measurement.rates_known
                or not measurement.bytes
            ):
                continue
            load = replace(step.workload, region=None)
            total_bytes, total_s = sums.get(load, (0, 0.0))
            sums[load] = total_bytes + measurement.bytes, total_s + measurement.duration_s
    return {load: total_bytes / total_s for load, (total_bytes, total_s) in sums.items()}
