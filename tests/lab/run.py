"""Run the lab: ``python -m tests.lab.run [core|full] [pytest options]``.

The script boots the machine once and runs the cases in it. After all cases, it runs the case with two boots
(``reset.py``). The exit status is that of pytest. If the lab is not available, the script prints SKIP with the reason,
and the exit status is 0.
"""

from __future__ import annotations

import os
import resource
import shlex
import signal
import subprocess
import sys
import time

from tests.lab import reset
from tests.lab.kernel import LabUnavailableError
from tests.lab.machine import CHECKOUT, JobResult, run_job

# The limits are several times the duration on an idle host, so that a slow host does not cause a failure.
LIMITS_S = {"core": 3600.0, "full": 10800.0}
PYTEST = (
    "export TKPERF_LAB={which} PATH=$PWD/.venv/bin:$PATH PYTEST_DISABLE_PLUGIN_AUTOLOAD=1; "
    ".venv/bin/python -m pytest tests/lab/cases -p no:cacheprovider "
    "-o addopts= -p pytest_timeout -o timeout=0 --import-mode=importlib --strict-markers -q --tb=no --no-header "
)


def main(arguments: list[str]) -> int:
    """Run the lab and return the exit status."""
    which = arguments[0] if arguments else "core"
    if which not in LIMITS_S:
        print("usage: python -m tests.lab.run core|full [pytest options]", file=sys.stderr)
        return 2
    options = [*(["-m", "core"] if which == "core" else []), *arguments[1:]]
    # After SIGTERM, the script ends the machine and deletes its disks.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    _compile_cases(which)
    began_s, used_s = time.monotonic(), _cpu_time_s()
    try:
        result = _run_cases(which, options)
        if result.frozen is not None:
            # If a process or a CPU of the machine stops responding, the kernel of the machine reports this, and the
            # machine still writes its uptime. If the machine writes no uptime, the emulator is the probable cause.
            print(f"lab: the machine froze and is started once more: {result.frozen}", flush=True)
            result = _run_cases(which, options)
    except LabUnavailableError as error:
        print(f"SKIP: the lab cannot run here: {error}")
        return 0
    took_s = time.monotonic() - began_s
    if result.status is None:
        print(result.kernel_log[-4000:])
        print(f"lab: the machine ended after {took_s:.0f} s without finishing the cases. {result.frozen or ''}")
        print("lab: the last that the cases said:", *result.output.splitlines()[-8:], sep="\n    ")
        return 1
    used_s = _cpu_time_s() - used_s
    print(f"lab: {which} took {took_s:.0f} s and {used_s:.0f} s of CPU time; what it left is in .lab/last")
    if which == "full" and not arguments[1:]:
        return result.status or reset.main()
    return result.status


def _compile_cases(which: str) -> None:
    """Let pytest compile the cases on the host. The machine reads the files of the host, and would itself need ten
    seconds to compile the cases.

    An error in a case is reported later by pytest in the machine.
    """
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        ["sh", "-c", PYTEST.format(which=which) + "--collect-only"],
        cwd=CHECKOUT,
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )


def _cpu_time_s() -> float:
    """Return the CPU time of all child processes that have ended, including the virtual machine."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _run_cases(which: str, options: list[str]) -> JobResult:
    return run_job(
        PYTEST.format(which=which) + shlex.join(options), limit_s=LIMITS_S[which], keep=CHECKOUT / ".lab/last"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
