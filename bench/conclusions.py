"""How often noise changes a conclusion: the course of every known series, on many noisy copies of it.

Each second of a copy is multiplied by white noise of 1 %, with a seed of its own; a second variant lacks the last
tenth. Printed is how many copies of each say what is known. Only the analysis runs.

    python bench/conclusions.py [--copies 200] [--only NAME]

Exit status 1 if less than 95 % of the copies of a series say what is known.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.analysis.named_series import (
    SERIES,
    NamedSeries,
    cut_off_last_tenth,
    find_differences,
    multiply_by_noise,
)

LEAST_ALIKE = 0.95


def count_alike(named: NamedSeries, copies: int) -> tuple[int, int, Counter[str]]:
    """Return how many copies say what is known, whole and cut, and what the others say."""
    series = named.build()
    whole = cut = 0
    wrong: Counter[str] = Counter()
    for seed in range(copies):
        noisy = multiply_by_noise(series, seed)
        of_whole = find_differences(named, noisy)
        of_cut = find_differences(named, cut_off_last_tenth(noisy))
        whole += not of_whole
        cut += not of_cut
        wrong.update({*of_whole, *of_cut})
    return whole, cut, wrong


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--copies", type=int, default=200)
    options.add_argument("--only", default="", help="series whose name contains this")
    given = options.parse_args()
    failed = False
    print(f"{'series':40} {'whole':>8} {'cut':>8}")
    for named in SERIES:
        if given.only not in named.name:
            continue
        whole, cut, wrong = count_alike(named, given.copies)
        print(f"{named.name:40} {whole / given.copies:8.1%} {cut / given.copies:8.1%}", flush=True)
        for text, count in wrong.most_common(3):
            print(f"    {count} x {text}")
        failed = failed or min(whole, cut) < LEAST_ALIKE * given.copies
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
