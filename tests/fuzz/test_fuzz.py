"""Any content of an input file leads to a value or to an error of tkperf, within limits of time and memory."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.fuzz import kinds
from tests.fuzz.run import MUTATIONS, SEED, find_failures


@pytest.fixture(scope="module", autouse=True)
def _vega_in_cache() -> None:
    """Store the libraries of reports in the cache folder. V8 joins them, and needs more memory than a case may use."""
    joined = "from tkperf.render.html import _vega_bundle; _vega_bundle()"
    subprocess.run([sys.executable, "-c", joined], check=True)


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_no_mutation_gets_through(kind: str) -> None:
    """No mutation of an input file causes a failure. The mutations are the same in every test run. tests/fuzz/run.py
    creates more of them.
    """
    failures = find_failures(kind, range(MUTATIONS), SEED)
    assert not failures, "\n".join(failures[:3])


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda: bytes(4 << 30), "MemoryError"),
        (lambda: [None for _ in iter(int, 1)], "TooSlowError"),
        (lambda: dict[str, int]()["x"], "KeyError"),
    ],
)
def test_a_defect_would_be_found(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], says: str) -> None:
    """A defect that was inserted on purpose is found. Only then does a fuzz test without findings show that the code is
    correct.
    """

    def try_case(_: random.Random, number: int) -> None:
        if number == 1:
            act()

    monkeypatch.setattr("tests.fuzz.run.MOST_CPU_S", 0.2)
    monkeypatch.setitem(kinds.KINDS, "claims", kinds.Kind(try_case=try_case))
    (failure,) = find_failures("claims", range(3), SEED)
    assert "case 1" in failure
    assert says in failure
