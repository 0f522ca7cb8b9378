"""tkperf sweep: measure every combination of threads, queue depths, block sizes, mixes and compressibility."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.suite_options import CONSENT, LOAD, PURGE, RESULT, RUN_ARGUMENTS, SIZE, TRUST, common, profile_option
from tkperf.model.errors import UsageError
from tkperf.model.units import KIB, parse_size_bytes
from tkperf.model.workload import Access


class _Values(click.ParamType[tuple[float, ...]]):
    """A list of values that are separated by commas. The table of the test determines which values are valid."""

    name = "list"

    def __init__(self, read: Callable[[str], float], example: str) -> None:
        self._read, self._example = read, example

    def convert(self, value: Any, param: object, ctx: object) -> tuple[float, ...]:
        if not isinstance(value, str):
            return tuple(value)
        try:
            return tuple(self._read(word.strip()) for word in value.split(","))
        except (ValueError, UsageError) as error:
            return self.fail(f"'{value[:40]}': {error}; write for example {self._example}")


def _whole(word: str) -> int:
    if not word.isdecimal() or len(word) > len(str(2**31)):
        raise ValueError(f"'{word[:20]}' is not a whole number")
    return int(word)


def _read_percent(word: str) -> int:
    """Return a percentage from a text such as ``65``, or ``65/35`` as in the PTS."""
    reads, stroke, writes = word.partition("/")
    if stroke and _whole(reads) + _whole(writes) != 100:
        raise ValueError(f"the shares of reads and writes in '{word[:20]}' do not add up to 100")
    return _whole(reads)


def _size_kib(word: str) -> float:
    size_bytes = parse_size_bytes(word)
    if size_bytes % 512:
        raise ValueError(f"the block size must be a multiple of 512 bytes, but it is {size_bytes} bytes")
    return size_bytes / KIB


_WHOLE_NUMBERS = _Values(_whole, "1,2,4")
_LISTS = (
    common("--threads", "jobs", type=_WHOLE_NUMBERS, metavar="N,N...", help="Thread counts (TC)."),
    common(
        "--depth",
        "io_depths",
        type=_WHOLE_NUMBERS,
        metavar="N,N...",
        help="Numbers of outstanding I/Os of each thread (QD).",
    ),
    common(
        "--block-size",
        "block_sizes_kib",
        type=_Values(_size_kib, "512,4k,128k,1m"),
        metavar="SIZE,SIZE...",
        help="Block sizes in the form of fio, such as 512,4k,1m.",
    ),
    common(
        "--mix",
        "read_percents",
        type=_Values(_read_percent, "100,70,0 or 100/0,70/30"),
        metavar="R/W,R/W...",
        help="Read/write mixes such as 100/0,65/35, or only the shares of reads such as 100,65.",
    ),
    common(
        "--compressibility",
        "compressible_percents",
        type=_Values(_whole, "0,50,90"),
        metavar="PERCENT,PERCENT...",
        help="Shares of the data that compression in the drive could save, in %; 0 means random data.",
    ),
    common("--access", type=click.Choice([access.value for access in Access]), help="Order of the addresses."),
)


@click.command(
    cls=Command,
    params=[*RUN_ARGUMENTS, *_LISTS, profile_option("pts-e-1.1"), *LOAD, SIZE, *PURGE, *TRUST, *CONSENT, *RESULT],
)
def sweep(profile: str, **options: Any) -> None:
    """Measure every combination of the given values and store everything in NAME.tkperf. DEVICE is erased.

    After purge and preconditioning, tkperf measures all combinations in rounds until the hardest combination is steady.
    The hardest combination has the fewest reads and the most outstanding I/Os. By default, the command measures random
    4 KiB reads and writes with 4 and 1 threads and queue depths from 128 to 1. This test is not part of any
    specification.

    \b
    Examples:
      tkperf sweep depth /dev/sdb --threads 1 --depth 256,64,16,4,1 --mix 100/0
      tkperf sweep sizes /dev/sdb --block-size 1m,128k,16k,4k --access sequential -rt 20
      tkperf sweep entropy /dev/sdb --compressibility 0,50,90 --depth 32,1 --mix 0
      tkperf sweep look ./scratch.img --size 1GiB --profile quick
    """
    from tkperf.cli.run_options import read_options
    from tkperf.cli.session import run_session
    from tkperf.procedures import load_profile, with_numbers
    from tkperf.procedures.workload_sweep import TEST, SweepTable

    numbers = {str(option.name): options.pop(str(option.name)) for option in _LISTS}
    numbers = {key: value for key, value in numbers.items() if value is not None}
    changed = with_numbers(load_profile(profile), SweepTable, **numbers)
    options |= {"tests": (TEST.name,), "profile": changed}
    run_session(*read_options(TEST.suites[0], options))
