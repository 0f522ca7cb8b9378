"""Waiting for a drive, a set or the kernel: the one loop that asks again and again."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep


def wait_until(
    is_done: Callable[[], bool],
    *,
    limit_s: float,
    every_s: float,
    progress: Callable[[], object] = lambda: None,
) -> bool:
    """Ask until it is done; return False if that takes longer than the limit.

    Args:
        progress: the limit begins anew whenever its result changes; it is called after ``is_done``.
    """
    last, since_s = progress(), monotonic()
    while not is_done():
        if (now := progress()) != last:
            last, since_s = now, monotonic()
        if monotonic() - since_s > limit_s:
            return False
        sleep(every_s)
    return True
