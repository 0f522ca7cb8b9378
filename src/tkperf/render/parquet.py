"""Tables as Parquet. It needs more than the base install, so only this module loads it, late."""

from __future__ import annotations

import io
from itertools import islice

from tkperf.render.export_tables import DataTable, one_line
from tkperf.render.packages import packages_of

_ROWS_AT_ONCE = 1 << 16


def require_parquet() -> None:
    """Check for pyarrow before anything is written.

    Raises:
        UsageError: pyarrow is missing.
    """
    with packages_of("parquet", whose="Parquet needs"):
        import pyarrow.parquet  # noqa: F401, PLC0415


def render_parquet(table: DataTable) -> bytes:
    """Return a table as one Parquet file; an unmeasured value is null.

    Raises:
        UsageError: pyarrow is missing.
    """
    require_parquet()
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    kinds = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(column, kinds[kind]) for column, kind in table.types.items()])
    rows, file = iter(table.rows), io.BytesIO()
    with parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            arrays = zip(*batch, strict=True)
            columns = [pa.array(map(_clean, values), kind) for values, kind in zip(arrays, schema.types, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    return file.getvalue()


def _clean(value: object) -> object:
    """Return a text in the same form as in CSV tables: on one line, without control characters."""
    return one_line(value) if isinstance(value, str) else value
