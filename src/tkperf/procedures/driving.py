"""The loop that drives a procedure: what it asks for and states, one by one, whoever answers.

A run performs the phases, a resumed run first takes its answers from the log, a forecast imagines them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tkperf.model.phases import Answer, Course, Phase, Procedure, Reply, Statement

# Answers a phase. The other argument has the phases that follow it whatever it measures: the rest of its
# course, at most two of them.
Answering = Callable[[Phase, Sequence[Phase]], Answer]


def drive(procedure: Procedure, answer: Answering) -> Iterator[Phase | Statement]:
    """Yield every phase and statement of a procedure to its end; ``answer`` is called after each phase is yielded."""
    reply: Reply = None
    while True:
        try:
            asked = procedure.send(reply)
        except StopIteration:
            return
        if isinstance(asked, Statement):
            yield asked
            reply = None
        elif isinstance(asked, Course):
            answers = []
            for position, phase in enumerate(asked.phases):
                yield phase
                answers.append(answer(phase, asked.phases[position + 1 : position + 3]))
            reply = tuple(answers)
        else:
            yield asked
            reply = answer(asked, ())
