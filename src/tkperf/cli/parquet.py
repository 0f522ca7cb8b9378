"""Tables as Parquet. It needs more than the base install, so only this module loads it, late."""

from __future__ import annotations

import io
from itertools import islice

from tkperf.analysis.export_tables import COUNTS, FLAGS, TEXTS, Table
from tkperf.errors import UsageError

_ROWS_AT_ONCE = 1 << 16


def render_parquet(table: Table) -> bytes:
    """A table as one Parquet file; what was not measured is null.

    Raises:
        UsageError: pyarrow is missing.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            f"Parquet needs more packages ({error.name} is missing): pip install 'tkperf[parquet]'"
        ) from error

    def find_type(column: str) -> pa.DataType:
        if column in TEXTS:
            return pa.string()
        if column in FLAGS:
            return pa.bool_()
        return pa.int64() if column in COUNTS else pa.float64()

    schema = pa.schema([(column, find_type(column)) for column in table.columns])
    rows, file = iter(table.rows), io.BytesIO()
    with parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            arrays = zip(*batch, strict=True)
            columns = [
                pa.array(each, kind) for each, kind in zip(arrays, schema.types, strict=True)
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    return file.getvalue()
