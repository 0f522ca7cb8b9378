"""Write run files of imported results, which appear under their name whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tkperf.model.errors import RunFileError, UsageError, reason_of
from tkperf.runfile.opening import describe_existing
from tkperf.runfile.writer import RunFileWriter
from tkperf.system.output_files import make_folder


@contextmanager
def write_whole(path: Path) -> Iterator[RunFileWriter]:
    """Yield a writer of a file that appears under its name only if the block ends without an error.

    Raises:
        RunFileError: as from a writer, or the folder cannot be made.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    if os.path.lexists(path):
        raise RunFileError(describe_existing(path))
    try:
        make_folder(path.parent)
    except UsageError as error:
        raise RunFileError(str(error)) from error
    except OSError as error:
        raise RunFileError(f"cannot make the folder {path.parent}: {reason_of(error)}") from error
    writer = RunFileWriter(partial, patient=False)
    try:
        try:
            yield writer
        finally:
            writer.close()
        _move_to(path, partial)
    finally:
        partial.unlink(missing_ok=True)
        partial.with_name(partial.name + "-journal").unlink(missing_ok=True)


def _move_to(path: Path, partial: Path) -> None:
    """Give the file its name; if another file took that name meanwhile, that file keeps it."""
    try:
        try:
            path.hardlink_to(partial)
        except FileExistsError:
            raise RunFileError(describe_existing(path)) from None
        except OSError:
            # A file system without links: here is a moment between looking and moving.
            if os.path.lexists(path):
                raise RunFileError(describe_existing(path)) from None
            partial.rename(path)
    except OSError as error:
        raise RunFileError(f"cannot create {path}: {reason_of(error)}") from error
