"""Telemetry of drives that may explain differing runs: heat, throttling, write amplification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tkperf.analysis.results import RunResult, TestResult
from tkperf.analysis.telemetry import DriveTelemetry
from tkperf.model.units import format_duration
from tkperf.page.comparing.ratios import MOST_NAMED, list_names

# Smaller differences come from the room's temperature or from a counter's precision.
DIFFERENCE_C = 10.0
DIFFERENCE_OF_AMPLIFICATION = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryDifference:
    """A difference in one test, by its name; ``throttled``: the runs differ in the time they throttled."""

    test: str
    title: str
    text: str
    throttled: bool = False


def find_telemetry_differences(
    names: Sequence[str], results: Sequence[RunResult]
) -> Iterator[TelemetryDifference]:
    """Yield differences in the order of the first run's tests; a value needs two runs."""
    for test in results[0].tests:
        tests = [_find(result, test.name) for result in results]
        for text, throttled in _differences(names, tests):
            yield TelemetryDifference(
                test=test.name, title=test.title, text=text, throttled=throttled
            )


def _find(result: RunResult, name: str) -> TestResult | None:
    return next((test for test in result.tests if test.name == name), None)


def _differences(
    names: Sequence[str], tests: Sequence[TestResult | None]
) -> Iterator[tuple[str, bool]]:
    throttled = _known(names, tests, lambda drive: drive.throttled_s)
    if len(throttled) > 1 and any(value for _, value in throttled):
        told = [
            (name, f"for {format_duration(value)}" if value else "not") for name, value in throttled
        ]
        yield f"throttled: {_list(told)}", True
    degrees = _known(names, tests, lambda drive: drive.temperature_most_c)
    if len(degrees) > 1 and _range(degrees)[1] - _range(degrees)[0] >= DIFFERENCE_C:
        yield f"warmest: {_ends(degrees, '{:.0f} °C')}", False
    amplified = _known(names, tests, lambda drive: drive.write_amplification)
    if len(amplified) > 1 and _range(amplified)[0] > 0:
        low, high = _range(amplified)
        if high / low >= DIFFERENCE_OF_AMPLIFICATION:
            yield f"write amplification: {_ends(amplified, '{:.2f}')}", False


DriveValues = list[tuple[str, float]]


def _known(
    names: Sequence[str],
    tests: Sequence[TestResult | None],
    of: Callable[[DriveTelemetry], float | None],
) -> DriveValues:
    """Return each run's greatest value among its drives."""
    told = []
    for name, test in zip(names, tests, strict=True):
        values = [of(drive) for drive in test.telemetry] if test else []
        known = [value for value in values if value is not None]
        if known:
            told.append((name, max(known)))
    return told


def _range(told: DriveValues) -> tuple[float, float]:
    values = [value for _, value in told]
    return min(values), max(values)


def _ends(told: DriveValues, form: str) -> str:
    """List each run's value; of many runs the lowest and the highest: ``42 °C (D) to 75 °C (C)``."""
    if len(told) <= MOST_NAMED:
        return ", ".join(f"{name} {form.format(value)}" for name, value in told)
    ends = (min(told, key=lambda pair: pair[1]), max(told, key=lambda pair: pair[1]))
    return " to ".join(f"{form.format(value)} ({name})" for name, value in ends)


def _list(told: Sequence[tuple[str, str]]) -> str:
    """Name runs with equal words together."""
    by_words: dict[str, list[str]] = {}
    for name, words in told:
        by_words.setdefault(words, []).append(name)
    return "; ".join(
        f"{list_names(alike)} {words}"
        for words, alike in sorted(by_words.items(), key=lambda pair: pair[0] == "not")
    )
