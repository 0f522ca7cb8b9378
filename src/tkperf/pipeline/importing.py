"""The conversion of results from other tools to run files."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from tkperf.interop.fio_documents import describe_text
from tkperf.interop.fio_json import FioResults
from tkperf.interop.imported import MOST_LISTED, ImportedRun, natural_key, one_line
from tkperf.interop.tkperf_xml import parse_tkperf_xml
from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import InputFileError, RunFileError, UsageError
from tkperf.model.input_files import RESULTS_BYTES, read_input
from tkperf.model.record import RunNote, RunStatus
from tkperf.model.run_info import IMPORTED, RunInfo
from tkperf.model.units import format_count
from tkperf.model.version import __version__
from tkperf.pipeline.run_request import LONGEST_NAME, refuse_long_name
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import write_whole
from tkperf.runner.events import (
    Judged,
    Observer,
    RunEnded,
    RunStarted,
    SectionEnded,
    StepEnded,
    TestEnded,
    TestStarted,
    Warned,
)
from tkperf.system.host import now_utc

# The first bytes of compressed files.
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"PK\3\4": "zip"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Run files that were made from the results of other tools.

    Attributes:
        warnings: facts that were omitted or are unusual.
        summary: the imported results, in words.
    """

    paths: tuple[Path, ...]
    warnings: tuple[RunNote, ...]
    summary: str


def import_results(files: tuple[Path, ...], folder: Path, name: str | None) -> Imported:
    """Write run files from results of other tools.

    Raises:
        UsageError: the files contain several runs, but ``name`` names only one run.
        InputFileError: no result could be imported.
    """
    refuse_long_name("--name", name or "")
    run_name = one_line(name or "") or None
    expanded = _expand(files)
    xml, fio, first_of_fio = _read_all(expanded)
    if xml and not fio.count_taken():
        first_of_fio = None
    made = len(xml) + (first_of_fio is not None)
    if run_name and made > 1:
        raise UsageError(
            f"--name can name only one run, but {made} runs would be created from these files. Each "
            "XML file becomes one run, and all files of fio together become one run. Import the "
            "files one by one"
        )
    taken = len(xml) + fio.count_taken()
    runs = [(replace(run, name=run_name or run.name), file.name) for file, run in xml]
    warnings = fio.remarks.warnings()
    if first_of_fio is not None:
        run = fio.build_run(run_name or _name_of_run(first_of_fio, files))
        of_fio = fio.count_taken()
        runs.append((run, first_of_fio.name if of_fio == 1 else f"{of_fio:,} files of fio"))
        warnings = run.warnings
    if not runs:
        reasons = "; ".join(warning.text for warning in warnings[:MOST_LISTED])
        raise InputFileError(f"nothing could be imported: {reasons}")
    paths = _write_runs(runs, folder)
    return Imported(
        paths=tuple(paths),
        warnings=tuple(warnings),
        summary=_summarise([run for run, _ in runs], taken, len(expanded) - taken),
    )


def _expand(given: Sequence[Path]) -> tuple[Path, ...]:
    """Return the named files, and the files in the named folders. A folder without results stays in the list, and is
    omitted later.
    """
    return tuple(file for path in given for file in (_find_results(path) or [path]))


def _find_results(folder: Path) -> list[Path]:
    """Return the files that are below a folder and have the name of a JSON or XML file. Links to folders are not
    followed.
    """
    found: list[Path] = []
    if folder.is_dir():
        unread: list[OSError] = []
        for place, folders, names in os.walk(folder, onerror=unread.append):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            found += [Path(place, name) for name in sorted(names) if _is_result_name(name)]
        found += [Path(error.filename) for error in unread]
    return found


def _is_result_name(name: str) -> bool:
    """Return whether a file name is the name of a result, such as ``r1.json``, ``r1.json.2`` or ``R1.XML``, but not
    ``.r1.json.swp``.
    """
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    return not name.startswith(".") and (".json" in suffixes or ".xml" in suffixes)


def _name_of_run(first: Path, given: Sequence[Path]) -> str:
    """Return the name of the folder if only one folder was given. Otherwise return the name of the first file."""
    folder = next((path for path in given if path != first and path in first.parents), None)
    return one_line(first.stem if folder is None else folder.resolve().name)


def _write_runs(runs: Sequence[tuple[ImportedRun, str]], folder: Path) -> list[Path]:
    """Write a run file for each run, with the name of its source. If one run file cannot be written, all of them are
    removed, so that the user can repeat the command.
    """
    paths: dict[Path, str] = {}
    for run, source in runs:
        path = folder / f"{_file_name(run.name)}{RUN_FILE_SUFFIX}"
        if path in paths:
            raise UsageError(
                f"{paths[path]} and {source} would both be imported to {path}. Import the files one by one, with --name"
            )
        paths[path] = source
    with ExitStack() as undo:
        for (run, source), path in zip(runs, paths, strict=True):
            with write_whole(path) as write:
                _write_events(write, run, one_line(source))
            undo.callback(path.unlink)
            _require_readable(path)
        undo.pop_all()
    return list(paths)


def _require_readable(path: Path) -> None:
    """Read a new run file as reports read it. Imported results may exceed the limits of a run file, and this check
    detects the excess.
    """
    try:
        read_run(path)
    except RunFileError as error:
        raise InputFileError(
            f"these results do not fit into one run file: {error}. Import them in parts, such as one folder at a time"
        ) from None


def _summarise(runs: Sequence[ImportedRun], taken: int, left_out: int) -> str:
    """Return a summary such as ``imported 12 files: 60 rounds in 4 sections; 1 file left out``."""
    tests = [test for run in runs for test in run.tests]
    rounds = sum(len({(step.section, step.number) for step in test.steps}) for test in tests)
    sections = sum(len({step.section for step in test.steps}) for test in tests)
    return (
        f"imported {format_count(taken, 'file')}: {format_count(rounds, 'round')} in "
        f"{format_count(sections, 'section')}; {format_count(left_out, 'file')} left out"
    )


def _read_all(files: Sequence[Path]) -> tuple[list[tuple[Path, ImportedRun]], FioResults, Path | None]:
    """Read each file and keep only its results. Return the runs from XML files, the results from fio's output files,
    and the first of fio's output files.

    A file that cannot be read or interpreted is omitted, and the reason is recorded.
    """
    xml: list[tuple[Path, ImportedRun]] = []
    fio, of_fio = FioResults(), set()
    for file in sorted(files, key=lambda path: natural_key(str(path))):
        try:
            content = _read(file)
            if _is_xml(file, content):
                xml.append((file, parse_tkperf_xml(content, file=str(file))))
                continue
        except UsageError as error:
            if len(files) == 1:
                raise
            fio.leave_out(str(file), str(error).removeprefix(f"{file}: "))
            continue
        of_fio.add(file)
        text, file_bytes = _text(content), len(content)
        del content  # this frees memory for the decoded values
        fio.add(str(file), text, file_bytes)
    return xml, fio, next((file for file in files if file in of_fio), None)


def _is_xml(file: Path, content: bytes) -> bool:
    """Return whether a file is XML.

    The beginning of the file decides. If the beginning is unclear, the name decides, so that errors refer to XML. Lines
    of fio's client begin with the name of a server in the form ``<host>``.
    """
    beginning = _text(content[:1024]).lstrip()
    if beginning.startswith(("<?xml", "<!")):
        return True
    named = file.suffix.lower() == ".xml"
    if not named and not beginning.startswith("<"):
        return False
    text = _text(content)
    if '"fio version"' in text or describe_text(text):
        return False
    tag = re.match(r"<([^\s<>/]+)", beginning)
    if tag is None:
        return named and "{" not in text
    return named or f"</{tag[1]}" in text


def _text(content: bytes) -> str:
    """Return the decoded text. The content may begin with a byte order mark, as shells and editors of Windows write."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def _read(file: Path) -> bytes:
    if file.is_dir():
        none = "no file in this folder, or below it, is named .json or .xml; name the files"
        raise UsageError(f"{file}: {none if os.access(file, os.R_OK) else 'folder cannot be read'}")
    content = read_input(file, what="the result", limit_bytes=RESULTS_BYTES)
    for start, form in _COMPRESSED.items():
        if content.startswith(start):
            raise UsageError(f"{file}: the file is compressed ({form}). Unpack the file, and import the unpacked file")
    return content


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name).lstrip("._+-")[:LONGEST_NAME] or "imported"


def _write_events(write: Observer, run: ImportedRun, source: str) -> None:
    write(RunStarted(info=_info(run, source), tests=tuple(test.name for test in run.tests)))
    for warning in run.warnings:
        write(Warned(warning=warning))
    for test in run.tests:
        write(TestStarted(test=test.name, at_s=0.0, plan=test.plan))
        for step in test.steps:
            write(StepEnded(test=test.name, record=step))
        for record in test.verdicts:
            write(Judged(test=test.name, section=record.section, number=record.number, verdict=record.verdict))
        for outcome in test.outcomes:
            write(SectionEnded(test=test.name, outcome=outcome))
        write(TestEnded(test=test.name, status=test.status, at_s=None))
    write(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc=None))


def _day(written_s: float | None) -> str | None:
    """Return the day on which fio wrote the results. The time of day is omitted, because fio does not report the time
    of the first I/O.
    """
    try:
        return None if not written_s else datetime.fromtimestamp(written_s, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return None  # not a valid time


def _info(run: ImportedRun, source: str) -> RunInfo:
    """Return the facts that the other tool recorded. All other facts are not known."""
    imported = now_utc()
    return RunInfo(
        name=run.name,
        suite="ssd",
        tkperf_version=f"{run.tool}, imported by tkperf {__version__}",
        fio_version=run.fio_version,
        ioengine="not known",
        command_line=(run.command_line,) if run.command_line else (),
        started_utc=run.date or _day(run.written_s),
        profile_name=run.profile_name,
        profile=run.profile,
        options={},
        device={"model": None, "kind": IMPORTED, "write_cache_in_run": None},
        hosts=({**run.host, "hostname": None},),
        active_range_offset_bytes=None,
        active_range_length_bytes=None,
        uuid=str(uuid4()),
        device_description=run.description,
        feature_matrix=run.feature_matrix,
        notices=(
            f"IMPORTED from {source}, written by {run.tool}, on {imported[:10]}: numbers are "
            "that tool's, purge and preconditioning are not known",
            *run.notices,
        ),
    )
