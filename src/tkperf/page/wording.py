"""Wording of facts and numbers in a report."""

from __future__ import annotations

import re
import textwrap

from tkperf.analysis.results import SectionResult
from tkperf.model.units import NOT_MEASURED, format_capacity
from tkperf.page.words.flags import describe_window

NOT_KNOWN_TEXT = "not known"


def format_moment(utc: str | None) -> str:
    """Return an ISO 8601 time in UTC as ``2026-11-20 23:41:40 UTC``."""
    if not utc:
        return NOT_KNOWN_TEXT
    # An imported run has only the day.
    return f"{utc[:10]} {utc[11:19]} UTC" if len(utc) > 10 else utc


def format_fact(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOT_KNOWN_TEXT if value is None or value == "" else str(value)


def format_known_capacity(value: object) -> str:
    return format_capacity(value) if isinstance(value, int | float) else NOT_KNOWN_TEXT


def format_written(written_bytes: int | None) -> str:
    return NOT_MEASURED if written_bytes is None else format_capacity(written_bytes)


def shorten(text: str, most: int) -> str:
    """Return the text with at most that many characters, cut between words if possible."""
    if len(text) <= most:
        return text
    between_words = textwrap.shorten(text, most, placeholder=" …")
    return f"{text[: most - 1]}…" if between_words == "…" else between_words


def describe_state(steady: bool | None) -> str:
    """Return the state in words; ``steady`` is ``SectionResult.steady``."""
    if steady is None:
        return "not judged"
    return "reached" if steady else "NOT reached"


def describe_end(section: SectionResult) -> str:
    """Return the reason for a section's end, and the reason for a missing verdict despite a rule.

    It follows the state of steady state, so that it does not repeat these words.
    """
    ended = re.sub("^(no )?steady state (?=in )", "", section.ended_because)
    verdict = section.verdict
    if verdict is None or verdict.judged:
        return ended + describe_window(section.disturbed_in_window)
    return f"{ended}; {verdict.reason}"


def bind_units(text: str) -> str:
    """Return the text with each figure and its unit kept on one line, for outputs that nobody copies."""
    return re.sub(r"(?<=\d) (?=%|[KMGT]iB\b|[mµ]?s\b)", "\N{NO-BREAK SPACE}", text)


_MINUS = re.compile(r"(?<![^\s(])-(?=\s?\d)|(?<=\(max )-(?= min\))")
_POWER = re.compile(r"(?<=\b10)\^(\d+)")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def typeset(text: str) -> str:
    """Return a text for readers with a minus sign before negative numbers and raised powers of ten.

    Documents for programs, Markdown, and what users copy keep the characters of a keyboard.
    """
    signed = _MINUS.sub("\N{MINUS SIGN}", text)
    return _POWER.sub(lambda power: power[1].translate(_RAISED), signed)
