"""A workload as columns of a run file, and back: in tables ``step`` and ``under_way``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from tkperf.strict import describe_mistake
from tkperf.workload import Access, ActiveRange, Arrival, BlockShare, Workload, Zone

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_MOST_SHARES = 64
_MOST_CHARACTERS = 4096


class _Row(msgspec.Struct, kw_only=True):
    """``block_mix`` and ``zones`` are JSON; null is the usual."""

    access: Access
    read_percent: int
    block_size_bytes: int
    jobs: int
    io_depth: int
    block_mix: Annotated[str, msgspec.Meta(max_length=_MOST_CHARACTERS)] | None = None
    zones: Annotated[str, msgspec.Meta(max_length=_MOST_CHARACTERS)] | None = None
    offered_iops: Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max)] | None = None
    arrival: Arrival | None = None
    compressible_percent: int | None = None
    region_offset_bytes: Count | None = None
    region_length_bytes: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] | None = None


WORKLOAD_COLUMNS = _Row.__struct_fields__


def workload_columns(workload: Workload) -> dict[str, object]:
    """The values of ``WORKLOAD_COLUMNS``; null where the workload has nothing unusual."""
    region, offered = workload.region, workload.offered_iops
    return {
        "access": workload.access,
        "read_percent": workload.read_percent,
        "block_size_bytes": workload.block_size_bytes,
        "jobs": workload.jobs,
        "io_depth": workload.io_depth,
        "block_mix": json.dumps(workload.block_mix) if workload.block_mix else None,
        "zones": json.dumps(workload.zones) if workload.zones else None,
        "offered_iops": offered,
        "arrival": None if offered is None else workload.arrival,
        "compressible_percent": workload.compressible_percent,
        "region_offset_bytes": region and region.offset_bytes,
        "region_length_bytes": region and region.length_bytes,
    }


def parse_workload(table: str, columns: Mapping[str, Any]) -> Workload:
    """The workload of a row.

    Raises:
        ValueError: a column holds what cannot be; names the table and the column.
    """
    try:
        row = msgspec.convert(columns, _Row)
        return Workload(
            access=row.access,
            read_percent=row.read_percent,
            block_size_bytes=row.block_size_bytes,
            jobs=row.jobs,
            io_depth=row.io_depth,
            block_mix=_shares(row.block_mix, BlockShare),
            zones=_shares(row.zones, Zone),
            offered_iops=row.offered_iops,
            arrival=row.arrival or Arrival.LINEAR,
            compressible_percent=row.compressible_percent,
            region=_region(row),
        )
    except msgspec.ValidationError as error:
        raise ValueError(f"table {table}{describe_mistake(error, _Row, columns)}") from error


def _shares(text: str | None, type_: type[BlockShare | Zone]) -> tuple[Any, ...]:
    if text is None:
        return ()
    shares = msgspec.json.decode(text, type=list[tuple[Count, Count]])
    if not 0 < len(shares) <= _MOST_SHARES:
        raise ValueError(f"{len(shares)} shares")
    return tuple(type_(*share) for share in shares)


def _region(row: _Row) -> ActiveRange | None:
    if row.region_length_bytes is None:
        return None
    return ActiveRange(
        offset_bytes=row.region_offset_bytes or 0, length_bytes=row.region_length_bytes
    )
