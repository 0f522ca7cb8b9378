"""Words for what one load does to another."""

from __future__ import annotations

from tkperf.analysis.loads_together import READ_P99, InterferenceGrid, NeighbourEffect
from tkperf.model.units import NOT_MEASURED, format_block_size_kib


def describe_limit(limit_us: float) -> str:
    """Return the limit of a grid in words: ``p99 ≤ 1 ms``."""
    limit = f"{limit_us / 1000:g} ms" if limit_us >= 1000 else f"{limit_us:g} µs"
    return f"{READ_P99.short} ≤ {limit}"


def name_read_blocks(grid: InterferenceGrid) -> str:
    """Return ``4 KiB random``."""
    reads = next(cell.reads.workload for cell in grid.cells.values() if cell.reads is not None)
    return f"{format_block_size_kib(reads.block_size_bytes)} KiB random"


def describe_factor(effect: NeighbourEffect) -> str:
    """Return a factor with its interval: ``2.31 × (2.29 to 2.33)``; of a reader that fell short a lower bound."""
    if effect.factor is None:
        return NOT_MEASURED
    if effect.kept_share is not None:
        return f"at least {effect.factor:.3g} ×, as the reader did {100 * effect.kept_share:.0f} % of its rate"
    known = effect.uncertainty
    if known is None or known.low is None or known.high is None:
        return f"{effect.factor:.3g} ×"
    return f"{effect.factor:.3g} × ({known.low:.3g} to {known.high:.3g})"
