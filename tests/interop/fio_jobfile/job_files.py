"""Job files for the tests, and functions that convert them."""

from __future__ import annotations

from pathlib import Path

from tkperf.interop.fio_jobfile.convert import convert_job_file
from tkperf.interop.fio_jobfile.job_load import Wishes

JOBS = Path(__file__).parent / "jobs"
NAMES = sorted(path.stem for path in JOBS.glob("*.fio"))


def convert(text: str, *, file: str = "a.fio", wishes: Wishes | None = None) -> tuple[str, tuple[str, ...]]:
    return convert_job_file(text, file=file, name="mine", wishes=wishes)


def convert_file(name: str) -> tuple[str, tuple[str, ...]]:
    path = JOBS / f"{name}.fio"
    return convert(path.read_text(), file=str(path))
