"""The gate before a load. All threads pass after the gate was opened, and no thread passes if the owner of the gate
died.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import until
from tkperf.engine.gate import Gate


def waiter(gate_command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", gate_command])


def test_all_wait_until_the_gate_opens_and_late_comers_pass(tmp_path: Path) -> None:
    """Several threads wait at one gate until it opens. A thread that arrives later passes at once."""
    gate = Gate(tmp_path, "a")
    waiting = [waiter(gate.command) for _ in range(3)]
    until(lambda: gate.waiting == 3)
    time.sleep(0.3)  # a thread that did not wait would end now
    assert [process.poll() for process in waiting] == [None] * 3
    gate.open()
    assert [process.wait(timeout=60) for process in waiting] == [0] * 3
    assert waiter(gate.command).wait(timeout=60) == 0


def test_who_waits_and_who_died_is_known(tmp_path: Path) -> None:
    """The gate reports how many threads are waiting and whether a helper was killed. If the folder of the gate was
    removed, the gate reports the removal in the same manner.
    """
    gate = Gate(tmp_path, "a")
    assert (gate.waiting, gate.lost) == (0, False)
    waiting = [waiter(gate.command) for _ in range(2)]
    until(lambda: gate.waiting == 2)
    assert not gate.lost
    waiting[0].kill()
    waiting[0].wait()
    assert (gate.waiting, gate.lost) == (1, True)
    for path in tmp_path.iterdir():
        path.unlink()
    assert gate.lost
    with pytest.raises(FileNotFoundError):
        gate.open()
    gate.close()
    assert waiting[1].wait(timeout=60) != 0


def test_the_lock_is_dropped_only_after_the_gate_is_marked_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate is marked as open before its lock is released. If a waiting thread received the lock before the mark was
    set, it would conclude that the owner has died.
    """
    gate = Gate(tmp_path, "a")
    rename, held = Path.rename, []

    def watched(path: Path, target: Path) -> Path:
        with (tmp_path / "a.lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(True)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", watched)
    gate.open()
    assert held == [True]


def test_a_closed_gate_fails_its_waiters(tmp_path: Path) -> None:
    """After a gate is closed, its waiting threads fail, so a discarded step starts no I/O."""
    gate = Gate(tmp_path, "a")
    waiting = waiter(gate.command)
    until(lambda: gate.waiting == 1)
    gate.close()
    assert waiting.wait(timeout=60) != 0


def test_when_the_owner_is_killed_the_gate_fails_closed(tmp_path: Path) -> None:
    """If tkperf is killed with kill -9, the gate remains closed. The kernel releases the lock, no thread starts I/O,
    and no thread continues to wait.
    """
    code = (
        "import sys, time; from pathlib import Path; from tkperf.engine.gate import Gate\n"
        "g = Gate(Path(sys.argv[1]), 'a'); print(g.command, flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    waiting = waiter(owner.stdout.readline().decode().strip())
    arrived = tmp_path / "a.arrived"
    until(lambda: arrived.exists() and arrived.stat().st_size > 0)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert waiting.wait(timeout=60) != 0
