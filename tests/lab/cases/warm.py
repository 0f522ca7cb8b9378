"""Run the command line in a copy of this process, because starting Python and loading tkperf takes eight seconds in the
lab.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from importlib import import_module
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import IO

from tests.prepared_process import examine_types
from tkperf.cli.main import main
from tkperf.pipeline import result_cache
from tkperf.procedures.read_profiles import load_profile

# The commands load these modules only when they are called.
for name in ("cli.session", "cli.ending", "pipeline.diagnosis", "page.doctor"):
    import_module(f"tkperf.{name}")
# This call reads the files of all code on which results depend, which takes four seconds in the lab.
result_cache.describe_maker()
# Each run reads its profile and compares it with the shipped profiles. The copies of this process already contain these
# profiles in decoded form.
load_profile(str(Path(__file__).parent / "lab.toml"))
examine_types()


def run_warm(arguments: list[str], limit_s: float) -> tuple[int, str, str]:
    """Run ``tkperf`` with these arguments. Return exit status, stdout and stderr, as a separate process would produce
    them.

    Raises:
        TimeoutError: The command took longer than ``limit_s``, and was killed.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        copy = start_warm(arguments, out.fileno(), err.fileno())
        copy.join(limit_s)
        if copy.exitcode is None:
            copy.kill()
            copy.join()
            raise TimeoutError(f"tkperf {' '.join(arguments)}: longer than {limit_s} s: {_text(err)}")
        return copy.exitcode, _text(out), _text(err)


def start_warm(arguments: list[str], out: int, err: int) -> ForkProcess:
    """Start ``tkperf`` with these arguments. Use these file descriptors for stdout and stderr."""
    copy = multiprocessing.get_context("fork").Process(target=_run, args=(arguments, out, err))
    copy.start()
    return copy


def _run(arguments: list[str], out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    # The streams of pytest write to other files, so they are replaced.
    sys.stdin = open(os.devnull)  # noqa: SIM115
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
    sys.argv = ["tkperf", *arguments]
    main()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
