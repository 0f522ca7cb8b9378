"""The request for a batch, before tkperf examines the drives."""

from __future__ import annotations

import re
from typing import cast

import msgspec

from tkperf.analysis.sharing.groups import Parallel
from tkperf.model.choices import SIMULATED
from tkperf.model.errors import UsageError
from tkperf.pipeline.run_request import RunRequest, require_name

AGAIN = "-alone"
"""The ending of the name of a second run, in which the drive is measured alone."""
DEFAULT_TKPERF = "/usr/local/bin/tkperf"
LONGEST_STAGGER_S = 86_400
# A host name for SSH and for a shell on the host. It must not look like an option, and must not need quotes.
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9][A-Za-z0-9._:%-]{0,252}")
_PATH = re.compile(r"(?:/[A-Za-z0-9._+-]+)+")
_SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}


class BatchDrive(msgspec.Struct, frozen=True, kw_only=True):
    """One drive of a batch and the run on it.

    Attributes:
        name: the name of the run, whose file is NAME.tkperf.
        request: the request for the run, with the path of the drive as the device.
        given: the drive as the user named it: a path, a link in /dev/disk/by-id, a serial number, or ``sim:PRESET``.
        slot: the slot of the drive, as the user or the host names it. None means that the slot is not known.
        serial: the serial number of the whole drive, regardless of its path. None means that the drive reports no
            serial number.
        host: the name that is passed to SSH for the host to which the drive is attached. None means this host.
    """

    name: str
    request: RunRequest
    given: str
    slot: str | None = None
    serial: str | None = None
    host: str | None = None


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that control how a batch proceeds.

    Attributes:
        parallel: the number of drives that are measured at the same time. ``auto`` means as many drives as do not
            overload a link.
        stagger_s: least time, in seconds, between the starts of two runs whose drives share a link.
        strict: whether to refuse a batch that exceeds a budget, instead of measuring fewer drives at the same time.
        compare_reads: whether to read each drive alone and all drives together before the first purge, and to compare
            the rates.
        alone_again: whether to measure a drive once more and alone if the other drives slowed this drive down.
        own_cpus: whether to assign to each drive separate CPUs near the drive, if there are enough CPUs.
    """

    parallel: Parallel = "auto"
    stagger_s: float = 0.0
    strict: bool = False
    compare_reads: bool = True
    alone_again: bool = False
    own_cpus: bool = True


class BatchRequest(BatchSettings, frozen=True, kw_only=True):
    """A batch as the user requests it.

    Attributes:
        name: the name of the batch, whose ledger is NAME.batch.
        drives: the drives in the order of the file.
        claims: text of a claims file. None means that there are no claims.
        claims_path: path of the claims file, for messages.
        tkperf: the path of tkperf on the hosts.

    Raises:
        UsageError: there is no drive, a name occurs twice, or a number is impossible.
    """

    name: str
    drives: tuple[BatchDrive, ...]
    claims: str | None = None
    claims_path: str | None = None
    tkperf: str = DEFAULT_TKPERF

    def __post_init__(self) -> None:
        require_name(self.name)
        if not self.drives:
            raise UsageError("a batch needs at least one drive")
        seen: set[str] = set()
        for drive in self.drives:
            require_name(drive.name)
            if drive.name in seen:
                raise UsageError(
                    f"two drives of the batch have the name {drive.name}. Give each drive a different name"
                )
            seen.add(drive.name)
        if self.name in seen:
            # The log and the report of the batch also have this name.
            raise UsageError(
                f"a drive of the batch has the same name as the batch, {self.name}. Give the drive another name"
            )
        self._check_hosts()
        if isinstance(self.parallel, int) and self.parallel < 1:
            raise UsageError(
                "parallel: the number of drives that are measured at the same time must be 1 or more, but it is "
                f"{self.parallel}"
            )
        if not 0 <= self.stagger_s <= LONGEST_STAGGER_S:
            raise UsageError(f"stagger: {self.stagger_s:g} s is outside 0 to {LONGEST_STAGGER_S:,}")

    def _check_hosts(self) -> None:
        hosts = {drive.host for drive in self.drives}
        if None in hosts and len(hosts) > 1:
            raise UsageError(
                "the batch names a host for some of its drives but not for others. Name a host for every "
                "drive. Write localhost for the drives of this machine"
            )
        for host in hosts - {None}:
            if _HOST.fullmatch(host or "") is None:
                raise UsageError(
                    f"'{host}' is not the name of a host. Write, for example, user@lab3, or the name of a Host in "
                    "~/.ssh/config"
                )
        if _PATH.fullmatch(self.tkperf) is None:
            raise UsageError(
                f"tkperf: '{self.tkperf[:60]}' is not a valid path. Write an absolute path that contains "
                "only letters, digits and the characters '/', '.', '_', '+' and '-'"
            )

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the drives, in their order. An empty value means this host."""
        return tuple(dict.fromkeys(one.host for one in self.drives if one.host is not None))

    @property
    def run_names(self) -> tuple[tuple[BatchDrive, str], ...]:
        """Each drive with the name of its run. If drives may be measured once more and alone, each drive occurs a
        second time, with the name of the second run.
        """
        once = tuple((drive, drive.name) for drive in self.drives)
        again = ((drive, f"{drive.name}{AGAIN}") for drive in self.drives if self.alone_again)
        return (*once, *again)

    @property
    def simulated(self) -> frozenset[int]:
        """The numbers of the simulated drives."""
        return frozenset(
            number for number, drive in enumerate(self.drives, start=1) if drive.request.device.startswith(SIMULATED)
        )


def parse_seconds(text: str) -> float:
    """Return the number of seconds in a time such as ``30s``, ``5min``, ``1h`` or ``30``.

    Raises:
        UsageError: the text is not a time.
    """
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)\s*([a-z]*)", text.strip(), re.ASCII)
    if match is None or match[2] not in _SECONDS:
        raise UsageError(f"'{text[:40]}' is not a time. Write, for example, 30s or 5min")
    return float(match[1]) * _SECONDS[match[2]]


def parse_parallel(text: str) -> Parallel:
    """Return the value of a text that is ``auto``, ``all`` or a number of drives.

    Raises:
        UsageError: the text has another form.
    """
    if text in ("auto", "all"):
        return cast("Parallel", text)
    if re.fullmatch("[0-9]{1,4}", text, re.ASCII) is None:
        raise UsageError(f"'{text[:40]}' is not a number of drives. Write auto, all, or a number such as 4")
    return int(text)
