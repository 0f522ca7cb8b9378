"""Jobs of workers: functions that read run files, by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tkperf.analysis.over_seconds import analyse_opened
from tkperf.model.choices import BATCH_SUFFIX
from tkperf.model.errors import RunFileError
from tkperf.render.reports import build_run_view, render_html
from tkperf.runfile.reader import RunFile
from tkperf.web.index import encode_row
from tkperf.web.reading import read_batch_row, read_run_row
from tkperf.web.site import KnownFile
from tkperf.web.workers import Jobs


def make_report(file: KnownFile) -> bytes:
    """Return the report's page."""
    with open_known(file) as opened:
        record = opened.record()
        result = analyse_opened(opened, record)
        view = build_run_view(opened, record, result)
    return render_html(view).encode()


def make_row(file: KnownFile) -> bytes:
    """Return what the library keeps of a run file or a batch."""
    if file.place.endswith(BATCH_SUFFIX):
        return encode_row(read_batch_row(reach(file)))
    with open_known(file) as opened:
        return encode_row(read_run_row(opened))


@contextmanager
def open_known(known: KnownFile) -> Iterator[RunFile]:
    """Open the file that the library found, and no other that has its name now.

    Raises:
        RunFileError: see RunFile; or it is another file.
    """
    path = reach(known)
    with RunFile(path, briefly=True) as opened:
        if opened.state[:2] != known.stamp[:2]:
            raise _changed(known)
        yield opened


def reach(known: KnownFile) -> Path:
    """Return the path of a known file after a walk to it that follows no link below the served folder.

    Raises:
        RunFileError: a link or another file has taken its place.
    """
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = [os.open(known.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        for name in Path(known.place).parts:
            opened.append(os.open(name, flags, dir_fd=opened[-1]))
        status = os.fstat(opened[-1])
    except OSError as error:
        raise _changed(known) from error
    finally:
        for descriptor in opened:
            os.close(descriptor)
    if (status.st_dev, status.st_ino) != known.stamp[:2]:
        raise _changed(known)
    return known.folder / known.place


def _changed(known: KnownFile) -> RunFileError:
    return RunFileError(
        f"{known.place} is no longer the file that was found here: go back to the list, which is looked through again"
    )


JOBS: Jobs = {"report": make_report, "row": make_row}
