"""A drive with its permit, as the runner sees it: checked again, purged, its cache set."""

from __future__ import annotations

from collections.abc import Callable

from tkperf.device.permit import ErasePermit
from tkperf.device.purge import PurgeMethod, PurgeWatch, run_purge
from tkperf.device.write_cache import WriteCache
from tkperf.model.record import NO_PURGE, PurgeResult

NOT_PURGED = PurgeResult(method=NO_PURGE, note="--no-purge")


class DriveTarget:
    """One drive or file during one run."""

    def __init__(self, permit: ErasePermit, method: PurgeMethod | None, cache: WriteCache) -> None:
        """Take a permit; ``method`` is None if the user wants no purge."""
        self._permit = permit
        self._method = method
        self._cache = cache

    @property
    def purges(self) -> bool:
        """Return whether a purge does anything."""
        return self._method is not None

    def recheck(self) -> None:
        self._permit.recheck()

    def make_ready_to_fill(self) -> None:
        """Do nothing: a drive is always ready."""

    def make_ready(self, *, on_progress: Callable[[float | None], None]) -> None:
        """Do nothing: a drive is always ready."""

    def purge(
        self,
        *,
        on_progress: Callable[[float | None], None],
        on_note: Callable[[str, str], None],
    ) -> PurgeResult:
        if self._method is None:
            return NOT_PURGED
        verification = run_purge(
            self._permit, self._method, watch=PurgeWatch(progress=on_progress, note=on_note)
        )
        # Erasing may have reset the drive, and with it its settings.
        self._cache.apply()
        return PurgeResult(method=self._method.title, note=verification.text)
