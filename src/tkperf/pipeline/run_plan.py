"""The plan of a run, which results from a request and an examination of the device. The plan contains everything that
is known before tkperf asks the user for consent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tkperf.engine.registry import find_engine
from tkperf.host.audit import Audit
from tkperf.model.choices import SIMULATED
from tkperf.model.errors import EngineError, RefusedError
from tkperf.model.phases import Fill
from tkperf.model.record import RunNote
from tkperf.model.workload import ActiveRange
from tkperf.pipeline.device_under_test import DeviceUnderTest, would_be_refused
from tkperf.pipeline.drive import DriveUnderTest, ScratchFileUnderTest, SegmentsUnderTest
from tkperf.pipeline.fitted_profile import FittedProfile, TestPhases, choose_profile, find_required_io, fit_profile
from tkperf.pipeline.host_check import audit_for, refuse_unfit, refuse_untunable, warn_of_host
from tkperf.pipeline.raid import MegaRaidUnderTest, SoftwareRaidUnderTest
from tkperf.pipeline.run_disclosure import Changes, find_changes
from tkperf.pipeline.run_request import RunRequest
from tkperf.pipeline.simulation import SimulatedDriveUnderTest
from tkperf.procedures.profiles import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A run that could begin. tkperf has examined and checked the request, the device and the host, but has not asked a
    question, or created or written any data yet.

    Attributes:
        request: the request from which the plan was made.
        dut: the device, file or set.
        fitted: profile, active range and tests, fitted to the DUT.
        warnings: warnings for readers of the result, as far as the warnings are known before the run.
        audit: findings about the host that would disturb the run. ``audit`` is empty for a simulated drive.
    """

    request: RunRequest
    dut: DeviceUnderTest
    fitted: FittedProfile
    warnings: tuple[RunNote, ...]
    audit: Audit

    @property
    def profile(self) -> Profile:
        """The profile with the user's options. It contains only block sizes that the device accepts."""
        return self.fitted.profile

    @property
    def active_range(self) -> ActiveRange:
        """The active range. For a RAID set that is not created yet, the range has the least possible size."""
        return self.fitted.active_range

    @property
    def tests(self) -> tuple[TestPhases, ...]:
        """Each test with its phases and the limits of its length."""
        return self.fitted.tests

    @property
    def shortest_s(self) -> float:
        """The length in s if every test is steady as soon as possible. Purges are not included. The assumed rate of
        fills is 500 MB/s.
        """
        return sum(test.shortest_s for test in self.tests)

    @property
    def longest_s(self) -> float:
        """The length in s if no section reaches steady state. Purges are not included. The assumed rate of fills is 500
        MB/s.
        """
        return sum(test.longest_s for test in self.tests)

    @property
    def filled_bytes(self) -> int:
        """The exact number of bytes that preconditioning writes. ``estimate_run`` computes the other writes."""
        return sum(fill.passes * self.pass_bytes(fill) for test in self.tests for fill in test.fills)

    def pass_bytes(self, fill: Fill) -> int:
        """Return the bytes of one pass: all members of a set, the range of the fill, or the active range."""
        return self.dut.filled_bytes or fill.length_bytes or self.active_range.length_bytes

    @property
    def alterations(self) -> tuple[str, ...]:
        """Numbers of the specification that the options change, such as ``runtime 60 s -> 1 s``."""
        return self.changes.alterations

    @property
    def changes(self) -> Changes:
        """Every change that the options make to the profile."""
        return find_changes(self.request, self.fitted)

    @property
    def confirm_id(self) -> str | None:
        """The text that confirms the loss of the data. None means that no data can be lost."""
        return self.dut.confirm_id


def plan_run(request: RunRequest, *, look_only: bool = False, profile: Profile | None = None) -> RunPlan:
    """Examine the device, and return the plan with the profile and the tests fitted to it. The function writes and
    creates nothing, and asks no question.

    Args:
        look_only: whether no run follows. In this case, a reason to refuse becomes a warning, and a password that a
            purge left on the drive remains.
        profile: the result of ``choose_profile`` for the request, if the caller already has it.

    Raises:
        UsageError: the request, the profile or a test does not suit the device.
        DeviceError: the device is missing, or cannot be measured or purged.
        RefusedError: the device is in use, or the run is strict and the host is not suitable.
        EngineError: the installed version of the engine cannot do the I/O of a test.
    """
    plain = profile or choose_profile(request)
    dut = _look_at(request, plain, look_only)
    fitted = fit_profile(request, plain, dut.identity)
    refused_io = () if isinstance(dut, SimulatedDriveUnderTest) else tuple(_refuse_io(request, fitted, look_only))
    warnings = (
        *dut.warnings,
        *refused_io,
        *fitted.warnings,
        *_not_as_new(dut, fitted),
        *_without_data(request, fitted),
    )
    audit = audit_for(dut.drives, lasts_s=sum(test.longest_s for test in fitted.tests), workloads=fitted.workloads)
    return RunPlan(
        request=request,
        dut=dut,
        fitted=fitted,
        warnings=(*warnings, *_of_host(request, audit, look_only=look_only)),
        audit=audit,
    )


def _refuse_io(request: RunRequest, fitted: FittedProfile, look_only: bool) -> Iterator[RunNote]:
    """Refuse I/O that the installed version of the engine cannot do on any device. If no run follows, yield the refusal
    as a warning.
    """
    # Tests of a profile derive their rates from measurements, and a search changes the number of threads.
    own = [] if request.searches_demand else [test for test in fitted.tests if test.test.own]
    needed = find_required_io(fitted.workloads, paced=[load for test in own for load in test.workloads])
    try:
        find_engine(request.ioengine).refuse_io(request.ioengine, needed)
    except EngineError as error:
        if not look_only:
            raise
        yield would_be_refused(error)


def _of_host(request: RunRequest, audit: Audit, *, look_only: bool) -> Iterator[RunNote]:
    """Yield the warnings about the host."""
    if request.tune and not look_only:
        refuse_untunable()
    if request.strict:
        try:
            refuse_unfit(audit, tune=request.tune)
        except RefusedError as error:
            if not look_only:
                raise
            yield would_be_refused(error)
            return
    yield from warn_of_host(audit, tune=request.tune)


def _look_at(request: RunRequest, plain: Profile, look_only: bool) -> DeviceUnderTest:
    in_segments = plain.active_range.segments > 1 and request.active_range is None
    if request.device.startswith(SIMULATED) and request.raid is None:
        return SimulatedDriveUnderTest(request, plain if in_segments else None)
    if in_segments:
        return SegmentsUnderTest(request, plain, look_only=look_only)
    if request.raid is not None:
        config = request.raid.completed()
        is_software = config.type == "sw_mdadm"
        return (SoftwareRaidUnderTest if is_software else MegaRaidUnderTest)(request, config)
    kind = DriveUnderTest if request.size is None else ScratchFileUnderTest
    return kind(request, look_only=look_only)


def _not_as_new(dut: DeviceUnderTest, fitted: FittedProfile) -> Iterator[RunNote]:
    """Yield a warning about tests that should begin with an empty device, if the purge leaves a written device."""
    for test in fitted.tests:
        if dut.overwritten_by is not None and test.starts_as_purged:
            text = (
                f"{test.test.title} begins right after the purge, which overwrites here "
                f"({dut.overwritten_by}): the device is not as new then, and its first "
                "minutes are not those of an empty one"
            )
            yield RunNote(code="not-as-new", text=text, test=test.test.name)


def _without_data(request: RunRequest, fitted: FittedProfile) -> Iterator[RunNote]:
    """Yield a warning for each test of the user that reads before it writes, and for each test that reads trimmed
    addresses. An SSD answers reads of such addresses from its mapping table, without reading flash cells.
    """
    for test in fitted.tests:
        if request.suite != "hdd" and test.test.own and test.reads_first:
            text = (
                f"{test.test.title} reads before it writes: a drive answers for addresses that "
                "were never written faster than for data; begin with a fill"
            )
            yield RunNote(code="never-written", text=text, test=test.test.name)
        if request.suite != "hdd" and test.reads_trimmed:
            text = (
                f"{test.test.title} reads addresses that an earlier load trimmed and that no fill wrote again: a drive "
                "answers reads of trimmed addresses without reading the flash. Add a fill before the reads, or read "
                "another part of the range"
            )
            yield RunNote(code="reads-trimmed", text=text, test=test.test.name)
