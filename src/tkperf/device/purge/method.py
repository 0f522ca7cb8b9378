"""Types that all purge methods share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tkperf.device.hold import Handle
from tkperf.device.permit import ErasePermit
from tkperf.device.waiting import wait_until
from tkperf.model.errors import DeviceError, EngineError
from tkperf.system.process import Completed, run_command

# A drive answers a question about itself at once, a busy one within seconds.
QUERY_LIMIT_S = 30.0
SANITIZE_LIMIT_S = 24 * 3600.0
_POLL_S = 2.0


def _ignore(*_: object) -> None:
    """Ignore a report of a purge that is not followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeWatch:
    """Callbacks that follow a purge.

    ``progress`` gets the share done (0..1) about once a second; None if the device does not report
    it. ``note`` gets a stable code and a text that must be on record *before* an act; it returns
    when the record is durable.
    """

    progress: Callable[[float | None], None] = _ignore
    note: Callable[[str, str], None] = _ignore


NO_WATCH = PurgeWatch()


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeMethod:
    """One way to erase a device. ``act`` returns when it is done, or raises.

    ``reads_zero``: the device promises that it reads as zeros afterwards. ``automatic``: tkperf may
    choose it by itself.
    """

    name: str
    title: str
    reads_zero: bool
    act: Callable[[ErasePermit, PurgeWatch], None]
    automatic: bool = True

    @property
    def overwrites(self) -> bool:
        """Return whether the method leaves the device written, not as new; then expect no fast start."""
        return self.name == "write-zeroes" or self.name.endswith("-overwrite")


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRefusal:
    """A method that a device cannot or must not use, with the reason."""

    name: str
    because: str


Offer = PurgeMethod | PurgeRefusal


def run_tool(
    device: Handle,
    argv: list[str],
    *,
    limit_s: float,
    on_tick: Callable[[], None] = lambda: None,
    must_finish: bool = False,
) -> Completed:
    """Run an erasing tool, which inherits the lock on the device; its exit status must be 0.

    Raises:
        DeviceError: the tool is missing, failed or took too long.
    """
    try:
        done = run_command(
            argv,
            timeout_s=limit_s,
            on_tick=on_tick,
            must_finish=must_finish,
            inherit=device.descriptors,
        )
    except EngineError as error:
        raise DeviceError(f"purging {device.name} failed: {error}") from error
    if done.status != 0:
        output = " ".join((done.stderr.strip() or done.stdout.strip()).split())
        called = " ".join(argv).replace(device.path, device.name)
        raise DeviceError(
            f"purging {device.name} failed: '{called}' ended with status {done.status}"
            + (f": {output.replace(device.path, device.name)[:300]}" if output else "")
        )
    return done


def wait_for_end(what: str, is_done: Callable[[], bool], *, limit_s: float) -> None:
    """Wait for the end of a purge that the drive does by itself, even if tkperf ends.

    Raises:
        DeviceError: it takes too long.
    """
    if not wait_until(is_done, limit_s=limit_s, every_s=_POLL_S):
        raise DeviceError(f"{what} did not end within {limit_s / 3600:g} h")
