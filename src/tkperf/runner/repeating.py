"""The rules for repeating a step at once: the number of attempts, and the words of the warning."""

from __future__ import annotations

from tkperf.engine import Next
from tkperf.model.errors import StepDisturbedError, StepFailedError
from tkperf.model.phases import Round

# A step that failed twice fails again. A disturbance is over with the next step or the one after, as a timer's
# job or a user's look at a file, or it lasts for hours.
MOST_ATTEMPTS, MOST_DISTURBED_ATTEMPTS = 2, 3
TIMES = {
    MOST_ATTEMPTS: "measured twice, and failed twice",
    MOST_DISTURBED_ATTEMPTS: "measured three times, and refused each time",
}


def most_attempts(error: StepFailedError) -> int:
    """Return the number of attempts for a step that ends with this error."""
    return MOST_DISTURBED_ATTEMPTS if isinstance(error, StepDisturbedError) else MOST_ATTEMPTS


def why_repeated(
    phase: Round, position: int, then: Next | None, error: StepFailedError, tried_s: float
) -> str:
    """Return the text on a repeated step: the step, the reason, and the load on the device in between."""
    saw = f"the failed attempt ({tried_s:.0f} s)"
    if then is not None and then.certain:
        saw += f" and perhaps the beginning of the next step, {then.loads[0].workload}"
    return (
        f"{phase.section}, round {phase.number}, step {position + 1} of {len(phase.steps)} was "
        f"measured again, because {error}. In between the device saw {saw}"
    )
