"""Write tables as Parquet.

The packages for Parquet are not part of the base installation. Only this module imports them, and only when a table is
written.
"""

from __future__ import annotations

import io
import os
from itertools import islice
from pathlib import Path

from tkperf.render.export_tables import DataTable, one_line
from tkperf.render.packages import packages_of

_ROWS_AT_ONCE = 1 << 16
_RUN_ID = "tkperf_run_id"
_FOOTER_BYTES = 1 << 16


def require_parquet() -> None:
    """Check that pyarrow is installed, before tkperf writes anything.

    Raises:
        UsageError: pyarrow is missing.
    """
    with packages_of("parquet", whose="Parquet needs"):
        import pyarrow.parquet  # noqa: F401, PLC0415


def render_parquet(table: DataTable, run_id: str) -> bytes:
    """Return a table of a run as the content of a Parquet file. The value null means that a value was not measured. The
    metadata contain ``run_id``.

    Raises:
        UsageError: pyarrow is missing.
    """
    require_parquet()
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    kinds = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(column, kinds[kind]) for column, kind in table.types.items()], {_RUN_ID: run_id})
    rows, file = iter(table.rows), io.BytesIO()
    with parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            arrays = zip(*batch, strict=True)
            columns = [pa.array(map(_clean, values), kind) for values, kind in zip(arrays, schema.types, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    return file.getvalue()


def is_of_run(path: Path, run_id: str) -> bool:
    """Return whether a file is a table of this run that ``render_parquet`` wrote.

    The function searches the end of the file, where Parquet stores its metadata. The function does not parse the file,
    because any program may have written it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            size_bytes = os.fstat(descriptor).st_size
            file.seek(max(0, size_bytes - _FOOTER_BYTES))
            footer = file.read(_FOOTER_BYTES)
    except OSError:
        return False
    return _RUN_ID.encode() in footer and run_id.encode() in footer


def _clean(value: object) -> object:
    """Return a text in the same form as in CSV tables: on one line and without control characters."""
    return one_line(value) if isinstance(value, str) else value
