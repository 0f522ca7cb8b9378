"""Measure how often noise changes a conclusion.

The script tests every known conclusion on many noisy copies of its series.

Each second of a copy is multiplied by white noise of 1 %, with a different seed for each copy. A second variant of each
copy lacks the last tenth. In this variant, the script judges only conclusions about times before the cut. The script
runs only the analysis, in memory. The output ends with the table in docs/explanation/accuracy.md.

    python bench/conclusions.py [--copies 200] [--drawn 2000 2900] [--only NAME]

``--drawn`` also judges series whose shapes and rates are drawn at random. The first number is the number of the first
series. The second number is one more than the number of the last series.

The exit status is 1 if less than 95 % of the copies of a conclusion, or of the drawn series, lead to the known
conclusion.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.analysis.drawn_series import draw_series
from tests.analysis.further_series import FURTHER_SERIES
from tests.analysis.known_conclusions import CASES, Case, noise_of
from tests.analysis.named_series import SERIES, NamedSeries, cut_off_last_tenth, find_differences, multiply_by_noise

LEAST_ALIKE = 0.95
# The conclusions about changes over time. The values are the first words of the messages about differences that belong
# to each conclusion.
OF_A_COURSE = {
    "fresh and second level": ("levels", "fresh", "first", "second"),
    "settled or not": ("settled:",),
    "steady part: value and begin": ("settled at", "settled from"),
    "sudden drops": ("drops", "drop at"),
    "periodic spikes": ("period",),
}


@dataclass(slots=True, kw_only=True)
class Known:
    """A series or case, with the number of its whole copies and cut copies that lead to the known conclusion."""

    name: str
    conclusions: tuple[str, ...]
    copies: int
    alike: dict[tuple[str, bool], int] = field(default_factory=dict)
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, differences: list[str], *, cut: bool) -> None:
        """Count a copy for each conclusion that the noise in the copy does not change."""
        self.wrong.update({f"{'cut: ' if cut else ''}{text}" for text in differences})
        for conclusion in self.conclusions:
            begins = OF_A_COURSE.get(conclusion, ("",))
            changed = any(text.startswith(begins) for text in differences)
            self.alike[conclusion, cut] = self.alike.get((conclusion, cut), 0) + (not changed)

    def share(self, conclusion: str, *, cut: bool) -> float:
        return self.alike[conclusion, cut] / self.copies

    @property
    def least(self) -> float:
        return min(self.alike.values()) / self.copies


def try_series(named: NamedSeries, copies: int) -> Known:
    """Return how often tkperf finds the known changes over time in noisy copies of a series."""
    series = named.build()
    known = Known(name=named.name, conclusions=tuple(OF_A_COURSE), copies=copies)
    for seed in range(copies):
        noisy = multiply_by_noise(series, seed)
        known.add(find_differences(named, noisy), cut=False)
        known.add(find_differences(named, cut_off_last_tenth(noisy), cut=True), cut=True)
    return known


def try_case(case: Case, copies: int) -> Known:
    """Return how often tkperf finds the known conclusion of a case in noisy copies of the case."""
    known = Known(name=case.name, conclusions=(case.conclusion,), copies=copies)
    for seed in range(copies):
        for cut in (False, True):
            known.add(case.find_differences(noise_of(seed), cut=cut), cut=cut)
    return known


def try_all(only: str, copies: int) -> Iterator[Known]:
    """Judge each series and each case. Print and yield each result."""
    tried: list[tuple[str, Callable[[], Known]]] = [
        *((one.name, lambda one=one: try_series(one, copies)) for one in (*SERIES, *FURTHER_SERIES)),
        *((one.name, lambda one=one: try_case(one, copies)) for one in CASES),
    ]
    print(f"{'series or case':64} {'whole':>8} {'cut':>8}")
    for name, try_one in tried:
        if only not in name:
            continue
        known = try_one()
        whole, cut = (min(known.share(each, cut=cut) for each in known.conclusions) for cut in (False, True))
        print(f"{name:64} {whole:8.1%} {cut:8.1%}", flush=True)
        for text, count in known.wrong.most_common(3):
            print(f"    {count} x {text}")
        yield known


def print_table(found: list[Known]) -> None:
    """Print a Markdown table with the share of copies that lead to the known conclusion, for each conclusion."""
    print(
        "\n| conclusion | series or cases | whole: all copies, series with the lowest share | without the last tenth: "
        "the same |"
    )
    print("|---|---|---|---|")
    for conclusion in dict.fromkeys(each for known in found for each in known.conclusions):
        of = [known for known in found if conclusion in known.conclusions]
        cells = []
        for cut in (False, True):
            shares = [known.share(conclusion, cut=cut) for known in of]
            cells.append(f"{100 * sum(shares) / len(shares):.2f} %, {100 * min(shares):.1f} %")
        print(f"| {conclusion} | {len(of)} | {' | '.join(cells)} |")


def judge_drawn(numbers: range) -> float:
    """Return the share of the randomly drawn series in which tkperf finds all known conclusions."""
    right = 0
    for number in numbers:
        named = draw_series(number)
        differences = find_differences(named, named.build())
        right += not differences
        if differences:
            print(f"drawn {named.name}: {'; '.join(differences)}")
    print(f"drawn series: {right} of {len(numbers)} right")
    return right / len(numbers)


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--copies", type=int, default=200)
    options.add_argument("--drawn", type=int, nargs=2, metavar=("FIRST", "END"))
    options.add_argument("--only", default="", help="series and cases whose name contains this")
    given = options.parse_args()
    found = list(try_all(given.only, given.copies))
    print_table(found)
    drawn = judge_drawn(range(*given.drawn)) if given.drawn else 1.0
    return int(min(*(known.least for known in found), 1.0, drawn) < LEAST_ALIKE)


if __name__ == "__main__":
    sys.exit(main())
