"""Job files of the tests, and what converts them."""

from __future__ import annotations

from pathlib import Path

from tkperf.interop.fio_jobfile.convert import convert_job_file

JOBS = Path(__file__).parent / "jobs"
NAMES = sorted(path.stem for path in JOBS.glob("*.fio"))


def convert(text: str, *, file: str = "a.fio") -> tuple[str, tuple[str, ...]]:
    return convert_job_file(text, file=file, name="mine")


def convert_file(name: str) -> tuple[str, tuple[str, ...]]:
    path = JOBS / f"{name}.fio"
    return convert(path.read_text(), file=str(path))
