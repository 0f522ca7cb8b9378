"""Fixtures that create scratch files and loop devices for the tests."""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from tests.prepared_process import stop_syncs
from tkperf.device.identity import read_identity
from tkperf.device.safety import find_objections
from tkperf.device.sysfs import takes_discards
from tkperf.host.audit import Audit
from tkperf.system import process
from tkperf.system.process import FIO_VARIABLE

# The test cases of the lab do not use Hypothesis, and loading Hypothesis in the lab machine takes five seconds.
if "TKPERF_LAB" not in os.environ:
    from hypothesis import HealthCheck, settings

    # Examples have no time limit, because their duration depends on how busy the machine is.
    settings.register_profile("tkperf", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("tkperf")

# The collection creates objects that all remain until the end of the test run. Python would search these objects for
# garbage again and again. This search would take a third of the CPU time of the collection.
gc.disable()

if "TKPERF_LAB" not in os.environ:
    stop_syncs()

T = TypeVar("T")
MIB = 1 << 20
OWN_CACHE = "TKPERF_TESTS_CACHE"


def _find_fio_by_path() -> None:
    """Put a folder with the fio that TKPERF_FIO names at the front of the PATH. Tests call fio by its name, and hide
    fio with stand-ins on the PATH.
    """
    named = os.environ.pop(FIO_VARIABLE, None)
    if named is not None:
        folder = Path(tempfile.mkdtemp(prefix="tkperf-tests-fio-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        (folder / "fio").symlink_to(Path(named).resolve(strict=True))
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


_find_fio_by_path()


def _use_own_cache() -> None:
    """Give all tests of this call a separate cache folder, so that each call starts with an empty cache.

    Thousands of entries in the user's cache would make every run and every page slower. ``uv`` and ``pip`` keep the
    user's cache, because it contains the packages from which tests make archives.
    """
    if OWN_CACHE in os.environ:
        return  # the workers of pytest-xdist use the folder of their parent
    of_user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for program in ("uv", "pip"):
        os.environ.setdefault(f"{program.upper()}_CACHE_DIR", str(of_user / program))
    folder = tempfile.mkdtemp(prefix="tkperf-tests-cache-")
    os.environ[OWN_CACHE] = os.environ["XDG_CACHE_HOME"] = folder
    atexit.register(_remove_own_cache, folder, os.getpid())


def _remove_own_cache(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


_use_own_cache()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the test files that use fio, because these tests take longest and mostly wait."""
    waiting = {item.path for item in items if item.get_closest_marker("fio")}
    items.sort(key=lambda item: item.path not in waiting)


def pytest_collection_finish() -> None:
    """Exclude the collected tests from every later search for garbage."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _quiet_host(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Disable the findings of the host audit, because the result of a test must not depend on how busy the host is.

    Tests in tests/host/ and tests with the marker ``audited`` test the audit itself.
    """
    if request.node.get_closest_marker("audited") is None:
        monkeypatch.setattr("tkperf.pipeline.run_plan.audit_for", lambda *_, **__: Audit())


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return a file of 64 MiB that is filled with one byte value, so that every erased byte is detected."""
    path = tmp_path / "scratch.img"
    path.write_bytes(b"\xa5" * (64 * MIB))
    return path


def run_tool(*argv: str | Path) -> str:
    return subprocess.run([str(word) for word in argv], check=True, capture_output=True, text=True).stdout.strip()


def why_no_loop_devices() -> str | None:
    if os.geteuid() != 0:
        return "needs root for loop devices"
    if not Path("/dev/loop-control").exists() or shutil.which("losetup") is None:
        return "this machine has no loop devices"
    return None


@contextmanager
def loop_numbers() -> Iterator[None]:
    """Prevent other tests, including those of other checkouts, from attaching a free loop device at the same time."""
    with Path(tempfile.gettempdir(), "tkperf-tests-loop.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def until(holds: Callable[[], T | None], says: str = "the expected event did not occur") -> T:
    """Call a function until it returns a true value, and return this value. Fail after a minute."""
    until_s = time.monotonic() + 60
    while not (found := holds()):
        assert time.monotonic() < until_s, says
        time.sleep(0.02)
    return found


def children_of(pid: int) -> list[int]:
    """Return the child processes that the first thread of a process has started, in the order of their start."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def run_when_free(*argv: str | Path) -> None:
    """Run a program that changes a mount or a loop device. Other tests may open the mount or the device at any moment.
    Run the program again as long as the mount or the device is busy.
    """
    words = [str(word) for word in argv]

    def has_succeeded() -> bool:
        done = subprocess.run(words, check=False, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        if done.returncode == 0:
            return True
        # The second message appears while the kernel detaches a loop device.
        assert any(says in done.stderr for says in ("busy", "No such device or address")), done.stderr
        return False

    until(has_succeeded, f"{' '.join(words)}: busy")


def unmount(point: Path) -> None:
    run_when_free("umount", point)


def wait_until_free(path: Path) -> None:
    """Wait until nothing prevents tkperf from erasing a device or file that was unmounted.

    Another test may start a program in its own mount namespace at any moment. This namespace contains copies of all
    mounts, and the copies exist until the program ends.
    """
    until = time.monotonic() + 60
    while objections := find_objections(read_identity(path)):
        assert time.monotonic() < until, objections
        time.sleep(0.5)


def attach_loop(*options: str | Path) -> Path:
    """Attach a free loop device to the file that the options name. Return the path of the device."""
    with loop_numbers():
        return Path(run_tool("losetup", "--find", "--show", *options))


def attach_again(device: Path, *options: str | Path) -> None:
    """Attach another file to the loop device with this name.

    If another process, such as a survey in another test, has the device open, the kernel detaches the former file only
    when this process closes the device.
    """
    with loop_numbers():
        run_tool("losetup", "--detach", device)
        run_when_free("losetup", *options[:-1], device, options[-1])


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Yield a function that creates loop devices over fresh files. Detach the loop devices at the end of the test."""
    if reason := why_no_loop_devices():
        pytest.skip(reason)
    made: list[Path] = []
    before: dict[Path, str] = {}

    def make(*options: str, size: int = 64 * MIB) -> Path:
        image = tmp_path / f"loop{len(made)}.img"
        image.write_bytes(b"\xa5" * size)
        device = attach_loop(*options, image)
        if not takes_discards(Path("/sys/block", device.name)):
            # In one run of all tests, the kernel (6.18) offered no discards for a loop device over a regular file. The
            # cause is not known. A second attachment sets the limits of the device again.
            attach_again(device, *options, image)
        made.append(device)
        scheduler = Path("/sys/block", device.name, "queue/scheduler")
        before[scheduler] = scheduler.read_text().partition("[")[2].partition("]")[0]
        # The setting iostats remains when a loop device is attached to another file, so an earlier user may have
        # switched iostats off.
        with suppress(OSError):  # sysfs may be mounted read-only
            Path("/sys/block", device.name, "queue/iostats").write_text("1\n")
        return device

    yield make
    for scheduler, name in before.items():
        with suppress(OSError):
            scheduler.write_text(name)
    for device in made:
        subprocess.run(["losetup", "--detach", device], check=False)


@pytest.fixture(
    params=["that cannot start", "for which no thread is left", "that ends at once", "that is killed", "that hangs"]
)
def failing_workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause an error in every task that tkperf gives to one of its own helper processes."""
    start_module = process.start_module

    def no_thread(_: object) -> None:
        raise RuntimeError("can't start new thread")

    def start(module: str) -> process.Process:
        if request.param == "that cannot start":
            raise OSError
        if request.param == "for which no thread is left":
            monkeypatch.setattr("tkperf.system.process.threading.Thread.start", no_thread)
        if request.param == "that ends at once":
            return start_module("tkperf.no_such_module")
        started = start_module(module)
        started.send_signal(signal.SIGKILL if request.param == "that is killed" else signal.SIGSTOP)
        return started

    monkeypatch.setattr("tkperf.system.process.start_module", start)
    if request.param == "that hangs":
        monkeypatch.setattr("tkperf.system.process.ANSWER_LIMIT_S", 1.0)
