"""Functions for the standard streams and the signals of the process. Every command loads this module."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TextIO

import click

from tkperf.model.errors import reason_of
from tkperf.model.units import drop_controls, is_copied, wrap_words


def complain(text: str) -> None:
    """Print lines on stderr without control characters. On a terminal, lines are broken only between words. If stderr
    was lost, the function ignores the error.
    """
    with suppress(OSError):
        click.echo(in_whole_words(drop_controls(text)), err=True)


def in_whole_words(text: str) -> str:
    """Return text with line ends between words, so that a terminal does not break words. Text for a pipe, and lines
    that a user copies, are not changed.
    """
    if not sys.stderr.isatty():
        return text
    width = os.get_terminal_size(sys.stderr.fileno()).columns
    return "\n".join(
        "\n".join(wrap_words(line, width, break_long_words=False))
        if 0 < width < len(line) and not is_copied(line)
        else line
        for line in text.split("\n")
    )


@contextmanager
def warning_of(what: str) -> Iterator[None]:
    """Convert every error, even an unexpected error, to a line on stderr."""
    try:
        yield
    except KeyboardInterrupt:
        complain(f"tkperf: warning: {what}: stopped by the user")
    except Exception as error:
        complain(f"tkperf: warning: {what}: {reason_of(error)}")


def prepare_streams() -> None:
    """Change the streams so that they accept any text, and open missing streams on the null device. Otherwise the next
    opened file, such as a run file, would receive the number of a missing stream. A path can contain bytes that are not
    characters. Such bytes are escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def let_go(stream: TextIO) -> None:
    """Discard text that a stream could not write. Otherwise Python would try to write the text again when it exits, and
    the exit status would be 120.
    """
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def point_streams_to(descriptor: int, numbers: Sequence[int]) -> None:
    """Connect standard streams, which are given by their numbers, to an open file. Close the file descriptor of the
    file.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    for number in numbers:
        os.dup2(descriptor, number)
    if descriptor not in numbers:
        os.close(descriptor)


@contextmanager
def ended_by_signals(*, once: bool) -> Iterator[None]:
    """Raise KeyboardInterrupt when one of these signals arrives. With ``once``, only the first signal raises
    KeyboardInterrupt, so that the run can end normally.

    With ``once``, later signals are ignored until the process has ended. The terminal and the waiting parent process
    may both pass on the same Ctrl-C. The second signal must not interrupt the last message. nohup already ignores
    SIGHUP, so the loss of the terminal has no effect under nohup.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)

    ending = False

    def end(*_: object) -> None:
        nonlocal ending
        if once:
            ending = True
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in () if ending else before.items():
            signal.signal(number, handler)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection. A run of several days has a million objects, and none of these objects is garbage. If
    garbage collection searched these objects, the searches would take a tenth of the process's time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # without this call, Python would search all these objects as soon as the collector is enabled
        gc.enable()
