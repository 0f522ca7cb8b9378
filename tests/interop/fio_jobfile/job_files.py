"""Job files of the tests, and what converts them."""

from __future__ import annotations

from pathlib import Path

from tkperf.interop.fio_jobfile.convert import Converted, convert_job_file

JOBS = Path(__file__).parent / "jobs"
NAMES = sorted(path.stem for path in JOBS.glob("*.fio"))


def convert(text: str, *, file: str = "a.fio") -> Converted:
    return convert_job_file(text, file=file, name="mine")


def convert_file(name: str) -> Converted:
    path = JOBS / f"{name}.fio"
    return convert(path.read_text(), file=str(path))
