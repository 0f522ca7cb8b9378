"""Keep the host from sleeping during a run, where systemd-inhibit is available."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tkperf.model.errors import EngineError
from tkperf.model.record import RunNote
from tkperf.runner.events import Noted, Observer
from tkperf.system.process import PIPE, Process, find_program, start_process, stop_process

INHIBIT = "systemd-inhibit"
HELD = b"held\n"
ANSWER_S = 5.0


@contextmanager
def kept_awake(name: str, *, on_note: Observer) -> Iterator[None]:
    """Block sleep, suspend and the lid switch until the end. ``on_note`` gets a note on failure.

    A child process of systemd-inhibit lives as long as the lock is needed. The kernel ends both when
    tkperf dies. A failure here never ends a run.
    """
    process: Process | None = None
    try:
        process = _start(name, on_note)
        yield
    finally:
        if process is not None:
            stop_process(process, grace_s=2.0)
            _close(process)


def _start(name: str, on_note: Observer) -> Process | None:
    if find_program(INHIBIT) is None:
        _note(on_note, f"there is no {INHIBIT}")
        return None
    argv = [
        INHIBIT, "--what=sleep:idle:handle-lid-switch", "--who=tkperf", f"--why=measuring {name}",
        "--mode=block", "sh", "-c", "echo held; exec sleep infinity",
    ]  # fmt: skip
    try:
        process = start_process(argv, cwd=Path("/"), stdout=PIPE, stderr=PIPE)
    except EngineError as error:
        _note(on_note, str(error))
        return None
    assert process.stdout is not None
    assert process.stderr is not None
    ready, _, _ = select.select([process.stdout], [], [], ANSWER_S)
    if ready and process.stdout.readline() == HELD:
        return process
    stop_process(process, grace_s=2.0)
    error_text = (
        process.stderr.read().decode(errors="replace") if process.poll() is not None else ""
    )
    _close(process)
    _note(on_note, " ".join(error_text.split())[:200] or f"{INHIBIT} does not answer")
    return None


def _close(process: Process) -> None:
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _note(on_note: Observer, why: str) -> None:
    text = f"the host may go to sleep during the run, nothing keeps it from that: {why}"
    on_note(Noted(note=RunNote(code="sleep-not-inhibited", text=text)))
