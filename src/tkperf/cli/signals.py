"""Ctrl-C, SIGTERM and a lost terminal, each taken as a request to end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_signals(*, once: bool) -> Iterator[None]:
    """Raise KeyboardInterrupt on each of them; with ``once`` only on the first, so that the end is in order.

    Under nohup, which ignores SIGHUP already, a lost terminal ends nothing.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)

    def end(*_: object) -> None:
        for number in numbers if once else ():
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
