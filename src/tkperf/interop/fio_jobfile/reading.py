"""fio's job files as jobs with their options, in fio's dialect. Pure: files come through a function.

The dialect (fio's HOWTO, "Job file format", and tried with fio 3.33) is no INI file that configparser
could read: sections of the same name are different jobs, each ``[global]`` holds for the jobs below it
only, whatever begins with ``global`` is one, indented lines are options, not continuations, and
``;`` and ``#`` end a line wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tkperf.interop.fio_jobfile.rules import ALIASES
from tkperf.model.errors import InputFileError, UsageError

# fio's own limit of a line (OPT_LEN_MAX); what is longer it takes for two.
LONGEST_LINE = 4096
MOST_JOBS = 256
MOST_INCLUDES = 64
LONGEST_SHOWN = 60
_KEYWORD = re.compile(r"\$(?:\{[^}]*\}|mb_memory|ncpus|pagesize)")

ReadFile = Callable[[str, str], tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option as it stands in a file; ``value`` is None where there is no ``=``.

    ``name`` is fio's own, where ``spelled`` may be an alias.
    """

    name: str
    spelled: str
    value: str | None
    file: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}"

    def __str__(self) -> str:
        """``bs=4k``, shortened."""
        text = self.spelled if self.value is None else f"{self.spelled}={self.value}"
        return shown(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A section that is a job, with what the global sections above it say.

    Attributes:
        options: by fio's own name, aliases resolved; the one given last is the last of them.
        overridden: those that the same section says again, later.
    """

    name: str
    file: str
    line: int
    options: Mapping[str, Option]
    overridden: tuple[Option, ...] = ()


@dataclass(slots=True)
class _Section:
    name: str
    line: int
    options: list[Option] = field(default_factory=list)


def read_jobs(file: str, text: str, read_included: ReadFile) -> tuple[Job, ...]:
    """The jobs of a file, in order.

    Args:
        read_included: from the name in an ``include`` line and that of the file it stands in, the
            file it means and its text.

    Raises:
        InputFileError: it is no job file, with file and line.
    """
    jobs: list[Job] = []
    shared: dict[str, Option] = {}
    for section in _sections(file, text, read_included):
        if section.name.startswith("global"):
            _add(shared, section.options)
            continue
        own = dict(shared)
        overridden = _add(own, section.options)
        jobs.append(
            Job(
                name=section.name,
                file=file,
                line=section.line,
                options=own,
                overridden=tuple(overridden),
            )
        )
        if len(jobs) > MOST_JOBS:
            raise InputFileError(f"{file}: more than {MOST_JOBS} jobs; no test is as long")
    if not jobs:
        raise InputFileError(f"{file}: it has no job: a job is a section such as [randread]")
    return tuple(jobs)


def shown(text: str) -> str:
    """Text of a file for a message, shortened."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _add(options: dict[str, Option], added: list[Option]) -> list[Option]:
    """Options set as fio does, in order; returns those of ``added`` that a later one replaces."""
    replaced = []
    for option in added:
        before = options.pop(option.name, None)
        if before in added and before.value != option.value:
            replaced.append(before)
        options[option.name] = option
    return replaced


def _sections(file: str, text: str, read_included: ReadFile) -> Iterator[_Section]:
    section: _Section | None = None
    included = [0]
    for number, line in _lines(file, text):
        if line.startswith("["):
            if section is not None:
                yield section
            if not line.endswith("]") or not line[1:-1].strip():
                raise InputFileError(
                    f"{file}, line {number}: '{shown(line)}' is no section: it is [name]"
                )
            section = _Section(line[1:-1], number)
        elif section is None:
            raise InputFileError(
                f"{file}, line {number}: '{shown(line)}' stands before the first [section], which fio "
                "refuses; is it a job file?"
            )
        else:
            section.options += _options(file, number, line, read_included, (file,), included)
    if section is not None:
        yield section


def _options(
    file: str,
    number: int,
    line: str,
    read_included: ReadFile,
    chain: tuple[str, ...],
    included: list[int],
) -> Iterator[Option]:
    """The option of a line, or those of the file that it includes."""
    if not line.startswith("include"):
        yield _option(file, number, line)
        return
    wanted = line[len("include") + 1 :].strip()
    if not wanted or line[len("include")] not in " \t=":
        raise InputFileError(f"{file}, line {number}: '{shown(line)}': write include FILE")
    included[0] += 1
    if included[0] > MOST_INCLUDES:
        raise InputFileError(f"{file}, line {number}: more than {MOST_INCLUDES} included files")
    try:
        path, text = read_included(wanted, file)
    except UsageError as error:
        raise InputFileError(f"{file}, line {number}: {error}") from None
    if path in chain:
        raise InputFileError(
            f"{file}, line {number}: {shown(wanted)} includes itself: {' -> '.join([*chain, path])}"
        )
    for inner, text_line in _lines(path, text):
        if text_line.startswith("["):
            raise InputFileError(
                f"{path}, line {inner}: a section in an included file, which fio refuses"
            )
        yield from _options(path, inner, text_line, read_included, (*chain, path), included)


def _option(file: str, number: int, line: str) -> Option:
    name, equals, value = line.partition("=")
    name = name.strip()
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise InputFileError(
            f"{file}, line {number}: '{shown(line)}' is neither an option nor a section; is it a job "
            "file?"
        )
    found = _KEYWORD.search(value)
    if found:
        raise InputFileError(
            f"{file}, line {number}: {name}: {shown(found[0])} is filled in by fio from the environment or "
            "the host, so that the load would not be known: write its value"
        )
    return Option(
        name=ALIASES.get(name, name),
        spelled=name,
        value=value.strip() if equals else None,
        file=file,
        line=number,
    )


def _lines(file: str, text: str) -> Iterator[tuple[int, str]]:
    """Lines with something in them, without comments."""
    if "\0" in text:
        raise InputFileError(f"{file}: it is not a job file but holds binary data")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            raise InputFileError(
                f"{file}, line {number}: longer than {LONGEST_LINE:,} characters, which fio does not "
                "read as one line"
            )
        left = re.split("[;#]", line, maxsplit=1)[0].strip()
        if left:
            yield number, left
