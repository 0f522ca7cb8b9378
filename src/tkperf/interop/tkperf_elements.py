"""Elements of TKperf's result XML, which hold JSON texts: numbers are checked, errors name their place."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, TypeGuard
from xml.etree.ElementTree import Element

from tkperf.interop.imported import LARGEST_DEMAND, readable
from tkperf.model.errors import InputFileError
from tkperf.model.units import KIB
from tkperf.model.workload import Access, Workload

# Limit of the length of a step.
LONGEST_STEP_S = 1e7
# TKperf's default, for a file without the length of a step.
DEFAULT_STEP_S = 60.0


@dataclass(frozen=True, slots=True)
class Source:
    """An element with JSON texts in its children; errors name file and element."""

    file: str
    element: Element
    _values: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def value(self, name: str) -> Any:
        """Return the value of a child, decoded once: every cell of every round needs some."""
        if name not in self._values:
            self._values[name] = self._decoded(name)
        return self._values[name]

    def _decoded(self, name: str) -> Any:
        text = self.element.findtext(name)
        if text is None:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputFileError(
                f"{self.file}, {self.element.tag}/{name}: not JSON: {error}"
            ) from None

    def text(self, name: str) -> str | None:
        value = self.value(name)
        return readable(value) if isinstance(value, str) and value else None

    def count(self, name: str) -> int | None:
        """Return threads or queue depth; None if the file has none."""
        value = self.value(name)
        if value is None:
            return None
        if not _is_number(value) or value != int(value) or not 1 <= value <= LARGEST_DEMAND:
            raise InputFileError(
                f"{self.file}, {self.element.tag}/{name}: {_shown(value)} is not a number; it must "
                f"be 1 or more, up to {LARGEST_DEMAND:,}"
            )
        return int(value)

    @property
    def runtime_s(self) -> float | None:
        """Length of a step in s; None if the file has none."""
        value = self.value("runtime")
        if value is None:
            return None
        if not _is_number(value) or not 0 < value <= LONGEST_STEP_S:
            raise InputFileError(
                f"{self.file}, {self.element.tag}/runtime: {_shown(value)} is not a length of time "
                f"in seconds, up to {LONGEST_STEP_S:,.0f}"
            )
        return float(value)

    def matrix(self, depth: int, largest: float) -> Any:
        """Return ``roundmat``: lists nested ``depth`` times, with numbers up to ``largest``."""
        return self.checked(self.value("roundmat"), depth, largest)

    def checked(self, matrix: object, depth: int, largest: float) -> Any:
        """Check such lists, or a part of them."""
        if not _is_matrix(matrix, depth):
            raise InputFileError(
                f"{self.file}, {self.element.tag}/roundmat: not the lists of numbers that TKperf "
                "writes"
            )
        too_large = _find_larger(matrix, largest)
        if too_large is not None:
            raise InputFileError(
                f"{self.file}, {self.element.tag}/roundmat: {_shown(too_large)} is more than any "
                f"drive does (up to {largest:g})"
            )
        return matrix

    @property
    def step_s(self) -> float:
        runtime_s = self.runtime_s
        return DEFAULT_STEP_S if runtime_s is None else runtime_s

    def workload(self, access: Access, read_percent: int, block_size_kib: float) -> Workload:
        try:
            return Workload(
                access=access,
                read_percent=read_percent,
                block_size_bytes=round(block_size_kib * KIB),
                jobs=self.count("numjobs") or 1,
                io_depth=self.count("iodepth") or 1,
            )
        except ValueError as error:
            raise InputFileError(f"{self.file}, {self.element.tag}: {error}") from None


def _is_matrix(value: object, depth: int) -> bool:
    if depth == 0:
        return _is_number(value) and value >= 0
    return isinstance(value, list) and all(_is_matrix(row, depth - 1) for row in value)


def _is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number; Python's JSON may hold NaN and infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _find_larger(value: Any, largest: float) -> float | None:
    """Return the first number in nested lists above ``largest``."""
    if not isinstance(value, list):
        return value if value > largest else None
    return next(
        (larger for item in value if (larger := _find_larger(item, largest)) is not None), None
    )


def _shown(value: object) -> str:
    """Return a value from the file for an error message, shortened."""
    return readable(json.dumps(value))[:40]
