"""Telemetry of drives that may explain differing runs: heat, throttling, write amplification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tkperf.analysis.drive_telemetry import DriveTelemetry
from tkperf.analysis.results import RunResult, TestResult
from tkperf.model.units import MOST_NAMED_RUNS, format_duration, list_names

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


def find_telemetry_differences(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[TelemetryDifference]:
    """Yield differences in the order of the first run's tests; a value needs two runs."""
    for test in results[0].tests:
        tests = [_find(result, test.name) for result in results]
        for text, throttled in _differences(names, tests):
            yield TelemetryDifference(test=test.name, title=test.title, text=text, throttled=throttled)


def _find(result: RunResult, name: str) -> TestResult | None:
    return next((test for test in result.tests if test.name == name), None)


def _differences(names: Sequence[str], tests: Sequence[TestResult | None]) -> Iterator[tuple[str, bool]]:
    throttled = _greatest(names, tests, lambda drive: drive.throttled_s)
    if len(throttled) > 1 and any(throttled.values()):
        yield f"throttled: {_describe_throttled(throttled)}", True
    degrees = _greatest(names, tests, lambda drive: drive.temperature_most_c)
    if len(degrees) > 1 and max(degrees.values()) - min(degrees.values()) >= DIFFERENCE_C:
        yield f"warmest: {_list_values(degrees, '{:.0f} °C')}", False
    amplified = _greatest(names, tests, lambda drive: drive.write_amplification)
    low, high = min(amplified.values(), default=0), max(amplified.values(), default=0)
    if len(amplified) > 1 and low > 0 and high / low >= DIFFERENCE_OF_AMPLIFICATION:
        yield f"write amplification: {_list_values(amplified, '{:.2f}')}", False


def _greatest(
    names: Sequence[str], tests: Sequence[TestResult | None], of: Callable[[DriveTelemetry], float | None]
) -> dict[str, float]:
    """Return the greatest value among the drives of each run that has one."""
    greatest = {}
    for name, test in zip(names, tests, strict=True):
        values = [value for drive in (test.telemetry if test else ()) if (value := of(drive)) is not None]
        if values:
            greatest[name] = max(values)
    return greatest


def _list_values(values: Mapping[str, float], form: str) -> str:
    """List each run's value; of many runs the lowest and the highest: ``42 °C (D) to 75 °C (C)``."""
    if len(values) <= MOST_NAMED_RUNS:
        return ", ".join(f"{name} {form.format(value)}" for name, value in values.items())
    ends = (pick(values, key=lambda name: values[name]) for pick in (min, max))
    return " to ".join(f"{form.format(values[name])} ({name})" for name in ends)


def _describe_throttled(seconds: Mapping[str, float]) -> str:
    """Name runs with equal times together, those that did not throttle last."""
    by_words: dict[str, list[str]] = {}
    for name, value in sorted(seconds.items(), key=lambda pair: not pair[1]):
        by_words.setdefault(f"for {format_duration(value)}" if value else "not", []).append(name)
    return "; ".join(f"{list_names(names)} {words}" for words, names in by_words.items())
