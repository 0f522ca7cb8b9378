"""Block sizes, where I/Os begin, and how random addresses are spread."""

from __future__ import annotations

from functools import partial

from tkperf.engine.fio_job import MIX_ALIGNMENT_BYTES
from tkperf.interop.fio_jobfile import notation
from tkperf.interop.fio_jobfile.account import JobOptions
from tkperf.interop.fio_options import DEFAULT_BLOCK_BYTES
from tkperf.model.units import KIB, format_block_size
from tkperf.model.workload import Access, BlockShare, Zone
from tkperf.procedures.profiles.tables import LARGEST_BLOCK_KIB

Blocks = tuple[BlockShare, ...]


def read_blocks(options: JobOptions, access: Access, read_percent: int) -> Blocks:
    """Sizes and shares of the directions that are used, which have to be the same.

    As in fio, of ``bs`` and ``bsrange`` the one given last counts, ``bssplit`` before them.
    """
    names = options.given("bs", "bsrange")
    name = "bssplit" if "bssplit" in options else names[-1] if names else "bs"
    default: Blocks = (BlockShare(DEFAULT_BLOCK_BYTES, 100),)
    sides = options.value(
        name, partial(_read_sizes, name, kb_base=options.kb_base), (default, default)
    )
    shares = (read_percent, 100 - read_percent)
    used = [side for side, share in zip(sides, shares, strict=True) if share]
    blocks = used[0]
    if any(side != blocks for side in used):
        options.refuse(name, "reads and writes of a load have the same block sizes in tkperf")
    if any(size % 512 or size > LARGEST_BLOCK_KIB * KIB for size, _ in blocks):
        options.refuse(name, "a block size is a multiple of 512 bytes, 16 MiB at most")
        blocks = default
    options.keep(name, key="block_shares" if len(blocks) > 1 else "block_size_kib")
    options.drop(*(other for other in names if other != name), why=f"{name} decides")
    _check_alignment(options, access, blocks, shares)
    return blocks


def read_zones(options: JobOptions, access: Access) -> tuple[Zone, ...]:
    """How random addresses are spread; empty: evenly."""
    name = "random_distribution"
    text = options.text(name) or "random"
    kind, _, zones = text.partition(":")
    if access is Access.SEQUENTIAL:
        options.drop(name, why="it does nothing without random access")
    elif text == "random":
        options.drop(name, why="fio's default, which does nothing")
    elif kind != "zoned":
        options.refuse(name, "tkperf spreads addresses evenly, or by random_distribution=zoned")
    else:
        even: tuple[Zone, ...] = ()
        found = options.value(name, lambda _: notation.read_zones(zones), even)
        options.keep(name, key="zone_shares")
        return found
    return ()


def _read_sizes(name: str, text: str | None, *, kb_base: int) -> tuple[Blocks, Blocks]:
    if name == "bssplit":
        return notation.read_block_split(text, kb_base)
    read = notation.read_block_range if name == "bsrange" else notation.read_block_sizes
    of_reads, of_writes = read(text, kb_base)
    return (BlockShare(of_reads, 100),), (BlockShare(of_writes, 100),)


def _check_alignment(
    options: JobOptions, access: Access, blocks: Blocks, shares: tuple[int, int]
) -> None:
    """fio begins I/Os at multiples of the smallest block, tkperf those of a random mix at 4 KiB."""
    sizes = [size_bytes for size_bytes, _ in blocks]
    default = min(sizes)
    sides = options.value(
        "ba", partial(notation.read_block_sizes, kb_base=options.kb_base), (default, default)
    )
    aligned = {side for side, share in zip(sides, shares, strict=True) if share}
    is_random_mix = len(sizes) > 1 and access is Access.RANDOM
    ours = MIX_ALIGNMENT_BYTES if is_random_mix and max(sizes) >= MIX_ALIGNMENT_BYTES else default
    if aligned == {ours}:
        options.drop("ba", why="I/Os of tkperf begin at such multiples anyway")
        return
    options.refuse(
        "ba",
        f"I/Os begin at multiples of {format_block_size(max(aligned))}, those of tkperf at multiples of "
        f"{format_block_size(ours)}",
        default=f"blockalign={format_block_size(default)} (fio's default)",
    )
