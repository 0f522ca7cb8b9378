"""Decode a claims file (TOML) strictly. See docs/reference/claims.md."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from typing import Annotated

import msgspec

from tkperf.analysis.characteristics import CHARACTERISTICS, DROPS
from tkperf.model.errors import InputFileError, UsageError
from tkperf.model.quantity import LATENCY_MIN, QUANTITIES, Better, Direction
from tkperf.model.reported_percentiles import REPORTED_PERCENTILES
from tkperf.model.strict import decode_strictly, shallow
from tkperf.model.units import parse_size_bytes
from tkperf.model.workload import Access, Arrival

METRICS = (
    *(key for key, quantity in QUANTITIES.items() if quantity.better is not Better.NEITHER and quantity != LATENCY_MIN),
    *CHARACTERISTICS,
)
_PERCENTS = tuple(f"{percent:g}" for percent in REPORTED_PERCENTILES)
# The number of claims is limited, because tkperf searches the whole run for each claim.
MOST_CLAIMS = 10_000


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A promise about one workload. The promise gives a lower limit or an upper limit for the value of ``metric``.

    The keys from ``stream`` to ``io_depth`` are necessary only if a section contains the same mix and block size with
    several values of these keys. ``direction`` selects the reads or the writes of a mix. A claim about a characteristic
    of a section over time (``CHARACTERISTICS``) needs no mix and no block size if only one workload has this
    characteristic. A claim that names a stream also needs no mix and no block size. A claim with ``not_found`` promises
    that the characteristic is absent.
    """

    test: Annotated[str, msgspec.Meta(min_length=1)]
    metric: str
    read_percent: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    block_size: str | Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] | None = None
    at_least: float | None = None
    at_most: float | None = None
    not_found: bool = False
    section: str | None = None
    stream: str | None = None
    access: Access | None = None
    zones: str | None = None
    compressible_percent: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    region: str | None = None
    offered_iops: Annotated[float, msgspec.Meta(gt=0)] | None = None
    arrival: Arrival | None = None
    jobs: Annotated[int, msgspec.Meta(ge=1)] | None = None
    io_depth: Annotated[int, msgspec.Meta(ge=1)] | None = None
    direction: Direction = Direction.ALL
    source: str | None = None

    def size_bytes(self) -> int | None:
        """Return the block size in bytes, or None if the claim contains no block size.

        Raises:
            InputFileError: the text is not a block size.
        """
        return None if self.block_size is None else parse_size_bytes(str(self.block_size))


class Quantiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A promise about the latency of a workload. ``within_us`` contains a limit in µs for each percentile.

    For example, ``{"99" = 500, "99.9" = 1000}`` promises that 99 % of the I/Os take at most 500 µs, and 99.9 % at most
    1,000 µs.
    """

    test: Annotated[str, msgspec.Meta(min_length=1)]
    read_percent: Annotated[int, msgspec.Meta(ge=0, le=100)]
    block_size: str | Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    within_us: Annotated[dict[str, float], msgspec.Meta(min_length=1)]
    section: str | None = None
    stream: str | None = None
    jobs: Annotated[int, msgspec.Meta(ge=1)] | None = None
    io_depth: Annotated[int, msgspec.Meta(ge=1)] | None = None
    offered_iops: Annotated[float, msgspec.Meta(gt=0)] | None = None
    direction: Direction = Direction.ALL
    source: str | None = None

    def claims(self) -> Iterator[Claim]:
        """Yield a claim for each percentile, in ascending order."""
        same = {key: getattr(self, key) for key in Claim.__struct_fields__ if key in self.__struct_fields__}
        for percent in sorted(self.within_us, key=float):
            key = f"p{float(percent):g}_us"
            yield Claim(**same, metric=key, at_most=self.within_us[percent])


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An earlier run with which the new run is compared. No cell of the new run may be more than ``within_percent``
    worse than the same cell of the earlier run.
    """

    run: str
    within_percent: Annotated[float, msgspec.Meta(gt=0, lt=100)]


class ClaimsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    claim: Annotated[tuple[Claim, ...], msgspec.Meta(max_length=MOST_CLAIMS)] = ()
    quantiles: Annotated[tuple[Quantiles, ...], msgspec.Meta(max_length=MOST_CLAIMS)] = ()
    baseline: Baseline | None = None


def parse_claims(text: str, *, file: str) -> ClaimsFile:
    """Decode a claims file. ``file`` is the name of the claims file in error messages. The limit for each percentile
    becomes a separate claim. These claims follow the other claims.

    Raises:
        InputFileError: the text is not TOML, the text contains an unknown key, or a claim contains no promise.
    """
    claims = decode_strictly(lambda: tomllib.loads(shallow(text)), ClaimsFile, what=f"claims {file}", language="TOML")
    for number, promised in enumerate(claims.quantiles, start=1):
        for percent in promised.within_us:
            if percent not in _PERCENTS:
                raise InputFileError(
                    f"claims {file}, quantiles {number}, key within_us: '{percent}' is not a supported percentage. "
                    f"Choose one of {', '.join(_PERCENTS)}"
                )
            _require_limit(
                promised.within_us[percent], f"claims {file}, quantiles {number}, key within_us, {percent} %"
            )
    of_quantiles = [claim for quantiles in claims.quantiles for claim in quantiles.claims()]
    claims = msgspec.structs.replace(claims, claim=(*claims.claim, *of_quantiles), quantiles=())
    if not claims.claim and claims.baseline is None:
        raise InputFileError(
            f"claims {file}: the file contains no [[claim]], no [[quantiles]] and no [baseline]. Add at least one of "
            "these tables"
        )
    written = len(claims.claim) - len(of_quantiles)
    for number, claim in enumerate(claims.claim, start=1):
        where = f"claims {file}, " + (f"claim {number}" if number <= written else f"quantiles, {claim.metric}")
        if claim.metric not in METRICS:
            metrics = ", ".join(METRICS)
            raise InputFileError(
                f"{where}, key metric: '{claim.metric}' is not the name of a metric. Choose one of {metrics}"
            )
        _require_promise(claim, where)
        for key, limit in (("at_least", claim.at_least), ("at_most", claim.at_most)):
            if limit is not None:
                _require_limit(limit, f"{where}, key {key}")
        try:
            claim.size_bytes()
        except UsageError as error:
            raise InputFileError(f"{where}, key block_size: {error}") from None
    return claims


def _require_limit(limit: float, where: str) -> None:
    if not (math.isfinite(limit) and limit >= 0):
        raise InputFileError(f"{where}: the limit must be a finite number of 0 or more, but it is {limit}")


def _require_promise(claim: Claim, where: str) -> None:
    """Check that a claim contains exactly one promise. The promise is a limit or the absence of a characteristic. A
    claim about a cell must also contain the mix and the block size, unless the claim names a stream.
    """
    of_course = claim.metric in CHARACTERISTICS
    limits = sum((claim.at_least is not None, claim.at_most is not None, claim.not_found))
    if limits != 1:
        either = "at_least, at_most or not_found" if of_course else "either at_least or at_most"
        raise InputFileError(f"{where}: give {'one of ' * of_course}{either}")
    if not of_course and claim.not_found:
        raise InputFileError(
            f"{where}, key not_found: this key applies only to characteristics that tkperf searches "
            f"for, and '{claim.metric}' is not such a characteristic. Use at_least or at_most instead"
        )
    if claim.not_found and claim.metric == DROPS.key:
        raise InputFileError(
            f"{where}, key not_found: this key does not apply to '{claim.metric}', which is a number "
            "of events. Write at_most = 0 instead"
        )
    if of_course and claim.direction is not Direction.ALL:
        raise InputFileError(
            f"{where}, key direction: '{claim.metric}' describes reads and writes together, so no "
            "direction can be chosen. Omit this key"
        )
    for key in ("read_percent", "block_size") if claim.stream is None else ():
        if not of_course and getattr(claim, key) is None:
            raise InputFileError(f"{where}, key {key}: '{claim.metric}' needs it")
