"""Reader of fio's job files: jobs with their options, in fio's dialect.

The dialect (fio's HOWTO, "Job file format", and tests with fio 3.33) differs from INI files, so
configparser cannot read it: sections of the same name are different jobs, each ``[global]`` applies only
to the jobs below it, every section whose name begins with ``global`` is one, indented lines are
options, not continuations, and ``;`` and ``#`` end a line anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tkperf.model.errors import InputFileError

# Aliases of the options that are carried over or refused.
ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blockalign": "ba",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "io_limit": "io_size",
    "fill_fs": "fill_device",
    "fileoffset": "offset",
    "nr_files": "nrfiles",
    "timeout": "runtime",
    "iomem": "mem",
    "ratemin": "rate_min",
    "wait_for_previous": "stonewall",
    "ss": "steadystate",
    # Names that are new in fio 3.39. Before, these were separate options.
    "allrandrepeat": "randrepeat",
    "log_max_value": "log_window_value",
    "log_unix_epoch": "log_alternate_epoch",
    "data_placement": "dataplacement",
    "fdp_pli": "plids",
    "fdp_pli_select": "plid_select",
}
MOST_SECTIONS = 256
LONGEST_SHOWN = 60
_KEYWORD = re.compile(r"\$(?:\{[^}]*\}|mb_memory|ncpus|pagesize)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a file; ``value`` is None without a ``=``.

    ``name`` is fio's own name; ``spelled`` may be an alias.
    """

    name: str
    spelled: str
    value: str | None
    place: str

    def __str__(self) -> str:
        """Return ``bs=4k``, shortened."""
        return shorten_text(self.spelled if self.value is None else f"{self.spelled}={self.value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A section that is a job, with the options of the global sections above it.

    ``options`` have fio's own names, in the order of the file; the last of repeated ones counts.
    """

    name: str
    place: str
    line: int
    options: Mapping[str, Option]


@dataclass(frozen=True, slots=True)
class _Line:
    file: str
    number: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.number}"

    def error(self, reason: str) -> InputFileError:
        return InputFileError(f"{self.place}: {reason}")


def read_jobs(file: str, text: str) -> tuple[Job, ...]:
    """Return the jobs of a file, in order, by its name and its text.

    Raises:
        InputFileError: it is no job file; names file and line.
    """
    jobs: list[Job] = []
    shared: dict[str, Option] = {}
    options: dict[str, Option] | None = None
    for line in _lines(file, text):
        if line.text.startswith("["):
            name = _section_name(line)
            options = shared
            if not name.startswith("global"):
                options = dict(shared)
                jobs.append(Job(name=name, place=line.place, line=line.number, options=options))
        elif re.match(r"include\b", line.text):
            raise line.error(f"'{shorten_text(line.text)}': tkperf reads one file: write its lines here instead")
        elif options is None:
            raise line.error(
                f"'{shorten_text(line.text)}' is above the first [section], which fio refuses; is it a job file?"
            )
        else:
            option = _option(line)
            options.pop(option.name, None)
            options[option.name] = option
        if len(jobs) > MOST_SECTIONS:
            raise InputFileError(f"{file}: more than {MOST_SECTIONS} jobs; no test is as long")
    if not jobs:
        raise InputFileError(f"{file}: it has no job: a job is a section such as [randread]")
    return tuple(jobs)


def shorten_text(text: str) -> str:
    """Return text of a file for a message, shortened."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _section_name(line: _Line) -> str:
    if not line.text.endswith("]") or not line.text[1:-1].strip():
        raise line.error(f"'{shorten_text(line.text)}' is no section: it is [name]")
    return line.text[1:-1]


def _option(line: _Line) -> Option:
    name, equals, value = line.text.partition("=")
    name = name.strip()
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise line.error(f"'{shorten_text(line.text)}' is neither an option nor a section; is it a job file?")
    found = _KEYWORD.search(value)
    if found:
        raise line.error(
            f"{name}: {shorten_text(found[0])} is filled in by fio from the environment or the host, so that "
            "the load would not be known: write its value"
        )
    return Option(name=ALIASES.get(name, name), spelled=name, value=value.strip() if equals else None, place=line.place)


def _lines(file: str, text: str) -> Iterator[_Line]:
    """Yield lines without comments, except empty ones."""
    if "\0" in text:
        raise InputFileError(f"{file}: it is not a job file but holds binary data")
    for number, line in enumerate(text.split("\n"), 1):
        left = re.split("[;#]", line, maxsplit=1)[0].strip()
        if left:
            yield _Line(file, number, left)
